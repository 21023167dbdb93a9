"""Curves known in closed form, computed so that small tails keep their accuracy."""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from skdptune._validation import FloatArray
from skdptune.accounting._losses._distribution import LARGEST_LOSS, LossDistribution


def gaussian_delta(mu: float, epsilons: FloatArray) -> FloatArray:
    """Return the curve of a Gaussian release of sensitivity ``mu`` standard deviations.

    Balle and Wang (2018): ``F(mu/2 - e/mu) - exp(e) F(-mu/2 - e/mu)``, here as a difference of
    Mills ratios times a density, which does not cancel.

    Notes
    -----
    Theorem P6.
    """
    upper = epsilons / mu - mu / 2.0
    density = np.exp(-0.5 * upper * upper) / math.sqrt(2.0 * math.pi)
    result: FloatArray = density * (_mills(upper) - _mills(upper + mu))
    return np.minimum(result, 1.0)


def _mills(x: FloatArray) -> FloatArray:
    """Return the ratio of the normal upper tail to the density."""
    ratio: FloatArray = math.sqrt(math.pi / 2.0) * special.erfcx(x / math.sqrt(2.0))
    return ratio


def subsampled_add(add: LossDistribution, grid: FloatArray, fraction: float) -> FloatArray:
    """Return the add direction of a Poisson sample on a grid of epsilon >= 0."""
    # Theorem P7.
    sampled = fraction * np.exp(grid)
    # 1 - (1 - fraction) exp(grid), without cancellation.
    kept = sampled - np.expm1(grid)
    inside = kept > 0.0
    result = np.zeros_like(grid)
    arguments = np.log(sampled[inside]) - np.log(kept[inside])
    result[inside] = kept[inside] * add.delta(np.maximum(arguments, 0.0))
    return result


def subsampled_remove(remove: LossDistribution, grid: FloatArray, fraction: float) -> FloatArray:
    """Return the remove direction of a Poisson sample on a grid of epsilon >= 0."""
    # Theorem P7.
    grown = np.expm1(np.minimum(grid, LARGEST_LOSS + math.log(fraction))) / fraction
    return fraction * remove.delta(np.log1p(grown))


def subsampled_loss(loss: float, fraction: float) -> float:
    """Return the loss of the mixture where the release's own loss is ``loss``."""
    return math.log1p(fraction * math.expm1(loss))
