"""Searches on a cluster of real worker processes, one of which is killed."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest

from skdptune.model_selection._running._parallel import active_client, perform_on_cluster
from tests.model_selection.learners import cloudpickle, table
from tests.model_selection.running.dying_workers import Slow, kill_the_first
from tests.model_selection.ways import WAYS

distributed = pytest.importorskip("distributed")

# The workers may not find this file under its name.
cloudpickle.register_pickle_by_value(sys.modules[__name__])
X, Y = table(500)


def add(task: int, more: int) -> int:
    return task + more


def test_what_travels_is_small_however_long_the_session_was() -> None:
    for number in range(1, 30):
        Slow(delta=1e-5, epsilon=1.0 + number / 10.0).privacy_profile(100)
    assert len(cloudpickle.dumps(Slow())) < 50_000


def test_without_a_cluster_there_is_no_client() -> None:
    assert active_client() is None
    with joblib.parallel_config(backend="threading"):
        assert active_client() is None


def on_dask(search: Any) -> Any:
    with joblib.parallel_config(backend="dask"):
        return search.fit(X, Y)


def in_time(function: Any, seconds: float = 300.0) -> Any:
    """Return what a function returns; fail, rather than wait for ever."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(function()), daemon=True)
    thread.start()
    thread.join(seconds)
    assert found, "the search was lost with its worker"
    return found[0]


# Workers that were killed leave sockets and child processes for the collector.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["random", pytest.param("grid-compose", marks=pytest.mark.slow)])
def test_dask_workers_may_die(name: str, tmp_path: Path) -> None:
    values = {"quality": [0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 1.0]}
    settings = {"n_iter": 12} if name == "random" else {}

    def search(n_jobs: int | None, mark: str | None = None) -> Any:
        return WAYS[name].make(Slow(delta=1e-5, mark=mark), values, n_jobs=n_jobs, **settings)

    alone = search(1).fit(X, Y)
    killed: list[int] = []
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        killer = threading.Thread(target=kill_the_first, args=(tmp_path, killed), daemon=True)
        with joblib.parallel_config(backend="dask"):
            assert active_client() is client
            assert perform_on_cluster(client, add, [3, 1, 2], (10,)) == [13, 11, 12]
            assert perform_on_cluster(client, add, [], (10,)) == []
        killer.start()
        found = in_time(lambda: on_dask(search(-1, str(tmp_path))))
        killer.join()
        (victim,) = killed
        assert victim not in {os.getpid(), *client.run(os.getpid).values()}
    assert found.best_params_ == alone.best_params_
    np.testing.assert_equal(found.best_score_, alone.best_score_)
    np.testing.assert_equal(found.cv_results_["params"], alone.cv_results_["params"])
