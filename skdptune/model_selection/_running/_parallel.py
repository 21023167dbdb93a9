"""Tasks in parallel, by joblib's backends or on a dask cluster, tried again if one is lost."""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from joblib import effective_n_jobs
from joblib.parallel import get_active_backend
from sklearn import config_context, get_config

from skdptune._compat import Parallel, delayed, fcntl
from skdptune.model_selection._running._quiet import Quiet

_PREFIX = "skdptune-"
_UNFINISHED = ".skdptune-"
# The file that is locked. What it holds tells a folder of this package from any other.
_LOCK = "lock"
_MARK = b"a private folder of skdptune, removed with all that is in it once its process is gone\n"
_SHARED_MEMORY = "/dev/shm"
# As joblib has it: in a container there may be next to none.
_LEAST_SHARED_MEMORY = 2_000_000_000


def private_folder() -> str:
    """Return this process's folder, made when first asked for.

    Only the user may read it (mode 0700). It is removed at the end of the process; those of
    processes that ended without doing so, since they were killed, are removed when the next one
    is made. Like joblib's own it lies in ``JOBLIB_TEMP_FOLDER`` where that is set, else in shared
    memory, else among temporary files.

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
    """Return the new folder of a process; after a fork the child makes one of its own."""
    parent = _parent()
    remove_stale(parent)
    folder, lock = _locked_folder(parent)
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


def _locked_folder(parent: Path) -> tuple[Path, Any]:
    """Return a folder that is locked as long as its process lives, and the file with the lock."""
    unfinished = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=parent))
    lock = open(unfinished / _LOCK, "wb")  # noqa: SIM115 (it is open as long as the process lives)
    if fcntl is not None:
        fcntl.flock(lock, fcntl.LOCK_EX)
    lock.write(_MARK)
    lock.flush()
    # Under its final name nobody sees it without the lock.
    folder = parent / (_PREFIX + unfinished.name.removeprefix(_UNFINISHED))
    unfinished.rename(folder)
    return folder, lock


def _remove(folder: Path, process: int, lock: Any) -> None:
    """Remove a process's own folder; a forked child leaves that of its parent."""
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)
        lock.close()


def remove_stale(parent: Path) -> None:
    """Remove folders that processes of this user have left behind.

    Whatever its name, a folder without the mark of this package stays. So does the empty one of a
    process that was killed before it wrote the mark.
    """
    for folder in _own_folders(parent):
        if _is_stale(folder):
            shutil.rmtree(folder, ignore_errors=True)


def _own_folders(parent: Path) -> Iterator[Path]:
    user = os.getuid() if hasattr(os, "getuid") else None
    for folder in parent.iterdir():
        if not folder.name.startswith((_PREFIX, _UNFINISHED)):
            continue
        with contextlib.suppress(OSError):
            state = folder.lstat()
            # Not through a link, which would lead elsewhere.
            is_own = user is None or state.st_uid == user
            if is_own and not folder.is_symlink() and folder.is_dir():
                yield folder


def _is_stale(folder: Path) -> bool:
    """Return whether a folder is marked, and its process gone: then nobody holds its lock."""
    if fcntl is None:
        return False
    try:
        # Not through a link, and without waiting for a pipe.
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
    """Return the client of the cluster that joblib is set to use, None if there is none."""
    backend, _ = get_active_backend()
    is_dask = type(backend).__module__.rpartition(".")[2] == "_dask"
    return getattr(backend, "client", None) if is_dask else None


def perform_on_cluster(
    client: Any, function: Callable[..., Any], tasks: Sequence[Any], common: tuple[Any, ...]
) -> list[Any]:
    """Return ``function(task, *common)`` of all tasks, in order.

    What is common is sent to each worker once. Everything travels as joblib's own workers get it,
    so that classes of a notebook need not be known there.
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
# How joblib, dask and ray say that a worker is gone.
_LOSSES = {
    "BrokenProcessPool",
    "CancelledError",
    "KilledWorker",
    "RayActorError",
    "TerminatedWorkerError",
    "WorkerCrashedError",
}
# Bytes from which an array is shared through a file. Workers of the same settings are used again,
# with the folder that they were started with: no other caller of joblib may have these settings.
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

    The seeds belong to the tasks, so that a seeded repetition gives the same. `on_result` is
    called once for each task, with its number and its result, as soon as it and those before it
    are known: what was reported is not done again, since another result would have noise of its
    own, which nothing pays for.
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
            if last or not _is_loss_of_workers(problem):
                raise
    raise RuntimeError("no attempt was made")


def _parallel(n_jobs: int | None, pre_dispatch: Any) -> Any:
    """Return joblib's parallel loop, whose workers share records in a private folder alone."""
    # Theorem F10: records lie where their user alone may read them.
    backend, _ = get_active_backend()
    # Ray's backend cannot give results one by one.
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


def _is_loss_of_workers(problem: BaseException) -> bool:
    names = {kind.__name__ for kind in type(problem).__mro__}
    return bool(names & _LOSSES)
