"""Run tasks in parallel, with joblib's backends or on a dask cluster; retry lost ones."""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from joblib import effective_n_jobs
from joblib.parallel import get_active_backend
from sklearn import config_context, get_config

from skdptune._compat import Parallel, delayed, fcntl
from skdptune.model_selection._running._quiet import Quiet

_PREFIX = "skdptune-"
# The locked file. Its content distinguishes a folder of this package from others.
_LOCK = "lock"
_MARK = b"a private folder of skdptune, removed with all that is in it once its process is gone\n"
_SHARED_MEMORY = "/dev/shm"
# As in joblib: a container may have almost no shared memory.
_LEAST_SHARED_MEMORY = 2_000_000_000


def private_folder() -> str:
    """Return this process's folder, which is made at the first request.

    Only its owner may read it (mode 0700). It is removed at the end of the process. Folders of
    processes that were killed are removed when the next folder is made. As in joblib, it lies in
    ``JOBLIB_TEMP_FOLDER`` if that is set, else in shared memory, else among temporary files.

    Notes
    -----
    Theorem F10.
    """
    folder = Path(_folder_of(os.getpid()))
    if not folder.exists():
        _folder_of.cache_clear()
        folder = Path(_folder_of(os.getpid()))
    return str(folder)


@functools.lru_cache(maxsize=1)
def _folder_of(process: int) -> str:
    """Return the new folder of a process; after a fork the child makes another one."""
    parent = _parent()
    remove_stale(parent)
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
    lock = open(folder / _LOCK, "wb")  # noqa: SIM115 (it is open as long as the process lives)
    if fcntl is not None:
        fcntl.flock(lock, fcntl.LOCK_EX)
    # Only a marked folder is ever removed by others, so it is locked first.
    lock.write(_MARK)
    lock.flush()
    atexit.register(_remove, folder, process, lock)
    return str(folder)


def _parent() -> Path:
    chosen = os.environ.get("JOBLIB_TEMP_FOLDER")
    if chosen:
        os.makedirs(chosen, exist_ok=True)
        return Path(chosen)
    with contextlib.suppress(OSError, AttributeError):
        state = os.statvfs(_SHARED_MEMORY)
        is_large = state.f_bsize * state.f_bavail > _LEAST_SHARED_MEMORY
        if is_large and os.access(_SHARED_MEMORY, os.W_OK | os.X_OK):
            return Path(_SHARED_MEMORY)
    return Path(tempfile.gettempdir())


def _remove(folder: Path, process: int, lock: Any) -> None:
    """Remove a process's own folder; a forked child leaves that of its parent."""
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)
        lock.close()


def remove_stale(parent: Path) -> None:
    """Remove folders that ended processes of this user have left behind.

    A folder without the mark of this package stays, whatever its name. The empty folder of a
    process that was killed before it wrote the mark also stays.
    """
    if fcntl is None:
        return
    for folder in parent.glob(f"{_PREFIX}*"):
        if _is_stale(folder):
            shutil.rmtree(folder, ignore_errors=True)


def _is_stale(folder: Path) -> bool:
    """Return whether an own folder is marked and its lock is free, since its process has ended."""
    try:
        # Do not follow links, which could lead elsewhere.
        if folder.is_symlink() or folder.lstat().st_uid != os.getuid():
            return False
        # Nor wait for a pipe.
        number = os.open(folder / _LOCK, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(number, "rb") as lock:
            if lock.read(len(_MARK) + 1) != _MARK:
                return False
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


_RETRIES = 3


def active_client() -> Any:
    """Return the client of the cluster that joblib is set to use; None if there is none."""
    backend, _ = get_active_backend()
    is_dask = type(backend).__module__.rpartition(".")[2] == "_dask"
    return getattr(backend, "client", None) if is_dask else None


def perform_on_cluster(
    client: Any, function: Callable[..., Any], tasks: Sequence[Any], common: tuple[Any, ...]
) -> list[Any]:
    """Return ``function(task, *common)`` of all tasks, in order.

    Common arguments are sent to each worker once. Everything is serialised as for joblib's own
    workers, so classes of a notebook need not be known there.
    """
    import cloudpickle

    if not len(tasks):
        return []
    whole = cloudpickle.dumps((function, common, get_config()))
    (shared,) = client.scatter([whole], broadcast=True, hash=False)
    packed = [cloudpickle.dumps(task) for task in tasks]
    futures = client.map(_call, packed, shared=shared, pure=False, retries=_RETRIES)
    return [cloudpickle.loads(found) for found in client.gather(futures)]


def _call(task: bytes, shared: bytes) -> bytes:
    import cloudpickle

    function, common, settings = cloudpickle.loads(shared)
    with config_context(**settings):
        found = function(cloudpickle.loads(task), *common)
    return bytes(cloudpickle.dumps(found))


Result = TypeVar("Result")
_ATTEMPTS = 3
# Exceptions with which joblib, dask and ray report a lost worker.
_LOSSES = {
    "BrokenProcessPool",
    "CancelledError",
    "KilledWorker",
    "RayActorError",
    "TerminatedWorkerError",
    "WorkerCrashedError",
}
# Size in bytes from which an array is shared through a file. Workers with the same settings are
# reused, with the folder that they were started with. No other user of joblib may therefore have
# these settings.
_LEAST_SHARED = 1_000_003


def perform_all(
    function: Callable[..., Result],
    tasks: Sequence[Any],
    *common: Any,
    n_jobs: int | None,
    pre_dispatch: Any,
    on_result: Callable[[int, Result], None] | None = None,
) -> list[Result]:
    """Return ``function(task, *common)`` of all tasks, in order; if workers are lost, try again.

    The seeds belong to the tasks, so a seeded repetition gives the same results. `on_result` is
    called once for each task, with its number and its result, as soon as this result and the
    earlier ones are known. A task whose result was reported is not repeated: another result would
    have different noise, which is not paid for.
    """
    # Theorem T8: a score that was shown is not drawn again.
    results: list[Result] = []
    for attempt in range(_ATTEMPTS):
        last = attempt == _ATTEMPTS - 1
        left = tasks[len(results) :]
        try:
            with Quiet():
                found: Iterable[Result]
                client = None if last or n_jobs == 1 else active_client()
                if client is not None:
                    found = perform_on_cluster(client, function, left, common)
                else:
                    parallel = _parallel(1 if last else n_jobs, pre_dispatch)
                    found = parallel(delayed(function)(task, *common) for task in left)
                for result in found:
                    results.append(result)
                    if on_result is not None:
                        on_result(len(results) - 1, result)
                return results
        except Exception as problem:
            if last or _LOSSES.isdisjoint(kind.__name__ for kind in type(problem).__mro__):
                raise
    raise RuntimeError("no attempt was made")


def _parallel(n_jobs: int | None, pre_dispatch: Any) -> Any:
    """Return joblib's parallel loop, whose workers share records only in a private folder."""
    # Theorem F10: records are stored where only their owner may read them.
    backend, _ = get_active_backend()
    # Ray's backend cannot return results one by one.
    return_as = "generator" if backend.supports_return_generator else "list"
    if effective_n_jobs(n_jobs) == 1:
        return Parallel(n_jobs=n_jobs, pre_dispatch=pre_dispatch, return_as=return_as)
    return Parallel(
        n_jobs=n_jobs,
        pre_dispatch=pre_dispatch,
        return_as=return_as,
        temp_folder=private_folder(),
        max_nbytes=_LEAST_SHARED,
    )
