"""The methods by which an audit derives its findings from its fits.

One method bets against a claim and may be stopped after every fit: it is a test martingale. Fits
come in pairs, one with the record and one without. Before each pair, an event and a point of the
claim are chosen from the earlier pairs. Then the capital is multiplied by a likelihood ratio of
the outcome: its probability according to the past, divided by that under the nearest allowed
truth.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skdptune.accounting import PrivacyProfile
from skdptune.accounting._shared import gaussian_delta
from skdptune.audit._bounds import (
    LARGEST_SHIFT,
    AuditPower,
    ClaimCurve,
    Counts,
    Events,
    Rates,
    Refutation,
    best_event,
    bound_by,
    count,
    gaussian_shift,
    normality,
    possible_events,
    power_of,
    refutation_by,
)
from skdptune.audit._games import Direction, Trials
from skdptune.audit._result import GaussianBound

FloatArray = NDArray[np.float64]

# An error of 1e-9 in the nearest point is an error of 1e-18 in the capital.
_N_HALVINGS = 32
# Bets are divided equally among these relative distances between the allowed rates and the past
# rates. The past exaggerates, and more so if it is short.
_SHARES = np.array([1.0, 0.5, 0.25])
_N_BOUNDS = 60
# The future is assumed to be better than the past by this many standard errors.
_OPTIMISM = 2.0
_WARM_UP = 20
_FEWEST = 10


def nearest_allowed(rates: Rates, epsilon: FloatArray, delta: FloatArray) -> Rates:
    """Return the rates on the line ``p = exp(epsilon) q + delta`` that are nearest to given ones.

    Nearest means the smallest sum of Kullback-Leibler divergences from the given rates. Rates on
    the allowed side of the line are returned unchanged.

    Notes
    -----
    Theorem A3.
    """
    p, q, epsilon, delta = np.broadcast_arrays(*rates, epsilon, delta)
    factor = np.exp(epsilon)
    low, high = np.zeros(p.shape), (1.0 - delta) / factor
    for _ in range(_N_HALVINGS):
        middle = 0.5 * (low + high)
        image = factor * middle + delta
        # The derivative of the sum along the line, multiplied by a positive number.
        slope = (middle - q) * image * (1.0 - image) + factor * (image - p) * middle * (
            1.0 - middle
        )
        is_right = slope > 0.0
        low, high = np.where(is_right, low, middle), np.where(is_right, middle, high)
    unlikely = 0.5 * (low + high)
    likely = np.minimum(factor * unlikely + delta, 1.0)
    is_allowed = p <= factor * q + delta
    return Rates(np.where(is_allowed, p, likely), np.where(is_allowed, q, unlikely))


def log_factors(rates: Rates, allowed: Rates, counts: Counts) -> FloatArray:
    """Return the logarithms of the capital's factors for given outcomes."""
    misses = counts.n_likely - counts.likely, counts.n_unlikely - counts.unlikely
    return (
        _times(counts.likely, rates.likely, allowed.likely)
        + _times(misses[0], 1.0 - rates.likely, 1.0 - allowed.likely)
        + _times(counts.unlikely, rates.unlikely, allowed.unlikely)
        + _times(misses[1], 1.0 - rates.unlikely, 1.0 - allowed.unlikely)
    )


def _times(number: FloatArray, above: FloatArray, below: FloatArray) -> FloatArray:
    """Return ``number * log(above / below)``; if `below` is 0, the number is 0 as well."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found = number * (np.log(above) - np.log(below))
    return np.where(number > 0, found, 0.0)


class Bets(NamedTuple):
    """The bets on the next pairs, with one line each.

    Attributes
    ----------
    events : Events
    rates, allowed : Rates
        Of shape (n_lines, n_shares): the rates suggested by the past, and the nearest allowed
        ones.
    """

    events: Events
    rates: Rates
    allowed: Rates


class SequentialTest:
    """The capital of bets against a claim, and against each of many bounds on epsilon.

    Parameters
    ----------
    claim : ClaimCurve
        The claim to be tested.
    risk : float
        Probability of refuting a true claim.
    bound_risk : float, optional
        Probability that the bound on epsilon exceeds the truth. If None, no bound is computed.

    Attributes
    ----------
    log_capital : float
        Logarithm of the mean capital of the bets against the claim, over the shares.
    is_refuted : bool
        Whether the capital has ever reached 1 / risk.
    epsilon_lower : float
        All smaller epsilons have been refuted at some time.
    path : list of tuple
        The number of pairs so far, and the logarithm of the capital.

    Notes
    -----
    Theorem A3.
    """

    def __init__(self, claim: ClaimCurve, risk: float, bound_risk: float | None = None) -> None:
        self._claim = claim
        self.goal = -math.log(risk)
        self._bound_goal = -math.log(bound_risk or risk)
        top = max(2.0 * claim.epsilon, 1.0) if math.isfinite(claim.epsilon) else 20.0
        self._bounds = np.linspace(0.0, top, _N_BOUNDS if bound_risk else 0)
        self._capital = np.zeros(_SHARES.size)
        self._bound_capital = np.zeros((self._bounds.size, _SHARES.size))
        self._is_below = np.zeros(self._bounds.size, dtype=bool)
        self.is_refuted = False
        self.path: list[tuple[int, float]] = [(0, 0.0)]

    @property
    def log_capital(self) -> float:
        """Logarithm of the capital of the bets against the claim."""
        return float(_log_mean(self._capital))

    @property
    def epsilon_lower(self) -> float:
        """Largest epsilon such that all epsilons up to it have been refuted."""
        open_bounds = np.flatnonzero(~self._is_below)
        first = open_bounds[0] if open_bounds.size else self._bounds.size
        return float(self._bounds[first - 1]) if first > 0 else 0.0

    def bets(self, together: FloatArray, without: FloatArray) -> tuple[Bets, Bets]:
        """Return the next bets against the claim and against bounds, given the earlier numbers."""
        claim, bounds = self._claim, self._bounds
        events = possible_events(together, without)
        past = _smoothed(count(events, together, without))
        scores = _scores(past, claim.epsilons, claim.deltas, together.size)
        event, line = np.unravel_index(int(np.argmax(scores)), scores.shape)
        against_claim = _bets(
            events, past, [int(event)], claim.epsilons[[line]], claim.deltas[[line]]
        )
        at_delta = np.full(bounds.size, claim.delta)
        chosen = np.argmax(_scores(past, bounds, at_delta, together.size), axis=0)
        return against_claim, _bets(events, past, chosen.tolist(), bounds, at_delta)

    def settle(
        self, bets: tuple[Bets, Bets], together: FloatArray, without: FloatArray, seen: int
    ) -> None:
        """Multiply the capital by the result of the bets on the next pairs."""
        self._capital = self._capital + _won(bets[0], together, without)[0]
        self._bound_capital = self._bound_capital + _won(bets[1], together, without)
        self._is_below |= _log_mean(self._bound_capital) >= self._bound_goal
        self.is_refuted |= self.log_capital >= self.goal
        self.path.append((seen, self.log_capital))

    def is_hopeless(self, together: FloatArray, without: FloatArray, n_left: int) -> bool:
        """Return whether the remaining pairs will probably not refute the claim."""
        claim, bets = self._claim, self.bets(together, without)[0]
        likely, unlikely = (
            float(rate[0]) for rate in _smoothed(count(bets.events, together, without))
        )
        errors = [
            _OPTIMISM * math.sqrt(rate * (1.0 - rate) / together.size)
            for rate in (likely, unlikely)
        ]
        edge = 0.5 / together.size
        rates = Rates(
            np.array([min(likely + errors[0], 1.0 - edge)]),
            np.array([max(unlikely - errors[1], edge)]),
        )
        return self.log_capital + n_left * _growth(rates, claim) < self.goal


def looks(n_pairs: int) -> Iterator[tuple[int, int]]:
    """Iterate over blocks of pairs with common bets, each given by its first and last pair.

    The first pairs are observed without a bet.
    """
    first = max(min(_WARM_UP, n_pairs // 5), 2)
    while first < n_pairs:
        last = min(first + max(_FEWEST, first // 4), n_pairs)
        yield first, last
        first = last


def bet_on_all(test: SequentialTest, together: FloatArray, without: FloatArray) -> SequentialTest:
    """Bet on the given pairs in order, and return the test."""
    for first, last in looks(min(together.size, without.size)):
        bets = test.bets(together[:first], without[:first])
        test.settle(bets, together[first:last], without[first:last], last)
        if test.is_refuted:
            break
    return test


def _growth(rates: Rates, claim: ClaimCurve) -> float:
    """Return the growth of the logarithm of the capital per pair at known rates."""
    allowed = nearest_allowed(rates, claim.epsilons, claim.deltas)
    one = Counts(rates.likely, np.ones(1), rates.unlikely, np.ones(1))
    return float(np.max(log_factors(rates, allowed, one)))


def _smoothed(counts: Counts) -> Rates:
    """Return the rates of past events, which are never exactly 0 or 1."""
    return Rates(
        (counts.likely + 0.5) / (counts.n_likely + 1.0),
        (counts.unlikely + 0.5) / (counts.n_unlikely + 1.0),
    )


def _scores(past: Rates, epsilons: FloatArray, deltas: FloatArray, size: int) -> FloatArray:
    """Return by how many standard errors events (rows) exceed the limits of lines (columns)."""
    factors = np.exp(epsilons)[None, :]
    p, q = past.likely[:, None], past.unlikely[:, None]
    spread = np.sqrt((p * (1.0 - p) + factors**2 * q * (1.0 - q)) / size)
    return (p - factors * q - deltas[None, :]) / spread


def _bets(
    events: Events,
    past: Rates,
    chosen: list[int],
    epsilons: FloatArray,
    deltas: FloatArray,
) -> Bets:
    suggested = Rates(past.likely[chosen][:, None], past.unlikely[chosen][:, None])
    lines = epsilons[:, None], deltas[:, None]
    # This is the nearest allowed point for all points in between as well.
    nearest = nearest_allowed(suggested, *lines)
    rates = Rates(
        nearest.likely + _SHARES * (suggested.likely - nearest.likely),
        nearest.unlikely + _SHARES * (suggested.unlikely - nearest.unlikely),
    )
    return Bets(events.of(chosen), rates, nearest)


def _won(bets: Bets, together: FloatArray, without: FloatArray) -> FloatArray:
    """Return the logarithms of the factors of all lines (rows) and shares (columns)."""
    found = count(bets.events, together, without)
    counts = Counts(*(np.asarray(column)[:, None] for column in found))
    return log_factors(bets.rates, bets.allowed, counts)


def _log_mean(logs: FloatArray) -> FloatArray:
    return np.logaddexp.reduce(logs, axis=-1) - math.log(logs.shape[-1])


# Makes the given number of pairs of fits.
Player = Callable[[int], None]

METHODS = ("auto", "counts", "gaussian", "sequential")
# Shares of the fits that choose a direction, and that choose a direction or an event.
_DIRECTION, _CHOICE = 0.3, 0.5
# A sequential audit does not give up before this share of the fits is made.
_LEAST_SEEN = 0.2


@dataclass(frozen=True, eq=False)
class Findings:
    """The findings of an audit.

    Attributes
    ----------
    epsilon_lower : float
    statistic_with, statistic_without : ndarray
        The statistic of fits that were not used to choose its direction.
    power_of : callable
        Function that computes the power.
    is_refuted : bool
    refutation : Refutation or None
    gaussian : GaussianBound or None
    event, stopped : str
    capital : tuple
    goal : float
    """

    epsilon_lower: float
    statistic_with: FloatArray
    statistic_without: FloatArray
    power_of: Callable[[], AuditPower]
    is_refuted: bool
    refutation: Refutation | None = None
    gaussian: GaussianBound | None = None
    event: str = ""
    stopped: str = ""
    capital: tuple[tuple[int, float], ...] = ()
    goal: float = math.inf


Analysis = Callable[[Trials, int, Player], Findings]


def analysis(method: str, claim: ClaimCurve, risk: float) -> Analysis:
    """Return the function that makes fits, up to a number of pairs, and analyses them."""
    if method == "gaussian" and claim.delta == 0.0:
        raise ValueError(
            'method must be "auto", "counts" or "sequential" if delta is 0; got "gaussian". '
            "Normal noise has no finite epsilon there."
        )
    chosen: Analysis = functools.partial(_ANALYSES[method], claim, risk)
    return chosen


# Counts, combined with bets and with the bound for normal statistics ---------------------


def _auto(claim: ClaimCurve, risk: float, trials: Trials, n_pairs: int, play: Player) -> Findings:
    """Count two events, and bet; each has a third of the risk."""
    play(n_pairs)
    bound, event, refutation, parts = _counted(claim, risk / 3.0, trials, n_pairs)
    test = SequentialTest(claim, risk / 3.0)
    for first, last in looks(n_pairs):
        _bet(test, trials, first, last)
    refuted = test.is_refuted or refutation is not None or bound > claim.epsilon
    sides = parts.projected(trials)
    return Findings(
        bound,
        *sides,
        _power(sides, sides[0].size, claim, _is_refuted_by_bets, risk / 3.0),
        refuted,
        refutation,
        _gaussian_bound(claim, risk, *sides),
        str(event),
        capital=tuple(test.path),
        goal=test.goal,
    )


def _counts(
    claim: ClaimCurve, risk: float, trials: Trials, n_pairs: int, play: Player
) -> Findings:
    """Count two events; each has half of the risk."""
    play(n_pairs)
    bound, event, refutation, parts = _counted(claim, risk / 2.0, trials, n_pairs)
    sides = parts.projected(trials)
    share = (parts.choice - parts.direction_end) / max(n_pairs - parts.direction_end, 1)
    return Findings(
        bound,
        *sides,
        _power(sides, sides[0].size, claim, _is_refuted_by_counts, risk / 2.0, share),
        refutation is not None or bound > claim.epsilon,
        refutation,
        event=str(event),
    )


@dataclass(frozen=True)
class _Parts:
    """The fits that choose a direction, those that choose an event, and those that are counted."""

    direction: Direction | None
    direction_end: int
    choice: int
    n_pairs: int

    @classmethod
    def of(cls, trials: Trials, n_pairs: int) -> _Parts:
        """Learn a direction from the first fits, if the statistic has several numbers."""
        end = 0 if trials.width == 1 else int(_DIRECTION * n_pairs)
        direction = trials.direction(0, end) if end else None
        return cls(direction, end, int(_CHOICE * n_pairs), n_pairs)

    def projected(self, trials: Trials) -> tuple[FloatArray, FloatArray]:
        """Return the statistic of all fits that were not used to choose the direction."""
        return trials.projected(self.direction, self.direction_end, self.n_pairs)


def _counted(
    claim: ClaimCurve, risk: float, trials: Trials, n_pairs: int
) -> tuple[float, Events, Refutation | None, _Parts]:
    """Bound epsilon by one event, and test the claim by another one, each with the full risk.

    Notes
    -----
    Theorem A1.
    """
    parts = _Parts.of(trials, n_pairs)
    chosen = trials.projected(parts.direction, parts.direction_end, parts.choice)
    rest = trials.projected(parts.direction, parts.choice, n_pairs)
    event = best_event(*chosen, risk, np.array([claim.delta]))
    damning = best_event(*chosen, risk, claim.deltas, claim.epsilons)
    refutation = refutation_by(damning, *rest, claim, risk)
    return bound_by(event, *rest, claim.delta, risk), event, refutation, parts


# Normal statistics ----------------------------------------------------------------------


def _gaussian(
    claim: ClaimCurve, risk: float, trials: Trials, n_pairs: int, play: Player
) -> Findings:
    play(n_pairs)
    sides = _Parts.of(trials, n_pairs).projected(trials)
    bound = _gaussian_bound(claim, risk, *sides)
    refutes = bound is not None and bound.refutes
    return Findings(
        bound.epsilon_lower if bound is not None and bound.is_plausible else 0.0,
        *sides,
        _power(sides, sides[0].size, claim, _is_refuted_if_normal, risk),
        refutes,
        gaussian=bound,
    )


def _gaussian_bound(
    claim: ClaimCurve, risk: float, together: FloatArray, without: FloatArray
) -> GaussianBound | None:
    """Return the bound for a normal statistic, or None if there is none.

    Notes
    -----
    Theorem A2.
    """
    if claim.delta == 0.0 or not np.isfinite([*together, *without]).all():
        return None
    shift = gaussian_shift(together, without, risk)
    if shift >= LARGEST_SHIFT:
        return None
    epsilon = PrivacyProfile.gaussian(shift).epsilon(claim.delta) if shift > 0.0 else 0.0
    p_value = normality(together, without)
    return GaussianBound(epsilon, shift, p_value, _is_beyond(claim, shift))


def _is_beyond(claim: ClaimCurve, shift: float) -> bool:
    """Return whether a Gaussian curve exceeds a claim at any of the claim's points."""
    if shift <= 0.0 or shift >= LARGEST_SHIFT:
        return shift > 0.0
    return bool((gaussian_delta(shift, claim.epsilons) > claim.deltas * (1.0 + 1e-9)).any())


# Bets -------------------------------------------------------------------------------------


def _sequential(
    claim: ClaimCurve, risk: float, trials: Trials, n_pairs: int, play: Player
) -> Findings:
    """Bet against the claim and against bounds, each with half of the risk, until decided."""
    test = SequentialTest(claim, risk / 2.0, risk / 2.0)
    stopped = ""
    for first, last in looks(n_pairs):
        play(last - len(trials))
        past = _bet(test, trials, first, last)
        if test.is_refuted:
            stopped = "the claim is refuted"
            break
        is_early = last < _LEAST_SEEN * n_pairs or last == n_pairs
        if not is_early and test.is_hopeless(*past, n_pairs - last):
            stopped = "the remaining fits are unlikely to refute the claim"
            break
    made = len(trials)
    sides = trials.projected(*_past(trials, made))
    return Findings(
        test.epsilon_lower,
        *sides,
        _power(sides, n_pairs, claim, _is_refuted_by_bets, risk / 2.0),
        test.is_refuted or test.epsilon_lower > claim.epsilon,
        stopped=stopped,
        capital=tuple(test.path),
        goal=test.goal,
    )


def _bet(
    test: SequentialTest, trials: Trials, first: int, last: int
) -> tuple[FloatArray, FloatArray]:
    """Bet on some pairs, given the earlier ones; return the earlier numbers with the new ones.

    Notes
    -----
    Theorem A3: direction, event and stake are chosen only from earlier pairs.
    """
    direction, start, _ = _past(trials, first)
    past = trials.projected(direction, start, first)
    new = trials.projected(direction, first, last)
    test.settle(test.bets(*past), *new, last)
    return np.concatenate([past[0], new[0]]), np.concatenate([past[1], new[1]])


def _past(trials: Trials, last: int) -> tuple[Direction | None, int, int]:
    """Return the direction learned from the older half of the past, and the other half."""
    if trials.width == 1:
        return None, 0, last
    return trials.direction(0, last // 2), last // 2, last


# Power ------------------------------------------------------------------------------------


def _power(
    sides: tuple[FloatArray, FloatArray],
    n_pairs: int,
    claim: ClaimCurve,
    refutes: Callable[..., bool],
    *settings: float,
) -> Callable[[], AuditPower]:
    """Return a function that computes the power of a test when it is called."""
    verdict = functools.partial(refutes, claim, *settings)
    return functools.partial(power_of, *sides, n_pairs, claim, verdict)


def _is_refuted_by_bets(
    claim: ClaimCurve, risk: float, together: FloatArray, without: FloatArray
) -> bool:
    return bet_on_all(SequentialTest(claim, risk), together, without).is_refuted


def _is_refuted_by_counts(
    claim: ClaimCurve, risk: float, share: float, together: FloatArray, without: FloatArray
) -> bool:
    place = int(share * together.size)
    first, rest = (together[:place], without[:place]), (together[place:], without[place:])
    event = best_event(*first, risk, claim.deltas, claim.epsilons)
    return refutation_by(event, *rest, claim, risk) is not None


def _is_refuted_if_normal(
    claim: ClaimCurve, risk: float, together: FloatArray, without: FloatArray
) -> bool:
    return _is_beyond(claim, gaussian_shift(together, without, risk))


_ANALYSES: dict[str, Any] = {
    "auto": _auto,
    "counts": _counts,
    "gaussian": _gaussian,
    "sequential": _sequential,
}
