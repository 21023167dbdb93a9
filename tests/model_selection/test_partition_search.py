"""Searches on disjoint partitions: the cost of their choice, and what is trained there."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier

from skdptune.linear_model import DPLogisticRegression, NoisyStatisticsRidge
from skdptune.metrics import neg_squared_error
from skdptune.model_selection import DoublingThresholdSearchCV, DPGridSearchCV, NoisyMaximum
from tests.flat import flat
from tests.model_selection.learners import Scripted

DELTA = 1e-5
VALUES = {"quality": [0.1, 0.9]}


def test_total_lies_between_the_fit_and_the_sum() -> None:
    search = DPGridSearchCV(
        Scripted(delta=DELTA), VALUES, strategy=NoisyMaximum(selection_epsilon=0.3)
    )
    total = search.privacy_profile(1000, 3).epsilon(DELTA)
    assert 0.999 < total <= 1.3


def test_choice_costs_a_quarter_of_the_total_by_default() -> None:
    noisy_max = {"strategy": "noisy_max"}
    search = flat(DPGridSearchCV, Scripted(), VALUES, epsilon=2.0, delta=DELTA, **noisy_max)
    plan = search._make_plan(1000, 3)
    assert plan.model.solved.epsilon == 0.5
    own = DPGridSearchCV(Scripted(delta=DELTA), VALUES)._make_plan(1000, 3)
    assert own.model.solved.epsilon == pytest.approx(0.25, rel=1e-3)


@pytest.mark.parametrize("delta", [0.0, DELTA])
@pytest.mark.parametrize("kind", [DPGridSearchCV, DoublingThresholdSearchCV])
def test_choice_alone_costs_the_total(kind: type, delta: float) -> None:
    total = {"epsilon": 6.0, "delta": delta, "refit": False}
    search = flat(kind, Scripted(), VALUES, n_partitions=50, **total)
    assert 0.999 * 6.0 < search.privacy_profile(1000, 3).epsilon(delta) <= 6.0


def test_components_of_the_report() -> None:
    report = (
        DPGridSearchCV(Scripted(delta=DELTA), VALUES, strategy=NoisyMaximum(n_partitions=7))
        .plan(1000, 3)
        .report
    )
    assert [part.name for part in report.parts] == ["selection", "final fit"]
    assert "the best of 2, permute-and-flip, 7 disjoint partitions" in report.parts[0].note


def test_surrogate_has_no_noise() -> None:
    search = DPGridSearchCV(Scripted(delta=DELTA), VALUES, strategy="noisy_max")
    made = search._strategy().surrogate(search._make_plan(1000, 3), {"quality": 0.9})
    assert (made.quality, made.epsilon) == (0.9, np.inf)


def test_surrogate_may_be_anything_with_the_same_parameters() -> None:
    class Other(DummyClassifier):
        def __init__(self, quality: float = 0.5) -> None:
            super().__init__()
            self.quality = quality

    search = DPGridSearchCV(
        Scripted(delta=DELTA), VALUES, strategy=NoisyMaximum(tuning_estimator=Other())
    )
    search.strategy.tuning_estimator._skl_callbacks = ["callback"]
    made = search._strategy().surrogate(search._make_plan(1000, 3), {"quality": 0.9})
    assert (type(made), made.quality) == (Other, 0.9)
    assert not hasattr(made, "_skl_callbacks")


def test_surrogate_keeps_its_learning_rate_and_its_noise_beside_the_signal() -> None:
    model = DPLogisticRegression(solver="sgd", batch_size=0.1, classes=[0, 1])
    search = DPGridSearchCV(
        model,
        {"learning_rate": [0.3, 3.0]},
        epsilon=1.0,
        delta=DELTA,
        strategy=NoisyMaximum(n_partitions=5),
    )
    plan = search._make_plan(1000, 3)
    made = search._strategy().surrogate(plan, {"learning_rate": 3.0})
    assert made.learning_rate == 3.0
    final = plan.model.fit_costs.configured(
        {"learning_rate": 3.0}, plan.cost.setting, plan.model.final_size
    )
    share = 160 / plan.model.final_size.n_samples
    assert made.noise_multiplier == pytest.approx(final.noise_level(800, 3) * share, rel=0.3)


def test_surrogate_of_a_net_keeps_its_learning_rate() -> None:
    pytest.importorskip("opacus")
    from skdptune.neural_network import DPNeuralNetClassifier

    net = DPNeuralNetClassifier(classes=[0, 1], batch_size=0.1)
    search = DPGridSearchCV(
        net, {"lr": [0.3, 3.0]}, epsilon=1.0, delta=DELTA, strategy=NoisyMaximum(n_partitions=5)
    )
    made = search._strategy().surrogate(search._make_plan(1000, 3), {"lr": 3.0})
    assert (made.lr, made.epsilon) == (3.0, None)


def test_surrogate_without_a_noise_parameter_is_scaled_and_has_no_noise() -> None:
    # A linear regression reports its noise, but takes none.
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, size=(400, 3))
    search = DPGridSearchCV(
        NoisyStatisticsRidge(target_bound=1.0),
        {"alpha": [0.1, 10.0]},
        epsilon=1.0,
        delta=DELTA,
        scoring=neg_squared_error(bound=4.0),
        strategy=NoisyMaximum(n_partitions=4),
    )
    made = search._strategy().surrogate(search._make_plan(400, 3), {"alpha": 10.0})
    assert made.epsilon == np.inf
    # 400 records, of which 80 are kept for the scores.
    assert made.alpha == pytest.approx(10.0 * 80 / 400)
    assert search.fit(X, X[:, 0]).privacy_.epsilon == 1.0
