"""Sums of positive random variables on a geometric grid, bounded from above in convex order.

A variable is kept as a mass at 0 and masses at points ``exp(i * step)``, ``i`` an integer.
Wherever a value falls between two points, its mass is split between them so that the mean stays.
Such a *spread* raises the mean of every convex function, and sums of spread variables are spreads
of the sum. So for every convex function ``f >= 0`` of the true sum, rising or falling,

    E[f(sum)] <= exp(rounding) * (sum of masses * f(points)) + excess * (largest slope of f).

``excess`` is the mean of what was cut off at the top. ``rounding`` allows for errors of the
masses. Those of the points are left to the caller: relative to the values, `LOCATION_ROUNDING`
for each spread, times 1 plus the width of the grid.

On a geometric grid ``exp(i * step) + exp(j * step)`` is ``exp(max(i, j) * step)`` times a function
of ``|i - j|``, which is read from a table.

Theorem M6.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from skdptune._validation import FloatArray

_UNIT = float(np.finfo(np.float64).eps)
# Relative error of the mean of a mass that is split, by the width of the grid in logarithms.
LOCATION_ROUNDING = 16.0 * _UNIT
# Rows of a table of sums that are made at once.
_ROWS = 32
# Normal scores are told apart down to tails of this mass.
_LEAST_TAIL = 1e-30

IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class GridVariable:
    """Masses of a positive random variable at 0 and on a geometric grid.

    Attributes
    ----------
    step : float
        Logarithm of the ratio of two points of the grid.
    numbers : ndarray of int
        Increasing numbers ``i`` of the points ``exp(i * step)`` with a mass.
    masses : ndarray
        Not negative; they may add up to more than 1, which only raises the bounds.
    zero : float
        Mass at 0.
    excess : float
        Mean of what was cut off at the top.
    rounding : float
        Bound on the logarithm of the true masses over these.
    """

    step: float
    numbers: IntArray
    masses: FloatArray
    zero: float
    excess: float
    rounding: float

    @property
    def points(self) -> FloatArray:
        """Values at which the masses lie."""
        return np.exp(self.step * self.numbers)

    @property
    def mean(self) -> float:
        """Mean of what was not cut off."""
        return float(self.masses @ self.points)

    def on_step(self, step: float) -> GridVariable:
        """Return the same variable on a grid whose step is this one's by a power of two."""
        factor = round(self.step / step)
        return replace(self, step=step, numbers=self.numbers * factor)

    def trimmed(self, tail: float) -> GridVariable:
        """Return a bound without the ends of the grid that hardly count.

        Parameters
        ----------
        tail : float
            A bottom of that mass is split between 0 and the first point that stays. A top of
            that mean is lowered to the last point that stays.
        """
        points = self.points
        means_above = np.cumsum((self.masses * points)[::-1])[::-1]
        last = int(np.searchsorted(-means_above, -tail, side="left")) - 1
        last = max(last, 0)
        first = int(np.searchsorted(np.cumsum(self.masses), tail, side="right"))
        first = min(first, last)
        masses = self.masses[first : last + 1].copy()
        above = points[last + 1 :] - points[last]
        masses[-1] += self.masses[last + 1 :].sum()
        masses[0] += float(self.masses[:first] @ points[:first]) / points[first]
        return GridVariable(
            self.step,
            self.numbers[first : last + 1],
            masses,
            # The first point's share is not taken from it: too much mass errs on the safe side.
            self.zero + float(self.masses[:first].sum()),
            self.excess + float(self.masses[last + 1 :] @ above),
            self.rounding + _UNIT * (self.masses.size + 8),
        )

    def thinned(self, spacing: float) -> GridVariable:
        """Return a spread onto fewer points, close together where the variable is likely.

        Parameters
        ----------
        spacing : float
            Between points that stay, the sum of two normal scores grows by about this: those of
            the mass up to a point, and of the mean from it on.
        """
        points = self.points
        below = np.cumsum(self.masses)
        above = np.cumsum((self.masses * points)[::-1])[::-1]
        low, high = (
            special.ndtri(np.clip(tail, _LEAST_TAIL, 1.0 - _UNIT)) for tail in (below, above)
        )
        cells = np.floor((low - high) / spacing)
        is_kept = np.diff(cells, prepend=-np.inf) > 0.0
        is_kept[-1] = True
        kept = np.flatnonzero(is_kept)
        # Every point lies in the cell from one kept point to the next.
        cell = np.minimum(np.cumsum(is_kept) - 1, max(kept.size - 2, 0))
        start = self.numbers[kept[cell]]
        end = self.numbers[kept[np.minimum(cell + 1, kept.size - 1)]]
        into, width = (self.numbers - start) * self.step, np.maximum(end - start, 1) * self.step
        share = np.exp(into - width) * np.expm1(-into) / np.expm1(-width)
        upper = self.masses * np.minimum(share, 1.0)
        masses = np.zeros(kept.size)
        masses += np.bincount(cell, weights=self.masses - upper, minlength=kept.size)
        masses[1:] += np.bincount(cell, weights=upper, minlength=kept.size)[: kept.size - 1]
        return replace(
            self,
            numbers=self.numbers[kept],
            masses=masses,
            rounding=self.rounding + _UNIT * (self.masses.size + 8),
        )


def added(first: GridVariable, second: GridVariable) -> GridVariable:
    """Return the sum of two independent variables on grids of one step, on that grid.

    The same variable twice stands for two independent copies of it, and takes half the time.
    """
    least, offsets, shares = _placements(first, second)
    # One point more on either side, for rounding.
    lowest, highest = _sum_number(first, second, 0) - 1, _sum_number(first, second, -1) + 2
    sums = np.zeros(highest - lowest + 1)
    for row in range(0, first.numbers.size, _ROWS):
        stop = row + _ROWS
        numbers, masses = first.numbers[row:stop, None], first.masses[row:stop, None]
        others, weights = second.numbers, second.masses
        if first is second:
            others, weights = others[row:], weights[row:].copy()
            weights[_ROWS:] *= 2.0
        products = masses * weights
        differences = np.abs(numbers - others) - least
        upper = products * shares[differences]
        products -= upper
        places = (np.maximum(numbers, others) + offsets[differences] - lowest).ravel()
        for shift, parts in ((0, products), (1, upper)):
            part = np.bincount(places + shift, weights=parts.ravel())
            sums[: part.size] += part
    # Where one of the two is 0, the sum is lowered to 0, which costs its mean.
    lowered = first.zero * second.mean + second.zero * first.mean
    # A number adds to a point at most three of its products as the smaller term, since sums grow
    # by half a step at least where the larger term grows by one, and as many to the next point.
    terms = 16 * max(first.numbers.size, second.numbers.size)
    return GridVariable(
        first.step,
        lowest + np.arange(sums.size),
        sums,
        first.zero + second.zero,
        first.excess + second.excess + lowered,
        first.rounding + second.rounding + _UNIT * terms,
    )


def _placements(first: GridVariable, second: GridVariable) -> tuple[int, IntArray, FloatArray]:
    """Return the least difference of two numbers, and from there on where a sum lies.

    That is how far the point below it is from the larger number, and the share of the mass that
    goes to the point above it.
    """
    gaps = first.numbers[0] - second.numbers[-1], second.numbers[0] - first.numbers[-1]
    least, most = max(*gaps, 0), -min(gaps)
    positions = _positions(np.arange(least, most + 1), first.step)
    offsets = np.floor(positions)
    rises = np.expm1((positions - offsets) * first.step)
    shares = np.minimum(rises / math.expm1(first.step), 1.0)
    return int(least), offsets.astype(np.int64), shares


def _sum_number(first: GridVariable, second: GridVariable, end: int) -> int:
    """Return the number of the point below the sum of two variables' first or last points."""
    one, other = first.numbers[end], second.numbers[end]
    return int(max(one, other)) + math.floor(_positions(abs(one - other), first.step))


def _positions(differences: Any, step: float) -> Any:
    """Return how far a sum lies above the larger of its terms, in steps."""
    return np.log1p(np.exp(-step * differences)) / step
