"""The possible number of correct guesses under a guarantee, and contradictions to a claim."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from skdptune.accounting import PrivacyProfile
from skdptune.audit._one_run_bounds import (
    Guesses,
    LeastError,
    ScaledClaim,
    chance_of_right_guesses,
    counted_epsilon,
    epsilon_verdict,
    guessed,
    is_possible,
    largest_refuted_factor,
    numbers_of_guesses,
    profile_verdict,
)
from tests.accounting.cases import few
from tests.audit.one_run.oracle import largest_chance

SIZES = [(1, 1), (2, 2), (1, 2), (3, 3), (2, 3), (1, 3)]


def as_published(n_canaries, n_guesses, n_right, epsilon, delta):
    """Return the bound that Steinke, Nasr and Jagielski (2023) print."""
    rate = 1.0 / (1.0 + math.exp(-epsilon))
    pmf = stats.binom.pmf(n_right - np.arange(1, n_right + 1), n_guesses, rate)
    largest = np.max(np.cumsum(pmf) / np.arange(1, n_right + 1), initial=0.0)
    return stats.binom.sf(n_right - 1, n_guesses, rate) + 2.0 * n_canaries * delta * largest


@pytest.mark.parametrize(
    "size, point", few(12, SIZES, [(1.0, 0.0), (0.0, 0.1), (1.0, 0.1), (2.0, 0.01)])
)
def test_no_mechanism_does_better(size, point):
    # Theorem A4: the best of all mechanisms, found by linear programming.
    (n_guesses, n_canaries), (epsilon, delta) = size, point
    for n_right in range(1, n_guesses + 1):
        best = largest_chance(n_right, n_guesses, n_canaries, [(epsilon, delta)])
        bound = chance_of_right_guesses(n_right, n_guesses, n_canaries, epsilon, delta)
        assert best <= bound + 1e-9
        if delta == 0.0:
            # Randomised response attains it.
            assert best == pytest.approx(bound, abs=1e-9)
        elif n_canaries == 1:
            assert best == pytest.approx(bound, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("n_guesses", [2, 4])
def test_no_mechanism_of_four_coins_does_better(n_guesses):
    # Theorem A4: how many coins can be guessed from one fit, by an epsilon and a delta.
    for n_right in range(1, n_guesses + 1):
        best = largest_chance(n_right, n_guesses, 4, [(0.7, 0.03)])
        assert best <= chance_of_right_guesses(n_right, n_guesses, 4, 0.7, 0.03) + 1e-9


@pytest.mark.parametrize(
    "n_canaries, n_guesses, epsilon",
    [(1000, 1000, 0.5), (1000, 100, 1.0), (100, 10, 4.0), (50, 1, 0.0), (1000, 100, 0.0)],
)
def test_the_bound_is_below_the_published_one_where_it_matters(n_canaries, n_guesses, epsilon):
    rate = 1.0 / (1.0 + math.exp(-epsilon))
    for risk in (0.05, 1e-3):
        n_right = min(int(stats.binom.isf(risk, n_guesses, rate)) + 1, n_guesses)
        bound = chance_of_right_guesses(n_right, n_guesses, n_canaries, epsilon, 1e-5)
        published = as_published(n_canaries, n_guesses, n_right, epsilon, 1e-5)
        assert stats.binom.sf(n_right - 1, n_guesses, rate) < bound < published


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_randomised_response_is_bounded_by_its_epsilon_and_nearly_attains_it(epsilon):
    # Theorem A4: how many coins can be guessed from one fit, by an epsilon and a delta.
    rate = 1.0 / (1.0 + math.exp(-epsilon))
    for n_canaries, nearly in ((100, 0.0), (10_000, 0.9)):
        right = np.random.default_rng(0).binomial(n_canaries, rate, 400)
        numbers, places = np.unique(right, return_inverse=True)
        # The bound grows with the number: the least that exceeds the truth is looked for.
        median = counted_epsilon(int(np.median(right)), n_canaries, n_canaries, 0.0, 0.05)
        assert nearly * epsilon < median < epsilon
        chances = np.array(
            [
                chance_of_right_guesses(int(v), n_canaries, n_canaries, epsilon, 0.0)
                for v in numbers
            ]
        )
        assert np.mean(chances[places] <= 0.05) < 0.05 + 3.0 * math.sqrt(0.05 / 400)


@settings(max_examples=40)
@given(
    n_canaries=st.integers(1, 200),
    share=st.floats(0.0, 1.0),
    right=st.floats(0.0, 1.0),
    delta=st.sampled_from([0.0, 1e-6, 1e-3]),
)
def test_more_right_guesses_show_no_less(n_canaries, share, right, delta):
    n_guesses = max(1, int(share * n_canaries))
    n_right = int(right * n_guesses)
    bound = counted_epsilon(n_right, n_guesses, n_canaries, delta, 0.05)
    assert bound >= 0.0 and math.isfinite(bound)
    if n_right < n_guesses:
        assert counted_epsilon(n_right + 1, n_guesses, n_canaries, delta, 0.05) >= bound
    assert counted_epsilon(n_right, n_guesses, n_canaries, delta, 0.01) <= bound
    if n_guesses > 1:
        assert counted_epsilon(n_right, n_guesses, n_canaries + 50, delta, 0.05) <= bound + 1e-9


def test_edges_of_counts():
    assert counted_epsilon(0, 0, 10, 1e-5, 0.05) == 0.0
    assert chance_of_right_guesses(0, 5, 10, 1.0, 1e-5) == 1.0
    assert counted_epsilon(2, 4, 10, 0.0, 0.05) == 0.0
    # All of r guesses right: q to the power of r is the risk.
    rate = 0.05 ** (1.0 / 100)
    expected = math.log(rate / (1.0 - rate))
    assert counted_epsilon(100, 100, 100, 0.0, 0.05) == pytest.approx(expected)
    assert counted_epsilon(100, 100, 100, 1.0, 0.05) == 0.0


# Under a whole profile ------------------------------------------------------------------------


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


@pytest.mark.parametrize("size, name", few(10, SIZES[:5], POINTS))
def test_no_mechanism_does_better_under_a_profile(size, name):
    # Theorem A5: the best of all mechanisms, found by linear programming.
    n_guesses, n_canaries = size
    least = LeastError.of_lines(*lines_of(POINTS[name]))
    for n_right in range(1, n_guesses + 1):
        best = largest_chance(n_right, n_guesses, n_canaries, POINTS[name])
        bound = largest_possible(least, n_right, n_guesses, n_canaries)
        assert best <= bound + 1e-8
        if n_canaries == 1:
            assert best == pytest.approx(bound, abs=1e-6)


def test_edges_of_profiles():
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
    # Theorem A5: how many coins can be guessed from one fit, by a whole profile.
    mu = 1.666
    claim = ScaledClaim.of(PrivacyProfile.gaussian(mu))
    bounds = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        coins = rng.integers(0, 2, 1000) == 1
        (found,) = guessed(rng.normal(size=1000) + mu * coins, coins, [(62, 62)])
        case = found.n_right, found.n_guesses, 1000
        factor = largest_refuted_factor(
            lambda f, case=case: not is_possible(claim.least_error(f), *case, 0.05), 4.0
        )
        bounds.append(claim.epsilon(factor, 1e-5))
    assert np.mean(np.array(bounds) > 8.0) <= 0.1
    assert 3.5 < np.median(bounds) < 8.0
    assert math.isclose(claim.epsilon(1.0, 1e-5), 8.0, rel_tol=1e-3)


# Which guesses are made, and what they show --------------------------------------------------


def test_the_highest_scores_are_guessed_to_be_in_and_the_lowest_not():
    scores = np.array([5.0, 4.0, 3.0, 2.0, 1.0, 0.0])
    is_in = np.array([True, False, True, True, False, True])
    found = guessed(scores, is_in, [(2, 2), (3, 3), (6, 0), (0, 1), (1, 0)])
    assert [each.n_right for each in found] == [2, 3, 4, 0, 1]
    assert [each.n_guesses for each in found] == [4, 6, 6, 1, 1]
    assert [each.share_of_slots for each in found] == [1.0, 1.0, 0.5, 0.5, 0.5]
    shuffled = np.array([3, 1, 5, 0, 2, 4])
    assert guessed(scores[shuffled], is_in[shuffled], [(2, 2)]) == found[:1]


def test_what_is_tried_follows_from_the_number_of_canaries():
    # Theorem A6: an audit by one fit refutes no true claim.
    assert numbers_of_guesses(1000) == [(250, 250), (125, 125)]
    assert numbers_of_guesses(30) == [(7, 7)]
    assert numbers_of_guesses(4) == [(2, 2)]
    for size in range(2, 60):
        assert all(0 < 2 * n_in <= size for n_in, _ in numbers_of_guesses(size))
    assert numbers_of_guesses(10, 5) == [(3, 2)]
    assert numbers_of_guesses(10, (4, 0)) == [(4, 0)]


TESTED = PrivacyProfile.gaussian(0.5)
FOUND = [Guesses(100, 100, 120), Guesses(25, 25, 48)]


def test_each_number_of_guesses_is_tested_at_its_share_of_the_risk():
    # Theorem A6: an audit by one fit refutes no true claim.
    bound, p_value, best = epsilon_verdict(FOUND, 400, TESTED, 1e-5, 0.025)
    assert best == FOUND[1]
    assert bound == counted_epsilon(48, 50, 400, 1e-5, 0.025)
    alone = epsilon_verdict(FOUND[1:], 400, TESTED, 1e-5, 0.05)
    assert p_value == pytest.approx(2.0 * alone[1]) and alone[0] > bound


@pytest.mark.parametrize("verdict", [epsilon_verdict, profile_verdict])
def test_a_claim_is_refuted_where_the_bound_exceeds_it(verdict):
    for mu in (0.1, 0.3, 0.5, 1.0, 2.0, 4.0):
        claim = PrivacyProfile.gaussian(mu)
        bound, p_value, _ = verdict(FOUND, 400, claim, 1e-5, 0.025)
        claimed = claim.epsilon(1e-5)
        assert (p_value <= 0.05) == (bound > claimed) or abs(bound / claimed - 1.0) < 0.02
        assert 0.0 < p_value <= 1.0


@pytest.mark.parametrize("verdict", [epsilon_verdict, profile_verdict])
def test_fair_guesses_show_nothing(verdict):
    fair = [Guesses(100, 100, 100), Guesses(25, 25, 20)]
    bound, p_value, _ = verdict(fair, 400, TESTED, 1e-5, 0.025)
    assert bound == pytest.approx(0.0, abs=1e-6) and p_value == 1.0


def test_guesses_of_one_kind_are_bounded_more_tightly():
    # Theorem A5: half of the slots.
    least = LeastError.of_profile(PROFILES["gaussian"])
    for n_right in (15, 18, 20):
        both = largest_possible(least, n_right, 20, 40)
        one = largest_possible(least, n_right, 20, 20)
        assert one <= both
