"""The engine of a Pareto search: an optuna study that workers fill and that outlives crashes.

Every trial is in one of these ways: complete; failed with its reason (an evaluation all the
same); lost with the process that made it (it is enqueued and done again, under the number it
had); refused, since its parameters were not affordable; or withdrawn, since other processes had
taken what was left to do.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from tqdm.auto import tqdm

from skdptune._validation import check_integer
from skdptune.model_selection._pareto._sampling import (
    FOUND,
    NUMBER,
    REFUSED,
    TURN,
    WITHDRAWN,
    SamplerSettings,
    SearchSpace,
    evaluation_numbers,
    make_sampler,
    turns,
)
from skdptune.model_selection._pareto._storage import (
    Membership,
    open_study,
    optuna,
    quiet,
    study_entropy,
)
from skdptune.model_selection._pareto._workers import Evaluate, Evaluation, Workers

__all__ = ["Evaluation", "ParetoEngine", "Record"]

_OWNER = "owner"
_POLL = 0.2
_LONGEST_PROPOSAL = 300.0


@dataclass(frozen=True)
class Record:
    """A finished evaluation as the study keeps it.

    ``number``, ``params``, ``evaluation``; also for failed ones (``evaluation.error``).
    """

    number: int
    params: dict[str, Any]
    evaluation: Evaluation


class ParetoEngine:
    """Propose, evaluate and store parameters until a study holds all its evaluations.

    Parameters
    ----------
    evaluate : callable ``(params, number, seed) -> Evaluation``
        Evaluates parameters (dict) once. ``number`` counts the study's evaluations from 0,
        ``seed`` is the evaluation's own :class:`numpy.random.SeedSequence`; both are the same
        when an evaluation is done again after a crash. What it raises is an evaluation that
        failed. Runs in a worker: with processes it is pickled.
    space : SearchSpace
        Where parameters come from.
    n_initial, n_iter, batch_size, sampler, reference_point, storage, study_name, n_jobs, \
random_state, verbose
        As :func:`pareto_search` has them.
    extra : str or None
        The third objective's name; None is no third objective.
    affordable : callable ``(params) -> bool`` or None
        A public test that proposals must pass. One that does not is drawn anew, at most
        ``max_redraws`` times in a row; then the search stops.
    max_redraws : int
        See ``affordable``.
    subject : str
        What is evaluated, in short: a study of another subject does not go on.

    Attributes
    ----------
    study : optuna.Study
        After ``run``.
    """

    def __init__(
        self,
        evaluate: Evaluate,
        space: SearchSpace,
        *,
        n_initial: int = 16,
        n_iter: int = 256,
        batch_size: int = 1,
        sampler: Any = "auto",
        reference_point: tuple[float, ...] = (10.0, 1.0),
        extra: str | None = None,
        storage: Any = None,
        study_name: str | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        affordable: Callable[[dict[str, Any]], bool] | None = None,
        max_redraws: int = 100,
        subject: str = "",
    ) -> None:
        self.n_initial = check_integer(n_initial, name="n_initial", lower=1)
        self.n_iter = check_integer(n_iter, name="n_iter", lower=0)
        self.batch_size = check_integer(batch_size, name="batch_size", lower=1)
        self.evaluate, self.space, self.sampler = evaluate, space, sampler
        self.reference_point = check_reference(reference_point, extra)
        self.extra, self.storage, self.study_name = extra, storage, study_name
        self.n_jobs, self.random_state, self.verbose = n_jobs, random_state, verbose
        self.affordable, self.max_redraws = affordable, max_redraws
        self.subject = subject
        self.study: Any = None

    def run(self) -> Any:
        """Fill the study and return it (optuna.Study).

        Evaluations that a process left running when it died are done again first. Raises
        ValueError when the first ``n_initial`` evaluations all failed.
        """
        is_told = self.n_jobs is not None and effective_n_jobs(self.n_jobs) > 1
        if is_told and self.batch_size == 1:
            warnings.warn(
                "batch_size must be above 1 for evaluations to run at the same time; got 1, and "
                f"n_jobs={self.n_jobs}.",
                UserWarning,
                stacklevel=4,
            )
        with quiet():
            self._open()
            workers = Workers(self.evaluate, self.n_jobs, self.batch_size)
            with Membership(self.study) as members:
                try:
                    _Run(self, members, workers).go()
                finally:
                    workers.close()
        return self.study

    def _open(self) -> None:
        objectives = ["epsilon", "error", *([self.extra] if self.extra else [])]
        described = self.space.describe()
        self.study = open_study(self.storage, self.study_name, objectives, described, self.subject)
        self.entropy = study_entropy(self.study, self.random_state)
        settings = SamplerSettings(
            self.reference_point,
            self.entropy,
            self.n_initial,
            self.n_initial + self.n_iter,
            self.extra == "time",
        )
        self.study.sampler = make_sampler(self.sampler, self.space, settings)

    def records(self) -> list[Record]:
        """Return the study's finished evaluations in order of completion."""
        if self.study is None:
            return []
        trials = self.study.get_trials(deepcopy=False)
        numbers = evaluation_numbers(trials)
        done = [trial for trial in trials if _is_finished(trial)]
        done.sort(key=lambda trial: (trial.datetime_complete, trial.number))
        return [self._record(trial, numbers[trial.number]) for trial in done]

    def _record(self, trial: Any, number: int) -> Record:
        found = dict(trial.user_attrs[FOUND])
        found["utilities"] = tuple(found["utilities"])
        return Record(number, self.space.from_optuna(trial.params), Evaluation(**found))


class _Run:
    """One process's share of the work on a study."""

    def __init__(self, engine: ParetoEngine, members: Membership, workers: Workers) -> None:
        self.engine, self.members, self.workers = engine, members, workers
        self.study = engine.study
        self.total = engine.n_initial + engine.n_iter
        self.mine: dict[Future[Evaluation], Any] = {}
        self.redraws, self.has_succeeded = 0, False

    def go(self) -> None:
        """Work until all evaluations are done, by whomever."""
        self.do_lost_again()
        bar = tqdm(total=self.total, disable=not self.engine.verbose, unit="evaluation")
        try:
            while self.step():
                bar.update(self.n_finished() - bar.n)
        finally:
            bar.close()
            # What an interrupt left undone is for the next to do.
            for trial in self.mine.values():
                self.give_up(self.frozen(trial.number))

    def step(self) -> bool:
        """Propose, or wait for a result, or for other processes; return whether to go on."""
        exhausted = self.redraws > self.engine.max_redraws
        if not exhausted and len(self.mine) < self.engine.batch_size and self.is_work_left():
            self.propose()
            return True
        if self.mine:
            self.take_results()
            return True
        if exhausted or self.n_finished() >= self.total:
            return False
        time.sleep(_POLL)
        self.do_lost_again()
        return True

    def is_work_left(self) -> bool:
        """Return whether fewer evaluations are done and under way than are wanted."""
        states = optuna().trial.TrialState
        under_way = self.study.get_trials(deepcopy=False, states=(states.RUNNING,))
        return self.n_finished() + len(under_way) < self.total

    def n_finished(self) -> int:
        """Return the number of evaluations that are done, failed ones among them."""
        trials = self.study.get_trials(deepcopy=False)
        return sum(map(_is_finished, trials))

    def propose(self) -> None:
        """Ask for parameters, and hand them to a worker if they may be evaluated."""
        trial = self.study.ask(self.engine.space.distributions())
        trial.set_user_attr(_OWNER, self.members.owner)
        trials = self.study.get_trials(deepcopy=False)
        if self.is_one_too_many(trial.number, trials):
            self.dismiss(trial, WITHDRAWN)
            return
        params = self.engine.space.from_optuna(trial.params)
        if self.engine.affordable is not None and not self.engine.affordable(params):
            self.dismiss(trial, REFUSED)
            self.redraws += 1
            return
        self.redraws = 0
        number = evaluation_numbers(trials)[trial.number]
        seed = np.random.SeedSequence(self.engine.entropy, spawn_key=(2, number))
        self.mine[self.workers.submit(params, number, seed)] = trial

    def is_one_too_many(self, number: int, trials: list[Any]) -> bool:
        """Return whether enough trials before this one are done or under way."""
        running = optuna().trial.TrialState.RUNNING
        before = trials[:number]
        busy = sum(trial.state == running or _is_finished(trial) for trial in before)
        return busy >= self.total

    def dismiss(self, trial: Any, reason: str) -> None:
        """Close a trial that is not evaluated."""
        trial.set_user_attr(reason, True)
        self.study.tell(trial, state=optuna().trial.TrialState.FAIL)

    def take_results(self) -> None:
        """Write down what workers found."""
        for future in self.workers.first(list(self.mine)):
            self.tell(self.mine[future], self.workers.result(future))
            del self.mine[future]
        self.check_any_succeeded()

    def tell(self, trial: Any, found: Evaluation) -> None:
        """Write down an evaluation: all of it first, so that a crash in between loses nothing."""
        # Others took this process for dead, perhaps since the machine slept, and did its work.
        if self.frozen(trial.number).state.is_finished():
            return
        kept = asdict(found)
        trial.set_user_attr(FOUND, kept)
        self.close(trial.number, kept)

    def close(self, number: int, found: dict[str, Any]) -> None:
        """Tell the study how an evaluation ended."""
        if found["error"] is not None:
            self.study.tell(number, state=optuna().trial.TrialState.FAIL)
            return
        third = [] if found["extra"] is None else [found["extra"]]
        error = 1.0 - float(np.mean(found["utilities"]))
        self.study.tell(number, [found["epsilon"], max(error, 0.0), *third])

    def check_any_succeeded(self) -> None:
        """Raise when nothing but failures came of the first evaluations."""
        if self.has_succeeded or self.n_finished() < self.engine.n_initial:
            return
        records = self.engine.records()
        self.has_succeeded = any(record.evaluation.error is None for record in records)
        if not self.has_succeeded:
            first = records[0]
            raise ValueError(
                f"All {len(records)} evaluations failed. "
                f"The first, of {first.params}: {first.evaluation.error}"
            )

    def do_lost_again(self) -> None:
        """Enqueue the evaluations of processes that are gone."""
        running = optuna().trial.TrialState.RUNNING
        living = self.members.living()
        for trial in self.study.get_trials(deepcopy=False, states=(running,)):
            owner = trial.user_attrs.get(_OWNER)
            # A process that was killed while it proposed had no time to sign.
            age = (datetime.now() - trial.datetime_start).total_seconds()
            is_alone = living == {self.members.owner}
            is_lost = owner not in living if owner else is_alone or age > _LONGEST_PROPOSAL
            if is_lost and trial.number not in {mine.number for mine in self.mine.values()}:
                self.give_up(trial)

    def give_up(self, trial: Any) -> None:
        """Close a trial whose process is gone, and enqueue its work under its number."""
        if FOUND in trial.user_attrs:
            self.close(trial.number, trial.user_attrs[FOUND])
            return
        trials = self.study.get_trials(deepcopy=False)
        place = {
            NUMBER: evaluation_numbers(trials)[trial.number],
            TURN: turns(trials)[trial.number],
        }
        later = (other.user_attrs.get(TURN) for other in trials[trial.number + 1 :])
        # Enqueued first: a crash before the end is repaired by the next to come.
        if place[TURN] not in later:
            is_whole = set(trial.params) >= set(self.engine.space.names)
            self.study.enqueue_trial(trial.params if is_whole else {}, user_attrs=place)
        self.study.tell(trial.number, state=optuna().trial.TrialState.FAIL)

    def frozen(self, number: int) -> Any:
        """Return a trial as the storage has it."""
        return self.study.get_trials(deepcopy=False)[number]


def check_reference(reference_point: Any, extra: str | None) -> tuple[float, ...]:
    """Return the reference point as floats, or raise."""
    wanted = 3 if extra else 2
    point = tuple(float(value) for value in reference_point)
    if len(point) != wanted:
        raise ValueError(
            f"reference_point must be {wanted} numbers, the worst epsilon, error"
            f"{f' and {extra}' if extra else ''} that count; got {reference_point!r}."
        )
    if not (
        0.0 < point[0] < math.inf and 0.0 < point[1] <= 1.0 and all(map(math.isfinite, point))
    ):
        raise ValueError(
            "reference_point must be a finite epsilon above 0, an error in (0, 1]"
            f"{' and a finite number' if extra else ''}; got {reference_point!r}."
        )
    return point


def _is_finished(trial: Any) -> bool:
    return bool(trial.state.is_finished()) and FOUND in trial.user_attrs
