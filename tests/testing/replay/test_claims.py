"""The shift that a claim allows: closed forms, the extremal statistic, chances by enumeration."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from skdptune.accounting import PrivacyProfile
from skdptune.testing._judgement import agreement_chance, allowed_shift


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 4.0, 10.0])
def test_shift_of_pure_claims_has_a_closed_form(epsilon) -> None:
    # Theorem V1.
    found = allowed_shift(PrivacyProfile.pure(epsilon))
    assert found == pytest.approx(2.0 * math.sinh(epsilon / 2.0), rel=1e-3)
    assert found >= 2.0 * math.sinh(epsilon / 2.0) * (1.0 - 1e-12)


@pytest.mark.parametrize("mu", [0.05, 0.27, 0.7])
def test_shift_of_gaussian_claims_has_a_closed_form(mu) -> None:
    # Theorem V1.
    found = allowed_shift(PrivacyProfile.gaussian(mu))
    assert found == pytest.approx(math.sqrt(math.expm1(mu**2)), rel=0.02)
    assert found > mu


@pytest.mark.parametrize("mu", [0.3, 1.0, 2.5])
def test_no_statistic_moves_farther(mu) -> None:
    """Theorem V1: the truncated ratio, which moves farthest, moves no farther."""
    points = np.linspace(-12.0, 12.0 + mu, 20001)
    with_record, without = stats.norm.pdf(points - mu), stats.norm.pdf(points)
    with_record, without = with_record / with_record.sum(), without / without.sum()
    profile = PrivacyProfile.gaussian(mu)
    largest = math.exp(profile.epsilon(1e-4))
    kept = np.minimum(with_record, largest * without)
    kept /= kept.sum()
    ratio = kept / without
    allowed = allowed_shift(profile)
    rng = np.random.default_rng(0)
    for statistic in (ratio, points, points**2, points > mu, rng.normal(size=points.size)):
        mean = without @ statistic
        width = math.sqrt(without @ (statistic - mean) ** 2)
        moved = abs(kept @ statistic - mean) / width
        assert moved <= allowed
        if statistic is ratio:
            assert moved == pytest.approx(allowed, rel=0.05)


@settings(max_examples=25)
@given(st.floats(0.0, 8.0), st.floats(0.0, 8.0))
def test_more_privacy_allows_less(one, other) -> None:
    shifts = [allowed_shift(PrivacyProfile.pure(epsilon)) for epsilon in sorted((one, other))]
    assert shifts[0] <= shifts[1]


def test_claims_of_nothing_and_of_everything() -> None:
    assert allowed_shift(PrivacyProfile.pure(0.0)) == 0.0
    assert allowed_shift(PrivacyProfile.approximate(0.0, 1.0)) == math.inf
    rare = allowed_shift(PrivacyProfile.approximate(1.0, 1e-6))
    assert rare == pytest.approx(2.0 * math.sinh(0.5), rel=1e-3)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("n_repeats", [2, 5])
def test_chance_of_agreement_covers_the_worst_coupling(epsilon, n_repeats) -> None:
    """Theorem V2: of randomised response, with any dependence between the two sides."""
    truth = math.exp(epsilon) / (1.0 + math.exp(epsilon))
    bound = agreement_chance(PrivacyProfile.pure(epsilon), n_repeats, 1)
    # Probability of (0, 1); of the other three pairs what the two sides then leave.
    for both in np.linspace(0.0, truth, 101):
        pairs = {(0, 1): both, (0, 0): truth - both, (1, 1): truth - both}
        pairs[1, 0] = 1.0 - sum(pairs.values())
        if min(pairs.values()) < 0.0:
            continue
        chance = 0.0
        for outcome in itertools.product(pairs, repeat=n_repeats):
            one, other = ({pair[side] for pair in outcome} for side in (0, 1))
            if len(one) == len(other) == 1 and one != other:
                chance += math.prod(pairs[pair] for pair in outcome)
        assert chance <= bound * (1.0 + 1e-12)
    assert bound == pytest.approx(truth ** (n_repeats - 1))


def test_chance_of_two_steps_is_larger_and_at_most_one() -> None:
    profile = PrivacyProfile.gaussian(0.5)
    assert agreement_chance(profile, 10, 1) < agreement_chance(profile, 10, 2) < 1.0
    assert agreement_chance(PrivacyProfile.approximate(0.0, 1.0), 10, 2) == 1.0
    assert agreement_chance(PrivacyProfile.pure(0.0), 10, 1) == 2.0**-9
