"""A search's plan as HTML for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from skdptune._html import GREY_LINE, box, title

_TABLE = "font:inherit;margin:.5em 0;border-collapse:collapse;font-variant-numeric:tabular-nums"
_CELL = f"padding:.2em .7em;border-bottom:{GREY_LINE};background:none;color:inherit"
_WORDS, _NUMBER = "text-align:left", "text-align:right;white-space:nowrap"
_NOTE = "font-size:.9em;opacity:.8"


def to_html(
    head: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    notes: Sequence[str],
    findings: str,
) -> str:
    """Return a table whose first row is the search itself, with a line above and notes below.

    Parameters
    ----------
    head : str
        The line above.
    columns : sequence of str
        Titles; the first and the last column hold words, the others numbers.
    rows : sequence of sequences of str
        Cells, in as many columns.
    notes : sequence of str
        Sentences below the table.
    findings : str
        HTML of the findings, which comes last.
    """
    titles = _row("th", columns, 600)
    # The search itself stands out among the others.
    body = "".join(_row("td", row, 400 if place else 600) for place, row in enumerate(rows))
    below = "".join(f'<div style="{_NOTE}">{escape(note)}</div>' for note in notes)
    table = f'<table style="{_TABLE}"><thead>{titles}</thead><tbody>{body}</tbody></table>'
    content = f"{title(escape(head))}{table}{below}{findings}"
    return box(content, width="75em", style="overflow-x:auto")


def _row(tag: str, cells: Sequence[str], weight: int) -> str:
    last = len(cells) - 1
    pieces = [
        f'<{tag} style="{_CELL};font-weight:{weight};'
        f'{_WORDS if place in (0, last) else _NUMBER}">{escape(cell)}</{tag}>'
        for place, cell in enumerate(cells)
    ]
    return f'<tr style="background:none">{"".join(pieces)}</tr>'
