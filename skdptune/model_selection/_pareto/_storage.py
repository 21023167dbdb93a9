"""The optuna study of a Pareto search, and the processes that work on it."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

_DEFAULT_NAME = "pareto_search"
_PROCESS = "process "
_BEAT = 30.0
# A process of another machine that was silent for so long is gone.
_SILENCE = 180.0


def optuna() -> Any:
    """Return optuna, or raise naming the extra that brings it."""
    try:
        import optuna as package
    except ModuleNotFoundError as problem:
        raise ModuleNotFoundError(
            "Pareto searches need optuna, which is not installed. "
            "The extra 'pareto' brings it: pip install 'skdptune[pareto]'.",
            name="optuna",
        ) from problem
    return package


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep optuna from reporting what it does, and restore its verbosity."""
    logging = optuna().logging
    before = logging.get_verbosity()
    logging.set_verbosity(logging.ERROR)
    try:
        yield
    finally:
        logging.set_verbosity(before)


def open_storage(storage: Any) -> Any:
    """Return an optuna storage for None (memory), a path (SQLite), a URL, or one of optuna's."""
    package = optuna()
    if storage is None:
        return package.storages.InMemoryStorage()
    if isinstance(storage, package.storages.BaseStorage):
        return storage
    if not isinstance(storage, str | os.PathLike):
        kind = type(storage).__name__
        raise TypeError(f"storage must be None, a path, a URL or an optuna storage; got {kind}.")
    if isinstance(storage, str) and "://" in storage:
        return _data_base(storage)
    # Several processes write to one file: each waits for its turn.
    waiting = {"connect_args": {"timeout": 120}}
    return _data_base(f"sqlite:///{Path(storage).expanduser().resolve()}", engine_kwargs=waiting)


def _data_base(url: str, **given: Any) -> Any:
    """Return optuna's storage at a URL.

    Of several processes that find no tables and make them, all but one fail, and then find them.
    """
    from sqlalchemy.exc import DBAPIError

    for patience in (0.1, 0.3, 1.0):
        with contextlib.suppress(DBAPIError):
            return optuna().storages.RDBStorage(url, **given)
        time.sleep(patience)
    return optuna().storages.RDBStorage(url, **given)


def open_study(
    storage: Any, study_name: str | None, objectives: list[str], space: str, subject: str = ""
) -> Any:
    """Return a new study, or the one of the name that is to go on; raise if it is another's."""
    study = optuna().create_study(
        storage=open_storage(storage),
        study_name=study_name or _DEFAULT_NAME,
        directions=["minimize"] * len(objectives),
        load_if_exists=True,
    )
    kept = {"objectives": objectives, "space": space}
    if subject:
        kept["subject"] = subject
    for name, value in kept.items():
        known = study.user_attrs.get(name)
        if known is None:
            study.set_user_attr(name, value)
        elif known != value:
            raise ValueError(
                f"study_name must be a new study's or one of the same {name}, {value}; "
                f"got {study.study_name!r}, which has {known}."
            )
    return study


def study_entropy(study: Any, random_state: Any) -> int:
    """Return what all random numbers of a study derive from: drawn once, then kept by it."""
    known = study.user_attrs.get("entropy")
    if known is None:
        known = str(_entropy(random_state))
        study.set_user_attr("entropy", known)
    return int(known)


def _entropy(random_state: Any) -> int:
    if random_state is None:
        return int(np.random.SeedSequence().entropy)  # type: ignore[arg-type]
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    return int(check_random_state(random_state).randint(2**31 - 1))


class Membership:
    """One process among those that work on a study.

    Each writes the time now and then. On one machine a process that is gone is known at once.
    """

    def __init__(self, study: Any) -> None:
        self.study = study
        self.owner = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
        self._left = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Membership:
        """Sign in."""
        self._beat()
        self._thread = threading.Thread(target=self._go_on_beating, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *problem: object) -> None:
        """Sign out."""
        self._left.set()
        if self._thread is not None:
            self._thread.join()
        self.study.set_user_attr(_PROCESS + self.owner, 0.0)

    def _beat(self) -> None:
        self.study.set_user_attr(_PROCESS + self.owner, time.time())

    def _go_on_beating(self) -> None:
        while not self._left.wait(_BEAT):
            # A storage that is busy now will be asked again.
            with contextlib.suppress(Exception):
                self._beat()

    def living(self) -> set[str]:
        """Return the processes that work on the study."""
        attributes = self.study.user_attrs
        beats = {key: beat for key, beat in attributes.items() if key.startswith(_PROCESS)}
        owners = {key.removeprefix(_PROCESS): float(beat) for key, beat in beats.items()}
        return {owner for owner, beat in owners.items() if self._lives(owner, beat)}

    def _lives(self, owner: str, beat: float) -> bool:
        if owner == self.owner:
            return True
        host, pid, _ = owner.rsplit(":", 2)
        is_local = host == socket.gethostname() and os.name == "posix"
        return time.time() - beat < _SILENCE and not (is_local and _is_gone(int(pid)))


def _is_gone(pid: int) -> bool:
    """Return whether no process of this machine has a number (a signal of 0 only asks)."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False
