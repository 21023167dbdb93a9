"""The noise of both stages, and what it costs."""

from __future__ import annotations

import math

import pytest

from skdptune.accounting import PrivacyProfile
from skdptune.ensemble._plan import RateRule, plan_of_budget, plan_of_noise
from skdptune.mechanisms import noise_for_budget


def normal(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


def closed_form(shift: float, epsilon: float) -> float:
    first = normal(shift / 2 - epsilon / shift)
    return first - math.exp(epsilon) * normal(-shift / 2 - epsilon / shift)


@pytest.mark.parametrize(("k", "rounds"), [(1, 1), (1, 300), (14, 300), (200, 1), (200, 300)])
@pytest.mark.parametrize(("share", "noise"), [(0.001, 3.73), (0.1, 0.5), (0.9, 40.0)])
def test_cost_is_that_of_all_releases_of_both_stages(k, rounds, share, noise):
    # Theorem B1: k histograms and k T steps of one Gaussian release each.
    plan = plan_of_noise(noise)
    shifts = [1.0 / plan.count_scale(k, share)] * k
    shifts += [1.0 / plan.step_scale(k, rounds, share)] * (k * rounds)
    together = math.sqrt(math.fsum(shift**2 for shift in shifts))
    assert together <= 1.0 / noise
    assert together == pytest.approx(1.0 / noise, rel=1e-9)
    for epsilon in (0.1, 1.0, 3.0):
        truth = closed_form(together, epsilon)
        assert truth <= plan.profile.delta(epsilon) <= truth * 1.001 + 1e-12


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0, 1000.0])
def test_budget_is_met_and_nearly_all_used(epsilon):
    plan = plan_of_budget(epsilon, 1e-5)
    assert min(epsilon, 100.0) * 0.999 <= plan.profile.epsilon(1e-5) <= epsilon


def test_an_infinite_budget_is_no_noise():
    plan = plan_of_budget(math.inf, 1e-5)
    assert plan.noise_multiplier == plan.count_scale(3, 0.1) == plan.step_scale(3, 5, 0.1) == 0.0
    assert plan.profile.epsilon(1e-5) == math.inf


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0])
def test_both_stages_take_less_epsilon_than_their_sum(epsilon):
    # Theorem B1: as interpret-core splits a budget, a tenth of epsilon and half of delta to bins.
    delta = 1e-5
    counts = noise_for_budget(0.1 * epsilon, delta / 2)[0]
    steps = noise_for_budget(0.9 * epsilon, delta / 2)[0]
    together = PrivacyProfile.gaussian(math.hypot(1.0 / counts, 1.0 / steps))
    assert 0.86 < together.epsilon(delta) / epsilon < 0.88


def test_rate_makes_the_noise_that_the_rule_wants_and_is_bounded():
    rule = RateRule(noise=0.4, largest=1.0)
    plan = plan_of_noise(4.0)
    rate = plan.learning_rate(10_000, 5, 100, 3, rule)
    # Noise of a sum over the records of a leaf, times the root of all rounds and columns.
    leaf = 4.0 * math.sqrt(5 * 100) / (10_000 / 3)
    assert rate * leaf * math.sqrt(5 * 100) == pytest.approx(0.4)
    # Where it drowns, it may have more.
    growing = rule._replace(growth=1.0 / 3.0)
    drowned = plan.learning_rate(75, 5, 100, 3, rule)
    assert plan.learning_rate(75, 5, 100, 3, growing) == pytest.approx(drowned * 10 ** (1 / 3))
    assert plan.learning_rate(10_000, 5, 100, 3, growing) == rate
    assert plan.learning_rate(10**9, 5, 100, 3, rule) == 1.0
    assert plan_of_budget(math.inf, 1e-5).learning_rate(10, 5, 100, 3, rule) == 1.0
