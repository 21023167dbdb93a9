"""A reference to a registered budget, which stays the same one when it is copied or pickled."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Self

from skdptune.accounting import PrivacyProfile
from skdptune.ledger._books import Books, Replay, Terms
from skdptune.ledger._opening import storage_at
from skdptune.ledger._record import LedgerRecord
from skdptune.ledger._sqlite import SqliteMemory
from skdptune.ledger._storage import MEMORY, LedgerError, Storage, Transaction
from skdptune.ledger._ways import Ways

# Ledgers in memory, for pickles within the process.
_IN_MEMORY: weakref.WeakValueDictionary[str, LedgerReference] = weakref.WeakValueDictionary()


class LedgerReference:
    """Where a ledger is kept and what was registered; all else is read when it is asked for.

    A copy, and what a pickle gives in whichever process, draws from the same budget.
    """

    def _bind(
        self, storage: Storage, terms: Terms, who: str | None = None, note: str | None = None
    ) -> None:
        self._storage, self._terms = storage, terms
        self._who, self._note = who, note
        # The last event that was seen, with its digest, and how costs are added up once that is
        # settled.
        self._seen = (0, "")
        self._ways: Ways | None = None
        # Events that were checked, with the records of their reservations; or nothing.
        self._replayed: list[tuple[Replay, dict[str, LedgerRecord]]] = []
        # The composition of what is spent, with the digest of the last event that is in it.
        self._composed: tuple[str, PrivacyProfile] | None = None
        if isinstance(storage, SqliteMemory):
            _IN_MEMORY[terms.identity] = self

    @property
    def path(self) -> str:
        """Absolute path of the file, URL without its password, or ":memory:"."""
        return self._storage.location

    @property
    def dataset(self) -> str:
        """Name of the data set."""
        return self._terms.dataset

    @property
    def epsilon(self) -> float:
        """Lifetime budget."""
        return self._terms.epsilon

    @property
    def delta(self) -> float:
        """Delta of the budget."""
        return self._terms.delta

    @property
    def unit(self) -> str:
        """What neighbouring data sets differ by."""
        return self._terms.unit

    @property
    def who(self) -> str | None:
        """Who releases, None for the user and the machine that record."""
        return self._who

    @property
    def note(self) -> str | None:
        """A text of the user's, kept with each entry."""
        return self._note

    @contextmanager
    def _books(self, *, write: bool) -> Iterator[tuple[Transaction, Books]]:
        """Open the books in a transaction; they must go on from what was seen of them before."""
        seen = self._seen
        with self._storage.transaction(write=write) as transaction:
            books = Books(transaction, self.dataset, self.path)
            if books.terms != self._terms or not books.go_on_from(*seen):
                raise LedgerError(
                    f"ledger {self.path!r} must be the one that was opened, with all that was "
                    "recorded since; got another or an older copy."
                )
            yield transaction, books
        self._seen = max(self._seen, (books.state.n_events, books.state.last_digest))

    def __copy__(self) -> Self:
        """Return the ledger itself: a copy of an estimator draws from the same budget."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return the ledger itself."""
        return self

    def __reduce__(self) -> tuple[Callable[..., LedgerReference], tuple[Any, ...]]:
        """Pickle a reference to the ledger, not what is in it."""
        return _referred, (type(self), self.path, self._terms, self._who, self._note)

    def __eq__(self, other: object) -> bool:
        """Return whether both are of the same registered data set."""
        if not isinstance(other, LedgerReference):
            return NotImplemented
        return self._terms == other._terms

    def __hash__(self) -> int:
        """Hash what was registered."""
        return hash(self._terms)

    def __repr__(self) -> str:
        """Show what was registered."""
        return (
            f"PrivacyLedger({self.path!r}, {self.dataset!r}, epsilon={self.epsilon!r}, "
            f"delta={self.delta!r}, unit={self.unit!r})"
        )


def _referred(
    kind: type[LedgerReference],
    path: str,
    terms: Terms,
    who: str | None = None,
    note: str | None = None,
) -> LedgerReference:
    """Return the ledger that a pickle refers to."""
    if path == MEMORY:
        found = _IN_MEMORY.get(terms.identity)
        if found is not None:
            return found
    ledger = kind.__new__(kind)
    storage = _MemoryElsewhere() if path == MEMORY else storage_at(path)
    ledger._bind(storage, terms, who, note)
    return ledger


class _MemoryElsewhere:
    """Stands for the memory of another process, so that what refers to it can be loaded here."""

    location = MEMORY

    def transaction(self, *, write: bool) -> AbstractContextManager[Transaction]:
        """Refuse: it cannot be reached."""
        raise LedgerError(
            "a ledger in memory must be used in the process that made it; got it in another. "
            "Keep it in a file for workers and for later: PrivacyLedger.create(path, ...)."
        )

    def create(self, first: Callable[[Transaction], None]) -> None:
        """Refuse: it cannot be reached."""
        self.transaction(write=True)

    def verify(self) -> None:
        """Refuse: it cannot be reached."""
        self.transaction(write=False)
