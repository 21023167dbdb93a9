"""Profiles known in closed form, computed so that small tails keep their accuracy."""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from skdptune._validation import FloatArray
from skdptune.accounting._losses._curves import (
    MOST_POINTS,
    Halves,
    Sides,
    largest_loss,
    step_at_most,
)
from skdptune.accounting._losses._distribution import LARGEST_LOSS, LossDistribution

# Losses up to here are small: log 2.
_SMALL = math.log(2.0)


def randomised_response(epsilon: float, delta: float) -> LossDistribution:
    """Return the losses of randomised response that reveals everything with probability delta."""
    if epsilon == 0.0:
        return LossDistribution(1e-4, 0, np.array([1.0 - delta]), delta)
    upper = special.expit(epsilon) * (1.0 - delta)
    return LossDistribution(epsilon, -1, np.array([1.0 - delta - upper, 0.0, upper]), delta)


def gaussian_halves(mu: float) -> Halves:
    """Return the curve of `gaussian_delta` on a grid that suits it."""
    # Chords of 1/2000 of the losses' spread are within 1e-5 of the curve, at any scale.
    step = step_at_most(mu / 2000.0)
    top = min(mu * mu / 2.0 + 9.0 * mu, LARGEST_LOSS)
    half = gaussian_delta(mu, step * np.arange(math.ceil(top / step) + 1))
    return Halves(step, half, half)


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


def subsampled_halves(sides: Sides, fraction: float) -> Halves:
    """Return the curves of a release on a Poisson sample, with ``fraction`` in (0, 1)."""
    remove, add = sides
    # Largest losses of the sampled pair: of the mixture, and of what the mixture hides.
    end = max(_subsampled_loss(largest_loss(sides), fraction), -math.log1p(-fraction))
    end = min(end, LARGEST_LOSS)
    step = step_at_most(max(min(remove.step, end / 2**14), end / MOST_POINTS))
    grid = step * np.arange(math.ceil(end / step) + 1)
    return Halves(
        step, subsampled_remove(remove, grid, fraction), subsampled_add(add, grid, fraction)
    )


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


def _subsampled_loss(loss: float, fraction: float) -> float:
    """Return the loss of the mixture where the release's own loss is ``loss``."""
    return math.log1p(fraction * math.expm1(loss))


def loss_before_sampling(losses: FloatArray, rate: float) -> FloatArray:
    """Return ``log(1 + (e^loss - 1) / rate)``, and ``-inf`` at and below ``log(1 - rate)``."""
    is_small = np.abs(losses) < _SMALL
    small = np.where(is_small, losses, 0.0)
    # Far from 0 this would overflow, or lose all digits of 1 - rate where the rate is near 1.
    large = np.where(is_small, _SMALL, losses)
    with np.errstate(divide="ignore", over="ignore"):
        small = np.log1p(np.maximum(np.expm1(small) / rate, -1.0))
        logs = np.log1p(np.maximum(-(1.0 - rate) * np.exp(-large), -1.0))
        return np.where(is_small, small, large - math.log(rate) + logs)
