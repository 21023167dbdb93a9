"""What is shown of a privacy report, and its drawing as plain text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

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
        return (
            f"Each part's ε is its own cost at δ = {self.delta}; the parts need not add up to the "
            "total."
        )


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
    # One very long label must not push every figure far to the right.
    widths = [len(label) for label, _ in branches if len(label) <= _WIDEST_COLUMN]
    width = max(widths, default=0)
    lines += [f"{label:<{width}}  {figure}" for label, figure in branches]
    if branches:
        lines.append(view.caption)
    if view.assumptions:
        lines += ["Assumptions:", *(f"- {sentence}" for sentence in view.assumptions)]
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
