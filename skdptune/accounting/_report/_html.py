"""Privacy reports as HTML for notebooks."""

from __future__ import annotations

from html import escape

from skdptune._formatting import NOT_PRIVATE
from skdptune._html import BADGE, INSIDE, QUIET, RED, box, title
from skdptune.accounting._report._view import ReportView, Row

_LINE = "display:flex;gap:1.5em;justify-content:space-between"
# The marks that fold stand outside, so that names and figures of all lines are aligned.
_FOLD = "cursor:pointer;display:list-item;list-style-position:outside;margin-left:1.2em"
_LEAF = f"{_LINE};margin-left:1.2em"
_FIGURE = "white-space:nowrap;font-variant-numeric:tabular-nums"
_WARNING = f"white-space:nowrap;{RED}"
_SMALL = f"margin:.6em 0 0;font-size:.9em;{QUIET}"
_BOUND = f"margin-left:.4em;white-space:nowrap;{BADGE}"
_OPEN_LEVELS = 2


def to_html(view: ReportView) -> str:
    """Return a report as an HTML fragment in which all text is escaped."""
    pieces = [_heading(view)]
    if view.top.rows:
        tree = "".join(_branch(row, level=1) for row in view.top.rows)
        pieces += [f'<div style="margin-top:.5em">{tree}</div>', _small(escape(view.caption))]
    if view.assumptions:
        sentences = "".join(f"<li>{escape(sentence)}</li>" for sentence in view.assumptions)
        listed = f'<ul style="margin:.2em 0 0;padding-left:1.4em">{sentences}</ul>'
        pieces.append(f'<div style="margin-top:.6em;font-size:.9em">Assumptions:{listed}</div>')
    return box("".join(pieces), width="46em")


def _heading(view: ReportView) -> str:
    spent = f", spent {escape(view.spent)}" if view.spent else ""
    return (
        f"{title(_label(view.top))}<div>"
        f"{_figure(view.top.figure)} at δ = {escape(view.delta)}{spent} "
        f'<span style="{QUIET}">({escape(view.neighbouring)})</span></div>'
    )


def _branch(row: Row, level: int) -> str:
    """Return a line of the tree: one that folds if there are lines below it."""
    content = f"<span>{_label(row)}</span>{_figure(row.figure)}"
    if not row.rows:
        return f'<div style="{_LEAF}">{content}</div>'
    below = "".join(_branch(child, level + 1) for child in row.rows)
    state = ' open=""' if level <= _OPEN_LEVELS else ""
    return (
        f'<details{state}><summary style="{_FOLD}">'
        f'<span style="{_LINE}">{content}</span></summary>'
        f'<div style="{INSIDE}">{below}</div></details>'
    )


def _label(row: Row) -> str:
    remark = f' <span style="{QUIET}">({escape(row.remark)})</span>' if row.remark else ""
    bound = f'<span style="{_BOUND}">{escape(row.bound)}</span>' if row.bound else ""
    return escape(row.name) + remark + bound


def _figure(figure: str) -> str:
    style = _WARNING if figure == NOT_PRIVATE else _FIGURE
    return f'<span style="{style}">{escape(figure)}</span>'


def _small(content: str) -> str:
    return f'<div style="{_SMALL}">{content}</div>'
