"""What is drawn of a table of scores: cells, frames, rings and levels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdptune.inspection._plotting import ink, ink_on, quiet
from skdptune.inspection._score_table import ScoreTable, shown_candidate, shown_value

# Columns and rows whose scores can be written into their cells, and names along an axis.
MOST_WRITTEN = 12
# Sizes of the ring around a marker, among others and in legends.
_RING, LEGEND_RING = 15.0, 9.0


def write_cells(ax: Any, image: Any, cells: NDArray[np.float64], digits: int) -> None:
    """Write scores into their cells of an image, in black or white."""
    for (row, column), score in np.ndenumerate(cells):
        if math.isfinite(score):
            colour = image.cmap(image.norm(score))[:3]
            look = {"ha": "center", "va": "center", "fontsize": "small"}
            ax.text(column, row, f"{score:.{digits}f}", color=ink_on(colour), **look)


def name_values(axis: Any, table: ScoreTable, name: str) -> None:
    """Write the values of a parameter along an axis, at 0, 1, 2, ..."""
    labels = [shown_value(value) for value in table.values[name]]
    step = math.ceil(len(labels) / MOST_WRITTEN)
    axis.set_ticks(range(0, len(labels), step), labels[::step])
    axis.set_label_text(name)


def held_in_words(table: ScoreTable, middle: int, names: Sequence[str]) -> str:
    """Return a sentence on the parameters that are not drawn over; empty if there are none."""
    others = [name for name in table.values if name not in names]
    return f"At {shown_candidate(table.candidates[middle], others)}." if others else ""


def draw_frame(ax: Any, column: int | None, row: int | None) -> Any:
    """Draw a frame around a cell, black on white, that shows on all colours; return it."""
    from matplotlib.patches import Rectangle

    corner, frame = ((column or 0) - 0.5, (row or 0) - 0.5), None
    for colour, width in (("white", 5.0), ("black", 2.2)):
        frame = Rectangle(corner, 1.0, 1.0, fill=False, edgecolor=colour, linewidth=width)
        frame.set_clip_on(False)
        ax.add_patch(frame)
    return frame


def draw_scores(
    ax: Any,
    x: Any,
    y: Any,
    noise: Any,
    label: str | None,
    *,
    across: bool = False,
    **look: Any,
) -> Any:
    """Draw scores with bars of one standard deviation of their noise, and return the artists.

    Parameters
    ----------
    ax : matplotlib Axes
    x, y : array-like
        Places of the markers.
    noise : array-like or None
        Standard deviations.
    label : str or None
    across : bool, default=False
        Whether scores are along the horizontal axis.
    **look
        As for ``ax.plot``.
    """
    bars = {"elinewidth": 1.0, "capsize": 2.5, "capthick": 1.0}
    drawn = ax.errorbar(x, y, **{"xerr" if across else "yerr": noise}, **bars, **look)
    if label is not None:
        # Of the line alone, so that legends have all in the order in which it was drawn.
        drawn.lines[0].set_label(label)
    return drawn


def draw_ring(ax: Any, x: float, y: float, label: str) -> Any:
    """Draw a ring around a marker, and return it."""
    look = {"markerfacecolor": "none", "markeredgecolor": ink(), "markeredgewidth": 1.6}
    (ring,) = ax.plot(
        x, y, linestyle="none", marker="o", markersize=_RING, label=label, zorder=5, **look
    )
    return ring


def draw_level(
    ax: Any, score: float, spread: float, label: str, *, is_strong: bool = False
) -> Any:
    """Draw a score as a line across the axes, with its noise as a band; return the line."""
    if spread:
        band = {"color": quiet(ax), "alpha": 0.15, "linewidth": 0.0}
        ax.axhspan(score - spread, score + spread, zorder=0, **band)
    look = {"color": ink(), "linewidth": 1.8} if is_strong else {"color": quiet(ax)}
    return ax.axhline(score, linestyle="--", label=label, zorder=1, **look)
