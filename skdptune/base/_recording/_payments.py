"""Which fits are paid for by one that they are part of."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from skdptune.ledger import Reservation


class Payment:
    """Pays for all fits that are made while it is open.

    Parameters
    ----------
    is_passed_on : bool
        Whether copies that are made on the way are paid for in other threads, too.
    reservations : sequence of Reservation
        What it pays with, where that is known.
    """

    __slots__ = ("_process", "is_open", "is_passed_on", "reservations")

    def __init__(self, *, is_passed_on: bool, reservations: Sequence[Reservation] = ()) -> None:
        self.is_open, self.is_passed_on = True, is_passed_on
        self.reservations, self._process = tuple(reservations), os.getpid()

    @property
    def pays(self) -> bool:
        """Whether it still pays, in this process: a forked one may go on when it has ended."""
        return self.is_open and self._process == os.getpid()


_current: ContextVar[Payment | None] = ContextVar("skdptune_payment", default=None)


def current_payment() -> Payment | None:
    """Return what pays for fits in this thread, None if nothing does."""
    payment = _current.get()
    # One that has ended is found where its context was copied, as by a task of asyncio.
    return payment if payment is not None and payment.pays else None


@contextmanager
def paid_for(
    *, is_passed_on: bool = False, reservations: Sequence[Reservation] = ()
) -> Iterator[None]:
    """Pay for all fits of a block of code in this thread, since what they are part of does.

    Notes
    -----
    Theorem H4.
    """
    payment = Payment(is_passed_on=is_passed_on, reservations=reservations)
    try:
        with paid_by(payment):
            yield
    finally:
        payment.is_open = False


@contextmanager
def paid_by(payment: Payment) -> Iterator[None]:
    """Let a payment pay for the fits of a block of code in another thread."""
    token = _current.set(payment)
    try:
        yield
    finally:
        _current.reset(token)
