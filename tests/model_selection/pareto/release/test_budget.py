"""The budget of a released search: what it admits, recomputed by other ways."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from skdptune.accounting import Geometric, PrivacyProfile, UnreachableBudgetError
from skdptune.model_selection._pareto._release import ReleaseBudget, plan_release
from tests.model_selection.pareto.release.plans import (
    DELTA,
    LAYOUTS,
    gaussian,
    gaussian_delta,
    gaussian_epsilon,
    largest_mu,
    layout_of,
    planned,
)


@pytest.mark.parametrize("name", LAYOUTS)
def test_filter_admits_what_fits_and_no_more(name: str) -> None:
    """The sum at the one order, recomputed; with expensive and cheap ones in random order."""
    # Theorem G3.
    plan = planned(name, mus=(0.1, 0.3, 0.9))
    order = plan.order
    limit = plan.epsilon + (
        math.log(plan.usable_delta * (order - 1)) - order * math.log(1 - 1 / order)
    ) / (order - 1)
    spent = 0.1 * limit if name == "folds" else 0.0
    budget = ReleaseBudget(plan)
    rng = np.random.default_rng(0)
    refused = 0
    for mu in [*rng.choice([0.1, 0.3, 0.9, 1.6], size=80), *[0.05] * 30]:
        cost = plan.n_fits * order * mu * mu / 2
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
        return 2.0 / plan.order * (budget._filter.budget - budget._filter.spent)
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


def test_exact_composition_admits_more_than_the_filter() -> None:
    fit = PrivacyProfile.gaussian(0.5)
    counts = []
    for follows in (False, True):
        budget = ReleaseBudget(planned("public", mus=(0.5, 0.4), follows_scores=follows))
        while budget.charge(fit):
            pass
        counts.append(budget.n_charged)
    assert counts[0] > counts[1] >= 3


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
    assert plan.total.delta(400.0) == pytest.approx(plan.failure, rel=1e-5)
    with pytest.raises(UnreachableBudgetError, match="far smaller than the delta of the search"):
        wide = [PrivacyProfile.approximate(0.3, 6e-6 / 2)]
        plan_release(layout_of("public"), 10.0, DELTA, 100, 2, wide, **settings)


def test_profiles_of_selections_can_be_charged() -> None:
    part = PrivacyProfile.gaussian(0.2).selected(Geometric(0.3))
    budget = ReleaseBudget(planned("public"))
    assert budget.charge(part)
