"""The active ledger: of a thread in a block of code, and of the whole process."""

from __future__ import annotations

import importlib
import os
import threading
import uuid
from collections.abc import Iterator
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

# Its folder records fits: it is loaded with the first context, whatever was imported.
_RECORDING = "skdptune.base._costs"


@dataclass(frozen=True)
class LedgerSettings:
    """The ledger that records fits, and whether fits that no ledger records are refused.

    Parameters
    ----------
    ledger : PrivacyLedger or None
    require_ledger : bool
    is_off : bool
        Whether ledgers were switched off explicitly, while another block of code may use one.
    """

    ledger: PrivacyLedger | None = None
    require_ledger: bool = False
    is_off: bool = False

    def __bool__(self) -> bool:
        """Return whether the settings name a ledger or require one."""
        return self.ledger is not None or self.require_ledger


class _Entry:
    """An entered context: its settings, the enclosing context, and its process."""

    __slots__ = ("is_open", "outer", "owner", "process", "settings")

    def __init__(
        self, settings: LedgerSettings, outer: _Entry | None, owner: LedgerReference | None
    ) -> None:
        self.settings, self.outer, self.owner = settings, outer, owner
        self.process, self.is_open = os.getpid(), True


_NONE = LedgerSettings()
_own: ContextVar[_Entry | None] = ContextVar("skdptune_ledger", default=None)
_lock = threading.Lock()
# All contexts of the process that were entered and not left: joblib's threads have none.
_entries: list[_Entry] = []
_general = _NONE
# The process that set it.
_general_process = os.getpid()
_identity: tuple[int, str] = (0, "")


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def process_identity() -> str:
    """Return an identifier of this process; forked processes have another one."""
    global _identity
    if _identity[0] != os.getpid():
        _identity = os.getpid(), uuid.uuid4().hex
    return _identity[1]


def prepare() -> None:
    """Load all code that records fits, including that for other libraries."""
    importlib.import_module(_RECORDING).load_adapters()


# Active settings -----------------------------------------------------------------------------


def settings_in_force(carried: LedgerSettings | None = None) -> LedgerSettings:
    """Return the settings that apply to a fit in this thread.

    The thread's own contexts come first, then the settings that the estimator has `carried` here
    from another process, then those of the process.

    Raises
    ------
    LedgerError
        If the thread has not entered a context, and the process uses several ledgers, including
        that of the estimator.

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
    """Return the settings that were intended for a fit in this thread; empty if there are none.

    Contexts that were entered by other threads are ignored.
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
    # A forked process inherits contexts, but they belong to the code of its parent.
    return entry if entry is not None and entry.process == os.getpid() else None


def _settings_of_process(*, inherited: bool = True) -> list[LedgerSettings]:
    """Return all settings that are active somewhere in this process.

    Without `inherited` ones, settings from before a fork are left out: settings that were sent to
    the process are more specific.
    """
    here = os.getpid()
    with _lock:
        found = [one.settings for one in _entries if inherited or one.process == here]
    return [*found, _general] if inherited or _general_process == here else found


def _with_process(carried: LedgerSettings) -> LedgerSettings:
    """Return the settings brought by an estimator, unless this process names another ledger."""
    here = _settings_of_process(inherited=False)
    if all(one.ledger in (None, carried.ledger) and not one.is_off for one in here):
        return carried
    return _of_process([carried, *here])


def _of_process(found: list[LedgerSettings]) -> LedgerSettings:
    """Return the settings of a thread without its own context."""
    ledgers = {one.ledger for one in found if one.ledger is not None}
    if len(ledgers) > 1 or (ledgers and any(one.is_off for one in found)):
        raise LedgerError(
            "ledger must be given to estimators that are fitted in separate threads while the "
            "process uses several ledgers, or a ledger in one block of code and none in another; "
            "got None. An estimator that was saved while a ledger was in use brings this ledger: "
            "fit it in `with ledger:` to use another. Nothing was recorded or read."
        )
    required = any(one.require_ledger for one in found)
    is_off = any(one.is_off for one in found)
    return LedgerSettings(next(iter(ledgers), None), required, is_off)


# Contexts ------------------------------------------------------------------------------------


def enter_ledger(ledger: PrivacyLedger) -> None:
    """Start a block of code whose fits are recorded in a ledger."""
    _enter(replace(_known(), ledger=ledger, is_off=False), ledger)


def leave_ledger(ledger: PrivacyLedger) -> None:
    """End the latest block of this thread for a ledger."""
    entry = _own.get()
    while entry is not None and not (entry.is_open and entry.owner == ledger):
        entry = entry.outer
    if entry is None:
        # It was entered by another thread, for example in a generator that this thread closes.
        with _lock:
            entry = next((one for one in reversed(_entries) if one.owner == ledger), None)
    if entry is not None:
        _close(entry)


def _enter(settings: LedgerSettings, owner: LedgerReference | None = None) -> _Entry:
    """Activate settings, in this thread and for threads without their own settings."""
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
    """Return the settings on which a new context builds, without raising an error."""
    entry = _own_entry()
    if entry is not None:
        return entry.settings
    with _lock:
        required = any(one.settings.require_ledger for one in _entries)
    return replace(_general, require_ledger=required or _general.require_ledger)


def _changed(base: LedgerSettings, ledger: Any, require_ledger: Any) -> LedgerSettings:
    """Return changed settings; arguments that are None leave them unchanged."""
    if ledger is False:
        base = LedgerSettings(None, base.require_ledger, is_off=True)
    elif ledger is not None:
        base = LedgerSettings(checked_ledger(ledger), base.require_ledger)
    if require_ledger is not None:
        required = check_flag(require_ledger, name="require_ledger")
        base = replace(base, require_ledger=required)
    return base


def checked_ledger(ledger: Any) -> PrivacyLedger:
    """Return a ledger, or raise for other objects."""
    if not isinstance(ledger, LedgerReference):
        raise TypeError(
            f"ledger must be a PrivacyLedger; got {shown(ledger)}. Open one with "
            "PrivacyLedger(path, dataset)."
        )
    return cast("PrivacyLedger", ledger)


def get_config() -> dict[str, Any]:
    """Return the ledger that records fits, and whether a ledger is required.

    Returns
    -------
    dict
        It has the keys "ledger" and "require_ledger".

    See Also
    --------
    config_context : Changes these settings for a block of code.
    set_config : Changes these settings for the process.

    Examples
    --------
    >>> import skdptune
    >>> skdptune.get_config()
    {'ledger': None, 'require_ledger': False}
    """
    found = settings_in_force()
    return {"ledger": found.ledger, "require_ledger": found.require_ledger}


def set_config(*, ledger: Any = None, require_ledger: bool | None = None) -> None:
    """Set the ledger that records all fits of private estimators in this process.

    Parameters
    ----------
    ledger : PrivacyLedger or False, optional
        False means that there is no ledger; then second fits cause a warning, except inside
        ``config_context(ledger=False)``. None keeps the current setting.
    require_ledger : bool, optional
        Whether to refuse a fit that no ledger records. None keeps the current setting.

    See Also
    --------
    config_context : Does the same for a block of code; its notes describe other processes.

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
    # There is no enclosing block that could use another ledger.
    _general, _general_process = replace(changed, is_off=False), os.getpid()


@contextmanager
def config_context(*, ledger: Any = None, require_ledger: bool | None = None) -> Iterator[None]:
    """Record all fits of private estimators in a block of code, or refuse unrecorded fits.

    Parameters
    ----------
    ledger : PrivacyLedger or False, optional
        Ledger that records fits of estimators without their own `ledger`. False means that there
        is no ledger, for example for fits to data that are not private; then second fits cause no
        warning either. None keeps the current setting.
    require_ledger : bool, optional
        Whether to refuse a fit that no ledger records, by a `LedgerError` before data are read.
        None keeps the current setting.

    See Also
    --------
    set_config : Does the same for the process.
    PrivacyLedger : ``with ledger:`` is ``with config_context(ledger=ledger):``.

    Notes
    -----
    Theorem H4.

    Threads without their own context use that of the process. Estimators take the settings with
    them to workers in other processes. An estimator that is created in a worker, instead of sent
    to it, needs its own `ledger`. While a ledger is active, the pickle of an estimator contains a
    reference to it: path, name of the data set, budget, `who` and `note`. This includes pickles
    saved to a file.

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
