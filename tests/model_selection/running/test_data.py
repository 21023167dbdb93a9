"""The data of a search."""

from __future__ import annotations

import numpy as np

from skdptune.model_selection._running._data import Data
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
    data = Data.with_arguments(X, y, {"weight": np.arange(500), "name": "x" * 500, "same": [1, 2]})
    assert set(data.per_record) == {"weight"}
    assert set(data.constant) == {"name", "same"}
