"""The privacy cost of random allocation: each record is in one of ``k`` noisy sums, at random.

**The pair.** Without the additional record, the ``k`` sums are dominated by ``Q = N(0, s^2 I)`` in
``k`` dimensions. With it, they are dominated by ``P``, the average of ``N(e_i, s^2 I)`` over the
unit vectors ``e_i``; the proof is in docs/theorems.md. Under ``Q``, the likelihood ratio ``dP/dQ``
is the mean ``S`` of ``k`` independent ``l_i = exp(x_i / s^2 - 1 / (2 s^2))``, which are lognormal
with mean 1. So

    remove: delta(e) = E[(S - exp(e))_+]        add: delta(e) = E[(1 - exp(e) S)_+].

**The bound.** Both are means of convex functions of ``S``. Spreading masses on a grid only
increases them. ``l_i / k`` is put on a geometric grid and added up by doubling. The grid of ``S``
becomes that of the losses, so making a profile loses nothing more.

Theorem M6.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from skdptune._validation import FloatArray, check_integer, check_real
from skdptune.accounting._curves import Halves, step_at_most
from skdptune.accounting._loss_distribution import LossDistribution
from skdptune.accounting._profile import Numbers, PrivacyProfile

# Below, hiding the batch reduces epsilon by less than a tenth, so the bound of one batch is used.
_LEAST_NOISE = 0.05
# Relative increase of the variance of S by spreads; half of it is added to the noise.
_SPREAD = 1e-3
# Mass and mean that each doubling may cut off.
_TAIL = 1e-18
# The mass of a ratio further than this many deviations from both means is cut off: below 1e-27.
_REACH = 11.0
# These integrate cells of at most a seventh of a deviation to the last digit.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)
_UNIT = float(np.finfo(np.float64).eps)
# Allows for masses too small for a float, at the largest loss.
_UNDERFLOW = 1e-40


def random_allocation(
    noise_multiplier: float,
    n_batches: int,
    n_steps: int | None = None,
    *,
    spread: float = _SPREAD,
) -> PrivacyProfile:
    """Return the profile of noisy sums over batches, with each record in one batch at random.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the Gaussian noise on each sum, divided by the largest norm that a
        record adds to a sum. It must be at least 1/30; smaller values have no guarantee.
    n_batches : int
        Number of batches in a round; public. In each round, every record is in exactly one of
        them, drawn uniformly and independently of everything else. The summands may depend on
        earlier sums.
    n_steps : int, optional
        Total number of sums. By default, there is one round of `n_batches`. An incomplete last
        round costs less than a whole one.
    spread : float, default=0.001
        Precision: how much the bound may add to the variance of the likelihood ratio, relative to
        it. A larger value is safe and faster, but half of it is added to the noise for a budget.

    Returns
    -------
    PrivacyProfile

    Notes
    -----
    Theorem M6.

    The relation is adding or removing one record, so the sizes of batches must not be used.
    Feldman and Shenfeld (2026, arXiv:2602.17284) bound the same pair on grids of losses. Here,
    every step is a spread that preserves the mean, so that no bound on its error is needed.

    Examples
    --------
    >>> from skdptune.accounting import random_allocation
    >>> ten_rounds = random_allocation(noise_multiplier=1.0, n_batches=100, n_steps=1000)
    >>> round(ten_rounds.epsilon(1e-5), 2)
    1.7
    """
    noise = check_real(noise_multiplier, name="noise_multiplier", lower=1.0 / 30.0, upper=1e9)
    n_batches = check_integer(n_batches, name="n_batches", lower=1)
    if n_steps is None:
        n_steps = n_batches
    n_steps = check_integer(n_steps, name="n_steps", lower=1)
    spread = check_real(spread, name="spread", lower=1e-5, upper=0.01)
    rounds, rest = divmod(n_steps, n_batches)
    if not rest:
        return rounds * _round(noise, n_batches, spread)
    last = _round(noise, rest, spread).subsampled(rest / n_batches)
    return rounds * _round(noise, n_batches, spread) + last if rounds else last


@functools.lru_cache(maxsize=32)
def _round(noise: float, n_batches: int, spread: float) -> PrivacyProfile:
    """Return the profile of one round."""
    if n_batches == 1 or noise < _LEAST_NOISE:
        return PrivacyProfile.gaussian(1.0 / noise)
    return PrivacyProfile._of(_allocated, noise, n_batches, spread)


def _allocated(noise: float, n_batches: int, spread: float) -> Numbers:
    return _halves(mean_ratio(1.0 / noise, n_batches, spread), n_batches), None


def mean_ratio(shift: float, n_batches: int, spread: float) -> GridVariable:
    """Return a bound on the mean of `n_batches` independent likelihood ratios.

    Parameters
    ----------
    shift : float
        Sensitivity of a sum, divided by the standard deviation of its noise.
    n_batches : int
    spread : float
        See `random_allocation`.
    """
    # Theorem M6: each record is in one batch of a round, at random.
    total = _Sum(shift, n_batches, spread)
    block, size = total.of_one(), 1
    result, count = None, 0
    while result is None or count < n_batches:
        if n_batches & size:
            count += size
            result = block if result is None else total.sum(result, block, count)
        size *= 2
        if count < n_batches:
            block = total.sum(block, block, size)
    return result


class _Sum:
    """Adds up likelihood ratios divided by their number, on grids that suit their spread."""

    def __init__(self, shift: float, n_batches: int, spread: float) -> None:
        self._shift, self._n_batches = shift, n_batches
        deviation = math.sqrt(math.log1p(math.expm1(shift**2) / n_batches))
        # There are at most two sums for each binary digit of the number of terms. Each of them
        # adds about a 16th of the squared spacing to the variance, where the spacing is that of
        # two scores.
        self._spacing = math.sqrt(16.0 * spread / (2.0 * n_batches.bit_length() - 1.0))
        self._finest = step_at_most(0.2 * self._spacing * deviation)

    def sum(self, first: GridVariable, second: GridVariable, count: int) -> GridVariable:
        """Return the sum of two sums that have `count` terms together."""
        step = self._step(count)
        one = first.on_step(step).thinned(self._spacing)
        other = one if first is second else second.on_step(step).thinned(self._spacing)
        return self._cut(added(one, other), count)

    def _step(self, count: int) -> float:
        """Return the step for a sum of `count` terms: coarser if there are few terms."""
        halvings = math.floor(0.5 * math.log2(self._n_batches / count) + 1e-9)
        # The far tail is that of a single ratio.
        widest = math.floor(math.log2(0.5 * self._spacing * self._shift / self._finest))
        return math.ldexp(self._finest, max(min(halvings, widest), 0))

    def _cut(self, variable: GridVariable, count: int) -> GridVariable:
        """Return the sum of `count` terms without negligible ends."""
        return variable.trimmed(_TAIL * count / self._n_batches)

    def of_one(self) -> GridVariable:
        """Return one likelihood ratio divided by their number."""
        shift, step = self._shift, self._step(1)
        # log(l / k) = shift * z - offset with a normal z, which has mean 0 without the record.
        # Numbers count from the point next to z = 0, so that an error in `offset` affects all
        # points equally.
        offset = shift**2 / 2.0 + math.log(self._n_batches)
        origin = round(-offset / step)
        low, high = math.floor(-_REACH * shift / step), math.ceil((_REACH + shift) * shift / step)
        edges = (step * np.arange(low, high + 1) + (step * origin + offset)) / shift
        lower, upper = _split_cells(edges[:-1], step, shift)
        masses = np.append(lower, 0.0)
        masses[1:] += upper
        # Below the grid: split between 0 and the first point. Above: lowered to the last point.
        below, above = special.ndtr(edges[0]), special.ndtr(-edges[-1])
        means = special.ndtr([edges[0] - shift, shift - edges[-1]]) / self._n_batches
        masses[0] += means[0] / math.exp((low + origin) * step)
        masses[-1] += above
        numbers = origin + np.arange(low, high + 1)
        rounding = _UNIT * (4.0 * float(np.abs(edges).max()) ** 2 + 500.0)
        return self._cut(GridVariable(step, numbers, masses, below, means[1], rounding), 1)


def _split_cells(edges: FloatArray, step: float, shift: float) -> tuple[FloatArray, FloatArray]:
    """Return the masses that a lognormal's cells give to their lower and to their upper ends.

    The shares of a value are linear in it, and sum to 1. The integrals have positive terms, so
    that no digits cancel.
    """
    width = step / shift
    inside = 0.5 * width * (_NODES + 1.0)
    density = np.exp(-0.5 * np.square(edges[:, None] + inside)) / math.sqrt(2.0 * math.pi)
    density *= 0.5 * width * _WEIGHTS
    rise = shift * inside
    upper = np.expm1(rise) / math.expm1(step)
    lower = np.exp(rise) * np.expm1(step - rise) / math.expm1(step)
    return density @ lower, density @ upper


def _halves(ratio: GridVariable, n_batches: int) -> Halves:
    """Return the curves of both directions on the grid of the ratio's logarithms."""
    # Theorem M6: each record is in one batch of a round, at random.
    step, lowest = ratio.step, int(ratio.numbers[0])
    size = int(ratio.numbers[-1]) - lowest + 1
    masses = np.zeros(size)
    masses[ratio.numbers - lowest] = ratio.masses
    points = np.exp(step * (lowest + np.arange(size)))
    # Masses with the record, and without it, where losses have the opposite sign.
    remove = LossDistribution(step, lowest, masses * points, ratio.excess)
    add = LossDistribution(step, 1 - lowest - size, masses[::-1], ratio.zero)
    largest = abs(step * lowest) + step * size + math.log(n_batches)
    # At most two sums per binary digit spread both of their terms and themselves.
    location = LOCATION_ROUNDING * 6.0 * n_batches.bit_length() * (1.0 + largest)
    rounding = min(ratio.rounding + location + 4.0 * _UNIT * size, 100.0)
    return Halves(step, *(_paid(side, location, rounding) for side in (remove, add)))


def _paid(side: LossDistribution, location: float, rounding: float) -> FloatArray:
    """Return a curve plus the possible effect of rounding losses and masses."""
    # If losses are larger by `location`, the curve at a point increases by at most that times the
    # mass from the point on, plus 1 at the point 0.
    masses = np.concatenate([[side.infinity], side.positive_masses[::-1], [1.0]])
    tails = np.cumsum(masses)[::-1][: side.curve.size]
    return math.exp(rounding) * (side.curve + location * tails) + _UNDERFLOW


# Sums of positive random variables on a geometric grid -----------------------------------

# A variable is stored as a mass at 0 and masses at points ``exp(i * step)`` for integers ``i``. If
# a value falls between two points, its mass is split between them so that the mean is preserved.
# Such a *spread* increases the mean of every convex function, and sums of spread variables are
# spreads of the sum. So for every convex function ``f >= 0`` of the true sum, increasing or
# decreasing,
#
#     E[f(sum)] <= exp(rounding) * (sum of masses * f(points)) + excess * (largest slope of f).
#
# ``excess`` is the mean of the mass that was cut off at the top. ``rounding`` allows for errors of
# the masses. Errors of the points are left to the caller: relative to the values, they are
# `LOCATION_ROUNDING` for each spread, times 1 plus the width of the grid.
#
# On a geometric grid, ``exp(i * step) + exp(j * step)`` is ``exp(max(i, j) * step)`` times a
# function of ``|i - j|``, which is tabulated.
#
# Theorem M6: each record is in one batch of a round, at random.

# Relative error of the mean of a mass that is split, per width of the grid in logarithms.
LOCATION_ROUNDING = 16.0 * _UNIT
# Number of rows of a table of sums that are computed at once.
_ROWS = 32
# Normal scores are distinguished down to tails with this mass.
_LEAST_TAIL = 1e-30

IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class GridVariable:
    """Masses of a positive random variable at 0 and on a geometric grid.

    Attributes
    ----------
    step : float
        Logarithm of the ratio of neighbouring points of the grid.
    numbers : ndarray of int
        Increasing numbers ``i`` of the points ``exp(i * step)`` that have a mass.
    masses : ndarray
        Not negative; they may sum to more than 1, which only increases the bounds.
    zero : float
        Mass at 0.
    excess : float
        Mean of the mass that was cut off at the top.
    rounding : float
        Bound on the logarithm of the true masses divided by these.
    """

    step: float
    numbers: IntArray
    masses: FloatArray
    zero: float
    excess: float
    rounding: float

    @property
    def points(self) -> FloatArray:
        """Values of the points that have a mass."""
        return np.exp(self.step * self.numbers)

    @property
    def mean(self) -> float:
        """Mean of the mass that was not cut off."""
        return float(self.masses @ self.points)

    def on_step(self, step: float) -> GridVariable:
        """Return the same variable on a grid whose step is smaller by a power of two."""
        factor = round(self.step / step)
        return replace(self, step=step, numbers=self.numbers * factor)

    def trimmed(self, tail: float) -> GridVariable:
        """Return a bound without the negligible ends of the grid.

        Parameters
        ----------
        tail : float
            A lower end with this mass is split between 0 and the first remaining point. An upper
            end with this mean is lowered to the last remaining point.
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
            # The first point's share is not subtracted: a total that is too large is conservative.
            self.zero + float(self.masses[:first].sum()),
            self.excess + float(self.masses[last + 1 :] @ above),
            self.rounding + _UNIT * (self.masses.size + 8),
        )

    def thinned(self, spacing: float) -> GridVariable:
        """Return a spread onto fewer points, close together where the variable is likely.

        Parameters
        ----------
        spacing : float
            Between neighbouring points, the sum of two normal scores grows by about this: the
            score of the mass up to a point, and that of the mean from it on.
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
        # Every point lies in the cell between two remaining points.
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
    """Return the sum of two independent variables on grids with one step, on this grid.

    If both arguments are the same object, they mean two independent copies of it; this takes half
    the time.
    """
    least, offsets, shares = _placements(first, second)
    # One additional point on either side, for rounding.
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
    # If one of the two is 0, the sum is lowered to 0, which costs its mean.
    lowered = first.zero * second.mean + second.zero * first.mean
    # A number adds at most three of its products to a point as the smaller term, because sums grow
    # by at least half a step when the larger term grows by one. It adds as many to the next point.
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
    """Return the smallest difference of two numbers, and where sums lie from there on.

    The latter is the distance of the point below the sum from the larger number, and the share of
    the mass that goes to the point above it.
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
