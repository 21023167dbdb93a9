"""Composition of loss distributions: directly for a few masses, otherwise by transforms."""

from __future__ import annotations

import math

import numpy as np

from skdptune.accounting._convolution import (
    TAIL,
    convolved,
    convolved_with_rare,
    is_lost,
    without_ends,
)
from skdptune.accounting._curves import (
    Sides,
    everything_lost,
    on_suitable_grid,
    regridded,
    step_at_most,
    with_bounded_size,
)
from skdptune.accounting._loss_distribution import LARGEST_LOSS, LossDistribution

_LARGEST_TRANSFORM, _USUAL_TRANSFORM = 2**21, 2**19
# With this many points per spread of a loss, the grid widens the sum of many by a ten-thousandth.
_PER_LOSS = 30.0
_FEW_MASSES = 16
# Losses are rare if all copies together meet them with this probability.
_RARE = 1e-4
# Rare losses matter if they exceed this many spreads of the sum of the others.
_FAR = 10.0
# For fewer copies, the spread of the sum is not meaningful.
_MANY = 2


def composed_sides(first: Sides, second: Sides, share: float = 1.0) -> Sides:
    """Return the composition of two releases, in both directions.

    Only a share of the allowed mass may be moved to infinity.
    """
    mine, theirs = on_suitable_grid(first, second)
    tail = share * _tail(*mine, *theirs)
    remove, add = (composed(a, b, tail) for a, b in zip(mine, theirs, strict=True))
    return remove, add


def self_composed_sides(sides: Sides, count: int, share: float = 1.0) -> Sides:
    """Return the composition of ``count`` copies, by halves if one transform would be too large.

    Only a share of the allowed mass may be moved to infinity.
    """
    tail = share * _tail(*sides)
    sides = _on_grid_of_sum(sides, count) if tail > 0.0 else sides
    if count <= 2 or all(_size_of_sum(side, count, tail) <= _LARGEST_TRANSFORM for side in sides):
        remove, add = (self_composed(side, count, tail) for side in sides)
        return remove, add
    # The two halves and their composition each use a part of the share.
    share *= 0.25
    half = with_bounded_size(*self_composed_sides(sides, count // 2, share))
    doubled = with_bounded_size(*self_composed_sides(half, 2, share))
    if count % 2:
        doubled = with_bounded_size(*composed_sides(doubled, sides, share))
    if doubled[0].step > LARGEST_LOSS:
        # The exponential of a step exceeds doubles, so that only the loss 0 is finite.
        return everything_lost(LARGEST_LOSS)
    return doubled


def _on_grid_of_sum(sides: Sides, count: int) -> Sides:
    """Return both directions on a grid no finer than the sum of many copies needs."""
    step = sides[0].step
    size = max(_size_of_sum(side, count, 1.0) for side in sides)
    finest = min(side.deviation for side in sides) / _PER_LOSS
    wanted = min(step * size / _USUAL_TRANSFORM, finest)
    if wanted < 2.0 * step:
        return sides
    return regridded(*sides, step_at_most(wanted))


def composed(first: LossDistribution, second: LossDistribution, tail: float) -> LossDistribution:
    """Return the composition of two distributions on one grid.

    Notes
    -----
    Theorem P4.

    A mass of up to ``tail`` may be moved from the upper end to infinity.
    """
    few, many = sorted((first, second), key=lambda side: np.count_nonzero(side.masses))
    if is_lost([(first, 1), (second, 1)], tail):
        return everything_lost(first.step)[0]
    if np.count_nonzero(few.masses) <= _FEW_MASSES:
        # Directly, which is exact up to rounding: a product and some additions.
        masses = np.zeros(few.masses.size + many.masses.size - 1)
        for place in np.flatnonzero(few.masses):
            masses[place : place + many.masses.size] += few.masses[place] * many.masses
        masses *= 1.0 + 2.0 * _FEW_MASSES * np.finfo(np.float64).eps
        infinity = few.infinity + many.infinity - few.infinity * many.infinity
        return LossDistribution(few.step, few.lowest + many.lowest, masses, infinity)
    return convolved([(first, 1), (second, 1)], tail)


def self_composed(losses: LossDistribution, count: int, tail: float) -> LossDistribution:
    """Return the composition of ``count >= 1`` copies of a distribution.

    Notes
    -----
    Theorem P4.

    A mass of up to a few times ``tail`` may be moved to infinity.
    """
    if count == 1:
        return losses
    if is_lost([(losses, count)], tail):
        return everything_lost(losses.step)[0]
    first = _first_rare_loss(without_ends(losses, tail / count), count) if tail > 0.0 else None
    if first is None:
        return convolved([(losses, count)], tail)
    masses = losses.masses[: first - losses.lowest]
    common = LossDistribution(losses.step, losses.lowest, masses, losses.infinity)
    return convolved_with_rare(common, losses, first, count, tail)


def _first_rare_loss(losses: LossDistribution, count: int) -> int | None:
    """Return the grid number of the first rare loss; None if rare losses are not far away."""
    if count < _MANY:
        return None
    masses = losses.masses
    keep = int(np.searchsorted(-np.cumsum(masses[::-1])[::-1], -_RARE / count, side="right"))
    first = losses.lowest + keep
    if keep == 0 or 2 * first > losses.highest:
        return None
    common = LossDistribution(losses.step, losses.lowest, masses[:keep], losses.infinity)
    spread = common.deviation * math.sqrt(count)
    return first if losses.highest * losses.step > _FAR * spread else None


def _size_of_sum(losses: LossDistribution, count: int, tail: float) -> float:
    """Return the approximate number of losses of ``count`` copies, after cutting the ends."""
    size = float(losses.masses.size)
    if tail == 0.0:
        return size * count
    spread = losses.deviation * math.sqrt(count) / losses.step
    return min(20.0 * spread + size, size * count)


def _tail(*sides: LossDistribution) -> float:
    # A guarantee without mass at infinity (a pure one) must not get any from cutting ends.
    return TAIL if any(side.infinity > 0.0 for side in sides) else 0.0
