"""What a search costs, against the components that it is made of."""

from __future__ import annotations

import pytest

from skdptune.accounting import Geometric, PrivacyProfile
from skdptune.model_selection._cost import CostModel, own_delta
from skdptune.model_selection._cost._candidates import Candidates
from skdptune.model_selection._cost._fit_costs import BudgetSetting, FitCosts
from skdptune.model_selection._cost._layout import make_layout
from tests.model_selection.learners import Scripted

DELTA = 1e-5


def model(score_epsilon: float | None = None, **more: object) -> CostModel:
    settings = {"cv": 0.2, "public": False, "tuning_fraction": None, "variant": 1}
    settings |= {"refit": "winner", "is_random": False, **more}
    candidates = Candidates({"quality": [0.1, 0.9]}, name="param_grid", drawn=False)
    fit_costs = FitCosts(Scripted(delta=DELTA), candidates, "auto")
    distribution = Geometric.from_mean(4)
    return CostModel(
        make_layout(1000, 3, **settings),
        fit_costs,
        DELTA,
        lambda run: run.selected(distribution),
        score_epsilon=score_epsilon,
        note="note",
        bound="envelope",
    )


def fit() -> PrivacyProfile:
    return Scripted(delta=DELTA).privacy_profile(1)


def test_public_scores_are_free() -> None:
    cost = model(public=True).at(None)
    assert cost.score_noise.kind == "none"
    assert cost.total.epsilon(DELTA) == pytest.approx(
        fit().selected(Geometric.from_mean(4)).epsilon(DELTA), rel=1e-6
    )


def test_refit_composes() -> None:
    cost = model(public=True, refit=True).at(None)
    expected = fit().selected(Geometric.from_mean(4)) + fit()
    assert cost.total.epsilon(DELTA) == pytest.approx(expected.epsilon(DELTA), rel=1e-6)


def test_folds_cost_each_fit_and_one_score() -> None:
    # Theorem F1.
    cost = model(cv=3, refit=False, score_epsilon=0.3).at(None)
    run = fit() * 2 + cost.score_noise.profile
    assert cost.trained == run.selected(Geometric.from_mean(4))
    assert cost.score_noise.profile.epsilon(DELTA) == pytest.approx(0.3, rel=1e-2)


def test_records_train_or_score() -> None:
    # Theorem F1.
    cost = model().at(None)
    selected = fit().selected(Geometric.from_mean(4)).epsilon(DELTA)
    assert cost.total.epsilon(DELTA) <= selected * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_solved_meets_the_total(epsilon: float) -> None:
    cost = model(public=True).within(epsilon)
    assert 0.99 * epsilon <= cost.total.epsilon(DELTA) <= epsilon
    assert model(public=True).at(cost.setting).total == cost.total


def test_larger_budgets_cost_more() -> None:
    costs = [model().at(BudgetSetting(e, DELTA)).total.epsilon(DELTA) for e in (0.1, 0.5, 2.0)]
    assert costs == sorted(costs) and costs[0] < costs[2]


def test_delta_is_the_largest_of_the_steps() -> None:
    assert own_delta(Scripted(delta=3e-7)) == 3e-7
    assert own_delta(Scripted(delta=0.0)) == 0.0


def test_the_largest_totals_are_of_curves_that_there_are() -> None:
    # Theorem T4.
    setting = model().rough_setting(500.0)
    assert setting.curve.profile.epsilon(0.1) > 0.0
    assert setting.curve.shift <= 30.0
