"""How much noise a doubling threshold search needs for its budget, and when it must stop.

Everything here follows from public settings, before the search.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from fractions import Fraction

from skdptune._validation import check_integer, check_option, check_real
from skdptune.accounting import (
    LARGEST_LOSS,
    BudgetFilter,
    PrivacyProfile,
    UnreachableBudgetError,
    calibrate,
    doubling_threshold,
    sparse_vector,
    sparse_vector_split,
)
from skdptune.mechanisms._noise import nonprivate_profile

# Keeps calibration clear of both ends, where rounding could refuse what is known to fit.
_MARGIN = 1.0 - 1e-6
_LEAST_EPSILON = 1e-100


@dataclass(frozen=True)
class ThresholdPlan:
    """Noise, limits and cost of a doubling threshold search.

    Attributes
    ----------
    threshold_scale, candidate_scale : float
        Scales of the Laplace noises.
    redraws : bool
        Whether every round has a threshold noise of its own.
    max_rounds, max_hits : int or None
        Where the search stops at the latest.
    round_epsilon, budget : Fraction or None
        Settings of the filter, if the noise is drawn per round.
    profile : PrivacyProfile
        What the search costs, whatever happens in it.
    """

    threshold_scale: float
    candidate_scale: float
    redraws: bool
    max_rounds: int | None
    max_hits: int | None
    round_epsilon: Fraction | None
    budget: Fraction | None
    profile: PrivacyProfile

    def new_filter(self) -> BudgetFilter | None:
        """Return the filter that a search must ask before each round, if it needs one."""
        if self.round_epsilon is None:
            return None
        return BudgetFilter(self.round_epsilon, self.budget, self.max_rounds)


def plan_threshold_search(
    noise: str | None,
    *,
    sensitivity: float,
    epsilon: float | None,
    delta: float,
    levels: int,
    max_rounds: int | None,
    max_hits: int | None,
) -> ThresholdPlan:
    """Return the plan of a search over so many levels of utility; see `DoublingThreshold`."""
    # Theorem D0.
    if noise is not None:
        check_option(noise, name="noise", options=("sparse", "per-round"))
    influence = check_real(
        sensitivity,
        name="sensitivity",
        lower=0.0,
        lower_open=True,
        upper=math.inf,
        upper_open=True,
    )
    failure = check_real(delta, name="delta", lower=0.0, upper=1.0, upper_open=True)
    rounds, hits = (
        None if value is None else check_integer(value, name=name, lower=1)
        for name, value in (("max_rounds", max_rounds), ("max_hits", max_hits))
    )
    if noise is None:
        return ThresholdPlan(0.0, 0.0, False, rounds, hits, None, None, nonprivate_profile())
    # Its parts must not vanish in rounding.
    budget = check_real(epsilon, name="epsilon", lower=_LEAST_EPSILON, upper=LARGEST_LOSS)
    if noise == "sparse":
        return _sparse(influence, budget, rounds, hits or most_hits(levels))
    return _per_round(influence, budget, failure, _cap(levels, rounds, hits), hits)


def most_hits(levels: int) -> int:
    """Return the most hits of a search without noise that ends within so many levels.

    Notes
    -----
    Ding, Wu, Xu and Pan, Lemma 1: if the best utility lies ``n = 2**k - 1 + r`` levels up,
    ``r < 2**k``, the search hits ``k`` times, and then once for every one in the binary digits of
    ``r``. It misses once more than it hits, so it makes twice the number plus one rounds (the
    lemma counts one miss less). Up to ``n`` levels the most is attained at ``k`` or ``k - 1``.
    """
    doublings = (levels + 1).bit_length() - 1
    rest = levels + 1 - (1 << doublings)
    # No number up to r has more ones than the largest 2**j - 1 among them.
    return max(2 * (doublings - 1), doublings + (rest + 1).bit_length() - 1)


@functools.lru_cache(maxsize=64)
def _sparse(influence: float, budget: float, rounds: int | None, hits: int) -> ThresholdPlan:
    threshold, queries = sparse_vector_split(budget, hits)
    return ThresholdPlan(
        threshold_scale=influence / threshold,
        candidate_scale=2.0 * hits * influence / queries,
        redraws=False,
        max_rounds=rounds,
        max_hits=hits,
        round_epsilon=None,
        budget=None,
        profile=sparse_vector(threshold, queries, hits),
    )


def _cap(levels: int, rounds: int | None, hits: int | None) -> int:
    """Return the most rounds of a search with noise drawn per round."""
    cap = rounds or 2 * most_hits(levels) + 1
    # Before its last hit a search that goes on has missed at most as often as it has hit.
    return cap if hits is None else min(cap, 2 * hits - 1)


@functools.lru_cache(maxsize=64)
def _per_round(
    influence: float, budget: float, failure: float, rounds: int, hits: int | None
) -> ThresholdPlan:
    each = _round_epsilon(budget, failure, rounds)
    limit = each * _half_rounds(rounds) / 2
    return ThresholdPlan(
        threshold_scale=2.0 * influence / float(each),
        candidate_scale=4.0 * influence / float(each),
        redraws=True,
        max_rounds=rounds,
        max_hits=hits,
        round_epsilon=each,
        budget=limit,
        profile=doubling_threshold(each, budget=limit, max_rounds=rounds),
    )


def _half_rounds(rounds: int) -> int:
    """Return the halves of a round's cost that a search of so many rounds may need.

    Notes
    -----
    A search that ends at step 0 after ``2 h + 1`` rounds has ``h`` hits. Before its last round it
    has used ``3 h`` halves, and the filter wants two more. With this number the filter cuts
    short no search that would have ended by itself within the rounds.
    """
    return 2 + math.ceil(3 * (rounds - 1) / 2)


def _round_epsilon(budget: float, failure: float, rounds: int) -> Fraction:
    """Return the largest cost of a round that keeps the search within the budget."""
    halves = _half_rounds(rounds)
    # Numbers count as they are written, as in the filter.
    pure = 2 * Fraction(repr(budget)) / halves
    largest = 2.0 * LARGEST_LOSS / halves * _MARGIN
    if failure == 0.0 or float(pure) >= largest:
        return pure

    def cost_of(each: float) -> PrivacyProfile:
        exact = Fraction(repr(each))
        return doubling_threshold(exact, budget=exact * halves / 2, max_rounds=rounds)

    least = float(pure) * _MARGIN
    try:
        found = calibrate(
            cost_of, budget, failure, parameter="budget", lower=least, upper=largest, guess=least
        )
    except UnreachableBudgetError:
        return pure
    return max(pure, Fraction(repr(found.value)))
