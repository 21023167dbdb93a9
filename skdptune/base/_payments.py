"""Which fits are part of one that goes on, and are paid for by it.

A payment pays for its estimator, for the steps of it, and for clones of these, as long as its
fit goes on in its process. Whatever else is fitted meanwhile is a fit of its own.
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
from typing import Any, Self

from skdptune._compat import clone_parametrized, fcntl
from skdptune.base._costs import CostFunction, adopt_registration, has_adapter, registration_of
from skdptune.ledger import LedgerError, Reservation
from skdptune.ledger._shared import LedgerSettings, prepare, process_identity, settings_in_force

_PREFIX = "skdptune-paid-"
_lock = threading.Lock()


class Payment:
    """A fit that goes on, as a context: fits within it that are part of it cost nothing more.

    Parameters
    ----------
    estimators : sequence of estimator
        What is fitted.
    method : callable, optional
        The function that goes on; None for a block of this package's own code.
    settles : bool, default=True
        Whether a ledger or a search pays; False for a fit that nobody records. What is part of
        such a fit is recorded if it has a ledger, and is else not counted as a fit of its own.
    reservations : sequence of Reservation
        What it pays with, where that is known.
    outer : Payment, optional
        The payment that it is part of, without which it does not pay.

    Notes
    -----
    Theorem H4.
    """

    __slots__ = (
        "_entered",
        "_functions",
        "_left",
        "_own",
        "_pledge",
        "_process",
        "_steps",
        "estimators",
        "is_open",
        "method",
        "outer",
        "reservations",
        "settles",
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
        # By identity, while the objects are kept; and those of which one method may be called.
        self._own = {id(each) for each in estimators}
        self._left = set(self._own)
        is_next = outer is not None and len(estimators) == 1 and outer.is_of(estimators[0])
        self._functions: tuple[Any, ...] = (method,)
        if is_next and outer is not None:
            self._functions += outer._functions
        # Code of this package may change compositions while it fits them.
        self._steps = None if method is not None else list(_steps_of(estimators))
        self._pledge: Any = None
        self._entered: Token[Payment | None] | None = None

    def __enter__(self) -> Self:
        """Pay for fits in this thread."""
        self._entered = _current.set(self)
        if self.settles:
            _open.append(self)
        return self

    def __exit__(self, *problem: object) -> None:
        """Pay for no more, neither in this thread nor elsewhere."""
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
        """Whether its fit goes on, in this process: a forked one may go on when it has ended."""
        is_live = self.is_open and self._process == os.getpid()
        return is_live and (self.outer is None or self.outer.pays)

    def is_of(self, estimator: Any) -> bool:
        """Return whether an object is what is fitted."""
        return id(estimator) in self._own

    def includes(self, estimator: Any) -> bool:
        """Return whether fits of a clone of an object are part of this fit.

        A model that its class does not answer for is one model: a clone of it is another.
        """
        if self.is_of(estimator):
            return _answers_for_itself(type(estimator))
        if self._steps is not None:
            is_step = any(step is estimator for step in self._steps)
        else:
            is_step = any(step is estimator for step in _steps_of(self.estimators))
        return is_step or self._is_of_same_library(estimator)

    def takes(self, estimator: Any, function: Any) -> bool:
        """Return whether a call of a method of what is fitted is part of this fit, as one is.

        An override calls what it overrides, `fit` calls `partial_fit`; what does so twice fits
        two models, unless its class itself says what all of it costs.
        """
        if id(estimator) in self._left and function not in self._functions:
            self._left.discard(id(estimator))
            return True
        return _answers_for_itself(type(estimator))

    def part(self, estimator: Any, method: Any) -> Payment:
        """Return the payment of a fit that is part of this one."""
        return Payment(
            (estimator,),
            method,
            settles=self.settles,
            reservations=self.reservations,
            outer=self,
        )

    @property
    def pledge(self) -> str:
        """A path that tells other processes of this machine whether the payment is open."""
        with _lock:
            if self._pledge is None:
                self._pledge = _new_pledge()
        return str(self._pledge.name)

    def _is_of_same_library(self, estimator: Any) -> bool:
        """Return whether code of a library that has an adapter fits what it has made itself."""
        library = getattr(self.method, "__module__", None)
        return has_adapter(library) and _top(library) == _top(type(estimator).__module__)


def _top(module: Any) -> str:
    return str(module).partition(".")[0]


def _steps_of(estimators: Sequence[Any]) -> Iterator[Any]:
    """Yield the objects among the parameters of estimators, those in lists included."""
    for estimator in estimators:
        if hasattr(estimator, "get_params") and not isinstance(estimator, type):
            try:
                values = list(estimator.get_params(deep=True).values())
            except Exception:
                # One that cannot name its parameters has no steps that are known. In another
                # thread, it may be in the middle of a change.
                continue
            yield from _objects_in(values)


def _objects_in(value: Any) -> Iterator[Any]:
    if isinstance(value, list | tuple):
        for each in value:
            yield from _objects_in(each)
    elif hasattr(value, "fit"):
        yield value


def _answers_for_itself(kind: type) -> bool:
    """Return whether a class itself says what its methods cost, whatever they fit.

    One that inherits what a fit costs has no say in what it adds. Nor need classes of this
    package, which fit one model, but call what users have written.
    """
    if kind.__module__.startswith("skdptune."):
        return False
    registration = registration_of(kind)
    return "privacy_profile" in vars(kind) or (
        registration is not None and registration[0] is kind
    )


# In this process -----------------------------------------------------------------------------

_current: ContextVar[Payment | None] = ContextVar("skdptune_payment", default=None)


# Those that were entered and not left, in any thread.
_open: list[Payment] = []


def current_payment() -> Payment | None:
    """Return the innermost fit that goes on in this thread, None if there is none."""
    payment = _current.get()
    # One that has ended is found where its context was copied, as by a task of asyncio.
    return payment if payment is not None and payment.pays else None


def payment_of_step(estimator: Any) -> Payment | None:
    """Return the payment of a thread that fits what an object is a step of, None without any.

    Threads that work for it, or send tasks to workers, have no payment of their own.
    """
    found = (each for each in reversed(_open) if each.pays and each.includes(estimator))
    return next(found, None) if _open else None


def paid_for(*estimators: Any) -> Payment:
    """Return a context that pays for one fit of each estimator, since a search pays for it."""
    if not estimators:
        raise TypeError("estimators must be those that are paid for; got none.")
    return Payment(estimators)


# In other processes --------------------------------------------------------------------------


def _new_pledge() -> Any:
    """Return an open file with a lock that the system takes back when the process ends."""
    pledge = tempfile.NamedTemporaryFile(prefix=_PREFIX, delete=False)  # noqa: SIM115
    if fcntl is not None:
        # Unlike flock's, this lock does not pass to forked processes, which may live longer.
        fcntl.lockf(pledge, fcntl.LOCK_EX)
    return pledge


def _withdraw(pledge: Any) -> None:
    # While the lock is held: whoever finds the file finds it locked.
    with contextlib.suppress(OSError):
        os.unlink(pledge.name)
    pledge.close()
    with contextlib.suppress(OSError):
        # Windows removes no file that is open.
        os.unlink(pledge.name)


def is_pledged(path: str) -> bool:
    """Return whether the payment of another process of this machine is still open."""
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
        # Of a process that was killed.
        with contextlib.suppress(OSError):
            os.unlink(path)
    return False


# What an estimator takes with it to other threads and processes ------------------------------

# Of the attribute, which is there in copies alone, and of methods that see to it.
_KEY = "_skdptune_recording"


class Carried:
    """Settings that a copy takes along, and the payment that pays for its fits.

    Parameters
    ----------
    settings : LedgerSettings
    origin : str
        The process in which the settings are in force.
    payment : Payment, optional
        Of this process.
    registration : tuple, optional
        The class as it was registered by others, with its cost: what makes it record its fits.
    pledge : str, optional
        Where it is known whether a payment of another process is open.
    reservations : tuple of Reservation
        What a payment of another process pays with.
    """

    __slots__ = ("origin", "payment", "pledge", "registration", "reservations", "settings")

    def __init__(
        self,
        settings: LedgerSettings,
        origin: str,
        payment: Payment | None = None,
        registration: tuple[type, CostFunction] | None = None,
        pledge: str | None = None,
        reservations: tuple[Reservation, ...] = (),
    ) -> None:
        self.registration, self.reservations = registration, reservations
        self.settings, self.origin = settings, origin
        self.payment, self.pledge = payment, pledge

    @property
    def is_foreign(self) -> bool:
        """Whether it has come from another process."""
        return self.origin != process_identity()

    def open_payment(self) -> Payment | None:
        """Return the payment that still pays: its own, or one for that of another process."""
        if self.payment is not None:
            return self.payment if self.payment.pays else None
        if self.pledge is not None and self.is_foreign and is_pledged(self.pledge):
            return Payment((), reservations=self.reservations)
        return None

    def __reduce__(self) -> Any:
        """Drop it where the settings are in force by themselves."""
        pledge, reservations = self.pledge, self.reservations
        if self.payment is not None and self.payment.settles and self.payment.pays:
            pledge, reservations = self.payment.pledge, self.payment.reservations
        return _received, (self.settings, self.origin, self.registration, pledge, reservations)

    def __deepcopy__(self, memo: Any) -> Carried | None:
        """Drop it where the settings are in force by themselves."""
        return self if self.is_foreign else None


def _received(
    settings: LedgerSettings,
    origin: str,
    registration: tuple[type, CostFunction] | None,
    pledge: str | None,
    reservations: tuple[Reservation, ...],
) -> Carried | None:
    """Return what was carried here; nothing where it comes from."""
    if origin == process_identity():
        return None
    prepare()
    if registration is not None:
        adopt_registration(*registration)
    return Carried(settings, origin, None, registration, pledge, reservations)


# By identity, since classes may restore themselves without what they do not know.
_brought: dict[int, tuple[weakref.ref[Any], Carried]] = {}


def _hold(made: Any, carried: Carried) -> None:
    """Give an object what it carries, whatever its class does with attributes."""
    attributes, key = getattr(made, "__dict__", None), id(made)
    if attributes is not None:
        # For copies by hand.
        attributes[_KEY] = carried
    try:
        _brought[key] = weakref.ref(made, lambda _: _brought.pop(key, None)), carried
    except TypeError:
        if attributes is None:
            raise LedgerError(
                f"ledger must go with estimators to other processes; {type(made).__name__} has "
                "__slots__ and no place for it. Fit it in the process of the ledger, or add "
                "'__dict__' to its __slots__."
            ) from None


def carried_by(estimator: Any) -> Carried | None:
    """Return what an estimator has brought along, if anything."""
    found = getattr(estimator, "__dict__", {}).get(_KEY)
    if isinstance(found, Carried):
        return found
    reference, carried = _brought.get(id(estimator), (None, None))
    return carried if reference is not None and reference() is estimator else None


def carried_settings(estimator: Any) -> LedgerSettings | None:
    """Return the settings that an estimator has brought from another process, if any."""
    found = carried_by(estimator)
    return found.settings if found is not None and found.is_foreign and found.settings else None


def payment_for(estimator: Any, function: Any = None) -> Payment | None:
    """Return the fit that a fit of an estimator is part of, None if it is one of its own.

    Parameters
    ----------
    estimator : estimator
    function : callable, optional
        The method that is about to be called; None where nothing is called yet.
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
    """Return whether somebody asked for no ledger, here or where an estimator comes from."""
    found = carried_by(estimator)
    if found is not None and found.is_foreign and found.settings.is_off:
        return True
    return settings_in_force(carried_settings(estimator)).is_off


def _payment_of_copy(estimator: Any) -> Payment | None:
    """Return the payment that pays for fits of a copy of an estimator, None without any."""
    current, found = current_payment(), carried_by(estimator)
    payment = None if found is None else found.payment
    if current is not None and (current is payment or current.includes(estimator)):
        return current
    if current is not None:
        return None
    return payment if payment is not None and payment.pays else payment_of_step(estimator)


def to_carry(estimator: Any, *, is_clone: bool = False) -> Carried | None:
    """Return what a clone, a copy or a pickle of an estimator takes along, None for nothing.

    Notes
    -----
    Theorem H4.
    """
    found, payment = carried_by(estimator), _payment_of_copy(estimator)
    brought = found if found is not None and found.is_foreign else None
    if payment is not None and not (payment.settles or is_clone):
        # Nobody has paid for what another process may fit.
        payment = None
    try:
        settings = settings_in_force(carried_settings(estimator))
    except LedgerError:
        # Which ledger it is cannot be told here, so that a fit elsewhere must be refused.
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
    """Return a clone that was made of an estimator, with what it takes along."""
    carried = to_carry(estimator, is_clone=True)
    # What is in force in this process is so for clones as well.
    if carried is not None and (carried.is_foreign or carried.payment is not None):
        _hold(made, carried)
    return made


def reduced_to_carry(estimator: Any, reduced: Any) -> Any:
    """Return what an estimator is pickled and copied as, with what it takes along."""
    carried = to_carry(estimator) if isinstance(reduced, tuple) else None
    if carried is None:
        return reduced
    make, arguments, *others = reduced
    return _made_with, (carried, make, arguments), *others


def _made_with(carried: Carried | None, make: Any, arguments: tuple[Any, ...]) -> Any:
    """Make an object again, with what it has taken along."""
    made = make(*arguments)
    if carried is not None:
        _hold(made, carried)
    return made


def carry_settings(kind: Any) -> Any:
    """Let copies, clones and pickles of a class take along where their fits are recorded.

    Whatever the class does to be pickled and restored: that is around it, and not in its state.
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
