"""The reports that displays draw are those of the fit, before it and after it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skdptune.base import NoProfileError
from skdptune.base._shared import assumptions_in
from skdptune.inspection._sources import report_of_estimator, report_of_search
from skdptune.linear_model import DPLogisticRegression
from skdptune.model_selection import DPGridSearchCV, DPRandomSearchCV
from skdptune.preprocessing import DPStandardScaler, RowNormClipper

MODEL = DPLogisticRegression(
    epsilon=1.0, delta=1e-5, solver="output", classes=[0, 1], random_state=0
)
PSGD = DPLogisticRegression(epsilon=1.0, solver="psgd", classes=[0, 1], random_state=0)
SCALER = DPStandardScaler(0.5, delta=1e-6, bounds=(-1.0, 1.0), random_state=0)
SPACE = {"C": [0.1, 1.0]}


@pytest.mark.filterwarnings("ignore:random_state")
@pytest.mark.parametrize(
    "estimator",
    [
        MODEL,
        SCALER,
        make_pipeline(SCALER, MODEL),
        PSGD,
        make_pipeline(RowNormClipper(1.0), PSGD),
        make_pipeline(RowNormClipper(1.0)),
        DPGridSearchCV(MODEL, SPACE, epsilon=1.0, delta=1e-5, random_state=0),
    ],
    ids=["model", "scaler", "pipeline", "zero-out", "zero-out pipeline", "stateless", "search"],
)
def test_a_fit_to_come_is_reported_as_after_it(estimator: Any) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1.0, 1.0, size=(400, 2)), np.arange(400) % 2
    estimator = clone(estimator)
    before = report_of_estimator(estimator, 400, 2)
    after = report_of_estimator(estimator.fit(X, y))
    assert (before.epsilon, before.delta) == pytest.approx((after.epsilon, after.delta))
    assert before.epsilon_spent == pytest.approx(after.epsilon_spent)
    assert before.neighbouring == after.neighbouring
    assert set(before.assumptions) <= set(assumptions_in(after))


def test_what_has_no_report_is_refused() -> None:
    with pytest.raises(ValueError, match="estimator must be fitted where n_samples is not given"):
        report_of_estimator(make_pipeline(SCALER, MODEL))
    with pytest.raises(NoProfileError):
        report_of_estimator(LogisticRegression(), 100, 2)
    with pytest.raises(TypeError, match="got the class DPRandomSearchCV"):
        report_of_search(DPRandomSearchCV, 100, 2)
    with pytest.raises(TypeError, match="estimator must be an estimator with fit; got 1"):
        report_of_estimator(1, 100, 2)
