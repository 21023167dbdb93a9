"""Claims as lines: all are points of the profile."""

from __future__ import annotations

import math

import numpy as np
import pytest

from skdptune.accounting import PrivacyProfile
from skdptune.audit._claims import ClaimCurve

GAUSSIAN = PrivacyProfile.gaussian(1.0)


@pytest.mark.parametrize("delta", [1e-5, 0.1])
def test_points_are_those_of_the_profile(delta: float) -> None:
    claim = ClaimCurve(GAUSSIAN, delta)
    assert claim.epsilon == GAUSSIAN.epsilon(delta)
    assert (claim.epsilons[0], claim.epsilons[-1]) == (0.0, claim.epsilon)
    assert claim.deltas[:-1] == pytest.approx(GAUSSIAN.delta(claim.epsilons[:-1]), rel=1e-9)
    assert claim.deltas[-1] == pytest.approx(delta, rel=1e-12) and claim.deltas[-1] >= delta
    assert (np.diff(claim.deltas) < 0.0).all()


def test_pure_claims_have_a_last_line_without_delta() -> None:
    claim = ClaimCurve(PrivacyProfile.pure(2.0), 0.0)
    assert (claim.epsilon, claim.epsilons[-1], claim.deltas[-1]) == (2.0, 2.0, 0.0)


def test_where_epsilon_is_infinite_the_curve_is_read_all_the_same() -> None:
    claim = ClaimCurve(GAUSSIAN, 0.0)
    assert math.isinf(claim.epsilon)
    assert np.isfinite(claim.epsilons).all()
    assert claim.epsilons[-1] == GAUSSIAN.epsilon(1e-9)


def test_a_claim_of_nothing_is_one_line() -> None:
    claim = ClaimCurve(PrivacyProfile.pure(0.0), 0.0)
    assert claim.epsilon == 0.0
    assert (claim.deltas == 0.0).all()
