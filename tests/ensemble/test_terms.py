"""The cell of a record follows from that record and public parameters alone."""

from __future__ import annotations

import numpy as np
import pytest

from skdptune.ensemble._terms import terms_of_bounds, terms_of_schema
from skdptune.preprocessing import Schema

SCHEMA = Schema(
    {
        "age": {"range": (0, 100), "missing": True},
        "pay": {"range": (0, 1e6), "scale": "log"},
        "sector": ["farm", "mill"],
        "name": "drop",
    }
)


def as_cells(values):
    made = np.empty(len(values), dtype=object)
    made[:] = values
    return made


def test_numbers_are_in_equal_parts_of_their_range():
    (term,) = terms_of_bounds((0, 10), ["x"], 5)
    values = np.array([-3.0, 0.0, 1.999, 2.0, 9.999, 10.0, 1e300])
    assert term.cells(values).tolist() == [0, 0, 0, 1, 4, 4, 4]
    assert [term.value_at(end) for end in range(6)] == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]


def test_columns_may_have_bounds_of_their_own():
    first, second = terms_of_bounds(([0, -1], [10, 1]), ["x", "y"], 4)
    assert first.cells(np.array([5.0])).tolist() == second.cells(np.array([0.0])).tolist() == [2]
    with pytest.raises(ValueError, match="bounds must be one number, or one per feature"):
        terms_of_bounds(([0, -1], [10, 1]), ["x"], 4)


def test_gaps_have_a_cell_of_their_own_where_they_are_announced():
    age, pay, sector = terms_of_schema(SCHEMA, 4)
    assert age.n_cells == 5
    assert age.cells(as_cells([None, "word", 10, 99])).tolist() == [4, 4, 0, 3]
    # Below all numbers.
    assert age.order.tolist() == [4, 0, 1, 2, 3]
    assert pay.n_cells == 4
    assert pay.cells(as_cells([None, 0, 1e6])).tolist() == [2, 0, 3]
    assert pay.order.tolist() == [0, 1, 2, 3]
    assert sector.cells(as_cells(["mill", "farm", "office", None])).tolist() == [1, 0, 2, 3]


@pytest.mark.parametrize(
    "value", [None, "farm", "office", 3, -1.0, np.inf, float("nan"), object()]
)
def test_one_record_changes_one_count_by_one(value):
    # Theorem B1: whatever a cell of the table holds.
    for term in terms_of_schema(SCHEMA, 8):
        others = as_cells([1, None, "mill", 50.0, "farm"])
        before = np.bincount(term.cells(others), minlength=term.n_cells)
        after = np.bincount(term.cells(as_cells([*others, value])), minlength=term.n_cells)
        assert after.size == before.size == term.n_cells
        assert np.abs(after - before).sum() == (after - before).max() == 1


def test_order_is_one_of_all_cells():
    for term in (*terms_of_schema(SCHEMA, 8), *terms_of_bounds((0, 1), ["x"], 8)):
        assert sorted(term.order.tolist()) == list(range(term.n_cells))
