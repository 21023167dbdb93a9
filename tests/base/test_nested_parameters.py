"""Estimators inside estimators: prefixes, seeds, arguments of fit."""

from __future__ import annotations

import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from skdptune.base import change_parameters, check_fit_parameters, nested_estimators
from skdptune.linear_model import DPLogisticRegression
from tests.model_selection.learners import Scripted


def test_nested_estimators_have_prefixes() -> None:
    assert [
        prefix for prefix, _ in nested_estimators(make_pipeline(Normalizer(), Scripted()))
    ] == [
        "",
        "normalizer__",
        "scripted__",
    ]


def test_parameters_of_fit_are_known() -> None:
    check_fit_parameters(Scripted(), ["sample_weight"])
    pipeline = make_pipeline(Normalizer(), Scripted())
    check_fit_parameters(pipeline, ["scripted__sample_weight"])
    for name in ("sample_weight", "typo", "warm"):
        with pytest.raises(TypeError, match="DPLogisticRegression.fit takes"):
            check_fit_parameters(DPLogisticRegression(), [name])
    for name in ("sample_weight", "scripted__weights", "other__sample_weight"):
        with pytest.raises(TypeError, match=f"Pipeline.fit takes; got '{name}'"):
            check_fit_parameters(pipeline, [name])


def test_an_estimator_is_not_asked_to_set_nothing() -> None:
    class Demanding(Scripted):
        def set_params(self, **params: float) -> Demanding:
            self.quality = params["quality"]
            return self

    estimator = Demanding()
    assert change_parameters(estimator, {}) is estimator
    assert change_parameters(estimator, {"quality": 0.3}).quality == 0.3
