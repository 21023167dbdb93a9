"""Claims as lines: all are points of the profile."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from skdptune.accounting import PrivacyProfile, PrivacyReport
from skdptune.audit._bounds import ClaimCurve, read_claim

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


def stating(profile: PrivacyProfile, delta: float = 1e-5) -> Any:
    """Return what looks like a fitted estimator with a report."""
    return SimpleNamespace(privacy_=PrivacyReport(profile, delta, name="fit"))


def test_without_a_claim_the_larger_of_what_fits_state_is_tested() -> None:
    small, large = PrivacyProfile.gaussian(0.5), PrivacyProfile.gaussian(1.0)
    profile, delta = read_claim([stating(small), stating(large)], 10, None, None)
    assert delta == 1e-5
    assert profile.epsilon(1e-5) >= large.epsilon(1e-5)
    assert read_claim([stating(small)], 10, None, 1e-3) == (small, 1e-3)


def test_given_claims_are_taken_as_they_are() -> None:
    fits = [stating(GAUSSIAN, 1e-6)]
    profile, delta = read_claim(fits, 10, 2.0, None)
    # A number is an epsilon at the delta that the fit states.
    assert (profile.epsilon(delta), delta) == (2.0, 1e-6)
    assert read_claim([SimpleNamespace()], 10, 2.0, None)[1] == 0.0
    assert read_claim(fits, 10, PrivacyProfile.pure(1.0), None)[1] == 0.0
    assert read_claim(fits, 10, GAUSSIAN, 1e-3) == (GAUSSIAN, 1e-3)


def test_claims_of_nothing_are_refused_where_they_cannot_be_tested() -> None:
    assert read_claim([SimpleNamespace()], 10, 0.0, None)[0].epsilon(0.0) == 0.0
    with pytest.raises(ValueError, match="claim must be a number in"):
        read_claim([SimpleNamespace()], 10, 0.0, None, can_be_zero=False)
    with pytest.raises(ValueError, match="claim must be finite at delta=0; got one that allows"):
        read_claim([SimpleNamespace()], 10, GAUSSIAN, 0.0)
    with pytest.raises(ValueError, match="delta must be a number in"):
        read_claim([SimpleNamespace()], 10, GAUSSIAN, 1.0)
