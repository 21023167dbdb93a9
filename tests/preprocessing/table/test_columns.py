"""Columns of a schema, and the features that each becomes."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from skdptune.preprocessing._shared import CategoryColumn, NumberColumn
from skdptune.preprocessing._table._columns import (
    DroppedColumn,
    day_of,
    days_of,
    is_missing,
    key_of,
    number_of,
    numbers_of,
    places_of,
)
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


# Cells read as numbers, days or keys of categories -------------------------------------------


ONE = [1, 1.0, True, "1", " 1.0 ", "1e0", "true", "TRUE", b"1", np.int8(1), np.float16(1)]
ONE += [Decimal(1), Fraction(1), np.bool_(True), np.str_("1"), "01", 1 + 0j, np.complex64(1)]
NO_NUMBER = [None, "", "word", {}, [], (1,), 1j, np.complex64(1j), pd.NA, pd.NaT, "nan"]
NO_NUMBER += [np.datetime64("2020"), np.timedelta64(1, "D"), datetime.date(2020, 1, 1), math.nan]
NO_NUMBER += [np.array([1.0]), np.array(1.0), pd.Timestamp("2020"), Decimal("sNaN")]


def test_numbers_in_any_form() -> None:
    assert [number_of(cell) for cell in ONE] == [1.0] * len(ONE)
    endless = ["1e400", Decimal("Infinity"), 10**400, str(10**400), Fraction(10**400), "inf"]
    assert (
        {number_of(cell) for cell in endless} == {key_of(cell) for cell in endless} == {math.inf}
    )
    assert number_of(-(10**400)) == number_of(str(-(10**400))) == -math.inf
    assert np.isnan([number_of(cell) for cell in NO_NUMBER]).all()


def test_keys_in_any_form() -> None:
    assert {key_of(cell) for cell in ONE} == {1.0}
    assert {key_of(cell) for cell in ("a", " a", b"a ", np.str_("a"))} == {"a"}
    assert key_of("False") == key_of(0) == key_of(-0.0) == 0.0
    words = {"word"}
    assert {key_of(cell) for cell in NO_NUMBER} == {None} | words
    assert key_of("A") != key_of("a")


DAY = 18262.0  # 1 January 2020


@pytest.mark.parametrize(
    "cell",
    [
        "2020-01-01",
        "2020-01-01T00:00",
        " 2020-01-01 00:00:00+00:00",
        b"2020-01-01",
        "2020-01-01T01:00+01:00",
        datetime.date(2020, 1, 1),
        datetime.datetime(2020, 1, 1),
        datetime.datetime(2020, 1, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=1))),
        np.datetime64("2020"),
        np.datetime64("2020-01-01", "ns"),
        pd.Timestamp("2020-01-01"),
        pd.Timestamp("2020-01-01 09:00", tz="Asia/Tokyo"),
    ],
    ids=repr,
)
def test_times_in_any_form(cell) -> None:
    assert day_of(cell) == DAY
    assert days_of(as_column([cell])).tolist() == [DAY]


def test_what_is_no_time() -> None:
    for cell in (18262, 2020.0, "today", "", None, pd.NaT, np.datetime64("NaT"), "2020-13-01"):
        assert math.isnan(day_of(cell))


@pytest.mark.parametrize("unit", ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps"])
def test_times_of_any_unit_are_those_of_single_cells(unit) -> None:
    # Theorem R7.
    counts = np.array([0, 1, -1, 49, -1501, 999_999, -(10**12) - 1, 2**62, -(2**63)])
    cells = counts.astype(f"datetime64[{unit}]")
    whole = days_of(cells)
    one_by_one = days_of(as_column(list(cells)))
    assert_array_equal(whole, one_by_one)
    assert np.isnan(whole[-1])


def test_columns_are_read_cell_by_cell() -> None:
    # Theorem R7.
    column = as_column(CELLS)
    assert_array_equal(numbers_of(column), [number_of(cell) for cell in CELLS])
    assert_array_equal(days_of(column), [day_of(cell) for cell in CELLS])
    places = {1.0: 0, "a": 1, 0.0: 2}
    keys = [key_of(cell) for cell in CELLS]
    unread = [8 if is_missing(cell) else 9 for cell in CELLS]
    wanted = [
        place if key is None else places.get(key, 9)
        for key, place in zip(keys, unread, strict=True)
    ]
    assert places_of(column, places, other=9, gap=8).tolist() == wanted
    assert {0, 1, 2, 8, 9} <= set(wanted)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "g", "i1", "u1", "i8", "u8", "?"])
def test_arrays_of_numbers_are_read_as_single_cells(dtype) -> None:
    # Theorem R7.
    numbers = np.array([0, 1, 2, 100, 1, 0]).astype(dtype)
    if dtype in ("i8", "u8"):
        numbers[0] = 2**62 + 1
    if numbers.dtype.kind == "f":
        numbers[:2] = np.nan, -np.inf
    cells = as_column(list(numbers))
    assert_array_equal(numbers_of(numbers), numbers_of(cells))
    places = {1.0: 0, 2.0: 1}
    assert_array_equal(places_of(numbers, places, 9, 8), places_of(cells, places, 9, 8))


@pytest.mark.parametrize("unit", ["s", "ns"])
def test_times_and_spans_are_no_numbers(unit) -> None:
    # Theorem R7: as a list, those in short units would be integers.
    for kind in ("M8", "m8"):
        cells = np.array([1, 2]).astype(f"{kind}[{unit}]")
        for column in (cells, as_column(list(cells))):
            assert np.isnan(numbers_of(column)).all()
            assert places_of(column, {1.0: 0}, 9, 8).tolist() == [9, 9]
        gaps = np.array(["NaT", 1]).astype(f"{kind}[{unit}]")
        for column in (gaps, as_column(list(gaps))):
            assert places_of(column, {1.0: 0}, 9, 8).tolist() == [8, 9]
    spans = np.array([1, 2]).astype(f"m8[{unit}]")
    assert np.isnan(days_of(spans)).all()


MISSING_CELLS = [None, math.nan, np.float32("nan"), Decimal("NaN"), pd.NA, pd.NaT, "", " ", "NaN"]
MISSING_CELLS += [complex("nan"), b"", np.datetime64("NaT"), np.timedelta64("NaT"), np.str_("nan")]


def test_missing_cells_are_told_from_unreadable_ones() -> None:
    # Theorem R8.
    assert all(map(is_missing, MISSING_CELLS))
    unknown = [cell for cell in CELLS if is_missing(cell)]
    assert {repr(cell) for cell in unknown} <= {repr(cell) for cell in MISSING_CELLS} | {"'nan'"}
    assert all(key_of(cell) is None for cell in unknown)


@given(
    st.one_of(
        st.floats(allow_nan=False),
        st.integers(),
        st.booleans(),
        st.decimals(allow_nan=False),
        st.fractions(),
    )
)
def test_number_and_its_word_are_read_as_the_same(number) -> None:
    # Theorem R7.
    word = str(number)
    if "/" not in word:
        assert number_of(number) == number_of(word) == number_of(word.encode())
        assert key_of(number) == key_of(word)
    assert number_of(number) == number_of(as_column([number])[0]) == key_of(number)


class Word(str):
    """A word that claims to be another one, to whom it is compared with."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return hash("a")

    def strip(self, *args: object) -> str:  # type: ignore[override]
        raise RuntimeError("secret")


def test_a_word_that_lies_changes_no_other_cell() -> None:
    # Theorem R7.
    places = {"a": 0, "b": 1}
    honest = as_column(["a", "b", "c", "a"])
    wanted = places_of(honest, places, 9, 8).tolist()
    assert wanted == [0, 1, 9, 0]
    found = places_of(as_column([Word("b"), *honest]), places, 9, 8)
    assert found[1:].tolist() == wanted


def test_dropped_column_has_no_feature() -> None:
    column = DroppedColumn("id")
    assert column.encoded(as_column([1, 2]), 5).shape == (2, 0)
    assert column.feature_names(5) == []
    assert column.to_dict() == "drop"
    assert column.outcomes(as_column([1, 2])).size == 2
