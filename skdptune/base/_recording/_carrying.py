"""What an estimator takes with it to other threads and processes: where its fits are recorded."""

from __future__ import annotations

import functools
from typing import Any

from skdptune._compat import clone_parametrized
from skdptune.base._costs import CostFunction, adopt_registration, registration_of
from skdptune.base._recording._payments import Payment, current_payment
from skdptune.ledger import (
    LedgerError,
    LedgerSettings,
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
    """

    __slots__ = ("is_paid", "origin", "payment", "registration", "settings")

    def __init__(
        self,
        settings: LedgerSettings,
        origin: str,
        payment: Payment | None = None,
        is_paid: bool = False,
        registration: tuple[type, CostFunction] | None = None,
    ) -> None:
        self.registration = registration
        self.settings, self.origin = settings, origin
        self.payment, self.is_paid = payment, is_paid

    @property
    def is_foreign(self) -> bool:
        """Whether it has come from another process."""
        return self.origin != process_identity()

    def __reduce__(self) -> Any:
        """Drop it where the settings are in force by themselves."""
        is_paid = self.payment is not None and self.payment.pays
        return _received, (self.settings, self.origin, is_paid, self.registration)


def _received(
    settings: LedgerSettings,
    origin: str,
    is_paid: bool,
    registration: tuple[type, CostFunction] | None,
) -> Carried | None:
    """Return what was carried here; nothing where it comes from."""
    if origin == process_identity():
        return None
    prepare()
    if registration is not None:
        adopt_registration(*registration)
    return Carried(settings, origin, is_paid=is_paid)


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
    if not isinstance(state, dict | None):
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
        # Around what a class may do with attributes that are set.
        made.__dict__[KEY] = carried
    return made


def carry_settings(kind: Any) -> Any:
    """Let copies, clones and pickles of a class take along where their fits are recorded."""
    state = kind.__getstate__
    if not hasattr(state, KEY):

        @functools.wraps(state)
        def __getstate__(self: Any) -> Any:
            return state_to_carry(self, state(self))

        setattr(__getstate__, KEY, True)
        kind.__getstate__ = __getstate__
    copied = getattr(kind, "__sklearn_clone__", clone_parametrized)
    if hasattr(kind, "get_params") and not hasattr(copied, KEY):

        @functools.wraps(copied)
        def __sklearn_clone__(self: Any) -> Any:
            return clone_to_carry(self, copied(self))

        setattr(__sklearn_clone__, KEY, True)
        kind.__sklearn_clone__ = __sklearn_clone__
    return kind
