"""Numbers of a fit that one record moves."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skdptune.audit._games import margins, numbers_of, response

X = np.random.default_rng(0).normal(size=(40, 2))
ROW = np.array([2.0, -1.0])


def test_a_margin_is_the_score_of_a_class_over_the_mean_of_the_others():
    np.testing.assert_array_equal(margins(np.array([1.0, -2.0]), np.array([1, 0])), [1.0, 2.0])
    scores = np.array([[1.0, 4.0, 2.0], [5.0, 1.0, 3.0]])
    np.testing.assert_array_equal(margins(scores, np.array([1, 2])), [2.5, 0.0])
    np.testing.assert_array_equal(margins(scores[:, :1], np.array([0, 1])), [-1.0, 5.0])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_responses_grow_with_what_is_said_of_the_label(n_classes):
    y = np.arange(40) % n_classes
    for model in (LogisticRegression(), GaussianNB()):
        fitted = model.fit(X, y)
        chances = np.log(fitted.predict_proba(X))
        own = chances[np.arange(40), y]
        expected = own - (chances.sum(axis=1) - own) / (n_classes - 1)
        found = response(fitted, X, y)
        assert np.corrcoef(found, expected)[0, 1] > 0.99
    regression = LinearRegression().fit(X, y)
    np.testing.assert_array_equal(response(regression, X, y), regression.predict(X))


def test_a_chance_of_nothing_is_finite():
    fitted = DummyClassifier(strategy="constant", constant=0).fit(X, np.arange(40) % 2)
    assert np.isfinite(response(fitted, X, np.ones(40))).all()


def test_all_steps_and_scores_are_looked_at():
    y = np.arange(40) % 2
    pipeline = make_pipeline(FunctionTransformer(), StandardScaler(), LogisticRegression())
    fitted = pipeline.fit(X, y)
    found = numbers_of(fitted, ROW, 1)
    scaler = fitted[1]
    learnt = [scaler.mean_.sum(), scaler.var_.sum(), scaler.scale_.sum()]
    np.testing.assert_allclose(found, [*learnt, fitted.decision_function(ROW[None])[0]])
    search = GridSearchCV(pipeline, {"logisticregression__C": [0.1, 1.0]}, cv=2).fit(X, y)
    found = numbers_of(search, ROW, 1)
    assert found.size == 6
    assert found[0] == pytest.approx(search.cv_results_["mean_test_score"].sum())
    assert found[1] == pytest.approx(search.best_score_)


def test_what_says_nothing_is_refused():
    with pytest.raises(TypeError, match="statistic"):
        numbers_of(FunctionTransformer().fit(X), ROW, None)
