"""What a user writes about columns, and what is said about mistakes."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pandas as pd
import pytest

from skdptune.preprocessing import Schema
from skdptune.preprocessing._shared import CategoryColumn, NumberColumn
from skdptune.preprocessing._table._columns import DroppedColumn
from skdptune.preprocessing._table._parsing import (
    Problems,
    parse_column,
    parse_columns,
    parse_target,
)

NUMBER = NumberColumn("x", 0.0, 9.0)
DATES = NumberColumn("x", 0.0, 1.0, is_date=True)
BOOLEAN = CategoryColumn("x", (False, True), is_boolean=True)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ((0, 9), NUMBER),
        ([0, 9.0], NUMBER),
        (np.array([0, 9]), NUMBER),
        ({"range": (0, np.int64(9)), "scale": "linear", "missing": False}, NUMBER),
        ({"type": "number", "range": [0, 9]}, NUMBER),
        ({"type": "integer", "range": [0, 9]}, NUMBER),
        ({"range": [0, 9], "scale": "log"}, NumberColumn("x", 0.0, 9.0, is_log=True)),
        ({"range": [0, 9], "missing": -1}, NumberColumn("x", 0.0, 9.0, gaps=(-1,), has_gaps=True)),
        ({"range": ["1970-01-01", "1970-01-02"]}, DATES),
        (["1970-01-01", "1970-01-02"], DATES),
        (["1970", "1971"], CategoryColumn("x", ("1970", "1971"))),
        ((datetime.date(1970, 1, 1), datetime.datetime(1970, 1, 2)), DATES),
        ({"type": "date", "range": (pd.Timestamp(0), np.datetime64("1970-01-02"))}, DATES),
        (["a", "b", "c"], CategoryColumn("x", ("a", "b", "c"))),
        (["a", "b"], CategoryColumn("x", ("a", "b"))),
        (("a", "b"), CategoryColumn("x", ("a", "b"))),
        (["18", "100"], CategoryColumn("x", ("18", "100"))),
        ([1, 2, 3], CategoryColumn("x", (1, 2, 3))),
        ({"categories": [0, 1]}, CategoryColumn("x", (0, 1))),
        ({"categories": np.array(["a", "b"])}, CategoryColumn("x", ("a", "b"))),
        ({"categories": ["a"], "other": True}, CategoryColumn("x", ("a",), has_other=True)),
        (
            {"categories": ["a", "b"], "missing": ["?", "-"]},
            CategoryColumn("x", ("a", "b"), ("?", "-"), True),
        ),
        ("boolean", BOOLEAN),
        (bool, BOOLEAN),
        ({"type": "bool"}, BOOLEAN),
        ("drop", DroppedColumn("x")),
    ],
    ids=repr,
)
def test_right_columns(given, wanted) -> None:
    problems = Problems()
    column = parse_column("x", given, problems)
    assert problems == []
    assert column == wanted
    # What is written down again is read as the same.
    assert parse_column("x", column.to_dict(), Problems()) == wanted


WRONG: list[tuple[Any, str]] = [
    (None, "must be a range such as"),
    (3, "must be a range such as"),
    ([], "must be a range such as"),
    ("nubmer", "must be a range such as"),
    ((9, 0), "range must be two finite numbers, the first smaller; got (9, 0)"),
    ((0, 0), "range must be two finite numbers"),
    (
        ("18", "100"),
        "a tuple must hold two numbers or dates; got ('18', '100'). For a range write (18, 100), "
        "for categories a list",
    ),
    ((0, " 1.5"), "For a range write (0, 1.5), for categories a list"),
    (("1970", "1971"), "For a range write (1970, 1971), for categories a list"),
    ((0, np.inf), "range must be two finite numbers, the first smaller; got (0, inf). A number"),
    ((np.nan, 1), "range must be two finite numbers"),
    ({"range": [0, 1, 2]}, "range must be two"),
    ({"range": 3}, "range must be two"),
    ({"range": ["a", "b"]}, "range must be two dates"),
    ({"range": ["2020-02-01", "2020-01-01"]}, "range must be two dates, the first smaller"),
    ({"type": "number", "range": ["2020-01-01", "2020-01-02"]}, "range must suit the type"),
    ({"type": "date", "range": [0, 1]}, "range must suit the type 'date'"),
    ({"range": [0, 5e-324]}, "range must be wider than rounding errors"),
    ({"range": [1e300, np.nextafter(1e300, 2e300)], "scale": "log"}, "wider than rounding"),
    ({"range": [-1, 5], "scale": "log"}, "scale 'log' needs a range of numbers from 0"),
    ({"range": [0, 5], "scale": "cubic"}, "scale must be 'linear' or 'log'; got 'cubic'"),
    ({"range": [0, 5], "other": True}, "'other' has no meaning for a range"),
    ({"range": [0, 5], "missing": None}, "missing must be True, False, or what stands"),
    ({"range": [0, 5], "missing": []}, "missing must be True, False, or what stands"),
    ({"range": [0, 5], "scal": "log"}, "unknown key 'scal' (did you mean 'scale'?); known are"),
    ({"range": [0, 5], "categories": ["a"]}, "must have either 'range' or 'categories'; got both"),
    ({}, "must have either 'range' or 'categories'; got neither"),
    ({"type": "category", "range": [0, 5]}, "a category must have 'categories'"),
    ({"type": "number", "categories": ["a", "b"]}, "a number must have 'range'"),
    ({"type": "categroy"}, "type must be 'number', 'integer', 'date', 'category', 'boolean'; got"),
    ({"type": "boolean", "range": [0, 1]}, "'range' has no meaning for a boolean"),
    ("text", "free text and identifiers have no public range: set the column to 'drop'"),
    ({"type": "id"}, "free text and identifiers"),
    (["a", "b", " a"], "categories[0] and categories[2] are the same to the encoder"),
    ([1, "1.0", "x"], "categories[0] and categories[1] are the same to the encoder"),
    ({"categories": [True, 1]}, "are the same to the encoder"),
    (
        {"categories": ["a", "?"], "missing": "?"},
        "categories[1] and missing[0] are the same to the encoder",
    ),
    (["a", None], "categories[1] must be a word or a number; got None"),
    (["a", ""], "categories[1] must be a word or a number; got ''"),
    (["a", {}], "categories[1] must be a word or a number; got dict"),
    ({"categories": "abc"}, "categories must be a list of words or numbers; got 'abc'"),
    ({"categories": []}, "categories must be a list"),
    (["a"], "one category needs 'other' or 'missing'"),
    ({"categories": ["a", "b"], "other": 1}, "other must be True or False; got 1"),
    ({"categories": ["a", "b"], "scale": "log"}, "'scale' has no meaning for categories"),
]


@pytest.mark.parametrize(("given", "words"), WRONG, ids=[f"wrong{i}" for i in range(len(WRONG))])
def test_wrong_columns(given, words) -> None:
    problems = Problems()
    assert parse_column("x", given, problems) is None
    assert len(problems) == 1
    assert problems[0].startswith("x: ")
    assert words in problems[0]


@pytest.mark.parametrize("given", [("2020-13-01", "2021-01-01"), ("2020-01-01", "today")])
def test_half_a_range_of_dates_is_no_pair_of_categories(given) -> None:
    problems = Problems()
    assert parse_column("x", given, problems) is None
    assert "of which one is a date. For categories write a list" in problems[0]
    assert parse_column("x", list(given), Problems()) is not None


@pytest.mark.parametrize("given", [["a"], ("a",), {"categories": ["a"]}], ids=str)
def test_a_target_has_two_labels(given) -> None:
    problems = Problems()
    assert parse_target(given, problems) is None
    assert problems == ["target: a target must have two labels or more; got one"]


def test_a_column_of_the_table_in_place_of_a_list_is_not_told() -> None:
    # Which rows are the same is as private as what they hold.
    with pytest.raises(ValueError, match="got 5000 with repetitions") as refusal:
        Schema({"x": (0, 1)}, target=np.array(["ill", "well"] * 2500))
    assert "[0]" not in str(refusal.value)
    with pytest.raises(ValueError, match="300 things wrong") as refusal:
        Schema({"x": [None] * 300})
    assert str(refusal.value).count("\n") == 41


def test_all_that_is_wrong_is_listed() -> None:
    problems = Problems()
    columns = {
        "a": (2, 1),
        "b": {"range": [0, 5], "other": True, "typ": "n"},
        "c": ["x", "y"],
        3: 1,
    }
    assert [column.name for column in parse_columns(columns, problems)] == ["c"]
    assert [line.split(":")[0] for line in problems] == ["a", "b", "b", "3"]
    with pytest.raises(ValueError, match="it must be right; 4 things wrong:\n- a: "):
        problems.check("it must be right")
    Problems().check("nothing is wrong")


@pytest.mark.parametrize("columns", [None, {}, [], "age", 3])
def test_columns_must_be_a_dict(columns) -> None:
    problems = Problems()
    assert parse_columns(columns, problems) == []
    assert "columns must be a dict from names to" in problems[0]


def test_some_column_must_be_left() -> None:
    problems = Problems()
    parse_columns({"a": "drop"}, problems)
    assert "must not all be dropped" in problems[0]


def test_targets() -> None:
    problems = Problems()
    assert parse_target(None, problems) is None
    assert parse_target((0, 9), problems) == NumberColumn("target", 0.0, 9.0)
    named = {"name": "pay", "categories": ["a", "b"]}
    assert parse_target(named, problems) == CategoryColumn("pay", ("a", "b"))
    assert problems == []
    for wrong in (
        "drop",
        {"name": 3, "range": [0, 1]},
        {"range": [0, 9], "missing": True},
        (9, 0),
    ):
        before = len(problems)
        parse_target(wrong, problems)
        assert len(problems) > before
