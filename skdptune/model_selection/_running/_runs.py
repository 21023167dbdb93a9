"""The runs of a search: fits and noisy scores, in parallel, that no data can crash.

A run that fails scores the worst value, with the same noise as any other, so that failing shows
no more than a bad score does. Warnings, logs and prints tell of the data, and are dropped.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from skdptune._compat import Parallel, delayed, number_of_samples
from skdptune.base._configuring import set_seeds
from skdptune.mechanisms import gaussian_release, laplace_release
from skdptune.metrics import BoundedScorer
from skdptune.model_selection._running._dask_cluster import active_client, perform_on_cluster
from skdptune.model_selection._running._quiet import Quiet

_ATTEMPTS = 3
_FITS = {"fit", "fit_many"}


@dataclass(frozen=True)
class Scoring:
    """How a run is scored.

    Attributes
    ----------
    scorer : BoundedScorer
        The mean of bounded values.
    n_public : int or None
        Stands for the number of records; None for that of public data.
    sensitivity : float
        Most by which one record changes the score.
    ratio : float
        Noise in units of the sensitivity.
    kind : {"gaussian", "laplace", "none"}
        Law of the noise.
    """

    scorer: BoundedScorer
    n_public: int | None
    sensitivity: float
    ratio: float
    kind: str

    def released(self, values: np.ndarray | None, random: Any) -> float:
        """Return the noisy score of values, or of the worst that could be."""
        lower = self.scorer.lower
        if values is None:
            exact = lower
        else:
            exact = self.scorer.score(values, self.n_public or max(values.size, 1))
        if self.kind == "none":
            return exact
        release = gaussian_release if self.kind == "gaussian" else laplace_release
        return release(exact, self.sensitivity, self.ratio * self.sensitivity, random)


@dataclass(frozen=True)
class Data:
    """Records and targets, and what the fits are to be told of each record besides."""

    X: Any
    y: Any
    per_record: dict[str, Any]
    constant: dict[str, Any]

    def take(self, records: np.ndarray | None) -> Data:
        """Return the given records."""
        if records is None:
            return self
        chosen = {name: _safe_indexing(value, records) for name, value in self.per_record.items()}
        y = None if self.y is None else _safe_indexing(self.y, records)
        return Data(_safe_indexing(self.X, records), y, chosen, self.constant)

    def fit(self, estimator: Any, **more: Any) -> Any:
        """Fit an estimator to the records."""
        arguments = (self.X,) if self.y is None else (self.X, self.y)
        return estimator.fit(*arguments, **self.per_record, **self.constant, **more)


@dataclass(frozen=True)
class Run:
    """One candidate to be fitted and scored.

    Attributes
    ----------
    estimator : estimator
        With its parameters and budget set.
    fit_seed : SeedSequence or None
        Of its fits, one for each fold.
    noise_seed : SeedSequence or None
        Of the score's noise.
    """

    estimator: Any
    fit_seed: np.random.SeedSequence | None
    noise_seed: np.random.SeedSequence | None


@dataclass(frozen=True)
class Result:
    """What a run gave: its model (None if it failed), its noisy score, and secret details."""

    model: Any
    score: float
    seconds: float
    error: str | None


def perform(
    run: Run,
    data: Data,
    folds: Sequence[tuple[np.ndarray | None, np.ndarray | None]],
    validation: Data | None,
    scoring: Scoring,
    keep_model: bool,
    raises: bool,
) -> Result:
    """Fit and score one run; `deals` are its folds, or one pair of None for all of `data`."""

    def find() -> np.ndarray:
        found = []
        for fold, (train, test) in enumerate(folds):
            # A model of its own for each fold: none may start from what another has seen.
            model = run.estimator if len(folds) == 1 else clone(run.estimator)
            set_seeds(model, child_stream(run.fit_seed, fold))
            data.take(train).fit(model)
            held = validation if test is None else data.take(test)
            found.append(values_of(scoring.scorer, model, held, raises))
        return np.concatenate(found)

    return _result(run, find, scoring, keep_model, raises)


def perform_together(
    runs: Sequence[Run],
    data: Data,
    folds: Sequence[tuple[np.ndarray | None, np.ndarray | None]],
    validation: Data | None,
    scoring: Scoring,
    keep_model: bool,
    raises: bool,
) -> list[Result]:
    """Fit runs by their class's `fit_many`, and score each; as one by one, but for the time."""
    started = time.perf_counter()
    values: list[list[np.ndarray]] = [[] for _ in runs]
    problems: dict[int, BaseException] = {}
    for fold, (train, test) in enumerate(folds):
        going = [number for number in range(len(runs)) if number not in problems]
        models = [runs[number].estimator for number in going]
        if len(folds) > 1:
            models = [clone(model) for model in models]
        seeds = [child_stream(runs[number].fit_seed, fold) for number in going]
        try:
            outcomes = _fit_fold(models, seeds, data.take(train))
        except BaseException as problem:
            if raises or not is_failure(problem):
                raise
            # One that fails must not fail the others.
            return [
                perform(run, data, folds, validation, scoring, keep_model, raises) for run in runs
            ]
        held = validation if test is None else data.take(test)
        for number, model, outcome in zip(going, models, outcomes, strict=True):
            try:
                if isinstance(outcome, BaseException):
                    raise outcome
                with Quiet(), np.errstate(all="ignore"):
                    found = values_of(scoring.scorer, model, held, raises)
                values[number].append(found)
            except BaseException as problem:
                if not is_failure(problem):
                    raise
                problems[number] = problem
    seconds = (time.perf_counter() - started) / max(len(runs), 1)

    def find(number: int) -> np.ndarray:
        if number in problems:
            raise problems[number]
        return np.concatenate(values[number])

    return [
        _result(run, functools.partial(find, number), scoring, keep_model, raises, seconds)
        for number, run in enumerate(runs)
    ]


def _fit_fold(models: Sequence[Any], seeds: Sequence[Any], data: Data) -> list[Any]:
    for model, seed in zip(models, seeds, strict=True):
        set_seeds(model, seed)
    with Quiet(), np.errstate(all="ignore"):
        return fit_together(models, data)


def can_be_together(estimators: Sequence[Any], data: Data) -> bool:
    """Say whether all estimators are of one class that fits many at once.

    Such a class has a class method ``fit_many(estimators, X, y, *, return_exceptions=False)``. It
    fits each estimator in place, with the law and the cost that its own `fit` has, independently
    of the others given the data, and returns each, or in its place the exception with which it
    failed.
    """
    kinds = {type(estimator) for estimator in estimators}
    if len(kinds) != 1 or data.per_record or data.constant:
        return False
    # A subclass with a fit of its own does what the fit_many that it inherits knows nothing of.
    first = next((one for one in next(iter(kinds)).__mro__ if _FITS & set(vars(one))), object)
    return "fit_many" in vars(first)


def fit_together(estimators: Sequence[Any], data: Data) -> list[Any]:
    """Fit estimators of a class that fits many at once; return each, or its exception."""
    arguments = (data.X,) if data.y is None else (data.X, data.y)
    return type(estimators[0]).fit_many(list(estimators), *arguments, return_exceptions=True)


def _result(
    run: Run,
    find: Callable[[], np.ndarray],
    scoring: Scoring,
    keep_model: bool,
    raises: bool,
    seconds: float = 0.0,
) -> Result:
    """Return what a run gave whose values `find` finds, after some seconds already."""
    started = time.perf_counter()
    values, error = None, None
    try:
        with Quiet(), np.errstate(all="ignore"):
            values = find()
    except BaseException as problem:
        if raises or not is_failure(problem):
            raise
        error = repr(problem)
    seconds += time.perf_counter() - started
    model = run.estimator if keep_model and error is None else None
    return Result(model, scoring.released(values, noise_random(run.noise_seed)), seconds, error)


def is_failure(problem: BaseException) -> bool:
    """Say whether an exception is a fit's own, whatever its kind, and not the user's wish to stop.

    A model that leaves by way of `SystemExit` must not take a record's text with it.
    """
    return not isinstance(problem, KeyboardInterrupt | GeneratorExit)


def noise_random(seed: np.random.SeedSequence | None) -> np.random.Generator | None:
    """Return what noise is drawn from: a stream, or None for the system's safe samplers."""
    return None if seed is None else np.random.default_rng(seed)


def child_stream(
    seed: np.random.SeedSequence | None, number: int
) -> np.random.SeedSequence | None:
    """Return a numbered descendant of a stream, the same whoever asks and how often."""
    if seed is None:
        return None
    return np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, number))


def values_of(scorer: BoundedScorer, model: Any, held: Data, raises: bool) -> np.ndarray:
    """Return one value per record of `held`; a record that cannot be scored gets the worst.

    No record may decide what the others are worth, so one that makes the model fail is sought
    out, and fails by itself.
    """
    size = number_of_samples(held.X)
    try:
        return scorer.per_record(model, held.X, held.y)
    except BaseException as problem:
        if raises or not is_failure(problem):
            raise
    if size <= 1:
        return np.full(size, scorer.lower)
    halves = held.take(np.arange(size // 2)), held.take(np.arange(size // 2, size))
    return np.concatenate([values_of(scorer, model, half, raises) for half in halves])


def perform_all(
    function: Callable[..., Any],
    tasks: Sequence[Any],
    *common: Any,
    n_jobs: int | None,
    pre_dispatch: Any,
) -> list[Any]:
    """Return ``function(task, *common)`` of all tasks, in order; if workers are lost, try again.

    The streams of randomness belong to the tasks, so that with a seed a repetition gives the same.
    """
    for attempt in range(_ATTEMPTS):
        last = attempt == _ATTEMPTS - 1
        try:
            with Quiet():
                client = None if last or n_jobs == 1 else active_client()
                if client is not None:
                    return perform_on_cluster(client, function, tasks, common)
                return Parallel(n_jobs=1 if last else n_jobs, pre_dispatch=pre_dispatch)(
                    delayed(function)(task, *common) for task in tasks
                )
        except Exception as problem:
            if last or not _is_loss_of_workers(problem):
                raise
    raise RuntimeError("no attempt was made")


def _is_loss_of_workers(problem: BaseException) -> bool:
    names = {kind.__name__ for kind in type(problem).__mro__}
    return bool(
        names & {"TerminatedWorkerError", "BrokenProcessPool", "KilledWorker", "CancelledError"}
    )
