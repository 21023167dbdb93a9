"""The lifetime budget of a data set, and reservations of parts of it for single releases."""

from __future__ import annotations

import functools
import json
import math
import os
import uuid
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Literal, Self, overload

from skdptune._formatting import shown, shown_percent
from skdptune._validation import (
    NamedArguments,
    check_flag,
    check_integer,
    check_kind,
    check_real,
)
from skdptune._version import __version__
from skdptune.accounting import (
    BudgetExceededError,
    PrivacyProfile,
    PrivacyReport,
    PrivacyStatement,
)
from skdptune.ledger._books import (
    ADD_OR_REMOVE,
    PERSON,
    REPLACE,
    Books,
    Replay,
    State,
    Totals,
    Ways,
    check_relation,
    key_of,
    save_account,
    unit_of,
)
from skdptune.ledger._context import enter_ledger, leave_ledger
from skdptune.ledger._reference import (
    LedgerReference,
    check_agreement,
    check_details,
    check_sentences,
    check_words,
    new_terms,
    now,
    storage_at,
    who_records,
)
from skdptune.ledger._report import (
    LedgerPlan,
    LedgerRecord,
    LedgerReport,
    add_records,
    facts_of,
    refusal,
)
from skdptune.ledger._storage import MEMORY, LedgerError, Transaction

# Up to this many different profiles are composed exactly; for more, totals are used.
_FEW_PROFILES = 6
_OF_USAGE = ("sequence", "time", "event", "name", "used", "confirmed", "who", "note")


class Reservation:
    """A part of a ledger's budget, reserved for one release before it reads the data.

    It is created by `PrivacyLedger.reserve`. As a context manager, it is marked as read on entry,
    and confirmed at the end unless an exception is raised. It can be pickled, and refers to the
    same reservation in every process.

    Attributes
    ----------
    ledger : PrivacyLedger
    identifier : str
    name : str
        What it is for.
    status : {"reserved", "read", "confirmed", "cancelled"}
        The current status in the ledger. All reservations except "cancelled" ones count as spent.

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
        """The current status: "reserved", "read", "confirmed" or "cancelled"."""
        return self.ledger._status_of(self.identifier)

    def mark_read(self) -> None:
        """Record that the data are about to be read. Call this before the first read.

        Several workers of one release may call it. It raises LedgerError if the reservation was
        cancelled or confirmed; then nothing may be read.
        """
        self.ledger._move(self.identifier, "read", within=("read",))

    def confirm(self) -> None:
        """Record that the release was made."""
        self.ledger._move(self.identifier, "confirmed", within=("confirmed",))

    def cancel(self, reason: str) -> None:
        """Return the budget, for a release that has read nothing.

        Parameters
        ----------
        reason : str
            Why it is cancelled; the text must not contain anything from the data.
        """
        check_kind(reason, name="reason", kind=str, domain="a str")
        if not reason.strip():
            raise ValueError("reason must say why; got a text without visible characters.")
        self.ledger._move(self.identifier, "cancelled", within=("cancelled",), reason=reason)

    def __enter__(self) -> Reservation:
        """Mark it as read. This works only once: a second release needs another reservation."""
        self.ledger._move(self.identifier, "read")
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        """Confirm it; after an exception, the status stays "read", which counts as spent."""
        if kind is None:
            self.confirm()

    def __repr__(self) -> str:
        """Return a short description with its purpose and its data set."""
        return f"Reservation({self.name!r}, dataset={self.ledger.dataset!r}, {self.identifier!r})"


class PrivacyLedger(NamedArguments, LedgerReference):
    r"""The lifetime budget of a data set: releases reserve their cost before they read the data.

    Create a new ledger once by `create`; this constructor opens an existing one. A missing or
    damaged ledger is an error, and never treated as an empty one.

    Parameters
    ----------
    path_or_url : str or path-like
        File of the ledger, which may contain several data sets; or URL of a PostgreSQL database
        (extra ``postgresql``), such as ``postgresql://user@host/database``; or ":memory:" for a
        new ledger in the memory of this process.
    dataset : str
        Name under which the data set is registered. You choose it; it must never be computed from
        the data.
    epsilon, delta : float, optional
        The registered budget: another one is an error. Required for a ledger in memory.
    unit : str, optional
        How neighbouring data sets differ, as registered; in memory, "one record" by default.
    who : str, optional
        Name of the person or service that makes releases, stored with each entry. None means the
        user and the machine, such as "ana@server". It is only a statement and not a proof: anyone
        who can write to the ledger can give any name.
    note : str, optional
        Your own text, stored with each entry that is recorded through this object.
    parts : sequence of str, optional
        Names of disjoint parts of the data, for a new ledger in memory; see `create`.
    parts_by : str, optional
        The attribute whose values are the parts; see `create`.

    Attributes
    ----------
    path : str
        Absolute path of the file, URL without its password, or ":memory:".
    dataset, epsilon, delta, unit
        The registered values.
    who, note : str or None
        The given values.
    parts : tuple of str
        Parts of the data that releases through this object use; empty if none are registered.
    parts_by : str
        The registered attribute; empty if there are no parts.

    Raises
    ------
    LedgerError
        If the ledger is missing or damaged, was written by another version, cannot be reached, or
        was registered with other values.
    BudgetExceededError
        By `reserve`, if a release does not fit into the budget. Nothing is recorded.

    See Also
    --------
    skdptune.accounting.GaussianFilter : One of the ways in which costs are added up.

    Notes
    -----
    Theorem H2 and Theorem H3.

    *Guarantee.* All releases from the ledger together are (`epsilon`, `delta`)-differentially
    private. This holds whichever releases were made, whatever they cost, and whenever one stopped,
    even if all this was decided after seeing earlier results. The cost of one release must be
    fixed when it reserves. All reservations count unless they were cancelled, whether they were
    confirmed or not.

    *Method.* Exact curves of costs that were chosen adaptively cannot simply be added up (see
    `RenyiFilter`). A release is charged in two ways, and each way is a filter. The first charge is
    a share of the budget: the smallest x for which the release is (x `epsilon`, x
    `delta`/2)-private. The second is a squared shift of a `GaussianFilter` with the other half of
    delta. A release is admitted if at least one of the two stays within its budget. Shares suit a
    few large or pure releases, shifts suit many Gaussian ones. If shares with all of delta admit
    more releases like the first one, the ledger uses only these from then on. So a single release
    with all of (`epsilon`, `delta`) fits. If copies of the first release admit more of its kind
    than both, each way has a third of delta, and a release that costs no more than the first one
    counts as one copy.

    *Disjoint parts* (Theorem H5). See `part`.

    *What is recorded* (Theorem H4). Fits of private estimators and searches are recorded, by their
    parameter `ledger`, or within ``with ledger:`` or `skdptune.config_context`. This includes fits
    made by scikit-learn's own searches, in any worker. The scores that such a search computes from
    its fits are not recorded: they are exact, and not private. All other releases must be reserved
    explicitly.

    *What the ledger reveals.* The remaining budget depends on the chosen costs. If these depended
    on private information that was not released, so does everything that the ledger shows.

    Sums of shares may exceed 1 by a relative rounding error of 1e-12, so that ten times 0.1 is 1.

    Examples
    --------
    >>> import textwrap
    >>> from skdptune.accounting import PrivacyProfile
    >>> from skdptune.ledger import PrivacyLedger
    >>> ledger = PrivacyLedger(":memory:", "patients", epsilon=1.0, delta=1e-5)
    >>> with ledger.reserve(PrivacyProfile.pure(0.25), name="mean age"):
    ...     pass  # read the data and release
    >>> round(ledger.remaining(delta=0), 3)
    0.75
    >>> try:
    ...     ledger.reserve(PrivacyProfile.pure(0.9), name="histogram")
    ... except RuntimeError as error:
    ...     print(textwrap.fill(str(error), 80))
    profile must fit into what is left of 'patients' (ε = 1.000 at δ = 1e-05); got ε
    = 0.900 of 'histogram'. A Gaussian release of up to ε = 0.703 at δ = 1e-05 still
    fits, or a pure one of up to ε = 0.750. Nothing was recorded.
    """

    def __init__(
        self,
        path_or_url: str | os.PathLike[str],
        dataset: str,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        unit: str | None = None,
        who: str | None = None,
        note: str | None = None,
        parts: Sequence[str] | None = None,
        parts_by: str | None = None,
    ) -> None:
        storage, dataset = storage_at(path_or_url), check_words(dataset, name="dataset")
        who, note = (
            None if given is None else check_words(given, name=name)
            for name, given in (("who", who), ("note", note))
        )
        if storage.location == MEMORY:
            unit = "one record" if unit is None else unit
            terms = new_terms(dataset, epsilon, delta, unit, parts, parts_by)
            storage.create(lambda transaction: save_account(transaction, terms, State()))
            self._bind(storage, terms, who, note)
            return
        with storage.transaction(write=False) as transaction:
            books = Books(transaction, dataset, storage.location)
        terms = books.terms
        if unit == unit_of(terms.unit, [books.state.neighbouring]):
            unit = None
        asked = {"epsilon": epsilon, "delta": delta, "unit": unit, "parts_by": parts_by}
        check_agreement(terms, asked | {"parts": None if parts is None else tuple(parts)})
        self._bind(storage, terms, who, note)
        storage.verify()
        self.history()

    @classmethod
    def create(
        cls,
        path_or_url: str | os.PathLike[str],
        dataset: str,
        *,
        epsilon: float,
        delta: float,
        unit: str = "one record",
        parts: Sequence[str] | None = None,
        parts_by: str | None = None,
    ) -> PrivacyLedger:
        """Register a data set, in a new ledger or in an existing one, and open it.

        Parameters
        ----------
        path_or_url : str or path-like
            File, which is created if it does not exist; its folder must exist. Or URL of an
            existing PostgreSQL database; the tables are created if they do not exist, in a schema
            "skdptune". Only the owner of either may read it.
        dataset : str
            A name that is not in the ledger yet.
        epsilon : float
            Epsilon of the lifetime budget, in (0, 600].
        delta : float
            Delta of the lifetime budget, in [0, 1).
        unit : str, default="one record"
            How neighbouring data sets differ. With "one person with all of their rows", fits by
            rows are refused before anything is spent.
        parts : sequence of str, optional
            Names of disjoint parts of the data, such as sites or years; see `part`. Releases on
            different parts do not add up.
        parts_by : str, optional
            The attribute whose values are the parts, such as "the column 'site'"; required with
            `parts`. The value of a record must follow only from the record, and all records of a
            unit must have the same one. Records with other values belong to no part.
        """
        storage, dataset = storage_at(path_or_url), check_words(dataset, name="dataset")
        terms = new_terms(dataset, epsilon, delta, unit, parts, parts_by)
        if storage.location == MEMORY:
            raise ValueError(
                "path_or_url must be the place of a file or a server; "
                "PrivacyLedger(':memory:', ...) makes one in memory."
            )

        def register(transaction: Transaction) -> None:
            if transaction.account(dataset) is not None:
                raise LedgerError(
                    f"dataset must be one that is not registered in {storage.location!r}; "
                    f"{shown(dataset)} is. Open it with PrivacyLedger(path_or_url, dataset)."
                )
            save_account(transaction, terms, State())

        storage.create(register)
        return cls(path_or_url, dataset, epsilon=epsilon, delta=delta, unit=unit)

    # Spending ----------------------------------------------------------------------------

    def reserve(
        self,
        profile: PrivacyProfile,
        *,
        name: str,
        assumptions: Sequence[str] = (),
        neighbouring: str = ADD_OR_REMOVE,
        details: Mapping[str, Any] | None = None,
        note: str | None = None,
    ) -> Reservation:
        """Reserve the cost of a release, before it reads the data.

        Parameters
        ----------
        profile : PrivacyProfile
            Upper bound on the cost of the release, valid for any data.
        name : str
            What is released, such as the estimator's name.
        assumptions : sequence of str, default=()
            Assumptions of this cost, as plain sentences.
        neighbouring : str, default="add or remove one record"
            The neighbouring relation of the cost, as worded in `PrivacyReport`: "add or remove one
            record", "replace one of a public number of records", or "add or remove one record's
            contribution at its place, the public number of records unchanged". Costs of replacing
            and of adding records are not added up: the first reservation determines which of them
            the ledger accepts.
        details : mapping, optional
            Public facts worth storing, as valid strict JSON. Nothing may depend on the data.
        note : str, optional
            Your own text about this release, which must not contain anything from the data either.
            The default is the note of the ledger.

        Returns
        -------
        Reservation
            Use it as a context manager, or call its `mark_read`, before the first read.

        Raises
        ------
        BudgetExceededError
            If the release does not fit into the budget. Nothing is recorded.
        LedgerError
            If its neighbouring relation is incompatible with that of earlier reservations.
        """
        check_kind(profile, name="profile", kind=PrivacyProfile, domain="a PrivacyProfile")
        if self._terms.parts and check_relation(neighbouring) == REPLACE:
            raise LedgerError(
                "neighbouring must be about adding or removing records, since "
                f"{shown(self.dataset)} has disjoint parts: a record that is replaced may change "
                "its part. Nothing was recorded."
            )
        epsilon = profile.epsilon(self.delta)
        content = {
            "event": "reserved",
            "name": check_words(name, name="name"),
            "assumptions": check_sentences(assumptions),
            "neighbouring": check_relation(neighbouring),
            "details": check_details(details),
            "who": who_records(self.who),
            "note": self.note or "" if note is None else check_words(note, name="note"),
            "version": __version__,
            "parts": list(self._parts),
            "epsilon": "inf" if math.isinf(epsilon) else epsilon,
        }
        # Before taking the lock, since this takes longer than everything under it.
        stored = _stored(profile, self.delta)
        ways = self._ways or Ways.settled(self.epsilon, self.delta, profile, stored)
        charges = ways.charges_of(profile)
        identifier = uuid.uuid4().hex
        with self._books(write=True) as (transaction, books):
            if books.state.ways not in (None, ways):
                ways = books.state.ways
                charges = ways.charges_of(profile)
            if books.relation_with(content) is None:
                raise self._of_other_neighbours(content, books.state)
            inside = books.state.totals_in(self._parts)
            # Theorem H5: a record of any of these parts pays for this release.
            if not all(ways.admits(totals.changed(charges)) for totals in inside):
                raise BudgetExceededError(self._refusal(content, books.state))
            key = key_of(stored)
            transaction.keep_profile(key, stored)
            content |= {"profile": key, "charges": asdict(charges), "time": now()}
            books.add(identifier, content, charges=charges, parts=self._parts, ways=ways)
        self._ways = ways
        return Reservation(self, identifier, name)

    def reservation(self, identifier: str) -> Reservation:
        """Return a reservation from the history, for example one left by a killed process.

        It can be cancelled if its status is "reserved", because it was never marked as read.
        """
        for record in self.history():
            if record.reservation == identifier:
                return Reservation(self, identifier, record.name)
        raise ValueError(
            f"identifier must be that of a record of {shown(self.dataset)}; got "
            f"{shown(identifier)}."
        )

    def __enter__(self) -> Self:
        """Record all fits of private estimators in a block of code.

        Estimators take the ledger with them to workers; see `skdptune.config_context`.
        """
        # Theorem H4: fits inside the block record their cost here.
        enter_ledger(self)
        return self

    def __exit__(self, *exception: object) -> None:
        """End the block."""
        leave_ledger(self)

    def _of_other_neighbours(self, content: Mapping[str, Any], state: State) -> LedgerError:
        used = shown_percent(self._used(state))
        return LedgerError(
            f"neighbouring must suit the ledger of {shown(self.dataset)}, whose guarantees are "
            f"about neighbours that {state.neighbouring or PERSON}; got "
            f"{shown(content['neighbouring'])} of {shown(content['name'])}. Such costs must not "
            f"be added up. Nothing was recorded for this release; {used} of the "
            "budget was spent before it, including earlier steps. In a Pipeline, name persons "
            "for every step that has a cost (STEP__groups=ids), or for none. Keep releases of "
            "another kind in a separate ledger, and report both."
        )

    def _refusal(self, content: Mapping[str, Any], state: State) -> str:
        left = self._largest(state, self.delta), self._largest(state, 0.0)
        return refusal(self._terms, content["name"], float(content["epsilon"]), *left)

    # Reading -----------------------------------------------------------------------------

    def _move(
        self, identifier: str, event: str, *, within: Collection[str] = (), reason: str = ""
    ) -> None:
        """Append an event to a reservation, unless its status is already one of `within`."""
        with self._books(write=True) as (_, books):
            who = who_records(self.who)
            books.move(identifier, event, within, time=now(), who=who, reason=reason)

    def _status_of(self, identifier: str) -> str:
        with self._books(write=False) as (_, books):
            return books.status_of(identifier)[0]

    def remaining(self, delta: float | None = None) -> float:
        """Return the largest epsilon of one more release that fits into the budget.

        Parameters
        ----------
        delta : float, optional
            Delta of a Gaussian release that is (epsilon, delta)-private; 0 for a pure release. The
            default is the delta of the ledger. For other kinds of releases, the limit may be
            lower: `reserve` decides by their whole curve.
        """
        if delta is None:
            delta = self.delta
        delta = check_real(delta, name="delta", lower=0.0, upper=1.0, upper_open=True)
        return self._largest(self._state(), delta)

    def _largest(self, state: State, delta: float) -> float:
        options = (state.ways,) if state.ways else Ways.options(self.epsilon, self.delta)
        return min(
            max(ways.largest_epsilon(totals, delta) for ways in options)
            for totals in state.totals_in(self._parts)
        )

    def used(self) -> float:
        """Return the used part of the budget, from 0 to 1, in the way that has more left.

        Of several parts of the data, it is that of the part that has least left.
        """
        return self._used(self._state())

    def _used(self, state: State) -> float:
        inside = state.totals_in(self._parts)
        return max(state.ways.used(totals) for totals in inside) if state.ways else 0.0

    def plan(self, release: PrivacyReport | PrivacyProfile, count: int = 1) -> LedgerPlan:
        """Return how many more releases of one cost fit, without recording anything.

        Parameters
        ----------
        release : PrivacyReport or PrivacyProfile
            The cost of one release, such as the ``privacy_`` of a fitted search.
        count : int, default=1
            Number of releases that you intend to make.
        """
        profile: Any = release
        name = "release"
        if isinstance(release, PrivacyReport):
            profile, name = release.profile, release.name
        domain = "a PrivacyReport or a PrivacyProfile"
        check_kind(profile, name="release", kind=PrivacyProfile, domain=domain)
        count = check_integer(count, name="count", lower=1)
        state = self._state()
        stored = _stored(profile, self.delta)
        ways = state.ways or Ways.settled(self.epsilon, self.delta, profile, stored)
        charges = ways.charges_of(profile)
        more = min(ways.more(totals, charges) for totals in state.totals_in(self._parts))
        return LedgerPlan(name, profile.epsilon(self.delta), self.delta, count, more, self.dataset)

    def usage(self) -> dict[str, list[Any]]:
        """Return the used part of the budget after each event, in the order of events.

        Returns
        -------
        dict of lists
            A table with one item for each event: ``sequence``; ``time``; ``event`` ("reserved",
            "read", "confirmed" or "cancelled"); the ``name`` of the release; ``used``, the result
            of `used` after the event; ``confirmed``, the same if only confirmed reservations
            counted; ``who`` recorded the event; and the ``note`` of the release.
        """
        table: dict[str, list[Any]] = {name: [] for name in _OF_USAGE}
        with self._books(write=False) as (_, books):
            past, confirmed = Replay(), State(ways=books.state.ways)
            asked: dict[str, tuple[str, str]] = {}
            for sequence, reservation, content in books.replay(past):
                event = content["event"]
                if event == "reserved":
                    asked[reservation] = content["name"], content["note"]
                if event == "confirmed":
                    _, charges, parts = past.standing[reservation]
                    confirmed = confirmed.changed(charges, parts)
                name, note = asked[reservation]
                kept = replace(past.state, ways=confirmed.ways)
                used = self._used(kept), self._used(confirmed)
                row = sequence, content["time"], event, name, *used, content["who"], note
                for column, value in zip(_OF_USAGE, row, strict=True):
                    table[column].append(value)
        return table

    def spent(self, delta: float | None = None) -> float:
        """Return the epsilon of all spent releases together, as if their costs had been fixed.

        The ledger guarantees its budget. The returned epsilon is a guarantee only if neither the
        costs nor the number of releases were decided after seeing earlier results.

        Parameters
        ----------
        delta : float, optional
            The default is the delta of the ledger.
        """
        if delta is None:
            delta = self.delta
        delta = check_real(delta, name="delta", lower=0.0, upper=1.0)
        with self._books(write=False) as (transaction, books):
            state, records = books.state, self._records(books)
            records = [record for record in records if record.is_spent]
            if not records or state.ways is None:
                return 0.0
            keys = sorted({record.profile for record in records})
            few = len(keys) <= _FEW_PROFILES
            stored = {key: self._profile_content(transaction, key) for key in keys if few}
        # After the transaction: this takes long, and readers block a file for writers.
        largest = 0.0
        for part in self.parts or ("",):
            (totals,) = state.totals_in((part,))
            found = state.ways.composed_epsilon(totals, delta)
            counts = Counter(r.profile for r in records if not r.parts or part in r.parts)
            if few and counts:
                composed = self._composition(state.last_digest, part, stored, counts)
                found = min(found, composed.epsilon(delta))
            largest = max(largest, found)
        return largest

    def _composition(
        self, last: str, part: str, stored: Mapping[str, dict[str, Any]], counts: Mapping[str, int]
    ) -> PrivacyProfile:
        """Return the composition of a part's profiles, each repeated, up to an event."""
        if self._composed[0] != last:
            self._composed = last, {}
        known = self._composed[1]
        if part not in known:
            each = [
                count * PrivacyProfile.from_dict(stored[key])
                for key, count in sorted(counts.items())
            ]
            known[part] = sum(each[1:], start=each[0])
        return known[part]

    def _profile_content(self, transaction: Transaction, key: str) -> dict[str, Any]:
        content = transaction.profile(key)
        if content is None or key_of(content) != key:
            raise LedgerError(
                f"ledger {self.path!r} is damaged: a profile was changed or is lost."
            )
        read: dict[str, Any] = json.loads(content)
        return read

    @overload
    def history(self, *, as_frame: Literal[False] = False) -> list[LedgerRecord]: ...

    @overload
    def history(self, *, as_frame: Literal[True]) -> Any: ...

    def history(self, *, as_frame: bool = False) -> Any:
        """Return all reservations, in order.

        Parameters
        ----------
        as_frame : bool, default=False
            Whether to return a pandas DataFrame instead of a list of `LedgerRecord`.
        """
        with self._books(write=False) as (_, books):
            records = self._records(books)
        if not check_flag(as_frame, name="as_frame"):
            return records
        import pandas as pd

        columns = list(LedgerRecord.__dataclass_fields__)
        return pd.DataFrame([record.to_dict() for record in records], columns=columns)

    def _records(self, books: Books) -> list[LedgerRecord]:
        """Return all records; only events that are new since the last call are read."""
        # Remove it from the cache, so that other threads cannot use it, and drop it if it is
        # damaged.
        replay, records = self._replayed.pop() if self._replayed else (Replay(), {})
        if not books.follows(replay):
            replay, records = Replay(), {}
        add_records(records, books.replay(replay), self.delta)
        self._replayed = [(replay, records)]
        return list(records.values())

    def report(self, n_records: int = 20) -> LedgerReport:
        """Return what was spent and what is left, as a tree that prints as text or HTML.

        Parameters
        ----------
        n_records : int, default=20
            Number of the latest records that are listed.
        """
        with self._books(write=False) as (_, books):
            records, state = self._records(books), books.state
            standing = self._replayed[0][0].standing
        own = set(self._parts)
        records = [r for r in records if not own or not r.parts or own & {*r.parts}]
        used: dict[str, float] = {}
        more: float | None = None
        if state.ways is not None:
            ways = state.ways
            worst = max(state.totals_in(self._parts), key=ways.used)
            for record in records:
                charges = standing[record.reservation][1]
                used[record.reservation] = ways.used(worst, Totals().changed(charges))
                more = ways.more(worst, charges)
        figures = self.spent(), self.remaining(), self._used(state), n_records
        return LedgerReport(self._terms, records, *figures, used, more, self._parts)

    def statement(self, **about: Any) -> PrivacyStatement:
        """Return a page about all releases for an auditor, and for OpenDP's registry.

        The guarantee is the registered budget, which releases never exceed.

        Parameters
        ----------
        **about
            Facts that only the curator knows; see `PrivacyReport.statement`.
        """
        records = self.history()
        return PrivacyStatement(facts_of(self._terms, records, self.report(len(records))), about)

    def to_registry_yaml(self, **about: Any) -> str:
        """Return ``statement(**about).to_registry_yaml()``."""
        return self.statement(**about).to_registry_yaml()

    def to_dict(self) -> dict[str, Any]:
        """Return everything in the ledger about the data set, as valid strict JSON."""
        with self._books(write=False) as (transaction, books):
            records, state = self._records(books), books.state
            keys = sorted({record.profile for record in records})
            profiles = {key: self._profile_content(transaction, key) for key in keys}
        return {
            **asdict(self._terms),
            "format": 3,
            "totals": asdict(state.totals.as_floats()),
            "totals_of": {p: asdict(t.as_floats()) for p, t in state.totals_of.items()},
            "ways": asdict(state.ways) if state.ways else None,
            "last_digest": state.last_digest,
            "records": [record.to_dict() for record in records],
            "profiles": profiles,
        }

    def to_json(self, indent: int | None = None) -> str:
        """Return `to_dict` as strict JSON."""
        return json.dumps(self.to_dict(), allow_nan=False, indent=indent)

    def _state(self) -> State:
        with self._books(write=False) as (_, books):
            return books.state

    def _repr_html_(self) -> str:
        """Return the report as HTML for notebooks."""
        return self.report()._repr_html_()


@functools.lru_cache(maxsize=16)
def _stored(profile: PrivacyProfile, delta: float) -> str:
    """Return a profile as it is stored; cached, since a search requests it for every fit."""
    return json.dumps(profile.to_dict([delta]), allow_nan=False, sort_keys=True)
