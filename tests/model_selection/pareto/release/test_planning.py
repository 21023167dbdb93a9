"""Planning of a released search: how many evaluations fit, and when none does."""

from __future__ import annotations

import math
from typing import Any

import pytest

from skdptune.accounting import UnreachableBudgetError
from skdptune.model_selection._pareto._released import plan_release
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
@pytest.mark.parametrize("mu", [0.05, 0.3, 0.6])
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
