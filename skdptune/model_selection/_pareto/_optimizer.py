"""The optimiser of a Pareto search: propose, evaluate and store, until a study is complete.

A trial ends in one of these ways. It is complete. It failed, with an evaluation that says why. It
was lost with its process, and is then repeated under the same numbers. The filter of proposals
refused it. Or it was withdrawn, since other processes had started all remaining evaluations.
"""

from __future__ import annotations

import contextlib
import functools
import math
import numbers
import pickle
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import effective_n_jobs
from joblib.executor import get_memmapping_executor
from joblib.parallel import get_active_backend

from skdptune._compat import dumps_for_workers
from skdptune._formatting import shown
from skdptune._progress import current_progress
from skdptune._validation import check_integer, check_option
from skdptune.model_selection._pareto._samplers import SAMPLERS, SamplerSettings, make_sampler
from skdptune.model_selection._pareto._surrogates import Scales
from skdptune.model_selection._space import SearchSpace
from skdptune.model_selection._study import (
    EVALUATION,
    NUMBER,
    PROPOSAL,
    REFUSED,
    WITHDRAWN,
    Heartbeat,
    StudySeeds,
    check_same,
    check_sampler,
    evaluation_numbers,
    open_study,
    optuna,
    proposal_numbers,
    quiet_optuna,
    study_seeds,
)

if TYPE_CHECKING:
    from skdptune.model_selection._dpareto_search import ParetoFront


@dataclass(frozen=True)
class Evaluation:
    """The objectives of parameters, or the reason why they could not be evaluated.

    Attributes
    ----------
    epsilon : float
        The privacy of the parameters; ``inf`` means none.
    utilities : tuple of float
        One utility in [0, 1] per repeat.
    third : float or None
        The third objective, to minimise.
    failure : str or None
        Why the evaluation failed. With None it succeeded, and the other attributes are valid.
    seconds : float
        The duration of the evaluation.
    """

    epsilon: float
    utilities: tuple[float, ...] = ()
    third: float | None = None
    failure: str | None = None
    seconds: float = 0.0

    @property
    def error(self) -> float:
        """1 minus the mean utility."""
        return max(1.0 - float(np.mean(self.utilities)), 0.0)


Evaluate = Callable[[dict[str, Any], int, np.random.SeedSequence], Evaluation]


@dataclass(frozen=True)
class Record:
    """A finished evaluation, possibly a failed one, with its number and parameters."""

    number: int
    params: dict[str, Any]
    evaluation: Evaluation


def failed_evaluation(problem: BaseException) -> Evaluation:
    """Return an evaluation that failed with an exception."""
    return Evaluation(math.nan, failure=f"{type(problem).__name__}: {problem}")


def checked_evaluation(found: Evaluation) -> Evaluation:
    """Return an evaluation with plain numbers; raise for objectives out of their domains."""
    if found.failure is not None:
        return found
    epsilon = _number(found.epsilon, "epsilon", math.inf)
    utilities = tuple(_number(value, "utility", 1.0) for value in found.utilities)
    if not utilities:
        raise ValueError("utilities must hold at least one number; got none.")
    third = found.third if found.third is None else float(found.third)
    if third is not None and not math.isfinite(third):
        raise ValueError(f"The third objective must be a finite number; got {third}.")
    return Evaluation(epsilon, utilities, third)


def _number(value: Any, name: str, upper: float) -> float:
    if not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number; got {type(value).__name__}.")
    number = float(value)
    if not 0.0 <= number <= upper:
        raise ValueError(f"{name} must be a number in [0, {upper:g}]; got {shown(number)}.")
    return number


def read_evaluation(trial: Any) -> Evaluation | None:
    """Return the evaluation that a trial holds; None if it has none."""
    kept = trial.user_attrs.get(EVALUATION)
    return None if kept is None else Evaluation(**{**kept, "utilities": tuple(kept["utilities"])})


def is_evaluated(trial: Any) -> bool:
    """Return whether a trial is a finished evaluation, possibly a failed one."""
    return bool(trial.state.is_finished()) and EVALUATION in trial.user_attrs


def perform(
    evaluate: Evaluate, params: dict[str, Any], number: int, seed: np.random.SeedSequence
) -> Evaluation:
    """Return an evaluation; a failed one if ``evaluate`` raises."""
    start = time.perf_counter()
    try:
        found = checked_evaluation(evaluate(params, number, seed))
    # An oracle may raise anything; the search continues without the point.
    except Exception as problem:
        found = failed_evaluation(problem)
    return replace(found, seconds=time.perf_counter() - start)


@functools.lru_cache(maxsize=1)
def _loaded(payload: bytes) -> Evaluate:
    """Return the unpickled function; cached, so that a worker unpickles the data only once."""
    evaluate: Evaluate = pickle.loads(payload)
    return evaluate


def _perform_pickled(
    payload: bytes, params: dict[str, Any], number: int, seed: np.random.SeedSequence
) -> Evaluation:
    return perform(_loaded(payload), params, number, seed)


class Deferred(Future[Any]):
    """A future whose work is done by `run`, in the thread that waits for it."""

    def __init__(self, work: Callable[[], Any]) -> None:
        super().__init__()
        self._work = work

    def run(self) -> None:
        """Do the work."""
        self.set_result(self._work())


class Workers:
    """Run evaluations in this thread, in threads or in joblib's processes.

    Threads are used if joblib's active backend is threading, or if ``evaluate`` cannot be pickled.

    Parameters
    ----------
    evaluate : callable
        See :class:`ParetoOptimizer`.
    n_jobs : int or None
        Number of workers, as in scikit-learn.
    most : int
        Largest number of workers.
    """

    def __init__(self, evaluate: Evaluate, n_jobs: int | None, most: int) -> None:
        self.n_workers = min(effective_n_jobs(n_jobs), most)
        self._evaluate, self._payload = evaluate, b""
        self._executor = self._make()

    def _make(self) -> Executor | None:
        if self.n_workers == 1:
            return None
        backend, _ = get_active_backend()
        if "Threading" not in type(backend).__name__:
            # Objects that cannot be pickled may raise anything.
            with contextlib.suppress(Exception):
                self._payload = bytes(dumps_for_workers(self._evaluate))
        if not self._payload:
            return ThreadPoolExecutor(self.n_workers)
        # loky has one pool per process, which joblib can only share if it is of this kind.
        executor: Executor = get_memmapping_executor(self.n_workers)
        return executor

    def submit(
        self, params: dict[str, Any], number: int, seed: np.random.SeedSequence
    ) -> Future[Evaluation]:
        """Start an evaluation."""
        if self._executor is None:
            return Deferred(lambda: perform(self._evaluate, params, number, seed))
        if self._payload:
            return self._executor.submit(_perform_pickled, self._payload, params, number, seed)
        return self._executor.submit(perform, self._evaluate, params, number, seed)

    def first(self, futures: Sequence[Future[Evaluation]]) -> list[Future[Evaluation]]:
        """Wait until at least one future is done, and return the finished ones, in order."""
        if isinstance(futures[0], Deferred):
            futures[0].run()
        finished = wait(futures, return_when=FIRST_COMPLETED).done
        return [future for future in futures if future in finished]

    def result(self, future: Future[Evaluation]) -> Evaluation:
        """Return a finished evaluation; if its worker died, a failed one."""
        problem = future.exception()
        if problem is None:
            return future.result()
        if not isinstance(problem, Exception):
            raise problem
        # A broken pool accepts no more work.
        if self._payload:
            self._executor = self._make()
        return failed_evaluation(problem)

    def close(self) -> None:
        """Stop threads; joblib keeps its processes for the next call."""
        if isinstance(self._executor, ThreadPoolExecutor):
            self._executor.shutdown(wait=True, cancel_futures=True)


# User attribute of trials: the process that evaluates it.
_PROCESS = "process"
_POLLING_INTERVAL = 0.2
# If a proposal takes longer than this, in seconds, its process was killed.
_LONGEST_PROPOSAL = 300.0
# After more refusals in a row by the filter of proposals, the search stops.
_MOST_REFUSALS = 100


@dataclass(eq=False, repr=False)
class ParetoOptimizer:
    """Propose, evaluate and store parameters until a study holds all evaluations.

    Parameters
    ----------
    evaluate : callable ``(params, number, seed) -> Evaluation``
        Evaluates parameters (dict) once. ``number`` counts the study's evaluations from 0.
        ``seed`` is the evaluation's own :class:`numpy.random.SeedSequence`. If an evaluation is
        repeated after a crash, its number is the same, and in a seeded study its seed is too. An
        evaluation that raises has failed. It runs in a worker: with processes it is pickled.
    space : SearchSpace
    strategy : ParetoFront
        How parameters are proposed, already checked.
    n_iter : int
        Number of evaluations after the first ones.
    third : str or None
        Name of the third objective, if there is one.
    n_jobs, random_state
        As in :func:`pareto_search`.
    proposal_filter : callable ``(params) -> bool`` or None
        Returns whether proposed parameters may be evaluated, by public facts only. After many
        refusals in a row the search stops.
    fingerprint : str
        Identifies what is evaluated: a study with another fingerprint is not resumed. A stored
        study keeps a salted hash of it.

    Attributes
    ----------
    study : optuna.Study
        After ``run``.
    seeds : StudySeeds
        After ``run``.
    """

    evaluate: Evaluate
    space: SearchSpace
    strategy: ParetoFront
    n_iter: int
    third: str | None
    n_jobs: int | None
    random_state: Any
    proposal_filter: Callable[[dict[str, Any]], bool] | None = None
    fingerprint: str = ""
    study: Any = field(init=False, default=None)
    seeds: StudySeeds = field(init=False)
    heartbeat: Heartbeat = field(init=False)
    workers: Workers = field(init=False)
    _running: dict[Future[Evaluation], Any] = field(init=False, default_factory=dict)
    _n_refusals: int = field(init=False, default=0)
    _has_succeeded: bool = field(init=False, default=False)

    @property
    def n_total(self) -> int:
        """Number of all evaluations."""
        return self.strategy.n_initial + self.n_iter

    def run(self) -> Any:
        """Fill the study and return it (optuna.Study).

        Evaluations of processes that died are repeated first. Raises ValueError if all of the
        first ``n_initial`` evaluations failed.
        """
        wants_workers = self.n_jobs is not None and effective_n_jobs(self.n_jobs) > 1
        if wants_workers and self.strategy.batch_size == 1:
            warnings.warn(
                "batch_size must be above 1 for evaluations to run at the same time; got 1, and "
                f"n_jobs={self.n_jobs}.",
                UserWarning,
                stacklevel=4,
            )
        with quiet_optuna():
            self._open()
            self.workers = Workers(self.evaluate, self.n_jobs, self.strategy.batch_size)
            with Heartbeat(self.study) as self.heartbeat:
                try:
                    self._fill()
                finally:
                    self.workers.close()
        return self.study

    def records(self) -> list[Record]:
        """Return the finished evaluations in order of completion."""
        trials = self._trials()
        numbers_of = evaluation_numbers(trials)
        finished = [trial for trial in trials if is_evaluated(trial)]
        finished.sort(key=lambda trial: (trial.datetime_complete, trial.number))
        return [
            Record(numbers_of[trial.number], self.space.from_optuna(trial.params), found)
            for trial in finished
            if (found := read_evaluation(trial)) is not None
        ]

    def _open(self) -> None:
        objectives = ["epsilon", "error", *([self.third] if self.third else [])]
        directions = ["minimize"] * len(objectives)
        strategy = self.strategy
        self.study = open_study(strategy.storage, strategy.study_name, "pareto_search", directions)
        shared = {"objectives": objectives, "space": self.space.describe()}
        check_same(self.study, shared, self.fingerprint)
        self.seeds = study_seeds(self.study, self.random_state)
        settings = SamplerSettings(
            Scales(
                tuple(map(float, strategy.reference_point)),
                third_is_positive=self.third == "time",
                epsilon_scale=strategy.epsilon_scale,
            ),
            self.seeds.proposals,
            strategy.n_initial,
            self.n_total,
        )
        self.study.sampler = make_sampler(strategy.sampler, self.space, settings)

    def _fill(self) -> None:
        """Work until all evaluations are done, by this process or others."""
        self._repeat_lost()
        try:
            is_going = True
            while is_going:
                done = self._n_evaluated()
                current_progress().count(done, self.n_total, "evaluations")
                is_going = self._step()
        finally:
            # After an interrupt another process, or the next search, does the remaining work.
            for trial in self._running.values():
                self._give_up(self._trials()[trial.number])

    def _step(self) -> bool:
        """Propose, or wait for a result or for other processes; return whether to continue."""
        is_exhausted = self._n_refusals > _MOST_REFUSALS
        has_capacity = len(self._running) < self.strategy.batch_size
        if not is_exhausted and has_capacity and self._n_taken(self._trials()) < self.n_total:
            self._propose()
        elif self._running:
            self._take_results()
        elif is_exhausted or self._n_evaluated() >= self.n_total:
            return False
        else:
            time.sleep(_POLLING_INTERVAL)
            self._repeat_lost()
        return True

    def _trials(self) -> list[Any]:
        """Return the trials from the storage."""
        trials: list[Any] = self.study.get_trials(deepcopy=False)
        return trials

    def _n_evaluated(self) -> int:
        """Return the number of finished evaluations, failed ones included."""
        return sum(map(is_evaluated, self._trials()))

    def _n_taken(self, trials: Sequence[Any]) -> int:
        """Return how many of the given trials are done or running."""
        running = optuna().trial.TrialState.RUNNING
        return sum(trial.state == running or is_evaluated(trial) for trial in trials)

    # Proposals ------------------------------------------------------------------------------

    def _propose(self) -> None:
        """Ask for parameters, and start their evaluation unless the filter refuses them."""
        trial = self.study.ask(self.space.distributions())
        trial.set_user_attr(_PROCESS, self.heartbeat.process)
        trials = self._trials()
        if self._n_taken(trials[: trial.number]) >= self.n_total:
            self._dismiss(trial, WITHDRAWN)
            return
        params = self.space.from_optuna(trial.params)
        if self.proposal_filter is not None and not self.proposal_filter(params):
            self._dismiss(trial, REFUSED)
            self._n_refusals += 1
            return
        self._n_refusals = 0
        number = evaluation_numbers(trials)[trial.number]
        seed = np.random.SeedSequence(self.seeds.evaluations, spawn_key=(2, number))
        self._running[self.workers.submit(params, number, seed)] = trial

    def _dismiss(self, trial: Any, reason: str) -> None:
        """Close a trial that is not evaluated."""
        trial.set_user_attr(reason, True)
        self.study.tell(trial, state=optuna().trial.TrialState.FAIL)

    # Results --------------------------------------------------------------------------------

    def _take_results(self) -> None:
        """Wait for results and store them; raise if all of the first evaluations failed."""
        for future in self.workers.first(list(self._running)):
            trial, found = self._running[future], self.workers.result(future)
            # Unless another process assumed that this one died, perhaps while the machine slept.
            if not self._trials()[trial.number].state.is_finished():
                # Store everything first, so that a crash in between loses nothing.
                trial.set_user_attr(EVALUATION, asdict(found))
                self._close(trial.number, found)
            del self._running[future]
        if self._has_succeeded or self._n_evaluated() < self.strategy.n_initial:
            return
        records = self.records()
        self._has_succeeded = any(record.evaluation.failure is None for record in records)
        if not self._has_succeeded:
            failure = records[0].evaluation.failure
            raise ValueError(f"All {len(records)} evaluations failed. The first: {failure}")

    def _close(self, number: int, found: Evaluation) -> None:
        """End the trial of an evaluation."""
        if found.failure is not None:
            self.study.tell(number, state=optuna().trial.TrialState.FAIL)
            return
        third = [] if found.third is None else [found.third]
        self.study.tell(number, [found.epsilon, found.error, *third])

    # Work of processes that died ------------------------------------------------------------

    def _repeat_lost(self) -> None:
        """Enqueue the evaluations of processes that have ended."""
        running = optuna().trial.TrialState.RUNNING
        own = {trial.number for trial in self._running.values()}
        alive = self.heartbeat.alive()
        for trial in self.study.get_trials(deepcopy=False, states=(running,)):
            if trial.number not in own and self._is_lost(trial, alive):
                self._give_up(trial)

    def _is_lost(self, trial: Any, alive: set[str]) -> bool:
        """Return whether the process of a running trial has ended."""
        process = trial.user_attrs.get(_PROCESS)
        if process is not None:
            return str(process) not in alive
        # A process that was killed while it proposed had no time to write its name.
        age = (datetime.now() - trial.datetime_start).total_seconds()
        return alive == {self.heartbeat.process} or age > _LONGEST_PROPOSAL

    def _give_up(self, trial: Any) -> None:
        """Close a running trial, and enqueue its work unless its evaluation is stored."""
        found = read_evaluation(trial)
        if found is not None:
            self._close(trial.number, found)
            return
        trials = self._trials()
        numbers = {
            NUMBER: evaluation_numbers(trials)[trial.number],
            PROPOSAL: proposal_numbers(trials)[trial.number],
        }
        repeated = (later.user_attrs.get(PROPOSAL) for later in trials[trial.number + 1 :])
        # Enqueue before closing, and only once: another crash may happen in between.
        if numbers[PROPOSAL] not in repeated:
            is_complete = set(trial.params) >= set(self.space.names)
            self.study.enqueue_trial(trial.params if is_complete else {}, user_attrs=numbers)
        self.study.tell(trial.number, state=optuna().trial.TrialState.FAIL)


def check_settings(strategy: ParetoFront, n_iter: Any, third: str | None) -> None:
    """Raise for settings of any Pareto search that are out of their domains."""
    for name in ("n_initial", "batch_size", "n_repeats"):
        check_integer(getattr(strategy, name), name=name, lower=1)
    check_integer(n_iter, name="n_iter", lower=0)
    check_reference_point(strategy.reference_point, third)
    check_epsilon_scale(strategy.epsilon_scale)
    check_sampler(strategy.sampler, SAMPLERS)


def check_epsilon_scale(epsilon_scale: Any) -> str:
    """Return the scale of epsilon in the hypervolume, or raise."""
    return str(check_option(epsilon_scale, name="epsilon_scale", options=("linear", "log")))


def check_reference_point(reference_point: Any, third: str | None) -> tuple[float, ...]:
    """Return the reference point as floats, or raise."""
    wanted = 3 if third else 2
    try:
        point = tuple(map(float, reference_point))
    except (TypeError, ValueError):
        point = ()
    if len(point) != wanted:
        raise ValueError(
            f"reference_point must be {wanted} numbers, the worst epsilon, error"
            f"{f' and {third}' if third else ''} that count; got {shown(reference_point)}."
        )
    if not (
        0.0 < point[0] < math.inf and 0.0 < point[1] <= 1.0 and all(map(math.isfinite, point))
    ):
        raise ValueError(
            "reference_point must be a finite epsilon above 0, an error in (0, 1]"
            f"{' and a finite number' if third else ''}; got {shown(reference_point)}."
        )
    return point
