"""The books of one data set: its terms, its sequence of events, and the resulting totals.

Events are only ever appended. The digest of each event includes that of the previous one. The
account has a digest of its terms and its state. So changes from outside are detected.

Costs are added up in three ways: as shares of the budget, as Gaussian shifts, and as copies of the
first release.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from skdptune._formatting import shown, shown_names
from skdptune.accounting import (
    GaussianFilter,
    PrivacyProfile,
    SharedCurve,
    UnreachableBudgetError,
)
from skdptune.accounting._shared import charge_of, gaussian_delta
from skdptune.ledger._storage import Account, LedgerError, StoredEvent, Transaction, damaged

# Neighbours ----------------------------------------------------------------------------------

ADD_OR_REMOVE = "add or remove one record"
# A null record takes the place of a missing one.
ZERO_OUT = (
    "add or remove one record's contribution at its place, the public number of records unchanged"
)
REPLACE = "replace one of a public number of records"
PERSON = "add or remove one person with all of their rows"
PERSON_ZEROED = (
    "add or remove one person's contribution at its place, the public number of persons unchanged"
)
# The relation about persons that takes the place of one about records, where persons are given.
BY_PERSON = {ADD_OR_REMOVE: PERSON, ZERO_OUT: PERSON_ZEROED}
# The unit of a ledger that admits releases about persons only, and of one that holds them.
PERSON_UNIT = "one person with all of their rows"
RELATIONS = (ADD_OR_REMOVE, ZERO_OUT, REPLACE, PERSON, PERSON_ZEROED)


def check_relation(value: Any) -> str:
    """Return a neighbouring relation, or raise if it is unknown."""
    if not isinstance(value, str) or value not in RELATIONS:
        raise ValueError(f"neighbouring must be one of {list(RELATIONS)}; got {shown(value)}.")
    return value


def common_relation(relations: Iterable[str]) -> str | None:
    """Return the relation for which guarantees about all given ones hold, or None.

    Notes
    -----
    Theorem F11. By Theorem P14, a guarantee about records says nothing about persons.
    """
    found = set(relations)
    if len(found) <= 1:
        return next(iter(found), ADD_OR_REMOVE)
    pairs = ({ADD_OR_REMOVE, ZERO_OUT}, ZERO_OUT), ({PERSON, PERSON_ZEROED}, PERSON_ZEROED)
    return next((weaker for pair, weaker in pairs if found == pair), None)


def unit_of(registered: str, relations: Iterable[str | None]) -> str:
    """Return what releases protect: the registered unit, unless they say it more exactly."""
    by_persons = any(relation in (PERSON, PERSON_ZEROED) for relation in relations)
    return PERSON_UNIT if by_persons and registered == "one record" else registered


# Three ways of adding up costs -----------------------------------------------------------------

# Rounding may make sums exceed their limits: ten times 0.1 counts as 1.
SLACK = 1e-12
# Charged if no finite charge is large enough. It exceeds any budget, and unlike infinity can be
# added.
BEYOND = 2.0**60
# Every double is a multiple of the inverse of this, so that sums of doubles are exact.
_UNITS_PER_ONE = 1 << 1074
_LEAST_SHARE, _LARGEST_SHARE = 1e-18, 1e6
_LARGEST_SHIFT = 30.0
# More copies of one release are not looked for.
_MOST_COPIES = 4096
# Share of the delta of copies that rounding and slightly heavier tails may use up.
_TAILS = 0.01


@dataclass(frozen=True)
class Charges:
    """The charges of one release: a share, a squared shift with its failure, and copies."""

    share: float
    squared_shift: float
    failure: float
    copies: float = 0.0


@dataclass(frozen=True)
class Totals:
    """Exact sums of charges, in units of the smallest double, so that no charge is lost."""

    share: int = 0
    squared_shift: int = 0
    failure: int = 0
    copies: int = 0

    def changed(self, charges: Charges, sign: int = 1) -> Totals:
        """Return the totals with charges added, or subtracted if the sign is -1."""
        return self.plus(_in_units(charges), sign)

    def plus(self, other: Totals, sign: int = 1) -> Totals:
        """Return the sum of both totals, or the difference if the sign is -1."""
        both = zip(vars(self).values(), vars(other).values(), strict=True)
        return Totals(*(mine + sign * theirs for mine, theirs in both))

    def as_floats(self) -> Charges:
        """Return the totals as doubles, rounded up."""
        return Charges(*map(_rounded_up, vars(self).values()))


@dataclass(frozen=True)
class Ways:
    r"""Division of a budget between the ways of adding up costs; a release needs only one.

    Parameters
    ----------
    epsilon : float
        Total epsilon.
    share_delta : float
        Delta of the first way. A release that is ``(x epsilon, x share_delta)``-private needs a
        share x, and shares may sum to at most 1.
    squared_shift, failure : float
        Budgets of the second way, which is that of a `GaussianFilter`. It is not used if
        `squared_shift` is 0.
    copies : int, default=0
        Budget of the third way: number of copies of one curve, that of the first release. A
        release below the curve needs one. It is not used if `copies` is 0.
    copied : str, default=""
        The profile of the first release, as stored; it never changes.
    tail : float, default=0.0
        Mass at infinity that is added to this profile.

    Notes
    -----
    Theorem H1 (shares), Theorem G4 (shifts), Theorem G7 (copies) and Theorem H2 (either).
    """

    epsilon: float
    share_delta: float
    squared_shift: float
    failure: float
    copies: int = 0
    copied: str = ""
    tail: float = 0.0

    @classmethod
    def shares_alone(cls, epsilon: float, delta: float) -> Ways:
        """Return the division that gives all of delta to shares."""
        return cls(epsilon, delta, 0.0, 0.0)

    @classmethod
    def both(cls, epsilon: float, delta: float, n_ways: int = 2) -> Ways:
        """Return the equal division of delta, or only shares if a part of it is too small."""
        part = delta / n_ways
        try:
            shifts = _shifts(epsilon, part)
        except (UnreachableBudgetError, ValueError):
            return cls.shares_alone(epsilon, delta)
        return cls(epsilon, part, shifts.budget, shifts.failure)

    @classmethod
    def settled(cls, epsilon: float, delta: float, first: PrivacyProfile, stored: str) -> Ways:
        """Return the division that a ledger uses from its first reservation on.

        Of the two ways, shares only, and three ways, it is the one that admits most releases like
        the first one.

        Notes
        -----
        Theorem H2. Nothing was released before the first reservation, so its request does not
        depend on data. Theorem G7 gives the third way.
        """
        both, alone = cls.options(epsilon, delta)
        found = max(both, alone, key=lambda ways: ways.more(Totals(), ways.charges_of(first)))
        charges = found.charges_of(first)
        if found.squared_shift > 0.0 and charges.failure == 0.0:
            # Of Gaussian releases, no way admits more than the sum of squared shifts.
            return found
        count = min(found.more(Totals(), charges), float(_MOST_COPIES))
        third = _with_copies(cls.both(epsilon, delta, n_ways=3), stored, int(count))
        return third if third.copies > count else found

    @classmethod
    def options(cls, epsilon: float, delta: float) -> tuple[Ways, Ways]:
        """Return the two divisions from which the first reservation selects one."""
        return cls.both(epsilon, delta), cls.shares_alone(epsilon, delta)

    # Cached, since a search requests them for every fit.
    @functools.lru_cache(maxsize=64)  # noqa: B019
    def charges_of(self, profile: PrivacyProfile) -> Charges:
        """Return the charges of a release in each way, which depend only on public numbers."""
        share = self._share_of(profile)
        if self.squared_shift == 0.0:
            return Charges(share, BEYOND, 1.0)
        shift, failure = charge_of(profile, self.failure, math.sqrt(self.squared_shift))
        return Charges(share, min(shift * shift, BEYOND), failure, self._copies_of(profile, share))

    def _copies_of(self, profile: PrivacyProfile, share: float) -> float:
        """Return 1 for a release below the copied curve at every epsilon, in both directions.

        Notes
        -----
        Theorem G7.
        """
        if not self.copies or share == 0.0:
            return 0.0
        return 1.0 if _curve(self.copied, self.tail).covers(profile) else BEYOND

    def _share_of(self, profile: PrivacyProfile) -> float:
        """Return the smallest share x for which a release is (x epsilon, x delta)-private.

        Notes
        -----
        Theorem H1.
        """
        pure = min(profile.epsilon(0.0) / self.epsilon, BEYOND)
        if self.share_delta == 0.0 or pure == 0.0:
            return float(pure)

        def is_enough(share: float) -> bool:
            delta = min(share * self.share_delta, 1.0)
            return bool(profile.delta(share * self.epsilon) <= delta)

        low, high = _LEAST_SHARE, _LARGEST_SHARE
        if not is_enough(high):
            return float(pure)
        while high > low * (1.0 + 1e-15):
            middle = math.sqrt(low) * math.sqrt(high)
            if not low < middle < high:
                break
            low, high = (low, middle) if is_enough(middle) else (middle, high)
        return float(min(high, pure))

    def admits(self, totals: Totals) -> bool:
        """Return whether the totals are within the budget in at least one of the ways."""
        return self.shares_admit(totals) or self.shifts_admit(totals) or self.copies_admit(totals)

    def shares_admit(self, totals: Totals) -> bool:
        """Return whether the shares sum to at most 1."""
        return totals.share <= _units(1.0 + SLACK)

    def shifts_admit(self, totals: Totals) -> bool:
        """Return whether squared shifts and failures are within their budgets."""
        return (
            self.squared_shift > 0.0
            and totals.squared_shift <= _units(self.squared_shift * (1.0 + SLACK))
            and totals.failure <= _units(self.failure * (1.0 + SLACK))
        )

    def copies_admit(self, totals: Totals) -> bool:
        """Return whether the copies are no more than there may be."""
        return self.copies > 0 and totals.copies <= _units(float(self.copies))

    def more(self, totals: Totals, charges: Charges) -> float:
        """Return how many more releases with these charges fit into the budget."""
        one = Totals().changed(charges)
        found = [_quotient(_units(1.0 + SLACK) - totals.share, one.share)]
        if self.squared_shift > 0.0:
            shifts = _units(self.squared_shift * (1.0 + SLACK)) - totals.squared_shift
            failures = _units(self.failure * (1.0 + SLACK)) - totals.failure
            pairs = ((shifts, one.squared_shift), (failures, one.failure))
            found.append(min(_quotient(*pair) for pair in pairs))
        if self.copies:
            found.append(_quotient(_units(float(self.copies)) - totals.copies, one.copies))
        return max(found)

    def used(self, totals: Totals, of: Totals | None = None) -> float:
        """Return the used part of the budget, in the way that has more left; at most 1.

        With `of`, it is the part that these totals use in the way that has most left of all.
        """
        whole = self._used_by_way(totals)
        way = whole.index(min(whole))
        return min(1.0, whole[way] if of is None else self._used_by_way(of)[way])

    def _used_by_way(self, totals: Totals) -> list[float]:
        floats = totals.as_floats()
        parts = [floats.share]
        if self.squared_shift > 0.0:
            shifts = floats.squared_shift / self.squared_shift
            parts.append(max(shifts, floats.failure / self.failure))
        if self.copies:
            parts.append(floats.copies / self.copies)
        return parts

    def largest_epsilon(self, totals: Totals, delta: float) -> float:
        """Return the largest epsilon at `delta` of a Gaussian release that still fits.

        If `delta` is 0, it is that of a pure release.
        """
        left = max(0.0, 1.0 - totals.as_floats().share) if self.shares_admit(totals) else 0.0
        if delta == 0.0:
            return max(left * self.epsilon, self._largest_pure(totals))
        shifts = [_largest(lambda shift: self._shares_pay(shift, left))] if left > 0.0 else [0.0]
        if self.shifts_admit(totals):
            squared = self.squared_shift - totals.as_floats().squared_shift
            shifts.append(min(math.sqrt(max(squared, 0.0)), _LARGEST_SHIFT))
        if self._has_a_copy(totals):
            shifts.append(_curve(self.copied, self.tail).shift)
        largest = max(shifts)
        if largest == 0.0:
            return 0.0
        # The epsilon of that release, rounded down: a release with the returned epsilon must fit.
        return _largest(lambda epsilon: _delta_of(largest, epsilon) > delta, 1e-9, 1e4)

    def _shares_pay(self, shift: float, left: float) -> bool:
        # No Gaussian release is pure, although its curve falls below every double.
        is_approximate = self.share_delta > 0.0
        return is_approximate and _delta_of(shift, left * self.epsilon) <= left * self.share_delta

    def _has_a_copy(self, totals: Totals) -> bool:
        return self.copies_admit(totals.changed(Charges(0.0, 0.0, 0.0, 1.0)))

    def _largest_pure(self, totals: Totals) -> float:
        """Return the largest epsilon of a pure release that the other ways admit."""

        def fits(epsilon: float) -> bool:
            after = totals.changed(self.charges_of(PrivacyProfile.pure(epsilon)))
            return self.shifts_admit(after) or self.copies_admit(after)

        can_fit = self.shifts_admit(totals) or self._has_a_copy(totals)
        return _largest(fits, 1e-6, 30.0, 1e-6) if can_fit else 0.0

    def composed_epsilon(self, totals: Totals, delta: float) -> float:
        """Return a bound on the epsilon of all releases from totals, if their costs were fixed."""
        floats = totals.as_floats()
        share, shift = floats.share, math.sqrt(floats.squared_shift)
        found = [share * self.epsilon if share * self.share_delta <= delta else math.inf]
        if self.squared_shift > 0.0 and shift <= _LARGEST_SHIFT and floats.failure < delta:
            shifts = PrivacyProfile.gaussian(shift)
            found.append(shifts.epsilon(delta - floats.failure))
        return min(found)


@functools.lru_cache(maxsize=16)
def _curve(stored: str, tail: float) -> SharedCurve:
    """Return the curve that is copied, as a stored profile defines it."""
    return SharedCurve.of(PrivacyProfile.from_dict(json.loads(stored)), tail)


@functools.lru_cache(maxsize=16)
def _with_copies(ways: Ways, stored: str, guess: int) -> Ways:
    """Return ways with the largest number of copies that the share of delta allows.

    Notes
    -----
    Theorem G7.
    """
    profile = PrivacyProfile.from_dict(json.loads(stored))
    delta = ways.share_delta
    if ways.squared_shift == 0.0 or not 0.0 < profile.epsilon(delta) < math.inf:
        return ways
    rough = _most_copies(profile, ways.epsilon, delta, guess)
    tail = _TAILS * delta / max(rough, 1)
    copies = _most_copies(_curve(stored, tail).profile, ways.epsilon, delta, rough)
    return replace(ways, copies=copies, copied=stored, tail=tail) if copies else ways


def _most_copies(profile: PrivacyProfile, epsilon: float, delta: float, guess: int) -> int:
    """Return how many copies of a profile cost no more than a total."""
    # Number of copies and their epsilon: some that fit, and some that do not.
    low, high = (0, 0.0), (_MOST_COPIES + 1, math.inf)
    count = min(max(guess, 1), _MOST_COPIES)
    while high[0] - low[0] > 1:
        found = count, (count * profile).epsilon(delta)
        low, high = (found, high) if found[1] <= epsilon else (low, found)
        # Of few copies, epsilon grows with their number, and of many with its root.
        step = (epsilon / found[1]) ** 1.4
        near = (
            min(max(step, 0.5), 2.0) * count
            if low[1] == 0.0 or math.isinf(high[1])
            else (low[0] + (high[0] - low[0]) * (epsilon - low[1]) / (high[1] - low[1]))
        )
        count = min(max(int(near), low[0] + 1), high[0] - 1)
    return low[0]


@functools.lru_cache(maxsize=16)
def _shifts(epsilon: float, delta: float) -> GaussianFilter:
    """Return the filter for a total budget, with a tenth of delta reserved for failures."""
    return GaussianFilter(epsilon, delta, failure=delta / 10.0)


def _delta_of(shift: float, epsilon: float) -> float:
    return float(gaussian_delta(shift, np.array([epsilon]))[0])


def _largest(
    holds: Callable[[float], bool],
    low: float = 1e-9,
    high: float = _LARGEST_SHIFT,
    tolerance: float = 1e-10,
) -> float:
    """Return the largest number for which a condition holds, rounded down; 0 if none does."""
    if not holds(low):
        return 0.0
    while high > low * (1.0 + tolerance):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


@functools.lru_cache(maxsize=1024)
def _in_units(charges: Charges) -> Totals:
    return Totals(*map(_units, vars(charges).values()))


def _units(value: float) -> int:
    """Return a double exactly, as an integer number of units."""
    numerator, denominator = value.as_integer_ratio()
    return numerator * (_UNITS_PER_ONE // denominator)


def _rounded_up(units: int) -> float:
    exact = Fraction(units, _UNITS_PER_ONE)
    nearest = float(exact)
    return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)


def _quotient(limit: int, part: int) -> float:
    if limit < 0:
        return 0.0
    return float(min(limit // part, 10**15)) if part else math.inf


# Books ---------------------------------------------------------------------------------------

# The status of a reservation after an event, by its status before.
STATUS_AFTER = {
    ("", "reserved"): "reserved",
    ("reserved", "read"): "read",
    ("reserved", "confirmed"): "confirmed",
    ("read", "confirmed"): "confirmed",
    ("reserved", "cancelled"): "cancelled",
}
_USED = (
    "reservation must be for a single release; got one whose data were already read. Reserve "
    "again: a second release costs as much as the first."
)
_SPENT = (
    "reservation cannot be cancelled after it was marked as read: data may have been read, so "
    "its cost stays spent."
)
_GIVEN_BACK = (
    "reservation must not be cancelled; got a cancelled one, whose share of the budget was "
    "returned. Reserve again before anything is read."
)
# Errors for events that are not allowed after a status, by whether the event is a cancellation.
_OUT_OF_TURN = {
    ("read", False): _USED,
    ("read", True): _SPENT,
    ("confirmed", False): _USED,
    ("confirmed", True): _SPENT,
    ("cancelled", False): _GIVEN_BACK,
}


@dataclass(frozen=True)
class Terms:
    """The registered facts about a data set, which never change."""

    dataset: str
    epsilon: float
    delta: float
    unit: str
    created: str
    identity: str
    # Names of disjoint parts: the values of one public attribute of each record.
    parts: tuple[str, ...] = ()
    parts_by: str = ""


@dataclass(frozen=True)
class State:
    """The totals and the status after all events of a data set.

    Notes
    -----
    Theorem H5. A release on some parts of the data is charged to these parts, and one on all data
    to all parts. Every part must stay within the whole budget.
    """

    n_events: int = 0
    last_digest: str = ""
    # Of releases on all data.
    totals: Totals = field(default_factory=Totals)
    # Of releases on some parts, for each part that had one.
    totals_of: dict[str, Totals] = field(default_factory=dict)
    # None before the first reservation.
    ways: Ways | None = None
    # Relation of all reservations, including cancelled ones; empty before the first.
    neighbouring: str = ""

    def totals_in(self, parts: Collection[str]) -> list[Totals]:
        """Return the totals that count for records of each part; of any record, if no parts."""
        # A record of no part, or of a part without releases, counts for those on all data.
        inside = [self.totals_of.get(part) for part in parts or self.totals_of]
        found = [self.totals.plus(one) if one else self.totals for one in inside]
        return found or [self.totals]

    def changed(self, charges: Charges, parts: Collection[str], sign: int = 1) -> State:
        """Return the state with a release's charges added to the totals, or subtracted."""
        if not parts:
            return replace(self, totals=self.totals.changed(charges, sign))
        totals_of = dict(self.totals_of)
        for part in parts:
            totals_of[part] = totals_of.get(part, Totals()).changed(charges, sign)
        return replace(self, totals_of=totals_of)

    def after(self, sequence: int, digest: str, content: dict[str, Any]) -> State:
        """Return the state with another event counted."""
        relation = _relation(self, content) or ""
        return replace(self, n_events=sequence, last_digest=digest, neighbouring=relation)


class Replay:
    """The result of the first events of a data set, each of which was verified."""

    def __init__(self) -> None:
        self.state = State()
        # The status, the charges and the parts of each reservation.
        self.standing: dict[str, tuple[str, Charges, Collection[str]]] = {}

    def add(self, event: StoredEvent, content: dict[str, Any]) -> bool:
        """Add the next event; return whether it is allowed after the previous ones."""
        status, charges, parts = self.standing.get(event.reservation, ("", None, ()))
        name = content["event"]
        if (status, name) not in STATUS_AFTER:
            return False
        if charges is None:
            charges, parts = Charges(**content["charges"]), content["parts"]
        self.standing[event.reservation] = STATUS_AFTER[status, name], charges, parts
        if sign := {"reserved": 1, "cancelled": -1}.get(name, 0):
            self.state = self.state.changed(charges, parts, sign)
        self.state = self.state.after(event.sequence, event.digest, content)
        return True


class Books:
    """The account of a data set within a transaction; it is verified when opened.

    Parameters
    ----------
    transaction : Transaction
    dataset : str
    location : str
        Place of the ledger, for messages.
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
            terms = json.loads(account.terms)
            self.terms = Terms(**terms | {"parts": tuple(terms["parts"])})
            self.state = _state_of(json.loads(account.state))
        except (ValueError, TypeError, KeyError) as error:
            raise self._damaged(f"its account cannot be read ({shown(error)})") from error
        last = transaction.last_event(dataset)
        found = (last.sequence, last.digest) if last else (0, "")
        if found != (self.state.n_events, self.state.last_digest):
            raise self._damaged("its last event differs from the one in its account")

    def _damaged(self, words: str) -> LedgerError:
        return damaged(self._location, words)

    def add(
        self,
        reservation: str,
        content: dict[str, Any],
        *,
        charges: Charges | None = None,
        parts: Collection[str] = (),
        sign: int = 1,
        ways: Ways | None = None,
    ) -> int:
        """Append an event, update the totals, and return the event's number."""
        state = self.state
        sequence, text = state.n_events + 1, _text(content)
        digest = _digest(state.last_digest, str(sequence), reservation, text)
        self._transaction.append(self._dataset, StoredEvent(sequence, reservation, text, digest))
        if charges:
            state = state.changed(charges, parts, sign)
        self.state = replace(state.after(sequence, digest, content), ways=ways or state.ways)
        save_account(self._transaction, self.terms, self.state)
        return sequence

    def relation_with(self, content: dict[str, Any]) -> str | None:
        """Return the common relation of all guarantees, including those of one more event.

        None if there is no such relation, or if the unit is a person and the event is not about
        persons.
        """
        found = _relation(self.state, content)
        is_by_persons = self.terms.unit == PERSON_UNIT
        return common_relation([found, PERSON]) if found and is_by_persons else found

    def status_of(self, reservation: str) -> tuple[str, Charges, Collection[str]]:
        """Return status, charges and parts of a reservation, which must be in this ledger."""
        events = list(self._transaction.events(self._dataset, reservation))
        if not events:
            raise LedgerError(
                f"reservation must be one of {shown(self._dataset)} in {self._location!r}; "
                "this one is not there. The file may have been replaced by an older copy."
            )
        contents = [json.loads(event.content) for event in events]
        charges = Charges(**contents[0]["charges"])
        return str(contents[-1]["event"]), charges, contents[0]["parts"]

    def move(self, reservation: str, event: str, within: Collection[str], **more: str) -> None:
        """Append an event to a reservation, unless its status is already one of `within`."""
        status, charges, parts = self.status_of(reservation)
        if status in within:
            return
        is_cancelled = event == "cancelled"
        if (status, event) not in STATUS_AFTER:
            raise LedgerError(_OUT_OF_TURN[status, is_cancelled])
        content = {"event": event, **more}
        returned = charges if is_cancelled else None
        self.add(reservation, content, charges=returned, parts=parts, sign=-1)

    def replay(self, past: Replay) -> Iterator[tuple[int, str, dict[str, Any]]]:
        """Yield number, reservation and content of each later event, and verify all of them.

        The resulting state must be that of the account.
        """
        for event in self._transaction.events(self._dataset, after=past.state.n_events):
            texts = past.state.last_digest, str(event.sequence), event.reservation, event.content
            if event.sequence != past.state.n_events + 1 or event.digest != _digest(*texts):
                raise self._damaged(f"event {past.state.n_events + 1} was changed or is missing")
            content: dict[str, Any] = json.loads(event.content)
            if not past.add(event, content):
                raise self._damaged(f"event {event.sequence} is not possible at its place")
            yield event.sequence, event.reservation, content
        if replace(past.state, ways=self.state.ways) != self.state:
            raise self._damaged("its events do not add up to its account")

    def go_on_from(self, number: int, digest: str) -> bool:
        """Return whether an event that was seen before is still there, with all events before it.

        An older copy may have more events by now, but they differ.
        """
        if number >= self.state.n_events:
            return (number, digest) == (self.state.n_events, self.state.last_digest)
        if number == 0:
            return True
        event = next(self._transaction.events(self._dataset, after=number - 1), None)
        return event is not None and (event.sequence, event.digest) == (number, digest)

    def follows(self, past: Replay) -> bool:
        """Return whether the known events are all contained in the account."""
        known, count = past.state.last_digest, past.state.n_events
        return count < self.state.n_events or known == self.state.last_digest


def save_account(transaction: Transaction, terms: Terms, state: State) -> None:
    """Store the registered terms and the state after all events."""
    content = asdict(state) | {
        "totals": _written(state.totals),
        "totals_of": {part: _written(totals) for part, totals in state.totals_of.items()},
    }
    texts = _text(asdict(terms)), _text(content)
    transaction.save(terms.dataset, Account(*texts, _digest(*texts)))


def _written(totals: Totals) -> list[str]:
    return [hex(total) for total in asdict(totals).values()]


def _read(written: Iterable[str]) -> Totals:
    return Totals(*(int(total, 16) for total in written))


def _state_of(content: dict[str, Any]) -> State:
    ways = content["ways"]
    return State(
        content["n_events"],
        content["last_digest"],
        _read(content["totals"]),
        {part: _read(totals) for part, totals in content["totals_of"].items()},
        None if ways is None else Ways(**ways),
        content["neighbouring"],
    )


def _relation(state: State, content: dict[str, Any]) -> str | None:
    found = {state.neighbouring, content.get("neighbouring", "")} - {""}
    return common_relation(found) if found else ""


def key_of(content: str) -> str:
    """Return the key of a profile; equal profiles have the same key."""
    return _digest(content)


def _text(content: dict[str, Any]) -> str:
    return json.dumps(content, allow_nan=False, sort_keys=True, separators=(",", ":"))


def _digest(*texts: str) -> str:
    """Return a digest of texts; their lengths are included, so that texts cannot be shifted."""
    framed = [f"{len(text)}:{text}" for text in texts]
    return hashlib.sha256("".join(framed).encode()).hexdigest()
