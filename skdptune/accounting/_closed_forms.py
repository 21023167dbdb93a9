"""Profiles in closed form, computed so that small tails are accurate."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy import special

from skdptune._validation import FloatArray
from skdptune.accounting._curves import MOST_POINTS, Halves, Sides, largest_loss, step_at_most
from skdptune.accounting._loss_distribution import LARGEST_LOSS, LossDistribution, place_above

# Bound on the relative rounding error of a closed form, several times the observed error.
ROUNDING = 1e-12
# A few units of rounding.
_UNITS = 4.0 * float(np.finfo(np.float64).eps)
# Losses up to here are small: log 2.
_SMALL = math.log(2.0)
# From these shifts on, Mills ratios can be subtracted accurately, and overflow.
_SMALL_SHIFT, _LARGE_SHIFT = 0.1, 30.0
# Gauss-Legendre nodes on (-1, 1), and their weights.
_FOUR_POINTS = np.polynomial.legendre.leggauss(4)


def randomised_response(epsilon: float, delta: float, count: int = 1) -> LossDistribution:
    """Return the losses of randomised responses that reveal everything with probability delta.

    Notes
    -----
    Theorem P5.

    Each of ``count`` responses is a lie, with loss ``-epsilon``, with probability ``1 / (1 +
    exp(epsilon))``. So the number of lies is binomial.
    """
    if count > 1:
        infinity = -math.expm1(count * math.log1p(-delta)) if delta < 1.0 else 1.0
    else:
        infinity = delta
    if epsilon == 0.0:
        return LossDistribution(1e-4, 0, np.array([1.0 - infinity]), infinity)
    masses = np.zeros(2 * count + 1)
    masses[::2] = _lies(epsilon, count)[::-1] * (1.0 - infinity)
    return LossDistribution(epsilon, -count, masses, infinity)


def _lies(epsilon: float, count: int) -> FloatArray:
    """Return the distribution of the number of lies among `count` responses, rounded up."""
    if count == 1:
        truth = float(special.expit(epsilon))
        return np.array([truth, 1.0 - truth])
    mode = math.floor((count + 1) * special.expit(-epsilon))
    numbers = np.arange(count, dtype=np.float64)
    ratios = (count - numbers) / (numbers + 1.0) * math.exp(-epsilon)
    masses = np.ones(count + 1)
    masses[mode + 1 :] = np.cumprod(ratios[mode:])
    masses[:mode] = np.cumprod(1.0 / ratios[:mode][::-1])[::-1]
    # Each is a product of fewer than count ratios, with three roundings each.
    masses *= (1.0 + 8.0 * count * np.finfo(np.float64).eps) / masses.sum()
    # Every loss is kept, however improbable.
    return np.maximum(masses, np.finfo(np.float64).tiny)


def gaussian_halves(mu: float, step: float | None = None) -> Halves:
    """Return the curve of `gaussian_delta` on a suitable grid, rounded up."""
    if step is None:
        # Chords of 1/2000 of the losses' spread are within 1e-5 of the curve, at any scale.
        step = step_at_most(min(mu / 2000.0, LARGEST_LOSS / 2**10))
    top = min(mu * mu / 2.0 + 9.5 * mu, LARGEST_LOSS)
    half = gaussian_delta(mu, step * np.arange(math.ceil(top / step) + 1)) * (1.0 + ROUNDING)
    half = np.minimum(half, 1.0)
    return Halves(step, half, half)


def laplace_halves(mu: float, step: float) -> Halves:
    """Return the curve of Laplace noise, with a sensitivity of ``mu`` times its scale."""
    epsilons = step * np.arange(place_above(min(mu, LARGEST_LOSS), step) + 1)
    half = np.expm1(np.maximum(0.5 * (mu - epsilons), 0.0))
    half *= np.exp(np.minimum(0.5 * (epsilons - mu), 0.0)) * (1.0 + ROUNDING)
    half = np.minimum(half, 1.0)
    return Halves(step, half, half)


def gaussian_delta(mu: float, epsilons: FloatArray) -> FloatArray:
    """Return the curve of a Gaussian release with a sensitivity of ``mu`` standard deviations.

    Balle and Wang (2018): ``F(mu/2 - e/mu) - exp(e) F(-mu/2 - e/mu)``. It is computed as a
    difference of Mills ratios times a density, which avoids cancellation. The relative error is
    below 2e-13.

    Notes
    -----
    Theorem P6.
    """
    upper = epsilons / mu - mu / 2.0
    density = np.exp(-0.5 * upper * upper) / math.sqrt(2.0 * math.pi)
    if mu < _SMALL_SHIFT:
        return np.minimum(density * _small_mills_difference(upper, mu), 1.0)
    if mu < _LARGE_SHIFT:
        return np.minimum(density * (_mills(upper) - _mills(upper + mu)), 1.0)
    # Far below the mean, the Mills ratio overflows, but digits do not cancel.
    far = upper < -5.0
    near = _mills(np.where(far, 0.0, upper)) - _mills(upper + mu)
    result: FloatArray = np.where(
        far, special.ndtr(-upper) - density * _mills(upper + mu), density * near
    )
    return np.minimum(result, 1.0)


def _mills(x: FloatArray) -> FloatArray:
    """Return the ratio of the normal upper tail to the density."""
    ratio: FloatArray = math.sqrt(math.pi / 2.0) * special.erfcx(x / math.sqrt(2.0))
    return ratio


def _small_mills_difference(x: FloatArray, width: float) -> FloatArray:
    """Return ``_mills(x) - _mills(x + width)`` as an integral, to avoid cancellation.

    The derivative of the ratio is ``x _mills(x) - 1``, which is so smooth that four points
    suffice.
    """
    total = np.zeros_like(x)
    for node, weight in zip(*_FOUR_POINTS, strict=True):
        at = x + 0.5 * width * (1.0 + node)
        total += weight * (1.0 - at * _mills(at))
    return 0.5 * width * total


def subsampled_halves(sides: Sides, fraction: float) -> Halves:
    """Return the curves of a release on a Poisson sample, with ``fraction`` in (0, 1)."""
    remove, add = sides
    # Largest losses of the sampled pair: when removing a record, and when adding one.
    largest = min(largest_loss(sides), LARGEST_LOSS)
    end = max(math.log1p(fraction * math.expm1(largest)), -math.log1p(-fraction))
    step = step_at_most(max(min(remove.step, end / 2**14), end / MOST_POINTS))
    # One more point, since curves are read slightly before it: no finite loss remains at the last.
    grid = step * np.arange(math.ceil(end / step) + 2)
    return Halves(
        step,
        subsampled_remove(remove.delta, grid, fraction),
        subsampled_add(add.delta, grid, fraction),
    )


def subsampled_remove(
    curve: Callable[[FloatArray], FloatArray], epsilons: FloatArray, rate: float
) -> FloatArray:
    """Return the curve of removing a record on a Poisson sample, at epsilons >= 0, rounded up.

    Parameters
    ----------
    curve : callable
        The release's own curve in this direction.
    epsilons : ndarray
    rate : float
        In (0, 1).
    """
    # Theorem P7: the curve of a release on a Poisson sample.
    inner = loss_before_sampling(epsilons, rate)
    # Read the curve a few units of rounding earlier, where it is not lower.
    inner = np.maximum(inner - _UNITS * inner, 0.0)
    return np.minimum(rate * (1.0 + ROUNDING) * curve(inner), 1.0)


def subsampled_add(
    curve: Callable[[FloatArray], FloatArray], epsilons: FloatArray, rate: float
) -> FloatArray:
    """Return the curve of adding a record on a Poisson sample, at epsilons >= 0, rounded up.

    The parameters are those of `subsampled_remove`.
    """
    # Theorem P7: the curve of a release on a Poisson sample. Near the largest loss, a unit of
    # rounding in epsilon is a notable share of the rest. Therefore the curve is read a few units
    # earlier.
    end = -math.log1p(-rate)
    before = epsilons - _UNITS * (epsilons + end)
    # 1 - (1 - rate) exp(epsilon), and log(rate exp(epsilon)) minus the logarithm of it.
    kept = -np.expm1(np.minimum(before - end, 0.0))
    some = kept > 0.0
    kept, before = kept[some], before[some]
    gone = np.minimum(-np.expm1(-before) / rate, 1.0)
    near = -np.log1p(-np.minimum(gone, 0.5))
    far = math.log(rate) + before - np.log(kept)
    inner = np.maximum(np.where(gone < 0.5, near, far), 0.0)
    result = np.zeros_like(epsilons)
    result[some] = kept * curve(inner) * (1.0 + ROUNDING)
    return np.minimum(result, 1.0)


def loss_before_sampling(losses: FloatArray, rate: float) -> FloatArray:
    """Return ``log(1 + (e^loss - 1) / rate)``, and ``-inf`` at and below ``log(1 - rate)``."""
    is_small = np.abs(losses) < _SMALL
    small = np.where(is_small, losses, 0.0)
    # Far from 0, this would overflow, or lose all digits of 1 - rate for rates near 1.
    large = np.where(is_small, _SMALL, losses)
    with np.errstate(divide="ignore", over="ignore"):
        small = np.log1p(np.maximum(np.expm1(small) / rate, -1.0))
        logs = np.log1p(np.maximum(-(1.0 - rate) * np.exp(-large), -1.0))
        return np.where(is_small, small, large - math.log(rate) + logs)
