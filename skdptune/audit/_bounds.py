"""Lower bounds on epsilon from one number per fit, with and without a record.

Each holds with probability of at least 1 - risk: those that count an event whatever a mechanism
does, those of normal statistics where both sides are normal with one standard deviation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.special import expit

from skdptune.accounting import PrivacyProfile
from skdptune.audit._claims import ClaimCurve

FloatArray = NDArray[np.float64]

# Of Gaussian profiles; what is farther apart is told apart by a single fit.
LARGEST_SHIFT = 30.0
# Half-lines among which an event is chosen.
_N_LEVELS = 64


class Event(NamedTuple):
    """A half-line, and the side on which it is the likelier one.

    Attributes
    ----------
    level : float
        Where it begins or ends.
    is_above : bool
        Whether it is what is not below the level, or what is not above it.
    is_with : bool
        Whether the record makes it likelier, not its absence.
    """

    level: float
    is_above: bool
    is_with: bool

    def __str__(self) -> str:
        """Return the event in words."""
        sign = "≥" if self.is_above else "≤"
        side = "with" if self.is_with else "without"
        return f"statistic {sign} {self.level:.4g}, likelier {side} the record"


class Events(NamedTuple):
    """Half-lines, and the sides on which they are the likelier ones."""

    level: FloatArray
    is_above: NDArray[np.bool_]
    is_with: NDArray[np.bool_]

    def at(self, place: int) -> Event:
        """Return one of them."""
        level, is_above, is_with = (column[place] for column in self)
        return Event(float(level), bool(is_above), bool(is_with))

    def of(self, places: Sequence[int] | NDArray[np.intp]) -> Events:
        """Return some of them."""
        return Events(self.level[places], self.is_above[places], self.is_with[places])


class Counts(NamedTuple):
    """How often events happened on the side where each is likelier, and on the other one."""

    likely: FloatArray
    n_likely: FloatArray
    unlikely: FloatArray
    n_unlikely: FloatArray


class Intervals(NamedTuple):
    """Lower bounds on the likelier probabilities, and upper bounds on the others."""

    likely: FloatArray
    unlikely: FloatArray


class Refutation(NamedTuple):
    """A point of the claimed profile that the fits contradict.

    Attributes
    ----------
    delta : float
    epsilon : float
        Least that the fits allow at this delta.
    claimed : float
        Claimed at this delta.
    """

    delta: float
    epsilon: float
    claimed: float


# Counted events -------------------------------------------------------------------------------


def possible_events(together: FloatArray, without: FloatArray) -> Events:
    """Return half-lines that end at quantiles of all given numbers, of both orders."""
    levels = np.unique(np.concatenate([together, without]))
    if levels.size > _N_LEVELS:
        # Closer together towards the ends, where the ratios of probabilities are.
        far = math.log(levels.size)
        shares = expit(np.linspace(-far, far, _N_LEVELS))
        levels = levels[np.unique((shares * (levels.size - 1)).round().astype(int))]
    yes, no = np.ones(levels.size, dtype=bool), np.zeros(levels.size, dtype=bool)
    return Events(
        np.tile(levels, 4),
        np.concatenate([yes, no, yes, no]),
        np.concatenate([yes, yes, no, no]),
    )


def count(events: Events, together: FloatArray, without: FloatArray) -> Counts:
    """Return how often events happened."""
    level, is_above, is_with = events

    def hits(side: FloatArray) -> FloatArray:
        ordered = np.sort(side)
        not_below = side.size - np.searchsorted(ordered, level, "left")
        return np.where(is_above, not_below, np.searchsorted(ordered, level, "right"))

    pair, sizes = (hits(together), hits(without)), (together.size, without.size)
    return Counts(
        np.where(is_with, *pair),
        np.where(is_with, *sizes),
        np.where(is_with, *pair[::-1]),
        np.where(is_with, *sizes[::-1]),
    )


def intervals(counts: Counts, risk: float) -> Intervals:
    """Return one-sided bounds on both probabilities of each event, half of the risk each.

    Notes
    -----
    Theorem A1; Clopper and Pearson (1934).
    """
    likely, n_likely, unlikely, n_unlikely = counts
    rest = n_unlikely - unlikely
    with np.errstate(invalid="ignore"):
        low = stats.beta.ppf(risk / 2.0, likely, n_likely - likely + 1)
        high = stats.beta.isf(risk / 2.0, unlikely + 1, rest)
    return Intervals(np.where(likely > 0, low, 0.0), np.where(rest > 0, high, 1.0))


def least_epsilons(found: Intervals, deltas: FloatArray) -> FloatArray:
    """Return the least epsilon of each event (row) at each delta, minus infinity if it is none."""
    excess = found.likely[:, None] - deltas[None, :]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.log(excess / found.unlikely[:, None])
    return np.where(excess > 0.0, ratios, -np.inf)


def best_event(
    together: FloatArray, without: FloatArray, delta: float, risk: float
) -> tuple[Event, float]:
    """Return the event with the largest bound on epsilon at one delta, and this bound.

    Where it was chosen by its own counts, the bound is none.
    """
    events = possible_events(together, without)
    found = intervals(count(events, together, without), risk)
    bounds = least_epsilons(found, np.array([delta]))[:, 0]
    best = int(np.argmax(bounds))
    return events.at(best), float(bounds[best])


def most_damning_event(
    together: FloatArray, without: FloatArray, claim: ClaimCurve, risk: float
) -> Event:
    """Return the event that comes nearest to contradicting a claim, at whichever delta."""
    events = possible_events(together, without)
    found = intervals(count(events, together, without), risk)
    gaps = least_epsilons(found, claim.deltas) - claim.epsilons
    return events.at(int(np.argmax(gaps.max(axis=1))))


def _only(event: Event) -> Events:
    return Events(*(np.array([value]) for value in event))


def bound_by(
    event: Event, together: FloatArray, without: FloatArray, delta: float, risk: float
) -> float:
    """Return a lower bound on epsilon from an event that was chosen without these numbers.

    Notes
    -----
    Theorem A1.
    """
    found = intervals(count(_only(event), together, without), risk)
    return max(float(least_epsilons(found, np.array([delta]))[0, 0]), 0.0)


def refutation_by(
    event: Event, together: FloatArray, without: FloatArray, claim: ClaimCurve, risk: float
) -> Refutation | None:
    """Return the point of a claim that an event contradicts, None if it contradicts none.

    Of several it is the one of the least delta.

    Notes
    -----
    Theorem A1: both probabilities are bounded at once, whatever the number of points.
    """
    found = intervals(count(_only(event), together, without), risk)
    bounds = least_epsilons(found, claim.deltas)[0]
    places = np.flatnonzero(bounds > claim.epsilons)
    if not places.size:
        return None
    place = places[-1]
    return Refutation(
        float(claim.deltas[place]), float(bounds[place]), float(claim.epsilons[place])
    )


def counted_epsilon(together: FloatArray, without: FloatArray, delta: float, risk: float) -> float:
    """Return a lower bound on epsilon from one event, whatever the numbers' distributions.

    The event, a half-line, and which of the two sides makes it likelier are chosen on every other
    number, and its probabilities bounded by the rest.

    Notes
    -----
    Theorem A1.
    """
    event, _ = best_event(together[::2], without[::2], delta, risk)
    return bound_by(event, together[1::2], without[1::2], delta, risk)


# Normal statistics ----------------------------------------------------------------------------


def gaussian_shift(together: FloatArray, without: FloatArray, risk: float) -> float:
    """Return a lower bound on the distance of two normal means in standard deviations.

    With ``d`` the difference of means and ``s`` the pooled deviation of ``m`` degrees, ``d /
    sigma`` is normal around the distance, and ``m s^2 / sigma^2`` is chi-squared: each bound takes
    half of the risk.

    Notes
    -----
    Theorem A2.
    """
    sizes = together.size, without.size
    difference = abs(float(together.mean() - without.mean()))
    degrees = sum(sizes) - 2
    squares = sum(float(((side - side.mean()) ** 2).sum()) for side in (together, without))
    deviation = math.sqrt(squares / degrees)
    if deviation == 0.0:
        return math.inf if difference > 0.0 else 0.0
    least = math.sqrt(stats.chi2.ppf(risk / 2, degrees) / degrees)
    # Half of the risk, on both sides, since the sign was looked at.
    error = stats.norm.isf(risk / 4) * math.sqrt(1 / sizes[0] + 1 / sizes[1])
    return max(difference / deviation * least - error, 0.0)


def gaussian_epsilon(
    together: FloatArray, without: FloatArray, delta: float, risk: float
) -> float:
    """Return a lower bound on epsilon where both sides are normal with one deviation.

    Notes
    -----
    Theorem A2.
    """
    shift = min(gaussian_shift(together, without, risk), LARGEST_SHIFT)
    return PrivacyProfile.gaussian(shift).epsilon(delta) if shift > 0.0 else 0.0


def normality(together: FloatArray, without: FloatArray) -> float:
    """Return how often normal numbers of one deviation would look less so: a p-value.

    It is twice the lesser one of D'Agostino and Pearson's test of the distances from the means,
    and of Levene's test of equal spreads. No test proves that numbers are normal.
    """
    sides = together - together.mean(), without - without.mean()
    residuals = np.concatenate(sides)
    if not np.isfinite(residuals).all() or np.unique(residuals).size < 20:
        return 0.0
    found = stats.normaltest(residuals).pvalue, stats.levene(*sides).pvalue
    return float(min(1.0, 2.0 * min(found)))
