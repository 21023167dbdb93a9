"""Rows that are published."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import _search
from sklearn.preprocessing import Binarizer, Normalizer

from skdptune.model_selection._running._runs import results_of


def test_rows_have_the_form_of_scikit_learns() -> None:
    rows = [{"params": {"a": 1}, "score": 0.2}, {"params": {"b": "x"}, "score": 0.7}]
    found = results_of(rows)
    assert found["params"] == [{"a": 1}, {"b": "x"}]
    assert found["param_a"].tolist() == [1, None]
    assert found["param_b"].mask.tolist() == [True, False]
    assert found["rank_test_score"].tolist() == [2, 1]
    assert found["mean_test_score"].tolist() == [0.2, 0.7]


def test_rows_without_scores_have_no_ranks() -> None:
    found = results_of([{"params": {}, "score": np.nan}])
    assert set(found) == {"params"}
    assert results_of([]) == {"params": []}


def test_scores_stay_within_their_bounds_and_ranks_as_they_were() -> None:
    rows = [
        {"params": {"a": place}, "score": score} for place, score in enumerate((1.2, -3.0, 1.4))
    ]
    found = results_of(rows, 0.0, 1.0)
    assert found["mean_test_score"].tolist() == [1.0, 0.0, 1.0]
    assert found["rank_test_score"].tolist() == [2, 3, 1]


@pytest.mark.parametrize(
    "values",
    [
        [1, 2.5],
        [True, 2],
        ["a", "b"],
        [None, 1],
        [(1, 2), (3, 4)],
        [[1], [2, 3]],
        [Normalizer(), Binarizer()],
        [{"a": 1}, None],
        [np.int64(1), np.int32(2)],
        [1, 10**30],
        [np.array([1, 2]), np.array([3])],
    ],
    ids=range(11),
)
def test_columns_have_the_types_of_scikit_learns(values: list[object]) -> None:
    theirs = getattr(_search, "_yield_masked_array_for_each_param", None)
    if theirs is None:
        pytest.skip("this version of scikit-learn has no such function")
    params = [*({"p": value} for value in values), {"q": 1}]
    expected = dict(theirs(params))["param_p"]
    found = results_of([{"params": each, "score": 0.0} for each in params])["param_p"]
    assert found.dtype == expected.dtype
    assert found.mask.tolist() == expected.mask.tolist()
