"""Shared style of the HTML shown in notebooks: self-contained fragments without scripts.

Text has the colours of the surrounding page. The greys and the one red are readable on light and
on dark backgrounds.
"""

from __future__ import annotations

GREY_LINE = "1px solid rgba(128,128,128,.4)"
FONT = "font:14px/1.5 system-ui,sans-serif"
RED = "font-weight:600;color:#e03131"
QUIET = "opacity:.7"
# Styles of the content of a folded section, and of a framed word.
INSIDE = f"margin-left:.3em;padding-left:.9em;border-left:{GREY_LINE}"
BADGE = "padding:0 .4em;border:1px solid rgba(128,128,128,.5);border-radius:4px;font-size:.85em"


def box(content: str, *, width: str, style: str = "overflow-wrap:anywhere") -> str:
    """Return HTML in a frame.

    Parameters
    ----------
    content : str
        HTML in which all text is already escaped.
    width : str
        Maximum width, as a CSS value.
    style : str, default="overflow-wrap:anywhere"
        Further CSS for this frame, in addition to the common style.
    """
    look = (
        f"box-sizing:border-box;max-width:{width};padding:.8em 1em;text-align:left;"
        f"border:{GREY_LINE};border-radius:6px;{FONT};{style}"
    )
    return f'<div style="{look}">{content}</div>'


def title(content: str) -> str:
    """Return the title line of a frame."""
    return f'<div style="font-weight:600">{content}</div>'
