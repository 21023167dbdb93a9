"""What other rooms read from a profile and make profiles of, against its public face."""

import math

import numpy as np
import pytest

from skdptune.accounting import PrivacyProfile
from skdptune.accounting._losses import Halves, RenyiOfPure, RenyiUnknown, gaussian_delta
from skdptune.accounting._profile._profile import (
    profile_from_bound,
    profile_from_halves,
    profile_from_renyi,
    renyi_of,
    sides_of,
)

POINTS = np.array([0.0, 0.1, 0.5, 1.0])


def test_sides_are_the_directions_of_a_profile():
    profile = PrivacyProfile.gaussian(1.0).subsampled(0.1)
    for side, direction in zip(sides_of(profile), ("remove", "add"), strict=True):
        np.testing.assert_array_equal(side.delta(POINTS), profile.delta(POINTS, direction))


def test_halves_are_met_at_their_points():
    halves = Halves(0.5, np.array([0.3, 0.1, 0.0]), np.array([0.3, 0.05, 0.0]))
    profile = profile_from_halves(halves)
    for direction, half in (("remove", halves.remove), ("add", halves.add)):
        np.testing.assert_allclose(profile.delta([0.0, 0.5, 1.0], direction), half, atol=1e-15)
    assert isinstance(renyi_of(profile), RenyiUnknown)


def test_a_bound_is_met_in_both_directions():
    exact = gaussian_delta(0.4, POINTS)
    profile = profile_from_bound(lambda points: gaussian_delta(0.4, points))
    for direction in ("remove", "add"):
        found = profile.delta(POINTS, direction)
        assert np.all(found >= exact * (1.0 - 1e-12))
        np.testing.assert_allclose(found, exact, rtol=1e-3)


def test_a_renyi_curve_is_converted_and_kept():
    curve = RenyiOfPure(0.5)
    profile = profile_from_renyi(curve)
    assert renyi_of(profile) is curve
    assert profile.rdp(2.0) == curve.at(np.array([2.0]))[0]
    assert PrivacyProfile.pure(0.5).delta(0.3) <= profile.delta(0.3) < 1.0
    assert profile.epsilon(1e-6) == pytest.approx(0.5, rel=0.2)
    assert math.isfinite(profile.epsilon(1e-12))
