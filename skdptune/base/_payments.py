"""Payments: contexts that tell which fits are part of another fit, whose charge covers them.

A payment covers fits of its estimator, of its steps, and of clones of these, as long as its own
fit is running in its process. Any other fit in the meantime is charged separately.
"""

from __future__ import annotations

import contextlib
import functools
import os
import tempfile
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextvars import ContextVar, Token
from dataclasses import dataclass
from typing import Any, Self

from skdptune._compat import clone_parametrized, fcntl
from skdptune.base._costs import CostFunction, adopt_registration, has_adapter, registration_of
from skdptune.ledger import LedgerError, Reservation
from skdptune.ledger._shared import LedgerSettings, prepare, process_identity, settings_in_force

_PREFIX = "skdptune-paid-"
_lock = threading.Lock()


class Payment:
    """A running fit, as a context: fits inside it that are part of it cost nothing more.

    Parameters
    ----------
    estimators : sequence of estimator
        The estimators that are being fitted.
    method : callable, optional
        The fit method that is running; None for a block of this package's own code.
    settles : bool, default=True
        True if a ledger or a search pays. False for a fit that nobody records: a fit that is part
        of it is recorded if it has a ledger, and otherwise does not count as a separate fit.
    reservations : sequence of Reservation
        The reservations that pay for it, if they are known.
    outer : Payment, optional
        The enclosing payment; this payment ends when the enclosing one does.

    Notes
    -----
    Theorem H4.
    """

    # Without `__dict__`: `forget_seeds` must not find the estimators of a running fit from here.
    __slots__ = (
        *("_entered", "_functions", "_left", "_own", "_pledge", "_process", "_steps"),
        *("estimators", "is_open", "method", "outer", "reservations", "settles"),
    )

    def __init__(
        self,
        estimators: Sequence[Any],
        method: Any = None,
        *,
        settles: bool = True,
        reservations: Sequence[Reservation] = (),
        outer: Payment | None = None,
    ) -> None:
        self.estimators, self.method, self.outer = estimators, method, outer
        self.settles, self.reservations = settles, tuple(reservations)
        self.is_open, self._process = True, os.getpid()
        # Objects are compared by identity, and kept alive. `_left` are those that may call one
        # more method.
        self._own = {id(each) for each in estimators}
        self._left = set(self._own)
        is_next = outer is not None and len(estimators) == 1 and outer.is_of(estimators[0])
        self._functions: tuple[Any, ...] = (method,)
        if is_next and outer is not None:
            self._functions += outer._functions
        # Code of this package may change compositions during a fit, so list their steps now.
        self._steps = None if method is not None else list(_steps_of(estimators))
        self._pledge: Any = None
        self._entered: Token[Payment | None] | None = None

    def __enter__(self) -> Self:
        """Start to pay for fits in this thread."""
        self._entered = _current.set(self)
        if self.settles:
            _open.append(self)
        return self

    def __exit__(self, *problem: object) -> None:
        """Stop paying, in this thread and elsewhere."""
        if self._entered is not None:
            _current.reset(self._entered)
        if self.settles:
            _open.remove(self)
        self.is_open, self.estimators, self._steps = False, (), None
        self._own, self._left, self._entered = set(), set(), None
        if self._pledge is not None and self._process == os.getpid():
            _withdraw(self._pledge)

    @property
    def pays(self) -> bool:
        """Whether its fit is running in this process; a forked process may outlive the fit."""
        is_live = self.is_open and self._process == os.getpid()
        return is_live and (self.outer is None or self.outer.pays)

    def is_of(self, estimator: Any) -> bool:
        """Return whether an object is one of the estimators being fitted."""
        return id(estimator) in self._own

    def includes(self, estimator: Any) -> bool:
        """Return whether fits of a clone of an object are part of this fit.

        Clones of the fitted model are further models, unless its class itself states the cost.
        """
        if self.is_of(estimator):
            return _answers_for_itself(type(estimator))
        if self._steps is not None:
            is_step = any(step is estimator for step in self._steps)
        else:
            is_step = any(step is estimator for step in _steps_of(self.estimators))
        return is_step or self._is_of_same_library(estimator)

    def takes(self, estimator: Any, function: Any) -> bool:
        """Return whether a method called on the fitted estimator is part of this fit.

        One inner call is: an override calls the method that it overrides, and `fit` calls
        `partial_fit`. A second such call fits a second model, unless the class itself states what
        everything costs.
        """
        if id(estimator) in self._left and function not in self._functions:
            self._left.discard(id(estimator))
            return True
        return _answers_for_itself(type(estimator))

    def part(self, estimator: Any, method: Any) -> Payment:
        """Return a payment for a fit that is part of this one."""
        return Payment(
            (estimator,),
            method,
            settles=self.settles,
            reservations=self.reservations,
            outer=self,
        )

    @property
    def pledge(self) -> str:
        """A path by which other processes of this machine can check that the payment is open."""
        with _lock:
            if self._pledge is None:
                self._pledge = _new_pledge()
        return str(self._pledge.name)

    def _is_of_same_library(self, estimator: Any) -> bool:
        """Return whether a library with an adapter is fitting an object that it made itself."""
        library = getattr(self.method, "__module__", None)
        return has_adapter(library) and has_adapter(type(estimator).__module__)


def _steps_of(estimators: Sequence[Any]) -> Iterator[Any]:
    """Yield the estimators among the parameters of estimators, including those in lists."""
    for estimator in estimators:
        if hasattr(estimator, "get_params") and not isinstance(estimator, type):
            try:
                values = list(estimator.get_params(deep=True).values())
            except Exception:
                # Without readable parameters, no steps are known. In another thread, the estimator
                # may be in the middle of a change.
                continue
            yield from _objects_in(values)


def _objects_in(value: Any) -> Iterator[Any]:
    if isinstance(value, list | tuple):
        for each in value:
            yield from _objects_in(each)
    elif hasattr(value, "fit"):
        yield value


def _answers_for_itself(kind: type) -> bool:
    """Return whether a class itself states what its methods cost, whatever they fit.

    A class that inherits its cost does not state the cost of what it adds. Classes of this package
    do not count either: each fits one model, but calls code written by users.
    """
    if kind.__module__.startswith("skdptune."):
        return False
    registration = registration_of(kind)
    return "privacy_profile" in vars(kind) or (
        registration is not None and registration[0] is kind
    )


# In this process -----------------------------------------------------------------------------

_current: ContextVar[Payment | None] = ContextVar("skdptune_payment", default=None)


# Payments that were entered and not left yet, in any thread.
_open: list[Payment] = []


def current_payment() -> Payment | None:
    """Return the innermost running fit of this thread, or None."""
    payment = _current.get()
    # A context may have been copied, for example by an asyncio task, and outlive its payment.
    return payment if payment is not None and payment.pays else None


def payment_of_step(estimator: Any) -> Payment | None:
    """Return the payment of a thread that fits an estimator with this step, or None.

    It is used by threads that work for such a fit or send tasks to workers, because they have no
    payment themselves.
    """
    found = (each for each in reversed(_open) if each.pays and each.includes(estimator))
    return next(found, None) if _open else None


def paid_for(*estimators: Any) -> Payment:
    """Return a context in which one fit of each estimator is free, since a search pays for it."""
    if not estimators:
        raise TypeError("estimators must be the ones that are paid for; got none.")
    return Payment(estimators)


# In other processes --------------------------------------------------------------------------


def _new_pledge() -> Any:
    """Return an open file with a lock that the system releases when the process ends."""
    pledge = tempfile.NamedTemporaryFile(prefix=_PREFIX, delete=False)  # noqa: SIM115
    if fcntl is not None:
        # Unlike a lock by flock, this one is not inherited by forked processes, which may live
        # longer.
        fcntl.lockf(pledge, fcntl.LOCK_EX)
    return pledge


def _withdraw(pledge: Any) -> None:
    # Delete the file while the lock is held: any process that finds the file finds it locked.
    with contextlib.suppress(OSError):
        os.unlink(pledge.name)
    pledge.close()
    with contextlib.suppress(OSError):
        # Windows cannot delete a file that is open.
        os.unlink(pledge.name)


def is_pledged(path: str) -> bool:
    """Return whether a payment of another process of this machine is still open."""
    if not os.path.basename(path).startswith(_PREFIX):
        return False
    if fcntl is None:
        with contextlib.suppress(OSError):
            os.unlink(path)
        return os.path.exists(path)
    try:
        file = open(path, "r+b")  # noqa: SIM115
    except OSError:
        return False
    with file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
        # Left behind by a process that was killed.
        with contextlib.suppress(OSError):
            os.unlink(path)
    return False


# Settings and payments that travel with an estimator to other threads and processes ----------

# Name of the attribute, which only copies have, and mark of the methods that set it.
_KEY = "_skdptune_recording"


@dataclass(frozen=True, eq=False, slots=True)
class Carried:
    """Settings that travel with a copy, and the payment that covers its fits.

    Parameters
    ----------
    settings : LedgerSettings
    origin : str
        The process in which the settings are active.
    payment : Payment, optional
        A payment of this process.
    registration : tuple, optional
        The class and cost function that a user registered, so that fits are recorded there too.
    pledge : str, optional
        Path by which to check whether a payment of another process is open.
    reservations : tuple of Reservation
        The reservations of a payment of another process.
    """

    settings: LedgerSettings
    origin: str
    payment: Payment | None = None
    registration: tuple[type, CostFunction] | None = None
    pledge: str | None = None
    reservations: tuple[Reservation, ...] = ()

    @property
    def is_foreign(self) -> bool:
        """Whether it comes from another process."""
        return self.origin != process_identity()

    def open_payment(self) -> Payment | None:
        """Return the open payment, or a new one that stands for that of another process."""
        if self.payment is not None:
            return self.payment if self.payment.pays else None
        if self.pledge is not None and self.is_foreign and is_pledged(self.pledge):
            return Payment((), reservations=self.reservations)
        return None

    def __reduce__(self) -> Any:
        """Pickle it so that it is dropped in the process where the settings are active anyway."""
        pledge, reservations = self.pledge, self.reservations
        if self.payment is not None and self.payment.settles and self.payment.pays:
            pledge, reservations = self.payment.pledge, self.payment.reservations
        return _received, (self.settings, self.origin, self.registration, pledge, reservations)

    def __deepcopy__(self, memo: Any) -> Carried | None:
        """Drop it in a copy made in the process where the settings are active anyway."""
        return self if self.is_foreign else None


def _received(
    settings: LedgerSettings,
    origin: str,
    registration: tuple[type, CostFunction] | None,
    pledge: str | None,
    reservations: tuple[Reservation, ...],
) -> Carried | None:
    """Return the settings in another process; None in the process from which they come."""
    if origin == process_identity():
        return None
    prepare()
    if registration is not None:
        adopt_registration(*registration)
    return Carried(settings, origin, None, registration, pledge, reservations)


# Kept by identity, because classes may restore only those attributes that they know.
_brought: dict[int, tuple[weakref.ref[Any], Carried]] = {}


def _hold(made: Any, carried: Carried) -> None:
    """Attach settings to an object, whatever its class does with attributes."""
    attributes, key = getattr(made, "__dict__", None), id(made)
    if attributes is not None:
        # For copies that are made by copying __dict__.
        attributes[_KEY] = carried
    try:
        _brought[key] = weakref.ref(made, lambda _: _brought.pop(key, None)), carried
    except TypeError:
        if attributes is None:
            raise LedgerError(
                f"ledger must go with estimators to other processes; {type(made).__name__} has "
                "__slots__ without a place for it. Fit it in the process of the ledger, or add "
                "'__dict__' to its __slots__."
            ) from None


def carried_by(estimator: Any) -> Carried | None:
    """Return the settings and payment that came with an estimator, or None."""
    found = getattr(estimator, "__dict__", {}).get(_KEY)
    if isinstance(found, Carried):
        return found
    reference, carried = _brought.get(id(estimator), (None, None))
    return carried if reference is not None and reference() is estimator else None


def carried_settings(estimator: Any) -> LedgerSettings | None:
    """Return the ledger settings that came with an estimator from another process, or None."""
    found = carried_by(estimator)
    return found.settings if found is not None and found.is_foreign and found.settings else None


def payment_for(estimator: Any, function: Any = None) -> Payment | None:
    """Return the running fit that includes a fit of this estimator; None if it is a separate fit.

    Parameters
    ----------
    estimator : estimator
    function : callable, optional
        The method that is about to be called; None if no method is being called yet.
    """
    payment = current_payment()
    if payment is not None and payment.is_of(estimator):
        is_part = function is None or payment.takes(estimator, function)
        return payment if is_part else None
    if payment is not None and payment.includes(estimator):
        return payment
    found = carried_by(estimator)
    brought = None if found is None else found.open_payment()
    return payment_of_step(estimator) if brought is None and payment is None else brought


def repeats_are_meant(estimator: Any) -> bool:
    """Return whether ledgers were switched off, here or in the process an estimator comes from."""
    found = carried_by(estimator)
    if found is not None and found.is_foreign and found.settings.is_off:
        return True
    return settings_in_force(carried_settings(estimator)).is_off


def _payment_of_copy(estimator: Any) -> Payment | None:
    """Return the payment that covers fits of a copy of an estimator, or None."""
    current, found = current_payment(), carried_by(estimator)
    payment = None if found is None else found.payment
    if current is not None and (current is payment or current.includes(estimator)):
        return current
    if current is not None:
        return None
    return payment if payment is not None and payment.pays else payment_of_step(estimator)


def to_carry(estimator: Any, *, is_clone: bool = False) -> Carried | None:
    """Return what travels with a clone, a copy or a pickle of an estimator; None for nothing.

    Notes
    -----
    Theorem H4.
    """
    found, payment = carried_by(estimator), _payment_of_copy(estimator)
    brought = found if found is not None and found.is_foreign else None
    if payment is not None and not (payment.settles or is_clone):
        # No charge covers fits of this estimator in another process.
        payment = None
    try:
        settings = settings_in_force(carried_settings(estimator))
    except LedgerError:
        # It is unclear which ledger applies, so a fit in another process must be refused.
        settings = LedgerSettings(None, require_ledger=True)
    if brought is not None and not brought.settings:
        settings = settings or brought.settings
    pledge = None if brought is None else brought.pledge
    if payment is None and pledge is None and not (settings or settings.is_off):
        return None
    return Carried(
        settings,
        process_identity() if brought is None else brought.origin,
        payment,
        registration_of(type(estimator)),
        pledge,
        () if brought is None else brought.reservations,
    )


def clone_to_carry(estimator: Any, made: Any) -> Any:
    """Return a clone with the settings and payment of its original attached."""
    carried = to_carry(estimator, is_clone=True)
    # The settings that are active in this process apply to clones anyway.
    if carried is not None and (carried.is_foreign or carried.payment is not None):
        _hold(made, carried)
    return made


def reduced_to_carry(estimator: Any, reduced: Any) -> Any:
    """Add the settings that travel with an estimator to the result of its ``__reduce_ex__``."""
    carried = to_carry(estimator) if isinstance(reduced, tuple) else None
    if carried is None:
        return reduced
    make, arguments, *others = reduced
    return _made_with, (carried, make, arguments), *others


def _made_with(carried: Carried | None, make: Any, arguments: tuple[Any, ...]) -> Any:
    """Recreate an object, and attach the settings that came with it."""
    made = make(*arguments)
    if carried is not None:
        _hold(made, carried)
    return made


def carry_settings(kind: Any) -> Any:
    """Make copies, clones and pickles of a class take along where their fits are recorded.

    This works whatever the class does to be pickled and restored: the settings are stored around
    its state, not in it.
    """
    reduce = kind.__reduce_ex__
    if not hasattr(reduce, _KEY):

        @functools.wraps(reduce)
        def __reduce_ex__(self: Any, protocol: Any) -> Any:
            return reduced_to_carry(self, reduce(self, protocol))

        setattr(__reduce_ex__, _KEY, True)
        kind.__reduce_ex__ = __reduce_ex__
    copied = getattr(kind, "__sklearn_clone__", clone_parametrized)
    if hasattr(kind, "get_params") and not hasattr(copied, _KEY):

        @functools.wraps(copied)
        def __sklearn_clone__(self: Any) -> Any:
            return clone_to_carry(self, copied(self))

        setattr(__sklearn_clone__, _KEY, True)
        kind.__sklearn_clone__ = __sklearn_clone__
    return kind
