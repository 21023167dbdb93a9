"""The plan of a released search: its total, the noise of scores, and its parts."""

from __future__ import annotations

import math
from typing import Any

import pytest
from dp_accounting import dp_event

from skdptune.accounting import (
    GaussianFilter,
    PrivacyProfile,
    RenyiFilter,
    UnreachableBudgetError,
    suitable_order,
)
from skdptune.model_selection._pareto._released import plan_release
from tests.model_selection.pareto.release.plans import (
    DELTA,
    gaussian,
    gaussian_epsilon,
    largest_mu,
    layout_of,
    planned,
)


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
