"""The budget of a released search: what it admits, recomputed by other ways."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from dp_accounting import dp_event

from skdptune.accounting import (
    GaussianFilter,
    Geometric,
    PrivacyProfile,
    UnreachableBudgetError,
)
from skdptune.model_selection._pareto._released import ReleaseBudget, plan_release
from tests.model_selection.pareto.release.plans import (
    DELTA,
    LAYOUTS,
    by_divergences,
    gaussian,
    gaussian_delta,
    gaussian_epsilon,
    largest_mu,
    layout_of,
    planned,
)


def budget_of(plan: Any) -> tuple[float, float]:
    """Return what a filter's costs may sum to, and the cost of a fit of shift 1, recomputed."""
    total = plan.filter()
    if isinstance(total, GaussianFilter):
        return largest_mu(plan.epsilon, plan.usable_delta - total.failure) ** 2, 1.0
    a = total.order
    factor = math.log(plan.usable_delta * (a - 1)) - a * math.log(1 - 1 / a)
    return plan.epsilon + factor / (a - 1), a / 2


@pytest.mark.parametrize("is_gaussian", [True, False])
@pytest.mark.parametrize("name", LAYOUTS)
def test_filter_admits_what_fits_and_no_more(name: str, is_gaussian: bool) -> None:
    """The sum of costs, recomputed; with expensive and cheap ones in random order."""
    # Theorem G3.
    plan = planned(name, mus=(0.1, 0.3, 0.9))
    if not is_gaussian:
        plan = by_divergences(plan, 0.1, 0.3, 0.9)
    assert isinstance(plan.filter(), GaussianFilter) is is_gaussian
    limit, unit = budget_of(plan)
    spent = 0.1 * limit if name == "folds" else 0.0
    budget = ReleaseBudget(plan)
    rng = np.random.default_rng(0)
    refused = 0
    for mu in [*rng.choice([0.1, 0.3, 0.9, 1.6], size=80), *[0.05] * 30]:
        cost = plan.n_fits * unit * mu * mu
        is_room = budget.n_charged < plan.n_evaluations
        fits = is_room and spent + cost <= limit * (1 - 1e-4)
        is_beyond = not is_room or spent + cost > limit
        charged = budget.charge(PrivacyProfile.gaussian(float(mu)))
        assert charged or not fits
        assert not (charged and is_beyond)
        refused += not charged
        spent += cost if charged else 0.0
    assert refused and budget.n_charged >= 5
    assert spent <= limit
    assert plan.total.epsilon(DELTA) <= 10.0


@pytest.mark.parametrize("name", LAYOUTS)
def test_known_costs_compose_exactly(name: str) -> None:
    # Theorem G3.
    plan = planned(name, mus=(0.1, 0.3, 0.9), follows_scores=False)
    assert plan.kind == "known"
    budget, squares = ReleaseBudget(plan), 0.0
    scores = 0.1 * largest_mu(10.0) ** 2 if name == "folds" else 0.0
    for mu in np.random.default_rng(1).choice([0.1, 0.3, 0.9], size=40):
        cost = plan.n_fits * mu * mu
        is_full = budget.n_charged >= plan.n_evaluations
        exact = gaussian_epsilon(math.sqrt(squares + cost + scores))
        charged = budget.charge(PrivacyProfile.gaussian(float(mu)))
        if not is_full and abs(exact - 10.0) > 0.05:
            assert charged == (exact < 10.0)
        squares += cost if charged else 0.0
    # Everything that was done costs no more than was said beforehand.
    for epsilon in (10.0, 12.0):
        exact = gaussian_delta(math.sqrt(squares + scores), epsilon)
        assert exact <= plan.total.delta(epsilon) * (1 + 1e-9) + 1e-15
    assert squares > 0.8 * (largest_mu(10.0) ** 2 - scores)


def squares_left(budget: Any) -> float:
    """Return what the squares of the shifts of evaluations may still sum to."""
    plan = budget.plan
    if plan.kind == "filter":
        return (budget._filter.budget - budget._filter.spent) / budget_of(plan)[1]
    return largest_mu(10.0) ** 2 * (0.9 if plan.layout.folds else 1.0)


@pytest.mark.parametrize("follows", [True, False])
@pytest.mark.parametrize("name", LAYOUTS)
def test_first_evaluations_share_what_is_left(name: str, follows: bool) -> None:
    plan = planned(name, mus=(0.1, 2.0), n_initial=12, follows_scores=follows)
    assert plan.n_guaranteed == 12
    budget = ReleaseBudget(plan)
    share = math.sqrt(squares_left(budget) / 12 / plan.n_fits)
    assert not budget.charge(gaussian(1.03 * share))
    assert all(budget.charge(gaussian(0.97 * share)) for _ in range(12))


def test_a_later_evaluation_takes_half_of_what_is_left() -> None:
    budget = ReleaseBudget(planned("public", mus=(0.1, 2.0), n_initial=2))
    assert all(budget.charge(gaussian(0.1)) for _ in range(2))
    half = math.sqrt(squares_left(budget) / 2 / budget.plan.n_fits)
    assert not budget.charge(gaussian(1.03 * half))
    assert budget.charge(gaussian(0.97 * half))
    assert not budget.charge(gaussian(0.97 * half))


def test_the_share_grows_where_all_points_are_expensive() -> None:
    plan = planned("public", mus=(0.9, 1.1), n_initial=16)
    assert 1 <= plan.n_guaranteed < 16
    budget = ReleaseBudget(plan)
    assert all(budget.charge(gaussian(0.9)) for _ in range(plan.n_guaranteed))
    assert not budget.charge(gaussian(0.9))


@pytest.mark.parametrize("follows", [True, False])
def test_refusals_do_not_bar_what_is_cheaper_together(follows: bool) -> None:
    """A pure guarantee costs less than a Gaussian by epsilon, and sixteen of it cost more."""
    pure, larger, small = PrivacyProfile.pure(0.028), PrivacyProfile.pure(0.05), gaussian(0.02)
    settings: dict[str, Any] = {"n_initial": 16, "is_equal": False, "follows_scores": follows}
    plan = plan_release(layout_of("public"), 0.45, DELTA, 100, 1, [small, pure], **settings)
    budget = ReleaseBudget(plan)
    assert not budget.charge(larger)
    assert sum(budget.charge(small) for _ in range(30)) == 30


def number_of(fit: PrivacyProfile, plan: Any) -> int:
    budget = ReleaseBudget(plan)
    while budget.charge(fit):
        pass
    return budget.n_charged


def test_a_filter_of_gaussian_fits_loses_nothing_to_exact_composition() -> None:
    fit = PrivacyProfile.gaussian(0.5)
    follows = planned("public", mus=(0.5, 0.4))
    exact = number_of(fit, planned("public", mus=(0.5, 0.4), follows_scores=False))
    divergences = number_of(fit, by_divergences(follows, 0.5, 0.4))
    assert exact == number_of(fit, follows) > divergences >= 3


def test_several_fits_of_an_evaluation_are_charged_together() -> None:
    """Their composition is more like a Gaussian release than each of them."""
    step = dp_event.PoissonSampledDpEvent(0.01, dp_event.GaussianDpEvent(2.0))
    fit = PrivacyProfile.from_event(dp_event.SelfComposedDpEvent(step, 100), 1e-3)
    settings: dict[str, Any] = {"n_initial": 1, "is_equal": False, "follows_scores": True}
    plan = plan_release(layout_of("public"), 4.0, DELTA, 100, 8, [fit], **settings)
    plan = replace(plan, empty_filter=GaussianFilter(4.0, plan.usable_delta, failure=1e-6))
    together, one_by_one = ReleaseBudget(plan), plan.filter()
    assert together.charge(fit)
    for _ in range(8):
        one_by_one.record(fit)
    assert together._filter is not None and one_by_one is not None
    assert together._filter.spent < 0.97 * one_by_one.spent
    # An exact lower bound: what the fits cost together is no more than what was charged.
    charged = math.sqrt(together._filter.spent)
    eight = fit * 8
    for epsilon in (0.1, 0.5, 1.0, 2.0):
        most = gaussian_delta(charged, epsilon) + together._filter.spent_failure
        assert eight.delta(epsilon) <= most


def test_estimators_of_one_delta_use_what_is_set_aside() -> None:
    fits = [PrivacyProfile.approximate(0.3, 1e-7), PrivacyProfile.approximate(0.2, 1e-7)]
    settings: dict[str, Any] = {"n_initial": 1, "is_equal": False, "follows_scores": True}
    plan = plan_release(layout_of("public"), 10.0, DELTA, 100, 2, fits, **settings)
    budget = ReleaseBudget(plan)
    while budget.charge(fits[1]):
        pass
    # Half of delta, two fits of 1e-7 each time.
    assert budget.n_charged == 24
    assert plan.total.epsilon(DELTA) <= 10.0
    assert plan.total.delta(400.0) == pytest.approx(plan.filter().failure, rel=1e-5)
    with pytest.raises(UnreachableBudgetError, match="far smaller than the delta of the search"):
        wide = [PrivacyProfile.approximate(0.3, 6e-6 / 2)]
        plan_release(layout_of("public"), 10.0, DELTA, 100, 2, wide, **settings)


def test_profiles_of_selections_can_be_charged() -> None:
    part = PrivacyProfile.gaussian(0.2).selected(Geometric(0.3))
    budget = ReleaseBudget(planned("public"))
    assert budget.charge(part)
