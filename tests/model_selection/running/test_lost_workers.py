"""Whole searches on two workers of joblib's and of ray, one of which is killed."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest

from tests.model_selection.learners import Scripted, cloudpickle, table
from tests.model_selection.ways import WAYS

pytestmark = pytest.mark.skipif(os.name != "posix", reason="kills a process by a signal")

# The workers may not find this file under its name.
cloudpickle.register_pickle_by_value(sys.modules[__name__])
X, Y = table(500)
VALUES = {"quality": [0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 1.0]}


class Slow(Scripted):
    """Says who fits it, and takes long enough for that worker to be killed meanwhile."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        if self.mark:
            Path(self.mark, str(os.getpid())).touch()
        time.sleep(0.15)
        return super().fit(X, y)


def kill_the_first(folder: Path, killed: list[int]) -> None:
    """Wait for a worker to start a fit, and kill it."""
    for _ in range(6000):
        # This process itself tries a fit to made-up records before.
        found = [int(path.name) for path in folder.iterdir() if path.name != str(os.getpid())]
        if found:
            killed.append(found[0])
            os.kill(killed[0], signal.SIGKILL)
            return
        time.sleep(0.01)


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
