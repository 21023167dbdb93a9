"""Columns of a schema, and the features that each becomes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from skdptune.preprocessing import CategoryColumn, NumberColumn
from skdptune.preprocessing._table._columns import DroppedColumn, _hats
from tests.base.nasty_records import CELLS, as_column

COLUMNS = [
    NumberColumn("n", -3.0, 5.0),
    NumberColumn("n", 0.0, 5.0, is_log=True, gaps=(-1, 4), has_gaps=True),
    NumberColumn("n", 0.5, 5e9, is_log=True, has_gaps=True),
    NumberColumn("n", 0.0, 20_000.0, is_date=True, gaps=("1999-09-09",), has_gaps=True),
    CategoryColumn("c", ("a", "b")),
    CategoryColumn("c", ("a", "b"), ("?",), True, True),
    CategoryColumn("c", (1, "b", 2.5), (), True),
    CategoryColumn("c", ("a",), has_other=True),
    CategoryColumn("c", (False, True), is_boolean=True, has_gaps=True),
]
IDS = [str(place) for place in range(len(COLUMNS))]


@pytest.mark.parametrize("n_knots", [None, 2, 7])
@pytest.mark.parametrize("column", COLUMNS, ids=IDS)
def test_features_of_a_cell_are_bounded(column, n_knots) -> None:
    # Theorem R7.
    cells = as_column([*CELLS, *np.linspace(-10, 10, 41).tolist(), "1999-09-09", "2001-01-01"])
    block = column.encoded(cells, n_knots)
    assert block.shape == (cells.size, len(column.feature_names(n_knots)))
    lengths = np.linalg.norm(block, axis=1)
    assert lengths.max() <= 1 + 1e-15
    assert np.isclose(lengths.max(), 1.0)


@pytest.mark.parametrize("column", COLUMNS[:4], ids=IDS[:4])
def test_names_of_knots_are_where_they_are(column) -> None:
    names = column.feature_names(4)[:4]
    at_knots = [name.removeprefix("n_") for name in names]
    block = column.encoded(as_column(at_knots), 4)[:, :4]
    np.testing.assert_allclose(block, np.eye(4), atol=1e-4)


def test_weights_of_knots_add_up_to_one() -> None:
    shares = np.array([0.0, 1e-300, 0.25, 0.5, np.nextafter(1.0, 0.0), 1.0])
    for n_knots in (2, 3, 5, 50):
        weights = _hats(shares, n_knots)
        np.testing.assert_allclose(weights.sum(axis=1), 1.0)
        assert (weights >= 0.0).all()
        # A linear function of the shares is a linear function of the weights.
        np.testing.assert_allclose(weights @ np.linspace(0, 1, n_knots), shares, atol=1e-15)


def test_a_number_that_stands_for_a_gap_is_none() -> None:
    column = NumberColumn("n", 0.0, 10.0, gaps=(5, "7"), has_gaps=True)
    block = column.encoded(as_column([5, "5.0", 7.0, 6, None]), None)
    assert block.tolist() == [[0, 1], [0, 1], [0, 1], [pytest.approx(0.2), 0], [0, 1]]


def test_gaps_without_an_indicator_are_in_the_middle() -> None:
    assert NumberColumn("n", 0.0, 10.0).encoded(as_column([None, 5]), None).tolist() == [[0], [0]]


@pytest.mark.parametrize("low", [0.0, 1e-9, 1.0, 250.0])
def test_logarithms_divide_the_range(low) -> None:
    column = NumberColumn("n", low, 1e6, is_log=True)
    values = np.array([low, 300.0, 1e6])
    found = column.shares(values)
    if low == 0.0:
        wanted = [0.0, math.log1p(300) / math.log1p(1e6), 1.0]
    else:
        wanted = [0.0, math.log(300 / low) / math.log(1e6 / low), 1.0]
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
    assert found[0] == 0.0
    assert found[-1] == 1.0


def test_dropped_column_has_no_feature() -> None:
    column = DroppedColumn("id")
    assert column.encoded(as_column([1, 2]), 5).shape == (2, 0)
    assert column.feature_names(5) == []
    assert column.to_dict() == "drop"


def test_days_and_moments_are_named_as_such() -> None:
    days = NumberColumn("d", 0.0, 2.0, is_date=True)
    assert days.feature_names(3) == ["d_1970-01-01", "d_1970-01-02", "d_1970-01-03"]
    assert days.feature_names(5)[1] == "d_1970-01-01T12:00:00"
    assert days.to_dict() == {"range": ["1970-01-01", "1970-01-03"]}
