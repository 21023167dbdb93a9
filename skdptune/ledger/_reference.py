"""A reference to a registered budget: validation of arguments, and the place of the ledger.

Copies and pickles of a reference refer to the same budget.
"""

from __future__ import annotations

import getpass
import json
import os
import platform
import uuid
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from typing import Any, Self

from skdptune._formatting import shown, shown_names
from skdptune._validation import check_kind, check_real
from skdptune.accounting import PrivacyProfile
from skdptune.ledger._books import Books, Replay, Terms, Ways, unit_of
from skdptune.ledger._postgresql import PostgresqlServer, check_url
from skdptune.ledger._report import LedgerRecord
from skdptune.ledger._sqlite import SqliteFile, SqliteMemory
from skdptune.ledger._storage import MEMORY, LedgerError, Storage, Transaction

# No profile has an epsilon above this.
_LARGEST_EPSILON = 600.0


def now() -> str:
    """Return the current time of this machine's clock, in UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def who_records(given: str | None) -> str:
    """Return who records an entry: the given name, or the user and the machine of this process."""
    if given is not None:
        return given
    try:
        user = getpass.getuser()
    except (KeyError, OSError, ImportError):
        # The user may have no name, for example in a container.
        user = f"user {os.getuid()}" if hasattr(os, "getuid") else "a user"
    return "".join(each if each.isprintable() else "?" for each in f"{user}@{platform.node()}")


def check_words(value: Any, *, name: str) -> str:
    """Return a string with visible characters, or raise."""
    text: str = check_kind(value, name=name, kind=str, domain="a str")
    if not text.strip() or not text.isprintable():
        raise ValueError(f"{name} must be a str of visible characters; got {shown(text)}.")
    return text


def check_sentences(values: Any) -> list[str]:
    """Return assumptions as a list, or raise."""
    domain = "a sequence of str"
    if isinstance(values, str):
        raise TypeError(f"assumptions must be {domain}; got one str. Put it in a list.")
    check_kind(values, name="assumptions", kind=Sequence, domain=domain)
    return [check_words(value, name=f"assumptions[{i}]") for i, value in enumerate(values)]


def check_details(details: Any) -> dict[str, Any]:
    """Return details as plain values for strict JSON, or raise."""
    if details is None:
        return {}
    check_kind(details, name="details", kind=Mapping, domain="a mapping from str")
    if not all(isinstance(key, str) for key in details):
        raise TypeError("details must be a mapping from str; got other keys.")
    try:
        plain: dict[str, Any] = json.loads(json.dumps(dict(details), allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(
            f"details must be valid as strict JSON; got other values ({error})."
        ) from None
    return plain


def check_parts(parts: Any, parts_by: Any) -> tuple[tuple[str, ...], str]:
    """Return names of disjoint parts and the public attribute that defines them, or raise."""
    if parts is None and parts_by is None:
        return (), ""
    if isinstance(parts, str) or not isinstance(parts, Sequence) or not parts:
        raise TypeError(f"parts must be a sequence of str, with parts_by; got {shown(parts)}.")
    names = tuple(check_words(name, name=f"parts[{i}]") for i, name in enumerate(parts))
    if len({name.strip().casefold() for name in names}) < len(names):
        raise ValueError(
            f"parts must be disjoint; got {len(names)} names, one of which occurs twice. Each "
            "record is in only one part."
        )
    return names, check_words(parts_by, name="parts_by")


def new_terms(
    dataset: str, epsilon: Any, delta: Any, unit: Any, parts: Any = None, parts_by: Any = None
) -> Terms:
    """Return the validated terms to be registered for a data set."""
    epsilon = check_real(
        epsilon, name="epsilon", lower=0.0, lower_open=True, upper=_LARGEST_EPSILON
    )
    # Adding 0.0 turns -0.0 into 0.0.
    delta = check_real(delta, name="delta", lower=0.0, upper=1.0, upper_open=True) + 0.0
    unit, identity = check_words(unit, name="unit"), uuid.uuid4().hex
    return Terms(dataset, epsilon, delta, unit, now(), identity, *check_parts(parts, parts_by))


def check_agreement(terms: Terms, asked: Mapping[str, Any]) -> None:
    """Raise if a requested value differs from the registered one; None requests nothing."""
    for name, value in asked.items():
        registered = getattr(terms, name)
        if value is not None and value != registered:
            raise LedgerError(
                f"{name} must be {shown(registered)}, with which {shown(terms.dataset)} was "
                f"registered; got {shown(value)}. A lifetime budget does not change: leave "
                f"{name} out to open it."
            )


def storage_at(path_or_url: Any) -> Storage:
    """Return the storage at a place, which may not exist yet, or raise for invalid places."""
    domain = "a path, a URL or ':memory:'"
    check_kind(path_or_url, name="path_or_url", kind=(str, os.PathLike), domain=domain)
    place = os.fspath(path_or_url)
    if not isinstance(place, str) or not place.strip() or "\0" in place:
        raise ValueError(f"path_or_url must be {domain}; got {shown(place)}.")
    if "://" in place:
        return PostgresqlServer(check_url(place))
    return SqliteMemory() if place == MEMORY else SqliteFile(os.path.abspath(place))


# Ledgers in memory, for unpickling within the process.
_IN_MEMORY: weakref.WeakValueDictionary[str, LedgerReference] = weakref.WeakValueDictionary()


class LedgerReference:
    """The place of a ledger and its registered terms; everything else is read when needed.

    Copies, and unpickled references in any process, use the same budget.
    """

    def _bind(
        self,
        storage: Storage,
        terms: Terms,
        who: str | None = None,
        note: str | None = None,
        parts: tuple[str, ...] = (),
    ) -> None:
        self._storage, self._terms = storage, terms
        self._who, self._note = who, note
        # The parts of the data that releases through this object use; all if empty.
        self._parts = parts
        # The last event that was seen, with its digest; and how costs are added up, once this is
        # settled.
        self._seen = (0, "")
        # The relation of the releases that were seen.
        self._relation = ""
        self._ways: Ways | None = None
        # Events that were verified, with the records of their reservations; or empty.
        self._replayed: list[tuple[Replay, dict[str, LedgerRecord]]] = []
        # Compositions of spent releases, with the digest of the last event in them.
        self._composed: tuple[str, dict[str, PrivacyProfile]] = ("", {})
        if isinstance(storage, SqliteMemory):
            _IN_MEMORY[f"{terms.identity} {parts}"] = self

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
        """Epsilon of the lifetime budget."""
        return self._terms.epsilon

    @property
    def delta(self) -> float:
        """Delta of the lifetime budget."""
        return self._terms.delta

    @property
    def unit(self) -> str:
        """How neighbouring data sets differ."""
        return self._terms.unit

    @property
    def parts(self) -> tuple[str, ...]:
        """Parts of the data that releases through this object use; empty if there are none."""
        return self._parts or self._terms.parts

    @property
    def parts_by(self) -> str:
        """The public attribute whose values are the parts; empty if there are none."""
        return self._terms.parts_by

    def part(self, *names: str) -> Self:
        """Return the ledger for releases that read only some of the disjoint parts.

        Parameters
        ----------
        *names : str
            Registered parts. Records of other parts must not be read: fit on the rows of these
            parts only.

        Returns
        -------
        PrivacyLedger
            It charges these parts only. Its budget is that of the data set, of which it states
            what the parts have left.

        Notes
        -----
        Theorem H5. Each record lies in only one part, so releases on different parts do not
        add up. This is about adding or removing a record, not about replacing one.
        """
        unknown = [name for name in names if name not in self._terms.parts]
        if unknown or not names or len(set(names)) < len(names):
            known = shown_names(self._terms.parts) or "none, which PrivacyLedger.create registers"
            raise LedgerError(
                f"names must be different parts of {shown(self.dataset)}: {known}; got "
                f"{shown_names(unknown or names) or 'none'}. Nothing was recorded."
            )
        ledger = type(self).__new__(type(self))
        ledger._bind(self._storage, self._terms, self._who, self._note, tuple(sorted(names)))
        return ledger

    @property
    def who(self) -> str | None:
        """Name stored with each entry; None means the user and the machine that record it."""
        return self._who

    @property
    def note(self) -> str | None:
        """The user's own text, stored with each entry."""
        return self._note

    @contextmanager
    def _books(self, *, write: bool) -> Iterator[tuple[Transaction, Books]]:
        """Open the books in a transaction; they must continue what was seen before."""
        seen = self._seen
        with self._storage.transaction(write=write) as transaction:
            books = Books(transaction, self.dataset, self.path)
            if books.terms != self._terms or not books.go_on_from(*seen):
                raise LedgerError(
                    f"ledger {self.path!r} must be the one that was opened, with everything that "
                    "was recorded since then; got another ledger or an older copy."
                )
            yield transaction, books
        self._seen = max(self._seen, (books.state.n_events, books.state.last_digest))
        self._relation = books.state.neighbouring

    def __copy__(self) -> Self:
        """Return the ledger itself: a copy of an estimator uses the same budget."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return the ledger itself."""
        return self

    def __reduce__(self) -> tuple[Callable[..., LedgerReference], tuple[Any, ...]]:
        """Pickle a reference to the ledger, not its content."""
        about = self._who, self._note, self._parts
        return _referred, (type(self), self.path, self._terms, *about)

    def __eq__(self, other: object) -> bool:
        """Return whether both refer to the same registered data set, or to the same parts."""
        if not isinstance(other, LedgerReference):
            return NotImplemented
        return (self._terms, self._parts) == (other._terms, other._parts)

    def __hash__(self) -> int:
        """Return a hash of the registered terms."""
        return hash(self._terms)

    def __repr__(self) -> str:
        """Return the registered terms as text, with the unit of the releases that were seen."""
        unit = unit_of(self.unit, [self._relation])
        of_parts = f".part{self._parts!r}" if self._parts else ""
        return (
            f"PrivacyLedger({self.path!r}, {self.dataset!r}, epsilon={self.epsilon!r}, "
            f"delta={self.delta!r}, unit={unit!r}){of_parts}"
        )


def _referred(
    kind: type[LedgerReference],
    path: str,
    terms: Terms,
    who: str | None = None,
    note: str | None = None,
    parts: tuple[str, ...] = (),
) -> LedgerReference:
    """Return the ledger to which a pickle refers."""
    if path == MEMORY:
        found = _IN_MEMORY.get(f"{terms.identity} {parts}")
        if found is not None:
            return found
    ledger = kind.__new__(kind)
    storage = _MemoryElsewhere(MEMORY) if path == MEMORY else storage_at(path)
    ledger._bind(storage, terms, who, note, parts)
    return ledger


class _MemoryElsewhere(Storage):
    """Placeholder for the memory of another process, so that references can be unpickled here."""

    def transaction(self, *, write: bool) -> AbstractContextManager[Transaction]:
        """Raise: the memory of another process cannot be reached."""
        raise LedgerError(
            "a ledger in memory must be used in the process that created it; this is another one. "
            "Keep it in a file for workers and for later: PrivacyLedger.create(path, ...)."
        )
