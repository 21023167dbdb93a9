"""A part of a ledger's budget that was set aside for one release."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from skdptune._validation import check_kind

if TYPE_CHECKING:
    from skdptune.ledger._ledger import PrivacyLedger


class Reservation:
    """A part of a ledger's budget, set aside for one release before it reads the data.

    Made by `PrivacyLedger.reserve`. As a context it is marked as read when it is entered, and
    confirmed at the end unless an exception was raised. It can be pickled: whichever process has
    it speaks of the same reservation.

    Attributes
    ----------
    ledger : PrivacyLedger
    identifier : str
    name : str
        What it is for.
    status : {"reserved", "read", "confirmed", "cancelled"}
        As the ledger has it now. All but "cancelled" count as spent.

    Notes
    -----
    Theorem H3.

    Examples
    --------
    >>> from skdptune.accounting import PrivacyProfile
    >>> from skdptune.ledger import PrivacyLedger
    >>> ledger = PrivacyLedger(":memory:", "patients", epsilon=3.0, delta=1e-5)
    >>> reservation = ledger.reserve(PrivacyProfile.pure(1.0), name="count")
    >>> reservation.cancel("the file was missing")
    >>> ledger.remaining(delta=0)
    3.0
    >>> with ledger.reserve(PrivacyProfile.pure(1.0), name="count"):
    ...     pass
    >>> round(ledger.remaining(delta=0), 3)
    2.0
    """

    __slots__ = ("identifier", "ledger", "name")

    def __init__(self, ledger: PrivacyLedger, identifier: str, name: str) -> None:
        self.ledger, self.identifier, self.name = ledger, identifier, name

    @property
    def status(self) -> str:
        """Where it stands: "reserved", "read", "confirmed" or "cancelled"."""
        return self.ledger._status_of(self.identifier)

    def mark_read(self) -> None:
        """Record that the data are read from now on. Call it before the first read.

        Workers of one release may each call it. Raises LedgerError if the reservation was
        cancelled or confirmed: then nothing may be read.
        """
        self.ledger._move(self.identifier, "read", within=("read",))

    def confirm(self) -> None:
        """Record that the release was made."""
        self.ledger._move(self.identifier, "confirmed", within=("confirmed",))

    def cancel(self, reason: str) -> None:
        """Give the budget back, for a release that has read nothing.

        Parameters
        ----------
        reason : str
            Why, in words that hold nothing of the data.
        """
        check_kind(reason, name="reason", kind=str, domain="a str")
        if not reason.strip():
            raise ValueError("reason must say why; got a text of no words.")
        self.ledger._move(self.identifier, "cancelled", within=("cancelled",), reason=reason)

    def __enter__(self) -> Reservation:
        """Mark it as read; only once, since a second release needs another reservation."""
        self.ledger._move(self.identifier, "read")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Confirm it; after an exception it stays as it is, which is spent."""
        if kind is None:
            self.confirm()

    def __repr__(self) -> str:
        """Show what it is for and of which data set."""
        return f"Reservation({self.name!r}, dataset={self.ledger.dataset!r}, {self.identifier!r})"
