"""The level of a private quantile: all small sets of scores, the worst one, averages."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import lambertw

from skdptune.calibration._private_conformal import (
    expected_loss,
    grid_steps,
    held_out_fraction,
    quantile_level,
    records_needed,
)


def covered(bag: np.ndarray, steps: int, level: float, epsilon: float) -> float:
    """Return the chance that a score of a bag, drawn at random, is at most the others' quantile.

    Counted one by one, for points of the grid as scores.
    """
    points, size = np.arange(steps + 1), bag.size - 1
    sharpness = epsilon / (2.0 * max(level, 1.0 - level))
    chances = []
    for place, left_out in enumerate(bag):
        others = np.delete(bag, place)
        below = (others[None, :] < points[:, None]).sum(axis=1)
        up_to = (others[None, :] <= points[:, None]).sum(axis=1)
        utility = -np.maximum(np.maximum(below - level * size, level * size - up_to), 0.0)
        weights = np.exp(sharpness * utility)
        chances.append(weights[points >= left_out].sum() / weights.sum())
    return float(np.mean(chances))


def stated(n_held: int, steps: int, level: float, epsilon: float) -> float:
    """Return the coverage that is stated of a quantile of `n_held` scores."""
    return (level * n_held - expected_loss(level, epsilon, steps)) / (n_held + 1)


@pytest.mark.parametrize(("steps", "size"), [(1, 7), (2, 6), (3, 5), (5, 4)])
def test_no_small_bag_of_scores_is_covered_less_than_stated(steps: int, size: int) -> None:
    # Theorem I2: the coverage of intervals and sets by a private quantile of scores held out.
    bags = [
        np.array(bag) for bag in itertools.combinations_with_replacement(range(steps + 1), size)
    ]
    for level, epsilon in itertools.product((0.3, 0.5, 0.8, 0.95, 1.0), (0.1, 1.0, 4.0, 40.0)):
        worst = min(covered(bag, steps, level, epsilon) for bag in bags)
        assert worst >= stated(size - 1, steps, level, epsilon) - 1e-12


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_bad_scores_lose_a_third_of_what_is_allowed_for_and_no_more(epsilon: float) -> None:
    # Theorem I2: many points just too low, one that is right, and nearly all others at the top.
    n_held, steps, level = 400, 200, 0.9
    found = []
    for lost in np.arange(1, 60):
        n_low = round(level * n_held) - lost
        bag = np.repeat([0, steps - 1, steps], [n_low, lost + 1, n_held - n_low - lost])
        found.append(_covered_in_groups(bag, steps, level, epsilon))
    bound = stated(n_held, steps, level, epsilon)
    without_noise = level * n_held / (n_held + 1)
    assert bound <= min(found) <= without_noise - 0.3 * (without_noise - bound)


def _covered_in_groups(bag: np.ndarray, steps: int, level: float, epsilon: float) -> float:
    """Return `covered`, each different score being left out once."""
    values, counts = np.unique(bag, return_counts=True)
    points, size = np.arange(steps + 1), bag.size - 1
    sharpness = epsilon / (2.0 * max(level, 1.0 - level))
    total = 0.0
    for value, count in zip(values, counts, strict=True):
        others = np.sort(np.delete(bag, np.flatnonzero(bag == value)[0]))
        below = np.searchsorted(others, points, side="left")
        up_to = np.searchsorted(others, points, side="right")
        utility = -np.maximum(np.maximum(below - level * size, level * size - up_to), 0.0)
        weights = np.exp(sharpness * utility)
        total += count * weights[points >= value].sum() / weights.sum()
    return float(total / bag.size)


def test_groups_are_counted_as_single_scores_are() -> None:
    bag = np.array([0, 0, 1, 3, 3, 3])
    assert _covered_in_groups(bag, 4, 0.7, 1.0) == pytest.approx(covered(bag, 4, 0.7, 1.0))


@pytest.mark.parametrize("steps", [64, 1000, 4096])
@pytest.mark.parametrize("epsilon", [0.05, 0.5, 2.0])
def test_lost_ranks_are_about_those_of_points_that_are_equally_far(steps, epsilon) -> None:
    # The loss if all points are x ranks too low, at the worst x: W(R / e), in units.
    sharpness = epsilon / (2.0 * 0.9)
    equal = float(lambertw(steps / math.e).real) / sharpness
    assert equal <= expected_loss(0.9, epsilon, steps) <= 1.03 * equal
    assert expected_loss(0.9, epsilon, steps) <= math.log1p(steps) / sharpness


def test_lost_ranks_fall_with_epsilon_and_grow_with_the_grid() -> None:
    by_epsilon = [expected_loss(0.9, epsilon, 256) for epsilon in (0.1, 0.5, 1, 5, 25, 1e4)]
    assert by_epsilon == sorted(by_epsilon, reverse=True)
    by_steps = [expected_loss(0.9, 1.0, steps) for steps in (1, 8, 64, 512, 4096)]
    assert by_steps == sorted(by_steps)
    assert expected_loss(0.9, math.inf, 256) == 0.0
    # So little budget that all points are alike.
    assert expected_loss(0.9, 1e-12, 256) > 1e12


@pytest.mark.parametrize("epsilon", [0.5, 1.0, math.inf])
def test_averages_over_the_secret_number_held_out(epsilon: float) -> None:
    # Theorem I2: the mean of what is stated for each number, over their distribution.
    n_samples, fraction, steps = 900, 0.3, 100
    level = quantile_level(0.8, n_samples, fraction, epsilon, steps)
    assert level is not None
    counts = np.arange(n_samples + 1)
    lost = expected_loss(level, epsilon, steps)
    each = (level * counts - lost) / (counts + 1)
    mean = float(each @ stats.binom(n_samples, fraction).pmf(counts))
    assert 0.8 <= mean + 1e-12 <= 0.8 + 1e-6


def test_a_coverage_is_stated_from_so_many_records_on() -> None:
    for coverage, epsilon in itertools.product((0.5, 0.9, 0.99), (0.3, 1.0, 8.0)):
        needed = records_needed(coverage, epsilon, 0.5)
        assert quantile_level(coverage, needed + 1, 0.5, epsilon, 64) is not None
        assert quantile_level(coverage, round(0.9 * needed) - 1, 0.5, epsilon, 64) is None


def test_some_coverages_need_more_records_than_there_can_be() -> None:
    for coverage, epsilon in ((0.9, 1e-300), (0.9, 5e-324), (1.0 - 2.0**-53, 1e-306)):
        assert records_needed(coverage, epsilon, 0.5) >= 1e12


def test_levels_exceed_the_coverage_and_approach_it() -> None:
    levels = [quantile_level(0.9, n, 0.2, 1.0, 500) for n in (10**4, 10**5, 10**6)]
    assert levels == sorted(levels, reverse=True)
    assert 0.9 < levels[-1] < 0.9001
    assert 0.903 < levels[0] < 0.905


def test_rules_follow_public_numbers_within_their_limits() -> None:
    assert held_out_fraction(10**6, 1.0) == 0.1
    assert held_out_fraction(100, 1.0) == 0.5
    assert held_out_fraction(10_000, 1.0) == held_out_fraction(10_000, math.inf) == 0.2
    assert held_out_fraction(10_000, 0.5) == 0.4
    assert grid_steps(10, 1.0) == 64
    assert grid_steps(1000, 1.0) == 1000
    assert grid_steps(1000, math.inf) == 4096
