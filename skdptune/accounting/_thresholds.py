"""Privacy costs of publishing which scores pass a noisy threshold.

"Sensitivity" is the largest change of any score when one record is added or removed. Scores are
*monotone* if one record changes all of them in the same direction.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from skdptune._validation import check_flag, check_integer, check_real
from skdptune.accounting._budget_filter import BudgetFilter
from skdptune.accounting._curves import MOST_POINTS, Halves
from skdptune.accounting._loss_distribution import LARGEST_LOSS
from skdptune.accounting._profile import Numbers, PrivacyProfile
from skdptune.accounting._renyi import RenyiOfParts, RenyiOfPure


def above_threshold(epsilon_threshold: float, epsilon_queries: float) -> PrivacyProfile:
    """Return the profile of one search for a score above a threshold, which is pure.

    The mechanism draws one threshold noise ``Laplace(sensitivity / epsilon_threshold)``. It goes
    through the scores one by one, and adds fresh noise ``Laplace(2 * sensitivity /
    epsilon_queries)`` to each. It publishes a miss while the sum is below the noisy threshold, and
    stops after publishing the first hit. For monotone scores, ``Laplace(sensitivity /
    epsilon_queries)`` is enough. The mechanism is ``epsilon_threshold +
    epsilon_queries``-differentially private for data sets that differ in one record, added or
    removed.

    Parameters
    ----------
    epsilon_threshold, epsilon_queries : float
        Positive, with a sum of at most 600.

    Returns
    -------
    PrivacyProfile

    See Also
    --------
    sparse_vector : Allows any number of hits.

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

    The mechanism draws one threshold noise ``Laplace(sensitivity / epsilon_threshold)`` and never
    draws it again. It goes through the scores one by one, and adds fresh noise ``Laplace(2 *
    max_hits * sensitivity / epsilon_queries)`` to each. It publishes whether the sum reaches the
    noisy threshold, and stops after hit number `max_hits`. For monotone scores, ``Laplace(max_hits
    * sensitivity / epsilon_queries)`` is enough. The mechanism is ``epsilon_threshold +
    epsilon_queries``-differentially private for data sets that differ in one record, added or
    removed.

    Scores and noise-free thresholds may depend on earlier published results. Misses are free. The
    noisy scores of hits are *not* published.

    Parameters
    ----------
    epsilon_threshold, epsilon_queries : float
        Positive, with a sum of at most 600. `sparse_vector_split` returns the best ratio.
    max_hits : int
        Number of hits after which the mechanism stops. It determines the noise, not the cost.

    Returns
    -------
    PrivacyProfile

    Notes
    -----
    Theorem N3.

    Lyu, Su and Li (2017), Algorithm 7, without the optional release of the hits' scores. A miss
    costs nothing beyond the threshold's shift, a hit costs ``epsilon_queries / max_hits``.

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
        Whether one record changes all scores in the same direction.

    Returns
    -------
    epsilon_threshold, epsilon_queries : float
        Their sum is exactly `epsilon`.

    Notes
    -----
    The ratio ``1 : (2 * max_hits)**(2/3)``, or ``1 : max_hits**(2/3)`` for monotone scores,
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
    r"""Return the profile of a doubling threshold search that a budget or a round limit ends.

    In each round, the mechanism draws a fresh threshold noise ``Laplace(2 * sensitivity /
    round_epsilon)``. It goes through the candidates with fresh noise ``Laplace(4 * sensitivity /
    round_epsilon)`` for each. It publishes the first one whose noisy score reaches the noisy
    threshold (a hit), or that there is none (a miss). It chooses the next threshold, and the order
    of the next round, from the results published so far. With a `budget`, it continues only while
    `BudgetFilter` allows this; with `max_rounds`, it makes at most this many rounds. It may stop
    earlier, based on published results. The profile holds, in both directions, for data sets that
    differ in one record, added or removed.

    Parameters
    ----------
    round_epsilon : float
        Cost of a hit, in (0, 600]; a miss costs half of it.
    budget : float, optional
        Budget of the filter, at least `round_epsilon`.
    max_rounds : int, optional
        Largest number of rounds. At least one of the two must be given.

    Returns
    -------
    PrivacyProfile

    See Also
    --------
    BudgetFilter : The filter, and why a stop may depend on the transcript.

    Notes
    -----
    Theorem N4.

    The search is Algorithm 1 of Ding, Wu, Xu and Pan and of Ding and Wu. They charge the actual
    rounds, whose number depends on the data. Here, everything is charged beforehand.

    A round is `above_threshold` with half of `round_epsilon` for the threshold and half for the
    candidates. A limit of ``T`` rounds costs as much as ``T`` pure releases (Kairouz, Oh and
    Viswanath 2015). A budget bounds the cost by the largest multiple of ``round_epsilon / 2``
    within it. It also limits the search to ``N - 1`` rounds, with ``N = floor(2 budget /
    round_epsilon)``. All bounds hold for one mechanism, hence so does the smallest at every
    epsilon.

    If a search is known to end sooner, `max_rounds` may charge it for fewer rounds. Algorithm 1
    starts with step 1, doubles it at a hit, halves it at a miss, and ends when it falls below 1.
    If the first round is a miss, it is the last one. Misses exceed hits by at most one, at the
    end. With a budget, it therefore makes at most ``1 + floor(2 (N - 2) / 3)`` rounds.

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
    # Composition of this many rounds exceeds the memory; the budget is a bound in any case.
    if rounds > MOST_POINTS:
        return PrivacyProfile.pure(end)
    cells = round(2.0 * end / float(round_epsilon))
    return PrivacyProfile._of(_ended, rounds * one_round, end, cells)


def _ended(profile: PrivacyProfile, end: float, cells: int) -> Numbers:
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
    # A pure guarantee only states that delta(end) = 0 in both directions; its curve is the chord
    # between these two points, and therefore above the convex hull.
    half[-1] = 0.0
    renyi = RenyiOfParts(np.min, (RenyiOfPure(end), profile._renyi))
    return Halves(step, half, half), renyi
