"""Conversion of hockey-stick curves to privacy loss distributions, and between grids.

The curve ``H(alpha)``, ``alpha = exp(epsilon) > 0``, of one direction is convex, decreases from
``H(0) = 1``, and is at least ``1 - alpha``. Its part above ``alpha = 1`` is the *upper half* of
this direction. Its part below is the upper half of the other direction by

    H(alpha; P, Q) = 1 - alpha + alpha * H(1 / alpha; Q, P).

So two upper halves, sampled at ``epsilon = 0, step, 2 step, ...``, contain everything. Connecting
the dots linearly in ``alpha`` gives a pair of discrete distributions whose curve lies on or above
the true one everywhere (Doroshenko et al. 2022), as a pessimistic accountant needs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from scipy import optimize

from skdptune._validation import FloatArray
from skdptune.accounting._loss_distribution import (
    LARGEST_LOSS,
    LossDistribution,
    normalised,
    place_above,
    times_fitting,
)

# Steps are 1e-4 times a power of two. So of two steps one is a multiple of the other, and budgets
# with up to four decimals are on the grid.
_UNIT = 1e-4
# Largest number of points of an upper half if the caller does not give a step.
MOST_POINTS = 2**17
# A grid with this many points per spread of a composition is fine enough for it.
_PER_SPREAD = 400.0
# A grid with this many points per spread is almost as good as any finer one,
_PER_SPREAD_OF_BOTH = 1000.0
# unless it would spread a mass larger than this over two points.
_LARGEST_SMOOTH_MASS = 0.02
# Slopes that decrease by this relative amount do so because of rounding.
_BENT = 1e-11
# Heights with at most this relative difference differ because of rounding.
_FAR = 1e-9
# A sixteenth of the number of points next to alpha = 1 at which two halves are first joined.
_BRIDGE = 8
# Grids that fit into each other up to this relative difference are made to fit.
_CLOSE = 1e-9
# Mass at infinity below which a bound's grid may end.
_NEGLIGIBLE = 1e-16

# Mass that a direction may lack because of rounding.
_LACKING = 1e-9

# The remove and the add direction.
Sides = tuple[LossDistribution, LossDistribution]


class Halves(NamedTuple):
    """Upper bounds on ``delta(0), delta(step), delta(2 step), ...`` in both directions."""

    step: float
    remove: FloatArray
    add: FloatArray


def step_at_most(bound: float) -> float:
    """Return the largest step of the common family that is at most ``bound``."""
    return math.ldexp(_UNIT, math.floor(math.log2(bound / _UNIT) + 1e-9))


def convex_minorant(curve: FloatArray, step: float) -> FloatArray:
    """Return the largest convex curve below an upper half's points and ``H(0) = 1``.

    Lowering the points is valid: the true curve is convex, passes through ``(0, 1)`` and lies
    below every point, and therefore below every chord. Without this step, connecting the dots of a
    curve that is not convex would need negative masses.

    Notes
    -----
    Theorem P3.
    """
    # NaN is not a bound.
    heights = np.minimum.accumulate(np.clip(np.where(np.isnan(curve), 1.0, curve), 0.0, 1.0))
    # Measured from alpha = 1, neighbours on a fine grid keep their distance.
    alphas = np.expm1(step * np.arange(heights.size))
    x, y = np.concatenate([[-1.0], alphas]), np.concatenate([[1.0], heights])
    widths = np.diff(x)
    slopes = np.diff(y) / widths
    if np.all(slopes[1:] >= (1.0 + _BENT) * slopes[:-1]):
        return heights
    # The slopes of the greatest convex minorant are the isotonic regression of the slopes.
    blocks = optimize.isotonic_regression(slopes, weights=widths).blocks
    return np.minimum(np.interp(alphas, x[blocks], y[blocks]), heights)


def connect_dots(step: float, remove: FloatArray, add: FloatArray) -> Sides:
    """Return the loss distributions of both directions, given their upper halves.

    Parameters
    ----------
    step : float
        Step of the grid of epsilon.
    remove, add : ndarray
        Upper bounds on ``delta(k * step)``, ``k = 0, 1, ...``, of the two directions. The value at
        the last point becomes mass at infinity.

    Notes
    -----
    Theorem P1.

    The total variation ``delta(0)`` is the same number in both directions, so the smaller bound
    counts. With ``c(k) = (H(k) - H(k+1)) / (exp(step) - 1)``, the mass at ``k > 0`` is ``exp(step)
    c(k-1) - c(k)``. All differences are between neighbouring heights, so that tails keep their
    relative accuracy.
    """
    upper, lower = _joined(step, remove, add)
    mine, theirs = (
        normalised(side.step, side.lowest, side.masses, side.infinity)
        for side in connected(step, upper, lower)
    )
    return mine, theirs


def connected(step: float, remove: FloatArray, add: FloatArray, further: float = 0.0) -> Sides:
    """Return the loss distributions of two convex upper halves that meet at ``epsilon = 0``.

    Parameters
    ----------
    step : float
        Step of the grid of epsilon.
    remove, add : ndarray
        Decreasing, convex up to rounding, and equal at 0; or one and the same array.
    further : float, default=0.0
        ``c`` of the first half beyond its last point, if it continues to decrease; 0 if its last
        value becomes mass at infinity.

    Notes
    -----
    Theorem P1.
    """
    growth = math.expm1(step)
    first, second = (
        np.append(np.maximum(-np.diff(half), 0.0) / growth, 0.0) for half in (remove, add)
    )
    first[-1] = further
    # Clipping only adds mass, which can only raise the curve.
    upper, lower = (np.maximum(math.exp(step) * c[:-1] - c[1:], 0.0) for c in (first, second))
    # A few units of rounding, so that the masses never sum to less than required.
    rounding = 8.0 * np.finfo(float).eps
    middle = max(1.0 - remove[0] - first[0] - second[0], 0.0) + rounding
    side = _assemble(step, upper, lower, middle, float(remove[-1]))
    if add is remove:
        return side, side
    return side, _assemble(step, lower, upper, middle, float(add[-1]))


def _lowered(half: FloatArray, height: float, step: float) -> FloatArray:
    """Return a half that starts at a given height, and is convex again."""
    if half[0] == height:
        return half
    is_far = half[0] > (1.0 + _FAR) * height
    half[0] = height
    # If only rounding is the cause, only the beginning can change.
    return convex_minorant(half, step) if is_far else np.minimum.accumulate(half)


def _joined(step: float, remove: FloatArray, add: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the two halves of the convex minorant of the whole curve.

    The halves meet at ``alpha = 1``. First each half is lowered separately, where its tail is
    accurate, and then both together. The latter matters around zero: a chord from one half to the
    other may lie far below both.

    Notes
    -----
    Theorem P3.
    """
    upper, lower = convex_minorant(remove, step), convex_minorant(add, step)
    height = min(upper[0], lower[0])
    upper, lower = _lowered(upper, height, step), _lowered(lower, height, step)
    # Both are convex, so that only a range around alpha = 1 can change.
    reach, ends = _BRIDGE, (False, False)
    while not all(ends):
        reach *= 16
        ends, (own, other) = _bridged(step, upper[:reach], lower[:reach])
        ends = ends[0] or other.size == lower.size, ends[1] or own.size == upper.size
    upper[: own.size], lower[: other.size] = own, other
    return upper, lower


def _bridged(
    step: float, upper: FloatArray, lower: FloatArray
) -> tuple[tuple[bool, bool], tuple[FloatArray, FloatArray]]:
    """Return the two halves of a joint convex minorant, and whether its ends are unchanged.

    The ends are those of the lower and of the upper half.
    """
    left = lower.size - 1
    grid = step * np.arange(-left, upper.size)
    alphas, shifted = np.exp(grid), np.expm1(grid)
    # The height above the lower limit 1 - alpha is accurate left of alpha = 1.
    above_floor = np.concatenate([alphas[:left] * lower[:0:-1], upper + shifted[left:]])
    heights = np.concatenate([above_floor[:left] - shifted[:left], upper])
    widths = alphas[:-1] * math.expm1(step)
    slopes = np.where(grid[1:] > 0.0, np.diff(heights), np.diff(above_floor) - widths) / widths
    blocks = optimize.isotonic_regression(slopes, weights=widths).blocks
    right = np.interp(shifted[left:], shifted[blocks], heights[blocks])
    # Near alpha = 1, points are distinguishable in alpha - 1; near alpha = 0, in alpha.
    near = np.interp(shifted[: left + 1], shifted[blocks], above_floor[blocks])
    far = np.interp(alphas[: left + 1], alphas[blocks], above_floor[blocks])
    left_floor = np.where(shifted[: left + 1] > -0.5, near, far)
    mirrored = (left_floor / alphas[: left + 1])[::-1]
    own, other = np.minimum(right, upper), np.minimum(mirrored, lower)
    own[0] = other[0] = min(own[0], other[0])
    alone = blocks.size > 2 and blocks[1] == 1, blocks.size > 2 and blocks[-2] == slopes.size - 1
    return alone, (own, other)


def _assemble(
    step: float, own: FloatArray, other: FloatArray, middle: float, infinity: float
) -> LossDistribution:
    """Return masses at positive losses, at zero, and the other direction's at negative ones."""
    mirrored = other * np.exp(-step * np.arange(1, other.size + 1))
    masses = np.concatenate([mirrored[::-1], [middle], own])
    return LossDistribution(step, -other.size, masses, infinity)


def upper_half(losses: LossDistribution, step: float) -> FloatArray:
    """Return a distribution's curve at ``0, step, 2 step, ...`` up to its largest finite loss."""
    last = min(place_above(losses.highest * losses.step, step), int(LARGEST_LOSS / step))
    return losses.delta(step * np.arange(last + 1))


def regridded(remove: LossDistribution, add: LossDistribution, step: float) -> Sides:
    """Return both directions on the grid ``step``; the result is exact if the grids fit.

    Notes
    -----
    Theorem P1.
    """
    factor = times_fitting(remove.step, step, slack=_CLOSE)
    if factor is not None:
        return remove.on_finer_grid(factor, step), add.on_finer_grid(factor, step)
    mine = remove.on_grid(step)
    return mine, mine if add is remove else add.on_grid(step)


def complete(remove: LossDistribution, add: LossDistribution) -> Sides:
    """Return both directions of a pair, completed so that their masses sum to 1.

    Mass that is missing, except for rounding, is added at infinity. If all mass of one direction
    is there, nothing of the other one is finite either, since no outcome has a positive
    probability in both.

    Notes
    -----
    Theorem P4.
    """
    sides = []
    for side in (remove, add):
        lacking = 1.0 - float(side.masses.sum()) - side.infinity
        if not lacking <= _LACKING:
            masses, infinity = side.masses, side.infinity + lacking
            side = LossDistribution(side.step, side.lowest, masses, infinity)
        sides.append(side)
    if max(side.infinity for side in sides) < 1.0:
        return sides[0], sides[1] if add is not remove else sides[0]
    return everything_lost(_UNIT)


def everything_lost(step: float) -> Sides:
    """Return both directions of a release of the data themselves."""
    losses = LossDistribution(step, 0, np.zeros(1), 1.0)
    return losses, losses


def with_bounded_size(remove: LossDistribution, add: LossDistribution) -> Sides:
    """Return both directions, on a coarser grid if they have too many losses."""
    longest = max(side.masses.size for side in (remove, add))
    if longest <= 2 * MOST_POINTS:
        return remove, add
    step = step_at_most(max(remove.step, add.step) * longest / MOST_POINTS)
    return regridded(remove, add, step)


def largest_loss(sides: Sides) -> float:
    """Return the largest finite loss of both directions."""
    return max(side.highest * side.step for side in sides)


def pair_masses(
    own: LossDistribution, other: LossDistribution
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return decreasing losses and their masses under both distributions of a direction's pair.

    Masses above zero come from this direction, masses below zero from the other one, where their
    rounding errors are small. The loss zero gets the missing mass. The masses at infinity of the
    two directions (only ``P``, only ``Q``) are left out.

    Notes
    -----
    Theorem P2.
    """
    above, below = own.positive_masses, other.positive_masses
    rises = own.step * np.arange(1, above.size + 1)
    falls = other.step * np.arange(1, below.size + 1)
    p = np.concatenate([above[::-1], [0.0], below * np.exp(-falls)])
    q = np.concatenate([(above * np.exp(-rises))[::-1], [0.0], below])
    p[above.size] = max(1.0 - own.infinity - float(p.sum()), 0.0)
    q[above.size] = max(1.0 - other.infinity - float(q.sum()), 0.0)
    return np.concatenate([rises[::-1], [0.0], -falls]), p, q


def half_through_points(points: FloatArray, deltas: FloatArray, step: float) -> FloatArray:
    """Return the convex minorant of single points, at ``0, step, ...`` up to the last point."""
    # Theorem P3: the convex minorant of points is a bound, too.
    last = place_above(float(points[-1]), step)
    grid = np.exp(np.minimum(step * np.arange(last + 1), points[-1]))
    x = np.concatenate([[0.0], np.exp(points)])
    y = np.concatenate([[1.0], np.minimum.accumulate(deltas)])
    widths = np.diff(x)
    blocks = optimize.isotonic_regression(np.diff(y) / widths, weights=widths).blocks
    return np.interp(grid, x[blocks], y[blocks])


def halves_of_bound(delta: Callable[[FloatArray], FloatArray]) -> Halves:
    """Return both halves of a bound on delta that is the same in both directions."""
    top = 1e-3
    while top < LARGEST_LOSS and float(delta(np.array([top]))[0]) > _NEGLIGIBLE:
        top *= 2.0
    step = step_at_most(top / 2**14)
    half = delta(step * np.arange(math.ceil(min(top, LARGEST_LOSS) / step) + 1))
    return Halves(step, half, half)


def on_common_grid(first: Sides, second: Sides) -> tuple[Sides, Sides]:
    """Return both pairs on one grid, as fine as the finer one if possible."""
    steps = [first[0].step, second[0].step]
    if steps[0] == steps[1]:
        return first, second
    step = max(common_step(*steps), _least_step(first, second))
    return regridded(*first, step), regridded(*second, step)


def _least_step(first: Sides, second: Sides) -> float:
    """Return the finest step of a grid on which the composition is not too large."""
    extent = sum(max(side.masses.size * side.step for side in pair) for pair in (first, second))
    return step_at_most(extent / (2 * MOST_POINTS))


def on_suitable_grid(first: Sides, second: Sides) -> tuple[Sides, Sides]:
    """Return both pairs on one grid that suits their composition, as coarse as possible.

    A grid is suitable if it is fine compared to the spread of the composition, and if a pair
    without large single masses is on it. Large single masses must keep their losses, especially
    those of a pure guarantee.
    """
    spread = math.hypot(first[0].deviation, second[0].deviation)
    steps = [own[0].step for own in (first, second) if _is_smooth(own)]
    steps = [step for step in steps if step <= spread / _PER_SPREAD]
    if len(steps) == 2:
        # Neither pair requires its own grid.
        steps.append(step_at_most(spread / _PER_SPREAD_OF_BOTH))
    if not steps or first[0].step == second[0].step == max(steps):
        return on_common_grid(first, second)
    step = max(*steps, _least_step(first, second))
    return regridded(*first, step), regridded(*second, step)


def _is_smooth(sides: Sides) -> bool:
    """Return whether all single masses are small, and the guarantee is not pure."""
    is_cut = any(side.infinity > 0.0 for side in sides)
    return is_cut and max(float(s.masses.max(initial=0.0)) for s in sides) <= _LARGEST_SMOOTH_MASS


def common_step(first: float, second: float) -> float:
    """Return a step of which both are multiples if there is one, or one much finer than both."""
    low, high = min(first, second), max(first, second)
    ratio = Fraction(high / low).limit_denominator(1000)
    if abs(high / low - ratio) <= _CLOSE * ratio:
        # If two steps differ only by rounding, use the larger one: no loss may become smaller.
        return max(low / ratio.denominator, high / ratio.numerator)
    return step_at_most(low / 2**12)


def worst_of(first: Sides, second: Sides) -> Halves:
    """Return the larger of two curves at every epsilon, in each direction."""
    mine, theirs = on_common_grid(first, second)
    # The curves may cross anywhere, so a coarse grid would lose much.
    fine = step_at_most(max(largest_loss(first), largest_loss(second), 1e-6) / 2**14)
    step = min(mine[0].step, max(fine, 1e-9))
    halves = []
    for pair in zip(mine, theirs, strict=True):
        curves = [upper_half(side, step) for side in pair]
        size = max(curve.size for curve in curves)
        padded = [np.pad(curve, (0, size - curve.size), mode="edge") for curve in curves]
        halves.append(np.maximum(*padded))
    return Halves(step, *halves)


def hockey_stick(
    own: LossDistribution, other: LossDistribution, log_alpha: FloatArray
) -> FloatArray:
    """Return ``H(alpha)`` of a direction for any ``alpha > 0``, given its logarithm."""
    # Theorem P2: a direction below alpha = 1 is the other direction above it.
    below = log_alpha < 0.0
    if not below.any():
        return own.delta(log_alpha)
    above = ~below
    result = np.empty_like(log_alpha)
    result[above] = own.delta(log_alpha[above])
    arguments = log_alpha[below]
    result[below] = -np.expm1(arguments) + np.exp(arguments) * other.delta(-arguments)
    return result


def least_errors(own: LossDistribution, other: LossDistribution, misses: FloatArray) -> FloatArray:
    """Return ``inf Q(T)`` over tests that miss with ``P(not T) = miss``, for each miss.

    It is the supremum of the lines proved by the curve, ``(1 - miss - H(alpha)) / alpha``. They
    are computed from this direction for ``alpha >= 1``, and from the other one below.
    """
    result = np.zeros_like(misses)
    above = own.step * np.arange(own.highest + 1)
    below = other.step * np.arange(other.highest + 1)
    for index, miss in enumerate(misses):
        lines = (1.0 - own.curve - miss) * np.exp(-above)
        mirrored = 1.0 - other.curve - miss * np.exp(below)
        result[index] = max(lines.max(), mirrored.max(), 0.0)
    return result
