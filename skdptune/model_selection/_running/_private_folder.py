"""A folder for what workers share, which others cannot read and which no crash leaves behind."""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # not on Windows, where an open file cannot be removed anyway
    fcntl = None  # type: ignore[assignment]

_PREFIX = "skdptune-"
_UNFINISHED = ".skdptune-"
_LOCK = "lock"
_SHARED_MEMORY = "/dev/shm"
# As joblib has it: in a container there may be next to none.
_LEAST_SHARED_MEMORY = 2_000_000_000
# A process that is killed between two system calls leaves a folder without a lock.
_OLDEST_UNFINISHED = 3600.0


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
    """Remove folders that processes of this user have left behind."""
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
    """Return whether the process of a folder is gone: then nobody holds its lock."""
    try:
        if folder.name.startswith(_UNFINISHED):
            return time.time() - folder.lstat().st_mtime > _OLDEST_UNFINISHED
        if fcntl is None:
            return False
        with open(folder / _LOCK, "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
