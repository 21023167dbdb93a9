"""A doubling threshold search that is offered candidates, so that any optimiser may drive it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from skdptune._running_budget import RunningBudget, one_at_a_time
from skdptune.accounting import PrivacyReport
from skdptune.mechanisms import DoublingThreshold, ThresholdRound
from skdptune.model_selection._cost import Candidates, CostedCandidates, copied
from skdptune.model_selection._partition_search import PartitionSearch
from skdptune.model_selection._running import spawned
from skdptune.model_selection._tuning_search import Choice, SearchState


@dataclass
class ThresholdChoice(Choice):
    """The winner, and the rounds that led to it."""

    trace: tuple[ThresholdRound, ...] = ()


class DoublingThresholdSession(RunningBudget):
    """A search in progress, to be offered candidates by whoever knows good ones.

    `DoublingThresholdSearchCV.start` makes one. Each call of `propose` scores a batch of
    candidates on disjoint partitions of the data and makes one round: it returns the
    first candidate that passed the noisy threshold, or None. `finish` trains the last one that
    passed, and returns the fitted search.

    The cost is that of the search, whatever is offered and however many rounds are made; it is
    owed from the first `propose` on, whether or not the session is finished. Condition: what is
    offered is chosen by what the session has returned, by chance or by public knowledge, and by
    nothing else that was learned from the data. Threads may share it, and take turns; a forked
    process may not use it.

    Attributes
    ----------
    finished : bool
        Whether the search is over; `finish` may be called before.
    best_params : dict or None
        The last candidate that passed.
    utility, step : float, int
        State of the search: the scaled score reached, and by how many levels more is asked next.
    trace : tuple of ThresholdRound
        The rounds so far.
    privacy : PrivacyReport
        What everything will have cost.

    See Also
    --------
    DoublingThresholdSearchCV : What it belongs to; its `fit` drives a session by itself.

    Notes
    -----
    Theorem D3.

    A candidate that was scored keeps its utility, so that offering it again costs no fits.
    Candidates may have other values than the search was given of parameters that do not
    influence the cost, and no others of those that do.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skdptune.linear_model import DPLogisticRegression
    >>> from skdptune.model_selection import DoublingThresholdSearchCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 3))
    >>> y = X[:, 0] + 0.3 * rng.normal(size=2000) > 0
    >>> session = DoublingThresholdSearchCV(
    ...     DPLogisticRegression(solver="sgd", epochs=2), {"C": [0.1]}, epsilon=2.0, delta=1e-5,
    ...     tuning_estimator=LogisticRegression(), granularity=0.1, random_state=0,
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

    def __init__(
        self, search: PartitionSearch, rounds: DoublingThreshold, state: SearchState
    ) -> None:
        super().__init__()
        self._search, self._rounds, self._state = search, rounds, state
        plan = state.plan
        self._report = search._report(plan)
        self._costed = CostedCandidates(
            plan.model.fit_costs, plan.cost.setting is not None, search.tuning_estimator
        )
        # A record belongs to one partition, the same in all rounds, with or without a seed.
        seeds = state.streams.random_split
        self._places = np.random.SeedSequence() if seeds is None else seeds.spawn(1)[0]
        self._known: dict[Any, tuple[dict[str, Any], float]] = {}
        # As offered, so that no other object gets the id of a value.
        self._given: list[dict[str, Any]] = []
        self._first: dict[str, Any] | None = None
        self._best: dict[str, Any] | None = None
        self._is_open = True

    @one_at_a_time
    def propose(self, candidates: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
        """Make one round over a batch of candidates.

        Parameters
        ----------
        candidates : sequence of dict
            From parameter names to values, in the order in which they are asked.

        Returns
        -------
        dict or None
            The first candidate that passed, None for a miss.
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
        self._costed.check(fresh.values())
        model, cost = self._state.plan.model, self._state.plan.cost
        model.fit_costs.check(list(fresh.values()), cost.setting, model.final_size)
        # Copies: whoever offers may not change later what was found to be costed.
        self._given += fresh.values()
        self._state.mark_read()
        self._score({key: copied(given) for key, given in fresh.items()})
        if self._first is None:
            self._first = self._known[keys[0]][0]
        found = self._rounds.propose([self._known[key][1] for key in keys])
        if found is None:
            return None
        self._best = self._known[keys[found]][0]
        return copied(self._best)

    @one_at_a_time
    def finish(self) -> Any:
        """Train the last candidate that passed, on all records, and return the fitted search.

        Without any, it is the first candidate that was offered (or, if none was, the first of
        the search), which no data chose.

        Returns
        -------
        DoublingThresholdSearchCV
            The search that was started, fitted.
        """
        self._check_open()
        # Closed first: the final fit is paid for once.
        self._is_open = False
        search, state, choice = self._search, self._state, self.choice()
        state.mark_read()
        model = search._final_model(state, choice)
        search._publish(state.plan, choice, model)
        state.confirm()
        return search

    @one_at_a_time
    def choice(self) -> ThresholdChoice:
        """Return the winner so far, as the search's template wants it."""
        # Theorem D4.
        state, scorer = self._state, self._search._scorer()
        winner = self._best if self._best is not None else self._first
        if winner is None:
            winner = next(batches_of(state.plan.candidates, 1, state.streams.draw))[0]
        score = scorer.lower + self.utility * (scorer.upper - scorer.lower)
        details = {
            "candidates": [candidate for candidate, _ in self._known.values()],
            "utilities": np.array([utility for _, utility in self._known.values()]),
        }
        row = {"params": winner, "score": score}
        return ThresholdChoice(winner, score, None, [row], diagnostics=details, trace=self.trace)

    def _check_open(self) -> None:
        if not self._is_open:
            raise RuntimeError(
                "session must be used before finish; got a call after it. Start another one, "
                "which costs as much again."
            )

    def _score(self, fresh: dict[Any, dict[str, Any]]) -> None:
        """Score candidates that were not yet, and keep their utilities."""
        # Theorem D1.
        if not fresh:
            return
        utilities = self._search._utilities(
            self._state,
            list(fresh.values()),
            np.random.default_rng(self._places),
            spawned(self._state.streams.runs, len(fresh)),
        )
        for (key, candidate), utility in zip(fresh.items(), utilities, strict=True):
            self._known[key] = (candidate, float(utility))

    @property
    def finished(self) -> bool:
        """Whether the search is over."""
        return self._rounds.finished

    @property
    def best_params(self) -> dict[str, Any] | None:
        """The last candidate that passed, None without any."""
        return None if self._best is None else copied(self._best)

    @property
    def utility(self) -> float:
        """The scaled score that was reached."""
        return self._rounds.utility

    @property
    def step(self) -> int:
        """Levels that the next round tries to gain at once; 0 at the end."""
        return self._rounds.step

    @property
    def trace(self) -> tuple[ThresholdRound, ...]:
        """The rounds so far."""
        return self._rounds.trace

    @property
    def privacy(self) -> PrivacyReport:
        """What everything will have cost."""
        return self._report

    def __repr__(self) -> str:
        """Show the state of the search, all of which is public."""
        return (
            f"DoublingThresholdSession(rounds={len(self.trace)}, utility={self.utility:g}, "
            f"step={self.step}, finished={self.finished})"
        )


def batches_of(
    candidates: Candidates, batch_size: int, seeds: Any
) -> Iterator[list[dict[str, Any]]]:
    """Iterate over the candidates of rounds, for ever: a whole grid, or fresh draws."""
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
    """Return what equal candidates share; values that cannot be hashed equal themselves alone."""
    return frozenset((name, type(value), _hashable(value)) for name, value in candidate.items())


def _hashable(value: Any) -> Any:
    try:
        hash(value)
    except TypeError:
        # The candidate is kept as offered, so no other object gets this id.
        return ("id", id(value))
    return value
