"""Compares the drawing of a display with a picture that a person has checked.

A test draws inside `drawing` and calls `check_picture(figure, name)`, or takes both from the
fixture ``check_picture``. The pictures are in ``baseline``: small, drawn by Agg in matplotlib's
own style and font. Letters move from one version to the next, so others than ours skip.

What changes a picture on purpose draws it again, and its author looks at the new one::

    SKDPTUNE_DRAW_BASELINE=1 python -m pytest -n 0 tests/inspection
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

BASELINE = Path(__file__).parent / "baseline"
# Major and minor of the version in constraints.txt and constraints-newest.txt.
MATPLOTLIB = "3.11"
DRAW = "SKDPTUNE_DRAW_BASELINE"
DPI = 50
# Root of the mean squared difference of a pixel's channels, from 0 to 255. A thin dotted line, or
# one marker, makes more than 2; the same matplotlib on several machines makes less than 1.
TOLERANCE = 1.5


@contextmanager
def drawing() -> Iterator[None]:
    """Draw in matplotlib's own style, whatever the user's is, and close the figures at the end."""
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.use("Agg")
        try:
            yield
        finally:
            matplotlib.pyplot.close("all")


def check_picture(figure: Any, name: str, folder: Path, *, tolerance: float = TOLERANCE) -> None:
    """Fail unless a figure looks like the picture of that name; skip with another matplotlib.

    Parameters
    ----------
    figure : matplotlib Figure
        As a display drew it.
    name : str
        Of the picture, without its ending.
    folder : Path
        Where the picture drawn and the difference go, for whoever looks into a failure.
    tolerance : float, default=TOLERANCE
        The largest difference that counts as none.
    """
    matplotlib = pytest.importorskip("matplotlib")
    version = ".".join(matplotlib.__version__.split(".")[:2])
    if version != MATPLOTLIB:
        pytest.skip(f"pictures are of matplotlib {MATPLOTLIB}, and this is {version}")
    drawn = folder / f"{name}.png"
    # Without the version of matplotlib in the file, which would change with each.
    figure.savefig(drawn, dpi=DPI, format="png", metadata={"Software": None})
    baseline = BASELINE / drawn.name
    if os.environ.get(DRAW):
        BASELINE.mkdir(exist_ok=True)
        baseline.write_bytes(drawn.read_bytes())
    again = (
        f"If the picture drawn, {drawn}, is right, make it the baseline, and look at it: "
        f"{DRAW}=1 python -m pytest -n 0 tests/inspection -k <this test>"
    )
    assert baseline.is_file(), f"There is no picture {baseline}. {again}"
    expected, found = pixels(baseline), pixels(drawn)
    assert expected.shape == found.shape, (
        f"The size of {name} changed from {expected.shape} to {found.shape}. {again}"
    )
    distance = difference(expected, found)
    if distance > tolerance:
        apart = folder / f"{name}-difference.png"
        matplotlib.image.imsave(apart, 1.0 - np.abs(expected - found) / 255.0)
        pytest.fail(
            f"{name} looks different: {distance:.2f} > {tolerance:g}, see {apart}. {again}"
        )


def pixels(path: Path) -> Any:
    """Return a picture's red, green and blue, from 0 to 255, on white."""
    from matplotlib.image import imread

    picture = np.asarray(imread(path), dtype=np.float64)
    if picture.shape[2] == 4:
        alpha = picture[..., 3:]
        picture = alpha * picture[..., :3] + 1.0 - alpha
    return 255.0 * picture


def difference(expected: Any, found: Any) -> float:
    """Return the root of the mean squared difference of two pictures of one size."""
    return float(np.sqrt(np.mean((expected - found) ** 2)))


def check_grey(ax: Any) -> None:
    """Fail unless the lines with names differ in dashes or marker, whatever their colours."""
    lines = [line for line in ax.get_lines() if not line.get_label().startswith("_")]
    looks = [(line._unscaled_dash_pattern, line.get_marker()) for line in lines]
    assert len(set(map(str, looks))) == len(lines), [line.get_label() for line in lines]
