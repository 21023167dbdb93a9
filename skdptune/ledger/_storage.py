"""What a ledger asks of the data base that it is kept in, and the SQL that all of them share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

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


# Runs a statement with named values, and returns its rows.
Execute = Callable[[str, dict[str, Any]], Any]


class Transaction:
    """A transaction of one connection to a data base: all of it happens, and lasts, or nothing.

    Parameters
    ----------
    execute : callable
        Runs a statement with named values.
    schema : str
        What stands before the name of each table: "" or "schema.".
    """

    def __init__(self, execute: Execute, schema: str = "") -> None:
        self._execute = execute
        self._accounts, self._events = f"{schema}accounts", f"{schema}events"
        self._profiles = f"{schema}profiles"

    def data_sets(self) -> list[str]:
        """Return the names of all data sets."""
        query = f"SELECT dataset FROM {self._accounts} ORDER BY dataset"
        return [name for (name,) in self._execute(query, {})]

    def account(self, dataset: str) -> Account | None:
        """Return what is kept of a data set, None if it is not registered."""
        query = f"SELECT terms, state, digest FROM {self._accounts} WHERE dataset = :dataset"
        row = self._execute(query, {"dataset": dataset}).fetchone()
        # A damaged row may hold anything: its digest says so.
        return None if row is None else Account(*map(str, row))

    def save(self, dataset: str, account: Account) -> None:
        """Keep an account, in place of the one before."""
        self._execute(
            f"INSERT INTO {self._accounts} VALUES (:dataset, :terms, :state, :digest) "
            "ON CONFLICT (dataset) DO UPDATE SET "
            "terms = excluded.terms, state = excluded.state, digest = excluded.digest",
            {"dataset": dataset, **vars(account)},
        )

    def append(self, dataset: str, event: StoredEvent) -> None:
        """Add an event, which no later one changes."""
        self._execute(
            f"INSERT INTO {self._events} "
            "VALUES (:dataset, :sequence, :reservation, :content, :digest)",
            {"dataset": dataset, **vars(event)},
        )

    def events(
        self, dataset: str, reservation: str | None = None, *, after: int = 0
    ) -> Iterator[StoredEvent]:
        """Yield the later events of a data set, or of one reservation, in their order."""
        values: dict[str, Any] = {"dataset": dataset, "after": after}
        rest = "AND sequence > :after ORDER BY sequence"
        if reservation is not None:
            values["reservation"], rest = reservation, f"AND reservation = :reservation {rest}"
        for row in self._execute(self._event(rest), values):
            yield StoredEvent(row[0], *map(str, row[1:]))

    def last_event(self, dataset: str) -> StoredEvent | None:
        """Return the latest event of a data set, None if there is none."""
        query = self._event("ORDER BY sequence DESC LIMIT 1")
        row = self._execute(query, {"dataset": dataset}).fetchone()
        return None if row is None else StoredEvent(row[0], *map(str, row[1:]))

    def _event(self, rest: str) -> str:
        columns = "sequence, reservation, content, digest"
        return f"SELECT {columns} FROM {self._events} WHERE dataset = :dataset {rest}"

    def keep_profile(self, key: str, content: str) -> None:
        """Keep a profile, once for all that are equal."""
        self._execute(
            f"INSERT INTO {self._profiles} VALUES (:key, :content) ON CONFLICT (key) DO NOTHING",
            {"key": key, "content": content},
        )

    def profile(self, key: str) -> str | None:
        """Return a profile, None if there is none of this key."""
        query = f"SELECT content FROM {self._profiles} WHERE key = :key"
        row = self._execute(query, {"key": key}).fetchone()
        return None if row is None else str(row[0])


def missing(location: str) -> LedgerError:
    """Return the error that there is no ledger where one is looked for."""
    return LedgerError(
        f"path_or_url must be that of a ledger; there is none at {location!r}. A missing ledger "
        "is not an empty one: find or restore it. PrivacyLedger.create makes a new one, for data "
        "from which nothing was ever released."
    )


def newer(location: str, version: int, known: int) -> LedgerError:
    """Return the error that a later version of this package wrote a ledger."""
    return LedgerError(
        f"path_or_url must be that of a ledger of version {known} or less; got version {version} "
        f"at {location!r}. A newer version of skdptune wrote it, and can read it."
    )
