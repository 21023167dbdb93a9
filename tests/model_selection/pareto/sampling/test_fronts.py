"""Dominance and hypervolume, against brute force."""

from __future__ import annotations

import itertools
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("moocore")

from skdptune.model_selection._pareto._surrogates import (
    LEAST_SHARE,
    front,
    hypervolume,
    hypervolume_history,
    non_dominated,
    on_log_scale,
)

SIDE = 6


def clouds(dimensions: int) -> st.SearchStrategy[list[tuple[int, ...]]]:
    """Small integers: many ties, and a volume that can be counted."""
    point = st.tuples(*[st.integers(0, SIDE + 1)] * dimensions)
    return st.lists(point, max_size=12)


def dominates(left: tuple[int, ...], right: tuple[int, ...]) -> bool:
    return all(a <= b for a, b in zip(left, right, strict=True)) and left != right


def cells_below(points: list[tuple[int, ...]], dimensions: int) -> int:
    """Count the unit cells of the cube whose lower corner some point dominates."""
    corners = itertools.product(range(SIDE), repeat=dimensions)
    return sum(any(p == c or dominates(p, c) for p in points) for c in corners)


def as_array(points: list[tuple[int, ...]], dimensions: int) -> np.ndarray:
    return np.array(points, dtype=float).reshape(len(points), dimensions)


@pytest.mark.parametrize("dimensions", [2, 3])
def test_dominance_is_brute_force(dimensions: int) -> None:
    @given(clouds(dimensions))
    def check(points: list[tuple[int, ...]]) -> None:
        expected = [
            not any(dominates(other, point) for other in points) and point not in points[:place]
            for place, point in enumerate(points)
        ]
        assert non_dominated(as_array(points, dimensions)).tolist() == expected

    check()


@pytest.mark.parametrize("dimensions", [2, 3])
def test_hypervolume_is_a_count_of_cells(dimensions: int) -> None:
    @given(clouds(dimensions))
    def check(points: list[tuple[int, ...]]) -> None:
        volume = hypervolume(as_array(points, dimensions), (SIDE,) * dimensions)
        assert volume == pytest.approx(cells_below(points, dimensions))

    check()


@given(clouds(2))
def test_history_is_the_hypervolume_of_each_beginning(points: list[tuple[int, ...]]) -> None:
    array = as_array(points, 2)
    expected = [hypervolume(array[: n + 1], (SIDE, SIDE)) for n in range(len(array))]
    assert hypervolume_history(array, (SIDE, SIDE)) == pytest.approx(expected)


def test_failed_and_infinite_points_add_nothing() -> None:
    points = [[np.inf, 0.1], [np.nan, np.nan], [4.0, 0.5], [np.inf, 0.0]]
    assert hypervolume_history(points, (10.0, 1.0)) == pytest.approx([0.0, 0.0, 3.0, 3.0])


@given(clouds(2))
def test_history_on_the_log_scale_is_an_area_of_strips(points: list[tuple[int, ...]]) -> None:
    array = as_array(points, 2) + 1.0
    found = hypervolume_history(array, (SIDE, SIDE), "log")
    for place, volume in enumerate(found):
        inside = array[: place + 1]
        inside = inside[(inside < SIDE).all(axis=1)]
        # Left to right: of each strip the width in log epsilon times the height above the best.
        ends = np.append(np.unique(inside[:, 0]), SIDE)
        heights = [SIDE - inside[inside[:, 0] <= end, 1].min() for end in ends[:-1]]
        assert volume == pytest.approx((np.diff(np.log(ends)) * heights).sum())


def test_log_scale_keeps_volumes_finite() -> None:
    history = hypervolume_history([[np.nan, np.nan], [0.0, 0.5], [1e-9, 0.5]], (10.0, 1.0), "log")
    assert history == pytest.approx([0.0, -0.5 * np.log(LEAST_SHARE), -0.5 * np.log(LEAST_SHARE)])
    points = np.array([[np.inf, 0.1], [np.nan, 0.2]])
    assert np.isinf(on_log_scale(points, (10.0, 1.0))[0, 0])
    assert points[0, 0] == np.inf


def test_front_rises_in_its_first_coordinate() -> None:
    points = [[3.0, 1.0], [1.0, 3.0], [2.0, 2.0], [2.0, 2.5], [1.0, 3.0]]
    assert front(points).tolist() == [[1.0, 3.0], [2.0, 2.0], [3.0, 1.0]]


def test_points_must_be_rows() -> None:
    with pytest.raises(ValueError, match="rows of coordinates; got 1 dimensions"):
        non_dominated([1.0, 2.0])


def test_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "moocore", None)
    with pytest.raises(ModuleNotFoundError, match=r"moocore.*pip install 'skdptune\[pareto\]'"):
        hypervolume([[1.0, 1.0]], (2.0, 2.0))
