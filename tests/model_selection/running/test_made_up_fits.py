"""Fits to made-up data: a fallback model, and estimators that can never be fitted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from skdptune import DParetoSearchCV, DPGridSearchCV, DPRandomSearchCV
from skdptune.linear_model import DPLogisticRegression
from skdptune.model_selection._running._made_up_fits import check_fits, data_independent_model
from skdptune.model_selection._running._runs import Data
from tests.flat import flat
from tests.model_selection.learners import Scripted


@pytest.mark.parametrize("frame", [False, True])
def test_the_fallback_model_sees_no_record(frame: bool) -> None:
    # Theorem R6.
    X = np.full((4, 2), 7.0)
    given = pd.DataFrame(X, columns=["a", "b"]) if frame else X
    made = data_independent_model(Scripted(), Data(given, np.ones(4), {}, {}), 4)
    again = data_independent_model(Scripted(), Data(given * -3.0, np.zeros(4), {}, {}), 4)
    assert made is not again
    model = DPLogisticRegression(classes=[0, 1], random_state=0)
    one = data_independent_model(model, Data(given, np.ones(4), {}, {}), 4)
    other = data_independent_model(model, Data(given * -3.0, np.zeros(4), {}, {}), 4)
    assert np.array_equal(one.coef_, other.coef_)
    assert one.n_features_in_ == 2


def test_model_that_cannot_be_fitted_to_made_up_data_stays_unfitted() -> None:
    class Never(Scripted):
        def fit(self, X: object, y: object) -> object:
            raise ValueError("never")

    made = data_independent_model(Never(), Data(np.eye(2), np.ones(2), {}, {}), 2)
    assert not hasattr(made, "classes_")


class AtLeast(Scripted):
    """Cannot be fitted to fewer records than it wants, nor to words."""

    def __init__(
        self,
        least: int = 1,
        epsilon: float | None = 1.0,
        delta: float = 1e-6,
        n_public: int | None = None,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            epsilon=epsilon, delta=delta, n_public=n_public, random_state=random_state
        )
        self.least = least

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        if len(X) < self.least:
            raise RuntimeError(f"fewer than {self.least} records")
        return super().fit(np.asarray(X, dtype=float), y)


def test_fits_that_want_more_records_are_tried_with_more() -> None:
    # Theorem R6.
    data = Data(np.full((5000, 3), 7.0), np.arange(5000) % 2, {}, {})
    for least in (1, 7, 1000, 5000):
        check_fits([AtLeast(least)], data, 5000, "predict")
        assert hasattr(data_independent_model(AtLeast(least), data, 5000), "classes_")
    with pytest.raises(ValueError, match="RuntimeError: fewer than 5001 records"):
        check_fits([AtLeast(5001)], data, 5000, "predict")


def test_one_that_can_be_fitted_is_enough() -> None:
    X = pd.DataFrame({"a": np.array(["1", "2"], dtype=object), "b": [0.0, 1.0]}).astype(object)
    data = Data(X, np.array([0, 1]), {}, {})
    check_fits([AtLeast(9), AtLeast(1), AtLeast(9)], data, 2, "predict")
    with pytest.raises(ValueError, match="fewer than 8"):
        check_fits([AtLeast(8), AtLeast(9)], data, 2, "predict")


def test_own_models_are_tried_as_well_but_not_fits_with_arguments() -> None:
    data = Data(np.ones((4, 2)), np.array([0, 1, 0, 1]), {}, {})
    with pytest.raises(ValueError, match="epsilon must be"):
        check_fits([DPLogisticRegression(solver="output", epsilon=-1.0)], data, 4, "predict")
    check_fits([AtLeast(9)], Data(data.X, data.y, {"ages": np.ones(4)}, {}), 4, "predict")


@pytest.mark.parametrize("search", [DPGridSearchCV, DPRandomSearchCV])
@pytest.mark.parametrize("in_pipeline", [False, True])
def test_a_search_raises_where_no_fit_could_ever_work(search: Any, in_pipeline: bool) -> None:
    estimator = AtLeast(10**4)
    name = "least"
    if in_pipeline:
        estimator, name = make_pipeline(estimator), "atleast__least"
    X = np.random.default_rng(0).normal(size=(300, 3))
    y = np.arange(300) % 2
    options = {"tuning_estimator": clone(estimator)} if search is DPGridSearchCV else {}
    wrong = flat(search, estimator, {name: [1000, 2000]}, epsilon=1.0, **options)
    with pytest.raises(ValueError, match="fewer than 1000 records"):
        wrong.fit(X, y)
    assert not hasattr(wrong, "privacy_")
    fine = flat(search, estimator, {name: [1, 1000]}, epsilon=1.0, **options).fit(X, y)
    assert hasattr(fine.best_estimator_, "predict")


def test_a_released_front_raises_where_no_fit_could_ever_work() -> None:
    pytest.importorskip("optuna")
    pytest.importorskip("moocore")
    X = np.random.default_rng(0).normal(size=(300, 3))
    y = np.arange(300) % 2
    options = {"release": 30.0, "n_initial": 2, "n_iter": 1, "refit": False, "random_state": 0}
    space = {"epsilon": (0.1, 1.0)}
    with pytest.raises(ValueError, match="fewer than 1000 records"):
        DParetoSearchCV(AtLeast(1000), space, **options).fit(X, y)
    assert hasattr(DParetoSearchCV(AtLeast(1), space, **options).fit(X, y), "pareto_front_")
