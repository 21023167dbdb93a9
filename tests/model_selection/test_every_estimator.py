"""Every private estimator with its defaults in every search: it is fitted, and predicts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import is_classifier
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

HAS_NETS = all(find_spec(name) for name in ("torch", "skorch", "opacus"))

EPSILON = 8.0
SOLVERS = ("objective", "output", "sgd", "adam", "psgd")
SCALERS = {
    "DPMinMaxScaler": {"bounds": (-4.0, 4.0)},
    "DPPCA": {"bounds": (-4.0, 4.0), "n_components": 2},
    "DPStandardScaler": {"bounds": (-4.0, 4.0)},
    "BoundedScaler": {"bounds": (-4.0, 4.0)},
    "RowNormClipper": {},
}
# Not estimators themselves.
OTHERS = {
    "SufficientStatistics",
    "Schema",
    "SchemaQuality",
    "TableEncoder",
    "make_private_pipeline",
}
OTHER_NETS = {"LogisticHead", "MLP", "PopulationTrainer", "SmallCNN"}
SCHEMA = {"a": [-4.0, 4.0], "b": [-4.0, 4.0], "c": ["x", "y"]}


def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    return X, X[:, 0] - X[:, 1] > 0.0


def table() -> pd.DataFrame:
    X, _ = data()
    return pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": np.where(X[:, 2] > 0.0, "x", "y")})


def estimators() -> Iterator[tuple[str, Callable[[], Any], str]]:
    """Yield the name of each estimator, what makes it, and a parameter to search over."""
    for solver in SOLVERS:
        rate = "C" if solver in ("objective", "output", "psgd") else "learning_rate"
        yield solver, lambda solver=solver: DPLogisticRegression(solver=solver), rate
    for name in linear_model.__all__:
        kind = getattr(linear_model, name)
        if name.startswith("DP") and name != "DPRidge":
            yield name, kind, "C"
        elif name not in OTHERS:
            yield name, lambda kind=kind: kind(data_norm=3.0, target_bound=1.0), "alpha"
    for name in preprocessing.__all__:
        if name not in OTHERS:
            scaler = getattr(preprocessing, name)
            yield (
                name,
                lambda scaler=scaler, name=name: make_pipeline(
                    scaler(**SCALERS[name]), DPLogisticRegression(solver="output")
                ),
                "dplogisticregression__C",
            )
    yield (
        "table",
        lambda: preprocessing.make_private_pipeline(DPLogisticRegression(solver="output"), SCHEMA),
        "dplogisticregression__C",
    )
    if HAS_NETS:
        for name in neural_network.__all__:
            if name not in OTHER_NETS:
                kind = getattr(neural_network, name)
                yield name, lambda kind=kind: kind(max_epochs=1), "lr"


SEARCHES: dict[str, Callable[..., Any]] = {
    "grid": DPGridSearchCV,
    "random": DPRandomSearchCV,
    "doubling": DoublingThresholdSearchCV,
    "adaptive": DPAdaptiveSearchCV,
    "pareto": DParetoSearchCV,
}
# On a random part of the records, whose size is secret.
NEEDS_ITS_SIZE = {("random", "psgd"), ("adaptive", "psgd")}
ESTIMATORS = {name: (make, parameter) for name, make, parameter in estimators()}


def pairs() -> list[Any]:
    """Return all pairs of a search and an estimator; of those alike, one is quick.

    Each estimator is in the quickest search at least, and each search has a few.
    """
    quick = {("adaptive", "psgd"), ("grid", "DPNeuralNetClassifier")}
    return [
        pytest.param(
            kind,
            name,
            marks=()
            if kind == "random" or name in ("DPRidge", "table") or (kind, name) in quick
            else pytest.mark.slow,
            id=f"{kind}-{name}",
        )
        for kind in SEARCHES
        for name in ESTIMATORS
    ]


@pytest.mark.filterwarnings("ignore::skdptune.base.PrivacyWarning")
@pytest.mark.parametrize(("kind", "name"), pairs())
def test_a_search_over_any_private_estimator_returns_a_model(kind: str, name: str) -> None:
    make, parameter = ESTIMATORS[name]
    estimator, (X, y) = make(), data()
    X = table() if name == "table" else X
    settings: dict[str, Any] = {"delta": 1e-3, "random_state": 0}
    if not is_classifier(estimator):
        settings["scoring"], y = neg_squared_error(bound=2.0), np.where(y, 1.0, -1.0)
    if kind == "pareto":
        pytest.importorskip("optuna")
        pytest.importorskip("moocore")
        budget = parameter.rpartition("__")[0] + "__epsilon" if "__" in parameter else "epsilon"
        space = {parameter: (0.1, 1.0), budget: (1.0, 8.0)}
        settings |= {"n_initial": 2, "n_iter": 1, "refit": True}
    else:
        space = {parameter: [0.1, 1.0]}
        settings["epsilon"] = EPSILON
    if kind == "adaptive":
        pytest.importorskip("optuna")
        settings |= {"n_trials": 2, "sampler": "random"}
    search = flat(SEARCHES[kind], estimator, space, **settings)
    if (kind, name) in NEEDS_ITS_SIZE:
        with pytest.raises(ValueError, match="whose guarantee needs the number of records"):
            search.fit(X, y)
        return
    search.fit(X, y)
    predicted = search.predict(X)
    assert predicted.shape == (400,)
    assert set(predicted) <= set(y) if is_classifier(estimator) else np.isfinite(predicted).all()
    if kind != "pareto":
        assert search.privacy_.epsilon <= EPSILON
        assert search.privacy_.epsilon >= 0.99 * EPSILON


@pytest.mark.filterwarnings("ignore::skdptune.base.PrivacyWarning")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name,
            marks=()
            if name in ("objective", "sgd", "DPRidge", "DPStandardScaler", "table")
            else pytest.mark.slow,
        )
        for name in ESTIMATORS
    ],
)
def test_every_private_estimator_suggests_what_to_search(name: str) -> None:
    """At this size it is fitted as it is, and stays within the budget."""
    make, _ = ESTIMATORS[name]
    estimator, (X, y) = make(), data()
    X = table() if name == "table" else X
    settings: dict[str, Any] = {"epsilon": EPSILON, "delta": 1e-3, "random_state": 0}
    if not is_classifier(estimator):
        settings["scoring"], y = neg_squared_error(bound=2.0), np.where(y, 1.0, -1.0)
    search = flat(DPGridSearchCV, estimator, **settings).fit(X, y)
    assert search.predict(X).shape == (400,)
    assert 0.98 * EPSILON <= search.privacy_.epsilon_spent <= EPSILON
    own = search.estimator.get_params()
    assert search.best_params_ == {key: own[key] for key in search.best_params_} != {}
