"""Candidates scaled to fewer records."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.pipeline import make_pipeline

from skdptune.base import scale_to_tuning
from tests.model_selection.learners import Scripted


class Scaled(Scripted):
    def tuning_parameters(self, n_tune: int, n_final: int) -> dict[str, Any]:
        return {"quality": self.quality * n_tune / n_final}


class Stepping(Scripted):
    def __init__(self, lr: float = 8.0, learning_rate: float = 4.0, epsilon: float = 1.0) -> None:
        super().__init__(epsilon=epsilon)
        self.lr = lr
        self.learning_rate = learning_rate

    def tuning_parameters(self, n_tune: int, n_final: int) -> dict[str, Any]:
        share = n_tune / n_final
        return {"lr": self.lr * share, "learning_rate": self.learning_rate * share}


@pytest.mark.parametrize(("rule", "factor"), [("auto", 0.5), ("linear", 0.25)])
def test_learning_rates_are_scaled_half_the_way_by_default(rule: str, factor: float) -> None:
    # Estimators and nets name it differently.
    stepping = Stepping()
    scale_to_tuning(stepping, 100, 400, rule)
    assert (stepping.lr, stepping.learning_rate) == (8.0 * factor, 4.0 * factor)


def test_own_rule_is_applied_and_then_the_users_rule() -> None:
    def own(rule: Any) -> float:
        pipeline = make_pipeline(Scaled(quality=0.8))
        scale_to_tuning(pipeline, 100, 400, rule)
        return pipeline[0].quality

    assert own("auto") == 0.2
    assert own(None) == 0.8
    assert own(lambda params, n_tune, n_final: {"scaled__quality": n_tune / 1000}) == 0.1
    with pytest.raises(ValueError, match="must not change parameters that set the cost"):
        own(lambda params, n_tune, n_final: {"scaled__epsilon": 9.0})
