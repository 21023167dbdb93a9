"""The interface between a ledger and its database, and the SQL shared by all databases."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

# The place of a ledger in the memory of this process, which other processes cannot reach.
MEMORY = ":memory:"
# Of the tables, and of the entries in them.
VERSION = 4


class LedgerError(RuntimeError):
    """A ledger is missing, damaged or busy, or does not allow a request.

    The request was not carried out: nothing may be read from the data on the assumption that it
    was.
    """


def damaged(path: str, words: str) -> LedgerError:
    """Return the error for a damaged ledger, which says what to do."""
    return LedgerError(
        f"ledger {path!r} is damaged: {words}. A damaged ledger is not an empty one. Before the "
        "next release, restore the latest copy, and record all later releases by hand."
    )


@dataclass(frozen=True)
class Account:
    """The stored facts about a data set in addition to its events: texts and their digest.

    Parameters
    ----------
    terms : str
        The registered terms, which never change, as JSON.
    state : str
        The state after all events so far, as JSON.
    digest : str
        Digest of both, which detects changes from outside.
    """

    terms: str
    state: str
    digest: str


@dataclass(frozen=True)
class StoredEvent:
    """One event of a data set, as JSON, with a digest that includes the previous one."""

    sequence: int
    reservation: str
    content: str
    digest: str


class Storage:
    """A database in which ledgers are stored.

    A writing transaction sees everything written before it started, and excludes other writers
    until it ends. Its changes are durable when it has ended, even if the machine stops. Every
    failure is a `LedgerError`.
    """

    def __init__(self, location: str) -> None:
        # Its place, for messages and for opening it elsewhere.
        self.location = location

    def transaction(self, *, write: bool) -> AbstractContextManager[Transaction]:
        """Return a transaction as a context: committed, or rolled back after an exception."""
        raise NotImplementedError

    def create(self, first: Callable[[Transaction], None]) -> None:
        """Create the storage if it does not exist, and run `first` in a transaction."""
        with self.transaction(write=True) as transaction:
            first(transaction)

    def verify(self) -> None:
        """Raise if any damage is found; what is only in memory has no file to be damaged."""


# Runs a statement with named values, and returns its rows.
Execute = Callable[[str, dict[str, Any]], Any]


class Transaction:
    """A transaction on one connection to a database, which is atomic and durable.

    Parameters
    ----------
    execute : callable
        Runs a statement with named values.
    schema : str
        Prefix of each table's name: "" or "schema.".
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
        """Return the account of a data set, or None if it is not registered."""
        query = f"SELECT terms, state, digest FROM {self._accounts} WHERE dataset = :dataset"
        row = self._execute(query, {"dataset": dataset}).fetchone()
        # A damaged row may contain anything; its digest reveals this.
        return None if row is None else Account(*map(str, row))

    def save(self, dataset: str, account: Account) -> None:
        """Store an account, replacing the previous one."""
        self._execute(
            f"INSERT INTO {self._accounts} VALUES (:dataset, :terms, :state, :digest) "
            "ON CONFLICT (dataset) DO UPDATE SET "
            "terms = excluded.terms, state = excluded.state, digest = excluded.digest",
            {"dataset": dataset, **vars(account)},
        )

    def append(self, dataset: str, event: StoredEvent) -> None:
        """Append an event, which is never changed later."""
        self._execute(
            f"INSERT INTO {self._events} "
            "VALUES (:dataset, :sequence, :reservation, :content, :digest)",
            {"dataset": dataset, **vars(event)},
        )

    def events(
        self, dataset: str, reservation: str | None = None, *, after: int = 0
    ) -> Iterator[StoredEvent]:
        """Yield the later events of a data set, or of one reservation, in order."""
        values: dict[str, Any] = {"dataset": dataset, "after": after}
        rest = "AND sequence > :after ORDER BY sequence"
        if reservation is not None:
            values["reservation"], rest = reservation, f"AND reservation = :reservation {rest}"
        for row in self._execute(self._event(rest), values):
            yield StoredEvent(row[0], *map(str, row[1:]))

    def last_event(self, dataset: str) -> StoredEvent | None:
        """Return the latest event of a data set, or None if there is none."""
        query = self._event("ORDER BY sequence DESC LIMIT 1")
        row = self._execute(query, {"dataset": dataset}).fetchone()
        return None if row is None else StoredEvent(row[0], *map(str, row[1:]))

    def _event(self, rest: str) -> str:
        columns = "sequence, reservation, content, digest"
        return f"SELECT {columns} FROM {self._events} WHERE dataset = :dataset {rest}"

    def keep_profile(self, key: str, content: str) -> None:
        """Store a profile, once for all equal profiles."""
        self._execute(
            f"INSERT INTO {self._profiles} VALUES (:key, :content) ON CONFLICT (key) DO NOTHING",
            {"key": key, "content": content},
        )

    def profile(self, key: str) -> str | None:
        """Return the profile with a key, or None if there is none."""
        query = f"SELECT content FROM {self._profiles} WHERE key = :key"
        row = self._execute(query, {"key": key}).fetchone()
        return None if row is None else str(row[0])


def missing(location: str) -> LedgerError:
    """Return the error for a missing ledger."""
    return LedgerError(
        f"path_or_url must be the place of a ledger; there is none at {location!r}. A missing "
        "ledger "
        "is not an empty one: find or restore it. PrivacyLedger.create creates a new one, for "
        "data from which nothing was ever released."
    )


def check_version(location: str, version: int) -> None:
    """Raise unless a ledger has the version that this package writes and reads."""
    if version != VERSION:
        raise LedgerError(
            f"path_or_url must be the place of a ledger of version {VERSION}; got version "
            f"{version} at {location!r}. Another version of skdptune wrote it, and can read it."
        )
