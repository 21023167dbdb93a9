"""The plan of a released search: its total, the noise of scores, and its parts."""

from __future__ import annotations

import math
from typing import Any

import pytest

from skdptune.accounting import PrivacyProfile, UnreachableBudgetError
from skdptune.model_selection._pareto._release import plan_release
from tests.model_selection.pareto.release.plans import (
    DELTA,
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
            budget = plan.filter().budget
            assert plan.order * shift**2 / 2 == pytest.approx(0.1 * budget, rel=1e-6)


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
