"""Steps that refine a ridge regression on noisy sums, each paid with a part of its budget."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from skdptune.linear_model._regression._noisy_sums import release_gram
from skdptune.linear_model._regression._ridge_problem import LEAST_RIDGE, RidgeProblem
from skdptune.linear_model._regression._sufficient_statistics import UNIT
from skdptune.mechanisms import gaussian_release

# What did well where noise dominates, and from which noise on: docs/defaults.md.
N_STEPS = 5
# Of the squared shift; the rest is for the rows' products with rows.
STEPS_SHARE = 0.7
LEAST_NOISE = 0.12
# The largest residual, in units of 2^-20 of the bound of targets: a third of it.
LARGEST_RESIDUAL = UNIT // 3.0
# Of weights, in units of the bounds. A row of norm 2^20 sqrt(1.25) and weights of norm 2^12 2^20
# have a product, and parts of one, below 2^53, where doubles count exactly in any order.
_LARGEST_WEIGHTS = 2.0**12


def takes_steps(shift: float, n_samples: int, width: int) -> bool:
    """Return whether noise is so large that steps are better than one solution.

    Parameters
    ----------
    shift : float
        Of the one Gaussian release that a fit costs.
    n_samples : int
        Number of records, or the public constant for it.
    width : int
        Number of weights.

    Notes
    -----
    Noise is about that on an eigenvalue of ``X'X``, if half of the squared shift is for it, over
    the mean of these for rows of norm 1.
    """
    return math.sqrt(2.0) * width**1.5 / (shift * n_samples) > LEAST_NOISE


def refined_weights(
    problem: RidgeProblem,
    blocks: Callable[[], Iterator[np.ndarray]],
    shift: float,
    rng: np.random.Generator,
) -> np.ndarray:
    """Return weights after steps towards smaller residuals.

    The rows' products with rows are released once. Each step then releases the rows' products
    with what the weights so far leave of the targets, cut to a third of their bound.

    Parameters
    ----------
    problem : RidgeProblem
    blocks : callable
        Reads the records, as `SufficientStatistics.blocks` does.
    shift : float
        Of the one Gaussian release that all of it costs.
    rng : numpy.random.Generator
        Source of the noise.

    Notes
    -----
    Theorem L10.
    """
    radius = math.sqrt(problem.radius2)
    gram_shift = shift * math.sqrt(1.0 - STEPS_SHARE)
    sensitivity = radius * LARGEST_RESIDUAL / UNIT
    scale = sensitivity / (shift * math.sqrt(STEPS_SHARE / N_STEPS))
    values, vectors = np.linalg.eigh(release_gram(problem, gram_shift, rng))
    ridge = math.sqrt(values.size) * problem.radius2 / gram_shift
    raised = np.maximum(values, 0.0) + max(ridge, LEAST_RIDGE)
    weights = np.zeros(values.size)
    for _ in range(N_STEPS):
        moment = residual_moment(blocks(), weights)
        noisy = gaussian_release(moment, sensitivity, scale, rng)
        weights = whole_weights(weights / UNIT + vectors @ (vectors.T @ noisy / raised))
    return weights / UNIT


def whole_weights(weights: np.ndarray) -> np.ndarray:
    """Return weights as whole numbers, in units of 2^-20, of norm 2^32 at most.

    Parameters
    ----------
    weights : ndarray
        In units of the bounds. What is no finite number becomes 0.
    """
    finite = np.where(np.isfinite(weights), weights, 0.0)
    # Squares of the largest numbers would overflow.
    largest = max(float(np.abs(finite).max(initial=0.0)), 1.0)
    length = float(np.linalg.norm(finite / largest))
    shrinkage = min(1.0, _LARGEST_WEIGHTS / largest / max(length, 1e-300))
    return np.trunc(finite * shrinkage * UNIT)


def residual_moment(blocks: Iterable[np.ndarray], weights: np.ndarray) -> np.ndarray:
    """Return the rows' products with cut residuals, in units of the bounds.

    Parameters
    ----------
    blocks : iterable of ndarray
        Rows and, in the last column, targets: whole numbers, in units of 2^-20 of the bounds.
    weights : ndarray
        From `whole_weights`.

    Notes
    -----
    Theorem L10.
    """
    return exact_moment(blocks, weights).astype(np.float64) / UNIT**2


def exact_moment(blocks: Iterable[np.ndarray], weights: np.ndarray) -> np.ndarray:
    """Return the same as Python's integers, in units of 2^-40 of the bounds."""
    total = np.zeros(weights.size, dtype=object)
    for block in blocks:
        rows = block[:, :-1]
        # In units of 2^-40, and then of 2^-20.
        residuals = block[:, -1] * UNIT - rows @ weights
        residuals = np.trunc(residuals / UNIT)
        np.clip(residuals, -LARGEST_RESIDUAL, LARGEST_RESIDUAL, out=residuals)
        total += (rows.T @ residuals).astype(np.int64).astype(object)
    return total
