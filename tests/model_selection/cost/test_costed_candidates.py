"""What a driven search may try: candidates that cost no more than the plan covers."""

from __future__ import annotations

from typing import Any

import pytest
from scipy.stats import uniform
from sklearn.linear_model import LogisticRegression

from skdptune.linear_model import DPLogisticRegression
from skdptune.model_selection import DoublingThresholdSearchCV, ThresholdRounds
from tests.model_selection.threshold_searches import DELTA, Expensive, X, Y, search


@pytest.mark.parametrize(
    ("candidate", "words"),
    [
        ({"epsilon": 50.0}, "leave 'epsilon'"),
        ({"random_state": 1}, "leave 'random_state'"),
        ({"colour": 1}, "must name parameters"),
        ({"mark": 4}, "covers"),
        ({"mark": 3}, "covers"),
        ({"quality": 0.5}, "covers"),
        ({}, "covers"),
    ],
)
def test_candidates_that_were_not_costed_are_refused(
    candidate: dict[str, Any], words: str
) -> None:
    """The estimator's own mark is none of those in the grid."""
    # Theorem D3.
    estimator = Expensive(mark=3, epsilon=1.0, delta=DELTA)
    session = search({"mark": [1, 2]}, estimator=estimator, epsilon=4.0).start(X, Y)
    with pytest.raises(ValueError, match=words):
        session.propose([{"mark": 1}, candidate])
    assert session.trace == ()
    # What does not set the cost may have any value.
    session.propose([{"mark": 2, "quality": 0.123}])
    assert len(session.trace) == 1


def test_any_plain_value_is_costed_where_all_are_held_to_one_budget() -> None:
    session = DoublingThresholdSearchCV(
        DPLogisticRegression(1.0, DELTA, classes=[0, 1]),
        param_distributions={"C": uniform(0.1, 1.0)},
        epsilon=4.0,
        delta=DELTA,
        strategy=ThresholdRounds(n_partitions=2, tuning_estimator=LogisticRegression()),
    ).start(X, Y)
    session._costed.check([{"C": 17.0}])
    with pytest.raises(ValueError, match="covers"):
        session._costed.check([{"C": 1.0, "fit_intercept": False, "solver": "sgd"}])
    with pytest.raises(ValueError, match="tuning_estimator, too"):
        session._costed.check([{"C": 1.0, "data_norm": 2.0}])
