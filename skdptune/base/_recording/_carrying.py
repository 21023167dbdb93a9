"""What an estimator takes with it to other threads and processes: where its fits are recorded."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from skdptune._compat import clone_parametrized
from skdptune.base._costs import CostFunction, adopt_registration, registration_of
from skdptune.base._recording._payments import Payment, current_payment
from skdptune.ledger import (
    MEMORY,
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
    """Settings that a copy takes along, or the payment that pays for its fits.

    Parameters
    ----------
    settings : LedgerSettings
    origin : str
        The process in which the settings are in force.
    payment : Payment, optional
        Of this process.
    is_paid : bool
        Whether a payment of another process pays for it.
    registration : tuple, optional
        The class as it was registered by others, with its cost: what makes it record its fits.
    reservations : tuple of Reservation
        What a payment of another process pays with.
    """

    __slots__ = ("is_paid", "origin", "payment", "registration", "reservations", "settings")

    def __init__(
        self,
        settings: LedgerSettings,
        origin: str,
        payment: Payment | None = None,
        is_paid: bool = False,
        registration: tuple[type, CostFunction] | None = None,
        reservations: tuple[Reservation, ...] = (),
    ) -> None:
        self.registration, self.reservations = registration, reservations
        self.settings, self.origin = settings, origin
        self.payment, self.is_paid = payment, is_paid

    @property
    def is_foreign(self) -> bool:
        """Whether it has come from another process."""
        return self.origin != process_identity()

    def still_pays(self) -> bool:
        """Return whether a payment of another process pays, which its ledger knows.

        What was saved to a file on the way, as by a callback, is not paid for after it.
        """
        known = [each for each in self.reservations if each.ledger.path != MEMORY]
        return self.is_paid and (not known or any(each.status == "read" for each in known))

    def __reduce__(self) -> Any:
        """Drop it where the settings are in force by themselves."""
        is_paid = self.payment is not None and self.payment.pays
        reservations = self.payment.reservations if self.payment is not None and is_paid else ()
        made_of = self.settings, self.origin, is_paid, self.registration, reservations
        return _received, made_of


def _received(
    settings: LedgerSettings,
    origin: str,
    is_paid: bool,
    registration: tuple[type, CostFunction] | None,
    reservations: tuple[Reservation, ...] = (),
) -> Carried | None:
    """Return what was carried here; nothing where it comes from."""
    if origin == process_identity():
        return None
    prepare()
    if registration is not None:
        adopt_registration(*registration)
    return Carried(settings, origin, is_paid=is_paid, reservations=reservations)


def carried_by(estimator: Any) -> Carried | None:
    """Return what an estimator has brought along, if anything."""
    found = getattr(estimator, "__dict__", {}).get(KEY)
    return found if isinstance(found, Carried) else None


def carried_settings(estimator: Any) -> LedgerSettings | None:
    """Return the settings that an estimator has brought from another process, if any."""
    found = carried_by(estimator)
    return found.settings if found is not None and found.is_foreign else None


def to_carry(estimator: Any) -> Carried | None:
    """Return what a copy or a pickle of an estimator takes along, None for nothing.

    Notes
    -----
    Theorem H4.
    """
    found, payment = carried_by(estimator), current_payment()
    brought = found if found is not None and found.is_foreign else None
    if payment is not None and not payment.is_passed_on:
        # Within a search, whose workers know by themselves that it pays.
        return brought
    if payment is None and found is not None and found.payment is not None:
        payment = found.payment if found.payment.pays else None
    try:
        settings = settings_in_force(None if brought is None else brought.settings)
    except LedgerError:
        # Which ledger it is cannot be told here, so that a fit elsewhere must be refused.
        settings = LedgerSettings(None, require_ledger=True)
    if payment is None and not settings:
        return None
    origin = process_identity() if brought is None else brought.origin
    return Carried(settings, origin, payment, registration=registration_of(type(estimator)))


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
    found = carried_by(estimator)
    carried = found if found is not None and found.is_foreign and found.is_paid else None
    carried = carried or to_carry(estimator)
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
