"""Studies that can be resumed: their storage, seeds, the processes at work, and what was begun."""

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
from fractions import Fraction
from pathlib import Path
from types import FunctionType
from typing import Any, NoReturn

import numpy as np
from joblib.hashing import NumpyHasher

from skdptune._formatting import shown, shown_names, shown_path
from skdptune._validation import check_kind
from skdptune.base import PrivacyWarning
from skdptune.base._shared import legacy_generator

_FINGERPRINT = "fingerprint"
# User attributes: the entropy of everything, where a user gave a seed, or that of proposals alone.
_ENTROPY = "entropy"
_PROPOSALS = "proposals"
_SALT_BYTES = 16
# A file of SQLite, and those that it keeps beside it.
_ENDS = ("", "-journal", "-wal", "-shm")
# So that guesses at the data are slow as well.
_HASH_ROUNDS = 100_000


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


def check_named(given: Any, name: str, names: Sequence[str], method: str, example: str) -> None:
    """Raise unless a sampler or pruner is one of some names, or one of optuna's."""
    if isinstance(given, str) and given in names:
        return
    # A class of samplers is not a sampler.
    if isinstance(given, str | type) or not hasattr(given, method):
        raise ValueError(
            f"{name} must be one of {shown_names(names)} or an optuna {name}, such as "
            f"optuna.{example}; got {shown(given)}."
        )


def check_sampler(sampler: Any, names: Sequence[str]) -> None:
    """Raise unless a sampler is one of some names, or one of optuna's."""
    check_named(sampler, "sampler", names, "sample_relative", "samplers.TPESampler(seed=0)")


# What stands in a URL before a password, the password, and what follows; and secret options.
_PASSWORD = re.compile(r"^([^:/?#]+://[^:/?#@]*):(.*)(@[^@]*)$", re.DOTALL)
_SECRET_OPTION = re.compile(r"([?&](?:ssl)?(?:password|passwd|pwd|secret|token)=)[^&]*", re.I)
_HIDDEN = "***"
# URLs of this process, by how they are shown: never in a pickle or a message.
_URLS: dict[str, str] = {}


class HiddenUrl(str):
    """A URL as it may be shown: what is secret in it is known to this process alone.

    It is the text without the secrets, for whoever prints, logs or pickles it. `secret_url` is
    the whole one.
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
        """Pickle what may be shown."""
        return _shown_again, (str(self),)


def hide_secrets(storage: Any) -> Any:
    """Return a storage as it may be shown: of a URL with a password the URL without it."""
    if not isinstance(storage, str) or isinstance(storage, HiddenUrl) or "://" not in storage:
        return storage
    visible = _SECRET_OPTION.sub(rf"\1{_HIDDEN}", _PASSWORD.sub(rf"\1:{_HIDDEN}\3", storage))
    if visible == storage:
        return storage
    hidden = HiddenUrl(visible)
    hidden.secret_url = _URLS[visible] = storage
    return hidden


def _shown_again(visible: str) -> HiddenUrl:
    """Return what was pickled, in another process without the secrets."""
    hidden = HiddenUrl(visible)
    bare = visible.replace(f":{_HIDDEN}@", "@")
    hidden.secret_url = _URLS.get(visible, re.sub(rf"[?&][^?&=]*={re.escape(_HIDDEN)}", "", bare))
    return hidden


class StorageParameter:
    """A parameter of a search that shows no password, wherever it is set.

    As in `PrivacyLedger`, a password stays in its process. Workers do not need it, and what was
    unpickled elsewhere takes it from where the data base's driver looks for it (PGPASSFILE or
    PGPASSWORD for PostgreSQL), or is given the URL again.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        """Note what it is called."""
        self._name = name

    def __get__(self, search: Any, owner: type | None = None) -> Any:
        """Return what was given, without a password."""
        if search is None:
            return self
        if self._name not in vars(search):
            raise AttributeError(f"{type(search).__name__!r} has no attribute {self._name!r}.")
        return vars(search)[self._name]

    def __set__(self, search: Any, value: Any) -> None:
        """Keep a value, of which nothing secret will be shown."""
        vars(search)[self._name] = hide_secrets(value)


def open_storage(storage: Any) -> Any:
    """Return an optuna storage for None (memory), a path (SQLite), a URL, or one of optuna's."""
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
    """Create an empty file that only the user may read and write, or take one from all others.

    Also the files that SQLite keeps beside it. Raises ValueError where that cannot be done.
    """
    # Theorem F10: the file is closed to others before anything is written.
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
        words = (error.strerror if isinstance(error, OSError) else None) or "it is no path here"
        raise ValueError(
            "storage must be a file of yours that can be made, and that others may neither read "
            f"nor write; got {shown_path(path)} ({words})."
        ) from None
    if any(taken):
        warnings.warn(
            "storage must be a file that others may neither read nor write; got "
            f"{shown_path(path)}, which they could. From now on you alone may (mode 0600).",
            PrivacyWarning,
            stacklevel=2,
        )


def _take_from_others(path: Path) -> bool:
    """Let only its user read and write a file; return whether others could."""
    if os.name != "posix" or not path.exists():
        return False
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        # By its name: closing a file of SQLite's would free the locks of this process.
        os.chmod(path, mode & 0o700)
    return bool(mode & 0o077)


def _data_base(url: str, **given: Any) -> Any:
    """Return optuna's storage at a URL.

    Of several processes that create its tables at the same time all but one fail; they try again.
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
    # SQLite also takes names of other things than files.
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
            "storage must be a file or a data base that can be opened; got "
            f"{shown(str(visible))}: {words}. A password is in no pickle: give the URL again."
        ) from None


@functools.cache
def _storage_class() -> Any:
    package = optuna()

    class PrivateStorage(package.storages.RDBStorage):  # type: ignore[name-defined]
        """A storage whose pickles, and so those of a search's study, hold no password."""

        def __reduce__(self) -> Any:
            state: Any = self.__getstate__()
            return _restored, ({**state, "url": hide_secrets(self.url)},)

    return PrivateStorage


def _restored(state: dict[str, Any]) -> Any:
    """Return the storage of a pickle."""
    kind = _storage_class()
    restored = kind.__new__(kind)
    url = state["url"]
    restored.__setstate__({**state, "url": getattr(url, "secret_url", url)})
    return restored


def open_study(storage: Any, study_name: str | None, default: str, directions: list[str]) -> Any:
    """Return a new study, or the stored one of the name."""
    check_kind(study_name, name="study_name", kind=str | None, domain="None or a str")
    return optuna().create_study(
        storage=open_storage(storage),
        study_name=study_name or default,
        directions=directions,
        load_if_exists=True,
    )


def check_same(study: Any, shared: Mapping[str, Any], fingerprint: str = "") -> None:
    """Raise if a study is one of something else; note in a new one what it is of.

    Parameters
    ----------
    study : optuna.Study
    shared : mapping
        From names of attributes to what a study must have in common with one that is resumed.
    fingerprint : str
        The same, where it must not be read: a new study keeps a salted hash.
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
    # Theorem F10: of the data a salted, slow hash is kept.
    known = study.user_attrs.get(_FINGERPRINT)
    if known is None:
        study.set_user_attr(_FINGERPRINT, salted(fingerprint, os.urandom(_SALT_BYTES)))
        return
    salt = bytes.fromhex(str(known).partition("$")[0])
    if not hmac.compare_digest(salted(fingerprint, salt), str(known)):
        _refuse(study, "study of the same data, estimators and settings, by this version's hash")


def _refuse(study: Any, others: str) -> NoReturn:
    raise ValueError(
        f"study_name must be new, or that of a {others}; got {shown(study.study_name)}, which is "
        "one of others."
    )


class _Hasher(NumpyHasher):
    """Hashes what is of this package by its folder and name, wherever in the folder it stands."""

    def reducer_override(self, value: Any) -> Any:
        """Return what is hashed in place of a class or function; all else is hashed as usual."""
        if isinstance(value, type | FunctionType) and value.__module__.startswith("skdptune."):
            folder = ".".join(value.__module__.split(".")[:2])
            return str, (f"{folder}:{value.__qualname__}",)
        return NotImplemented


def fingerprint_of(*content: Any) -> str:
    """Return a hash that stays the same when classes of this package move within a folder."""
    return str(_Hasher().hash(content))


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
    # Theorem F10: seeds of evaluations are kept only where a user gave one.
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
    return int(legacy_generator(random_state).randint(2**31 - 1))


# User attributes of trials. A trial that repeats a lost one keeps the lost one's two numbers.
NUMBER, PROPOSAL = "number", "proposal"
# The evaluation that a trial holds, or why it was closed without one.
EVALUATION, REFUSED, WITHDRAWN = "evaluation", "refused", "withdrawn"


def proposal_numbers(trials: Sequence[Any]) -> list[int]:
    """Return which proposal each trial is, from 0; a repeated one has its first trial's number."""
    numbers, n_repeated = [], 0
    for trial in trials:
        is_repeated = PROPOSAL in trial.user_attrs
        numbers.append(
            int(trial.user_attrs[PROPOSAL]) if is_repeated else trial.number - n_repeated
        )
        n_repeated += is_repeated
    return numbers


def evaluation_numbers(trials: Sequence[Any]) -> list[int]:
    """Return which evaluation each trial is: proposals that were dismissed are not counted."""
    numbers, n_dismissed = [], 0
    for trial, proposal in zip(trials, proposal_numbers(trials), strict=True):
        attributes = trial.user_attrs
        numbers.append(int(attributes.get(NUMBER, proposal - n_dismissed)))
        n_dismissed += REFUSED in attributes or WITHDRAWN in attributes
    return numbers


def failed_by_parameters(trial: Any) -> bool:
    """Return whether a failed trial's parameters, not its process, are why it failed."""
    return EVALUATION in trial.user_attrs or REFUSED in trial.user_attrs


# Of the study's user attributes.
_PREFIX = "process "
_INTERVAL = 30.0
# A process of another machine that was silent for so long is gone.
_GRACE_PERIOD = 180.0


class Heartbeat:
    """Shows other processes that this one works on a study, and which ones do.

    Parameters
    ----------
    study : optuna.Study
        Each process writes the time to its user attributes now and then.

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
        """Start."""
        self._beat()
        self._thread = threading.Thread(target=self._keep_beating, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *problem: object) -> None:
        """Stop, and show the other processes so."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()
        self.study.set_user_attr(_PREFIX + self.process, 0.0)

    def _beat(self) -> None:
        self.study.set_user_attr(_PREFIX + self.process, time.time())

    def _keep_beating(self) -> None:
        while not self._stopped.wait(_INTERVAL):
            # A storage that is busy now is written to next time.
            with contextlib.suppress(Exception):
                self._beat()

    def alive(self) -> set[str]:
        """Return the names of the processes that work on the study."""
        attributes = self.study.user_attrs
        beats = {key: beat for key, beat in attributes.items() if key.startswith(_PREFIX)}
        processes = {key.removeprefix(_PREFIX): float(beat) for key, beat in beats.items()}
        return {name for name, beat in processes.items() if self._is_alive(name, beat)}

    def _is_alive(self, process: str, beat: float) -> bool:
        if process == self.process:
            return True
        host, pid, _ = process.rsplit(":", 2)
        is_local = host == socket.gethostname() and os.name == "posix"
        return time.time() - beat < _GRACE_PERIOD and not (is_local and _is_gone(int(pid)))


def _is_gone(pid: int) -> bool:
    """Return whether no process of this machine has an id; signal 0 does nothing to it."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def stored(by_metric: Sequence[Sequence[Any]]) -> list[Any]:
    """Return noisy scores as they are stored: a list, or one of lists for several metrics."""
    lists = [list(splits) for splits in by_metric]
    return lists if len(lists) > 1 else lists[0]


def restored(kept: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return stored noisy scores by each metric, the one that leads first."""
    return [tuple(splits) for splits in (kept if isinstance(kept[0], list) else [kept])]


_BEGUN, _SCORED, _FINAL = "begun:", "scored:", "final:"
_PROCESS = "process"
RUN = "run"


@dataclass(frozen=True)
class Begun:
    """A trial that was begun.

    Attributes
    ----------
    run : str
        Its name, another one in each process.
    number : int
    params : dict
        As optuna has them.
    shares : tuple of Fraction
        Of its fits that were begun.
    """

    run: str
    number: int
    params: dict[str, Any]
    shares: tuple[Fraction, ...]


class Journal:
    """Notes in an optuna study what a search begins, before data are read for it.

    Parameters
    ----------
    study : optuna.Study
        Of released values alone.

    Notes
    -----
    Theorem G6. A note is written first and the sum of all notes is looked at second, so that
    what was run was within the sum of what all processes had noted.
    """

    def __init__(self, study: Any) -> None:
        self._study = study
        self._process = uuid.uuid4().hex

    def open(self, plan: dict[str, str]) -> None:
        """Take over the study, or raise if it is one of another plan, or at its end."""
        check_same(self._study, {"plan": plan})
        if any(name.startswith(_FINAL) for name in self._study.user_attrs):
            raise ValueError(
                "study_name must be that of a search whose final fit has not begun; got "
                f"{shown(self._study.study_name)}. Its final fit is spent, whether or not it "
                "came to an end: take a new name, which costs as much again."
            )
        self._study.set_user_attr(_PROCESS, self._process)

    def begin(self, begun: Begun, most: int) -> None:
        """Note a trial's fit, or raise if it is no longer this process's to make."""
        self._study.set_user_attr(
            f"{_BEGUN}{begun.run}",
            {
                "number": begun.number,
                "params": begun.params,
                "shares": [str(share) for share in begun.shares],
            },
        )
        known = self._study.user_attrs
        if known.get(_PROCESS) != self._process:
            raise RuntimeError(
                f"storage must be used by one process at a time; another one has resumed "
                f"{shown(self._study.study_name)}. It counts what this one had begun."
            )
        if sum((share for one in begun_in(known) for share in one.shares), Fraction(0)) > most:
            raise RuntimeError(
                "storage must be used by one process at a time; got more than was paid for."
            )

    def begin_final(self) -> None:
        """Note the final fit, or raise if another process has begun it."""
        own = f"{_FINAL}{self._process}"
        self._study.set_user_attr(own, True)
        known = self._study.user_attrs
        others = [name for name in known if name.startswith(_FINAL) and name != own]
        if others or known.get(_PROCESS) != self._process:
            raise RuntimeError(
                "storage must be used by one process at a time; another one has begun the final "
                f"fit of {shown(self._study.study_name)}."
            )

    def note_score(self, run: str, place: int, scores: list[Any]) -> None:
        """Note a trial's noisy scores at a rung, as `stored`, after which it may go on."""
        known = self._study.user_attrs.get(f"{_SCORED}{run}", {})
        self._study.set_user_attr(f"{_SCORED}{run}", {**known, str(place): scores})

    def scores(self, run: str) -> dict[int, list[Any]]:
        """Return what was noted of a trial's scores, by rung."""
        noted = self._study.user_attrs.get(f"{_SCORED}{run}", {})
        return {int(place): scores for place, scores in noted.items()}

    def begun(self) -> list[Begun]:
        """Return all trials that were begun, by any process."""
        return begun_in(self._study.user_attrs)


def begun_in(attributes: dict[str, Any]) -> list[Begun]:
    """Return what the attributes of a study say was begun, in the order of trials."""
    # Storages return attributes in any order.
    found = [
        Begun(
            name[len(_BEGUN) :],
            kept["number"],
            kept["params"],
            tuple(map(Fraction, kept["shares"])),
        )
        for name, kept in attributes.items()
        if name.startswith(_BEGUN)
    ]
    return sorted(found, key=lambda begun: begun.number)


# How long a fit takes can depend on a record: all trials are said to have been made at one time.
NO_TIME = datetime(2000, 1, 1)


def without_times(trial: Any) -> Any:
    """Return a frozen trial, whose dates are set to one time."""
    trial.datetime_start = NO_TIME
    if trial.state.is_finished():
        trial.datetime_complete = NO_TIME
    return trial


def timeless_storage() -> Any:
    """Return a new storage in memory that keeps no times."""
    return _timeless_class()()


@functools.cache
def _timeless_class() -> Any:
    package = optuna()

    class TimelessStorage(package.storages.InMemoryStorage):  # type: ignore[name-defined]
        """Keeps all trials as of one time."""

        def create_new_trial(self, study_id: int, template_trial: Any = None) -> int:
            state = package.trial.TrialState.RUNNING
            template = template_trial or package.trial.create_trial(state=state)
            return int(super().create_new_trial(study_id, without_times(template)))

        def set_trial_state_values(self, trial_id: int, state: Any, values: Any = None) -> bool:
            is_set = bool(super().set_trial_state_values(trial_id, state, values))
            # What this storage returns is what it keeps.
            without_times(self.get_trial(trial_id))
            return is_set

    return TimelessStorage
