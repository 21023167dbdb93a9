"""Whether guesses contradict a claim."""

from __future__ import annotations

import pytest

from skdptune.accounting import PrivacyProfile
from skdptune.audit._one_run_bounds import (
    Guesses,
    counted_epsilon,
    epsilon_verdict,
    profile_verdict,
)

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


def test_a_whole_profile_shows_more_of_gaussian_noise():
    assert (
        profile_verdict(FOUND, 400, CLAIM, 1e-5, 0.025)[0]
        > epsilon_verdict(FOUND, 400, CLAIM, 1e-5, 0.025)[0]
    )


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
