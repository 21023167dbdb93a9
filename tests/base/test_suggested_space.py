"""What is suggested to search over: by an estimator, and by those inside it."""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from skdptune.base import suggested_space, suggests_a_space
from skdptune.preprocessing import RowNormClipper


class Suggesting(BaseEstimator):
    def __init__(self, rate: float | None = None) -> None:
        self.rate = rate

    def suggested_space(self, n_samples: int, n_features: int | None = None) -> dict[str, Any]:
        return {"rate": (self.rate, n_samples, n_features)}


class Around(BaseEstimator):
    def __init__(self, inner: Any = None) -> None:
        self.inner = inner


def test_an_estimator_speaks_for_itself() -> None:
    assert suggests_a_space(Suggesting())
    assert suggested_space(Suggesting(0.5), 100, 3) == {"rate": [0.5, 100, 3]}


def test_steps_are_named_and_know_their_columns() -> None:
    pipeline = make_pipeline(RowNormClipper(), PolynomialFeatures(2), Suggesting())
    assert suggests_a_space(pipeline)
    assert suggested_space(pipeline, 100, 3) == {"suggesting__rate": [None, 100, 10]}
    assert suggested_space(pipeline, 100, None) == {"suggesting__rate": [None, 100, None]}


def test_names_of_estimators_inside_add_up() -> None:
    outer = make_pipeline(Around(Suggesting(2.0)))
    assert suggested_space(outer, 9, 1) == {"around__inner__rate": [2.0, 9, None]}
    assert list(outer.get_params()) and "around__inner__rate" in outer.get_params()


def test_most_suggest_nothing() -> None:
    for estimator in (RowNormClipper(), make_pipeline(RowNormClipper(), "passthrough"), Around()):
        assert not suggests_a_space(estimator)
        assert suggested_space(estimator, 100, 3) == {}
