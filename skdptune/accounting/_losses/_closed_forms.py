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

# Relative rounding that a closed form may lack, several times what many digits show.
ROUNDING = 1e-12
# Losses up to here are small: log 2.
_SMALL = math.log(2.0)
# Shifts from which on Mills ratios differ enough to be subtracted, and on which they overflow.
_SMALL_SHIFT, _LARGE_SHIFT = 0.1, 30.0
# Gauss and Legendre's nodes on (-1, 1), and their weights.
_FOUR_POINTS = np.polynomial.legendre.leggauss(4)


def randomised_response(epsilon: float, delta: float, count: int = 1) -> LossDistribution:
    """Return the losses of randomised responses that reveal everything with probability delta.

    Notes
    -----
    Theorem P5.

    Of ``count`` responses each is a lie, of loss ``-epsilon``, with probability
    ``1 / (1 + exp(epsilon))``, so that the number of lies is binomial.
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
    """Return the distribution of the number of lies among so many responses, rounded up."""
    if count == 1:
        truth = float(special.expit(epsilon))
        return np.array([truth, 1.0 - truth])
    mode = math.floor((count + 1) * special.expit(-epsilon))
    numbers = np.arange(count, dtype=np.float64)
    ratios = (count - numbers) / (numbers + 1.0) * math.exp(-epsilon)
    masses = np.ones(count + 1)
    masses[mode + 1 :] = np.cumprod(ratios[mode:])
    masses[:mode] = np.cumprod(1.0 / ratios[:mode][::-1])[::-1]
    # Each is a product of fewer than count ratios, of three roundings each.
    masses *= (1.0 + 8.0 * count * np.finfo(np.float64).eps) / masses.sum()
    # No loss disappears, however improbable.
    return np.maximum(masses, np.finfo(np.float64).tiny)


def gaussian_halves(mu: float, step: float | None = None) -> Halves:
    """Return the curve of `gaussian_delta` on a grid that suits it, rounded up."""
    if step is None:
        # Chords of 1/2000 of the losses' spread are within 1e-5 of the curve, at any scale.
        step = step_at_most(min(mu / 2000.0, LARGEST_LOSS / 2**10))
    top = min(mu * mu / 2.0 + 9.5 * mu, LARGEST_LOSS)
    half = gaussian_delta(mu, step * np.arange(math.ceil(top / step) + 1)) * (1.0 + ROUNDING)
    half = np.minimum(half, 1.0)
    return Halves(step, half, half)


def laplace_halves(mu: float, step: float) -> Halves:
    """Return the curve of Laplace noise, of a sensitivity of ``mu`` times its scale."""
    epsilons = step * np.arange(math.ceil(min(mu, LARGEST_LOSS) / step - 1e-9) + 1)
    half = np.expm1(np.maximum(0.5 * (mu - epsilons), 0.0))
    half *= np.exp(np.minimum(0.5 * (epsilons - mu), 0.0)) * (1.0 + ROUNDING)
    half = np.minimum(half, 1.0)
    return Halves(step, half, half)


def gaussian_delta(mu: float, epsilons: FloatArray) -> FloatArray:
    """Return the curve of a Gaussian release of sensitivity ``mu`` standard deviations.

    Balle and Wang (2018): ``F(mu/2 - e/mu) - exp(e) F(-mu/2 - e/mu)``, here as a difference of
    Mills ratios times a density, which does not cancel. The relative error is below 2e-13.

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
    # Far below the mean the Mills ratio overflows, and nothing cancels.
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
    """Return ``_mills(x) - _mills(x + width)`` as an integral: it would cancel for small widths.

    The derivative of the ratio is ``x _mills(x) - 1``, so smooth that four points say all.
    """
    total = np.zeros_like(x)
    for node, weight in zip(*_FOUR_POINTS, strict=True):
        at = x + 0.5 * width * (1.0 + node)
        total += weight * (1.0 - at * _mills(at))
    return 0.5 * width * total


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
