"""The optuna study of a Pareto search: new, or one that is resumed from its storage."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

_DEFAULT_NAME = "pareto_search"
_FINGERPRINT = "fingerprint"
# User attributes: the entropy of everything, where a user gave a seed, or that of proposals alone.
_ENTROPY = "entropy"
_PROPOSALS = "proposals"
_SALT_BYTES = 16
# So that guesses at the data are slow as well.
_HASH_ROUNDS = 100_000
# What a study must have in common with one that it is resumed from, in words.
_IN_WORDS = {
    "objectives": "objectives",
    "space": "space",
    _FINGERPRINT: "data, estimators and settings",
}
_REFUSAL = (
    "study_name must be new, or that of a study of the same {0}, {3}; got {1!r}, which has {2}."
)


def optuna() -> Any:
    """Return optuna, or raise naming the extra that brings it."""
    try:
        import optuna as package
    except ModuleNotFoundError as problem:
        raise ModuleNotFoundError(
            "Pareto and adaptive searches need optuna, which is not installed. "
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


def create_private(path: Path) -> None:
    """Create an empty file that only the user may read and write, if there is none."""
    # Theorem F10.
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def _data_base(url: str, **given: Any) -> Any:
    """Return optuna's storage at a URL.

    Of several processes that create its tables at the same time all but one fail; they try again.
    """
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import DBAPIError

    place = make_url(url)
    file = place.database or ":memory:"
    # SQLite also takes names of other things than files.
    if place.get_backend_name() == "sqlite" and not file.startswith((":", "file:")):
        create_private(Path(file))

    for seconds in (0.1, 0.3, 1.0):
        with contextlib.suppress(DBAPIError):
            return optuna().storages.RDBStorage(url, **given)
        time.sleep(seconds)
    try:
        return optuna().storages.RDBStorage(url, **given)
    except DBAPIError as error:
        raise ValueError(
            f"storage must be a file or a data base that can be opened; got {url!r}: {error.orig}."
        ) from error


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
    for name, value in {"objectives": objectives, "space": space}.items():
        known = study.user_attrs.get(name)
        if known is None:
            study.set_user_attr(name, value)
        elif known != value:
            raise ValueError(_REFUSAL.format(_IN_WORDS[name], study.study_name, known, value))
    if fingerprint:
        _check_fingerprint(study, fingerprint)
    return study


def _check_fingerprint(study: Any, fingerprint: str) -> None:
    """Raise if a study has another fingerprint; keep that of a new one, salted."""
    # Theorem F10.
    known = study.user_attrs.get(_FINGERPRINT)
    if known is None:
        study.set_user_attr(_FINGERPRINT, salted(fingerprint, os.urandom(_SALT_BYTES)))
        return
    salt = bytes.fromhex(str(known).partition("$")[0])
    if not hmac.compare_digest(salted(fingerprint, salt), str(known)):
        raise ValueError(
            f"study_name must be new, or that of a study of the same {_IN_WORDS[_FINGERPRINT]}; "
            f"got {study.study_name!r}, which is one of others."
        )


def salted(fingerprint: str, salt: bytes) -> str:
    """Return a salt and a slow hash of a fingerprint with it.

    Whoever has several files cannot tell whether they are about the same data, nor look a hash
    up in a table.
    """
    found = hashlib.pbkdf2_hmac("sha256", fingerprint.encode(), salt, _HASH_ROUNDS)
    return f"{salt.hex()}${found.hex()}"


@dataclass(frozen=True)
class StudySeeds:
    """Where the random numbers of a study come from.

    Attributes
    ----------
    proposals : int
        Seeds proposals. It is kept in the study, and tells nothing of evaluations unless a user
        gave a seed.
    evaluations : int
        Seeds evaluations. Of a study without a seed it is kept nowhere, and another one in each
        process.
    is_seeded : bool
        Whether a user gave a seed, now or when the study was new.
    """

    proposals: int
    evaluations: int
    is_seeded: bool


def study_seeds(study: Any, random_state: Any) -> StudySeeds:
    """Return the seeds of a study: what proposals need is drawn once, and kept in the study."""
    # Theorem F10.
    known = study.user_attrs
    if _ENTROPY not in known and _PROPOSALS not in known:
        name = _PROPOSALS if random_state is None else _ENTROPY
        study.set_user_attr(name, str(_entropy(random_state)))
        # As another process may have written it just now.
        known = study.user_attrs
    if _ENTROPY in known:
        entropy = int(known[_ENTROPY])
        return StudySeeds(entropy, entropy, True)
    return StudySeeds(int(known[_PROPOSALS]), _entropy(None), False)


def _entropy(random_state: Any) -> int:
    if random_state is None:
        return int(np.random.SeedSequence().entropy)  # type: ignore[arg-type]
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    return int(check_random_state(random_state).randint(2**31 - 1))
