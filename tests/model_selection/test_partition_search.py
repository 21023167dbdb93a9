"""The price of publishing an index, and what is trained on the parts."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier

from skdptune.linear_model import DPLogisticRegression
from skdptune.model_selection import DPGridSearchCV
from skdptune.model_selection._cost._noisy_choice import surrogate_estimator
from tests.model_selection.learners import Scripted

DELTA = 1e-5
VALUES = {"quality": [0.1, 0.9]}


def test_total_lies_between_the_fit_and_the_sum() -> None:
    search = DPGridSearchCV(Scripted(delta=DELTA), VALUES, selection_epsilon=0.3)
    total = search.privacy_profile(1000, 3).epsilon(DELTA)
    assert 0.999 < total <= 1.3


def test_pick_costs_a_quarter_of_the_total_by_default() -> None:
    search = DPGridSearchCV(Scripted(), VALUES, epsilon=2.0, delta=DELTA)
    plan = search._prepare(1000, 3)
    assert plan.model.pick_epsilon == 0.5
    own = DPGridSearchCV(Scripted(delta=DELTA), VALUES)._prepare(1000, 3)
    assert own.model.pick_epsilon == pytest.approx(0.25, rel=1e-3)


def test_parts_of_the_report() -> None:
    report = DPGridSearchCV(Scripted(delta=DELTA), VALUES, n_partitions=7).plan(1000, 3).report
    assert [part.name for part in report.parts] == ["selection", "final fit"]
    assert "the best of 2, permute-and-flip, 7 disjoint parts" in report.parts[0].note


def test_stand_in_has_no_noise() -> None:
    search = DPGridSearchCV(Scripted(delta=DELTA), VALUES)
    made = surrogate_estimator(search, search._prepare(1000, 3), {"quality": 0.9})
    assert (made.quality, made.epsilon) == (0.9, np.inf)


def test_stand_in_may_be_anything_with_the_same_parameters() -> None:
    class Other(DummyClassifier):
        def __init__(self, quality: float = 0.5) -> None:
            super().__init__()
            self.quality = quality

    search = DPGridSearchCV(Scripted(delta=DELTA), VALUES, tuning_estimator=Other())
    search.tuning_estimator._skl_callbacks = ["callback"]
    made = surrogate_estimator(search, search._prepare(1000, 3), {"quality": 0.9})
    assert (type(made), made.quality) == (Other, 0.9)
    assert not hasattr(made, "_skl_callbacks")


def test_stand_in_keeps_its_learning_rate_and_its_noise_beside_the_signal() -> None:
    model = DPLogisticRegression(solver="sgd", batch_size=0.1, classes=[0, 1])
    search = DPGridSearchCV(
        model, {"learning_rate": [0.3, 3.0]}, n_partitions=5, epsilon=1.0, delta=DELTA
    )
    plan = search._prepare(1000, 3)
    made = surrogate_estimator(search, plan, {"learning_rate": 3.0})
    assert made.learning_rate == 3.0
    final = plan.model.fit_costs.configured(
        {"learning_rate": 3.0}, plan.cost.budget, plan.model.final_size
    )
    share = 160 / plan.model.final_size.n_samples
    assert made.noise_multiplier == pytest.approx(final.noise_level(800, 3) * share, rel=0.3)


def test_stand_in_of_a_net_keeps_its_learning_rate() -> None:
    pytest.importorskip("opacus")
    from skdptune.neural_network import DPNeuralNetClassifier

    net = DPNeuralNetClassifier(classes=[0, 1], batch_size=0.1)
    search = DPGridSearchCV(net, {"lr": [0.3, 3.0]}, n_partitions=5, epsilon=1.0, delta=DELTA)
    made = surrogate_estimator(search, search._prepare(1000, 3), {"lr": 3.0})
    assert (made.lr, made.epsilon) == (3.0, None)
