"""Search with a doubling threshold, either with given candidates or driven by any optimiser."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from skdptune._docstrings import with_shared_text
from skdptune._formatting import shown, shown_percent
from skdptune._running_budget import one_at_a_time
from skdptune._validation import check_integer, check_option, check_real
from skdptune.accounting import PrivacyProfile
from skdptune.mechanisms import DoublingThreshold, ThresholdRound
from skdptune.model_selection._cost import Candidates, Layout, copied
from skdptune.model_selection._docstrings import SHARED_TEXT
from skdptune.model_selection._running import noise_random, spawned
from skdptune.model_selection._strategies._partitions import (
    Partitions,
    PartitionStrategy,
)
from skdptune.model_selection._strategies._running_search import RunningSearch, SearchSession
from skdptune.model_selection._strategies._strategy import Choice, Plan, PlanRequest

NOISES = ("sparse", "per-round")
# Share of delta reserved for the failure probability of a search with noise per round.
_DELTA_SHARE = 0.1
# Heights of a level from which "auto" takes the least that noise does not hide.
_GRANULARITIES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.33)
# Deviation of scores that are spread evenly over their range: noise of this size hides them.
_SPREAD = 1.0 / math.sqrt(12.0)
# Probability that `best_score_` is above the winner's score on the partitions.
_ERROR = 0.05


@with_shared_text(SHARED_TEXT)
@dataclass(eq=False, repr=False, kw_only=True)
class ThresholdRounds(PartitionStrategy):
    """Search in rounds, through noise, for a candidate that is a step better than the best so far.

    The strategy of `DoublingThresholdSearchCV`, with the options that most users do not need.

    Parameters
    ----------
    noise : {"sparse", "per-round"}, default="sparse"
        "sparse" draws the threshold's noise once and pays only for hits; "per-round" draws all
        noise anew and pays for each round, as the papers do.
    granularity : "auto" or float, default="auto"
        The smallest gain in utility that counts; a utility is a score scaled to [0, 1]. A coarser
        granularity means fewer hits to pay for, and therefore less noise. "auto" is the least of
        0.01, 0.02, 0.05, 0.1, 0.2 and 0.33 that is not below the deviation of a comparison.
    initial_utility : float, default=0.0
        Utility that can be reached without the data, such as that of guessing.
    max_rounds, max_hits : int, optional
        Largest number of rounds and of hits; fewer mean less noise ("per-round": rounds, "sparse":
        hits). The default is the number that a search without noise needs.
    batch_size : int, default=16
        Number of candidates per round that are drawn from distributions.
    n_partitions : "auto" or int, default="auto"
        Number of disjoint partitions. "auto" follows from the budget (at least 5 / epsilon, as the
        papers advise) and from the public number of records.
    tuning_estimator : estimator, optional
        Surrogate that is trained on the partitions in place of the search's estimator, with the
        same searched parameters. It need not be private. The default is the estimator with the
        noise that the final fit will have relative to its signal.
    selection_epsilon : float, optional
        Cost of the threshold search; by default a quarter of the total, or all of it with
        ``refit=False``.
    {of_every_strategy}

    See Also
    --------
    DoublingThresholdSearchCV : The search.

    Notes
    -----
    Theorem D0.

    Examples
    --------
    >>> from skdptune.linear_model import DPLogisticRegression
    >>> from skdptune.model_selection import DoublingThresholdSearchCV, ThresholdRounds
    >>> search = DoublingThresholdSearchCV(
    ...     DPLogisticRegression(), {"C": [0.01, 1.0]}, epsilon=1.0, delta=1e-6,
    ...     strategy=ThresholdRounds(granularity=0.1),
    ... )
    >>> search.plan(20_000, 5).row.expected_fits
    2.0
    """

    kinds = ("grid", "distribution")

    noise: str = "sparse"
    granularity: Any = "auto"
    initial_utility: float = 0.0
    max_rounds: int | None = None
    max_hits: int | None = None
    batch_size: int = 16
    n_partitions: Any = "auto"
    tuning_estimator: Any = None
    selection_epsilon: float | None = None
    diagnostics: bool = False
    error_score: str = "worst"
    pre_dispatch: Any = "2*n_jobs"

    def check(self, search: Any) -> None:
        """Validate the parameters."""
        super().check(search)
        check_option(self.noise, name="noise", options=NOISES)
        check_integer(self.batch_size, name="batch_size", lower=1)
        if not (isinstance(self.granularity, str) and self.granularity == "auto"):
            check_real(self.granularity, name="granularity", lower=0.0, lower_open=True, upper=1.0)

    # Cost -------------------------------------------------------------------------------------

    def choice_cost(
        self, request: PlanRequest, layout: Layout, partitions: Partitions
    ) -> tuple[PrivacyProfile, PrivacyProfile]:
        """Return the cost of the rounds, the same for training records and for scoring records."""
        profile = self.rounds(partitions, request.delta).profile
        return profile, profile

    def note(self, request: PlanRequest) -> str:
        """Return the note for the report."""
        return f"doubling threshold, {self.noise} noise"

    def rounds(
        self, partitions: Partitions, delta: float, random: Any = None
    ) -> DoublingThreshold:
        """Return a threshold search whose noise covers training records and scoring records."""
        # Theorem D1: the noise follows from the sensitivity, for any height of a level.
        if self.granularity != "auto":
            return self._rounds(partitions, delta, self.granularity, random)
        for height in _GRANULARITIES:
            made = self._rounds(partitions, delta, height, random)
            if deviation_of(made) <= height:
                break
        return made

    def _rounds(
        self, partitions: Partitions, delta: float, granularity: float, random: Any
    ) -> DoublingThreshold:
        return DoublingThreshold(
            sensitivity=partitions.sensitivity,
            granularity=granularity,
            initial_utility=self.initial_utility,
            noise=self.noise,
            epsilon=partitions.epsilon,
            delta=_DELTA_SHARE * delta if self.noise == "per-round" else 0.0,
            max_rounds=self.max_rounds,
            max_hits=self.max_hits,
            random_state=random,
        )

    def number_of_fits(self, plan: Plan) -> tuple[float, float]:
        """Return the expected and largest number of fits; fits on k partitions count as one."""
        if not plan.candidates.drawn:
            fits = float(len(plan.candidates.grid()))
            return fits, fits
        fits = float(most_rounds(self.rounds(plan.model.solved, plan.delta)) * self.batch_size)
        return fits, fits

    # What the choice can be worth -------------------------------------------------------------

    def keeps(self, plan: Plan) -> str:
        """Return how far below the best candidate the winner may score."""
        rounds = self.rounds(plan.model.solved, plan.delta)
        deviation = min(deviation_of(rounds), 1.0)
        below = min(rounds.granularity + 2.0 * deviation, 1.0)
        return (
            f"The winner may score {shown_percent(below)} of the range of a score below the best "
            f"candidate, since a comparison deviates by {shown_percent(deviation)} and a level is "
            f"{shown_percent(rounds.granularity)}. {super().keeps(plan)}"
        )

    def advice(self, plan: Plan) -> str:
        """Return a warning that noise hides which candidate is better, if that is so."""
        deviation = deviation_of(self.rounds(plan.model.solved, plan.delta))
        if deviation < _SPREAD:
            return ""
        return (
            "The winner can hardly be distinguished from a candidate chosen at random, since a "
            f"comparison deviates by {shown_percent(min(deviation, 1.0))} of the range of a score "
            "or more. DPGridSearchCV chooses from a list with less noise; more records in more "
            "parts (n_partitions) help, too."
        )

    # Run and choose ---------------------------------------------------------------------------

    def choose(self, run: RunningSearch) -> Choice:
        """Propose the grid, or draws, until the session is finished."""
        advice = self.advice(run.plan)
        if advice:
            warnings.warn(advice, UserWarning, stacklevel=2)
        session = DoublingThresholdSession(run)
        batches = batches_of(run.plan.candidates, self.batch_size, run.streams.draw)
        while not session.finished:
            session.propose(next(batches))
        return session.choice()


class DoublingThresholdSession(SearchSession):
    """A threshold search in progress, to which your own loop or optimiser proposes candidates.

    `DoublingThresholdSearchCV.start` makes one. Each call of `propose` scores a batch of
    candidates on disjoint partitions of the data and makes one round. It returns the first
    candidate that passed the noisy threshold, or None. `finish` trains the last candidate that
    passed, and returns the fitted search.

    The cost is that of the search, whichever candidates are proposed and however many rounds are
    made. It is owed from the first `propose` on, whether or not the session is finished.
    Condition: candidates are chosen by the values that the session has returned, by chance or by
    public knowledge, and by nothing else that was learned from the data. Threads may share a
    session and take turns; a forked process may not use it.

    Attributes
    ----------
    finished : bool
        Whether the search is over; `finish` may be called earlier.
    best_params : dict or None
        The last candidate that passed.
    utility, step : float, int
        State of the search: the scaled score reached, and the number of levels by which the next
        candidate must exceed it.
    trace : tuple of ThresholdRound
        The rounds so far.
    privacy : PrivacyReport
        The cost of the whole search, as a report.

    See Also
    --------
    DoublingThresholdSearchCV : The search itself; its `fit` drives a session for you.

    Notes
    -----
    Theorem D3.

    A scored candidate keeps its utility, so proposing it again costs no fits. For parameters that
    do not influence the cost, candidates may have values that the search was not given. For
    parameters that influence the cost, they may not.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skdptune.linear_model import DPLogisticRegression
    >>> from skdptune.model_selection import DoublingThresholdSearchCV, ThresholdRounds
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 3))
    >>> y = X[:, 0] + 0.3 * rng.normal(size=2000) > 0
    >>> session = DoublingThresholdSearchCV(
    ...     DPLogisticRegression(solver="sgd", epochs=2), {"C": [0.1]}, epsilon=2.0, delta=1e-5,
    ...     strategy=ThresholdRounds(tuning_estimator=LogisticRegression(), granularity=0.1),
    ...     random_state=0,
    ... ).start(X, y)
    >>> centre = 0.1
    >>> while not session.finished:
    ...     batch = [{"C": centre * 10 ** rng.normal()} for _ in range(2)]
    ...     winner = session.propose(batch)
    ...     centre = winner["C"] if winner else centre
    >>> search = session.finish()
    >>> search.best_params_ == session.best_params
    True
    >>> search.privacy_.epsilon
    2.0
    """

    _instead = (
        "It also holds records and secret noise. The search that finish returns may be kept."
    )

    def __init__(self, running: RunningSearch) -> None:
        super().__init__(running)
        strategy = running.strategy
        if not isinstance(strategy, ThresholdRounds):
            raise TypeError(f"strategy must be ThresholdRounds; got {shown(strategy)}.")
        plan, random = running.plan, noise_random(running.streams.pick)
        self._rounds = strategy.rounds(plan.model.solved, plan.delta, random)
        # A record belongs to one partition, the same in all rounds, with or without a seed.
        seeds = running.streams.random_split
        self._places = np.random.SeedSequence() if seeds is None else seeds.spawn(1)[0]
        self._known: dict[Any, tuple[dict[str, Any], float]] = {}
        # Keep the proposed objects, so that no other object gets the id of a value.
        self._given: list[dict[str, Any]] = []
        self._first: dict[str, Any] | None = None
        self._best: dict[str, Any] | None = None
        self._largest_batch = 1

    @one_at_a_time
    def propose(self, candidates: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
        """Make one round over a batch of candidates.

        Parameters
        ----------
        candidates : sequence of dict
            From parameter names to values, in the order in which candidates are compared.

        Returns
        -------
        dict or None
            The first candidate that passed; None for a miss.
        """
        self._check_open()
        if self.finished:
            raise RuntimeError(
                f"propose must be called while finished is False; got a call after the end, at "
                f"round {len(self.trace)}. Call finish."
            )
        offered = _listed(candidates)
        keys = [_key(candidate) for candidate in offered]
        fresh = {k: c for k, c in zip(keys, offered, strict=True) if k not in self._known}
        self._check_costs(list(fresh.values()))
        # Copies: the caller may not change a candidate after its cost was checked.
        self._given += fresh.values()
        self._running.mark_read()
        self._score({key: copied(given) for key, given in fresh.items()})
        if self._first is None:
            self._first = self._known[keys[0]][0]
        self._largest_batch = max(self._largest_batch, len(keys))
        found = self._rounds.propose([self._known[key][1] for key in keys])
        if found is None:
            return None
        self._best = self._known[keys[found]][0]
        return copied(self._best)

    @one_at_a_time
    def finish(self) -> Any:
        """Train the last candidate that passed on all records, and return the fitted search.

        If no candidate passed, train the first one that was proposed. If none was proposed, train
        the first one of the search. Neither choice depends on the data.

        Returns
        -------
        DoublingThresholdSearchCV
            The search that was started, now fitted.
        """
        return self._finished()

    @one_at_a_time
    def choice(self) -> Choice:
        """Return the winner so far, in the form that the search template expects."""
        # Theorem D4: the trace is paid for.
        running, scorer = self._running, self._running.scorer
        winner = self._best if self._best is not None else self._first
        if winner is None:
            winner = next(batches_of(running.plan.candidates, 1, running.streams.draw))[0]
        least = 0.0 if self._best is None else self._least_utility()
        score = scorer.lower + least * (scorer.upper - scorer.lower)
        details = {
            "candidates": [candidate for candidate, _ in self._known.values()],
            "utilities": np.array([utility for _, utility in self._known.values()]),
        }
        row = {"params": winner, "score": score}
        shown = {"trace_": self.trace, "granularity_": self._rounds.granularity}
        return Choice(winner, score, None, [row], diagnostics=details, attributes=shown)

    def _least_utility(self) -> float:
        """Return the utility that the winner exceeds with a probability of 95 %."""
        # Theorem D4: two one-sided bounds, on the noise of thresholds and of candidates.
        rounds, most = self._rounds, most_rounds(self._rounds)
        noise = rounds.threshold_scale * math.log((most if rounds.redraws else 1) / _ERROR)
        noise += rounds.candidate_scale * math.log(most * self._largest_batch / _ERROR)
        return max(self.utility - noise, 0.0)

    def _check_costs(self, candidates: list[dict[str, Any]]) -> None:
        """Raise unless the plan of the search covers the costs of candidates."""
        model, setting = self._running.plan.model, self._running.plan.cost.setting
        surrogate = self._strategy.tuning_estimator
        model.fit_costs.check_proposed(
            candidates, sets_budget=setting is not None, surrogate=surrogate
        )
        model.fit_costs.check(candidates, setting, model.final_size)

    def _score(self, fresh: dict[Any, dict[str, Any]]) -> None:
        """Score the candidates that have no utility yet, and keep their utilities."""
        # Theorem D1: a candidate keeps its utility.
        if not fresh:
            return
        utilities = self._strategy.utilities(
            self._running,
            list(fresh.values()),
            np.random.default_rng(self._places),
            spawned(self._running.streams.runs, len(fresh)),
        )
        for (key, candidate), utility in zip(fresh.items(), utilities, strict=True):
            self._known[key] = (candidate, float(utility))

    @property
    def finished(self) -> bool:
        """Whether the search is over."""
        return self._rounds.finished

    @property
    def best_params(self) -> dict[str, Any] | None:
        """The last candidate that passed; None if none did."""
        return None if self._best is None else copied(self._best)

    @property
    def utility(self) -> float:
        """The scaled score that was reached."""
        return self._rounds.utility

    @property
    def step(self) -> int:
        """Number of levels that the next round tries to gain at once; 0 at the end."""
        return self._rounds.step

    @property
    def trace(self) -> tuple[ThresholdRound, ...]:
        """The rounds so far."""
        return self._rounds.trace

    def __repr__(self) -> str:
        """Show the state of the search, all of which is public."""
        return (
            f"DoublingThresholdSession(rounds={len(self.trace)}, utility={self.utility:g}, "
            f"step={self.step}, finished={self.finished})"
        )


def deviation_of(rounds: DoublingThreshold) -> float:
    """Return the standard deviation of the noise of one comparison."""
    return math.sqrt(2.0) * math.hypot(rounds.threshold_scale, rounds.candidate_scale)


def most_rounds(rounds: DoublingThreshold) -> int:
    """Return the largest number of rounds that a search can have."""
    # Before its last hit, a search has fewer misses than hits.
    limits = (rounds.max_rounds, None if rounds.max_hits is None else 2 * rounds.max_hits - 1)
    return min(limit for limit in limits if limit is not None)


def batches_of(
    candidates: Candidates, batch_size: int, seeds: Any
) -> Iterator[list[dict[str, Any]]]:
    """Iterate endlessly over the candidates of rounds: the whole grid, or new draws."""
    grid = None if candidates.drawn else list(candidates.grid())
    while True:
        yield grid or candidates.draw_each(spawned(seeds, batch_size))


def _listed(candidates: Any) -> list[dict[str, Any]]:
    listed = list(candidates) if isinstance(candidates, Sequence | np.ndarray) else None
    if listed is None or not all(isinstance(one, Mapping) for one in listed):
        raise TypeError(
            "candidates must be a list of dicts from parameter names to values; got "
            f"{type(candidates).__name__}{'' if listed is None else ' of something else'}."
        )
    if not listed:
        raise ValueError("candidates must not be empty; got none.")
    return [dict(one) for one in listed]


def _key(candidate: dict[str, Any]) -> Any:
    """Return a key that equal candidates share; unhashable values equal only themselves."""
    return frozenset((name, type(value), _hashable(value)) for name, value in candidate.items())


def _hashable(value: Any) -> Any:
    try:
        hash(value)
    except TypeError:
        # The proposed candidate is kept, so no other object gets this id.
        return ("id", id(value))
    return value
