"""Resumable studies: storage, seeds, the processes at work, and the fits that have begun."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import hmac
import os
import re
import socket
import stat
import threading
import time
import uuid
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import FunctionType
from typing import Any, NoReturn

import numpy as np
from joblib.hashing import NumpyHasher

from skdptune._formatting import shown, shown_names, shown_path
from skdptune._validation import check_kind, installed
from skdptune.base import PrivacyWarning
from skdptune.base._shared import legacy_generator

_FINGERPRINT = "fingerprint"
# User attributes: the entropy of everything, if a user gave a seed, or only that of proposals.
_ENTROPY = "entropy"
_PROPOSALS = "proposals"
_SALT_BYTES = 16
# Endings of an SQLite file, and of the files that SQLite keeps next to it.
_ENDS = ("", "-journal", "-wal", "-shm")
# A slow hash makes it expensive to guess the data.
_HASH_ROUNDS = 100_000


def optuna() -> Any:
    """Return optuna, or raise an error that names the extra which installs it."""
    with installed("Pareto and adaptive searches need", "pareto"):
        import optuna as package
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


def check_sampler(sampler: Any, names: Sequence[str]) -> None:
    """Raise unless a sampler is one of the names or an optuna sampler."""
    if isinstance(sampler, str) and sampler in names:
        return
    # A class of samplers is not a sampler.
    if isinstance(sampler, str | type) or not hasattr(sampler, "sample_relative"):
        raise ValueError(
            f"sampler must be one of {shown_names(names)} or an optuna sampler, such as "
            f"optuna.samplers.TPESampler(seed=0); got {shown(sampler)}."
        )


# In a URL: the text before a password, the password, the text after it; and secret options.
_PASSWORD = re.compile(r"^([^:/?#]+://[^:/?#@]*):(.*)(@[^@]*)$", re.DOTALL)
_SECRET_OPTION = re.compile(r"([?&](?:ssl)?(?:password|passwd|pwd|secret|token)=)[^&]*", re.I)
_HIDDEN = "***"
# Full URLs of this process by their visible forms; never pickled or shown in a message.
_URLS: dict[str, str] = {}


class HiddenUrl(str):
    """A URL whose secrets are known only to this process.

    As text it is the URL without the secrets, also when it is printed, logged or pickled.
    `secret_url` is the full URL.
    """

    __slots__ = ("secret_url",)

    secret_url: str

    def __copy__(self) -> HiddenUrl:
        """Return the URL itself."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> HiddenUrl:
        """Return the URL itself."""
        return self

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        """Pickle the visible form only."""
        return _shown_again, (str(self),)


def hide_secrets(storage: Any) -> Any:
    """Return a storage in its visible form: a URL without its password, others unchanged."""
    if not isinstance(storage, str) or isinstance(storage, HiddenUrl) or "://" not in storage:
        return storage
    visible = _SECRET_OPTION.sub(rf"\1{_HIDDEN}", _PASSWORD.sub(rf"\1:{_HIDDEN}\3", storage))
    if visible == storage:
        return storage
    hidden = HiddenUrl(visible)
    hidden.secret_url = _URLS[visible] = storage
    return hidden


def _shown_again(visible: str) -> HiddenUrl:
    """Return an unpickled URL; in another process it has no secrets."""
    hidden = HiddenUrl(visible)
    bare = visible.replace(f":{_HIDDEN}@", "@")
    hidden.secret_url = _URLS.get(visible, re.sub(rf"[?&][^?&=]*={re.escape(_HIDDEN)}", "", bare))
    return hidden


class StorageParameter:
    """A parameter of a search that never shows a password, wherever it is set.

    As in `PrivacyLedger`, a password stays in its process. Workers do not need it. An object that
    was unpickled elsewhere gets the password from the usual sources of the database driver
    (PGPASSFILE or PGPASSWORD for PostgreSQL), or the URL is given again.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        """Store the name of the parameter."""
        self._name = name

    def __get__(self, search: Any, owner: type | None = None) -> Any:
        """Return the given value, without a password; of a class, the default."""
        if search is None:
            return None
        if self._name not in vars(search):
            raise AttributeError(f"{type(search).__name__!r} has no attribute {self._name!r}.")
        return vars(search)[self._name]

    def __set__(self, search: Any, value: Any) -> None:
        """Store a value whose secrets will not be shown."""
        vars(search)[self._name] = hide_secrets(value)


def open_storage(storage: Any) -> Any:
    """Return an optuna storage for None (memory), a path (SQLite), a URL, or an optuna storage."""
    storage = hide_secrets(storage)
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
    """Create an empty file that only its owner may access, or restrict an existing one.

    The same holds for the files that SQLite keeps next to it. Raises ValueError if that is not
    possible.
    """
    # Theorem F10: other users lose access to the file before anything is written.
    try:
        with contextlib.suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            return
        if not path.is_file():
            raise ValueError(
                f"storage must be a file; got a folder or device, {shown_path(path)}."
            )
        taken = [_take_from_others(Path(f"{path.resolve()}{end}")) for end in _ENDS]
    except (OSError, UnicodeEncodeError) as error:
        words = (
            error.strerror if isinstance(error, OSError) else None
        ) or "it is not a path on this system"
        raise ValueError(
            "storage must be a file that you can create, and that others can neither read nor "
            f"write; got {shown_path(path)} ({words})."
        ) from None
    if any(taken):
        warnings.warn(
            "storage must be a file that others can neither read nor write; got "
            f"{shown_path(path)}, which they could. From now on only you can (mode 0600).",
            PrivacyWarning,
            stacklevel=2,
        )


def _take_from_others(path: Path) -> bool:
    """Restrict a file to its owner; return whether others had access."""
    if os.name != "posix" or not path.exists():
        return False
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        # By name: closing a file of SQLite would release the locks of this process.
        os.chmod(path, mode & 0o700)
    return bool(mode & 0o077)


def _data_base(url: str, **given: Any) -> Any:
    """Return optuna's storage at a URL.

    If several processes create its tables at the same time, all but one fail; they try again.
    """
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError, DBAPIError

    visible, url = url, getattr(url, "secret_url", url)
    try:
        place = make_url(url)
    except (ArgumentError, ValueError):
        raise ValueError(
            f"storage must be a URL that can be read; got {shown(str(visible))}."
        ) from None
    file = place.database or ":memory:"
    # SQLite also accepts names that are not files.
    if place.get_backend_name() == "sqlite" and not file.startswith((":", "file:")):
        create_private(Path(file))

    for seconds in (0.1, 0.3, 1.0):
        with contextlib.suppress(DBAPIError):
            return _storage_class()(url, **given)
        time.sleep(seconds)
    try:
        return _storage_class()(url, **given)
    except DBAPIError as error:
        words = str(error.orig).strip().replace(place.password or _HIDDEN, _HIDDEN)
        raise ValueError(
            "storage must be a file or a database that can be opened; got "
            f"{shown(str(visible))}: {words}. Pickles contain no password: give the URL again."
        ) from None


@functools.cache
def _storage_class() -> Any:
    package = optuna()

    class PrivateStorage(package.storages.RDBStorage):  # type: ignore[name-defined]
        """A storage whose pickles, including those of a search's study, hold no password."""

        def __reduce__(self) -> Any:
            state: Any = self.__getstate__()
            return _restored, ({**state, "url": hide_secrets(self.url)},)

    return PrivateStorage


def _restored(state: dict[str, Any]) -> Any:
    """Return an unpickled storage."""
    kind = _storage_class()
    restored = kind.__new__(kind)
    url = state["url"]
    restored.__setstate__({**state, "url": getattr(url, "secret_url", url)})
    return restored


def open_study(storage: Any, study_name: str | None, default: str, directions: list[str]) -> Any:
    """Return a new study, or the stored one with this name."""
    check_kind(study_name, name="study_name", kind=str | None, domain="None or a str")
    return optuna().create_study(
        storage=open_storage(storage),
        study_name=study_name or default,
        directions=directions,
        load_if_exists=True,
    )


def check_same(study: Any, shared: Mapping[str, Any], fingerprint: str = "") -> None:
    """Raise if a stored study belongs to something else; mark a new study.

    Parameters
    ----------
    study : optuna.Study
    shared : mapping
        From names of attributes to values that must agree with those of a resumed study.
    fingerprint : str
        A further value that must agree but must not be readable: a new study keeps a salted hash.
    """
    for name, value in shared.items():
        known = study.user_attrs.get(name)
        if known is None:
            study.set_user_attr(name, value)
        elif known != value and isinstance(value, dict):
            differing = [key for key in known.keys() | value if known.get(key) != value.get(key)]
            _refuse(study, f"search with the same {', '.join(sorted(differing))}")
        elif known != value:
            _refuse(study, f"study of the same {name}")
    if not fingerprint:
        return
    # Theorem F10: only a salted, slow hash of the data is kept.
    known = study.user_attrs.get(_FINGERPRINT)
    if known is None:
        study.set_user_attr(_FINGERPRINT, salted(fingerprint, os.urandom(_SALT_BYTES)))
        return
    salt = bytes.fromhex(str(known).partition("$")[0])
    if not hmac.compare_digest(salted(fingerprint, salt), str(known)):
        _refuse(study, "study of the same data, estimators and settings, by this version's hash")


def _refuse(study: Any, others: str) -> NoReturn:
    raise ValueError(
        f"study_name must be new, or that of a {others}; got {shown(study.study_name)}, which "
        "belongs to another search."
    )


class _Hasher(NumpyHasher):
    """Hash objects of this package by folder and name, not by the module that defines them."""

    def reducer_override(self, value: Any) -> Any:
        """Return a replacement for a class or function of this package; hash others as usual."""
        if isinstance(value, type | FunctionType) and value.__module__.startswith("skdptune."):
            folder = ".".join(value.__module__.split(".")[:2])
            return str, (f"{folder}:{value.__qualname__}",)
        return NotImplemented


def fingerprint_of(*content: Any) -> str:
    """Return a hash that stays the same when classes of this package move within a folder."""
    return str(_Hasher().hash(content))


def salted(fingerprint: str, salt: bytes) -> str:
    """Return a salt and a slow hash of a fingerprint with it.

    Several files do not reveal whether they are about the same data, and a hash cannot be looked
    up in a table.
    """
    found = hashlib.pbkdf2_hmac("sha256", fingerprint.encode(), salt, _HASH_ROUNDS)
    return f"{salt.hex()}${found.hex()}"


@dataclass(frozen=True)
class StudySeeds:
    """The seeds of the random numbers of a study.

    Attributes
    ----------
    proposals : int
        Seeds proposals. It is kept in the study, and reveals nothing about evaluations unless a
        user gave a seed.
    evaluations : int
        Seeds evaluations. Without a given seed it is not stored, and differs in each process.
    is_seeded : bool
        Whether a user gave a seed, now or when the study was new.
    """

    proposals: int
    evaluations: int
    is_seeded: bool


def study_seeds(study: Any, random_state: Any) -> StudySeeds:
    """Return the seeds of a study; that of proposals is drawn once and kept in the study."""
    # Theorem F10: seeds of evaluations are kept only if a user gave one.
    known = study.user_attrs
    if _ENTROPY not in known and _PROPOSALS not in known:
        name = _PROPOSALS if random_state is None else _ENTROPY
        study.set_user_attr(name, str(_entropy(random_state)))
        # Another process may have written it in the meantime.
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
    return int(legacy_generator(random_state).randint(2**31 - 1))


# User attributes of trials. A trial that repeats a lost one keeps the lost trial's two numbers.
NUMBER, PROPOSAL = "number", "proposal"
# The evaluation that a trial holds, or the reason why it was closed without one.
EVALUATION, REFUSED, WITHDRAWN = "evaluation", "refused", "withdrawn"


def proposal_numbers(trials: Sequence[Any]) -> list[int]:
    """Return the number of each trial's proposal, from 0; a repeat keeps the original number."""
    numbers, n_repeated = [], 0
    for trial in trials:
        is_repeated = PROPOSAL in trial.user_attrs
        numbers.append(
            int(trial.user_attrs[PROPOSAL]) if is_repeated else trial.number - n_repeated
        )
        n_repeated += is_repeated
    return numbers


def evaluation_numbers(trials: Sequence[Any]) -> list[int]:
    """Return the number of each trial's evaluation; dismissed proposals are not counted."""
    numbers, n_dismissed = [], 0
    for trial, proposal in zip(trials, proposal_numbers(trials), strict=True):
        attributes = trial.user_attrs
        numbers.append(int(attributes.get(NUMBER, proposal - n_dismissed)))
        n_dismissed += REFUSED in attributes or WITHDRAWN in attributes
    return numbers


# Prefix of user attributes of the study.
_PREFIX = "process "
_INTERVAL = 30.0
# A process on another machine that was silent for this many seconds counts as ended.
_GRACE_PERIOD = 180.0


class Heartbeat:
    """Show other processes that this one works on a study, and find out which others do.

    Parameters
    ----------
    study : optuna.Study
        The study; each process regularly writes the time to its user attributes.

    Attributes
    ----------
    process : str
        Name of this process: host, process id, and a random part.
    """

    def __init__(self, study: Any) -> None:
        self.study = study
        self.process = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Heartbeat:
        """Start writing the time."""
        self._beat()
        self._thread = threading.Thread(target=self._keep_beating, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *problem: object) -> None:
        """Stop, and tell the other processes."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()
        self.study.set_user_attr(_PREFIX + self.process, 0.0)

    def _beat(self) -> None:
        self.study.set_user_attr(_PREFIX + self.process, time.time())

    def _keep_beating(self) -> None:
        while not self._stopped.wait(_INTERVAL):
            # If a storage is busy now, the next beat writes to it.
            with contextlib.suppress(Exception):
                self._beat()

    def alive(self) -> set[str]:
        """Return the names of the processes that are working on the study."""
        attributes = self.study.user_attrs
        beats = {key: beat for key, beat in attributes.items() if key.startswith(_PREFIX)}
        processes = {key.removeprefix(_PREFIX): float(beat) for key, beat in beats.items()}
        return {name for name, beat in processes.items() if self._is_alive(name, beat)}

    def _is_alive(self, process: str, beat: float) -> bool:
        if process == self.process:
            return True
        host, pid, _ = process.rsplit(":", 2)
        if host == socket.gethostname() and os.name == "posix":
            try:
                # Signal 0 does nothing to a process.
                os.kill(int(pid), 0)
            except ProcessLookupError:
                return False
            except PermissionError:
                pass
        return time.time() - beat < _GRACE_PERIOD


def stored(by_metric: Sequence[Sequence[Any]]) -> list[Any]:
    """Return noisy scores in stored form: a list, or a list of lists for several metrics."""
    lists = [list(splits) for splits in by_metric]
    return lists if len(lists) > 1 else lists[0]


def restored(kept: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return stored noisy scores for each metric, the main one first."""
    return [tuple(splits) for splits in (kept if isinstance(kept[0], list) else [kept])]


_BEGUN, _FINAL = "begun:", "final:"
_PROCESS = "process"
RUN = "run"


@dataclass(frozen=True)
class Begun:
    """A trial whose fit has begun.

    Attributes
    ----------
    run : str
        Its name, different in each process.
    number : int
    params : dict
        Parameters in optuna's form.
    """

    run: str
    number: int
    params: dict[str, Any]


class Journal:
    """Record in an optuna study which fits a search begins, before data are read for them.

    Parameters
    ----------
    study : optuna.Study
        A study that holds only released values.

    Notes
    -----
    Theorem G6. A note is written first, and all notes are counted second. No more fits are run
    than the processes have noted together.
    """

    def __init__(self, study: Any) -> None:
        self._study = study
        self._process = uuid.uuid4().hex

    def open(self, plan: dict[str, str]) -> None:
        """Resume the study; raise if it has another plan or is finished."""
        check_same(self._study, {"plan": plan})
        if any(name.startswith(_FINAL) for name in self._study.user_attrs):
            raise ValueError(
                "study_name must be that of a search whose final fit has not begun; got "
                f"{shown(self._study.study_name)}. Its final fit is paid for, even if it did "
                "not finish: use a new name, at the full cost again."
            )
        self._study.set_user_attr(_PROCESS, self._process)

    def begin(self, begun: Begun, most: int) -> None:
        """Record a trial's fit; raise if another process has taken over."""
        self._study.set_user_attr(
            f"{_BEGUN}{begun.run}",
            {"number": begun.number, "params": begun.params},
        )
        known = self._study.user_attrs
        if known.get(_PROCESS) != self._process:
            raise RuntimeError(
                "storage must be used by one process at a time; another one has resumed "
                f"{shown(self._study.study_name)}, and has counted the trials that this one had "
                "begun."
            )
        if len(begun_in(known)) > most:
            raise RuntimeError(
                "storage must be used by one process at a time; got more than was paid for."
            )

    def begin_final(self) -> None:
        """Record the final fit; raise if another process has begun it."""
        own = f"{_FINAL}{self._process}"
        self._study.set_user_attr(own, True)
        known = self._study.user_attrs
        others = [name for name in known if name.startswith(_FINAL) and name != own]
        if others or known.get(_PROCESS) != self._process:
            raise RuntimeError(
                "storage must be used by one process at a time; another one has begun the final "
                f"fit of {shown(self._study.study_name)}."
            )

    def begun(self) -> list[Begun]:
        """Return all trials that any process has begun."""
        return begun_in(self._study.user_attrs)


def begun_in(attributes: dict[str, Any]) -> list[Begun]:
    """Return the trials that have begun, in order, from the attributes of a study."""
    # Storages return attributes in any order.
    found = [
        Begun(name[len(_BEGUN) :], kept["number"], kept["params"])
        for name, kept in attributes.items()
        if name.startswith(_BEGUN)
    ]
    return sorted(found, key=lambda begun: begun.number)


# The time that a fit takes can depend on a record: all trials get the same date.
NO_TIME = datetime(2000, 1, 1)


def without_times(trial: Any) -> Any:
    """Return a frozen trial with its dates set to that fixed time."""
    trial.datetime_start = NO_TIME
    if trial.state.is_finished():
        trial.datetime_complete = NO_TIME
    return trial


def timeless_storage() -> Any:
    """Return a new storage in memory that keeps no times."""
    package = optuna()

    class TimelessStorage(package.storages.InMemoryStorage):  # type: ignore[name-defined]
        """A storage that gives all trials the same date."""

        def create_new_trial(self, study_id: int, template_trial: Any = None) -> int:
            state = package.trial.TrialState.RUNNING
            template = template_trial or package.trial.create_trial(state=state)
            return int(super().create_new_trial(study_id, without_times(template)))

        def set_trial_state_values(self, trial_id: int, state: Any, values: Any = None) -> bool:
            is_set = bool(super().set_trial_state_values(trial_id, state, values))
            # The returned object is the stored one.
            without_times(self.get_trial(trial_id))
            return is_set

    return TimelessStorage()
