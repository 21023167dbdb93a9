"""The optuna study of a Pareto search: new, or one that is resumed from its storage."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

_DEFAULT_NAME = "pareto_search"
# What a study must have in common with one that it is resumed from, in words.
_IN_WORDS = {
    "objectives": "objectives",
    "space": "space",
    "fingerprint": "data, estimators and settings",
}


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
def quiet_optuna() -> Iterator[None]:
    """Set optuna's verbosity to errors, and restore it."""
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
    # Several processes write to one file, one after the other.
    waiting = {"connect_args": {"timeout": 120}}
    return _data_base(f"sqlite:///{Path(storage).expanduser().resolve()}", engine_kwargs=waiting)


def _data_base(url: str, **given: Any) -> Any:
    """Return optuna's storage at a URL.

    Of several processes that create its tables at the same time all but one fail; they try again.
    """
    from sqlalchemy.exc import DBAPIError

    for seconds in (0.1, 0.3, 1.0):
        with contextlib.suppress(DBAPIError):
            return optuna().storages.RDBStorage(url, **given)
        time.sleep(seconds)
    return optuna().storages.RDBStorage(url, **given)


def open_study(
    storage: Any, study_name: str | None, objectives: list[str], space: str, fingerprint: str = ""
) -> Any:
    """Return a new study or the stored one of the name; raise if that is one of something else."""
    study = optuna().create_study(
        storage=open_storage(storage),
        study_name=study_name or _DEFAULT_NAME,
        directions=["minimize"] * len(objectives),
        load_if_exists=True,
    )
    common = {"objectives": objectives, "space": space}
    if fingerprint:
        common["fingerprint"] = fingerprint
    for name, value in common.items():
        known = study.user_attrs.get(name)
        if known is None:
            study.set_user_attr(name, value)
        elif known != value:
            raise ValueError(
                f"study_name must be new, or that of a study of the same {_IN_WORDS[name]}, "
                f"{value}; got {study.study_name!r}, which has {known}."
            )
    return study


def study_entropy(study: Any, random_state: Any) -> int:
    """Return the seed of all random numbers of a study: drawn once, then kept in the study."""
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
