"""A search's plan as HTML for notebooks: one self-contained fragment, without scripts.

Colours are the surrounding page's own, with shades of grey that show on light and on dark.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

_BOX = (
    "box-sizing:border-box;max-width:75em;padding:.8em 1em;text-align:left;overflow-x:auto;"
    "border:1px solid rgba(128,128,128,.4);border-radius:6px;"
    "font:14px/1.5 system-ui,sans-serif"
)
_TABLE = "font:inherit;margin:.5em 0;border-collapse:collapse;font-variant-numeric:tabular-nums"
_CELL = (
    "padding:.2em .7em;border-bottom:1px solid rgba(128,128,128,.4);background:none;color:inherit"
)
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
    return (
        f'<div style="{_BOX}"><div style="font-weight:600">{escape(head)}</div>'
        f'<table style="{_TABLE}"><thead>{titles}</thead><tbody>{body}</tbody></table>'
        f"{below}{findings}</div>"
    )


def _row(tag: str, cells: Sequence[str], weight: int) -> str:
    last = len(cells) - 1
    pieces = [
        f'<{tag} style="{_CELL};font-weight:{weight};'
        f'{_WORDS if place in (0, last) else _NUMBER}">{escape(cell)}</{tag}>'
        for place, cell in enumerate(cells)
    ]
    return f'<tr style="background:none">{"".join(pieces)}</tr>'
