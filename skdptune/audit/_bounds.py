"""Bounds on epsilon and their power, from numbers of fits with and without a record.

Each bound on epsilon holds with probability at least 1 - risk. Bounds that count an event are
valid for any mechanism. Bounds from normal statistics are valid if both sides are normal with the
same standard deviation.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.special import expit, logit, ndtr

from skdptune._validation import check_real
from skdptune.accounting import PrivacyProfile
from skdptune.base import privacy_of
from skdptune.base._shared import DEFAULT_DELTA

FloatArray = NDArray[np.float64]

_N_LINES = 48
# If no delta is given, the curve is read down to this value.
_LEAST_DELTA = 1e-9


@dataclass(frozen=True, eq=False)
class ClaimCurve:
    """A claimed profile, as half-planes of the probabilities of an event on two neighbours.

    An event with probability p on one side and q on the other is allowed if ``p <= exp(epsilon) *
    q + delta`` for each point of the profile.

    Parameters
    ----------
    profile : PrivacyProfile
        The claimed profile.
    delta : float
        The delta at which epsilons are compared.

    Attributes
    ----------
    epsilon : float
        The claimed epsilon at `delta`.
    epsilons, deltas : ndarray
        Points of the profile, from epsilon 0 to the claimed epsilon at `delta`, which is the last.
    """

    profile: PrivacyProfile
    delta: float
    epsilon: float = field(init=False)
    epsilons: FloatArray = field(init=False)
    deltas: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        """Compute the points of the profile."""
        epsilon = self.profile.epsilon(self.delta)
        top = epsilon
        if math.isinf(top):
            top = self.profile.epsilon(max(self.delta, _LEAST_DELTA))
        points = np.linspace(0.0, top, _N_LINES) if math.isfinite(top) else np.zeros(1)
        deltas = np.asarray(self.profile.delta(points), dtype=np.float64)
        if math.isfinite(epsilon):
            deltas[-1] = max(deltas[-1], self.delta)
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "epsilons", points)
        object.__setattr__(self, "deltas", deltas)


def read_claim(
    fitted: Sequence[Any], n_samples: int, claim: Any, delta: Any, *, can_be_zero: bool = True
) -> tuple[PrivacyProfile, float]:
    """Return the claimed profile, and the delta at which epsilons are compared.

    Parameters
    ----------
    fitted : sequence of estimators
        Fits to both of two neighbouring data sets, or a single fit.
    n_samples : int
        Number of records in these fits, in case their statements depend on it.
    claim : PrivacyProfile, float or None
        As given to an audit. None means the profiles that the fits state; the larger one counts.
    delta : float or None
        As given to an audit.
    can_be_zero : bool, default=True
        Whether `claim` and `delta` may be 0.
    """
    if delta is not None:
        delta = check_real(delta, name="delta", lower=0.0, upper=1.0, upper_open=True)
    if claim is None:
        reports = [privacy_of(one, n_samples=n_samples) for one in fitted]
        profile, stated = reports[0].profile, float(reports[0].delta)
        if reports[-1].profile != profile:
            profile = profile | reports[-1].profile
    elif isinstance(claim, PrivacyProfile):
        profile, stated = claim, 0.0 if math.isfinite(claim.epsilon(0.0)) else DEFAULT_DELTA
    else:
        hint = "A PrivacyProfile is accepted as well."
        epsilon = check_real(
            claim, name="claim", lower=0.0, lower_open=not can_be_zero, upper_open=True, hint=hint
        )
        stated = float(getattr(getattr(fitted[0], "privacy_", None), "delta", 0.0))
        profile = PrivacyProfile.approximate(epsilon, stated if delta is None else delta)
    where = stated if delta is None else delta
    if math.isinf(profile.epsilon(where)):
        raise ValueError(
            f"claim must be finite at delta={where:g}; got one that allows everything there."
        )
    return profile, where


# Largest shift of a Gaussian profile: beyond it, a single fit distinguishes both sides.
LARGEST_SHIFT = 30.0
# For a chi-squared law: the mass that is left out on each side, and the number of points between.
_TAIL, _N_SPOTS = 1e-15, 500
# Number of half-lines from which an event is chosen.
_N_LEVELS = 64


class Events(NamedTuple):
    """Half-lines, and the sides on which they are likelier."""

    level: FloatArray
    is_above: NDArray[np.bool_]
    is_with: NDArray[np.bool_]

    def of(self, places: Sequence[int] | NDArray[np.intp]) -> Events:
        """Return several of the events."""
        return Events(self.level[places], self.is_above[places], self.is_with[places])

    def __str__(self) -> str:
        """Return the first event as text."""
        sign = "≥" if self.is_above[0] else "≤"
        side = "with" if self.is_with[0] else "without"
        return f"statistic {sign} {self.level[0]:.4g}, likelier {side} the record"


class Counts(NamedTuple):
    """How often each event happened on its likelier side, and on the other side."""

    likely: FloatArray
    n_likely: FloatArray
    unlikely: FloatArray
    n_unlikely: FloatArray


class Rates(NamedTuple):
    """Probabilities of events, or bounds on them: on their likelier sides, and on the others."""

    likely: FloatArray
    unlikely: FloatArray


class Refutation(NamedTuple):
    """A point of the claimed profile that the fits contradict.

    Attributes
    ----------
    delta : float
    epsilon : float
        Smallest epsilon that the fits allow at this delta.
    claimed : float
        The claimed epsilon at this delta.
    """

    delta: float
    epsilon: float
    claimed: float


# Counted events -------------------------------------------------------------------------------


def possible_events(together: FloatArray, without: FloatArray) -> Events:
    """Return half-lines that end at quantiles of all given numbers, in both directions."""
    levels = np.unique(np.concatenate([together, without]))
    if levels.size > _N_LEVELS:
        # They are denser towards the ends, where ratios of probabilities are large.
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
    """Return how often events happened on both sides."""
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


def intervals(counts: Counts, risk: float) -> Rates:
    """Return one-sided bounds on both probabilities of each event, each with half of the risk.

    Notes
    -----
    Theorem A1; Clopper and Pearson (1934).
    """
    likely, n_likely, unlikely, n_unlikely = counts
    rest = n_unlikely - unlikely
    with np.errstate(invalid="ignore"):
        low = stats.beta.ppf(risk / 2.0, likely, n_likely - likely + 1)
        high = stats.beta.isf(risk / 2.0, unlikely + 1, rest)
    return Rates(np.where(likely > 0, low, 0.0), np.where(rest > 0, high, 1.0))


def least_epsilons(found: Rates, deltas: FloatArray) -> FloatArray:
    """Return each event's least epsilon at each delta, or minus infinity for no constraint."""
    excess = found.likely[:, None] - deltas[None, :]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.log(excess / found.unlikely[:, None])
    return np.where(excess > 0.0, ratios, -np.inf)


def best_event(
    together: FloatArray,
    without: FloatArray,
    risk: float,
    deltas: FloatArray,
    epsilons: FloatArray | float = 0.0,
) -> Events:
    """Return the event whose bound on epsilon exceeds given epsilons most, at any of the deltas.

    The bound is not valid for the numbers by which the event was chosen.
    """
    events = possible_events(together, without)
    found = intervals(count(events, together, without), risk)
    excess = (least_epsilons(found, deltas) - epsilons).max(axis=1)
    return events.of([int(np.argmax(excess))])


def bound_by(
    event: Events, together: FloatArray, without: FloatArray, delta: float, risk: float
) -> float:
    """Return a lower bound on epsilon from an event that was chosen without these numbers.

    Notes
    -----
    Theorem A1.
    """
    found = intervals(count(event, together, without), risk)
    return max(float(least_epsilons(found, np.array([delta]))[0, 0]), 0.0)


def refutation_by(
    event: Events, together: FloatArray, without: FloatArray, claim: ClaimCurve, risk: float
) -> Refutation | None:
    """Return the point of a claim that an event contradicts, or None.

    If there are several points, the one with the smallest delta is returned.

    Notes
    -----
    Theorem A1: both probabilities are bounded simultaneously, for any number of points.
    """
    found = intervals(count(event, together, without), risk)
    bounds = least_epsilons(found, claim.deltas)[0]
    places = np.flatnonzero(bounds > claim.epsilons)
    if not places.size:
        return None
    place = places[-1]
    return Refutation(
        float(claim.deltas[place]), float(bounds[place]), float(claim.epsilons[place])
    )


# Normal statistics ----------------------------------------------------------------------------


def gaussian_shift(together: FloatArray, without: FloatArray, risk: float) -> float:
    """Return a lower bound on the distance between two normal means, in standard deviations.

    It is the largest distance at which means that are at least so far apart, in units of the
    pooled deviation, have a probability of at most the risk.

    Parameters
    ----------
    together, without : ndarray
        At least two numbers each.
    risk : float

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
    return least_distance(difference / deviation, degrees, 1 / sizes[0] + 1 / sizes[1], risk)


def least_distance(
    ratio: float, degrees: int, variance: float, risk: float, *, more_variance: float = 0.0
) -> float:
    """Return a lower bound on a distance in standard deviations, from the seen one.

    Parameters
    ----------
    ratio : float
        The seen distance, divided by the estimated standard deviation.
    degrees : int
        Degrees of freedom of this estimate.
    variance : float
        Variance of the seen distance, in units of the true variance.
    risk : float
    more_variance : float, default=0.0
        A part that is known in units of the estimated variance.

    Notes
    -----
    Theorem A2, Theorem A8.
    """
    roots, weights = _chi_squared_roots(degrees)
    reached, errors = ratio * roots, np.sqrt(variance + more_variance * roots**2)

    def chance(distance: float) -> float:
        tails = ndtr((distance - reached) / errors) + ndtr((-distance - reached) / errors)
        return float(weights @ tails)

    if chance(0.0) >= risk:
        return 0.0
    return bisected(lambda distance: chance(distance) < risk, 0.0, float(reached[-1]))[0]


def bisected(
    is_below: Callable[[float], bool], low: float, high: float, n_halvings: int = 40
) -> tuple[float, float]:
    """Return two ends around the point up to which a condition holds."""
    for _ in range(n_halvings):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if is_below(middle) else (low, middle)
    return low, high


@functools.lru_cache(maxsize=16)
def _chi_squared_roots(degrees: int) -> tuple[FloatArray, FloatArray]:
    """Return roots of chi-squared numbers per degree of freedom, and their probabilities."""
    # The logarithm of such a number has a smooth density, which a sum integrates exactly.
    law = stats.chi2(degrees)
    spots = np.geomspace(float(law.ppf(_TAIL)), float(law.isf(_TAIL)), _N_SPOTS)
    weights = law.pdf(spots) * spots
    return np.sqrt(spots / degrees), weights / weights.sum()


def normality(*sides: FloatArray) -> float:
    """Return a p-value for normality with equal deviations.

    It is the probability that such numbers would look less normal. For several sides, it is twice
    the smaller p-value of D'Agostino and Pearson's test of the distances from the means, and of
    Levene's test of equal spreads. No test can prove that numbers are normal.
    """
    distances = [side - side.mean() for side in sides]
    residuals = np.concatenate(distances)
    if not np.isfinite(residuals).all() or np.unique(residuals).size < 20:
        return 0.0
    found = [stats.normaltest(residuals).pvalue]
    if len(sides) > 1:
        found.append(stats.levene(*distances).pvalue)
    return float(min(1.0, len(found) * min(found)))


# Maps numbers with and without the record to whether they refute the claim.
Verdict = Callable[[FloatArray, FloatArray], bool]

PROBABILITY = 0.9
_N_REPEATS = 20
_N_HALVINGS = 5
_LEAST_FACTOR = 0.02
# A statistic with more distinct values is treated as continuous.
_MOST_VALUES = 10


class AuditPower(NamedTuple):
    """The smallest violation that an audit would have found.

    Attributes
    ----------
    noise_factor : float or None
        The audit would have found noise at most this factor of the observed noise; None if it
        would have found none.
    epsilon : float or None
        The claim's epsilon if its noise is multiplied by this factor.
    probability : float
        Probability of finding it.
    """

    noise_factor: float | None
    epsilon: float | None
    probability: float = PROBABILITY


def power_of(
    together: FloatArray,
    without: FloatArray,
    n_pairs: int,
    claim: ClaimCurve,
    refutes: Verdict,
) -> AuditPower:
    """Return how much smaller noise must be for an audit to find it in nine of ten cases.

    Audits with the same number of fits are simulated from the observed distributions. The means
    are moved closer together by their standard error. The distances from the means are smoothed
    and multiplied by the factor. For a statistic with few values, the log-odds between the two
    sides are divided by the factor instead.

    Parameters
    ----------
    together, without : ndarray
        One number for each fit.
    n_pairs : int
        Number of fits of the audit on each side.
    claim : ClaimCurve
    refutes : callable
        The decision rule of the audit.
    """
    draw = _sampler(together, without)

    def is_found(factor: float) -> bool:
        found = 0
        for repeat in range(_N_REPEATS):
            sides = draw(factor, n_pairs, np.random.default_rng(repeat))
            found += refutes(*sides)
            if found + _N_REPEATS - repeat - 1 < PROBABILITY * _N_REPEATS:
                return False
        return True

    if not is_found(_LEAST_FACTOR):
        return AuditPower(None, None)
    if is_found(1.0):
        return AuditPower(1.0, claim.epsilon)
    low = math.log(_LEAST_FACTOR)
    factor = math.exp(bisected(lambda log: is_found(math.exp(log)), low, 0.0, _N_HALVINGS)[0])
    return AuditPower(factor, epsilon_with_less_noise(claim, factor))


def epsilon_with_less_noise(claim: ClaimCurve, factor: float) -> float:
    """Return the epsilon of Laplace noise, or of a claim's Gaussian curve, with scaled noise."""
    if claim.delta == 0.0 or math.isinf(claim.epsilon):
        return claim.epsilon / factor

    def epsilon_of(shift: float) -> float:
        return PrivacyProfile.gaussian(shift).epsilon(claim.delta)

    claimed = bisected(lambda one: epsilon_of(one) < claim.epsilon, 0.0, LARGEST_SHIFT)[1]
    shift = claimed / factor
    return epsilon_of(shift) if shift < LARGEST_SHIFT else math.inf


Sampler = Callable[[float, int, np.random.Generator], tuple[FloatArray, FloatArray]]


def _sampler(together: FloatArray, without: FloatArray) -> Sampler:
    values = np.unique(np.concatenate([together, without]))
    if values.size <= _MOST_VALUES or not np.isfinite(values).all():
        return _few_values(together, without, values)
    return _many_values(together, without)


def _many_values(together: FloatArray, without: FloatArray) -> Sampler:
    sides = together, without
    means = [float(side.mean()) for side in sides]
    residuals = [side - mean for side, mean in zip(sides, means, strict=True)]
    spreads = [float(side.std()) for side in residuals]
    # Silverman's bandwidth; the spread is kept unchanged.
    widths = [0.9 * s * r.size**-0.2 for s, r in zip(spreads, residuals, strict=True)]
    error = math.hypot(*(s / math.sqrt(r.size) for s, r in zip(spreads, residuals, strict=True)))
    middle, half = sum(means) / 2.0, (means[0] - means[1]) / 2.0
    half = math.copysign(max(abs(half) - error / 2.0, 0.0), half)

    def draw(factor: float, size: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        drawn = []
        for sign, rest, spread, width in zip((1.0, -1.0), residuals, spreads, widths, strict=True):
            noise = rng.choice(rest, size) + width * rng.normal(size=size)
            if spread > 0.0:
                noise *= spread / math.hypot(spread, width)
            drawn.append(middle + sign * half + factor * noise)
        return drawn[0], drawn[1]

    return draw


def _few_values(together: FloatArray, without: FloatArray, values: FloatArray) -> Sampler:
    chances = [
        (np.array([(side == value).sum() for value in values]) + 0.5)
        / (side.size + 0.5 * values.size)
        for side in (together, without)
    ]
    odds = [logit(chance) for chance in chances]
    errors = [
        1.0 / np.sqrt(side.size * chance * (1.0 - chance))
        for side, chance in zip((together, without), chances, strict=True)
    ]
    half = 0.5 * (odds[0] - odds[1])
    half = np.copysign(np.maximum(np.abs(half) - 0.5 * np.hypot(*errors), 0.0), half)

    def draw(factor: float, size: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        middle, drawn = 0.5 * (odds[0] + odds[1]), []
        for sign in (1.0, -1.0):
            chance = expit(middle + sign * half / factor)
            drawn.append(rng.choice(values, size, p=chance / chance.sum()))
        return drawn[0], drawn[1]

    return draw
