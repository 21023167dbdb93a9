"""Which ledger is in use: by a thread in a block of code, and by the whole process."""

from __future__ import annotations

import importlib
import os
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from skdptune._formatting import shown
from skdptune._validation import check_flag
from skdptune.ledger._reference import LedgerReference
from skdptune.ledger._storage import LedgerError

if TYPE_CHECKING:
    from skdptune.ledger._ledger import PrivacyLedger

# Their fits are to be recorded: loaded with the first context, whoever imported what before.
_RECORDING = "skdptune.base"


@dataclass(frozen=True)
class LedgerSettings:
    """Which ledger fits are recorded in, and whether one that none records is refused.

    Parameters
    ----------
    ledger : PrivacyLedger or None
    require_ledger : bool
    is_off : bool
        Whether somebody asked for no ledger, where another block of code may use one.
    """

    ledger: PrivacyLedger | None = None
    require_ledger: bool = False
    is_off: bool = False

    def __bool__(self) -> bool:
        """Return whether they ask for anything."""
        return self.ledger is not None or self.require_ledger


class _Entry:
    """A context that was entered: its settings, the one around it, and where it is."""

    __slots__ = ("is_open", "outer", "owner", "process", "settings")

    def __init__(
        self, settings: LedgerSettings, outer: _Entry | None, owner: LedgerReference | None
    ) -> None:
        self.settings, self.outer, self.owner = settings, outer, owner
        self.process, self.is_open = os.getpid(), True


_NONE = LedgerSettings()
_own: ContextVar[_Entry | None] = ContextVar("skdptune_ledger", default=None)
_lock = threading.Lock()
# All contexts of the process that were entered and not left: threads of joblib have none of
# their own.
_entries: list[_Entry] = []
_general = _NONE
# Which process has set it.
_general_process = os.getpid()
_followers: list[Callable[[], None]] = []
_identity: tuple[int, str] = (0, "")


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def process_identity() -> str:
    """Return a name of this process that no other has, a forked one included."""
    global _identity
    if _identity[0] != os.getpid():
        _identity = os.getpid(), uuid.uuid4().hex
    return _identity[1]


def when_used(follower: Callable[[], None]) -> None:
    """Call a function whenever a ledger is about to be used, before anything is fitted."""
    _followers.append(follower)


def prepare() -> None:
    """Load what records fits, those of other libraries included."""
    importlib.import_module(_RECORDING)
    for follower in _followers:
        follower()


# What is in force ----------------------------------------------------------------------------


def settings_in_force(carried: LedgerSettings | None = None) -> LedgerSettings:
    """Return the settings of a fit in this thread.

    Those of the thread's own contexts come first, then those that the estimator has `carried`
    here from another process, then those of the process.

    Raises
    ------
    LedgerError
        If the thread has no context of its own and the process uses several ledgers, that of the
        estimator included.

    Notes
    -----
    Theorem H4.
    """
    entry = _own_entry()
    if entry is not None:
        return entry.settings
    if carried is not None:
        return _with_process(carried)
    if not _entries:
        return _general
    return _of_process(_settings_of_process())


def settings_meant(carried: LedgerSettings | None = None) -> LedgerSettings:
    """Return the settings that a fit in this thread was meant to have, empty ones if none were.

    Contexts that other threads have entered count for nothing.
    """
    entry = _own_entry()
    if entry is not None:
        return entry.settings
    if carried is not None:
        return carried
    return _NONE if _entries else _general


def _own_entry() -> _Entry | None:
    entry = _own.get()
    while entry is not None and not entry.is_open:
        entry = entry.outer
    # What a forked process has inherited is of the process, and not of what it runs by now.
    return entry if entry is not None and entry.process == os.getpid() else None


def _settings_of_process(*, inherited: bool = True) -> list[LedgerSettings]:
    """Return all settings that are in force somewhere in this process.

    Without what a forked one has `inherited`: what was sent to it knows better.
    """
    here = os.getpid()
    with _lock:
        found = [one.settings for one in _entries if inherited or one.process == here]
    return [*found, _general] if inherited or _general_process == here else found


def _with_process(carried: LedgerSettings) -> LedgerSettings:
    """Return the settings that were brought here, unless this process names another ledger."""
    here = _settings_of_process(inherited=False)
    if all(one.ledger in (None, carried.ledger) and not one.is_off for one in here):
        return carried
    return _of_process([carried, *here])


def _of_process(found: list[LedgerSettings]) -> LedgerSettings:
    """Return the settings of a thread without a context of its own."""
    ledgers = {one.ledger for one in found if one.ledger is not None}
    if len(ledgers) > 1 or (ledgers and any(one.is_off for one in found)):
        raise LedgerError(
            "ledger must be given to estimators that are fitted in threads of their own while "
            "the process uses several ledgers, or none beside one; got None. An estimator that "
            "was saved while a ledger was in use brings that one: fit it in `with ledger:` for "
            "another. Nothing was recorded or read."
        )
    required = any(one.require_ledger for one in found)
    is_off = any(one.is_off for one in found)
    return LedgerSettings(next(iter(ledgers), None), required, is_off)


# Contexts ------------------------------------------------------------------------------------


def enter_ledger(ledger: PrivacyLedger) -> None:
    """Begin a block of code whose fits are recorded in a ledger."""
    _enter(replace(_known(), ledger=ledger, is_off=False), ledger)


def leave_ledger(ledger: PrivacyLedger) -> None:
    """End the latest such block of this thread."""
    entry = _own.get()
    while entry is not None and not (entry.is_open and entry.owner == ledger):
        entry = entry.outer
    if entry is None:
        # Entered elsewhere, as by a generator that another thread has ended.
        with _lock:
            entry = next((one for one in reversed(_entries) if one.owner == ledger), None)
    if entry is not None:
        _close(entry)


def _enter(settings: LedgerSettings, owner: LedgerReference | None = None) -> _Entry:
    """Put settings in force, in this thread and for threads without settings of their own."""
    prepare()
    entry = _Entry(settings, _own.get(), owner)
    with _lock:
        _entries.append(entry)
    _own.set(entry)
    return entry


def _close(entry: _Entry) -> None:
    entry.is_open = False
    with _lock:
        if entry in _entries:
            _entries.remove(entry)
    if _own.get() is entry:
        _own.set(entry.outer)


def _known() -> LedgerSettings:
    """Return what a new context starts from; never an error, since it may name the ledger."""
    entry = _own_entry()
    if entry is not None:
        return entry.settings
    with _lock:
        required = any(one.settings.require_ledger for one in _entries)
    return replace(_general, require_ledger=required or _general.require_ledger)


def _changed(base: LedgerSettings, ledger: Any, require_ledger: Any) -> LedgerSettings:
    """Return settings with what is given; None leaves them as they are."""
    if ledger is False:
        base = LedgerSettings(None, base.require_ledger, is_off=True)
    elif ledger is not None:
        base = LedgerSettings(checked_ledger(ledger), base.require_ledger)
    if require_ledger is not None:
        required = check_flag(require_ledger, name="require_ledger")
        base = replace(base, require_ledger=required)
    return base


def checked_ledger(ledger: Any) -> PrivacyLedger:
    """Return a ledger, or raise for what is none."""
    if not isinstance(ledger, LedgerReference):
        raise TypeError(
            f"ledger must be a PrivacyLedger; got {shown(ledger)}. Open one with "
            "PrivacyLedger(path, dataset)."
        )
    return cast("PrivacyLedger", ledger)


def get_config() -> dict[str, Any]:
    """Return which ledger fits are recorded in, and whether one is required.

    Returns
    -------
    dict
        With the keys "ledger" and "require_ledger".

    See Also
    --------
    config_context : Changes it for a block of code.
    set_config : Changes it for the process.

    Examples
    --------
    >>> import skdptune
    >>> skdptune.get_config()
    {'ledger': None, 'require_ledger': False}
    """
    found = settings_in_force()
    return {"ledger": found.ledger, "require_ledger": found.require_ledger}


def set_config(*, ledger: Any = None, require_ledger: bool | None = None) -> None:
    """Set the ledger in which all fits of private estimators of this process are recorded.

    Parameters
    ----------
    ledger : PrivacyLedger or False, optional
        False for none; second fits then warn, other than in ``config_context(ledger=False)``.
        None leaves it as it is.
    require_ledger : bool, optional
        Whether a fit that no ledger records is refused. None leaves it as it is.

    See Also
    --------
    config_context : The same for a block of code, which also says which processes it reaches.

    Examples
    --------
    >>> import skdptune
    >>> skdptune.set_config(require_ledger=True)
    >>> skdptune.get_config()
    {'ledger': None, 'require_ledger': True}
    >>> skdptune.set_config(require_ledger=False)
    """
    global _general, _general_process
    changed = _changed(_general, ledger, require_ledger)
    if changed:
        prepare()
    # Nothing is around it that could use another.
    _general, _general_process = replace(changed, is_off=False), os.getpid()


@contextmanager
def config_context(*, ledger: Any = None, require_ledger: bool | None = None) -> Iterator[None]:
    """Record all fits of private estimators in a block of code, or refuse those that nobody does.

    Parameters
    ----------
    ledger : PrivacyLedger or False, optional
        Where fits are recorded, if an estimator has no `ledger` of its own. False for nowhere, as
        for fits to data that are not private: then nothing warns of second fits either. None
        leaves it as it is.
    require_ledger : bool, optional
        Whether a fit that no ledger records is refused, by a `LedgerError` before data are read.
        None leaves it as it is.

    See Also
    --------
    set_config : The same for the process.
    PrivacyLedger : ``with ledger:`` is ``with config_context(ledger=ledger):``.

    Notes
    -----
    Theorem H4.

    Threads without a context of their own use that of the process. Estimators take it with them
    to workers in other processes; what is fitted there and was made there, instead of sent there,
    needs a `ledger` of its own. While a ledger is in use, the pickle of an estimator holds its
    place (path, name of the data set, budget, `who` and `note`), also where it is saved to a file.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import cross_val_score
    >>> import skdptune
    >>> from skdptune.linear_model import DPLogisticRegression
    >>> ledger = skdptune.PrivacyLedger(":memory:", "patients", epsilon=6.0, delta=1e-5)
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 3))
    >>> y = X[:, 0] > 0
    >>> with skdptune.config_context(ledger=ledger):
    ...     scores = cross_val_score(DPLogisticRegression(epsilon=0.5), X, y, cv=3)
    >>> len(ledger.history())
    3
    """
    entry = _enter(_changed(_known(), ledger, require_ledger))
    try:
        yield
    finally:
        _close(entry)
