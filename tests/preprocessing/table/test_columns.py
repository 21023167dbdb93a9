"""Cells of any kind, as an encoder and a count read them: each separately, in any form."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from skdptune.preprocessing import Schema, TableEncoder
from tests.base.nasty_records import CELLS, as_column

COLUMNS = [
    (-3, 5),
    {"range": (0, 5), "scale": "log", "missing": [-1, 4]},
    {"range": (0.5, 5e9), "scale": "log", "missing": True},
    {"range": ("1970-01-01", "2024-10-04"), "missing": "1999-09-09"},
    ["a", "b"],
    {"categories": ["a", "b"], "missing": "?", "other": True},
    {"categories": [1, "b", 2.5], "missing": True},
    {"categories": ["a"], "other": True},
    {"type": "boolean", "missing": True},
]
# In the middle of this range, a number or time is 0.0; a gap is [0.0, 1.0].
NUMBER = {"range": (0, 2), "missing": True}
DAY = {"range": ("2019-12-31", "2020-01-02"), "missing": True}
WORDS = {"categories": [0, 1, "a"], "missing": True, "other": True}
GAP = [0.0, 1.0]


def encoded(cells: Any, described: Any, n_knots: int | None = None) -> np.ndarray:
    """Return the features of one column."""
    is_array = isinstance(cells, np.ndarray)
    column = cells if is_array else pd.Series(as_column(cells), dtype=object)
    encoder = TableEncoder({"x": described}, n_knots)
    return encoder.transform(pd.DataFrame({"x": column}))


@pytest.mark.parametrize("n_knots", [None, 2, 7])
@pytest.mark.parametrize("described", COLUMNS, ids=str)
def test_features_of_a_cell_are_bounded(described, n_knots) -> None:
    # Theorem R7: a table with a public schema is encoded cell by cell.
    cells = [*CELLS, *np.linspace(-10, 10, 41).tolist(), "1999-09-09", "2001-01-01"]
    lengths = np.linalg.norm(encoded(cells, described, n_knots), axis=1)
    assert lengths.max() <= 1 + 1e-15
    assert np.isclose(lengths.max(), 1.0)


ONE = [1, 1.0, True, "1", " 1.0 ", "1e0", "true", "TRUE", b"1", np.int8(1), np.float16(1)]
ONE += [Decimal(1), Fraction(1), np.bool_(True), np.str_("1"), "01", 1 + 0j, np.complex64(1)]
NO_NUMBER = [None, "", "word", {}, [], (1,), 1j, np.complex64(1j), pd.NA, pd.NaT, "nan"]
NO_NUMBER += [np.datetime64("2020"), np.timedelta64(1, "D"), datetime.date(2020, 1, 1), math.nan]
NO_NUMBER += [np.array([1.0]), np.array(1.0), pd.Timestamp("2020"), Decimal("sNaN")]


def test_numbers_in_any_form() -> None:
    assert encoded(ONE, NUMBER).tolist() == [[0.0, 0.0]] * len(ONE)
    endless = ["1e400", Decimal("Infinity"), 10**400, str(10**400), Fraction(10**400), "inf"]
    assert encoded(endless, NUMBER)[:, 0].tolist() == [1.0] * 6
    assert encoded([-(10**400), str(-(10**400))], NUMBER)[:, 0].tolist() == [-1.0] * 2
    assert encoded(NO_NUMBER, NUMBER).tolist() == [GAP] * len(NO_NUMBER)


def test_categories_in_any_form() -> None:
    zero, one, word, other, _ = np.eye(5).tolist()
    assert encoded(ONE, WORDS).tolist() == [one] * len(ONE)
    assert encoded(["a", " a", b"a ", np.str_("a")], WORDS).tolist() == [word] * 4
    assert encoded(["False", 0, -0.0], WORDS).tolist() == [zero] * 3
    assert encoded(["A", math.inf, {}], WORDS).tolist() == [other] * 3
    # What is no number is no category either.
    assert encoded(NO_NUMBER, WORDS)[:, :3].sum() == 0.0


TIMES = [
    *("2020-01-01", "2020-01-01T00:00", " 2020-01-01 00:00:00+00:00", b"2020-01-01"),
    *("2020-01-01T01:00+01:00", datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1)),
    datetime.datetime(2020, 1, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=1))),
    *(np.datetime64("2020"), np.datetime64("2020-01-01", "ns"), pd.Timestamp("2020-01-01")),
    pd.Timestamp("2020-01-01 09:00", tz="Asia/Tokyo"),
]


def test_times_in_any_form() -> None:
    assert encoded(TIMES, DAY).tolist() == [[0.0, 0.0]] * len(TIMES)
    no_times = [18262, 2020.0, "today", "", None, pd.NaT, np.datetime64("NaT"), "2020-13-01"]
    assert encoded(no_times, DAY).tolist() == [GAP] * len(no_times)


@pytest.mark.parametrize("unit", ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps"])
def test_times_of_any_unit_are_those_of_single_cells(unit) -> None:
    # Theorem R7: a table with a public schema is encoded cell by cell.
    counts = np.array([0, 1, -1, 49, -1501, 999_999, -(10**12) - 1, 2**62, -(2**63)])
    cells = counts.astype(f"datetime64[{unit}]")
    described = {"range": ("1900-01-01", "2100-01-01"), "missing": True}
    table = TableEncoder({"x": described}, None).transform(cells[:, None])
    assert_array_equal(table, encoded(list(cells), described))
    assert table[-1].tolist() == GAP


@pytest.mark.parametrize("described", [NUMBER, DAY, WORDS], ids=str)
def test_columns_are_read_cell_by_cell(described) -> None:
    # Theorem R7: a table with a public schema is encoded cell by cell.
    alone = [encoded([cell], described)[0] for cell in CELLS]
    assert_array_equal(encoded(CELLS, described), alone)
    # Cells of all kinds are among them.
    assert len(np.unique(alone, axis=0)) >= 3


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "g", "i1", "u1", "i8", "u8", "?"])
def test_arrays_of_numbers_are_read_as_single_cells(dtype) -> None:
    # Theorem R7: a table with a public schema is encoded cell by cell.
    numbers = np.array([0, 1, 2, 100, 1, 0]).astype(dtype)
    if dtype in ("i8", "u8"):
        numbers[0] = 2**62 + 1
    if numbers.dtype.kind == "f":
        numbers[:2] = np.nan, -np.inf
    for described in ({"range": (0, 2**63), "missing": True}, WORDS):
        table = TableEncoder({"x": described}, None).transform(numbers[:, None])
        assert_array_equal(table, encoded(list(numbers), described))


@pytest.mark.parametrize("unit", ["s", "ns"])
def test_times_and_spans_are_no_numbers(unit) -> None:
    # Theorem R7: as a list, those in short units would be integers.
    other, missing = np.eye(5)[3:].tolist()
    for kind in ("M8", "m8"):
        cells = np.array(["NaT", 1]).astype(f"{kind}[{unit}]")
        for column in (cells, as_column(list(cells))):
            for described, wanted in ((NUMBER, [GAP, GAP]), (WORDS, [missing, other])):
                encoder = TableEncoder({"x": described}, None)
                assert encoder.transform(column[:, None]).tolist() == wanted
    assert encoded(np.array([1, 2]).astype(f"m8[{unit}]"), DAY).tolist() == [GAP, GAP]


MISSING = [None, math.nan, np.float32("nan"), Decimal("NaN"), pd.NA, pd.NaT, "", " ", "NaN"]
MISSING += [complex("nan"), b"", np.datetime64("NaT"), np.timedelta64("NaT"), np.str_("nan")]


def test_missing_cells_are_told_from_unreadable_ones() -> None:
    # Theorem R8: noisy counts of the cells of a table that do not fit its schema.
    known = {repr(cell) for cell in MISSING} | {"'nan'"}
    odd = [cell for cell in CELLS if repr(cell) not in known]
    for described in (NUMBER, WORDS):
        schema = Schema({"x": described})
        for cells, n_missing in ((MISSING, len(MISSING)), (odd, 0)):
            table = pd.DataFrame({"x": as_column(cells)})
            counts = schema.quality(table, epsilon=math.inf).counts
            assert {each.count for each in counts if each.kind == "missing"} == {n_missing}


@given(
    st.one_of(
        st.floats(allow_nan=False), st.integers(), st.booleans(), st.decimals(allow_nan=False)
    )
)
def test_number_and_its_word_are_read_as_the_same(number) -> None:
    # Theorem R7: a table with a public schema is encoded cell by cell.
    described = {"categories": [str(number)], "other": True}
    cells = [number, str(number), str(number).encode()]
    assert encoded(cells, described).tolist() == [[1.0, 0.0]] * 3


class Word(str):
    """A word that claims to be another one, to whom it is compared with."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return hash("a")

    def strip(self, *args: object) -> str:  # type: ignore[override]
        raise RuntimeError("secret")


def test_a_word_that_lies_changes_no_other_cell() -> None:
    # Theorem R7: a table with a public schema is encoded cell by cell.
    described = {"categories": ["a", "b", "c"], "other": True}
    honest = ["a", "b", "d", "a"]
    wanted = encoded(honest, described)
    assert wanted.argmax(axis=1).tolist() == [0, 1, 3, 0]
    assert_array_equal(encoded([Word("b"), *honest], described)[1:], wanted)
