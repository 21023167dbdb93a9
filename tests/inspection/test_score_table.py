"""Grids of candidates against enumeration."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skdptune.inspection._score_table import (
    ABSENT,
    ScoreTable,
    key_of,
    shown_candidate,
    shown_value,
    wants_log,
)

OWN: dict[str, Any] = {"C": None, "epochs": 7}


def product(**values: list[Any]) -> list[dict[str, Any]]:
    """Return all combinations of values."""
    return [dict(zip(values, each, strict=True)) for each in itertools.product(*values.values())]


@given(st.integers(1, 4), st.integers(1, 4), st.randoms())
def test_all_combinations_are_a_grid_in_any_order(n_c: int, n_epochs: int, random: Any) -> None:
    candidates = product(C=[10.0**k for k in range(n_c)], epochs=list(range(n_epochs)))
    random.shuffle(candidates)
    table = ScoreTable.of(candidates)
    assert table.is_grid == (len(candidates) > 1)
    assert table.outside is None
    for name, count in (("C", n_c), ("epochs", n_epochs)):
        assert (name in table.values) == (count > 1)
        assert table.values.get(name, []) == sorted(table.values.get(name, []))


def test_the_estimators_own_values_are_off_the_grid() -> None:
    grid = product(C=[0.1, 1.0], epochs=[5, 10])
    table = ScoreTable.of([OWN, *grid])
    assert (table.is_grid, table.outside) == (True, 0)
    assert table.values == {"C": [0.1, 1.0], "epochs": [5, 10]}
    assert ScoreTable.of([*grid, OWN]).is_grid is False
    # Of one parameter, what is no number.
    one = ScoreTable.of([{"C": None}, {"C": 1.0}, {"C": 0.1}])
    assert (one.is_grid, one.outside, one.values) == (True, 0, {"C": [0.1, 1.0]})
    assert ScoreTable.of([{"C": 5.0}, {"C": 1.0}, {"C": 0.1}]).outside is None


def test_lists_with_gaps_or_repetitions_are_no_grid() -> None:
    grid = product(C=[0.1, 1.0, 2.0], epochs=[5, 10])
    assert not ScoreTable.of(grid[:-1]).is_grid
    assert not ScoreTable.of([*grid[:2], *grid[:2]]).is_grid
    assert not ScoreTable.of([{"C": 1.0}]).is_grid


def test_a_slice_holds_the_other_parameters() -> None:
    grid = product(C=[0.1, 1.0], epochs=[5, 10], solver=["a", "b"])
    table = ScoreTable.of(grid)
    found = [grid[place] for place in table.beside(0, ["C"])]
    assert found == [{"C": c, "epochs": 5, "solver": "a"} for c in (0.1, 1.0)]
    assert table.names == ["C", "epochs", "solver"]


def test_values_of_all_kinds_have_a_place_and_words() -> None:
    assert key_of(1) == key_of(1.0) == key_of(np.float64(1.0)) != key_of(True)
    assert key_of(None) != key_of("None")
    assert [shown_value(v) for v in (1e-5, 3, True, None, "a" * 30, ABSENT)] == [
        *("1e-05", "3", "True", "None", "a" * 15 + "…", "not set")
    ]
    assert shown_candidate({"C": 0.1}, ["C", "epochs"]) == "C = 0.1, epochs = not set"
    table = ScoreTable.of([{"C": 1.0}, {"epochs": 5}])
    assert table.place(1, "C") == 1


@pytest.mark.parametrize(
    ("values", "log"), [([1.0, 30.0], True), ([1.0, 3.0], False), ([0.0, 30.0], False)]
)
def test_wide_ranges_of_positive_numbers_are_logarithmic(values: Any, log: bool) -> None:
    assert wants_log(values) is log
