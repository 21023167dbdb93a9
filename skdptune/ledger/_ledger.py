"""The lifetime budget of a data set, which every release draws from."""

from __future__ import annotations

import functools
import json
import math
import os
import platform
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

from skdptune._validation import check_flag, check_kind, check_real
from skdptune.accounting import BudgetExceededError, PrivacyProfile
from skdptune.ledger._books import Books, State, key_of, save_account
from skdptune.ledger._checks import (
    MEMORY,
    check_agreement,
    check_details,
    check_path,
    check_sentences,
    check_words,
    new_terms,
    now,
)
from skdptune.ledger._record import LedgerRecord, records_of
from skdptune.ledger._reference import LedgerReference
from skdptune.ledger._report import LedgerReport, refusal
from skdptune.ledger._reservation import Reservation
from skdptune.ledger._sqlite import SqliteFile, SqliteMemory, create_file
from skdptune.ledger._storage import LedgerError, Transaction
from skdptune.ledger._ways import Ways

# Up to as many different profiles are composed one by one; more, by their totals.
_FEW_PROFILES = 6


class PrivacyLedger(LedgerReference):
    r"""The lifetime budget of a data set: releases reserve their cost before they read the data.

    A new ledger is made by `create`, once; this opens it again. A missing or damaged ledger is an
    error and never an empty one.

    Parameters
    ----------
    path_or_url : str or path-like
        File of the ledger, which may hold several data sets; or ":memory:" for a new ledger in
        the memory of this process.
    dataset : str
        Name under which the data set is registered. It is a name that you choose, never anything
        computed from the data.
    epsilon, delta : float, optional
        The budget that was registered: an error if it is another. Needed in memory.
    unit : str, optional
        What neighbouring data sets differ by, as registered; in memory "one record" by default.

    Attributes
    ----------
    path : str
        Absolute path of the file, or ":memory:".
    dataset, epsilon, delta, unit
        As registered.

    Raises
    ------
    LedgerError
        If the file is missing or damaged, was written by a newer version, or says something else.
    BudgetExceededError
        By `reserve`, for a release that does not fit. Nothing is recorded.

    See Also
    --------
    skdptune.accounting.GaussianFilter : One of the two ways by which costs are added up.

    Notes
    -----
    Theorem H2 and Theorem H3.

    *What is promised.* All releases that draw from the ledger, together, are
    (`epsilon`, `delta`)-differentially private: whichever were made, whatever they cost, and
    whenever one stopped, also if all that was decided in view of earlier results. The numbers of
    one release must be fixed when it reserves; all that was reserved and not cancelled counts,
    whether it was confirmed or not.

    *How.* Adding up exact curves of costs that were chosen on the way proves nothing (see
    `RenyiFilter`). A release is charged in two ways, each of which is a filter: a share of the
    budget, the least x for which it is (x `epsilon`, x `delta`/2)-private, and a squared shift of
    a `GaussianFilter` with the other half of delta. The next is admitted while one of the two is
    within its budget. Shares suit few large and pure releases, shifts many Gaussian ones. If
    shares with all of delta admit more releases like the first one, the ledger keeps to these from
    then on: so one release of all of (`epsilon`, `delta`) fits.

    *What it costs to know.* What is left follows from which costs were chosen. If choices followed
    private information that was not released, so does what the ledger shows.

    Sums of shares may exceed 1 by a relative rounding of 1e-12, so that ten times 0.1 is 1.

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
    ) -> None:
        path, dataset = check_path(path_or_url), check_words(dataset, name="dataset")
        if path == MEMORY:
            terms = new_terms(dataset, epsilon, delta, "one record" if unit is None else unit)
            memory = SqliteMemory()
            with memory.transaction(write=True) as transaction:
                save_account(transaction, terms, State())
            self._bind(memory, terms)
            return
        file = SqliteFile(path)
        with file.transaction(write=False) as transaction:
            terms = Books(transaction, dataset, path).terms
        check_agreement(terms, {"epsilon": epsilon, "delta": delta, "unit": unit})
        self._bind(file, terms)
        file.verify()
        self.history()

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        dataset: str,
        *,
        epsilon: float,
        delta: float,
        unit: str = "one record",
    ) -> PrivacyLedger:
        """Register a data set, in a new file or in a ledger of other data sets, and open it.

        Parameters
        ----------
        path : str or path-like
            File that is made if there is none; its folder must exist. Only its owner may read it.
        dataset : str
            A name that the ledger does not have yet.
        epsilon : float
            Lifetime budget, in (0, 600].
        delta : float
            In [0, 1).
        unit : str, default="one record"
            What neighbouring data sets differ by.
        """
        place, dataset = check_path(path), check_words(dataset, name="dataset")
        terms = new_terms(dataset, epsilon, delta, unit)
        if place == MEMORY:
            raise ValueError(
                "path must be that of a file; PrivacyLedger(':memory:', ...) makes one."
            )

        def register(transaction: Transaction) -> None:
            if transaction.account(dataset) is not None:
                raise LedgerError(
                    f"dataset must be one that is not registered in {place!r}; {dataset!r} is. "
                    "Open it with PrivacyLedger(path, dataset)."
                )
            save_account(transaction, terms, State())

        if os.path.lexists(place):
            file = SqliteFile(place)
            file.verify()
            with file.transaction(write=True) as transaction:
                register(transaction)
        else:
            create_file(place, register)
        return cls(place, dataset, epsilon=epsilon, delta=delta, unit=unit)

    # Spending ----------------------------------------------------------------------------

    def reserve(
        self,
        profile: PrivacyProfile,
        *,
        name: str,
        assumptions: Sequence[str] = (),
        details: Mapping[str, Any] | None = None,
        host: bool = False,
    ) -> Reservation:
        """Set the cost of a release aside, before it reads the data.

        Parameters
        ----------
        profile : PrivacyProfile
            What the release costs at most, whatever the data are.
        name : str
            What is released, such as the estimator's name.
        assumptions : sequence of str, default=()
            What must hold for the cost, in plain sentences.
        details : mapping, optional
            Public facts worth keeping, fit for strict JSON. Nothing that the data decide.
        host : bool, default=False
            Whether to keep the name of this machine.

        Returns
        -------
        Reservation
            Enter it, or call its `mark_read`, before the first read.

        Raises
        ------
        BudgetExceededError
            If it does not fit. Nothing is recorded.
        """
        check_kind(profile, name="profile", kind=PrivacyProfile, domain="a PrivacyProfile")
        epsilon = profile.epsilon(self.delta)
        content = {
            "event": "reserved",
            "name": check_words(name, name="name"),
            "assumptions": check_sentences(assumptions),
            "details": check_details(details),
            "host": platform.node() if check_flag(host, name="host") else None,
            "version": version("skdptune"),
            "epsilon": "inf" if math.isinf(epsilon) else epsilon,
        }
        # Before the lock: this takes longer than all that happens under it.
        stored = _stored(profile, self.delta)
        ways = self._ways or Ways.settled(self.epsilon, self.delta, profile)
        charges = ways.charges_of(profile)
        identifier = uuid.uuid4().hex
        with self._books(write=True) as (transaction, books):
            if books.state.ways not in (None, ways):
                ways = books.state.ways
                charges = ways.charges_of(profile)
            if not ways.admits(books.state.totals.changed(charges)):
                raise BudgetExceededError(self._refusal(content, books.state))
            key = key_of(stored)
            transaction.keep_profile(key, stored)
            content |= {"profile": key, "charges": asdict(charges), "time": now()}
            books.add(identifier, content, charges=charges, ways=ways)
        self._ways = ways
        return Reservation(self, identifier, name)

    def reservation(self, identifier: str) -> Reservation:
        """Return a reservation of the history, such as one that a killed process has left.

        It can be cancelled if its status is "reserved": then it was never marked as read.
        """
        for record in self.history():
            if record.reservation == identifier:
                return Reservation(self, identifier, record.name)
        raise ValueError(
            f"identifier must be that of a record of {self.dataset!r}; got {identifier!r:.80}."
        )

    def _refusal(self, content: Mapping[str, Any], state: State) -> str:
        left = self._largest(state, self.delta), self._largest(state, 0.0)
        return refusal(self._terms, content["name"], float(content["epsilon"]), *left)

    def _move(
        self, identifier: str, event: str, *, within: tuple[str, ...], reason: str = ""
    ) -> None:
        """Add an event to a reservation, unless it is already at one of some statuses."""
        with self._books(write=True) as (_, books):
            status, charges = books.status_of(identifier)
            if status in within:
                return
            if status == "cancelled":
                raise LedgerError(
                    "reservation must not be cancelled; got one that is: what it had set aside "
                    "was given back. Reserve again before anything is read."
                )
            if event == "cancelled" and status != "reserved":
                raise LedgerError(
                    f"reservation must not be {status} to be cancelled: data may have been read, "
                    "so that its cost stays spent."
                )
            content = {"event": event, "time": now(), "reason": reason}
            is_cancelled = event == "cancelled"
            books.add(identifier, content, charges=charges if is_cancelled else None, sign=-1)

    def _status_of(self, identifier: str) -> str:
        with self._books(write=False) as (_, books):
            return books.status_of(identifier)[0]

    # Reading -----------------------------------------------------------------------------

    def remaining(self, delta: float | None = None) -> float:
        """Return the largest epsilon of one more release that fits.

        Parameters
        ----------
        delta : float, optional
            Of a Gaussian release that is (epsilon, delta)-private; 0 of a pure one. The default
            is the delta of the ledger. Releases of other kinds may fit up to less: `reserve`
            decides by their whole curve.
        """
        if delta is None:
            delta = self.delta
        delta = check_real(delta, name="delta", lower=0.0, upper=1.0, upper_open=True)
        return self._largest(self._state(), delta)

    def _largest(self, state: State, delta: float) -> float:
        options = (state.ways,) if state.ways else Ways.options(self.epsilon, self.delta)
        return max(ways.largest_epsilon(state.totals, delta) for ways in options)

    def used(self) -> float:
        """Return the used part of the budget, from 0 to 1, in the way that has more left."""
        state = self._state()
        return state.ways.used(state.totals) if state.ways else 0.0

    def spent(self, delta: float | None = None) -> float:
        """Return the epsilon of all that is spent together, as if its costs had been fixed.

        What the ledger guarantees is its budget. This is a guarantee as well only if neither the
        costs, nor how many there are, were decided in view of earlier results.

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
            counts = Counter(record.profile for record in records if record.is_spent)
            if not counts or state.ways is None:
                return 0.0
            found = state.ways.composed_epsilon(state.totals, delta)
            if len(counts) > _FEW_PROFILES:
                return found
            return min(found, self._composition(transaction, state, counts).epsilon(delta))

    def _composition(
        self, transaction: Transaction, state: State, counts: Mapping[str, int]
    ) -> PrivacyProfile:
        """Return the composition of some stored profiles, each a number of times."""
        if self._composed is None or self._composed[0] != state.last_digest:
            parts = [
                count * self._profile(transaction, key) for key, count in sorted(counts.items())
            ]
            self._composed = state.last_digest, sum(parts[1:], start=parts[0])
        return self._composed[1]

    def _profile(self, transaction: Transaction, key: str) -> PrivacyProfile:
        return PrivacyProfile.from_dict(self._profile_content(transaction, key))

    def _profile_content(self, transaction: Transaction, key: str) -> dict[str, Any]:
        content = transaction.profile(key)
        if content is None or key_of(content) != key:
            raise LedgerError(
                f"ledger {self.path!r} is damaged: a profile was changed or is lost."
            )
        read: dict[str, Any] = json.loads(content)
        return read

    def history(self, *, as_frame: bool = False) -> Any:
        """Return what was reserved, in order.

        Parameters
        ----------
        as_frame : bool, default=False
            Whether to return a pandas DataFrame, instead of a list of `LedgerRecord`.
        """
        with self._books(write=False) as (_, books):
            records = self._records(books)
        if not check_flag(as_frame, name="as_frame"):
            return records
        import pandas as pd

        columns = list(LedgerRecord.__dataclass_fields__)
        return pd.DataFrame([record.to_dict() for record in records], columns=columns)

    def _records(self, books: Books) -> list[LedgerRecord]:
        digest = books.state.last_digest
        if self._replayed is None or self._replayed[0] != digest:
            self._replayed = digest, tuple(records_of(books.replay(), self.delta))
        return list(self._replayed[1])

    def report(self, n_records: int = 20) -> LedgerReport:
        """Return what was spent and what is left, as a tree to be printed or shown as HTML.

        Parameters
        ----------
        n_records : int, default=20
            How many of the latest records it lists.
        """
        return LedgerReport(
            self._terms, self.history(), self.spent(), self.remaining(), self.used(), n_records
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything that the ledger has of the data set, fit for strict JSON."""
        with self._books(write=False) as (transaction, books):
            records, state = self._records(books), books.state
            keys = sorted({record.profile for record in records})
            profiles = {key: self._profile_content(transaction, key) for key in keys}
        return {
            **asdict(self._terms),
            "format": 1,
            "totals": asdict(state.totals.as_floats()),
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
        """Draw the report for a notebook."""
        return self.report()._repr_html_()


@functools.lru_cache(maxsize=16)
def _stored(profile: PrivacyProfile, delta: float) -> str:
    """Return a profile as it is kept, which a search asks for again with every fit."""
    return json.dumps(profile.to_dict([delta]), allow_nan=False, sort_keys=True)
