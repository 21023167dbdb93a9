"""Evaluations of parameters, and the workers that make them."""

from __future__ import annotations

import functools
import math
import numbers
import pickle
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from joblib.executor import get_memmapping_executor
from joblib.externals.loky.backend.reduction import dumps
from joblib.parallel import get_active_backend


@dataclass(frozen=True)
class Evaluation:
    """What one evaluation of parameters found.

    Attributes
    ----------
    epsilon : float
        The privacy of the parameters; ``inf`` is none.
    utilities : tuple of float
        One utility in [0, 1] per repeat.
    extra : float or None
        The third objective, to be minimised.
    error : str or None
        Why the evaluation failed; None is success, and the other attributes then hold.
    seconds : float
        How long the evaluation took.
    """

    epsilon: float
    utilities: tuple[float, ...] = ()
    extra: float | None = None
    error: str | None = None
    seconds: float = 0.0


Evaluate = Callable[[dict[str, Any], int, np.random.SeedSequence], Evaluation]


def perform(
    evaluate: Evaluate, params: dict[str, Any], number: int, seed: np.random.SeedSequence
) -> Evaluation:
    """Return an evaluation, one that failed in place of whatever ``evaluate`` raises."""
    start = time.perf_counter()
    try:
        found = checked(evaluate(params, number, seed))
    # An oracle may raise anything; a search goes on without the point.
    except Exception as problem:
        found = failed(problem)
    return replace(found, seconds=time.perf_counter() - start)


def failed(problem: BaseException) -> Evaluation:
    """Return the evaluation that failed for a reason."""
    return Evaluation(math.nan, error=f"{type(problem).__name__}: {problem}")


def checked(found: Evaluation) -> Evaluation:
    """Return an evaluation of plain numbers, or raise for what is no privacy or utility."""
    if found.error is not None:
        return found
    epsilon = _number(found.epsilon, "epsilon", math.inf)
    utilities = tuple(_number(value, "utility", 1.0) for value in found.utilities)
    if not utilities:
        raise ValueError("utilities must hold at least one number; got none.")
    extra = found.extra if found.extra is None else float(found.extra)
    if extra is not None and not math.isfinite(extra):
        raise ValueError(f"The third objective must be a finite number; got {extra}.")
    return Evaluation(epsilon, utilities, extra, None)


def _number(value: Any, name: str, upper: float) -> float:
    if not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number; got {type(value).__name__}.")
    number = float(value)
    if not 0.0 <= number <= upper:
        closing = "]" if math.isfinite(upper) else " inf]"
        domain = "[0, inf]" if closing != "]" else f"[0, {upper:g}]"
        raise ValueError(f"{name} must be a number in {domain}; got {number!r}.")
    return number


class Inline(Executor):
    """Do the work when its result is asked for, in this thread."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Return a future that works when waited for."""
        future: Future[Any] = Future()
        future.work = functools.partial(fn, *args, **kwargs)  # type: ignore[attr-defined]
        return future

    @staticmethod
    def run(future: Future[Any]) -> None:
        """Do the work of a future."""
        future.set_result(future.work())  # type: ignore[attr-defined]


class Workers:
    """Where evaluations run: this thread, threads, or joblib's processes.

    Threads are used where joblib's active backend is threading, and where ``evaluate`` cannot
    be pickled.

    Parameters
    ----------
    evaluate : callable
        See :class:`ParetoEngine`.
    n_jobs : int or None
        As joblib understands it, at most ``most`` workers.
    most : int
    """

    def __init__(self, evaluate: Evaluate, n_jobs: int | None, most: int) -> None:
        self.n_workers = min(effective_n_jobs(n_jobs), most)
        self._evaluate, self._payload = evaluate, b""
        self._executor = self._make()

    def _make(self) -> Executor:
        if self.n_workers == 1:
            return Inline()
        backend, _ = get_active_backend()
        if "Threading" not in type(backend).__name__ and self._pickles():
            # joblib's own kind: loky has one pool per process, and joblib would stumble over a
            # plain one.
            executor: Executor = get_memmapping_executor(self.n_workers)
            return executor
        return ThreadPoolExecutor(self.n_workers)

    def _pickles(self) -> bool:
        try:
            self._payload = bytes(dumps(self._evaluate))
        # Objects refuse to be pickled with errors of every kind.
        except Exception:
            return False
        return True

    def submit(
        self, params: dict[str, Any], number: int, seed: np.random.SeedSequence
    ) -> Future[Evaluation]:
        """Return the future evaluation."""
        if self._payload:
            return self._executor.submit(_perform_pickled, self._payload, params, number, seed)
        return self._executor.submit(perform, self._evaluate, params, number, seed)

    def first(self, futures: Sequence[Future[Evaluation]]) -> list[Future[Evaluation]]:
        """Wait for one of the futures at least, and return those that are done, in order."""
        if isinstance(self._executor, Inline):
            self._executor.run(futures[0])
        finished = _wait(futures)
        return [future for future in futures if future in finished]

    def result(self, future: Future[Evaluation]) -> Evaluation:
        """Return a finished evaluation; one that took its worker down has failed."""
        problem = future.exception()
        if problem is None:
            return future.result()
        if not isinstance(problem, Exception):
            raise problem
        # A broken pool takes no more work: the next one is another.
        if self._payload:
            self._executor = self._make()
        return failed(problem)

    def close(self) -> None:
        """Let threads end; joblib keeps its processes for the next call."""
        if isinstance(self._executor, ThreadPoolExecutor):
            self._executor.shutdown(wait=True, cancel_futures=True)


def _wait(futures: Sequence[Future[Evaluation]]) -> set[Future[Evaluation]]:
    from concurrent.futures import FIRST_COMPLETED, wait

    return set(wait(futures, return_when=FIRST_COMPLETED).done)


def _perform_pickled(
    payload: bytes, params: dict[str, Any], number: int, seed: np.random.SeedSequence
) -> Evaluation:
    return perform(_loaded(payload), params, number, seed)


@functools.lru_cache(maxsize=1)
def _loaded(payload: bytes) -> Evaluate:
    """Return what was pickled: a worker unpickles data once, not for each evaluation."""
    evaluate: Evaluate = pickle.loads(payload)
    return evaluate
