"""The cost of a released search: how many evaluations fit, the total, and what a budget admits."""

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
    RenyiFilter,
    UnreachableBudgetError,
    suitable_order,
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


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("mu", [0.05, 0.6])
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


def test_equal_costs_at_a_tiny_delta_are_paid_as_far_as_curves_show() -> None:
    settings: dict[str, Any] = {"n_initial": 1, "is_equal": True, "follows_scores": True}
    plan = plan_release(layout_of("public"), 1.0, 3e-15, 272, 1, [gaussian(0.05)], **settings)
    assert plan.n_evaluations >= 1
    assert plan.total.epsilon(3e-15) <= 1.0


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
    # Theorem G3.
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
    # Theorem G3.
    fits = [PrivacyProfile.pure(epsilon) for epsilon in (0.1, 0.3)]
    settings: dict[str, Any] = {"n_initial": 1, "is_equal": False, "follows_scores": True}
    plan = plan_release(layout_of("folds"), 10.0, DELTA, 30, 2, fits, **settings)
    total = plan.filter()
    assert isinstance(total, RenyiFilter)
    assert total.spent == pytest.approx(0.1 * total.budget, rel=1e-6)
    assert total.order * plan.shift**2 / 2 == pytest.approx(total.spent, rel=1e-6)
    assert f"Rényi filter of order {total.order:g}" in plan.parts[0].note


@pytest.mark.parametrize("name", ["split", "folds", "public"])
def test_plan_uses_the_filter_of_which_fits_take_less(name: str) -> None:
    settings: dict[str, Any] = {"n_initial": 1, "is_equal": False, "follows_scores": True}

    def filter_for(*fits: PrivacyProfile) -> Any:
        return plan_release(layout_of(name), 4.0, DELTA, 30, 1, fits, **settings).filter()

    step = dp_event.PoissonSampledDpEvent(0.05, dp_event.GaussianDpEvent(4.0))
    descent = PrivacyProfile.from_event(dp_event.SelfComposedDpEvent(step, 100), 1e-3)
    sparse_step = dp_event.PoissonSampledDpEvent(0.001, dp_event.GaussianDpEvent(0.8))
    sparse = PrivacyProfile.from_event(dp_event.SelfComposedDpEvent(sparse_step, 200), 1e-3)
    pure = PrivacyProfile.pure(0.1)
    assert isinstance(filter_for(gaussian(0.1), gaussian(0.4)), GaussianFilter)
    assert isinstance(filter_for(descent, gaussian(0.1)), GaussianFilter)
    assert isinstance(filter_for(sparse), RenyiFilter)
    assert isinstance(filter_for(pure, PrivacyProfile.pure(0.2)), RenyiFilter)
    # What is set aside is more where it is used.
    for fits, share in (((gaussian(0.1),), 0.001), ((descent,), 0.1), ((pure,), 0.0)):
        assert filter_for(*fits).failure == pytest.approx(share * DELTA, rel=1e-3)
    total = filter_for(descent)
    assert total.profile.epsilon(DELTA) <= 4.0


def test_small_totals_are_planned_without_divergences() -> None:
    """No order proves that little."""
    settings: dict[str, Any] = {"n_initial": 1, "is_equal": False, "follows_scores": True}
    fits = [gaussian(1e-4), gaussian(2e-4)]
    with pytest.raises(UnreachableBudgetError, match="for any order"):
        suitable_order(0.002, DELTA, fits)
    plan = plan_release(layout_of("public"), 0.002, DELTA, 30, 1, fits, **settings)
    assert isinstance(plan.filter(), GaussianFilter)
    assert 0.0019 < plan.total.epsilon(DELTA) <= 0.002


def test_public_validation_has_no_noise() -> None:
    plan = planned("public")
    assert (plan.noise.kind, plan.noise.ratio) == ("none", 0.0)
    assert [part.name for part in plan.parts] == ["evaluations"]


def test_final_fit_is_in_the_total() -> None:
    plan = planned("split", final=2.0)
    assert plan.delta == DELTA / 2
    assert plan.final.epsilon(DELTA / 2) == 2.0
    assert 11.5 < plan.total.epsilon(DELTA) <= 12.0
    # Basic composition is an upper bound on what is stated.
    without = planned("split")
    assert without.total.epsilon(DELTA) <= 10.0


def test_probability_of_an_empty_fit_is_paid_for() -> None:
    # Theorem F7.
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
