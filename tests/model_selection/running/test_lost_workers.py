"""Whole searches on two workers of joblib's and of ray, one of which is killed."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest

from tests.model_selection.learners import table
from tests.model_selection.running.dying_workers import Slow, kill_the_first
from tests.model_selection.ways import WAYS

pytestmark = pytest.mark.skipif(os.name != "posix", reason="kills a process by a signal")

X, Y = table(500)
VALUES = {"quality": [0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 1.0]}


@contextmanager
def of_joblib() -> Iterator[None]:
    """Give searches joblib's own workers."""
    with joblib.parallel_config(backend="loky", n_jobs=2):
        yield


@contextmanager
def of_ray() -> Iterator[None]:
    """Give searches the workers of a ray cluster of this machine."""
    ray = pytest.importorskip("ray")
    from ray.util.joblib import register_ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        register_ray()
        with joblib.parallel_config(backend="ray", n_jobs=2):
            yield
    finally:
        ray.shutdown()


# Workers that were killed leave sockets and child processes for the collector.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("backend", [of_joblib, of_ray], ids=["loky", "ray"])
@pytest.mark.parametrize("name", ["grid-table", pytest.param("random", marks=pytest.mark.slow)])
def test_workers_may_die(name: str, backend: Any, tmp_path: Path) -> None:
    # A seeded search gives the same as by itself, and so spends no more.
    more = {"n_iter": 12} if name == "random" else {}

    def search(mark: str | None = None) -> Any:
        return WAYS[name].make(Slow(delta=1e-5, mark=mark), VALUES, **more)

    alone, killed = search().fit(X, Y), []
    with backend():
        killer = threading.Thread(target=kill_the_first, args=(tmp_path, killed), daemon=True)
        killer.start()
        found = search(str(tmp_path)).fit(X, Y)
        killer.join()
    assert killed[0] != os.getpid()
    assert found.best_params_ == alone.best_params_
    np.testing.assert_equal(found.cv_results_, alone.cv_results_)
