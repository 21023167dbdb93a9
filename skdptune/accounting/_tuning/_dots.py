"""Few dots of a convex curve, whose chords are hardly above it and never below.

A hockey-stick curve is convex in ``exp(epsilon)``, so chords between its dots are an upper bound,
and dots are needed only where it bends. They are found by halving: the gap between chord and curve
is a concave function, so that in a narrow cell it is nowhere much more than twice as large as in
the middle.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from skdptune._validation import FloatArray
from skdptune.accounting._losses import LARGEST_LOSS, LossDistribution, Sides, step_at_most

IntArray = npt.NDArray[np.int64]

# Shares of epsilon and of delta that the chord of a cell may add in its middle. The middle becomes
# a dot in any case, so that about a quarter is left.
_SHARE_OF_EPSILON = 6e-4
_SHARE_OF_DELTA = 6e-3
# As narrow as that, a cell need not be halved even where the curve has a corner.
_NARROW = 5e-4
# Gaps that are no part of any delta that is asked for.
_NEGLIGIBLE = 1e-15
# Below this share of the largest epsilon, shares of epsilon are no finer.
_SMALLEST_EPSILON = 1e-3
# A wider cell's middle says little about the rest.
_WIDEST = 0.5
# Cells to begin with, and how many there would be if all were as small as any may become.
_CELLS = 2**5
_FINEST = 2**14
# The same of the longer one of two curves.
_LONGEST = 2**16
# Dots of a curve on a uniform grid, at least.
_LEAST_DOTS = 2**11


class Dots(NamedTuple):
    """Heights of a curve at increasing places of a grid, the first of which is ``epsilon = 0``."""

    places: IntArray
    heights: FloatArray


def few_dots(height: Callable[[IntArray], FloatArray], places: IntArray, step: float) -> Dots:
    """Return dots of a falling convex curve, close enough for their chords.

    Parameters
    ----------
    height : callable
        The curve at places of the grid: at ``epsilon = step * place``.
    places : ndarray of int
        Ends of the first cells; increasing.
    step : float
        Grid of epsilon.

    Notes
    -----
    Theorem T6.
    """
    least = _SMALLEST_EPSILON * step * float(places[-1])
    heights = height(places)
    is_wide = np.diff(places) > 1
    while is_wide.any():
        left = np.flatnonzero(is_wide)
        start, stop = places[left], places[left + 1]
        middle, width = (start + stop) // 2, step * (stop - start)
        found = height(middle)
        drop = heights[left] - heights[left + 1]
        share = np.expm1(step * (middle - start)) / np.expm1(width)
        gap = heights[left] - share * drop - found
        epsilon = np.maximum(step * middle, least)
        # What the gap adds to epsilon, where the curve falls as steeply as its chord.
        allowed = np.minimum(_SHARE_OF_DELTA * found, _SHARE_OF_EPSILON * epsilon * drop / width)
        allowed[width <= _NARROW * epsilon] = np.inf
        is_far = (width > _WIDEST) & (drop > _NEGLIGIBLE)
        is_wide[left] = is_far | (gap > np.maximum(allowed, _NEGLIGIBLE))
        places = np.insert(places, left + 1, middle)
        heights = np.insert(heights, left + 1, found)
        # Both halves of a cell are looked at again if the cell was.
        is_wide = np.insert(is_wide, left, is_wide[left]) & (np.diff(places) > 1)
    return Dots(places, heights)


def dots_of_losses(side: LossDistribution) -> Dots:
    """Return few dots of a direction's curve, the first and the last one among them."""
    places = np.unique(np.linspace(0, side.highest, _CELLS + 1).astype(np.int64))
    curve = side.curve
    return few_dots(lambda place: curve[place], places, side.step)


def few_outcomes(sides: Sides) -> tuple[FloatArray, FloatArray]:
    """Return likelihood ratios of a pair and their masses under its second distribution.

    The pair's curve has the chords between few dots of that of ``sides`` (remove first): masses of
    outcomes between two dots are moved to both, with their means under either distribution kept.
    Ratio 0, which only the second distribution gives, comes last.

    Notes
    -----
    Theorem T6.
    """
    remove, add = sides
    above, above_masses = _moved_masses(remove)
    below, below_masses = _moved_masses(add)
    # A mass under the second distribution is the add direction's mass of the mirrored loss.
    below_masses = below_masses * np.exp(below)
    totals = float(remove.weighted_tails[:1].sum()), float(add.positive_masses.sum())
    rest = max(1.0 - add.infinity - sum(totals), 0.0)
    # To loss zero move what is missing from the sums, which may be more than 1 by a little.
    rest += max(totals[0] - float(above_masses.sum()), 0.0)
    rest += max(totals[1] - float(below_masses.sum()), 0.0)
    ratios = np.concatenate([np.exp(above), [1.0], np.exp(-below), [0.0]])
    masses = np.concatenate([above_masses, [rest], below_masses, [add.infinity]])
    return ratios[masses > 0.0], masses[masses > 0.0]


def _moved_masses(side: LossDistribution) -> tuple[FloatArray, FloatArray]:
    """Return positive losses of few dots, and masses under the other distribution of the pair.

    The curve falls along a chord by the mass beyond it times the difference in ``exp(epsilon)``.
    """
    dots = dots_of_losses(side)
    losses = side.step * dots.places
    widths = np.exp(losses[:-1]) * np.expm1(np.diff(losses))
    beyond = np.append(-np.diff(dots.heights) / widths, 0.0)
    return losses[1:], np.maximum(-np.diff(beyond), 0.0)


def curves_through_dots(
    curves: tuple[Callable[[FloatArray], FloatArray], Callable[[FloatArray], FloatArray]],
    ends: tuple[float, float],
) -> tuple[float, FloatArray, FloatArray]:
    """Return a step and two falling convex curves on its grid, computed at few dots.

    Parameters
    ----------
    curves : pair of callables
        Each from epsilons to heights.
    ends : pair of float
        Where each curve has come down to what stays.

    Notes
    -----
    Theorem T6.
    """
    # One curve may end long before the other, and its dots must be as close.
    step = step_at_most(max(min(ends) / _FINEST, max(ends) / _LONGEST))
    dots = [_dots_up_to(end, curve, step) for curve, end in zip(curves, ends, strict=True)]
    # All dots are on the grid of the smallest cell.
    stride = min(min(int(np.diff(found.places).min()) for found in dots), _FINEST // _LEAST_DOTS)
    remove, add = (_joined(found, step, stride) for found in dots)
    return stride * step, remove, add


def _dots_up_to(end: float, curve: Callable[[FloatArray], FloatArray], step: float) -> Dots:
    width = _FINEST // _CELLS
    places = width * np.arange(math.ceil(min(end, LARGEST_LOSS) / (width * step)) + 1)
    return few_dots(lambda place: curve(step * place), places, step)


def _joined(dots: Dots, step: float, stride: int) -> FloatArray:
    """Return the chords between dots, linear in exp(epsilon), at every so many places."""
    grid = np.arange(0, dots.places[-1] + 1, stride)
    return np.interp(np.expm1(step * grid), np.expm1(step * dots.places), dots.heights)
