"""Candidates whose steps before the last are equal are fitted together (Theorem R6)."""

from __future__ import annotations

import functools
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.random_projection import GaussianRandomProjection

from skdptune import (
    BoundedScaler,
    DPGridSearchCV,
    DPLogisticRegression,
    DPRandomSearchCV,
    DPStandardScaler,
    PrivacyLedger,
    PrivateRows,
    RandomRuns,
    Schema,
    make_private_pipeline,
)

N = 600
rng = np.random.default_rng(0)
ROWS = rng.normal(size=(N, 3))
Y = (ROWS[:, 0] + rng.normal(size=N) > 0).astype(int)
TABLE = pd.DataFrame(ROWS, columns=list("abc"))
# Cells, and a label, that a search replaces.
TABLE.loc[3, "b"] = np.nan
ODD = Y.astype(object)
ODD[5] = "neither"
GROUPS = np.arange(N) // 3
MODEL = DPLogisticRegression(classes=[0, 1])
TABULAR = make_private_pipeline(MODEL, Schema(dict.fromkeys("abc", (-3, 3))))
SCALER = BoundedScaler(bounds=(-3, 3), feature_range=(-2, 2))
SPACE = {"dplogisticregression__C": [0.1, 1.0, 10.0]}
TOTAL = {"epsilon": 3.0, "delta": 1e-6, "random_state": 0}
GRID = {"strategy": "table", **TOTAL}

SEARCHES: dict[str, Any] = {
    "table": DPGridSearchCV(TABULAR, SPACE, **GRID),
    "folds": DPGridSearchCV(TABULAR, SPACE, cv=3, **GRID),
    "random": DPRandomSearchCV(TABULAR, SPACE, n_iter=12, strategy=RandomRuns(), **TOTAL),
    "two steps": DPGridSearchCV(make_pipeline(SCALER, "passthrough", MODEL), SPACE, **GRID),
    "persons": DPGridSearchCV(make_pipeline(SCALER, MODEL), SPACE, **GRID),
    "several": DPGridSearchCV(TABULAR, {**SPACE, "tableencoder__n_knots": [2, 4]}, **GRID),
    "parts": DPGridSearchCV(TABULAR, SPACE, **GRID),
}


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return how many models each call fits together."""
    found: list[int] = []
    together = DPLogisticRegression.fit_many.__func__  # type: ignore[attr-defined]

    @functools.wraps(together)
    def noted(kind: Any, models: Any, *args: Any, **more: Any) -> Any:
        found.append(len(models))
        return together(kind, models, *args, **more)

    monkeypatch.setattr(DPLogisticRegression, "fit_many", classmethod(noted))
    return found


def learned(name: str, search: Any) -> Any:
    """Return all that a search shows, and what its ledger says."""
    ledger = PrivacyLedger(":memory:", "visits", epsilon=5.0, delta=1e-4)
    search = clone(search).set_params(ledger=ledger)
    if name == "parts":
        search.fit(PrivateRows.from_arrays(TABLE, Y, rows_per_part=250))
    elif name == "persons":
        search.fit(ROWS, Y, groups=GROUPS)
    else:
        search.fit(TABLE, ODD)
    scores = search.cv_results_.get("mean_test_score", [search.best_score_])
    return (
        [float(score).hex() for score in scores],
        search.best_params_,
        search.best_estimator_[-1].coef_.tobytes(),
        search.privacy_,
        [(record.name, record.epsilon, record.status) for record in ledger.history()],
    )


@pytest.mark.parametrize("name", SEARCHES)
def test_candidates_with_equal_steps_are_fitted_together_as_alone(
    name: str, counts: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Theorem R6: steps before the private one process each record separately.
    together = learned(name, SEARCHES[name])
    assert max(counts) > 2
    counts.clear()
    monkeypatch.setattr(DPLogisticRegression, "shares_passes", False)
    assert learned(name, SEARCHES[name]) == together
    assert not counts
    assert len(together[-1]) == 1


@pytest.mark.parametrize(
    "step",
    [DPStandardScaler(bounds=(-3, 3)), GaussianRandomProjection(2)],
    ids=["learns", "has a seed"],
)
def test_what_candidates_do_not_have_in_common_is_fitted_for_each(
    step: Any, counts: list[int]
) -> None:
    # Theorem R6: steps before the private one process each record separately.
    search = DPGridSearchCV(make_pipeline(SCALER, step, MODEL), SPACE, **GRID)
    search.fit(TABLE, ODD)
    assert not counts
    assert len(search.cv_results_["params"]) > 3


def test_workers_divide_candidates_with_equal_steps(counts: list[int]) -> None:
    one = learned("several", SEARCHES["several"])
    assert sorted(counts) == [1, 3, 3]
    counts.clear()
    with joblib.parallel_config(backend="threading"):
        two = learned("several", clone(SEARCHES["several"]).set_params(n_jobs=2))
    assert two == one and sorted(counts) == [1, 1, 1, 2, 2]


def test_steps_of_candidates_are_their_own() -> None:
    # A step is a copy: a change of the winner's changes no other model.
    search = clone(SEARCHES["table"]).fit(TABLE, ODD)
    assert search.best_estimator_[0] is not search.estimator[0]
    assert not hasattr(search.estimator[0], "n_features_in_")
