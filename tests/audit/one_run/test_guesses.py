"""Guesses of which canaries were included, and whether they contradict a claim."""

from __future__ import annotations

import numpy as np
import pytest

from skdptune.accounting import PrivacyProfile
from skdptune.audit._one_run_bounds import (
    Guesses,
    counted_epsilon,
    epsilon_verdict,
    guessed,
    numbers_of_guesses,
    profile_verdict,
)


def test_the_highest_scores_are_guessed_to_be_in_and_the_lowest_not():
    scores = np.array([5.0, 4.0, 3.0, 2.0, 1.0, 0.0])
    is_in = np.array([True, False, True, True, False, True])
    found = guessed(scores, is_in, [(2, 2), (3, 3), (6, 0), (0, 1), (1, 0)])
    assert [each.n_right for each in found] == [2, 3, 4, 0, 1]
    assert [each.n_guesses for each in found] == [4, 6, 6, 1, 1]
    assert [each.share_of_slots for each in found] == [1.0, 1.0, 0.5, 0.5, 0.5]
    shuffled = np.array([3, 1, 5, 0, 2, 4])
    assert guessed(scores[shuffled], is_in[shuffled], [(2, 2)]) == found[:1]


def test_equal_scores_stay_in_their_order():
    is_in = np.array([True, True, False, False])
    assert guessed(np.zeros(4), is_in, [(2, 2)]) == [Guesses(2, 2, 4)]
    assert guessed(np.full(4, np.nan), ~is_in, [(2, 2)]) == [Guesses(2, 2, 0)]


def test_what_is_tried_follows_from_the_number_of_canaries():
    # Theorem A6.
    sizes = [468, 375, 250, 125, 62, 31]
    assert numbers_of_guesses(1000) == [(size, size) for size in sizes]
    assert numbers_of_guesses(30) == [(11, 11), (9, 9), (7, 7)]
    assert numbers_of_guesses(4) == [(2, 2)]
    for size in range(2, 60):
        assert all(0 < 2 * n_in <= size for n_in, _ in numbers_of_guesses(size))
    assert numbers_of_guesses(10, 5) == [(3, 2)]
    assert numbers_of_guesses(10, (4, 0)) == [(4, 0)]


CLAIM = PrivacyProfile.gaussian(0.5)
FOUND = [Guesses(100, 100, 120), Guesses(25, 25, 48)]


def test_each_number_of_guesses_is_tested_at_its_share_of_the_risk():
    # Theorem A6.
    bound, p_value, best = epsilon_verdict(FOUND, 400, CLAIM, 1e-5, 0.025)
    assert best == FOUND[1]
    assert bound == counted_epsilon(48, 50, 400, 1e-5, 0.025)
    alone = epsilon_verdict(FOUND[1:], 400, CLAIM, 1e-5, 0.05)
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
    bound, p_value, _ = verdict(fair, 400, CLAIM, 1e-5, 0.025)
    assert bound == pytest.approx(0.0, abs=1e-6) and p_value == 1.0


def test_claims_of_many_kinds_are_tested():
    for claim in (
        PrivacyProfile.pure(0.3),
        PrivacyProfile.approximate(0.3, 1e-3),
        PrivacyProfile.gaussian(2.0).subsampled(0.05) * 3,
    ):
        bound, p_value, _ = profile_verdict([Guesses(100, 100, 190)], 400, claim, 1e-2, 0.05)
        assert p_value < 0.05 and bound > claim.epsilon(1e-2)
