"""The doubling threshold search: ever better candidates, by a threshold with doubling steps."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdptune._running_budget import RunningBudget, one_at_a_time
from skdptune._validation import check_integer, check_option, check_private_numbers, check_real
from skdptune.accounting import (
    BudgetFilter,
    PrivacyProfile,
    UnreachableBudgetError,
    calibrate,
    doubling_threshold,
    sparse_vector,
    sparse_vector_split,
)
from skdptune.accounting._shared import LARGEST_LOSS
from skdptune.mechanisms._noise import nonprivate_profile
from skdptune.mechanisms._randomness import RandomState, as_generator, standard_laplace

_FINEST = 1e-9
# A level that is complete up to rounding counts as complete: (1 - 0.7) / 0.1 is 3 levels.
_ROUNDING = 1.0 - 1e-12


class DoublingThreshold(RunningBudget):
    r"""Search for a good candidate by a noisy threshold on the utility, raised in doubling steps.

    Each round asks whether any candidate is `step` levels better than the current utility. It
    publishes the first candidate that is, according to a noisy comparison. A hit raises the
    current utility and doubles the step; a miss halves the step. The object stores no candidates:
    pass their utilities to `propose` until the search is `finished`, the same ones or others in
    each round.

    Everything that the object shows, over the whole search, is differentially private with
    `profile`, for data sets that differ in one record, added or removed. The cost depends neither
    on the number of candidates nor on the number of rounds. There are two conditions. One record
    changes no utility by more than `sensitivity`. The candidates of a round, and their order, are
    fixed, random, or determined by earlier rounds, but never by utilities.

    Parameters
    ----------
    sensitivity : float
        Largest change of a single utility when one record is added or removed.
    granularity : float, default=0.01
        Height of a level, which is the smallest gain that counts.
    initial_utility : float, default=0.0
        Start of the search, in [0, 1); must be known without looking at the data.
    noise : {"sparse", "per-round"} or None, default="sparse"
        "sparse" draws the threshold's noise once and stops after `max_hits` hits; misses are free.
        "per-round" draws all noise again in each round, as in the papers; each round is charged.
        None adds no noise and gives no privacy: for research.
    epsilon : float
        Budget of the whole search, in (0, 600]. Not used without noise.
    delta : float, default=0.0
        Failure probability of the budget. "sparse" does not need it.
    max_rounds : int, optional
        Largest number of rounds. For "per-round" noise, fewer rounds need less noise. None means
        the largest number of rounds that the search can take without noise.
    max_hits : int, optional
        Largest number of hits. For "sparse" noise, fewer hits need less noise. None means the
        largest number of hits that the search can have without noise.
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState
        None uses the operating system's entropy; a seed makes the noise reproducible.

    Attributes
    ----------
    finished : bool
        Whether the search is over: the step is 0, the utility has reached 1, the limit of rounds
        or hits is reached, or the next round might not fit into the budget.
    utility, step : float, int
        State of the search.
    threshold : float
        Threshold of the next round, without its noise.
    trace : tuple of ThresholdRound
        The rounds so far.
    winner : tuple of int, or None
        Round and index of the last hit; rounds are counted from 0.
    profile : PrivacyProfile
        Privacy cost of the whole search, known beforehand.
    max_rounds, max_hits : int or None
        The limits that apply.
    threshold_scale, candidate_scale : float
        Scales of the Laplace noises.
    granularity, redraws : float, bool
        Height of a level, and whether the threshold's noise is drawn again in every round.

    See Also
    --------
    skdptune.accounting.doubling_threshold : Computes the cost of "per-round" noise.
    skdptune.accounting.sparse_vector : Computes the cost of "sparse" noise.

    Notes
    -----
    Theorem D0.

    Algorithm 1 of Ding, Wu, Xu and Pan (*Constant-overhead Differentially Private Hyperparameter
    Tuning*) and of Ding and Wu (*Revisiting Hyperparameter Tuning with Differential Privacy*). It
    starts with ``u = u_0`` and ``step = 1``. A round compares ``u + step * g`` plus threshold
    noise with each utility plus separate noise. At the first utility that reaches it, ``u += step
    * g`` and ``step *= 2``; if there is none, ``step //= 2``. The papers' search ends at step 0;
    this one also ends at ``u >= 1``, as the second paper's proof assumes. The papers charge the
    actual rounds, whose number depends on the data. Here, the cost is fixed beforehand.

    With "per-round" noise and cost ``e`` of a round, the scales are ``2 * sensitivity / e`` for
    the threshold and ``4 * sensitivity / e`` for candidates; a `BudgetFilter` stops the search.
    The cost of a round is the largest one with which no search is cut short that would end within
    `max_rounds` rounds without the filter. Without delta, it is ``2 epsilon / (2 + ceil(3
    (max_rounds - 1) / 2))``. With "sparse" noise, the scales are ``sensitivity / a`` and ``2 *
    max_hits * sensitivity / b``, with ``(a, b) = sparse_vector_split(epsilon, max_hits)``.

    *Floating point.* Noise that is published as a float reveals low bits of the value to which it
    is added (Mironov 2012). Here, only the outcomes of comparisons are published, so only their
    probabilities matter. With noise from the operating system's entropy, every tail probability
    and its complement have a relative error of about 1e-15, also far out; rounding the sums adds
    about ``1e-16 / scale``. Over ``n`` comparisons, the probability of any outcome changes by at
    most a factor of about ``1 +- n * 1e-15 * (1 + 1 / scale)``: 1e-9 of epsilon at a million
    comparisons with ordinary scales. The profile does not include this. Seeded noise is NumPy's,
    and has no such guarantee.

    The threshold's noise is secret during the search, and the remaining budget can only be spent
    once. So the object cannot be copied, pickled, or used in a forked process.

    Examples
    --------
    >>> from skdptune.mechanisms import DoublingThreshold
    >>> search = DoublingThreshold(sensitivity=0.001, epsilon=1.0, random_state=0)
    >>> while not search.finished:
    ...     found = search.propose([0.31, 0.62, 0.87, 0.55])
    >>> search.winner
    (16, 2)
    >>> search.profile.epsilon(0)
    1.0
    >>> search.trace[2]
    ThresholdRound(utility=0.03, step=4, hit=True)
    """

    _instead = "It also holds secret noise. Its trace and winner may be kept."

    def __init__(
        self,
        *,
        sensitivity: float,
        granularity: float = 0.01,
        initial_utility: float = 0.0,
        noise: str | None = "sparse",
        epsilon: float | None = None,
        delta: float = 0.0,
        max_rounds: int | None = None,
        max_hits: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        super().__init__()
        self._height = check_real(granularity, name="granularity", lower=_FINEST, upper=1.0)
        self._start = check_real(
            initial_utility, name="initial_utility", lower=0.0, upper=1.0, upper_open=True
        )
        # Number of levels from the start to utility 1.
        self._levels = max(1, math.ceil((1.0 - self._start) / self._height * _ROUNDING))
        self._plan = plan_threshold_search(
            noise,
            sensitivity=sensitivity,
            epsilon=epsilon,
            delta=delta,
            levels=self._levels,
            max_rounds=max_rounds,
            max_hits=max_hits,
        )
        self._noise = noise
        self._generator = as_generator(random_state)
        # To be queried before each round, if its noise is paid for separately.
        plan, self._filter = self._plan, None
        if plan.round_epsilon is not None:
            self._filter = BudgetFilter(plan.round_epsilon, plan.budget, plan.max_rounds)
        self._lasting_noise: float | None = None
        # The state, which depends only on hits and misses.
        self._level, self._step, self._hits = 0, 1, 0
        self._trace: tuple[ThresholdRound, ...] = ()
        self._winner: tuple[int, int] | None = None

    @one_at_a_time
    def propose(self, utilities: ArrayLike, order: ArrayLike | None = None) -> int | None:
        """Make one round over a batch of candidates.

        Parameters
        ----------
        utilities : array-like of shape (n_candidates,)
            Private true utilities. They are clipped to [0, 1]; NaN counts as 0.
        order : array-like of shape (n_candidates,), optional
            Indices in the order in which candidates are compared; None starts with the first one.
            It must not depend on utilities.

        Returns
        -------
        int or None
            Index of the first candidate that passed; None for a miss.
        """
        if self.finished:
            raise RuntimeError(
                "propose must be called while finished is False; got a call after the end, at "
                f"round {len(self.trace)}. Another search needs a new object and a new budget."
            )
        values = _bounded(utilities)
        ranking = _checked_order(order, values.size)
        noise = self._laplace(self._plan.candidate_scale, values.size)
        passes = values[ranking] + noise >= self._noisy_threshold()
        place = int(np.argmax(passes))
        found = int(ranking[place]) if passes[place] else None
        self._record(found)
        return found

    def _noisy_threshold(self) -> float:
        if self._plan.redraws:
            return self.threshold + float(self._laplace(self._plan.threshold_scale, 1)[0])
        if self._lasting_noise is None:
            self._lasting_noise = float(self._laplace(self._plan.threshold_scale, 1)[0])
        return self.threshold + self._lasting_noise

    def _laplace(self, scale: float, count: int) -> NDArray[np.float64]:
        if scale == 0.0:
            return np.zeros(count)
        return scale * standard_laplace(count, self._generator)

    def _record(self, found: int | None) -> None:
        hit = found is not None
        if self._filter is not None:
            self._filter.record(hit)
        rounds = len(self._trace)
        self._trace = (*self._trace, ThresholdRound(self.utility, self._step, hit))
        if found is not None:
            self._winner = (rounds, found)
            self._hits += 1
            self._level += self._step
            self._step *= 2
        else:
            self._step //= 2
        if self.finished:
            self._lasting_noise = None

    @property
    def finished(self) -> bool:
        """Whether the search is over."""
        # Nothing more can be gained.
        if self._step == 0 or self._level >= self._levels:
            return True
        if self.max_rounds is not None and len(self.trace) >= self.max_rounds:
            return True
        if self.max_hits is not None and self._hits >= self.max_hits:
            return True
        return self._filter is not None and not self._filter.may_continue

    @property
    def granularity(self) -> float:
        """Height of a level."""
        return self._height

    @property
    def redraws(self) -> bool:
        """Whether the threshold's noise is drawn again in every round."""
        return self._plan.redraws

    @property
    def utility(self) -> float:
        """The utility reached so far; at most 1."""
        # A product with an integer, so that rounding errors of levels do not accumulate.
        return min(self._start + self._level * self._height, 1.0)

    @property
    def step(self) -> int:
        """Number of levels that the next round tries to gain at once; 0 at the end."""
        return self._step

    @property
    def threshold(self) -> float:
        """Threshold of the next round, without its noise."""
        return self._start + (self._level + self._step) * self._height

    @property
    def trace(self) -> tuple[ThresholdRound, ...]:
        """The rounds so far."""
        return self._trace

    @property
    def winner(self) -> tuple[int, int] | None:
        """Round and index of the last hit; None without a hit."""
        return self._winner

    @property
    def profile(self) -> PrivacyProfile:
        """Privacy cost of the whole search, whatever happens in it."""
        return self._plan.profile

    @property
    def max_rounds(self) -> int | None:
        """Largest number of rounds; None if other limits end the search."""
        return self._plan.max_rounds

    @property
    def max_hits(self) -> int | None:
        """Largest number of hits; None if other limits end the search."""
        return self._plan.max_hits

    @property
    def threshold_scale(self) -> float:
        """Scale of the threshold's Laplace noise."""
        return self._plan.threshold_scale

    @property
    def candidate_scale(self) -> float:
        """Scale of the candidates' Laplace noise."""
        return self._plan.candidate_scale

    def __repr__(self) -> str:
        """Return the state of the search as text; all of it is public."""
        return (
            f"DoublingThreshold(noise={self._noise!r}; rounds={len(self.trace)}, "
            f"utility={self.utility:g}, step={self.step}, finished={self.finished})"
        )


def doubling_threshold_release(
    utilities: ArrayLike, *, order: ArrayLike | None = None, **settings: Any
) -> tuple[int | None, tuple[ThresholdRound, ...]]:
    """Return the final candidate of a doubling threshold search, and its rounds.

    The result is differentially private with the `profile` of a `DoublingThreshold` with the same
    settings, for data sets that differ in one record, added or removed.

    Parameters
    ----------
    utilities : array-like of shape (n_candidates,)
        Private true utilities. They are clipped to [0, 1]; NaN counts as 0.
    order : array-like of shape (n_candidates,), optional
        Indices in the order in which candidates are compared in every round.
    **settings
        Keyword arguments of `DoublingThreshold`.

    Returns
    -------
    winner : int or None
        Index of the last hit; None without a hit.
    trace : tuple of ThresholdRound

    Examples
    --------
    >>> from skdptune.mechanisms import doubling_threshold_release
    >>> winner, trace = doubling_threshold_release(
    ...     [0.3, 0.9, 0.5], sensitivity=0.001, epsilon=1.0, noise="per-round", random_state=0
    ... )
    >>> winner, len(trace)
    (1, 23)
    """
    search = DoublingThreshold(**settings)
    while not search.finished:
        search.propose(utilities, order)
    return (None if search.winner is None else search.winner[1]), search.trace


def _bounded(utilities: ArrayLike) -> NDArray[np.float64]:
    """Return utilities in [0, 1]; error messages show none of them."""
    values = check_private_numbers(utilities, name="utilities")
    if values.ndim != 1 or values.size == 0:
        raise ValueError(
            "utilities must be one-dimensional and not empty; got an array of shape "
            f"{values.shape}."
        )
    return np.clip(np.where(np.isnan(values), 0.0, values), 0.0, 1.0)


def _checked_order(order: ArrayLike | None, count: int) -> NDArray[np.intp]:
    if order is None:
        return np.arange(count)
    ranking = np.asarray(order)
    if ranking.dtype.kind not in "iu":
        raise TypeError(f"order must be an array of indices; got dtype {ranking.dtype}.")
    if not np.array_equal(np.sort(ranking, axis=None), np.arange(count)) or ranking.ndim != 1:
        raise ValueError(f"order must hold every index below {count} once; got something else.")
    return ranking.astype(np.intp)


class ThresholdRound(NamedTuple):
    """One round of a doubling threshold search, in the form in which it may be published.

    Attributes
    ----------
    utility : float
        The utility reached before the round.
    step : int
        Number of levels that the round tried to gain at once.
    hit : bool
        Whether a candidate passed the noisy threshold.

    Examples
    --------
    >>> from skdptune.mechanisms import ThresholdRound
    >>> utility, step, hit = ThresholdRound(0.25, 4, True)
    >>> step
    4
    """

    utility: float
    step: int
    hit: bool


# The noise for a budget, and when the search must stop -----------------------------------

# Everything here depends only on public settings, before the search.

# Keeps calibration away from both ends, where rounding might reject values that fit.
_MARGIN = 1.0 - 1e-6
_LEAST_EPSILON = 1e-100


@dataclass(frozen=True)
class ThresholdPlan:
    """Noise, limits and privacy cost of a doubling threshold search.

    Attributes
    ----------
    threshold_scale, candidate_scale : float
        Scales of the Laplace noises.
    redraws : bool
        Whether the threshold noise is drawn again in every round.
    max_rounds, max_hits : int or None
        Limits after which the search stops.
    round_epsilon, budget : Fraction or None
        Settings of the filter, if the noise is drawn per round.
    profile : PrivacyProfile
        Privacy cost of the search, whatever happens in it.
    """

    threshold_scale: float
    candidate_scale: float
    redraws: bool
    max_rounds: int | None
    max_hits: int | None
    round_epsilon: Fraction | None
    budget: Fraction | None
    profile: PrivacyProfile


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
    """Return the plan of a search over a number of utility levels; see `DoublingThreshold`."""
    # Theorem D0: the search is charged beforehand, by its plan.
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
    # Parts of epsilon must not be rounded to zero.
    budget = check_real(epsilon, name="epsilon", lower=_LEAST_EPSILON, upper=LARGEST_LOSS)
    if noise == "sparse":
        return _sparse(influence, budget, rounds, hits or most_hits(levels))
    cap = rounds or 2 * most_hits(levels) + 1
    if hits is not None:
        # If a search continues, misses do not outnumber hits before its last hit.
        cap = min(cap, 2 * hits - 1)
    return _per_round(influence, budget, failure, cap, hits)


def most_hits(levels: int) -> int:
    """Return the largest number of hits of a search without noise over a number of levels.

    Notes
    -----
    Ding, Wu, Xu and Pan, Lemma 1: let the best utility be ``n = 2**k - 1 + r`` levels up, with ``r
    < 2**k``. Then the search hits ``k`` times, and once more for every one in the binary digits of
    ``r``. It misses once more than it hits, so the number of rounds is twice the number of hits
    plus one (the lemma counts one miss less). Up to ``n`` levels, the maximum is attained at ``k``
    or ``k - 1``.
    """
    doublings = (levels + 1).bit_length() - 1
    rest = levels + 1 - (1 << doublings)
    # No number up to r has more binary ones than the largest 2**j - 1 up to r.
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
    """Return how many halves of a round's cost a search may need within a number of rounds.

    Notes
    -----
    A search that ends at step 0 after ``2 h + 1`` rounds has ``h`` hits. Before its last round, it
    has used ``3 h`` halves, and the filter requires two more. With this number, the filter does
    not cut short any search that would end within the rounds without it.
    """
    return 2 + math.ceil(3 * (rounds - 1) / 2)


def _round_epsilon(budget: float, failure: float, rounds: int) -> Fraction:
    """Return the largest cost of a round that keeps the search within the budget."""
    halves = _half_rounds(rounds)
    # Numbers are read as decimals, as in the filter.
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
