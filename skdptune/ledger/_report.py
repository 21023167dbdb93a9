"""The output of a ledger: records, what is spent and left, and a statement for auditors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from decimal import ROUND_FLOOR, Context, Decimal
from typing import Any

from skdptune._formatting import shown, shown_delta, shown_epsilon, shown_number, shown_percent
from skdptune._validation import check_integer
from skdptune.accounting._shared import (
    ReleaseFacts,
    ReportView,
    Row,
    includes_tuning,
    one_line,
    to_html,
    to_text,
)
from skdptune.ledger._books import Terms, unit_of


@dataclass(frozen=True)
class LedgerRecord:
    """One reservation of a ledger: its purpose, its time, its cost and its status.

    Parameters
    ----------
    sequence : int
        Number of the reservation's event. Records are in this order, whatever the clocks said.
    reservation : str
        Identifier.
    name : str
        What it is for, such as the estimator's name.
    status : {"reserved", "read", "confirmed", "cancelled"}
        All reservations except "cancelled" ones count as spent.
    epsilon : float
        Epsilon of the release considered separately, at the delta of the ledger; may be infinite.
    delta : float
        Delta of the ledger.
    share : float
        Part of the budget that it needs if shares are added up (Theorem H1).
    profile : str
        Key of its profile; equal profiles have equal keys.
    time, changed : str
        When it was reserved, and when its status last changed, by the clock of the machine, in
        UTC.
    version : str
        Version of skdptune that reserved it.
    assumptions : tuple of str
        Assumptions of its cost.
    details : dict
        Public facts, as given.
    who : str
        Who reserved it, such as "ana@server".
    note : str
        The user's own text; may be empty.
    reason : str
        Why it was cancelled.
    neighbouring : str
        The neighbouring relation of the cost.
    parts : tuple of str
        Parts of the data that it uses; empty if it uses all data.

    Examples
    --------
    >>> from skdptune.accounting import PrivacyProfile
    >>> from skdptune.ledger import PrivacyLedger
    >>> ledger = PrivacyLedger(":memory:", "patients", epsilon=3.0, delta=1e-5)
    >>> with ledger.reserve(PrivacyProfile.pure(0.5), name="mean age"):
    ...     pass
    >>> (record,) = ledger.history()
    >>> record.name, record.status, round(record.epsilon, 3)
    ('mean age', 'confirmed', 0.5)
    """

    sequence: int
    reservation: str
    name: str
    status: str
    epsilon: float
    delta: float
    share: float
    profile: str
    time: str
    changed: str
    version: str
    assumptions: tuple[str, ...]
    details: dict[str, Any]
    who: str
    note: str
    reason: str
    neighbouring: str
    parts: tuple[str, ...] = ()

    @property
    def is_spent(self) -> bool:
        """Whether it counts towards the budget."""
        return self.status != "cancelled"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for strict JSON: an infinite epsilon becomes "inf"."""
        content = asdict(self)
        content |= {"assumptions": list(self.assumptions), "parts": list(self.parts)}
        content["epsilon"] = "inf" if self.epsilon == float("inf") else self.epsilon
        return content


# Of the event of a reservation.
_KEPT = ("name", "profile", "time", "version", "details", "neighbouring", "who", "note")


def add_records(
    records: dict[str, LedgerRecord],
    events: Iterable[tuple[int, str, dict[str, Any]]],
    delta: float,
) -> None:
    """Update the records of reservations by later events, in the order of these events."""
    found: dict[str, dict[str, Any]] = {}
    for sequence, reservation, content in events:
        values = found.setdefault(reservation, {})
        if content["event"] == "reserved":
            values.update({key: content[key] for key in _KEPT})
            values.update(
                sequence=sequence,
                reservation=reservation,
                epsilon=float(content["epsilon"]),
                delta=delta,
                share=content["charges"]["share"],
                assumptions=tuple(content["assumptions"]),
                parts=tuple(content["parts"]),
            )
        values["status"], values["changed"] = content["event"], content["time"]
        values["reason"] = content.get("reason", "")
    for reservation, values in found.items():
        known = records.get(reservation)
        records[reservation] = replace(known, **values) if known else LedgerRecord(**values)


_FLOOR = Context(prec=3, rounding=ROUND_FLOOR)


@dataclass(frozen=True)
class LedgerView(ReportView):
    """The content that is shown of a ledger."""

    left: str = ""

    @property
    def caption(self) -> str:
        """Explanation of the figures."""
        return (
            f"{self.left} Each release's ε is its own cost at δ = {self.delta}; the ε need not "
            "add up, the shares of the budget in % do. The ledger "
            "guarantees the whole budget, however costs were chosen; what is spent so far is a "
            "guarantee only for costs that were fixed beforehand."
        )


class LedgerReport:
    """What was spent of a ledger and what is left: prints as a tree, and as HTML in notebooks.

    It is created by `PrivacyLedger.report`.

    Examples
    --------
    >>> from skdptune.ledger import PrivacyLedger
    >>> ledger = PrivacyLedger(":memory:", "patients", epsilon=3.0, delta=1e-5)
    >>> print(ledger.report())
    PrivacyLedger patients: ε = 3.000 at δ = 1e-05, spent 0.000 (one record)
    """

    __slots__ = ("_view",)

    def __init__(
        self,
        terms: Terms,
        records: Sequence[LedgerRecord],
        spent: float,
        remaining: float,
        used: float,
        n_records: int,
        used_by: Mapping[str, float],
        more: float | None,
        parts: Sequence[str],
    ) -> None:
        n_records = check_integer(n_records, name="n_records", lower=0)
        listed = records[len(records) - n_records :] if n_records < len(records) else records
        before = len(records) - len(listed)
        rows = [
            _row(number, record, used_by.get(record.reservation, 0.0))
            for number, record in enumerate(listed, before + 1)
        ]
        if before:
            rows.insert(0, _earlier(records[:before]))
        kind = "Gaussian" if terms.delta > 0.0 else "pure"
        again = ""
        if more is not None and more < math.inf:
            again = f"{more:.0f} more like the last one fit; "
        of_part = ""
        if terms.parts and not parts:
            of_part = " in the part that has least left"
        left = (
            f"{shown_percent(used)} of the budget is used{of_part}; {again}a {kind} release of up "
            f"to ε = {shown_below(remaining)} at δ = {shown_delta(terms.delta)} still fits."
        )
        figure = shown_epsilon(terms.epsilon)
        name = f"PrivacyLedger {one_line(', '.join((terms.dataset, *parts)))}"
        self._view = LedgerView(
            top=Row(name, "", "", figure, tuple(rows)),
            delta=shown_delta(terms.delta),
            spent=shown_number(spent),
            neighbouring=one_line(unit_of(terms.unit, [r.neighbouring for r in records])),
            assumptions=_assumptions(records),
            left=left,
        )

    def __str__(self) -> str:
        """Return the tree of records as text."""
        return to_text(self._view)

    def __repr__(self) -> str:
        """Return a one-line description."""
        return f"LedgerReport({self._view.top.name!r}, spent={self._view.spent})"

    def _repr_html_(self) -> str:
        """Return the tree of records as HTML for notebooks."""
        return to_html(self._view)


def refusal(terms: Terms, name: str, asked: float, gaussian: float, pure: float) -> str:
    """Return the message for a release that does not fit, which states what would fit."""
    delta = shown_delta(terms.delta)
    fits = f"A pure release of up to ε = {shown_below(pure)} still fits"
    if terms.delta > 0.0:
        fits = (
            f"A Gaussian release of up to ε = {shown_below(gaussian)} at δ = {delta} still fits, "
            f"or a pure one of up to ε = {shown_below(pure)}"
        )
    hint = ""
    if math.isinf(asked):
        hint = (
            " It has no finite ε at that δ: give it a smaller delta, or a budget (epsilon=, or "
            "release= of DParetoSearchCV). Data that are not private need no ledger: `with "
            "skdptune.config_context(ledger=False):`."
        )
    return (
        f"profile must fit into what is left of {shown(terms.dataset)} (ε = "
        f"{shown_number(terms.epsilon)} at δ = {delta}); got ε = {shown_number(asked)} of "
        f"{shown(name)}. {fits}. Nothing was recorded.{hint}"
    )


def shown_below(value: float) -> str:
    """Format a remaining amount with three digits, never above the exact value."""
    if value <= 0.0:
        return "0"
    rounded = _FLOOR.plus(Decimal(repr(value)))
    return f"{rounded:f}" if value >= 1e-4 else f"{rounded:.2e}"


@dataclass(frozen=True)
class LedgerPlan:
    """How many more releases of one cost fit into a ledger; nothing of it was recorded.

    It is created by `PrivacyLedger.plan`.

    Attributes
    ----------
    name : str
        Name of the release.
    epsilon, delta : float
        Its cost at the delta of the ledger.
    count : int
        Number of releases that were asked about.
    n_more : float
        Number of such releases that fit, one after another; infinite if they cost nothing.
    dataset : str

    Examples
    --------
    >>> from skdptune.accounting import PrivacyProfile
    >>> from skdptune.ledger import PrivacyLedger
    >>> ledger = PrivacyLedger(":memory:", "patients", epsilon=3.0, delta=1e-5)
    >>> print(ledger.plan(PrivacyProfile.pure(0.5), count=8))
    6 more of release (ε = 0.500 at δ = 1e-05) fit into 'patients'; 8 do not. Nothing was recorded.
    """

    name: str
    epsilon: float
    delta: float
    count: int
    n_more: float
    dataset: str

    @property
    def fits(self) -> bool:
        """Whether all `count` releases fit."""
        return self.count <= self.n_more

    def __str__(self) -> str:
        """Return the plan as a sentence."""
        cost = f"{shown_epsilon(self.epsilon)} at δ = {shown_delta(self.delta)}"
        many = "any number of" if math.isinf(self.n_more) else f"{self.n_more:.0f} more of"
        answer = "" if self.fits else f"; {self.count} do not"
        return (
            f"{many} {one_line(self.name)} ({cost}) fit into {shown(self.dataset)}{answer}. "
            "Nothing was recorded."
        )


def _row(number: int, record: LedgerRecord, used: float) -> Row:
    figure = "cancelled"
    if record.is_spent:
        figure = f"{shown_epsilon(record.epsilon)}, {shown_percent(used)}"
    of_parts = f"part {', '.join(record.parts)}" if record.parts else ""
    words = of_parts, record.who and f"by {record.who}", record.note, record.reason
    remark = "; ".join(filter(None, (record.time[:19] + "Z", *map(one_line, words))))
    mark = {"reserved": "not confirmed", "read": "not confirmed"}.get(record.status, "")
    return Row(f"{number}. {one_line(record.name)}", remark, mark, figure)


def _earlier(records: Sequence[LedgerRecord]) -> Row:
    """Return the line that summarises records that are not listed."""
    costs = [record.epsilon for record in records if record.is_spent]
    largest = max(costs, default=0.0)
    words = "not listed" if math.isinf(largest) else f"up to {shown_epsilon(largest)} each"
    return Row(f"{len(records)} earlier records", "", "", words)


def _assumptions(records: Sequence[LedgerRecord]) -> tuple[str, ...]:
    """Return the assumptions of all spent releases, without repetitions."""
    spent = [record.assumptions for record in records if record.is_spent]
    return tuple(dict.fromkeys(one_line(each) for sentences in spent for each in sentences))


def facts_of(terms: Terms, records: Sequence[LedgerRecord], report: LedgerReport) -> ReleaseFacts:
    """Return the facts about all releases, past and future: they stay within the budget."""
    spent = [record for record in records if record.is_spent]
    of_parts = ""
    if terms.parts:
        of_parts = (
            f" Releases on different parts of the data, by {one_line(terms.parts_by)}, do not add "
            "up: each record is in only one part."
        )
    return ReleaseFacts(
        name=one_line(terms.dataset),
        epsilon=terms.epsilon,
        delta=terms.delta,
        neighbouring="; ".join(dict.fromkeys(r.neighbouring for r in spent))
        or "as the releases state",
        unit=one_line(terms.unit),
        assumptions=_assumptions(spent),
        composition=(
            "Each release is admitted before it reads the data, and only if all releases together "
            "stay within the budget. One of three sums must be within its limit: that of their "
            "shares of the budget, that of the squared shifts of Gaussian mechanisms that cover "
            "them, or their number if none costs more than the first one. All three remain valid "
            "if costs are chosen after seeing earlier results." + of_parts
        ),
        tuning=_tuning(spent),
        other_releases=(
            f"Recorded since {terms.created[:10]}: {len(spent)}. All past and future releases "
            "of this ledger are within the guarantee. No other release may be made from the data."
        ),
        tree=str(report),
        is_continual=True,
    )


def _tuning(records: Sequence[LedgerRecord]) -> str:
    """Return a sentence that names the releases that include tuning in their cost."""
    searches = sorted({one_line(r.name) for r in records if includes_tuning([r.name])})
    beyond = (
        "Every fit that the ledger records counts, including fits that only tried out parameters. "
        "A fit that it does not record is not accounted for."
    )
    if not searches:
        return f"No release is a search for hyperparameters. {beyond}"
    return f"Yes, fully by {', '.join(searches)}: fits, scores, choice and final fit. {beyond}"
