"""Whether a cost may depend on the label set."""

from __future__ import annotations

import pytest
from sklearn.pipeline import Pipeline

from skdptune.linear_model import DPLogisticRegression
from skdptune.model_selection._cost._candidates import Candidates
from skdptune.model_selection._cost._fit_costs import labels_set_the_cost
from tests.model_selection.learners import Scripted


def needs(estimator: object, values: object) -> bool:
    return labels_set_the_cost(estimator, Candidates(values, name="param_grid", drawn=False))


@pytest.mark.parametrize(
    ("estimator", "values", "wanted"),
    [
        (DPLogisticRegression(solver="objective"), {"tol": [1e-3]}, True),
        (DPLogisticRegression(solver="objective", classes=[0, 1]), {"tol": [1e-3]}, False),
        (DPLogisticRegression(solver="sgd"), {"learning_rate": [1.0]}, False),
        # Another solver's cost may depend on the labels.
        (DPLogisticRegression(solver="sgd"), {"solver": ["sgd", "objective"]}, True),
        (Scripted(), {"quality": [0.1]}, False),
        # A step that is searched over, in place of none.
        (
            Pipeline([("last", None)]),
            {"last": [DPLogisticRegression(solver="objective")]},
            True,
        ),
    ],
)
def test_labels_that_nobody_declared(estimator: object, values: object, wanted: bool) -> None:
    assert needs(estimator, values) is wanted
