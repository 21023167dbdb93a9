"""Privacy reports as HTML for notebooks: one self-contained fragment, without scripts.

Colours are the surrounding page's own, with shades of grey that show on light and on dark.
"""

from __future__ import annotations

from html import escape

from skdptune._formatting import NOT_PRIVATE
from skdptune.accounting._report._view import ReportView, Row

_BOX = (
    "box-sizing:border-box;max-width:46em;padding:.8em 1em;text-align:left;"
    "border:1px solid rgba(128,128,128,.4);border-radius:6px;"
    "font:14px/1.5 system-ui,sans-serif;overflow-wrap:anywhere"
)
_LINE = "display:flex;gap:1.5em;justify-content:space-between"
# The marks that fold stand outside, so that names and figures of all lines are aligned.
_FOLD = "cursor:pointer;display:list-item;list-style-position:outside;margin-left:1.2em"
_LEAF = f"{_LINE};margin-left:1.2em"
_INSIDE = "margin-left:.3em;padding-left:.9em;border-left:1px solid rgba(128,128,128,.4)"
_FIGURE = "white-space:nowrap;font-variant-numeric:tabular-nums"
_WARNING = "white-space:nowrap;font-weight:600;color:#e03131"
_QUIET = "opacity:.7"
_SMALL = "margin:.6em 0 0;font-size:.9em;opacity:.7"
_BADGE = (
    "margin-left:.4em;padding:0 .4em;border:1px solid rgba(128,128,128,.5);border-radius:4px;"
    "font-size:.85em;white-space:nowrap"
)
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
    return f'<div style="{_BOX}">{"".join(pieces)}</div>'


def _heading(view: ReportView) -> str:
    spent = f", spent {escape(view.spent)}" if view.spent else ""
    return (
        f'<div style="font-weight:600">{_label(view.top)}</div>'
        f"<div>{_figure(view.top.figure)} at δ = {escape(view.delta)}{spent} "
        f'<span style="{_QUIET}">({escape(view.neighbouring)})</span></div>'
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
        f'<div style="{_INSIDE}">{below}</div></details>'
    )


def _label(row: Row) -> str:
    remark = f' <span style="{_QUIET}">({escape(row.remark)})</span>' if row.remark else ""
    bound = f'<span style="{_BADGE}">{escape(row.bound)}</span>' if row.bound else ""
    return escape(row.name) + remark + bound


def _figure(figure: str) -> str:
    style = _WARNING if figure == NOT_PRIVATE else _FIGURE
    return f'<span style="{style}">{escape(figure)}</span>'


def _small(content: str) -> str:
    return f'<div style="{_SMALL}">{content}</div>'
