"""A bet against a claim that may be looked at after every fit: a test martingale.

Pairs of fits, one with the record and one without, come one after another. Before each pair an
event and a point of the claim are chosen by the pairs before it; the capital is multiplied by how
much likelier the outcome is under what the past suggests than under the nearest allowed truth.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skdptune.audit._bounds import ClaimCurve, Counts, Events, count, possible_events

FloatArray = NDArray[np.float64]

# An error of 1e-9 in the nearest point is one of 1e-18 in the capital.
_N_HALVINGS = 32
# Shares of the distance from what is allowed to what the past suggests, bet on in equal parts:
# the past exaggerates, the more so the shorter it is.
_SHARES = np.array([1.0, 0.5, 0.25])
_N_BOUNDS = 60
# Standard errors by which the future is taken to be better than the past.
_OPTIMISM = 2.0
_WARM_UP = 20
_FEWEST = 10


class Rates(NamedTuple):
    """Probabilities of an event on the side where it is likelier, and on the other one."""

    likely: FloatArray
    unlikely: FloatArray


def nearest_allowed(rates: Rates, epsilon: FloatArray, delta: FloatArray) -> Rates:
    """Return the rates on the line ``p = exp(epsilon) q + delta`` that are nearest to given ones.

    Nearest means the least sum of Kullback and Leibler's divergences from the given rates. Rates
    that lie on the allowed side of the line are returned as they are.

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
        # The derivative of the sum along the line, times what is positive.
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
    """Return the logarithms of the capital's factors after some outcomes."""
    misses = counts.n_likely - counts.likely, counts.n_unlikely - counts.unlikely
    return (
        _times(counts.likely, rates.likely, allowed.likely)
        + _times(misses[0], 1.0 - rates.likely, 1.0 - allowed.likely)
        + _times(counts.unlikely, rates.unlikely, allowed.unlikely)
        + _times(misses[1], 1.0 - rates.unlikely, 1.0 - allowed.unlikely)
    )


def _times(number: FloatArray, above: FloatArray, below: FloatArray) -> FloatArray:
    """Return ``number * log(above / below)``; below 0 divides nothing that can happen."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found = number * (np.log(above) - np.log(below))
    return np.where(number > 0, found, 0.0)


class Bets(NamedTuple):
    """What is bet on in the next pairs, one line each.

    Attributes
    ----------
    events : Events
    rates, allowed : Rates
        Of shape (n_lines, n_shares): suggested by the past, and the nearest that are allowed.
    """

    events: Events
    rates: Rates
    allowed: Rates


class SequentialTest:
    """The capital of bets against a claim, and against each of many bounds on epsilon.

    Parameters
    ----------
    claim : ClaimCurve
        What is tested.
    risk : float
        Probability of refuting a claim that is true.
    bound_risk : float, optional
        Probability that the bound on epsilon is above the truth; without it there is no bound.

    Attributes
    ----------
    log_capital : float
        Of the bets against the claim: their mean over the shares.
    is_refuted : bool
        Whether the capital ever reached 1 / risk.
    epsilon_lower : float
        All epsilons below it have been refuted at some time.
    path : list of tuple
        Number of pairs so far, and the logarithm of the capital.

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
        """Largest epsilon up to which all have been refuted."""
        open_bounds = np.flatnonzero(~self._is_below)
        first = open_bounds[0] if open_bounds.size else self._bounds.size
        return float(self._bounds[first - 1]) if first > 0 else 0.0

    def bets(self, together: FloatArray, without: FloatArray) -> tuple[Bets, Bets]:
        """Return what to bet on next against the claim, and against bounds, by earlier numbers."""
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
        """Multiply the capital by what the next pairs bring."""
        self._capital = self._capital + _won(bets[0], together, without)[0]
        self._bound_capital = self._bound_capital + _won(bets[1], together, without)
        self._is_below |= _log_mean(self._bound_capital) >= self._bound_goal
        self.is_refuted |= self.log_capital >= self.goal
        self.path.append((seen, self.log_capital))

    def is_hopeless(self, together: FloatArray, without: FloatArray, n_left: int) -> bool:
        """Return whether pairs as good as the past, and better by its errors, would not do."""
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
    """Iterate over the pairs that are bet on together: from where to where.

    The first ones are looked at, and not bet on.
    """
    first = max(min(_WARM_UP, n_pairs // 5), 2)
    while first < n_pairs:
        last = min(first + max(_FEWEST, first // 4), n_pairs)
        yield first, last
        first = last


def bet_on_all(test: SequentialTest, together: FloatArray, without: FloatArray) -> SequentialTest:
    """Return a test after it has bet on given pairs in their order."""
    for first, last in looks(min(together.size, without.size)):
        bets = test.bets(together[:first], without[:first])
        test.settle(bets, together[first:last], without[first:last], last)
        if test.is_refuted:
            break
    return test


def _growth(rates: Rates, claim: ClaimCurve) -> float:
    """Return how much the logarithm of the capital grows per pair at known rates."""
    allowed = nearest_allowed(rates, claim.epsilons, claim.deltas)
    one = Counts(rates.likely, np.ones(1), rates.unlikely, np.ones(1))
    return float(np.max(log_factors(rates, allowed, one)))


def _smoothed(counts: Counts) -> Rates:
    """Return rates of the past, never 0 or 1."""
    return Rates(
        (counts.likely + 0.5) / (counts.n_likely + 1.0),
        (counts.unlikely + 0.5) / (counts.n_unlikely + 1.0),
    )


def _scores(past: Rates, epsilons: FloatArray, deltas: FloatArray, size: int) -> FloatArray:
    """Return by how many standard errors events (rows) exceed what lines (columns) allow."""
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
    # The nearest to all points on the way as well.
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
