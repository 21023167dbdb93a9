"""Points of fronts against brute force."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skdptune.inspection._pareto_front import (
    best_of,
    front_of,
    pairs_of,
    reference_of,
    study_epsilon_of,
)

whole = st.integers(0, 6)


@given(st.lists(st.tuples(whole, whole), max_size=12))
def test_best_are_those_that_none_is_better_than(points: list[tuple[int, int]]) -> None:
    found = best_of(np.array(points, dtype=float).reshape(-1, 2))
    exact = {
        (x, y)
        for x, y in points
        if not any(a <= x and b <= y and (a, b) != (x, y) for a, b in points)
    }
    assert [tuple(point) for point in found.tolist()] == sorted(exact)


def test_infinite_epsilons_are_on_no_front() -> None:
    points = np.array([[np.inf, 0.0], [1.0, 0.5]])
    assert best_of(points).tolist() == [[1.0, 0.5]]
    assert best_of(np.empty((0, 2))).shape == (0, 2)


@pytest.mark.parametrize("make", [dict, pd.DataFrame])
def test_rows_without_both_numbers_are_left_out(make: Any) -> None:
    table = make({"epsilon": [1.0, np.nan, np.inf, 2.0], "error": [0.5, 0.1, 0.2, np.nan]})
    assert pairs_of(table).tolist() == [[1.0, 0.5]]
    assert pairs_of(make({"epsilon": [], "error": []})).shape == (0, 2)


def search(**more: Any) -> Any:
    table = {"epsilon": [1.0, 2.0], "error": [0.5, 0.2]}
    sides = {"mean": np.array([[1.0, 0.5, 3.0], [2.0, 0.2, 1.0]])}
    return SimpleNamespace(
        pareto_front_=table,
        evaluations_=table,
        fronts_={**sides, **more.pop("fronts", {})},
        **more,
    )


def test_band_of_three_objectives_is_their_lower_edge() -> None:
    best = np.array([[1.0, 0.4, 9.0], [1.5, 0.6, 0.1], [2.0, 0.1, 1.0]])
    worst = np.array([[1.0, 0.6, 9.0], [2.0, 0.3, 1.0]])
    front = front_of(search(fronts={"best": best, "worst": worst}), "one")
    assert front.band is not None
    assert front.band[0].tolist() == [[1.0, 0.4], [2.0, 0.1]]
    assert front.band[1].tolist() == [[1.0, 0.6], [2.0, 0.3]]
    assert front_of(search(fronts={"best": worst, "worst": worst}), "one").band is None
    assert front_of(search(), "one").band is None


def test_reference_point_and_cost() -> None:
    assert reference_of(search()) is None
    assert reference_of(search(reference_point=(10, 1, 3))) == (10.0, 1.0)
    assert study_epsilon_of([search(release=3.0)]) == 3.0
    assert study_epsilon_of([search()]) is None
    assert study_epsilon_of([search(release=3.0), search(release=3.0)]) is None


def test_what_is_no_search_is_refused() -> None:
    with pytest.raises(TypeError, match=r"got SimpleNamespace for 'x', without evaluations_"):
        front_of(SimpleNamespace(pareto_front_=1), "x")
