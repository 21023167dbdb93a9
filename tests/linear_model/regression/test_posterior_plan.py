"""How a budget is divided among bounds and a posterior sample."""

import math

import numpy as np
import pytest

from skdptune.accounting import (
    PrivacyProfile,
    UnreachableBudgetError,
    posterior_sample,
    with_failure,
)
from skdptune.accounting._mechanisms import posterior_sample_deltas
from skdptune.linear_model._regression import _posterior_sampling
from skdptune.linear_model._regression._posterior_sampling import (
    _SLACK_SHARE,
    adaptive_plan,
    noiseless_plan,
    proposal_plan,
)

PAIRS = [(0.1, 1e-6), (1.0, 1e-6), (1.0, 1e-9), (8.0, 1e-4)]


@pytest.mark.parametrize(("epsilon", "delta"), PAIRS)
def test_adaptive_budget_is_met_and_used_up(epsilon, delta):
    plan = adaptive_plan(epsilon, delta, None, None, "exact")
    assert 0.998 * epsilon <= plan.profile.epsilon(delta) <= epsilon
    bounds = PrivacyProfile.gaussian(plan.eigenvalue_shift) + PrivacyProfile.gaussian(
        plan.norm_shift
    )
    sample = posterior_sample(plan.leverage, plan.squared_residual)
    lost = (2.0 + _SLACK_SHARE) * plan.failure
    parts = with_failure(bounds + sample, lost)
    assert parts.epsilon(delta) == pytest.approx(plan.profile.epsilon(delta), rel=1e-3)
    assert plan.profile.delta(50.0) >= 2.0 * plan.failure


@pytest.mark.parametrize(("epsilon", "delta"), PAIRS)
@pytest.mark.parametrize("steps", [0.0, 0.3, 1.0, 3.5, 12.0, 40.0])
def test_smaller_leverages_stay_below_the_curve(epsilon, delta, steps):
    # Theorem L5.
    plan = adaptive_plan(epsilon, delta, None, None, "exact")
    leverage = plan.leverage * 1.15**-steps
    residual = plan.largest_residual_at(leverage)
    assert residual >= plan.squared_residual
    points = np.linspace(0.0, 3.0 * epsilon, 400)
    slack = _SLACK_SHARE * plan.failure
    for index, direction in enumerate(("remove", "add")):
        curve = posterior_sample_deltas(points, leverage, residual)[index]
        assert (curve <= plan.sample.delta(points, direction) + slack * (1 + 1e-6)).all()
    if steps >= 1.0:
        # With less leverage, larger residuals are safe, nearly in proportion.
        assert residual * leverage >= 0.6 * plan.squared_residual * plan.leverage


def test_leverage_beyond_the_box_allows_no_sample():
    plan = adaptive_plan(1.0, 1e-6, None, None, "exact")
    assert plan.largest_residual_at(1.01 * plan.leverage) == 0.0


@pytest.mark.parametrize(("epsilon", "delta"), PAIRS)
def test_proposal_budget_is_met_and_used_up(epsilon, delta):
    plan = proposal_plan(epsilon, delta, None)
    assert 0.998 * epsilon <= plan.profile.epsilon(delta) <= epsilon
    for leverage in (1e-5, 1e-4, 1e-3):
        residual = plan.largest_residual_at(leverage)
        sample = posterior_sample(leverage, max(residual, 1e-9))
        if residual > 0.0:
            assert sample.delta(plan.epsilon) <= plan.delta * (1.0 + 1e-3)
    assert plan.largest_residual_at(500.0) == 0.0


def test_adaptive_curve_beats_a_pair_of_epsilon_and_delta():
    adaptive, proposal = (
        adaptive_plan(1.0, 1e-6, None, None, "exact"),
        proposal_plan(1.0, 1e-6, None),
    )
    leverage = adaptive.leverage
    assert adaptive.largest_residual_at(leverage) > 2.0 * proposal.largest_residual_at(leverage)


def test_printed_form_costs_more_than_it_claims():
    printed = adaptive_plan(1.0, 1e-6, None, None, "closed-form")
    sample = posterior_sample(printed.leverage, printed.squared_residual)
    # It leaves nothing for the released bounds, and the sample alone may cost more than it claims.
    assert printed.profile.epsilon(1e-6) > 1.0
    small = adaptive_plan(1.0, 1e-6, 1e-3, None, "closed-form")
    assert posterior_sample(1e-3, small.squared_residual).delta(1.0) > 3e-6
    assert sample.epsilon(1e-6) < printed.profile.epsilon(1e-6)


def test_too_much_leverage_is_refused():
    with pytest.raises(UnreachableBudgetError, match="max_leverage must be smaller"):
        adaptive_plan(0.1, 1e-6, 0.5, None, "exact")


def test_failure_probability_is_a_parameter():
    plan = adaptive_plan(1.0, 1e-6, None, 1e-8, "exact")
    assert plan.failure == 1e-8
    assert plan.profile.delta(50.0) >= 2e-8
    assert plan.margin < adaptive_plan(1.0, 1e-6, None, None, "exact").margin


def test_infinite_budget_adds_no_noise():
    assert adaptive_plan(math.inf, 1e-6, None, None, "exact") == noiseless_plan()
    assert proposal_plan(math.inf, 1e-6, None).largest_residual_at(3.0) == math.inf
    assert noiseless_plan().noise_multiplier == 0.0
    assert noiseless_plan().profile.delta(100.0) == 1.0


@pytest.mark.parametrize("leverage", [1.0, 30.0, 1e3])
def test_leverages_beyond_the_budget_are_refused_without_sums(leverage, monkeypatch):
    # Sums with samples of such leverages take seconds each.
    monkeypatch.setattr(_posterior_sampling, "with_failure", None)
    with pytest.raises(UnreachableBudgetError, match="max_leverage must be smaller"):
        adaptive_plan(1.0, 1e-5, leverage, None, "exact")
