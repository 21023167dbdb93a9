"""One process's part of the work on a study: propose, evaluate, write down, until all is done.

A trial ends in one of these ways: complete; failed, with an evaluation that says why; lost with
its process, and then repeated under the numbers it had; refused by the filter of proposals; or
withdrawn, since other processes had started all that was left.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from skdptune._progress import current_progress
from skdptune.model_selection._pareto._sampling import (
    NUMBER,
    PROPOSAL,
    REFUSED,
    WITHDRAWN,
    SearchSpace,
    evaluation_numbers,
    proposal_numbers,
)
from skdptune.model_selection._pareto._study._heartbeat import Heartbeat
from skdptune.model_selection._pareto._study._records import (
    Evaluation,
    is_evaluated,
    read_evaluation,
    records_of,
    write_evaluation,
)
from skdptune.model_selection._pareto._study._storage import optuna
from skdptune.model_selection._pareto._study._workers import Workers

_PROCESS = "process"
_POLLING_INTERVAL = 0.2
# A proposal that takes longer, in seconds, belongs to a process that was killed.
_LONGEST_PROPOSAL = 300.0


@dataclass(frozen=True)
class LoopSettings:
    """What the loop must know of a search.

    Attributes
    ----------
    space : SearchSpace
    entropy : int
        Seeds the evaluations.
    n_initial, n_total : int
        Evaluations at first, of which one must succeed, and in all.
    batch_size : int
        Evaluations that run at the same time.
    proposal_filter, max_refusals
        See :class:`ParetoOptimizer`.
    """

    space: SearchSpace
    entropy: int
    n_initial: int
    n_total: int
    batch_size: int
    proposal_filter: Callable[[dict[str, Any]], bool] | None
    max_refusals: int


class EvaluationLoop:
    """One process's part of the work on a study.

    Parameters
    ----------
    study : optuna.Study
    settings : LoopSettings
    heartbeat : Heartbeat
    workers : Workers
    """

    def __init__(
        self, study: Any, settings: LoopSettings, heartbeat: Heartbeat, workers: Workers
    ) -> None:
        self.study, self.settings = study, settings
        self.heartbeat, self.workers = heartbeat, workers
        self.running: dict[Future[Evaluation], Any] = {}
        self.n_refusals, self.has_succeeded = 0, False

    def run(self) -> None:
        """Work until all evaluations are done, by this process or others."""
        self.repeat_lost()
        try:
            self.show_count()
            while self.step():
                self.show_count()
        finally:
            # After an interrupt another process, or the next search, does the rest.
            for trial in self.running.values():
                self.give_up(self.stored(trial.number))

    def show_count(self) -> None:
        """Show how many evaluations are done."""
        current_progress().count(self.n_evaluated(), self.settings.n_total, "evaluations")

    def step(self) -> bool:
        """Propose, or wait for a result or for other processes; return whether to continue."""
        is_exhausted = self.n_refusals > self.settings.max_refusals
        has_capacity = len(self.running) < self.settings.batch_size
        if not is_exhausted and has_capacity and self.is_work_left():
            self.propose()
            return True
        if self.running:
            self.take_results()
            return True
        if is_exhausted or self.n_evaluated() >= self.settings.n_total:
            return False
        time.sleep(_POLLING_INTERVAL)
        self.repeat_lost()
        return True

    # Proposals ------------------------------------------------------------------------------

    def is_work_left(self) -> bool:
        """Return whether fewer evaluations are done and running than are wanted."""
        states = optuna().trial.TrialState
        running = self.study.get_trials(deepcopy=False, states=(states.RUNNING,))
        return self.n_evaluated() + len(running) < self.settings.n_total

    def n_evaluated(self) -> int:
        """Return the number of finished evaluations, failed ones included."""
        return sum(map(is_evaluated, self.study.get_trials(deepcopy=False)))

    def propose(self) -> None:
        """Ask for parameters, and start their evaluation unless the filter refuses them."""
        space, proposal_filter = self.settings.space, self.settings.proposal_filter
        trial = self.study.ask(space.distributions())
        trial.set_user_attr(_PROCESS, self.heartbeat.process)
        trials = self.study.get_trials(deepcopy=False)
        if self.is_surplus(trial.number, trials):
            self.dismiss(trial, WITHDRAWN)
            return
        params = space.from_optuna(trial.params)
        if proposal_filter is not None and not proposal_filter(params):
            self.dismiss(trial, REFUSED)
            self.n_refusals += 1
            return
        self.n_refusals = 0
        number = evaluation_numbers(trials)[trial.number]
        seed = np.random.SeedSequence(self.settings.entropy, spawn_key=(2, number))
        self.running[self.workers.submit(params, number, seed)] = trial

    def is_surplus(self, number: int, trials: list[Any]) -> bool:
        """Return whether enough trials before this one are done or running."""
        running = optuna().trial.TrialState.RUNNING
        earlier = trials[:number]
        n_taken: int = sum(trial.state == running or is_evaluated(trial) for trial in earlier)
        return n_taken >= self.settings.n_total

    def dismiss(self, trial: Any, reason: str) -> None:
        """Close a trial that is not evaluated."""
        trial.set_user_attr(reason, True)
        self.study.tell(trial, state=optuna().trial.TrialState.FAIL)

    # Results --------------------------------------------------------------------------------

    def take_results(self) -> None:
        """Wait for results of workers, and write them down."""
        for future in self.workers.first(list(self.running)):
            self.write(self.running[future], self.workers.result(future))
            del self.running[future]
        self.check_any_succeeded()

    def write(self, trial: Any, found: Evaluation) -> None:
        """Write an evaluation down: first all of it, so that no crash in between loses any."""
        # Another process took this one for dead, perhaps while the machine slept.
        if self.stored(trial.number).state.is_finished():
            return
        write_evaluation(trial, found)
        self.close(trial.number, found)

    def close(self, number: int, found: Evaluation) -> None:
        """End the trial of an evaluation."""
        if found.failure is not None:
            self.study.tell(number, state=optuna().trial.TrialState.FAIL)
            return
        third = [] if found.third is None else [found.third]
        self.study.tell(number, [found.epsilon, found.error, *third])

    def check_any_succeeded(self) -> None:
        """Raise if all of the first evaluations failed."""
        if self.has_succeeded or self.n_evaluated() < self.settings.n_initial:
            return
        records = records_of(self.study, self.settings.space)
        self.has_succeeded = any(record.evaluation.failure is None for record in records)
        if not self.has_succeeded:
            first = records[0]
            raise ValueError(
                f"All {len(records)} evaluations failed. "
                f"The first, of {first.params}: {first.evaluation.failure}"
            )

    # Work of processes that died ------------------------------------------------------------

    def repeat_lost(self) -> None:
        """Enqueue the evaluations of processes that are gone."""
        running = optuna().trial.TrialState.RUNNING
        own = {trial.number for trial in self.running.values()}
        alive = self.heartbeat.alive()
        for trial in self.study.get_trials(deepcopy=False, states=(running,)):
            if trial.number not in own and self.is_lost(trial, alive):
                self.give_up(trial)

    def is_lost(self, trial: Any, alive: set[str]) -> bool:
        """Return whether the process of a running trial is gone."""
        process = trial.user_attrs.get(_PROCESS)
        if process is not None:
            return str(process) not in alive
        # A process that was killed while it proposed had no time to write its name.
        age = (datetime.now() - trial.datetime_start).total_seconds()
        return alive == {self.heartbeat.process} or age > _LONGEST_PROPOSAL

    def give_up(self, trial: Any) -> None:
        """Close a running trial, and enqueue its work unless its evaluation is written down."""
        found = read_evaluation(trial)
        if found is not None:
            self.close(trial.number, found)
            return
        trials = self.study.get_trials(deepcopy=False)
        numbers = {
            NUMBER: evaluation_numbers(trials)[trial.number],
            PROPOSAL: proposal_numbers(trials)[trial.number],
        }
        repeated = (later.user_attrs.get(PROPOSAL) for later in trials[trial.number + 1 :])
        # Enqueued before it is closed, and only once: another crash may come in between.
        if numbers[PROPOSAL] not in repeated:
            is_complete = set(trial.params) >= set(self.settings.space.names)
            self.study.enqueue_trial(trial.params if is_complete else {}, user_attrs=numbers)
        self.study.tell(trial.number, state=optuna().trial.TrialState.FAIL)

    def stored(self, number: int) -> Any:
        """Return a trial as the storage has it."""
        return self.study.get_trials(deepcopy=False)[number]
