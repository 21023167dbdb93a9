"""Bounds on private selection, by name: the cost of the best of a random number of runs.

Every bound is computed from one run and the distribution of the number of runs. It bounds delta of
the best run for every epsilon >= 0, separately for each direction.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from skdptune._validation import FloatArray
from skdptune.accounting._curves import Halves, Sides, hockey_stick, step_at_most
from skdptune.accounting._distributions import Binomial, Poisson, TruncatedNegativeBinomial
from skdptune.accounting._envelope import Envelope
from skdptune.accounting._loss_distribution import LARGEST_LOSS, LossDistribution, place_above
from skdptune.accounting._renyi import ORDERS, RenyiCurve, RenyiTable
from skdptune.accounting._run_counts import RunCountDistribution
from skdptune.accounting._tradeoff import IntArray

Curve = Callable[[FloatArray], FloatArray]
BOUNDS = ("envelope", "profile", "rdp", "best")
_POINTS = 2**12
_NEGLIGIBLE = 1e-17
# Steps between the points to which bends of the envelope are moved.
_STRIDE = 4
# Values of a curve near which positions are priced, and the smallest of them.
_LEVELS = 48
_LEAST_LEVEL = 1e-13
# Ratio of the points at which the end of a curve is searched.
_STRETCH = 1.5


class BoundNotApplicableError(ValueError):
    """The theorem of the chosen bound does not cover this run or this number of runs."""


@dataclass(frozen=True)
class Run:
    """One run in one direction: its losses, those of the other direction, its Rényi curve."""

    own: LossDistribution
    other: LossDistribution
    renyi: RenyiCurve


def selected_halves(
    sides: Sides, renyi: RenyiCurve, distribution: RunCountDistribution, bound: str
) -> Halves:
    """Return the curve of the best of a random number of runs, under one of `BOUNDS`.

    Parameters
    ----------
    sides : pair of LossDistribution
        One run, in the remove and the add direction.
    renyi : RenyiCurve
        The same run under Rényi differential privacy.
    distribution : RunCountDistribution
        Distribution of the number of runs.
    bound : {"envelope", "profile", "rdp", "best"}
        "best" uses the smallest applicable bound at every epsilon.
    """
    # Theorem S5: both directions of a selection make a profile.
    remove, add = sides
    runs = [Run(remove, add, renyi), Run(add, remove, renyi)]
    # Equal directions have equal bounds.
    distinct = runs[: 1 if remove.equals(add) else 2]
    curves = [bound_curves(run, distribution, bound) for run in distinct]
    top = max(min(curve.top for curve in side) for side in curves)
    # A step that resolves [0, top], and no finer than the run's own if that helps.
    step, own = step_at_most(top / _POINTS), step_at_most(remove.step)
    if step < own <= 2.0 * step:
        step = own
    # Bends are moved to points of a coarser grid, so the curve may decrease one step of it later.
    # The grid must include this: a value at its end would count as never decreasing.
    size = place_above(min(top, LARGEST_LOSS), step) + 2 + 2 * _STRIDE
    # NaN is not a bound.
    halves = [functools.reduce(np.fmin, (c.half(step, size) for c in side)) for side in curves]
    return Halves(step, halves[0], halves[-1])


def bound_curves(run: Run, distribution: RunCountDistribution, bound: str) -> list[BoundCurve]:
    """Return one bound in one direction, or for "best" all that apply."""
    names = [bound]
    if bound == "best":
        names = [name for name in _CURVES if _applies(name, run, distribution)]
    return [_CURVES[name](run, distribution) for name in names]


class _EnvelopeCurve:
    """The minimum of the envelope and of bounds in which every position is used only once."""

    def __init__(self, run: Run, distribution: RunCountDistribution) -> None:
        self._envelope = Envelope(run.own, run.other, distribution)
        self._is_pure = run.own.infinity == 0.0
        # Where prices of positions can lower the bound noticeably.
        is_crowded = (
            not isinstance(distribution, TruncatedNegativeBinomial) or distribution.eta > 5.0
        )
        self._positions = self._envelope.positions() if is_crowded else None
        residue = distribution.mean * run.own.infinity
        self.top = useful_end(self._envelope.delta, residue, self._envelope.top)

    def delta(self, epsilons: FloatArray) -> FloatArray:
        points, back = np.unique(epsilons, return_inverse=True)
        values = self._envelope.delta(points)
        return self._with_positions(values, points, np.arange(points.size))[back]

    def half(self, step: float, size: int) -> FloatArray:
        # The end of a pure guarantee's curve is an exact number: do not round there.
        values = self._envelope.half(step, size, stride=1 if self._is_pure else _STRIDE)
        if self._positions is None or values[0] <= _LEAST_LEVEL:
            return values
        levels = np.geomspace(values[0], max(float(values[-1]), _LEAST_LEVEL), _LEVELS)
        falls = np.searchsorted(-values, -levels)
        places = np.unique(np.minimum(falls, size - 1))
        return self._with_positions(values, step * np.arange(size), places)

    def _with_positions(
        self, values: FloatArray, epsilons: FloatArray, places: IntArray
    ) -> FloatArray:
        """Return the values, lowered at some places; convexity is applied later."""
        # Theorem S6: positions give a second bound, and the smaller one holds.
        if self._positions is None:
            return values
        lowered = values.copy()
        for priced in self._positions.priced(epsilons[places], values[places]):
            index = int(np.searchsorted(epsilons[places], priced.epsilon))
            around = places[max(index - 1, 0) : index + 2]
            # Also halfway to the neighbours: a bound is nearly as good next to its own epsilon.
            nearby = np.append(places[index], (around[:-1] + around[1:]) // 2)
            lowered[nearby] = np.fmin(lowered[nearby], priced.delta(epsilons[nearby]))
        return lowered


class _PointCurve:
    """A bound given by a function of epsilon."""

    def __init__(self, delta: Curve, residue: float, end: float) -> None:
        self.delta = delta
        self.top = useful_end(delta, residue, end)

    def half(self, step: float, size: int) -> FloatArray:
        return self.delta(step * np.arange(size))


BoundCurve = _EnvelopeCurve | _PointCurve


def useful_end(delta: Curve, residue: float, end: float) -> float:
    """Return an epsilon above which only the residue remains."""
    if residue == 0.0 and end < LARGEST_LOSS:
        return max(end, 1e-9)
    # For a run that may only fail completely, this is 0.
    last = max(min(end, LARGEST_LOSS), 1e-9)
    # With a fixed number of runs, more than the residue remains, however large epsilon is.
    floor = float(delta(np.array([last]))[0]) if residue > 0.0 else 0.0
    enough = max(residue, floor) * 1.001 + _NEGLIGIBLE
    start = min(1e-3, last)
    # On a geometric grid; the curve does not increase, so bisection finds the first such point.
    low, high = -1, max(math.ceil(math.log(max(last / start, 1.0)) / math.log(_STRETCH)), 0)
    while high - low > 1:
        middle = (low + high) // 2
        is_enough = float(delta(np.array([start * _STRETCH**middle]))[0]) <= enough
        low, high = (low, middle) if is_enough else (middle, high)
    return max(min(start * _STRETCH**high, last), 1e-9)


def _profile(run: Run, distribution: RunCountDistribution) -> _PointCurve:
    """Koskela, Redberg and Wang (2024), Theorem 5.2 and relatives: ``mean * delta(e - shift)``."""
    # Theorem S3: the bound of Koskela, Redberg and Wang (2024).
    own, other = run.own, run.other
    shift = _shift(own, other, distribution)
    if shift is None:
        raise BoundNotApplicableError(
            f"bound must be 'envelope' for {distribution}; got 'profile', whose theorem does "
            "not cover it."
        )

    def delta(epsilons: FloatArray) -> FloatArray:
        return distribution.mean * hockey_stick(own, other, epsilons - shift)

    return _PointCurve(delta, distribution.mean * own.infinity, own.highest * own.step + shift)


def _shift(
    own: LossDistribution, other: LossDistribution, distribution: RunCountDistribution
) -> float | None:
    """Return the increase of epsilon before the factor E[K], for the best helper epsilon."""
    # Theorem S3: the helper is the other direction's delta.
    hats = own.step * np.arange(max(own.highest, other.highest) + 1)
    if isinstance(distribution, TruncatedNegativeBinomial):
        # The other direction's delta: using the same direction's would be wrong.
        odds = (1.0 - distribution.gamma) / distribution.gamma
        log_ratio = np.log(np.exp(hats) + odds * other.delta(hats))
        return (1.0 + distribution.eta) * float(np.min(log_ratio))
    if isinstance(distribution, Poisson):
        return distribution.mean * float(own.curve[0])
    if isinstance(distribution, Binomial) and distribution.probability < 1.0:
        chance = distribution.probability
        gain = chance * (np.expm1(hats) + own.delta(hats) / (1.0 - chance))
        return (distribution.trials - 1) * float(np.min(np.log1p(gain)))
    return None


def _rdp(run: Run, distribution: RunCountDistribution) -> _PointCurve:
    """Papernot and Steinke (2022), Theorems 2 and 6."""
    # Theorem S3: the bound of Papernot and Steinke (2022).
    if not _applies("rdp", run, distribution):
        raise BoundNotApplicableError(
            f"bound must be 'envelope' or 'profile' here; got 'rdp', but no Rényi bound is known "
            f"for {distribution} and this run. Profiles made by from_event, pure or gaussian have "
            "one."
        )
    values = RenyiSelected(run.renyi, distribution).at(ORDERS)
    table = RenyiTable(tuple(ORDERS.tolist()), tuple(values.tolist()))
    return _PointCurve(table.delta, 0.0, LARGEST_LOSS)


def _applies(name: str, run: Run, distribution: RunCountDistribution) -> bool:
    """Return whether a bound covers the run and the number of runs."""
    if name == "rdp":
        known = run.renyi.at(np.array([2.0, 8.0]))
        return is_covered(distribution) and bool(np.isfinite(known).any())
    if name == "profile":
        return not (isinstance(distribution, Binomial) and distribution.probability == 1.0)
    return True


_CURVES: dict[str, Callable[[Run, RunCountDistribution], BoundCurve]] = {
    "envelope": _EnvelopeCurve,
    "profile": _profile,
    "rdp": _rdp,
}


# Under Rényi differential privacy --------------------------------------------------------


@dataclass(frozen=True)
class RenyiSelected(RenyiCurve):
    """The best of a random number of runs: Papernot and Steinke (2022), Theorems 2 and 6.

    Notes
    -----
    Theorem S3.
    """

    run: RenyiCurve
    distribution: RunCountDistribution

    def at(self, orders: FloatArray) -> FloatArray:
        """Return the theorem's divergences; infinite for a distribution that no theorem covers."""
        if not is_covered(self.distribution):
            return np.full(orders.shape, math.inf)
        # Divergences do not decrease with the order: a bound at a larger order holds at a smaller
        # one.
        everywhere = np.union1d(orders, ORDERS)
        least = np.minimum.accumulate(self._of_theorem(everywhere)[::-1])[::-1]
        return least[np.searchsorted(everywhere, orders)]

    def _of_theorem(self, orders: FloatArray) -> FloatArray:
        excess: float | FloatArray
        distribution = self.distribution
        if isinstance(distribution, TruncatedNegativeBinomial):
            log_odds = math.log(1.0 / distribution.gamma)
            excesses = (1.0 - 1.0 / ORDERS) * self.run.at(ORDERS) + log_odds / ORDERS
            excess = (1.0 + distribution.eta) * float(np.min(excesses))
        else:
            excess = distribution.mean * self.run.delta(np.log1p(1.0 / (orders - 1.0)))
        return self.run.at(orders) + excess + math.log(distribution.mean) / (orders - 1.0)


def is_covered(distribution: RunCountDistribution) -> bool:
    """Return whether one of the two theorems holds for this distribution."""
    if isinstance(distribution, Poisson):
        # Below a mean of 1, the bound would be negative: Papernot and Steinke (2022), Theorem 6,
        # ignores the probability of zero runs.
        return distribution.mean >= 1.0
    return isinstance(distribution, TruncatedNegativeBinomial)
