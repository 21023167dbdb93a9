"""Code as people have it: one message names every change that docs/migrating.md makes.

Each case is code for scikit-learn or diffprivlib with a private search or model in place of the
original one. Nothing is fitted: all problems are found before the data are read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import (
    HalvingGridSearchCV,
    TunedThresholdClassifierCV,
    cross_val_score,
)
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, PolynomialFeatures, StandardScaler
from sklearn.svm import SVC

from skdptune import DPGridSearchCV, DPLogisticRegression, PrivacyLedger
from skdptune.base import PrivacyWarning, profile_of

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 3))
Y = (X[:, 0] > 0).astype(int)
TABLE = pd.DataFrame(X, columns=["age", "hours", "sector"])
COLUMNS = make_column_transformer(
    (make_pipeline(SimpleImputer(), StandardScaler()), ["age", "hours"]),
    (OneHotEncoder(handle_unknown="ignore"), ["sector"]),
)


def search(model: Any, name: str, X: Any = X, y: Any = Y) -> Any:
    grid = {name: [0.1, 1.0]}
    return DPGridSearchCV(model, grid, epsilon=1.0, delta=1e-5).fit(X, y)


PORTS: dict[str, tuple[Callable[[], Any], list[str]]] = {
    "ColumnTransformer": (
        lambda: search(
            make_pipeline(COLUMNS, LogisticRegression()), "logisticregression__C", TABLE
        ),
        ["simpleimputer", "onehotencoder", "TableEncoder(schema)", "DPLogisticRegression"],
    ),
    "PCA and SVC": (
        lambda: search(make_pipeline(StandardScaler(), PCA(2), SVC()), "svc__C"),
        ["DPStandardScaler(bounds=...)", "DPPCA(bounds=...)", "RBFSampler", "DPLinearSVC"],
    ),
    "PolynomialFeatures and Ridge": (
        lambda: search(make_pipeline(PolynomialFeatures(2), Ridge()), "ridge__alpha", y=X[:, 0]),
        ["DPRidge(target_bound=...)", "target_bound=(lower, upper)"],
    ),
    "text": (
        lambda: search(
            make_pipeline(TfidfVectorizer(), LogisticRegression()),
            "logisticregression__C",
            ["a good clerk"] * 300,
        ),
        ["HashingVectorizer", "DPLogisticRegression"],
    ),
    "images": (
        lambda: search(make_pipeline(MinMaxScaler(), MLPClassifier()), "mlpclassifier__alpha"),
        ["BoundedScaler(bounds)", "DPNeuralNetClassifier"],
    ),
    "class weights": (
        lambda: search(DPLogisticRegression(class_weight="balanced"), "C"),
        ["public shares", "PrivateThreshold"],
    ),
    "threshold": (
        lambda: search(TunedThresholdClassifierCV(LogisticRegression()), "estimator__C"),
        ["PrivateThreshold"],
    ),
    "forest": (
        lambda: search(RandomForestClassifier(), "min_samples_leaf"),
        ["not private", "DPExplainableBoostingClassifier"],
    ),
    "HalvingGridSearchCV": (
        lambda: profile_of(HalvingGridSearchCV(LogisticRegression(), {"C": [1.0]}), 300),
        ["HalvingGridSearchCV", "DPGridSearchCV"],
    ),
    "diffprivlib": (
        lambda: DPLogisticRegression(epsilon=1.0, data_nrom=2.0),
        ["DPLogisticRegression() got an unexpected keyword argument 'data_nrom'", "'data_norm'"],
    ),
}


@pytest.mark.parametrize("name", PORTS)
def test_one_message_names_every_change(name: str) -> None:
    call, words = PORTS[name]
    ledger = PrivacyLedger(":memory:", "people", epsilon=5.0, delta=1e-4)
    with ledger, pytest.raises((TypeError, ValueError)) as caught:
        call()
    for each in words:
        assert each in str(caught.value)
    assert not list(ledger.history())


def test_a_loop_over_fits_is_warned_of_with_what_replaces_it() -> None:
    model = DPLogisticRegression(epsilon=1.0, delta=1e-5, classes=[0, 1])
    with pytest.warns(PrivacyWarning, match="To tune, use skdptune.DPRandomSearchCV"):
        cross_val_score(model, X, Y, cv=3)
