"""Few dots of convex curves: chords above, hardly above, and few."""

import math

import numpy as np
import pytest
from dp_accounting import dp_event
from hypothesis import given, settings
from hypothesis import strategies as st

from skdptune.accounting import Geometric, PrivacyProfile, SharedCurve
from skdptune.accounting._losses import gaussian_delta, pair_masses
from skdptune.accounting._profile import sides_of
from skdptune.accounting._tuning._tune_then_fit import (
    curves_through_dots,
    dots_of_losses,
    few_dots,
    few_outcomes,
)

STEP = 1e-4
SAMPLED = PrivacyProfile.from_event(
    dp_event.SelfComposedDpEvent(
        dp_event.PoissonSampledDpEvent(0.05, dp_event.GaussianDpEvent(4.0)), 400
    )
)
PROFILES = {
    "Gaussian": PrivacyProfile.gaussian(0.3),
    "large Gaussian": PrivacyProfile.gaussian(6.0),
    "sampled": SAMPLED,
    "shared curve": SharedCurve(0.3, 1e-7).profile,
    "selected": PrivacyProfile.gaussian(0.3).selected(Geometric.from_mean(20)),
    "pure": PrivacyProfile.pure(1.5),
    "approximate": PrivacyProfile.approximate(0.2, 1e-6),
    "of pure parts": 20 * PrivacyProfile.pure(0.1),
    "nothing": PrivacyProfile.pure(0.0),
}
every_profile = pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)


def chords(dots, places):
    """Return the chords between dots, linear in exp(epsilon)."""
    return np.interp(np.exp(STEP * places), np.exp(STEP * dots.places), dots.heights)


@pytest.mark.parametrize("mu", [0.05, 0.3, 1.0])
def test_chords_of_a_gaussian_curve_are_hardly_above_it(mu):
    # Theorem T6.
    end = math.ceil((mu * mu / 2.0 + 7.5 * mu) / STEP)
    dots = few_dots(lambda p: gaussian_delta(mu, STEP * p), np.array([0, end // 2, end]), STEP)
    places = np.arange(end + 1)
    exact, found = gaussian_delta(mu, STEP * places), chords(dots, places)
    assert dots.places.size < 600
    assert np.all(found >= exact * (1.0 - 1e-12))
    assert np.all(found <= 1.005 * exact + 1e-15)
    # As epsilon: the curve a share of epsilon before.
    shift = 3e-4 * np.maximum(STEP * places, 1e-3 * STEP * end)
    assert np.all(found <= gaussian_delta(mu, STEP * places - shift) + 1e-15)


def test_dots_gather_at_a_corner():
    # Theorem T6.
    def height(places):
        return np.maximum(1.0 - np.expm1(STEP * places) / math.expm1(0.7), 0.0)

    dots = few_dots(height, np.array([0, 10_000]), STEP)
    around = np.searchsorted(dots.places, 7000)
    assert np.diff(dots.places)[around - 1] <= 7
    assert dots.places.size < 80
    places = np.arange(10_001)
    assert np.all(chords(dots, places) >= height(places) - 1e-15)


@every_profile
def test_dots_of_a_profile_include_both_ends(profile):
    for side in sides_of(profile):
        dots = dots_of_losses(side)
        assert dots.places[0] == 0 and dots.places[-1] == side.highest
        assert dots.heights[-1] == side.infinity
        np.testing.assert_array_equal(dots.heights, side.curve[dots.places])
        assert dots.places.size < 1000


@every_profile
def test_moved_outcomes_keep_the_masses_of_both_distributions(profile):
    # Theorem T6.
    sides = sides_of(profile)
    ratios, masses = few_outcomes(sides)
    assert np.all(masses > 0.0) and np.all(np.diff(np.sort(ratios)) > 0.0)
    # Directions read from dp_accounting agree to some 1e-8.
    assert masses.sum() == pytest.approx(1.0, abs=2e-8)
    assert ratios @ masses == pytest.approx(1.0 - sides[0].infinity, abs=2e-8)
    if sides[1].infinity > 0.0:
        assert (ratios[-1], masses[-1]) == (0.0, sides[1].infinity)


@every_profile
def test_moved_outcomes_have_a_curve_that_is_hardly_higher(profile):
    """Any convex function of the ratio gains by the moves; hockey sticks span them all."""
    # Theorem T6.
    sides = sides_of(profile)
    ratios, masses = few_outcomes(sides)
    losses, _, exact = pair_masses(*sides)
    alphas = np.exp(np.linspace(losses[-1] - 0.1, losses[0] + 0.1, 300))
    before = np.maximum(np.exp(losses) - alphas[:, None], 0.0) @ exact
    after = np.maximum(ratios - alphas[:, None], 0.0) @ masses
    assert np.all(after >= before * (1.0 - 1e-9) - 1e-15)
    assert np.all(after <= 1.005 * before + 1e-12)


def test_outcomes_of_randomised_response_stay_where_they_are():
    ratios, masses = few_outcomes(sides_of(PrivacyProfile.pure(1.5)))
    low = 1.0 / (1.0 + math.exp(1.5))
    assert np.array([ratios, masses])[:, masses > 1e-12] == pytest.approx(
        np.array([[math.exp(1.5), math.exp(-1.5)], [low, 1.0 - low]])
    )


@settings(max_examples=20)
@given(
    mu=st.floats(0.01, 3.0),
    other=st.floats(0.01, 3.0),
    stays=st.sampled_from([0.0, 1e-9, 1e-3]),
)
def test_two_curves_on_one_grid_are_never_below_themselves(mu, other, stays):
    # Theorem T6.
    curves = [lambda e, m=m: gaussian_delta(m, e) + stays for m in (mu, other)]
    ends = tuple(m * m / 2.0 + 8.0 * m for m in (mu, other))
    step, *halves = curves_through_dots(tuple(curves), ends)
    for half, curve, end in zip(halves, curves, ends, strict=True):
        grid = step * np.arange(half.size)
        assert grid[-1] >= end
        assert np.all(half >= curve(grid) * (1.0 - 1e-12))
        assert np.all(half <= 1.005 * curve(grid) + 1e-15)


def test_both_curves_may_be_as_good_as_nothing():
    step, remove, add = curves_through_dots((np.zeros_like, np.zeros_like), (1e-9, 1e-9))
    assert step < 1e-9
    assert not remove.any() and not add.any()
