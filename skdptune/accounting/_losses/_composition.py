"""Composition of loss distributions by dp_accounting's Fourier transforms, rounding included."""

from __future__ import annotations

import math

import numpy as np

from skdptune.accounting._losses._curves import Sides, on_common_grid, with_bounded_size
from skdptune.accounting._losses._distribution import TAIL_MASS, LossDistribution
from skdptune.accounting._losses._dp_accounting import from_pmf, to_pmf

_LARGEST_TRANSFORM = 2**21
_FEW_MASSES = 16


def composed_sides(first: Sides, second: Sides) -> Sides:
    """Return the composition of two releases, both directions of it."""
    mine, theirs = on_common_grid(first, second)
    remove, add = (composed(a, b) for a, b in zip(mine, theirs, strict=True))
    return remove, add


def self_composed_sides(sides: Sides, count: int) -> Sides:
    """Return ``count`` copies, composed by halves where one transform would be too large."""
    if all(_is_small_enough(side, count) for side in sides):
        remove, add = (self_composed(side, count) for side in sides)
        return remove, add
    half = with_bounded_size(*self_composed_sides(sides, count // 2))
    doubled = with_bounded_size(*self_composed_sides(half, 2))
    if count % 2:
        doubled = with_bounded_size(*composed_sides(doubled, sides))
    return doubled


def composed(first: LossDistribution, second: LossDistribution) -> LossDistribution:
    """Return the composition of two distributions on one grid."""
    # Theorem P4.
    few, many = sorted((first, second), key=lambda side: np.count_nonzero(side.masses))
    if np.count_nonzero(few.masses) <= _FEW_MASSES:
        return _directly_composed(few, many)
    pmf = to_pmf(first).compose(to_pmf(second), tail_mass_truncation=0.0)
    result = from_pmf(
        pmf,
        tail=_tail(first.infinity + second.infinity),
        error=_transform_error(max(first.masses.size, second.masses.size), 1),
    )
    top = float(first.masses[-1] * second.masses[-1])
    return _with_honest_top(result, top)


def _directly_composed(few: LossDistribution, many: LossDistribution) -> LossDistribution:
    """Return the composition with a distribution of a few masses, exact but for rounding."""
    masses = np.zeros(few.masses.size + many.masses.size - 1)
    for place in np.flatnonzero(few.masses):
        masses[place : place + many.masses.size] += few.masses[place] * many.masses
    infinity = few.infinity + many.infinity - few.infinity * many.infinity
    return LossDistribution(few.step, few.lowest + many.lowest, masses, infinity)


def _is_small_enough(losses: LossDistribution, count: int) -> bool:
    """Return whether ``count`` copies can be composed in one transform of moderate size."""
    return losses.masses.size * math.isqrt(count) <= _LARGEST_TRANSFORM


def self_composed(losses: LossDistribution, count: int) -> LossDistribution:
    """Return the composition of ``count >= 1`` copies of a distribution."""
    # Theorem P4.
    if losses.infinity >= 1.0:
        return losses
    tail = _tail(losses.infinity)
    if losses.masses.size * count > _LARGEST_TRANSFORM:
        # Too many losses to keep the last one: a share of them goes to infinity.
        tail = TAIL_MASS
    pmf = to_pmf(losses).self_compose(count, tail_mass_truncation=tail)
    result = from_pmf(pmf, tail=tail, error=_transform_error(losses.masses.size, count))
    return _with_honest_top(result, float(losses.masses[-1]) ** count)


def _transform_error(size: int, count: int) -> float:
    """Return an allowance for what a Fourier transform's rounding may take from a tail.

    Products of transforms are off by a fraction of the unit of rounding times the logarithm of
    their size, powers by the root of the exponent more; this is several times what closed forms
    show.
    """
    roundings = 0.25 * math.log2(size + 1.0) + 2.0 * (math.sqrt(count) - 1.0)
    return float(np.finfo(np.float64).eps) * roundings


def _tail(infinity: float) -> float:
    # A guarantee without mass at infinity (a pure one) must not get any from tidying up.
    return TAIL_MASS if infinity > 0.0 else 0.0


def _with_honest_top(result: LossDistribution, top: float) -> LossDistribution:
    """Make sure that the noise of a Fourier transform has not erased the largest loss."""
    if result.infinity > 0.0 or result.masses[-1] >= top:
        return result
    masses = result.masses.copy()
    masses[-1] = top
    return LossDistribution(result.step, result.lowest, masses, result.infinity)
