"""The plan of a search that returns one tuned model."""

from __future__ import annotations

import pytest

from skdptune.linear_model import DPLogisticRegression
from skdptune.model_selection import DPRandomSearchCV
from tests.model_selection.learners import Scripted

DELTA = 1e-5


def test_a_plan_has_what_the_search_publishes() -> None:
    search = DPRandomSearchCV(Scripted(), {"quality": [0.1, 0.9]}, epsilon=2.0, delta=DELTA)
    plan = search._make_plan(1000, 3)
    assert plan.total == search.privacy_profile(1000, 3)
    assert (plan.asked, plan.delta, plan.layout.n_samples) == (2.0, DELTA, 1000)
    assert [component.name for component in plan.components] == [
        part.name for part in search.plan(1000, 3, compare=False).report.parts
    ]


def test_labels_reach_the_candidates() -> None:
    model = DPLogisticRegression(solver="sgd", epochs=1)
    search = DPRandomSearchCV(model, {"C": [0.1]}, epsilon=2.0, delta=DELTA)
    plan = search._make_plan(1000, 3).with_classes([0, 1, 2])
    made = plan.model.fit_costs.configured({}, plan.cost.setting, plan.model.final_size)
    assert made.classes == [0, 1, 2]


def test_noise_is_that_of_the_final_fit_where_the_estimator_has_a_noise_level() -> None:
    model = DPLogisticRegression(solver="sgd", epochs=1, batch_size=0.1, classes=[0, 1])
    plan = DPRandomSearchCV(model, {"C": [0.1]}, epsilon=2.0, delta=DELTA)._make_plan(1000, 3)
    assert plan.noise_of_final() == pytest.approx(plan.cost.setting.noise)
    plan = DPRandomSearchCV(Scripted(), {}, epsilon=2.0, delta=DELTA)._make_plan(1000, 3)
    assert plan.noise_of_final() is None
