"""Estimators inside estimators: prefixes, seeds, arguments of fit."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from skdptune.base import check_fit_parameters, nested_estimators, set_seeds
from skdptune.linear_model import DPLogisticRegression
from tests.model_selection.learners import Centroids, Scripted


def test_nested_estimators_have_prefixes() -> None:
    assert [
        prefix for prefix, _ in nested_estimators(make_pipeline(Normalizer(), Scripted()))
    ] == [
        "",
        "normalizer__",
        "scripted__",
    ]


def test_seeds_are_fresh_and_independent() -> None:
    pair = make_pipeline(Scripted(random_state=1), Centroids(random_state=1))
    set_seeds(pair, np.random.SeedSequence(5))
    found = (pair[0].random_state, pair[1].random_state)
    assert len({1, *found}) == 3
    again = clone(pair)
    set_seeds(again, np.random.SeedSequence(5))
    assert (again[0].random_state, again[1].random_state) == found
    set_seeds(pair, None)
    assert pair[0].random_state is pair[1].random_state is None


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
