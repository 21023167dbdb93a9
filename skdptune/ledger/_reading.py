"""What a ledger tells of a budget: what is spent, what is left, and how it came to that."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import asdict
from typing import Any, Literal, overload

from skdptune._validation import check_flag, check_real
from skdptune.accounting import PrivacyProfile, PrivacyStatement
from skdptune.ledger._books import Books, Charges, Replay, State, Totals, Ways, key_of
from skdptune.ledger._reference import LedgerReference, now, who_records
from skdptune.ledger._report import LedgerRecord, LedgerReport, add_records, facts_of, who_of
from skdptune.ledger._storage import LedgerError, Transaction

# Up to as many different profiles are composed one by one; more, by their totals.
_FEW_PROFILES = 6
_OF_USAGE = ("sequence", "time", "event", "name", "used", "confirmed", "who", "note")


class ReadableLedger(LedgerReference):
    """A ledger from which everything can be read, and whose reservations go from step to step."""

    def _move(
        self, identifier: str, event: str, *, within: Collection[str] = (), reason: str = ""
    ) -> None:
        """Add an event to a reservation, unless it is already at one of some statuses."""
        with self._books(write=True) as (_, books):
            who = who_records(self.who)
            books.move(identifier, event, within, time=now(), who=who, reason=reason)

    def _status_of(self, identifier: str) -> str:
        with self._books(write=False) as (_, books):
            return books.status_of(identifier)[0]

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

    def usage(self) -> dict[str, list[Any]]:
        """Return the used part of the budget after each event, in the order of events.

        Returns
        -------
        dict of lists
            One item for each event, as for a table: ``sequence``, ``time``, ``event``
            ("reserved", "read", "confirmed" or "cancelled"), the ``name`` of the release,
            ``used``, what `used` returned from then on, ``confirmed``, what it would return if
            nothing were reserved but what was confirmed by then, ``who`` recorded the event, and
            the ``note`` of the release.
        """
        table: dict[str, list[Any]] = {name: [] for name in _OF_USAGE}
        with self._books(write=False) as (_, books):
            ways = books.state.ways
            kept, confirmed = Totals(), Totals()
            asked: dict[str, tuple[str, Charges, str]] = {}
            for sequence, reservation, content in books.replay(Replay()):
                event = content["event"]
                if event == "reserved":
                    charges = Charges(**content["charges"])
                    asked[reservation] = content["name"], charges, content.get("note", "")
                name, charges, note = asked[reservation]
                if sign := {"reserved": 1, "cancelled": -1}.get(event, 0):
                    kept = kept.changed(charges, sign)
                if event == "confirmed":
                    confirmed = confirmed.changed(charges)
                parts = (0.0, 0.0) if ways is None else (ways.used(kept), ways.used(confirmed))
                row = sequence, content["time"], event, name, *parts, who_of(content), note
                for column, value in zip(_OF_USAGE, row, strict=True):
                    table[column].append(value)
        return table

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
            stored = {key: self._profile_content(transaction, key) for key in sorted(counts)}
        # After the transaction: it takes long, and a file waits for those who read it.
        return min(found, self._composition(state.last_digest, stored, counts).epsilon(delta))

    def _composition(
        self, last: str, stored: Mapping[str, dict[str, Any]], counts: Mapping[str, int]
    ) -> PrivacyProfile:
        """Return the composition of stored profiles, each a number of times, up to an event."""
        composed = self._composed
        if composed is None or composed[0] != last:
            parts = [
                counts[key] * PrivacyProfile.from_dict(content) for key, content in stored.items()
            ]
            composed = self._composed = last, sum(parts[1:], start=parts[0])
        return composed[1]

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
        """Return all records; only events that are new since the last time are read."""
        # Taken out, so that no other thread has it, and none what was found to be damaged.
        replay, records = self._replayed.pop() if self._replayed else (Replay(), {})
        if not books.follows(replay):
            replay, records = Replay(), {}
        add_records(records, books.replay(replay), self.delta)
        self._replayed = [(replay, records)]
        return list(records.values())

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

    def statement(self, **about: Any) -> PrivacyStatement:
        """Return a page for an auditor about all releases, and for OpenDP's registry.

        The guarantee is the registered budget, within which releases stay for ever.

        Parameters
        ----------
        **about
            What only the curator knows, as in `PrivacyReport.statement`.
        """
        records = self.history()
        return PrivacyStatement(facts_of(self._terms, records, self.report(len(records))), about)

    def to_registry_yaml(self, **about: Any) -> str:
        """Return ``statement(**about).to_registry_yaml()``."""
        return self.statement(**about).to_registry_yaml()

    def to_dict(self) -> dict[str, Any]:
        """Return everything that the ledger has of the data set, fit for strict JSON."""
        with self._books(write=False) as (transaction, books):
            records, state = self._records(books), books.state
            keys = sorted({record.profile for record in records})
            profiles = {key: self._profile_content(transaction, key) for key in keys}
        return {
            **asdict(self._terms),
            "format": 2,
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
