"""The data of a search."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from skdptune.linear_model import DPLogisticRegression
from skdptune.model_selection._running._data import Data, Door
from tests.model_selection.learners import table

DATA = Data(*table(500), {}, {})


def test_data_take_what_belongs_to_the_records() -> None:
    data = Data(DATA.X, DATA.y, {"weight": np.arange(500)}, {"same": 3})
    some = data.take(np.array([5, 7]))
    assert some.per_record["weight"].tolist() == [5, 7]
    assert some.constant == {"same": 3}
    assert data.take(None) is data


def test_arguments_with_one_entry_per_record_are_divided() -> None:
    X, y = table(500)
    given = {"weight": np.arange(500), "name": "x" * 500, "same": [1, 2]}
    data = Door.of([DPLogisticRegression()], X, [0, 1], varies=False).open(X, y, given)
    assert set(data.per_record) == {"weight"}
    assert set(data.constant) == {"name", "same"}


@pytest.mark.parametrize("odd", ["heavy", None, np.nan, np.inf, 1j, (1.0, 2.0)], ids=str)
def test_an_odd_weight_counts_as_zero_and_changes_no_other(odd: Any) -> None:
    # Theorem R5.
    X, y = table(500)
    door = Door.of([DPLogisticRegression()], X, [0, 1], varies=False)
    weights: list[Any] = np.linspace(0.0, 1.0, 500).tolist()
    before = door.open(X, y, {"weight": list(weights)}).per_record["weight"]
    weights[7] = odd
    after = door.open(X, y, {"weight": weights}).per_record["weight"]
    assert after[7] == 0.0
    np.testing.assert_array_equal(np.delete(after, 7), np.delete(before, 7))
