"""A profile through few of its points: never below it, and short enough to be written down.

A direction's curve is convex and piecewise linear in ``exp(epsilon)``; its knots are the positive
losses that have mass. Leaving a knot out replaces two pieces by the chord above them, which moves
the mass of that loss to the knots beside it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from skdptune._validation import FloatArray
from skdptune.accounting._losses import LARGEST_LOSS, MOST_POINTS, LossDistribution, Sides

# Most knots of the directions that are written: most profiles take half of them.
MOST_KNOTS = 340
# Most deltas at which epsilon is kept: each takes two knots of either direction.
_MOST_DELTAS = 16
# Share of epsilon that chords may add: a thousandth, less what is read between grid points.
_TOLERANCE = 9e-4
# The range of deltas in which it is kept; below it ten times the tolerance will do, and below a
# hundred-thousandth of it, any.
_LEAST_DELTA, _LARGEST_DELTA = 1e-11, 2e-2
# By how much the tolerance may grow above the range, where knots are too many.
_MOST_ABOVE = 64.0
# Deltas this close to the mass at infinity, beside it, are below the range.
_RESOLUTION = 1e-6
# What the rounding of weights and sums may take from a mass that was moved.
_ROUNDING = 1.0 + 2.0**-42
# Total variations of the two directions that differ by rounding alone.
_SAME = 1e-14

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Knots:
    """What says all of a direction's curve at ``epsilon >= 0``.

    Attributes
    ----------
    places : ndarray of int
        Grid numbers, positive and increasing, of the losses that have mass.
    masses : ndarray
        Masses there.
    infinity : float
        Mass at infinity.
    """

    places: IntArray
    masses: FloatArray
    infinity: float

    def total_variation(self, step: float) -> float:
        """Return the curve at ``epsilon = 0``."""
        return self.infinity - float(np.sum(self.masses * np.expm1(-step * self.places)))


def knots_of(side: LossDistribution) -> Knots:
    """Return all knots of a direction."""
    places = np.flatnonzero(side.positive_masses)
    return Knots(places + 1, side.positive_masses[places], side.infinity)


def few_knots(sides: Sides, deltas: Sequence[float] = ()) -> tuple[Knots, Knots]:
    """Return knots of curves that are never below a profile's own, and hardly above them.

    Parameters
    ----------
    sides : tuple of LossDistribution
        The remove and the add direction.
    deltas : sequence of float, default=()
        Where epsilon must not grow at all; the first sixteen count.

    Returns
    -------
    remove, add : Knots
        At most `MOST_KNOTS` in all, two equal directions counted once. Largest losses and masses
        at infinity are those of `sides`. At any delta from 1e-10 to 1e-2, and at least a millionth
        above the mass at infinity, epsilon is at most 0.1 % larger, unless only a greater share
        makes the knots as few as that.

    Notes
    -----
    Theorem P11.
    """
    remove, add = sides
    is_same = remove.equals(add)
    knots = knots_of(remove), knots_of(add)
    tolerance = _Tolerance()
    exact = tuple(dict.fromkeys(deltas))[:_MOST_DELTAS]
    while _count(knots, is_same) > MOST_KNOTS:
        first = _moved(remove, _chosen(remove, tolerance, exact))
        second = first if is_same else _moved(add, _chosen(add, tolerance, exact))
        knots, tolerance = (first, second), tolerance.next()
    return _with_one_total_variation(remove.step, *knots)


def sides_through(step: float, remove: Knots, add: Knots) -> Sides:
    """Return the loss distributions whose curves have these knots.

    Notes
    -----
    Theorem P11.
    """
    return _side_through(step, remove, add), _side_through(step, add, remove)


# Choosing knots ----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Tolerance:
    """Share of epsilon that chords may add, and how many times that above the range."""

    share: float = _TOLERANCE
    above: float = 1.0

    def next(self) -> _Tolerance:
        """Return the next larger one: the range itself comes last."""
        if self.above < _MOST_ABOVE:
            return _Tolerance(self.share, 4.0 * self.above)
        return _Tolerance(2.0 * self.share, self.above)


def _count(knots: tuple[Knots, Knots], is_same: bool) -> int:
    return knots[0].places.size + (0 if is_same else knots[1].places.size)


def _chosen(side: LossDistribution, tolerance: _Tolerance, deltas: Sequence[float]) -> IntArray:
    """Return the grid numbers of few knots, 0 and the largest loss among them."""
    known = np.flatnonzero(side.positive_masses)
    if not known.size:
        return np.zeros(1, dtype=np.int64)
    last = int(known[-1]) + 1
    corners = {last}
    for delta in deltas:
        # The cell in which epsilon is read.
        right = int(np.searchsorted(-side.curve, -delta, side="left"))
        corners |= {place for place in (right - 1, right) if 0 < place < last}
    # The curve less the mass at infinity, which would hide small differences.
    excess = np.append(np.cumsum(side.weighted_tails[::-1])[::-1] * math.expm1(side.step), 0.0)
    latest = _latest(side, excess, tolerance)
    chosen = [0]
    for corner in sorted(corners):
        while chosen[-1] < corner:
            chosen.append(_farthest(excess, latest, side.step, chosen[-1], corner))
    return np.array(chosen)


def _latest(side: LossDistribution, excess: FloatArray, tolerance: _Tolerance) -> FloatArray:
    """Return for each point of the curve the epsilon by which chords must be as low."""
    least = max(_LEAST_DELTA - side.infinity, _RESOLUTION * side.infinity)
    share = np.full(excess.size, tolerance.share)
    share[excess < least] *= 10.0
    share[excess + side.infinity > _LARGEST_DELTA] *= tolerance.above
    latest = side.step * np.arange(excess.size) * (1.0 + share)
    latest[excess < 1e-5 * least] = math.inf
    # Where the share falls, so that they stay in order; earlier is lower.
    return np.minimum.accumulate(latest[::-1])[::-1]


def _farthest(excess: FloatArray, latest: FloatArray, step: float, start: int, stop: int) -> int:
    """Return the last grid number, up to ``stop``, to which a chord is low enough.

    A chord to a nearer point lies lower, so that the first one that does not ends the search,
    and the farthest choice at each knot makes for the fewest knots.
    """
    width = 64
    while True:
        ends = np.arange(start + 1, min(start + width, stop) + 1)
        # Points of the curve that the chord to each end has to be below.
        passed = np.searchsorted(latest, step * ends, side="right") - 1 - start
        inside = np.arange(start + 1, start + max(int(passed[-1]), 0) + 1)
        slopes = (excess[ends] - excess[start]) / _width(step * (ends - start))
        bounds = (excess[inside] - excess[start]) / _width(latest[inside] - step * start)
        lowest = np.minimum.accumulate(np.append(math.inf, bounds))
        is_too_high = slopes > lowest[np.maximum(passed, 0)]
        if is_too_high.any():
            return int(ends[np.argmax(is_too_high)]) - 1
        if ends[-1] == stop:
            return stop
        width *= 2


def _width(distance: FloatArray) -> FloatArray:
    """Return ``exp(distance) - 1``, of no more than what floats can say."""
    return np.expm1(np.minimum(distance, LARGEST_LOSS))


# Moving masses -----------------------------------------------------------------------------


def _moved(side: LossDistribution, chosen: IntArray) -> Knots:
    """Return the knots at ``chosen``, with the masses between two moved to both of them.

    The shares keep the mass under both distributions of the pair: under the first one, the
    masses, and under the second, those times ``exp(-loss)``.
    """
    masses = side.positive_masses[: chosen[-1]]
    places = np.arange(1, chosen[-1] + 1)
    after = np.searchsorted(chosen, places)
    left, right = chosen[after - 1], chosen[after]
    rightward = np.expm1(-side.step * (places - left)) / np.expm1(-side.step * (right - left))
    leftward = np.exp(-side.step * (places - left)) * (
        np.expm1(-side.step * (right - places)) / np.expm1(-side.step * (right - left))
    )
    # Knot by knot, whose sums are pairwise and hence as exact as their rounding is paid for.
    cuts = np.searchsorted(places, chosen[1:-1], side="right")
    gained = np.zeros(chosen.size)
    gained[1:] += [part.sum() for part in np.split(masses * rightward, cuts)]
    gained[:-1] += [part.sum() for part in np.split(masses * leftward, cuts)]
    kept = np.flatnonzero(gained[1:]) + 1
    return Knots(chosen[kept], gained[kept] * _ROUNDING, side.infinity)


def _with_one_total_variation(step: float, remove: Knots, add: Knots) -> tuple[Knots, Knots]:
    """Return both directions, the lower one raised where they disagree at ``epsilon = 0``.

    There the two curves of a pair are one number.

    Notes
    -----
    Theorem P11.
    """
    first, second = remove.total_variation(step), add.total_variation(step)
    if abs(first - second) <= _SAME * max(first, second):
        return remove, add
    if first > second:
        return remove, _raised(step, add, first - second)
    return _raised(step, remove, second - first), add


def _raised(step: float, knots: Knots, gap: float) -> Knots:
    """Return the knots with a curve higher by ``gap`` at 0, and the same from the first one on."""
    places, masses = knots.places, knots.masses.copy()
    if not places.size:
        places, masses = np.array([1]), np.zeros(1)
    masses[0] -= gap / math.expm1(-step * float(places[0]))
    return Knots(places, masses, knots.infinity)


def _side_through(step: float, own: Knots, other: Knots) -> LossDistribution:
    """Return one direction: its own masses, the other's at negative losses, the rest at 0."""
    above = int(own.places[-1]) if own.places.size else 0
    below = int(other.places[-1]) if other.places.size else 0
    # More losses than a profile goes on with: the lowest are raised, which errs on the safe side.
    below = min(below, max(2 * MOST_POINTS - 1 - above, 0))
    masses = np.zeros(below + 1 + above)
    mirrored = other.masses * np.exp(-step * other.places)
    np.add.at(masses, below - np.minimum(other.places, below), mirrored)
    masses[below + own.places] = own.masses
    rest = 1.0 - own.infinity - float(own.masses.sum()) - float(mirrored.sum())
    # More than a mass of 1 in all is more than the guarantee asks for.
    masses[below] += max(rest, 0.0)
    return LossDistribution(step, -below, masses, own.infinity)
