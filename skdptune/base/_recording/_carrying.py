"""What an estimator takes with it to other threads and processes: where its fits are recorded."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from skdptune._compat import clone_parametrized
from skdptune.base._costs import CostFunction, adopt_registration, registration_of
from skdptune.base._recording._payments import (
    Payment,
    current_payment,
    is_pledged,
    payment_of_step,
)
from skdptune.ledger import (
    LedgerError,
    LedgerSettings,
    Reservation,
    prepare,
    process_identity,
    settings_in_force,
)

# Of the attribute, which is there in copies and pickles alone.
KEY = "_skdptune_recording"


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


def carried_by(estimator: Any) -> Carried | None:
    """Return what an estimator has brought along, if anything."""
    found = getattr(estimator, "__dict__", {}).get(KEY)
    return found if isinstance(found, Carried) else None


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


def state_to_carry(estimator: Any, state: Any) -> Any:
    """Return the state of an estimator to be copied or pickled, with what it takes along."""
    if not isinstance(state, dict | None) or not hasattr(estimator, "__dict__"):
        return state
    carried, state = to_carry(estimator), state or {}
    if carried is None and KEY not in state:
        return state
    kept = {name: value for name, value in state.items() if name != KEY}
    return kept if carried is None else {**kept, KEY: carried}


def clone_to_carry(estimator: Any, made: Any) -> Any:
    """Return a clone that was made of an estimator, with what it takes along."""
    carried = to_carry(estimator, is_clone=True)
    # What is in force in this process is so for clones as well.
    if carried is not None and (carried.is_foreign or carried.payment is not None):
        _hold(made, carried)
    return made


def reduced_to_carry(estimator: Any, reduced: Any) -> Any:
    """Return what an estimator is pickled as, with what it takes along if its state has not."""
    if not isinstance(reduced, tuple) or KEY in _parts_of(reduced[2:3]):
        return reduced
    carried = to_carry(estimator)
    if carried is None:
        return reduced
    make, arguments, *others = reduced
    return _made_with, (carried, make, arguments), *others


def _parts_of(state: Sequence[Any]) -> Any:
    return state[0] if state and isinstance(state[0], dict) else ()


def _made_with(carried: Carried | None, make: Any, arguments: tuple[Any, ...]) -> Any:
    """Make an object again, with what it has taken along."""
    made = make(*arguments)
    if carried is not None:
        _hold(made, carried)
    return made


def _hold(made: Any, carried: Carried) -> None:
    """Give an object what it carries, around what its class may do with attributes."""
    if not hasattr(made, "__dict__"):
        raise LedgerError(
            f"ledger must go with estimators to other processes; {type(made).__name__} has "
            "__slots__ and no place for it. Fit it in the process of the ledger, or add "
            "'__dict__' to its __slots__."
        )
    made.__dict__[KEY] = carried


def _restored(estimator: Any, state: Any, restore: Callable[[Any, Any], None]) -> None:
    """Set a state, whatever the class keeps of it; what was carried stays."""
    carried = carried_by(estimator)
    if isinstance(state, dict) and KEY in state:
        carried = state[KEY]
        state = {name: value for name, value in state.items() if name != KEY}
    restore(estimator, state)
    if carried is not None:
        _hold(estimator, carried)


def carry_settings(kind: Any) -> Any:
    """Let copies, clones and pickles of a class take along where their fits are recorded."""
    state = kind.__getstate__
    if not hasattr(state, KEY):

        @functools.wraps(state)
        def __getstate__(self: Any) -> Any:
            return state_to_carry(self, state(self))

        setattr(__getstate__, KEY, True)
        kind.__getstate__ = __getstate__
    _carry_around_own_pickling(kind)
    copied = getattr(kind, "__sklearn_clone__", clone_parametrized)
    if hasattr(kind, "get_params") and not hasattr(copied, KEY):

        @functools.wraps(copied)
        def __sklearn_clone__(self: Any) -> Any:
            return clone_to_carry(self, copied(self))

        setattr(__sklearn_clone__, KEY, True)
        kind.__sklearn_clone__ = __sklearn_clone__
    return kind


def _carry_around_own_pickling(kind: Any) -> None:
    """Let also a class that says how it is pickled and restored take along what it carries."""
    reduce, restore = kind.__reduce_ex__, getattr(kind, "__setstate__", None)
    if not hasattr(reduce, KEY):

        @functools.wraps(reduce)
        def __reduce_ex__(self: Any, protocol: Any) -> Any:
            return reduced_to_carry(self, reduce(self, protocol))

        setattr(__reduce_ex__, KEY, True)
        kind.__reduce_ex__ = __reduce_ex__
    if restore is not None and not hasattr(restore, KEY):

        @functools.wraps(restore)
        def __setstate__(self: Any, state: Any) -> None:
            _restored(self, state, restore)

        setattr(__setstate__, KEY, True)
        kind.__setstate__ = __setstate__
