"""The books of one data set: its terms, its events one after another, and what they come to.

Events are only ever added. The digest of each continues that of the one before, and that of the
account is over its terms and its state, so that a change from outside is seen.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from skdptune._formatting import shown, shown_names
from skdptune.ledger._neighbours import common_relation
from skdptune.ledger._storage import (
    Account,
    LedgerError,
    StoredEvent,
    Transaction,
    damaged,
)
from skdptune.ledger._ways import Charges, Totals, Ways

# What may follow what: an event of a reservation, by the status that it had before.
STATUS_AFTER = {
    ("", "reserved"): "reserved",
    ("reserved", "read"): "read",
    ("reserved", "confirmed"): "confirmed",
    ("read", "confirmed"): "confirmed",
    ("reserved", "cancelled"): "cancelled",
}
_USED = (
    "reservation must be of one release; got one whose data were read already. Reserve again: a "
    "second release costs as much as the first."
)
_SPENT = (
    "reservation must not be read to be cancelled: data may have been read, so that its cost "
    "stays spent."
)
_GIVEN_BACK = (
    "reservation must not be cancelled; got one that is: what it had set aside was given back. "
    "Reserve again before anything is read."
)
# What is said of a step that may not follow a status, by whether it is a cancellation.
_OUT_OF_TURN = {
    ("read", False): _USED,
    ("read", True): _SPENT,
    ("confirmed", False): _USED,
    ("confirmed", True): _SPENT,
    ("cancelled", False): _GIVEN_BACK,
}


@dataclass(frozen=True)
class Terms:
    """What was registered for a data set, and never changes."""

    dataset: str
    epsilon: float
    delta: float
    unit: str
    created: str
    identity: str


@dataclass(frozen=True)
class State:
    """What all events of a data set come to."""

    n_events: int = 0
    last_digest: str = ""
    totals: Totals = field(default_factory=Totals)
    # None before the first reservation.
    ways: Ways | None = None
    # Of all reservations, cancelled ones included; empty before the first.
    neighbouring: str = ""


class Replay:
    """What the first events of a data set come to, each of which was checked."""

    def __init__(self) -> None:
        self.n_events, self.last_digest, self.neighbouring = 0, "", ""
        self._totals = Totals()
        # Of each reservation, where it stands and what it was charged.
        self._standing: dict[str, tuple[str, Charges]] = {}

    def add(self, event: StoredEvent, content: dict[str, Any]) -> bool:
        """Add the next event; return whether it may follow those before."""
        status, charges = self._standing.get(event.reservation, ("", None))
        name = content["event"]
        if (status, name) not in STATUS_AFTER:
            return False
        charges = charges or Charges(**content["charges"])
        self._standing[event.reservation] = (STATUS_AFTER[status, name], charges)
        if sign := {"reserved": 1, "cancelled": -1}.get(name, 0):
            self._totals = self._totals.changed(charges, sign)
        self.neighbouring = _relation(self, content) or ""
        self.n_events, self.last_digest = event.sequence, event.digest
        return True

    def state(self, ways: Ways | None) -> State:
        """Return what they come to, if costs are added up in these ways."""
        return State(self.n_events, self.last_digest, self._totals, ways, self.neighbouring)


class Books:
    """The account of a data set within a transaction, checked when it is opened.

    Parameters
    ----------
    transaction : Transaction
    dataset : str
    location : str
        Where the ledger is kept, for messages.
    """

    def __init__(self, transaction: Transaction, dataset: str, location: str) -> None:
        self._transaction, self._dataset, self._location = transaction, dataset, location
        account = transaction.account(dataset)
        if account is None:
            raise LedgerError(
                f"dataset must be one that is registered in {location!r}: "
                f"{shown_names(transaction.data_sets()) or 'none yet'}; got "
                f"{shown(dataset)}. PrivacyLedger.create registers another."
            )
        if account.digest != _digest(account.terms, account.state):
            raise self._damaged("its account was changed")
        try:
            self.terms = Terms(**json.loads(account.terms))
            self.state = _state_of(json.loads(account.state))
        except (ValueError, TypeError, KeyError) as error:
            raise self._damaged(f"its account cannot be read ({shown(error)})") from error
        last = transaction.last_event(dataset)
        found = (last.sequence, last.digest) if last else (0, "")
        if found != (self.state.n_events, self.state.last_digest):
            raise self._damaged("its last event is not the one that it counts")

    def _damaged(self, words: str) -> LedgerError:
        return damaged(self._location, words)

    def add(
        self,
        reservation: str,
        content: dict[str, Any],
        *,
        charges: Charges | None = None,
        sign: int = 1,
        ways: Ways | None = None,
    ) -> int:
        """Add an event, with what it changes of the totals, and return its number."""
        state = self.state
        sequence, text = state.n_events + 1, _text(content)
        digest = _digest(state.last_digest, str(sequence), reservation, text)
        self._transaction.append(self._dataset, StoredEvent(sequence, reservation, text, digest))
        totals = state.totals.changed(charges, sign) if charges else state.totals
        relation = self.relation_with(content) or state.neighbouring
        self.state = State(sequence, digest, totals, ways or state.ways, relation)
        save_account(self._transaction, self.terms, self.state)
        return sequence

    def relation_with(self, content: dict[str, Any]) -> str | None:
        """Return the neighbours that all guarantees are about, one more event included.

        None if there are no such neighbours.
        """
        return _relation(self.state, content)

    def status_of(self, reservation: str) -> tuple[str, Charges]:
        """Return where a reservation stands, and its charges; it must be one of this ledger."""
        events = list(self._transaction.events(self._dataset, reservation))
        if not events:
            raise LedgerError(
                f"reservation must be one of {shown(self._dataset)} in {self._location!r}; "
                "this one is not there. The file may have been put back to an older copy."
            )
        contents = [json.loads(event.content) for event in events]
        return str(contents[-1]["event"]), Charges(**contents[0]["charges"])

    def move(self, reservation: str, event: str, within: Collection[str], **more: str) -> None:
        """Add an event to a reservation, unless it is already at one of some statuses."""
        status, charges = self.status_of(reservation)
        if status in within:
            return
        is_cancelled = event == "cancelled"
        if (status, event) not in STATUS_AFTER:
            raise LedgerError(_OUT_OF_TURN[status, is_cancelled])
        content = {"event": event, **more}
        self.add(reservation, content, charges=charges if is_cancelled else None, sign=-1)

    def replay(self, past: Replay) -> Iterator[tuple[int, str, dict[str, Any]]]:
        """Yield the number, the reservation and the content of each later event, after all checks.

        What all events come to must be what the account says.
        """
        for event in self._transaction.events(self._dataset, after=past.n_events):
            texts = past.last_digest, str(event.sequence), event.reservation, event.content
            if event.sequence != past.n_events + 1 or event.digest != _digest(*texts):
                raise self._damaged(f"event {past.n_events + 1} was changed or is lost")
            content: dict[str, Any] = json.loads(event.content)
            if not past.add(event, content):
                raise self._damaged(f"event {event.sequence} cannot be where it is")
            yield event.sequence, event.reservation, content
        if past.state(self.state.ways) != self.state:
            raise self._damaged("its events do not come to what its account says")

    def go_on_from(self, number: int, digest: str) -> bool:
        """Return whether an event that was seen is still there, and with it all before it.

        An older copy may have more events by now, but other ones.
        """
        if number >= self.state.n_events:
            return (number, digest) == (self.state.n_events, self.state.last_digest)
        if number == 0:
            return True
        event = next(self._transaction.events(self._dataset, after=number - 1), None)
        return event is not None and (event.sequence, event.digest) == (number, digest)

    def follows(self, past: Replay) -> bool:
        """Return whether no events are known beyond those of the account."""
        known, count = past.last_digest, past.n_events
        return count < self.state.n_events or known == self.state.last_digest


def save_account(transaction: Transaction, terms: Terms, state: State) -> None:
    """Keep what was registered and what all events come to."""
    totals = [hex(total) for total in asdict(state.totals).values()]
    content = asdict(state) | {"totals": totals}
    texts = _text(asdict(terms)), _text(content)
    transaction.save(terms.dataset, Account(*texts, _digest(*texts)))


def _state_of(content: dict[str, Any]) -> State:
    ways = content["ways"]
    totals = Totals(*(int(total, 16) for total in content["totals"]))
    return State(
        content["n_events"],
        content["last_digest"],
        totals,
        None if ways is None else Ways(**ways),
        content["neighbouring"],
    )


def _relation(state: State | Replay, content: dict[str, Any]) -> str | None:
    found = {state.neighbouring, content.get("neighbouring", "")} - {""}
    return common_relation(found) if found else ""


def key_of(content: str) -> str:
    """Return the name by which equal profiles are one."""
    return _digest(content)


def _text(content: dict[str, Any]) -> str:
    return json.dumps(content, allow_nan=False, sort_keys=True, separators=(",", ":"))


def _digest(*texts: str) -> str:
    """Return a digest of texts, each with its length so that none can run into the next."""
    framed = [f"{len(text)}:{text}" for text in texts]
    return hashlib.sha256("".join(framed).encode()).hexdigest()
