"""Tasks in other processes: shared data, their place, and lost workers."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
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

from skdptune.model_selection._running import _parallel
from skdptune.model_selection._running._parallel import (
    active_client,
    perform_all,
    perform_on_cluster,
    private_folder,
    remove_stale,
)
from tests.clusters import of_ray
from tests.model_selection.learners import Scripted, cloudpickle, table
from tests.model_selection.ways import WAYS


class TerminatedWorkerError(Exception):
    """Named as what joblib raises when a worker is gone."""


def test_no_result_is_reported_twice_where_workers_are_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Theorem T8: a noisy score is paid for once, and is shown when it is reported.
    attempts: list[Any] = []

    class Losing:
        def __init__(self, n_jobs: Any, **settings: Any) -> None:
            attempts.append(n_jobs)

        def __call__(self, tasks: Any) -> Any:
            listed = list(tasks)
            yield from (function(*args) for function, args, _ in listed[:2])
            if len(attempts) < 3:
                raise TerminatedWorkerError
            yield from (function(*args) for function, args, _ in listed[2:])

    monkeypatch.setattr(_parallel, "Parallel", Losing)
    monkeypatch.setattr(_parallel, "delayed", lambda f: lambda *a, **k: (f, a, k))
    made: list[int] = []
    shown: list[tuple[int, tuple[int, int]]] = []

    def noisy(task: int, shared: int) -> tuple[int, int]:
        made.append(task)
        return task, len(made)

    def show(place: int, result: tuple[int, int]) -> None:
        shown.append((place, result))

    tasks = list(range(10, 17))
    found = perform_all(noisy, tasks, 0, n_jobs=4, pre_dispatch="all", on_result=show)
    assert attempts == [4, 4, 1]
    assert shown == list(enumerate(found))
    assert [task for task, _ in found] == made == tasks


@pytest.mark.skipif(os.name != "posix", reason="modes of files")
def test_records_are_shared_in_a_private_folder() -> None:
    # Theorem F10: records and seeds in files.
    def file_of(task: int, shared: np.ndarray) -> tuple[str, int]:
        # Sent by content, since workers do not find this module.
        return str(shared.filename), int(shared[task])

    shared = np.arange(200_000)
    # Workers that somebody else has started have another folder.
    joblib.Parallel(n_jobs=2)(joblib.delayed(np.sum)(shared) for _ in range(2))
    found = perform_all(file_of, [3, 4], shared, n_jobs=2, pre_dispatch="all")
    assert [value for _, value in found] == [3, 4]
    folder = private_folder()
    assert [file for file, _ in found if not file.startswith(folder)] == []
    assert stat.S_IMODE(Path(folder).stat().st_mode) == 0o700


# The folder of what they share -------------------------------------------------------------------


pytestmark = pytest.mark.skipif(os.name != "posix", reason="locks and modes of files")


# A process that shares secret records in its folder, says where, and waits.
SCRIPT = """
import sys, time
from skdptune.model_selection._running._parallel import private_folder
folder = private_folder()
open(folder + "/records", "w").write("secret")
print(folder, flush=True)
if sys.argv[1] == "wait":
    time.sleep(600)
"""


@pytest.fixture
def parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the place of folders, those of other processes included."""
    monkeypatch.setenv("JOBLIB_TEMP_FOLDER", str(tmp_path))
    _parallel._folder_of.cache_clear()
    yield tmp_path
    _parallel._folder_of.cache_clear()


def start(what: str) -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, what], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    with process.stdout as lines:
        return process, Path(lines.readline().strip())


def test_only_the_user_may_read_it(parent: Path) -> None:
    # Theorem F10: records and seeds in files.
    folder = Path(private_folder())
    assert folder.parent == parent
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert private_folder() == str(folder)


def test_it_is_removed_at_the_end(parent: Path) -> None:
    # Theorem F10: records and seeds in files.
    process, folder = start("end")
    assert process.wait(60) == 0
    assert folder.parent == parent
    assert not folder.exists()


def test_what_a_killed_process_left_is_removed_by_the_next(parent: Path) -> None:
    # Theorem F10: records and seeds in files.
    process, folder = start("wait")
    remove_stale(parent)
    assert (folder / "records").read_text() == "secret"
    process.send_signal(signal.SIGKILL)
    process.wait(60)
    assert (folder / "records").exists()
    private_folder()
    assert not folder.exists()


@pytest.mark.parametrize(
    "lock", [None, b"mine", _parallel._MARK + b"and more"], ids=["none", "other", "longer"]
)
def test_a_folder_of_the_users_own_stays(parent: Path, lock: bytes | None) -> None:
    # Theorem F10: records and seeds in files.
    own = parent / "skdptune-results"
    own.mkdir()
    (own / "thesis").write_text("of two years")
    if lock is not None:
        (own / "lock").write_bytes(lock)
    os.utime(own, (time.time() - 7200.0,) * 2)
    remove_stale(parent)
    assert (own / "thesis").read_text() == "of two years"


def test_the_mark_is_not_read_through_a_link_or_a_pipe(parent: Path) -> None:
    (parent / "mark").write_bytes(_parallel._MARK)
    for name in ("skdptune-link", "skdptune-pipe"):
        (parent / name).mkdir()
    (parent / "skdptune-link" / "lock").symlink_to(parent / "mark")
    os.mkfifo(parent / "skdptune-pipe" / "lock")
    remove_stale(parent)
    assert len(list(parent.iterdir())) == 3


def test_a_forked_process_has_a_folder_of_its_own(parent: Path) -> None:
    own = private_folder()
    assert _parallel._folder_of(-1) != own


# Workers that die --------------------------------------------------------------------------------


# The workers may not find this file under its name.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


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


X, Y = table(500)
VALUES = {"quality": [0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 1.0]}


@contextmanager
def of_joblib() -> Iterator[None]:
    """Give searches joblib's own workers."""
    with joblib.parallel_config(backend="loky", n_jobs=2):
        yield


# Workers that were killed leave sockets and child processes for the collector.
@pytest.mark.filterwarnings("ignore")
# Of ray and dask only nightly.
@pytest.mark.parametrize(
    "backend",
    [
        pytest.param(of_joblib, id="loky"),
        pytest.param(of_ray, id="ray", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("name", ["grid-table", pytest.param("random", marks=pytest.mark.slow)])
def test_workers_may_die(name: str, backend: Any, tmp_path: Path) -> None:
    # A seeded search has the same result as a separate one, so it spends nothing more.
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


def add(task: int, more: int) -> int:
    return task + more


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
@pytest.mark.slow
@pytest.mark.parametrize("name", ["random", "grid-compose"])
def test_dask_workers_may_die(name: str, tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    settings = {"n_iter": 12} if name == "random" else {}

    def search(n_jobs: int | None, mark: str | None = None) -> Any:
        return WAYS[name].make(Slow(delta=1e-5, mark=mark), VALUES, n_jobs=n_jobs, **settings)

    alone = search(1).fit(X, Y)
    killed: list[int] = []
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        killer = threading.Thread(target=kill_the_first, args=(tmp_path, killed), daemon=True)
        killer.start()
        found = in_time(lambda: on_dask(search(-1, str(tmp_path))))
        killer.join()
        (victim,) = killed
        assert victim not in {os.getpid(), *client.run(os.getpid).values()}
    assert found.best_params_ == alone.best_params_
    np.testing.assert_equal(found.best_score_, alone.best_score_)
    np.testing.assert_equal(found.cv_results_["params"], alone.cv_results_["params"])


@pytest.mark.filterwarnings("ignore")
def test_tasks_on_a_cluster_of_dask() -> None:
    distributed = pytest.importorskip("distributed")
    with distributed.Client(n_workers=1, processes=False, dashboard_address=None) as client:
        with joblib.parallel_config(backend="dask"):
            assert active_client() is client
            assert perform_on_cluster(client, add, [3, 1, 2], (10,)) == [13, 11, 12]
            assert perform_on_cluster(client, add, [], (10,)) == []
            found = WAYS["random"].make(Scripted(delta=1e-5), VALUES, n_jobs=-1).fit(X, Y)
    alone = WAYS["random"].make(Scripted(delta=1e-5), VALUES).fit(X, Y)
    assert found.best_params_ == alone.best_params_
    np.testing.assert_equal(found.best_score_, alone.best_score_)
