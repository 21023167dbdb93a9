"""How many guesses can be right under a whole privacy profile."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special, stats

from skdptune.accounting import PrivacyProfile
from skdptune.audit._one_run_bounds import (
    LeastError,
    ScaledClaim,
    guessed,
    is_possible,
    largest_refuted_factor,
)
from tests.audit.one_run.oracle import largest_chance

PROFILES = {
    "gaussian": PrivacyProfile.gaussian(0.8),
    "pure": PrivacyProfile.pure(1.0),
    "approximate": PrivacyProfile.approximate(0.5, 1e-3),
    "sampled": PrivacyProfile.gaussian(1.5).subsampled(0.3) * 4,
}


def lines_of(points):
    epsilons, deltas = (np.array(side) for side in zip(*points, strict=True))
    growth = np.exp(epsilons)
    slopes = np.concatenate([1.0 / growth, growth])
    return slopes, np.concatenate([-deltas / growth, 1.0 - deltas - growth])


def largest_possible(least, *case):
    low, high = 0.0, 1.0
    if is_possible(least, *case, 1.0):
        return 1.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if is_possible(least, *case, middle) else (low, middle)
    return high


def test_a_function_is_the_largest_of_its_lines():
    rng = np.random.default_rng(0)
    for size in (1, 2, 30):
        slopes, offsets = rng.exponential(size=size), rng.normal(size=size) - 0.5
        found = LeastError.of_lines(slopes, offsets)
        assert found.starts == sorted(found.starts) and found.starts[0] == 0.0
        for x in np.linspace(0.0, 1.0, 57):
            assert found(x) == pytest.approx(max(0.0, (offsets + slopes * x).max()))


@pytest.mark.parametrize("name", PROFILES)
def test_what_a_profile_demands_is_at_most_the_truth_and_near_it(name):
    # Theorem A5: an event of probability p has at least the type II error of a test at 1 - p.
    profile, points = PROFILES[name], np.linspace(0.001, 0.999, 99)
    truth = profile.tradeoff(1.0 - points)
    least, scaled = LeastError.of_profile(profile), ScaledClaim.of(profile).least_error(1.0)
    found = np.array([least(x) for x in points])
    assert (found <= truth + 1e-6).all()
    # Of two directions that differ it is the hull.
    np.testing.assert_allclose(found, truth, atol=0.012 if name == "sampled" else 2e-4)
    # Made of dots, it cuts the corners of a claim that has any.
    np.testing.assert_allclose([scaled(x) for x in points], truth, atol=0.015)


POINTS = {
    "pure": [(1.0, 0.0)],
    "approximate": [(0.5, 0.1)],
    "two": [(0.2, 0.2), (1.5, 0.0)],
    "three": [(0.0, 0.3), (0.7, 0.1), (2.0, 0.01)],
}


@pytest.mark.parametrize("n_guesses, n_canaries", [(1, 1), (2, 2), (1, 2), (3, 3), (2, 3)])
@pytest.mark.parametrize("name", POINTS)
def test_no_mechanism_does_better(name, n_guesses, n_canaries):
    # Theorem A5: the best of all mechanisms, found by linear programming.
    least = LeastError.of_lines(*lines_of(POINTS[name]))
    for n_right in range(1, n_guesses + 1):
        best = largest_chance(n_right, n_guesses, n_canaries, POINTS[name])
        bound = largest_possible(least, n_right, n_guesses, n_canaries)
        assert best <= bound + 1e-8
        if n_canaries == 1:
            assert best == pytest.approx(bound, abs=1e-6)


def test_guesses_of_one_kind_are_bounded_more_tightly():
    # Theorem A5: half of the slots.
    least = LeastError.of_profile(PROFILES["gaussian"])
    for n_right in (15, 18, 20):
        both = largest_possible(least, n_right, 20, 40)
        one = largest_possible(least, n_right, 20, 20)
        assert one <= both


def test_randomised_response_nearly_attains_the_bound_of_pure_claims():
    least = LeastError.of_profile(PrivacyProfile.pure(1.0))
    rate = float(special.expit(1.0))
    for n_right in (30, 33, 36):
        truth = stats.binom.sf(n_right - 1, 40, rate)
        bound = largest_possible(least, n_right, 40, 40)
        assert truth <= bound < 12.0 * truth


def test_edges():
    least = LeastError.of_profile(PROFILES["gaussian"])
    assert is_possible(least, 0, 5, 10, 1.0)
    nothing = LeastError.of_profile(PrivacyProfile.pure(0.0))
    # Guesses of fair coins: half are right.
    assert largest_possible(nothing, 1, 1, 1) == pytest.approx(0.5, abs=1e-6)
    assert largest_possible(nothing, 20, 20, 20) < 1e-4
    everything = LeastError.of_profile(PrivacyProfile.approximate(0.0, 1.0))
    assert is_possible(everything, 20, 20, 20, 1.0)


@pytest.mark.parametrize("mu", [0.5, 1.5])
def test_scaled_claims_of_gaussian_noise_are_those_of_other_noise(mu):
    claim = ScaledClaim.of(PrivacyProfile.gaussian(mu))
    for factor in (0.25, 1.0, 2.0):
        expected = PrivacyProfile.gaussian(factor * mu).epsilon(1e-5)
        assert claim.epsilon(factor, 1e-5) == pytest.approx(expected, rel=1e-3)


def test_gaussian_noise_on_many_coins_shows_a_good_share_of_its_epsilon():
    # Theorem A5.
    mu = 1.666
    claim = ScaledClaim.of(PrivacyProfile.gaussian(mu))
    bounds = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        coins = rng.integers(0, 2, 1000) == 1
        (found,) = guessed(rng.normal(size=1000) + mu * coins, coins, [(62, 62)])
        factor = largest_refuted_factor(claim, [(found.n_right, found.n_guesses, 1000)], 0.05, 4.0)
        bounds.append(claim.epsilon(factor, 1e-5))
    assert np.mean(np.array(bounds) > 8.0) <= 0.1
    assert 3.5 < np.median(bounds) < 8.0
    assert math.isclose(claim.epsilon(1.0, 1e-5), 8.0, rel_tol=1e-3)
