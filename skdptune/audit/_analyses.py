"""From the fits of an audit to its findings, by each of the methods."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdptune.accounting import PrivacyProfile
from skdptune.accounting._shared import gaussian_delta
from skdptune.audit._bounds import (
    LARGEST_SHIFT,
    AuditPower,
    ClaimCurve,
    Event,
    Refutation,
    best_event,
    bound_by,
    gaussian_shift,
    most_damning_event,
    normality,
    power_of,
    refutation_by,
)
from skdptune.audit._games import Direction, Trials
from skdptune.audit._result import GaussianBound
from skdptune.audit._sequential import SequentialTest, bet_on_all, looks

FloatArray = NDArray[np.float64]
# Makes as many pairs of fits.
Player = Callable[[int], None]

METHODS = ("auto", "counts", "gaussian", "sequential")
# Of the fits: those that choose a direction, and those that choose it or an event.
_DIRECTION, _CHOICE = 0.3, 0.5
# Before this share of the fits is made, a sequential audit is not given up.
_LEAST_SEEN = 0.2


@dataclass(frozen=True, eq=False)
class Findings:
    """What an audit has found.

    Attributes
    ----------
    epsilon_lower : float
    together, without : ndarray
        The statistic of fits that did not choose its direction.
    power : callable
        Returns the power.
    is_refuted : bool
    refutation : Refutation or None
    gaussian : GaussianBound or None
    event, stopped : str
    capital : tuple
    goal : float
    """

    epsilon_lower: float
    together: FloatArray
    without: FloatArray
    power: Callable[[], AuditPower]
    is_refuted: bool
    refutation: Refutation | None = None
    gaussian: GaussianBound | None = None
    event: str = ""
    stopped: str = ""
    capital: tuple[tuple[int, float], ...] = ()
    goal: float = math.inf


Analysis = Callable[[Trials, int, Player], Findings]


def analysis(method: str, claim: ClaimCurve, risk: float) -> Analysis:
    """Return what makes fits, of which it has a number of pairs at most, and analyses them."""
    if method == "gaussian" and claim.delta == 0.0:
        raise ValueError(
            'method must be "auto", "counts" or "sequential" where delta is 0; got "gaussian". '
            "Normal noise has no epsilon there."
        )
    chosen: Analysis = functools.partial(_ANALYSES[method], claim, risk)
    return chosen


# Counts, with bets and what follows if the statistic is normal ----------------------------


def _auto(claim: ClaimCurve, risk: float, trials: Trials, n_pairs: int, play: Player) -> Findings:
    """Count two events, and bet, each at a third of the risk."""
    play(n_pairs)
    counted, parts = _counted(claim, risk / 3.0, trials, n_pairs)
    test = SequentialTest(claim, risk / 3.0)
    for first, last in looks(n_pairs):
        _bet(test, trials, first, last)
    refuted = (
        test.is_refuted or counted.refutation is not None or counted.epsilon_lower > claim.epsilon
    )
    sides = parts.projected(trials)
    return Findings(
        counted.epsilon_lower,
        *sides,
        _power(sides, sides[0].size, claim, _is_refuted_by_bets, risk / 3.0),
        refuted,
        counted.refutation,
        _gaussian_bound(claim, risk, *sides),
        str(counted.event),
        capital=tuple(test.path),
        goal=test.goal,
    )


def _counts(
    claim: ClaimCurve, risk: float, trials: Trials, n_pairs: int, play: Player
) -> Findings:
    """Count two events, each at half of the risk."""
    play(n_pairs)
    counted, parts = _counted(claim, risk / 2.0, trials, n_pairs)
    sides = parts.projected(trials)
    share = (parts.choice - parts.direction_end) / max(n_pairs - parts.direction_end, 1)
    return Findings(
        counted.epsilon_lower,
        *sides,
        _power(sides, sides[0].size, claim, _is_refuted_by_counts, risk / 2.0, share),
        counted.refutation is not None or counted.epsilon_lower > claim.epsilon,
        counted.refutation,
        event=str(counted.event),
    )


@dataclass(frozen=True)
class _Parts:
    """Which fits choose a direction, which an event, and which are counted."""

    direction: Direction | None
    direction_end: int
    choice: int
    n_pairs: int

    @classmethod
    def of(cls, trials: Trials, n_pairs: int) -> _Parts:
        """Learn a direction, where there is more than one number, from the first fits."""
        end = 0 if trials.width == 1 else int(_DIRECTION * n_pairs)
        direction = trials.direction(0, end) if end else None
        return cls(direction, end, int(_CHOICE * n_pairs), n_pairs)

    def projected(self, trials: Trials) -> tuple[FloatArray, FloatArray]:
        """Return the statistic of all fits that have not chosen the direction."""
        return trials.projected(self.direction, self.direction_end, self.n_pairs)


@dataclass(frozen=True)
class _Counted:
    epsilon_lower: float
    event: Event
    refutation: Refutation | None


def _counted(
    claim: ClaimCurve, risk: float, trials: Trials, n_pairs: int
) -> tuple[_Counted, _Parts]:
    """Bound epsilon by one event, and test the claim by another one, each at the risk.

    Notes
    -----
    Theorem A1.
    """
    parts = _Parts.of(trials, n_pairs)
    chosen = trials.projected(parts.direction, parts.direction_end, parts.choice)
    rest = trials.projected(parts.direction, parts.choice, n_pairs)
    event, _ = best_event(*chosen, claim.delta, risk)
    damning = most_damning_event(*chosen, claim, risk)
    return (
        _Counted(
            bound_by(event, *rest, claim.delta, risk),
            event,
            refutation_by(damning, *rest, claim, risk),
        ),
        parts,
    )


# Normal statistics ----------------------------------------------------------------------


def _gaussian(
    claim: ClaimCurve, risk: float, trials: Trials, n_pairs: int, play: Player
) -> Findings:
    play(n_pairs)
    sides = _Parts.of(trials, n_pairs).projected(trials)
    bound = _gaussian_bound(claim, risk, *sides)
    holds = bound is not None and bound.is_plausible
    return Findings(
        bound.epsilon_lower if bound is not None and holds else 0.0,
        *sides,
        _power(sides, sides[0].size, claim, _is_refuted_if_normal, risk),
        bound is not None and holds and bound.is_refuted,
        gaussian=bound,
    )


def _gaussian_bound(
    claim: ClaimCurve, risk: float, together: FloatArray, without: FloatArray
) -> GaussianBound | None:
    """Return what follows if the statistic is normal; None where that says nothing.

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
    """Return whether a Gaussian curve is above a claim at any of its points."""
    if shift <= 0.0 or shift >= LARGEST_SHIFT:
        return shift > 0.0
    return bool((gaussian_delta(shift, claim.epsilons) > claim.deltas * (1.0 + 1e-9)).any())


# Bets -------------------------------------------------------------------------------------


def _sequential(
    claim: ClaimCurve, risk: float, trials: Trials, n_pairs: int, play: Player
) -> Findings:
    """Bet against the claim and against bounds, half of the risk each, until it is clear."""
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
            stopped = "the rest would hardly refute the claim"
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
    """Bet on some pairs, by what earlier ones suggest, and return these with the new ones.

    Notes
    -----
    Theorem A3: direction, event and stake are chosen by earlier pairs alone.
    """
    direction, start, _ = _past(trials, first)
    past = trials.projected(direction, start, first)
    new = trials.projected(direction, first, last)
    test.settle(test.bets(*past), *new, last)
    return np.concatenate([past[0], new[0]]), np.concatenate([past[1], new[1]])


def _past(trials: Trials, last: int) -> tuple[Direction | None, int, int]:
    """Return the direction that the older half of the past suggests, and the other half."""
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
    """Return what computes the power of a test, when it is asked for."""
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
    event = most_damning_event(*first, claim, risk)
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
