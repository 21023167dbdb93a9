"""Evaluations in this thread, in threads and in processes."""

from __future__ import annotations

import math
import os
import sys
import threading
from typing import Any

import cloudpickle
import joblib
import numpy as np
import pytest

from skdptune.model_selection._pareto._optimizer import Evaluation, Workers, perform

# Another package may be named tests where workers look for it.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

SEED = np.random.SeedSequence(5)


def evaluate(params: dict[str, Any], number: int, seed: np.random.SeedSequence) -> Evaluation:
    if params.get("deadly"):
        os._exit(1)
    if params.get("bad"):
        raise KeyError("no such thing")
    return Evaluation(params["x"], (0.25, np.float32(0.75)), third=float(os.getpid()))


def run(workers: Workers, *params: dict[str, Any]) -> list[Evaluation]:
    futures = [workers.submit(some, n, SEED) for n, some in enumerate(params)]
    waiting, found = list(futures), {}
    while waiting:
        for future in workers.first(waiting):
            found[future] = workers.result(future)
            waiting.remove(future)
    workers.close()
    return [found[future] for future in futures]


def test_what_is_raised_is_a_failed_evaluation() -> None:
    found = perform(evaluate, {"x": 1.0, "bad": True}, 0, SEED)
    assert found.failure == "KeyError: 'no such thing'"
    assert math.isnan(found.epsilon) and found.seconds >= 0.0


def test_one_worker_is_this_thread() -> None:
    found = run(Workers(evaluate, 1, 4), {"x": 1.0}, {"x": 2.0}, {"bad": True})
    assert [each.epsilon for each in found[:2]] == [1.0, 2.0]
    assert found[0].third == os.getpid()
    assert found[2].failure is not None


def test_several_workers_are_other_processes() -> None:
    found = run(Workers(evaluate, 2, 4), *({"x": float(n)} for n in range(4)))
    assert [each.epsilon for each in found] == [0.0, 1.0, 2.0, 3.0]
    assert os.getpid() not in {each.third for each in found}


def test_what_cannot_be_pickled_runs_in_threads() -> None:
    lock = threading.Lock()

    def locked(params: dict[str, Any], number: int, seed: Any) -> Evaluation:
        with lock:
            return evaluate(params, number, seed)

    found = run(Workers(locked, 2, 2), {"x": 1.0}, {"x": 2.0})
    assert {each.third for each in found} == {os.getpid()}


def test_threads_are_used_where_joblib_is_set_to_threads() -> None:
    with joblib.parallel_config(backend="threading"):
        workers = Workers(evaluate, 2, 2)
    assert {each.third for each in run(workers, {"x": 1.0}, {"x": 2.0})} == {os.getpid()}


def test_batch_bounds_the_workers() -> None:
    assert Workers(evaluate, 8, 1).n_workers == 1
    assert Workers(evaluate, -1, 64).n_workers == joblib.effective_n_jobs(-1)


def test_evaluation_that_kills_its_worker_has_failed_and_the_next_goes_on() -> None:
    workers = Workers(evaluate, 2, 2)
    future = workers.submit({"x": 1.0, "deadly": True}, 0, SEED)
    (done,) = workers.first([future])
    assert "Terminated" in str(workers.result(done).failure)
    assert run(workers, {"x": 3.0})[0].epsilon == 3.0


def test_interrupt_is_no_failure() -> None:
    def interrupted(*_: Any) -> Evaluation:
        raise KeyboardInterrupt

    workers = Workers(interrupted, 1, 1)
    with pytest.raises(KeyboardInterrupt):
        workers.first([workers.submit({}, 0, SEED)])
