"""Descriptions read off a public sample."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from skdptune.preprocessing import CategoryColumn, NumberColumn
from skdptune.preprocessing._table._columns import DroppedColumn
from skdptune.preprocessing._table._frames import compare, describe
from skdptune.preprocessing._table._parsing import Problems
from tests.base.nasty_records import as_column

_MISSING = "1 of 3 cells are missing, and without 'missing': "


@pytest.mark.parametrize(
    ("cells", "wanted"),
    [
        ([1, 5, 3], {"range": [1, 5]}),
        ([1.5, None, 3], {"range": [1.5, 3], "missing": True}),
        (["1.5", "", "3"], {"range": [1.5, 3], "missing": True}),
        ([1.0, np.inf, 3], {"range": [1, 3]}),
        ([True, False, None], {"type": "boolean", "missing": True}),
        (["True", "false"], {"type": "boolean"}),
        ([0, 1], {"range": [0, 1]}),
        (["b", "a", "b "], {"categories": ["a", "b"]}),
        (["b", None, "a"], {"categories": ["a", "b"], "missing": True}),
        (["b", "b"], {"categories": ["b"], "other": True}),
        (["a", 1], {"categories": ["1", "a"]}),
        (["2020-01-01", "2021-01-01"], {"range": ["2020-01-01", "2021-01-01"]}),
        (
            [pd.Timestamp("2020-01-01"), pd.NaT, pd.Timestamp("2020-01-02T12:00")],
            {"range": ["2020-01-01", "2020-01-02T12:00:00"], "missing": True},
        ),
        (
            np.array(["2020-01-01", "2020-01-03"], "M8[ns]"),
            {"range": ["2020-01-01", "2020-01-03"]},
        ),
    ],
    ids=range(14),
)
def test_descriptions(cells, wanted) -> None:
    problems = Problems()
    column = cells if isinstance(cells, np.ndarray) else as_column(cells)
    assert describe("x", column, 50, problems) == wanted
    assert problems == []


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ([], "no value"),
        ([None, np.nan, ""], "no value"),
        ([3, 3], "a single value, which is no range"),
        ([f"word {i}" for i in range(30)], "30 different words in 30 rows look like free text"),
        ([f"w{i % 60}" for i in range(200)], "60 different words in 200 rows"),
    ],
    ids=range(5),
)
def test_what_the_sample_does_not_say(cells, words) -> None:
    problems = Problems()
    assert describe("x", as_column(cells), 50, problems) is None
    assert words in problems[0]
    assert "columns=" in problems[0]
    assert "drop=" in problems[0]


NUMBER = NumberColumn("x", 0.0, 9.0)
DATE = NumberColumn("x", 0.0, 9.0, is_date=True)
WORD = CategoryColumn("x", ("a", "b"))


@pytest.mark.parametrize(
    ("column", "cells", "found"),
    [
        (NUMBER, [1, "2", True], []),
        (NUMBER, [1, "two", {}], ["2 of 3 cells are no numbers: 'two', {}"]),
        (NUMBER, [1, "two", None], ["1 of 3 cells are no numbers: 'two'", _MISSING + "None"]),
        (NUMBER, [-1, 9.5, 1], ["2 of 3 cells are beyond the range, and clipped: -1, 9.5"]),
        (replace(NUMBER, has_gaps=True, gaps=("-", -1)), [None, "-", -1.0, ""], []),
        (replace(NUMBER, has_gaps=True), ["-"], ["1 of 1 cells are no numbers: '-'"]),
        (DATE, ["1970-01-02", np.datetime64("1970-01-03")], []),
        (
            DATE,
            ["x", 3, "2020-01-01"],
            ["2 of 3 cells are no dates: 'x', 3", "1 of 3 cells are b"],
        ),
        (WORD, ["a", " b"], []),
        (
            WORD,
            list("cdefgcc"),
            ["7 of 7 cells are in no category, and without 'other': 'c', 'd'"],
        ),
        (WORD, ["a", "b", np.nan], [_MISSING + "nan"]),
        (replace(WORD, has_gaps=True, has_other=True), ["c", None], []),
        (DroppedColumn("x"), ["whatever"], []),
    ],
    ids=range(13),
)
def test_what_does_not_fit(column, cells, found) -> None:
    problems = Problems()
    column_of_cells = as_column(cells)
    compare(column, column_of_cells, column.outcomes(column_of_cells), problems)
    assert len(problems) == len(found)
    for problem, words in zip(problems, found, strict=True):
        assert problem.startswith(f"x: {words}")


def test_columns_of_numbers_and_times_fit() -> None:
    times = np.array(["2020-01-01", "NaT"], dtype="datetime64[ns]")
    for column, cells, found in (
        (NUMBER, np.array([1.0, 9.0]), []),
        (DATE, np.array([0, 1], dtype="datetime64[D]"), []),
        (
            NUMBER,
            times,
            ["x: 1 of 2 cells are no numbers: '2020", "x: 1 of 2 cells are missing"],
        ),
    ):
        problems = Problems()
        compare(column, cells, column.outcomes(cells), problems)
        assert [line[: len(start)] for line, start in zip(problems, found, strict=True)] == found
