"""Without a scoring, classifiers are scored by accuracy, and regressions by the squared error."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.compose import TransformedTargetRegressor

from skdptune import (
    DPGridSearchCV,
    DPRandomSearchCV,
    DPRidge,
    PrivateConformalRegressor,
)
from skdptune.ensemble import DPExplainableBoostingRegressor
from skdptune.metrics import neg_squared_error
from skdptune.preprocessing import Schema, make_private_pipeline

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3000, 3))
Y = 120.0 + X @ [3.0, -2.0, 0.0] + RNG.normal(size=3000)


@pytest.mark.parametrize(
    ("bound", "error"), [((100.0, 140.0), 100.0), (2.0, 1.0), ([-1.0, 3.0], 1.0)], ids=str
)
def test_errors_are_clipped_at_a_quarter_of_the_range(bound, error):
    ridge = DPRidge(target_bound=bound)
    search = DPRandomSearchCV(ridge, {"alpha": [1.0, 9.0]}, epsilon=1.0)
    assert search.fit(X, Y).scorer_.lower == -error
    assert search.scorer_.upper == 0.0


def test_it_is_that_of_the_scoring_by_name():
    searches = [
        DPGridSearchCV(
            DPRidge(target_bound=(100.0, 140.0)), {"alpha": [1.0, 1e4]},
            epsilon=2.0, scoring=scoring, random_state=0,
        ).fit(X, Y)
        for scoring in (None, neg_squared_error(100.0))
    ]  # fmt: skip
    one, other = (search.cv_results_["mean_test_score"] for search in searches)
    np.testing.assert_array_equal(one, other)
    assert searches[0].best_estimator_.score(X, Y) > 0.8


def test_pipelines_over_tables_need_no_scoring():
    schema = Schema({name: (-4, 4) for name in "abc"}, target=(100, 140))
    pipeline = make_private_pipeline(DPRidge(), schema)
    boosting = DPExplainableBoostingRegressor(schema=schema)
    intervals = PrivateConformalRegressor(pipeline)
    for model, space in (
        (pipeline, {"tableencoder__n_knots": [2, 5]}),
        (intervals, {"estimator__tableencoder__n_knots": [2, 5]}),
        (boosting, {"learning_rate": [0.1, 1.0]}),
    ):
        search = DPRandomSearchCV(model, space, epsilon=1.0)
        assert search.plan(20_000, 3, compare=False).row.expected_fits > 1.0


def test_the_range_is_that_of_targets_before_they_are_transformed():
    ridge = DPRidge(target_bound=(4.6, 5.0))
    inside = TransformedTargetRegressor(
        ridge, func=np.log, inverse_func=np.exp, check_inverse=False
    )
    intervals = PrivateConformalRegressor(inside, target_bound=(100.0, 140.0))
    search = DPRandomSearchCV(intervals, {"estimator__regressor__alpha": [1.0, 9.0]}, epsilon=1.0)
    assert search.fit(X, Y).scorer_.lower == -100.0
    with pytest.raises(ValueError, match="scoring must be given"):
        DPRandomSearchCV(inside, {"regressor__alpha": [1.0, 9.0]}, epsilon=1.0).fit(X, Y)


def test_without_a_range_it_is_asked_for():
    for model in (DPRidge(), DPExplainableBoostingRegressor()):
        for kind in (DPRandomSearchCV, DPGridSearchCV):
            with pytest.raises((ValueError, TypeError), match="scoring must be given"):
                kind(model, {"alpha": [1.0]}, epsilon=1.0).fit(X, Y)
