"""Iterative Hessian mixing for linear regression, of Lev and others (2026).

A prototype for `tried.py`: its randomness is NumPy's, and it is not for private data.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import optimize, stats
from scipy.special import log_ndtr

from skdptune.mechanisms import noise_for_budget

DELTA = 1e-5
# Probability with which the bound on the least eigenvalue fails; part of DELTA.
FAILURE = DELTA / 10.0


@dataclass(frozen=True)
class Mixing:
    """Settings of iterative Hessian mixing.

    The rows of a sketch are `size` times the larger of the columns and ``log(4 steps / FAILURE)``.
    `share` of the squared shift goes to gradients and `eigenvalue` to the least eigenvalue.
    Residuals are clipped to `clip` times the bound of targets.
    """

    steps: int
    size: float
    share: float
    eigenvalue: float
    clip: float

    def rows(self, width: int) -> int:
        """Return the number of rows of a sketch."""
        return int(self.size * max(width, math.log(4.0 * self.steps / FAILURE)))


def mixing_settings() -> Iterator[Mixing]:
    """Iterate over the settings among which the best in hindsight is sought."""
    lists = ((1, 2, 3, 5), (2.5, 6.0, 15.0), (0.3, 0.6, 0.8), (0.0, 0.1), (1 / 3, 1.0))
    for values in itertools.product(*lists):
        yield Mixing(*values)


def mixing_delta(variance: float, n_draws: int, shift: float, epsilon: float) -> float:
    """Return the delta of normal draws and of a Gaussian release of a shift, composed.

    With a record, the draws have the variance ``1 + variance``, without it 1; the larger of the
    two directions. Given the loss of the draws, what is left is the Gaussian release's own curve.
    """
    spread = math.sqrt(2.0 * n_draws)
    draws = np.linspace(max(n_draws - 9.0 * spread, 1e-9), n_draws + 14.0 * spread, 4001)
    density = stats.chi2.pdf(draws, n_draws)
    constant = 0.5 * n_draws * math.log1p(variance)
    worst = 0.0
    for losses in (
        0.5 * draws * variance - constant,
        constant - 0.5 * draws * variance / (1.0 + variance),
    ):
        left = epsilon - losses
        curve = np.exp(log_ndtr(0.5 * shift - left / shift))
        curve -= np.exp(left + log_ndtr(-0.5 * shift - left / shift))
        worst = max(worst, float(np.trapezoid(density * curve, draws)))
    return worst


@functools.cache
def least_eigenvalue(epsilon: float, n_draws: int, shift: float) -> float:
    """Return the least eigenvalue that sketches need, in units of a row's squared norm."""

    def excess(log_value: float) -> float:
        found = mixing_delta(math.exp(-log_value), n_draws, shift, epsilon)
        return math.log(max(found, 1e-300) / (DELTA - FAILURE))

    return math.exp(optimize.brentq(excess, -2.0, 20.0, xtol=1e-6))


def mixing_weights(
    rows: np.ndarray, y: np.ndarray, epsilon: float, setting: Mixing, rng: np.random.Generator
) -> np.ndarray:
    """Return the weights after some steps, each with a new sketch; bounds are 1.

    Sketches of n rows by a normal matrix are normal rows of covariance ``X'X``, and are drawn so.
    """
    noise, _ = noise_for_budget(epsilon, DELTA)
    width = rows.shape[1]
    gram, n_rows = rows.T @ rows, setting.rows(width)
    shift = math.sqrt(setting.share + setting.eigenvalue) / noise
    needed = least_eigenvalue(epsilon, setting.steps * n_rows, shift)
    if setting.eigenvalue:
        scale = noise / math.sqrt(setting.eigenvalue)
        noisy = np.linalg.eigvalsh(gram)[0] + scale * rng.normal()
        # Below the true one, with and without any record, except for the failure.
        needed = max(needed - max(noisy - scale * stats.norm.isf(FAILURE) - 1.0, 0.0), 0.0)
    root = np.linalg.cholesky(gram + (needed + 1e-9) * np.eye(width))
    scale = setting.clip * noise * math.sqrt(setting.steps / setting.share)
    weights = np.zeros(width)
    for _ in range(setting.steps):
        sketch = rng.normal(size=(n_rows, width)) @ root.T
        residuals = np.clip(y - rows @ weights, -setting.clip, setting.clip)
        moment = rows.T @ residuals + scale * rng.normal(size=width)
        weights += np.linalg.solve(sketch.T @ sketch / n_rows, moment)
    return weights
