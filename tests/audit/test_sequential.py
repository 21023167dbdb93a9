"""Bets against claims: under a true claim the capital does not grow, at any time of looking."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from skdptune.accounting import PrivacyProfile
from skdptune.audit import _analyses as sequential
from skdptune.audit._bounds import ClaimCurve

CLAIM = ClaimCurve(PrivacyProfile.gaussian(1.0), 1e-5)
GRID = np.linspace(0.02, 0.98, 13)


def divergence(one: float, other: np.ndarray) -> np.ndarray:
    return one * np.log(one / other) + (1.0 - one) * np.log((1.0 - one) / (1.0 - other))


@pytest.mark.parametrize("line", [(0.0, 0.0), (1.0, 0.01), (2.0, 0.0), (0.5, 0.3)])
def test_nearest_rates_are_those_of_a_search(line: tuple[float, float]) -> None:
    # Theorem A3: a test of a claim that may be stopped at any time.
    epsilon, delta = line
    q = np.linspace(1e-9, (1.0 - delta) / math.exp(epsilon) - 1e-9, 200_001)
    for rates in [(0.7, 0.05), (0.99, 0.5), (0.5, 0.01)]:
        found = sequential.nearest_allowed(
            sequential.Rates(*(np.array([rate]) for rate in rates)),
            np.array(epsilon),
            np.array(delta),
        )
        if rates[0] <= math.exp(epsilon) * rates[1] + delta:
            assert (found.likely[0], found.unlikely[0]) == rates
            continue
        far = divergence(rates[0], math.exp(epsilon) * q + delta) + divergence(rates[1], q)
        assert found.unlikely[0] == pytest.approx(q[np.argmin(far)], abs=1e-4)
        assert found.likely[0] == pytest.approx(math.exp(epsilon) * found.unlikely[0] + delta)


@pytest.mark.parametrize("line", [(0.0, 0.0), (1.0, 0.01), (2.0, 0.0), (0.5, 0.3)])
def test_no_allowed_truth_makes_the_capital_grow(line: tuple[float, float]) -> None:
    # Theorem A3, by enumeration of both outcomes: the expected factor is at most 1.
    epsilon, delta = line
    p, q = (rates.ravel() for rates in np.meshgrid(GRID, GRID))
    on_line = np.minimum(math.exp(epsilon) * GRID + delta, 1.0)
    truths = [(a, b) for a, b in zip(p, q, strict=True) if a <= math.exp(epsilon) * b + delta]
    truths += list(zip(on_line, GRID, strict=True))
    rates = sequential.Rates(p, q)
    allowed = sequential.nearest_allowed(rates, np.array(epsilon), np.array(delta))
    is_bet = p > math.exp(epsilon) * q + delta
    assert is_bet.any()
    for truth in truths:
        expected = np.zeros(p.size)
        for a in (0, 1):
            for b in (0, 1):
                one = np.ones(p.size)
                counts = sequential.Counts(a * one, one, b * one, one)
                chance = (truth[0] if a else 1 - truth[0]) * (truth[1] if b else 1 - truth[1])
                expected += chance * np.exp(sequential.log_factors(rates, allowed, counts))
        assert expected.max() <= 1.0 + 1e-12


def peeked(
    mu: float, n_pairs: int, seed: int, risk: float, **more: float
) -> sequential.SequentialTest:
    rng = np.random.default_rng(seed)
    sides = rng.normal(mu, 1.0, n_pairs), rng.normal(0.0, 1.0, n_pairs)
    return sequential.bet_on_all(sequential.SequentialTest(CLAIM, risk, **more), *sides)


@pytest.mark.slow
def test_false_alarms_of_somebody_who_peeks_are_as_rare_as_stated() -> None:
    # Theorem A3: the truth is the claim, and every look may end it.
    n_audits = 150
    alarms = sum(peeked(1.0, 300, seed, 0.2).is_refuted for seed in range(n_audits))
    assert stats.binomtest(alarms, n_audits, 0.2, alternative="greater").pvalue > 1e-3


def test_bounds_of_somebody_who_peeks_hold_as_often_as_stated() -> None:
    # Theorem A3. A large delta, at which the bound comes near the truth.
    claim, n_audits = ClaimCurve(PrivacyProfile.gaussian(1.0), 0.1), 60
    truth, wrong = claim.epsilon, 0
    for seed in range(n_audits):
        rng = np.random.default_rng(seed)
        sides = rng.normal(1.0, 1.0, 300), rng.normal(0.0, 1.0, 300)
        test = sequential.SequentialTest(claim, 1e-9, 0.2)
        sequential.bet_on_all(test, *sides)
        wrong += test.epsilon_lower > truth
    assert stats.binomtest(wrong, n_audits, 0.2, alternative="greater").pvalue > 1e-3
