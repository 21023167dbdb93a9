"""Every private estimator in every search: it is fitted, and predicts.

Its contract tries a grid and a random search (tests/testing/test_check_private_estimator.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier
from sklearn.pipeline import make_pipeline

from skdptune import linear_model, neural_network, preprocessing
from skdptune.linear_model import DPLogisticRegression
from skdptune.metrics import neg_squared_error
from skdptune.model_selection import (
    DoublingThresholdSearchCV,
    DPAdaptiveSearchCV,
    DParetoSearchCV,
    DPGridSearchCV,
    DPRandomSearchCV,
)
from tests.flat import flat
from tests.testing.public_estimators import HAS_NETS

EPSILON = 8.0
LIMITS = {"bounds": (-4.0, 4.0)}
SCALERS: dict[str, dict[str, Any]] = {
    **dict.fromkeys(("DPMinMaxScaler", "DPStandardScaler", "BoundedScaler"), LIMITS),
    "DPPCA": {**LIMITS, "n_components": 2},
    "RowNormClipper": {},
}
SCHEMA = {"a": [-4.0, 4.0], "b": [-4.0, 4.0], "c": ["x", "y"]}
RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 3))
Y = X[:, 0] - X[:, 1] > 0.0
TABLE = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": np.where(X[:, 2] > 0.0, "x", "y")})


def estimators() -> Iterator[tuple[str, Any, str]]:
    """Yield the name of each estimator, the estimator, and a parameter to search over."""
    for solver in ("objective", "output", "sgd", "adam", "psgd"):
        rate = "learning_rate" if solver in ("sgd", "adam") else "C"
        yield solver, DPLogisticRegression(solver=solver), rate
    yield "DPLinearSVC", linear_model.DPLinearSVC(), "C"
    for name in linear_model.__all__:
        if name.endswith(("Ridge", "LinearRegression")):
            kind = getattr(linear_model, name)
            yield name, kind(data_norm=3.0, target_bound=1.0), "alpha"
    output = DPLogisticRegression(solver="output")
    whole = "dplogisticregression__C"
    for name, settings in SCALERS.items():
        yield name, make_pipeline(getattr(preprocessing, name)(**settings), output), whole
    yield "table", preprocessing.make_private_pipeline(output, SCHEMA), whole
    for name in neural_network.__all__ if HAS_NETS else ():
        if name.startswith("DP"):
            yield name, getattr(neural_network, name)(max_epochs=1), "lr"


SEARCHES = {
    "grid": DPGridSearchCV,
    "random": DPRandomSearchCV,
    "doubling": DoublingThresholdSearchCV,
    "adaptive": DPAdaptiveSearchCV,
    "pareto": DParetoSearchCV,
}
# On a random part of the records, whose size is secret.
NEEDS_ITS_SIZE = {("random", "psgd"), ("adaptive", "psgd")}
ESTIMATORS = {name: (model, parameter) for name, model, parameter in estimators()}


def pairs() -> list[Any]:
    """Return all pairs of a search and an estimator; each search has a few quick ones."""
    quick = {*NEEDS_ITS_SIZE, ("random", "sgd"), ("grid", "DPNeuralNetClassifier")}
    return [
        pytest.param(kind, name, id=f"{kind}-{name}", marks=() if is_quick else pytest.mark.slow)
        for kind in SEARCHES
        for name in ESTIMATORS
        for is_quick in [name in ("DPRidge", "table") or (kind, name) in quick]
    ]


@pytest.mark.filterwarnings("ignore::skdptune.base.PrivacyWarning")
@pytest.mark.parametrize(("kind", "name"), pairs())
def test_a_search_over_any_private_estimator_returns_a_model(kind: str, name: str) -> None:
    estimator, parameter = ESTIMATORS[name]
    rows, y = TABLE if name == "table" else X, Y
    settings: dict[str, Any] = {"delta": 1e-3, "random_state": 0}
    if not is_classifier(estimator):
        settings["scoring"], y = neg_squared_error(bound=2.0), np.where(y, 1.0, -1.0)
    space: dict[str, Any] = {parameter: [0.1, 1.0]}
    if kind == "pareto":
        pytest.importorskip("optuna")
        pytest.importorskip("moocore")
        budget = f"{parameter.rpartition('__')[0]}__epsilon".removeprefix("__")
        space = {parameter: (0.1, 1.0), budget: (1.0, 8.0)}
        settings |= {"n_initial": 2, "n_iter": 1, "refit": True}
    else:
        settings["epsilon"] = EPSILON
    if kind == "adaptive":
        pytest.importorskip("optuna")
        settings |= {"n_trials": 2, "sampler": "random"}
    search = flat(SEARCHES[kind], clone(estimator), space, **settings)
    if (kind, name) in NEEDS_ITS_SIZE:
        with pytest.raises(ValueError, match="whose guarantee needs the number of records"):
            search.fit(rows, y)
        return
    predicted = search.fit(rows, y).predict(rows)
    assert predicted.shape == (400,)
    assert set(predicted) <= set(y) if is_classifier(estimator) else np.isfinite(predicted).all()
    if kind != "pareto":
        assert 0.99 * EPSILON <= search.privacy_.epsilon <= EPSILON
