"""Noise and stops of a search: closed forms, and costs that agree with the accounting."""

from __future__ import annotations

import math

import numpy as np
import pytest

from skdptune.accounting import doubling_threshold
from skdptune.mechanisms._doubling import most_hits, plan_threshold_search

GIVEN = {"sensitivity": 0.1, "epsilon": 1.0, "delta": 0.0, "levels": 100}
OPEN = {"max_rounds": None, "max_hits": None}


def hits_without_noise(goal: int) -> tuple[int, int]:
    """Return hits and rounds of Algorithm 1 towards a level, step by step."""
    level, step, hits, rounds = 0, 1, 0, 0
    while step:
        rounds += 1
        if level + step <= goal:
            level, step, hits = level + step, 2 * step, hits + 1
        else:
            step //= 2
    return hits, rounds


def test_most_hits_are_those_of_the_worst_goal() -> None:
    searches = [hits_without_noise(goal) for goal in range(400)]
    for levels in range(1, 400):
        most = most_hits(levels)
        assert most == max(hits for hits, _ in searches[: levels + 1])
        assert 2 * most + 1 == max(rounds for _, rounds in searches[: levels + 1])


def test_sparse_noise_is_algorithm_7_of_lyu_su_and_li() -> None:
    plan = plan_threshold_search("sparse", **GIVEN, max_rounds=None, max_hits=4)
    # Split 1 : 8^(2/3) = 1 : 4.
    assert plan.threshold_scale == pytest.approx(0.1 / 0.2)
    assert plan.candidate_scale == pytest.approx(2 * 4 * 0.1 / 0.8)
    assert not plan.redraws
    assert plan.new_filter() is None
    assert plan.profile.epsilon(0.0) == pytest.approx(1.0)


@pytest.mark.parametrize(("rounds", "halves"), [(1, 2), (2, 4), (3, 5), (23, 35)])
def test_noise_per_round_is_that_of_the_papers(rounds, halves) -> None:
    plan = plan_threshold_search("per-round", **GIVEN, max_rounds=rounds, max_hits=None)
    each = 2.0 / halves
    assert float(plan.round_epsilon) == pytest.approx(each)
    assert plan.threshold_scale == pytest.approx(2 * 0.1 / each)
    assert plan.candidate_scale == pytest.approx(4 * 0.1 / each)
    assert plan.redraws
    assert plan.budget == 1
    assert plan.profile.epsilon(0.0) == pytest.approx(1.0)
    assert plan.new_filter().max_possible_rounds == rounds


def test_limits_default_to_those_of_a_search_without_noise() -> None:
    assert plan_threshold_search("sparse", **GIVEN, **OPEN).max_hits == 11
    assert plan_threshold_search("per-round", **GIVEN, **OPEN).max_rounds == 23


def test_few_hits_allow_few_rounds() -> None:
    plan = plan_threshold_search("per-round", **GIVEN, max_rounds=20, max_hits=3)
    assert (plan.max_rounds, plan.max_hits) == (5, 3)


@pytest.mark.parametrize("rounds", [3, 30, 300])
def test_delta_allows_a_costlier_round_and_is_kept(rounds) -> None:
    settings = {**GIVEN, "max_rounds": rounds, "max_hits": None}
    pure = plan_threshold_search("per-round", **settings)
    loose = plan_threshold_search("per-round", **{**settings, "delta": 1e-5})
    assert loose.round_epsilon >= pure.round_epsilon
    assert loose.profile.epsilon(1e-5) <= 1.0
    assert loose.profile.epsilon(1e-5) > 0.999
    again = doubling_threshold(loose.round_epsilon, budget=loose.budget, max_rounds=rounds)
    assert again.epsilon(1e-5) == loose.profile.epsilon(1e-5)


def test_many_rounds_gain_by_delta() -> None:
    settings = {**GIVEN, "max_rounds": 200, "max_hits": None}
    pure = plan_threshold_search("per-round", **settings)
    loose = plan_threshold_search("per-round", **{**settings, "delta": 1e-5})
    assert loose.round_epsilon > 2.5 * pure.round_epsilon


@pytest.mark.parametrize("epsilon", [1e-6, 1e-2, 30.0, 600.0])
@pytest.mark.parametrize("delta", [0.0, 1e-200, 1e-9, 0.9])
@pytest.mark.parametrize("noise", ["sparse", "per-round"])
def test_every_budget_is_kept(noise, epsilon, delta) -> None:
    plan = plan_threshold_search(noise, **{**GIVEN, "epsilon": epsilon, "delta": delta}, **OPEN)
    assert plan.profile.epsilon(delta) <= epsilon * (1.0 + 1e-9)
    assert np.isfinite([plan.threshold_scale, plan.candidate_scale]).all()


def test_without_noise_nothing_is_promised() -> None:
    plan = plan_threshold_search(None, **{**GIVEN, "epsilon": None}, **OPEN)
    assert (plan.threshold_scale, plan.candidate_scale) == (0.0, 0.0)
    assert plan.profile.delta(10.0) == 1.0


@pytest.mark.parametrize(
    ("name", "bad", "kind"),
    [
        ("sensitivity", 0.0, ValueError),
        ("sensitivity", math.inf, ValueError),
        ("epsilon", 0.0, ValueError),
        ("epsilon", 601.0, ValueError),
        ("epsilon", None, TypeError),
        ("delta", 1.0, ValueError),
        ("max_rounds", 0, ValueError),
        ("max_rounds", 2.0, TypeError),
        ("max_hits", 0, ValueError),
    ],
)
@pytest.mark.parametrize("noise", ["sparse", "per-round"])
def test_bad_settings_are_refused_by_name(noise, name, bad, kind) -> None:
    with pytest.raises(kind, match=f"{name} must be "):
        plan_threshold_search(noise, **{**GIVEN, **OPEN, name: bad})


def test_unknown_noise_is_refused() -> None:
    with pytest.raises(ValueError, match="noise must be one of 'sparse', 'per-round'; got 'none'"):
        plan_threshold_search("none", **GIVEN, **OPEN)


def test_budgets_whose_parts_vanish_are_refused():
    with pytest.raises(ValueError, match=r"^epsilon must be a number in \[1e-100, "):
        plan_threshold_search("sparse", **(GIVEN | {"epsilon": 5e-324}), **OPEN)
