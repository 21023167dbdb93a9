"""The look of what notebooks show: self-contained fragments of HTML, without scripts.

Colours are the surrounding page's own, with shades of grey, and one red, that show on light and
on dark.
"""

from __future__ import annotations

GREY_LINE = "1px solid rgba(128,128,128,.4)"
FONT = "font:14px/1.5 system-ui,sans-serif"
RED = "font-weight:600;color:#e03131"
QUIET = "opacity:.7"
# What is folded out, and a word in a frame.
INSIDE = f"margin-left:.3em;padding-left:.9em;border-left:{GREY_LINE}"
BADGE = "padding:0 .4em;border:1px solid rgba(128,128,128,.5);border-radius:4px;font-size:.85em"


def box(content: str, *, width: str, style: str = "overflow-wrap:anywhere") -> str:
    """Return a frame around HTML.

    Parameters
    ----------
    content : str
        HTML, in which all text is escaped.
    width : str
        The largest width, in CSS.
    style : str, default="overflow-wrap:anywhere"
        What this frame has beside the common style.
    """
    look = (
        f"box-sizing:border-box;max-width:{width};padding:.8em 1em;text-align:left;"
        f"border:{GREY_LINE};border-radius:6px;{FONT};{style}"
    )
    return f'<div style="{look}">{content}</div>'


def title(content: str) -> str:
    """Return the first line of a frame."""
    return f'<div style="font-weight:600">{content}</div>'
