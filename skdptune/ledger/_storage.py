"""What a ledger asks of the data base it is kept in, and the error that it may raise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

# Where a ledger of this process alone is, which no other process can ask.
MEMORY = ":memory:"


class LedgerError(RuntimeError):
    """A ledger is missing, damaged, busy, or was asked for what it does not allow.

    Whatever was asked for did not happen: nothing may be read from the data on the strength of it.
    """


def damaged(path: str, words: str) -> LedgerError:
    """Return the error that says what to do with a damaged ledger."""
    return LedgerError(
        f"ledger {path!r} is damaged: {words}. A damaged ledger is not an empty one: restore the "
        "latest copy, and record by hand what was released since, before you release more."
    )


@dataclass(frozen=True)
class Account:
    """What is kept of a data set beside its events: texts, and a digest over them.

    Parameters
    ----------
    terms : str
        What was registered and never changes, as JSON.
    state : str
        What all events so far come to, as JSON.
    digest : str
        Of both, so that a change from outside is seen.
    """

    terms: str
    state: str
    digest: str


@dataclass(frozen=True)
class StoredEvent:
    """One event of a data set, as JSON, with a digest that continues that of the one before."""

    sequence: int
    reservation: str
    content: str
    digest: str


class Transaction(Protocol):
    """What may be done in a transaction: all of it happens, and lasts, or nothing does."""

    def data_sets(self) -> list[str]:
        """Return the names of all data sets."""

    def account(self, dataset: str) -> Account | None:
        """Return what is kept of a data set, None if it is not registered."""

    def save(self, dataset: str, account: Account) -> None:
        """Keep an account, in place of the one before."""

    def append(self, dataset: str, event: StoredEvent) -> None:
        """Add an event, which no later one changes."""

    def events(
        self, dataset: str, reservation: str | None = None, *, after: int = 0
    ) -> Iterator[StoredEvent]:
        """Yield the later events of a data set, or of one reservation, in their order."""

    def last_event(self, dataset: str) -> StoredEvent | None:
        """Return the latest event of a data set, None if there is none."""

    def keep_profile(self, key: str, content: str) -> None:
        """Keep a profile, once for all that are equal."""

    def profile(self, key: str) -> str | None:
        """Return a profile, None if there is none of this key."""


class Storage(Protocol):
    """Where ledgers are kept.

    A writing transaction sees all that were written before it began, and no other writes until it
    ends. What it wrote lasts once it has ended, also if the machine stops. Every failure is a
    `LedgerError`.
    """

    @property
    def location(self) -> str:
        """Where it is, for messages and for those who open it elsewhere."""

    def transaction(self, *, write: bool) -> AbstractContextManager[Transaction]:
        """Return a transaction that ends with its context: kept, or undone on an exception."""

    def create(self, first: Callable[[Transaction], None]) -> None:
        """Make the storage if there is none, and run `first` in a transaction of it."""

    def verify(self) -> None:
        """Raise if anything is found to be damaged."""
