"""What it costs to publish which scores pass a noisy threshold.

"Sensitivity" is the most by which one record, added or removed, changes any score.
Scores are *monotone* if one record moves all of them the same way.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from skdptune._validation import FloatArray, check_flag, check_integer, check_real
from skdptune.accounting._budgets import BudgetFilter
from skdptune.accounting._losses import LARGEST_LOSS, MOST_POINTS, Halves, RenyiCurve, RenyiOfPure
from skdptune.accounting._profile import PrivacyProfile, profile_from_halves, renyi_of


def above_threshold(epsilon_threshold: float, epsilon_queries: float) -> PrivacyProfile:
    """Return the profile of one search for a score above a threshold, which is pure.

    The mechanism draws one threshold noise ``Laplace(sensitivity / epsilon_threshold)``; it takes
    the scores one by one, adds fresh noise ``Laplace(2 * sensitivity / epsilon_queries)`` to
    each, publishes a miss while the sum is below the noisy threshold, and stops after it has
    published the first hit. For monotone scores ``Laplace(sensitivity / epsilon_queries)`` is
    enough. It is ``epsilon_threshold + epsilon_queries``-differentially private for data sets
    that differ in one record, added or removed.

    Parameters
    ----------
    epsilon_threshold, epsilon_queries : float
        Positive, at most 600 together.

    Returns
    -------
    PrivacyProfile

    See Also
    --------
    sparse_vector : Up to any number of hits.

    Examples
    --------
    >>> from skdptune.accounting import above_threshold
    >>> above_threshold(0.25, 0.5).epsilon(0)
    0.75
    """
    return sparse_vector(epsilon_threshold, epsilon_queries, 1)


def sparse_vector(
    epsilon_threshold: float, epsilon_queries: float, max_hits: int
) -> PrivacyProfile:
    """Return the profile of the sparse vector technique, which is pure.

    The mechanism draws one threshold noise ``Laplace(sensitivity / epsilon_threshold)`` and
    never draws it again; it takes the scores one by one, adds fresh noise
    ``Laplace(2 * max_hits * sensitivity / epsilon_queries)`` to each, publishes whether the
    sum reaches the noisy threshold, and stops after hit number `max_hits`. For monotone scores
    ``Laplace(max_hits * sensitivity / epsilon_queries)`` is enough. It is
    ``epsilon_threshold + epsilon_queries``-differentially private for data sets that differ
    in one record, added or removed.

    Scores and (noise-free) thresholds may depend on what was published before.
    Misses are free. The noisy scores of hits are *not* published.

    Parameters
    ----------
    epsilon_threshold, epsilon_queries : float
        Positive, at most 600 together. `sparse_vector_split` gives the best ratio.
    max_hits : int
        Number of hits after which the mechanism stops. It sets the noise, not the cost.

    Returns
    -------
    PrivacyProfile

    Notes
    -----
    Theorem N3.

    Lyu, Su and Li (2017), Algorithm 7, without the optional release of the hits' scores.
    A miss costs nothing beyond the threshold's shift, a hit ``epsilon_queries / max_hits``.

    Examples
    --------
    >>> from skdptune.accounting import sparse_vector, sparse_vector_split
    >>> threshold, queries = sparse_vector_split(1.0, max_hits=4)
    >>> round(threshold, 6), round(queries, 6)
    (0.2, 0.8)
    >>> sparse_vector(threshold, queries, max_hits=4).epsilon(0)
    1.0
    """
    first, second = (
        check_real(value, name=name, lower=0.0, lower_open=True, upper=LARGEST_LOSS)
        for name, value in (
            ("epsilon_threshold", epsilon_threshold),
            ("epsilon_queries", epsilon_queries),
        )
    )
    check_integer(max_hits, name="max_hits", lower=1)
    total = check_real(
        first + second, name="epsilon_threshold + epsilon_queries", upper=LARGEST_LOSS
    )
    return PrivacyProfile.pure(total)


def sparse_vector_split(
    epsilon: float, max_hits: int, monotone: bool = False
) -> tuple[float, float]:
    """Return the best division of a budget between the threshold and the queries.

    Parameters
    ----------
    epsilon : float
        The whole budget, in (0, 600].
    max_hits : int
        Number of hits after which the mechanism stops.
    monotone : bool, default=False
        Whether one record moves all scores the same way.

    Returns
    -------
    epsilon_threshold, epsilon_queries : float
        They add up to `epsilon` exactly.

    Notes
    -----
    The ratio ``1 : (2 * max_hits)**(2/3)``, for monotone scores ``1 : max_hits**(2/3)``,
    minimises the variance of a comparison, which is that of the difference of the two noises (Lyu,
    Su and Li 2017).

    Examples
    --------
    >>> from skdptune.accounting import sparse_vector_split
    >>> sparse_vector_split(1.0, max_hits=1, monotone=True)
    (0.5, 0.5)
    """
    total = check_real(epsilon, name="epsilon", lower=0.0, lower_open=True, upper=LARGEST_LOSS)
    hits = check_integer(max_hits, name="max_hits", lower=1)
    check_flag(monotone, name="monotone")
    ratio = math.cbrt(hits if monotone else 2 * hits) ** 2
    # The larger part first: a difference of floats within a factor of two is exact.
    queries = total * (ratio / (1.0 + ratio))
    return total - queries, queries


def doubling_threshold(
    round_epsilon: float | Fraction,
    *,
    budget: float | Fraction | None = None,
    max_rounds: int | None = None,
) -> PrivacyProfile:
    r"""Return the profile of a doubling threshold search, whose budget or cap ends it.

    In each round the mechanism draws a fresh threshold noise
    ``Laplace(2 * sensitivity / round_epsilon)``, scans the candidates with fresh noise
    ``Laplace(4 * sensitivity / round_epsilon)`` each, publishes the first whose noisy score
    reaches the noisy threshold (a hit) or that there is none (a miss), and chooses the next
    threshold, and the order of the next scan, from what was published so far. With a `budget` it
    goes on only while `BudgetFilter` allows it, with `max_rounds` for at most so many rounds. It
    may stop earlier, on grounds of what was published. The profile holds, in both directions,
    for data sets that differ in one record, added or removed.

    Parameters
    ----------
    round_epsilon : float
        What a hit costs; a miss costs half of it. In (0, 600].
    budget : float, optional
        Budget of the filter, at least `round_epsilon`.
    max_rounds : int, optional
        Most rounds. At least one of the two must be given.

    Returns
    -------
    PrivacyProfile

    See Also
    --------
    BudgetFilter : The filter, and why a stop that depends on the transcript is sound.

    Notes
    -----
    Theorem N4.

    The search is Algorithm 1 of Ding, Wu, Xu and Pan and of Ding and Wu, who charge the
    rounds that happened; their number depends on the data. Here all is charged beforehand.

    A round is `above_threshold` with half of `round_epsilon` for the threshold and half for the
    candidates. A cap of ``T`` rounds costs what ``T`` pure releases cost (Kairouz, Oh and
    Viswanath 2015). A budget bounds the largest multiple of ``round_epsilon / 2`` within it, and
    caps the search at ``N - 1`` rounds, ``N = floor(2 budget / round_epsilon)``, as well. All
    bounds hold for one mechanism, hence so does the smallest at every epsilon.

    A search that is known to end sooner may be charged for fewer rounds, by `max_rounds`.
    Algorithm 1 starts from step 1, doubles it at a hit, halves it at a miss, and ends when it
    falls below 1: a first miss is the last round, and misses exceed hits by one at most, at the
    end. With a budget it therefore makes at most ``1 + floor(2 (N - 2) / 3)`` rounds.

    Examples
    --------
    >>> from skdptune.accounting import doubling_threshold
    >>> round(doubling_threshold(0.1, budget=2.0).epsilon(0), 6)
    2.0
    >>> round(doubling_threshold(0.1, max_rounds=30).epsilon(1e-6), 3)
    2.346
    >>> round(doubling_threshold(0.1, budget=2.0, max_rounds=30).epsilon(1e-3), 3)
    1.481
    """
    rounds_filter = BudgetFilter(round_epsilon, budget, max_rounds)
    rounds = rounds_filter.max_possible_rounds
    one_round = PrivacyProfile.pure(float(round_epsilon))
    if budget is None:
        return rounds * one_round
    end = rounds_filter.max_possible_spent
    # So many rounds are beyond what composition can hold in memory; the budget holds anyway.
    if rounds > MOST_POINTS:
        return PrivacyProfile.pure(end)
    cells = round(2.0 * end / float(round_epsilon))
    return _ended(rounds * one_round, end, cells)


def _ended(profile: PrivacyProfile, end: float, cells: int) -> PrivacyProfile:
    """Return what a symmetric profile and a pure guarantee prove together.

    Parameters
    ----------
    profile : PrivacyProfile
        A bound with corners at multiples of ``end / cells``.
    end : float
        The epsilon of the pure guarantee.
    cells : int
        Number of cells of the grid from 0 to the end.
    """
    step = end / cells
    half = profile.delta(step * np.arange(cells + 1))
    # That delta(end) = 0 in both directions is all that a pure guarantee says; its curve is
    # the chord between these two points, and so above the convex hull.
    half[-1] = 0.0
    renyi = _RenyiLeast((RenyiOfPure(end), renyi_of(profile)))
    return profile_from_halves(Halves(step, half, half), renyi)


@dataclass(frozen=True)
class _RenyiLeast(RenyiCurve):
    """The smallest of several bounds on one release."""

    parts: tuple[RenyiCurve, ...]

    def at(self, orders: FloatArray) -> FloatArray:
        """Return the smallest of the parts."""
        return np.asarray(np.min([part.at(orders) for part in self.parts], axis=0))
