"""Workers that make evaluations: this thread, threads or processes."""

from __future__ import annotations

import functools
import pickle
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from joblib.executor import get_memmapping_executor
from joblib.parallel import get_active_backend

from skdptune._compat import dumps_for_workers
from skdptune.model_selection._pareto._study._records import (
    Evaluate,
    Evaluation,
    checked_evaluation,
    failed_evaluation,
)


def perform(
    evaluate: Evaluate, params: dict[str, Any], number: int, seed: np.random.SeedSequence
) -> Evaluation:
    """Return an evaluation; one that failed if ``evaluate`` raises."""
    start = time.perf_counter()
    try:
        found = checked_evaluation(evaluate(params, number, seed))
    # An oracle may raise anything; the search continues without the point.
    except Exception as problem:
        found = failed_evaluation(problem)
    return replace(found, seconds=time.perf_counter() - start)


class Deferred(Future[Any]):
    """A future whose work is done in this thread, by `run`."""

    def __init__(self, work: Callable[[], Any]) -> None:
        super().__init__()
        self._work = work

    def run(self) -> None:
        """Do the work."""
        self.set_result(self._work())


class Inline(Executor):
    """Runs work in this thread when its result is waited for."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Return a future whose work is done later."""
        return Deferred(functools.partial(fn, *args, **kwargs))


class Workers:
    """Run evaluations in this thread, in threads or in joblib's processes.

    Threads are used where joblib's active backend is threading, and where ``evaluate`` cannot
    be pickled.

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

    def _make(self) -> Executor:
        if self.n_workers == 1:
            return Inline()
        backend, _ = get_active_backend()
        if "Threading" not in type(backend).__name__ and self._pickles():
            # loky has one pool per process, which joblib can only share if it is of this kind.
            executor: Executor = get_memmapping_executor(self.n_workers)
            return executor
        return ThreadPoolExecutor(self.n_workers)

    def _pickles(self) -> bool:
        try:
            self._payload = bytes(dumps_for_workers(self._evaluate))
        # Objects that cannot be pickled raise anything.
        except Exception:
            return False
        return True

    def submit(
        self, params: dict[str, Any], number: int, seed: np.random.SeedSequence
    ) -> Future[Evaluation]:
        """Start an evaluation."""
        if self._payload:
            return self._executor.submit(_perform_pickled, self._payload, params, number, seed)
        return self._executor.submit(perform, self._evaluate, params, number, seed)

    def first(self, futures: Sequence[Future[Evaluation]]) -> list[Future[Evaluation]]:
        """Wait until at least one future is done, and return those that are, in order."""
        if isinstance(futures[0], Deferred):
            futures[0].run()
        finished = wait(futures, return_when=FIRST_COMPLETED).done
        return [future for future in futures if future in finished]

    def result(self, future: Future[Evaluation]) -> Evaluation:
        """Return a finished evaluation; one whose worker died has failed."""
        problem = future.exception()
        if problem is None:
            return future.result()
        if not isinstance(problem, Exception):
            raise problem
        # A broken pool takes no more work.
        if self._payload:
            self._executor = self._make()
        return failed_evaluation(problem)

    def close(self) -> None:
        """Stop threads; joblib keeps its processes for the next call."""
        if isinstance(self._executor, ThreadPoolExecutor):
            self._executor.shutdown(wait=True, cancel_futures=True)


def _perform_pickled(
    payload: bytes, params: dict[str, Any], number: int, seed: np.random.SeedSequence
) -> Evaluation:
    return perform(_loaded(payload), params, number, seed)


@functools.lru_cache(maxsize=1)
def _loaded(payload: bytes) -> Evaluate:
    """Return the unpickled function; cached, so that a worker unpickles the data once."""
    evaluate: Evaluate = pickle.loads(payload)
    return evaluate
