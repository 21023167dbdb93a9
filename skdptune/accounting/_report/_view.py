"""What is shown of a privacy report, and its drawing as plain text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skdptune._formatting import shown_delta, shown_epsilon, shown_number

if TYPE_CHECKING:
    from skdptune.accounting._report._report import PrivacyReport

_WIDEST_COLUMN = 72


@dataclass(frozen=True)
class Row:
    """One line of a report's tree, and the lines below it."""

    name: str
    remark: str
    bound: str
    figure: str
    rows: tuple[Row, ...] = ()


@dataclass(frozen=True)
class ReportView:
    """What is shown of a report: words of one line each, and rounded figures."""

    top: Row
    delta: str
    spent: str
    neighbouring: str
    assumptions: tuple[str, ...] = ()

    @property
    def caption(self) -> str:
        """What the figures of the parts mean."""
        return f"Each part's ε is its cost alone at δ = {self.delta}; they need not add up."


def view_of(report: PrivacyReport) -> ReportView:
    """Return what is shown of a report."""
    asked, spent = shown_epsilon(report.epsilon), shown_epsilon(report.epsilon_spent)
    relation = one_line(report.neighbouring)
    # Costs within rounding above the budget pass for the budget.
    is_less = report.epsilon_spent < report.epsilon and spent != asked
    return ReportView(
        top=_row(report, asked, report.delta, relation),
        delta=shown_delta(report.delta),
        spent=shown_number(report.epsilon_spent) if is_less else "",
        neighbouring=relation,
        assumptions=tuple(dict.fromkeys(map(one_line, _gathered_assumptions(report)))),
    )


def _row(report: PrivacyReport, figure: str, delta: float, relation: str) -> Row:
    """Return one line of the tree, with all below it priced at ``delta``."""
    own_relation = one_line(report.neighbouring)
    remarks = [one_line(report.note), "" if own_relation == relation else own_relation]
    rows = (
        _row(part, shown_epsilon(part.epsilon_at(delta)), delta, relation) for part in report.parts
    )
    return Row(
        name=one_line(report.name),
        remark="; ".join(filter(None, remarks)),
        bound=one_line(report.bound or ""),
        figure=figure,
        rows=tuple(rows),
    )


def _gathered_assumptions(report: PrivacyReport) -> Iterator[str]:
    yield from report.assumptions
    for part in report.parts:
        yield from _gathered_assumptions(part)


def one_line(text: str) -> str:
    """Return text without line breaks and control characters, which would break the tree."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def to_text(view: ReportView) -> str:
    """Draw a report with box characters, its figures in one column."""
    spent = f", spent {view.spent}" if view.spent else ""
    lines = [
        f"{_label(view.top)}: {view.top.figure} at δ = {view.delta}{spent} ({view.neighbouring})"
    ]
    branches = list(_branches(view.top.rows))
    # One very long label must not push every figure out of sight.
    widths = [len(label) for label, _ in branches if len(label) <= _WIDEST_COLUMN]
    width = max(widths, default=0)
    lines += [f"{label:<{width}}  {figure}" for label, figure in branches]
    if branches:
        lines.append(view.caption)
    if view.assumptions:
        lines += ["Assumes:", *(f"- {sentence}" for sentence in view.assumptions)]
    return "\n".join(lines)


def _branches(rows: Sequence[Row], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield the label, with its place in the tree, and the figure of each row."""
    for index, row in enumerate(rows):
        is_last = index == len(rows) - 1
        yield prefix + ("└─ " if is_last else "├─ ") + _label(row), row.figure
        yield from _branches(row.rows, prefix + ("   " if is_last else "│  "))


def _label(row: Row) -> str:
    remark = f" ({row.remark})" if row.remark else ""
    return row.name + remark + (f" [{row.bound}]" if row.bound else "")
