"""What the pictures of the papers' figures share: colours, panels and small files."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from PIL import Image

matplotlib.use("Agg")
from matplotlib import pyplot as plt  # noqa: E402
from matplotlib import ticker  # noqa: E402

FOLDER = Path(__file__).parents[1] / "docs" / "images" / "papers"
# Okabe and Ito's colours; dashes and markers differ as well, for prints in grey.
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILION, PURPLE = "#0072B2", "#D55E00", "#CC79A7"
STYLES: dict[str, tuple[str, str, Any]] = {
    "alone": ("0.45", "x", ":"),
    "lower bound": ("0.45", "", ":"),
    "envelope": (BLACK, "o", "-"),
    "profile": (BLUE, "s", (0, (5, 1.5))),
    "rdp": (VERMILION, "v", (0, (3, 1, 1, 1))),
    "composition": (ORANGE, "X", (0, (1, 1))),
    "two thresholds": (GREEN, "^", (0, (6, 2, 1, 2))),
    "third": (PURPLE, "D", (0, (4, 1, 1, 1, 1, 1))),
    "fourth": (SKY, "P", (0, (2, 2))),
    # Ways to tune: a marker for each way, a colour and dashes for each bound.
    "baseline, Rényi": (VERMILION, "v", (0, (3, 1, 1, 1))),
    "variant 2, Rényi": (ORANGE, "s", (0, (5, 1.5))),
    "variant 1, Rényi": (GREEN, "^", (0, (6, 2, 1, 2))),
    "baseline, envelope": (PURPLE, "D", (0, (1, 1))),
    "variant 2, envelope": (BLUE, "P", (0, (2, 2))),
    "variant 1, envelope": (BLACK, "o", "-"),
}
WIDTH, HEIGHT, DPI, COLOURS = 3.9, 3.0, 120, 128


def series(name: str) -> dict[str, Any]:
    """Return how a line looks."""
    colour, marker, dashes = STYLES[name]
    looks = {"color": colour, "marker": marker, "linestyle": dashes}
    return looks | {"linewidth": 2.0 if dashes == "-" else 1.5, "markersize": 5}


def panels(
    count: int, xlabel: str, ylabel: str, rows: int = 1, width: float = WIDTH
) -> tuple[Any, list[Any]]:
    """Return a figure with panels next to each other, in equally long rows."""
    columns = count // rows
    size = (width * max(columns, 1.4), HEIGHT * rows)
    figure, grid = plt.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False)
    for number, axes in enumerate(grid.flat):
        axes.set_xlabel(xlabel, fontsize=9)
        if number % columns == 0:
            axes.set_ylabel(ylabel, fontsize=9)
        axes.tick_params(labelsize=8)
        axes.grid(color="0.9", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    return figure, list(grid.flat)


def log_ticks(axis: Any, values: Sequence[float]) -> None:
    """Set a logarithmic scale with these ticks, as plain numbers."""
    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    axis.set_ticks(values, [f"{value:g}" for value in values])
    axis.set_minor_locator(ticker.NullLocator())


def save(figure: Any, grid: list[Any], file: Path, columns: int = 3) -> None:
    """Write a small picture with one legend below all panels, and say where it is."""
    handles: dict[str, Any] = {}
    for axes in np.ravel(grid):
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    figure.legend(handles.values(), handles, loc="outside lower center", ncols=columns, fontsize=8)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(buffer := io.BytesIO(), dpi=DPI, format="png")
    plt.close(figure)
    # A palette of the commonest colours keeps greys grey, and files small.
    image = Image.open(buffer).convert("RGB")
    image.quantize(COLOURS, dither=Image.Dither.NONE).save(file, optimize=True)
    print(f"\nWrote {file.name}, {file.stat().st_size / 1024:.0f} kB")
