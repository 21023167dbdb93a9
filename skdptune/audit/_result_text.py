"""What all results of audits say alike: the bound, and their rows as text and as HTML."""

from __future__ import annotations

import math
from collections.abc import Iterable
from html import escape

from skdptune._formatting import shown_number
from skdptune._html import QUIET, RED, box, title

_WIDTH = 12
_CELL = "padding-right:1.5em;text-align:left"


def shown_bound(value: float) -> str:
    """Show a lower bound with three decimals, rounded down."""
    return "inf" if math.isinf(value) else f"{math.floor(value * 1e3) / 1e3:.3f}"


def bound_in_words(epsilon_lower: float, claimed_epsilon: float, delta: str = "") -> str:
    """Return the sentence on a lower bound beside what is claimed.

    Parameters
    ----------
    epsilon_lower, claimed_epsilon : float
    delta : str, default=""
        Where they are compared, as it is to be shown; left out where empty.
    """
    place = f"at δ = {delta}, " if delta else ""
    return (
        f"{place}ε is at least {shown_bound(epsilon_lower)} where "
        f"{shown_number(claimed_epsilon)} is claimed"
    )


def as_text(head: str, verdict: str, rows: Iterable[tuple[str, str]]) -> str:
    """Return what is printed: what was audited, the verdict, and how it was found."""
    lines = [f"  {name + ':':<{_WIDTH}}{text}" for name, text in rows]
    return "\n".join([head, f"  {verdict}", *lines])


def as_html(
    head: str, verdict: str, rows: Iterable[tuple[str, str]], *, is_refuted: bool = False
) -> str:
    """Return the same for notebooks, in colours that suit light and dark pages."""
    table = "".join(
        f'<tr><td style="{QUIET};{_CELL}">{escape(name)}</td>'
        f'<td style="text-align:left">{escape(text)}</td></tr>'
        for name, text in rows
    )
    look = f"margin:.3em 0;{RED}" if is_refuted else "margin:.3em 0"
    return box(
        f'{title(escape(head))}<div style="{look}">{escape(verdict)}</div><table>{table}</table>',
        width="46em",
    )
