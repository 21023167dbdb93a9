"""Descriptions read off a public sample."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from skdptune.preprocessing._table._parsing import Problems
from skdptune.preprocessing._table._samples import describe
from tests.base.nasty_records import as_column


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
