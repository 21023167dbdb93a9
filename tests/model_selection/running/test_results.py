"""Rows that are published, and the model that stands for none."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from skdptune.linear_model import DPLogisticRegression
from skdptune.model_selection._running._results import data_independent_model, results_of
from skdptune.model_selection._running._runs import Data
from tests.model_selection.learners import Scripted


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


@pytest.mark.parametrize("frame", [False, True])
def test_untouched_model_sees_no_record(frame: bool) -> None:
    X = np.full((4, 2), 7.0)
    given = pd.DataFrame(X, columns=["a", "b"]) if frame else X
    made = data_independent_model(Scripted(), Data(given, np.ones(4), {}, {}))
    again = data_independent_model(Scripted(), Data(given * -3.0, np.zeros(4), {}, {}))
    assert made is not again
    model = DPLogisticRegression(classes=[0, 1], random_state=0)
    one = data_independent_model(model, Data(given, np.ones(4), {}, {}))
    other = data_independent_model(model, Data(given * -3.0, np.zeros(4), {}, {}))
    assert np.array_equal(one.coef_, other.coef_)
    assert one.n_features_in_ == 2


def test_model_that_cannot_be_fitted_to_blanks_stays_unfitted() -> None:
    class Never(Scripted):
        def fit(self, X: object, y: object) -> object:
            raise ValueError("never")

    made = data_independent_model(Never(), Data(np.eye(2), np.ones(2), {}, {}))
    assert not hasattr(made, "classes_")
