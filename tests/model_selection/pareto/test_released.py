"""The cost of a released search: how many evaluations fit, the total, and what a budget admits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from skdptune.accounting import (
    GaussianFilter,
    PrivacyProfile,
    RenyiFilter,
    UnreachableBudgetError,
)
from skdptune.model_selection._pareto._released import ReleaseBudget, plan_release
from tests.model_selection.pareto.plans import (
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


@pytest.mark.parametrize(
    ("name", "mu"), [("split", 0.05), ("split", 0.6), ("folds", 0.6), ("public", 0.05)]
)
def test_equal_fits_are_as_many_as_their_exact_composition_allows(name: str, mu: float) -> None:
    plan = planned(name, mus=(mu,), is_equal=True)
    fits = {"split": 2, "folds": 2 * 3, "public": 2}[name]
    whole = largest_mu(10.0) ** 2
    # With folds a tenth of the budget is for the scores, which the same records pay for.
    most = (0.9 if name == "folds" else 1.0) * whole / (fits * mu * mu)
    assert plan.kind == "equal" and plan.n_fits == fits
    assert 0.995 * min(most, 30) - 1 <= plan.n_evaluations <= most
    trained = math.sqrt(plan.n_evaluations * fits) * mu
    scored = 0.0 if plan.layout.public else math.sqrt(plan.n_evaluations) / plan.noise.ratio
    if name == "folds":
        trained = math.hypot(trained, scored)
    for epsilon in (1.0, 3.0, 8.0):
        exact = gaussian_delta(trained, epsilon)
        if name == "split":
            exact = 0.8 * exact + 0.2 * gaussian_delta(scored, epsilon)
        found = plan.total.delta(epsilon)
        assert exact * (1 - 1e-9) <= found <= exact * 1.01 + 1e-12
    assert plan.total.epsilon(DELTA) <= 10.0


def test_unreachable_total_names_the_least() -> None:
    for equal in (True, False):
        with pytest.raises(
            UnreachableBudgetError, match=r"release must be above [\d.]+ at"
        ) as caught:
            planned("public", epsilon=0.5, mus=(1.0,), is_equal=equal)
        exact = gaussian_epsilon(math.sqrt(2.0))
        assert caught.value.least_epsilon == pytest.approx(exact, rel=1e-2)


@pytest.mark.parametrize("name", ["split", "folds"])
def test_all_scores_cost_one_gaussian_release(name: str) -> None:
    # Theorem G3: a released Pareto front.
    for follows in (False, True):
        plan = planned(name, mus=(0.3, 0.6), follows_scores=follows)
        shift = math.sqrt(plan.n_evaluations) / plan.noise.ratio
        assert gaussian_epsilon(shift) == pytest.approx(plan.scores.epsilon(DELTA), rel=1e-3)
        assert plan.noise.profile == PrivacyProfile.gaussian(1.0 / plan.noise.ratio)
        if name == "split":
            assert gaussian_epsilon(shift) == pytest.approx(10.0, rel=2e-3)
        elif not follows:
            assert shift**2 == pytest.approx(0.1 * largest_mu(10.0) ** 2, rel=5e-3)
        else:
            assert shift**2 == pytest.approx(0.1 * plan.filter().budget, rel=1e-6)


def test_with_folds_scores_take_a_tenth_of_a_filter_by_divergences() -> None:
    # Theorem G3: a released Pareto front.
    fits = [PrivacyProfile.pure(epsilon) for epsilon in (0.1, 0.3)]
    settings: dict[str, Any] = {"n_initial": 1, "is_equal": False, "follows_scores": True}
    plan = plan_release(layout_of("folds"), 10.0, DELTA, 30, 2, fits, **settings)
    total = plan.filter()
    assert isinstance(total, RenyiFilter)
    assert total.spent == pytest.approx(0.1 * total.budget, rel=1e-6)
    assert total.order * plan.shift**2 / 2 == pytest.approx(total.spent, rel=1e-6)
    assert f"Rényi filter of order {total.order:g}" in plan.parts[0].note


def test_final_fit_is_in_the_total() -> None:
    plan = planned("split", final=2.0)
    assert plan.delta == DELTA / 2
    assert plan.final.epsilon(DELTA / 2) == 2.0
    assert 11.5 < plan.total.epsilon(DELTA) <= 12.0
    # Basic composition is an upper bound on what is stated.
    without = planned("split")
    assert without.total.epsilon(DELTA) <= 10.0


def test_probability_of_an_empty_fit_is_paid_for() -> None:
    # Theorem F7: the probability that a fit has no records is paid for.
    fits = [PrivacyProfile.gaussian(0.4)]
    small = layout_of("split", 20)
    chance = 0.2**19
    settings: dict[str, Any] = {"n_initial": 1, "is_equal": True, "follows_scores": True}
    with pytest.raises(UnreachableBudgetError, match="probability that some fit has no record"):
        plan_release(small, 10.0, chance / 2, 5, 1, fits, **settings)
    plan = plan_release(small, 10.0, DELTA, 5, 1, fits, **settings)
    assert plan.total.delta(300.0) == pytest.approx(chance, rel=1e-6)


def budget_of(plan: Any) -> tuple[float, float]:
    """Return what a filter's costs may sum to, and the cost of a fit of shift 1, recomputed."""
    total = plan.filter()
    if isinstance(total, GaussianFilter):
        return largest_mu(plan.epsilon, plan.usable_delta - total.failure) ** 2, 1.0
    a = total.order
    factor = math.log(plan.usable_delta * (a - 1)) - a * math.log(1 - 1 / a)
    return plan.epsilon + factor / (a - 1), a / 2


@pytest.mark.parametrize(
    ("name", "is_gaussian"),
    [("split", True), ("folds", True), ("folds", False), ("public", False)],
)
def test_filter_admits_what_fits_and_no_more(name: str, is_gaussian: bool) -> None:
    """The sum of costs, recomputed; with expensive and cheap ones in random order."""
    # Theorem G3: a released Pareto front.
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
    # Theorem G3: a released Pareto front.
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


@pytest.mark.parametrize(
    ("name", "follows"), [("split", True), ("folds", False), ("public", True)]
)
def test_first_evaluations_share_what_is_left(name: str, follows: bool) -> None:
    plan = planned(name, mus=(0.1, 2.0), n_initial=12, follows_scores=follows)
    assert plan.n_guaranteed == 12
    budget = ReleaseBudget(plan)
    share = math.sqrt(squares_left(budget) / 12 / plan.n_fits)
    assert not budget.charge(gaussian(1.03 * share))
    assert all(budget.charge(gaussian(0.97 * share)) for _ in range(12))


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
