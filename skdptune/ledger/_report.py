"""What was spent of a ledger and what is left, as text and as HTML."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal

from skdptune._formatting import shown, shown_delta, shown_epsilon, shown_number
from skdptune._validation import check_integer
from skdptune.accounting import ReportView, Row, one_line, to_html, to_text
from skdptune.ledger._books import Terms
from skdptune.ledger._record import LedgerRecord

_FLOOR = Context(prec=3, rounding=ROUND_FLOOR)


@dataclass(frozen=True)
class LedgerView(ReportView):
    """What is shown of a ledger."""

    left: str = ""

    @property
    def caption(self) -> str:
        """What the figures mean."""
        return (
            f"{self.left} Each release's ε is its own cost at δ = {self.delta}. The ledger "
            "guarantees the whole budget, however costs were chosen; what is spent so far is a "
            "guarantee only for costs that were fixed beforehand."
        )


class LedgerReport:
    """What was spent of a ledger and what is left: printed as a tree, and shown as HTML.

    Made by `PrivacyLedger.report`.

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
    ) -> None:
        n_records = check_integer(n_records, name="n_records", lower=0)
        listed = records[len(records) - n_records :] if n_records < len(records) else records
        rows = [_row(record) for record in listed]
        if len(listed) < len(records):
            rows.insert(0, _earlier(records[: len(records) - len(listed)]))
        kind = "Gaussian" if terms.delta > 0.0 else "pure"
        left = (
            f"{100.0 * used:.3g} % of the budget is used; a {kind} release of up to ε = "
            f"{shown_below(remaining)} at δ = {shown_delta(terms.delta)} still fits."
        )
        figure = shown_epsilon(terms.epsilon)
        self._view = LedgerView(
            top=Row(f"PrivacyLedger {one_line(terms.dataset)}", "", "", figure, tuple(rows)),
            delta=shown_delta(terms.delta),
            spent=shown_number(spent),
            neighbouring=one_line(terms.unit),
            assumptions=tuple(dict.fromkeys(_assumptions(records))),
            left=left,
        )

    def __str__(self) -> str:
        """Draw the tree of records."""
        return to_text(self._view)

    def __repr__(self) -> str:
        """Show what it is about in one line."""
        return f"LedgerReport({self._view.top.name!r}, spent={self._view.spent})"

    def _repr_html_(self) -> str:
        """Draw the tree of records for a notebook."""
        return to_html(self._view)


def refusal(terms: Terms, name: str, asked: float, gaussian: float, pure: float) -> str:
    """Return what is said of a release that does not fit, and of what would."""
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
    """Show what is left with three digits, never above the exact value."""
    if value <= 0.0:
        return "0"
    rounded = _FLOOR.plus(Decimal(repr(value)))
    return f"{rounded:f}" if value >= 1e-4 else f"{rounded:.2e}"


def _row(record: LedgerRecord) -> Row:
    figure = "cancelled" if not record.is_spent else shown_epsilon(record.epsilon)
    words = record.who and f"by {record.who}", record.note, record.reason
    remark = "; ".join(filter(None, (record.time[:19] + "Z", *map(one_line, words))))
    mark = {"reserved": "not confirmed", "read": "not confirmed"}.get(record.status, "")
    return Row(f"{record.sequence}. {one_line(record.name)}", remark, mark, figure)


def _earlier(records: Sequence[LedgerRecord]) -> Row:
    """Return the line that stands for records which are not listed."""
    costs = [record.epsilon for record in records if record.is_spent]
    largest = max(costs, default=0.0)
    words = "not listed" if math.isinf(largest) else f"up to {shown_epsilon(largest)} each"
    return Row(f"{len(records)} earlier records", "", "", words)


def _assumptions(records: Sequence[LedgerRecord]) -> list[str]:
    return [
        one_line(sentence)
        for record in records
        if record.is_spent
        for sentence in record.assumptions
    ]
