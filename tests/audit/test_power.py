"""The power of audits: near that of audits of noise that is really smaller."""

from __future__ import annotations

import math

import numpy as np
import pytest

from skdptune.accounting import PrivacyProfile
from skdptune.audit._bounds import (
    AuditPower,
    ClaimCurve,
    epsilon_with_less_noise,
    gaussian_shift,
    power_of,
)

CLAIM = ClaimCurve(PrivacyProfile.gaussian(1.0), 1e-5)


def sides(shift: float, size: int = 400) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(shift, 1.0, size), rng.normal(0.0, 1.0, size)


def refutes(together: np.ndarray, without: np.ndarray) -> bool:
    """The audit of a normal statistic."""
    return gaussian_shift(together, without, 0.05) > 1.0


def found(shift: float, n_pairs: int) -> AuditPower:
    return power_of(*sides(shift), n_pairs, CLAIM, refutes)


def share_of_audits(factor: float, n_pairs: int) -> float:
    rng, hits = np.random.default_rng(1), 0
    for _ in range(200):
        together = rng.normal(1.0, factor, n_pairs)
        hits += refutes(together, rng.normal(0.0, factor, n_pairs))
    return hits / 200


@pytest.mark.parametrize("n_pairs", [100, 400])
def test_noise_of_that_factor_is_found_about_as_often(n_pairs: int) -> None:
    factor = found(1.0, n_pairs).noise_factor
    assert factor is not None
    assert share_of_audits(0.9 * factor, n_pairs) > 0.8
    assert share_of_audits(min(1.25 * factor, 1.0), n_pairs) < 0.9


def test_more_fits_find_more_and_worse_canaries_less() -> None:
    few, many, weak = found(1.0, 60), found(1.0, 1000), found(0.5, 400)
    assert few.noise_factor < many.noise_factor < 1.0  # type: ignore[operator]
    assert weak.noise_factor < many.noise_factor  # type: ignore[operator]
    assert weak.epsilon > many.epsilon > CLAIM.epsilon  # type: ignore[operator]


def test_what_moves_nothing_has_no_power() -> None:
    assert found(0.0, 100) == AuditPower(None, None)


def test_a_refuted_claim_is_found_as_it_is() -> None:
    assert found(3.0, 400) == AuditPower(1.0, CLAIM.epsilon)


def test_few_values_are_told_apart_by_their_odds() -> None:
    rng = np.random.default_rng(0)
    votes = (rng.random(400) < 0.6).astype(float), (rng.random(400) < 0.4).astype(float)

    def counts(together: np.ndarray, without: np.ndarray) -> bool:
        assert set(np.unique(together)) <= {0.0, 1.0}
        return bool(together.mean() - without.mean() > 0.5)

    power = power_of(*votes, 400, ClaimCurve(PrivacyProfile.pure(1.0), 0.0), counts)
    assert power.noise_factor is not None and 0.2 < power.noise_factor < 0.9
    assert power.epsilon == pytest.approx(1.0 / power.noise_factor)


def test_less_noise_is_the_gaussian_claim_of_a_larger_shift() -> None:
    assert epsilon_with_less_noise(CLAIM, 0.5) == pytest.approx(
        PrivacyProfile.gaussian(2.0).epsilon(1e-5), rel=1e-6
    )
    assert epsilon_with_less_noise(CLAIM, 1.0) == pytest.approx(CLAIM.epsilon, rel=1e-6)
    assert math.isinf(epsilon_with_less_noise(CLAIM, 0.01))
