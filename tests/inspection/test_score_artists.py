"""Cells, frames, rings and levels, read back from matplotlib's artists."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from skdptune.inspection import _grid_scores as artists
from skdptune.inspection._score_table import ScoreTable
from tests.inspection.pictures import drawing

matplotlib = pytest.importorskip("matplotlib")
pytest.importorskip("matplotlib.pyplot")
TABLE = ScoreTable.of([{"C": float(c), "epochs": e} for c in range(30) for e in (5, 10)])


@pytest.fixture
def ax() -> Iterator[Any]:
    with drawing():
        yield matplotlib.pyplot.subplots()[1]


def test_cells_without_a_score_stay_empty(ax: Any) -> None:
    cells = np.array([[0.0, np.nan], [0.5, 1.0]])
    image = ax.imshow(cells, cmap="cividis")
    artists.write_cells(ax, image, cells, 2)
    found = {text.get_text(): text.get_color() for text in ax.texts}
    # White on dark cells, black on light ones.
    assert found == {"0.00": "white", "0.50": "black", "1.00": "black"}


def test_many_values_are_named_at_regular_distances(ax: Any) -> None:
    artists.name_values(ax.xaxis, TABLE, "C")
    assert [label.get_text() for label in ax.get_xticklabels()] == [
        str(place) for place in range(0, 30, 3)
    ]
    assert ax.get_xlabel() == "C"


def test_what_is_held_is_said() -> None:
    assert artists.held_in_words(TABLE, 3, ["C"]) == "At epochs = 10."
    assert artists.held_in_words(TABLE, 3, ["C", "epochs"]) == ""


def test_frames_rings_and_levels_are_where_they_belong(ax: Any) -> None:
    assert artists.draw_frame(ax, 2, 1).get_bbox().bounds == (1.5, 0.5, 1.0, 1.0)
    ring = artists.draw_ring(ax, 1.0, 0.5, "chosen")
    assert (ring.get_xdata()[0], ring.get_ydata()[0]) == (1.0, 0.5)
    level = artists.draw_level(ax, 0.7, 0.1, "own", is_strong=True)
    assert level.get_ydata()[0] == 0.7
    assert len(ax.patches) == 3
    artists.draw_level(ax, 0.7, 0.0, "own")
    assert len(ax.patches) == 3


@pytest.mark.parametrize("across", [False, True])
def test_bars_are_one_deviation_to_each_side(ax: Any, across: bool) -> None:
    scores, places = np.array([0.5, 0.7]), np.array([1.0, 2.0])
    pair = (scores, places) if across else (places, scores)
    drawn = artists.draw_scores(ax, *pair, np.array([0.1, 0.2]), "one", across=across)
    (bars,) = drawn.lines[2]
    ends = [segment[:, 0 if across else 1] for segment in bars.get_segments()]
    assert [(float(low), float(high)) for low, high in ends] == [
        pytest.approx((0.4, 0.6)),
        pytest.approx((0.5, 0.9)),
    ]
    assert ax.get_legend_handles_labels()[1] == ["one"]
