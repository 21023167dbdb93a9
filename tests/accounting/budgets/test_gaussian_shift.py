"""Gaussian curves above profiles: at every epsilon, and hardly larger than they must be."""

from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting import dp_event
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from skdptune.accounting import Geometric, PrivacyProfile
from skdptune.accounting._budgets._gaussian_filter import charge_of, is_below
from skdptune.accounting._profile import sides_of

POINTS = np.append(np.linspace(0.0, 3.0, 4001), np.random.default_rng(0).uniform(0.0, 30.0, 4000))


def exact(mu, points):
    """Balle and Wang's curve by scipy alone, exact to some 1e-15 of 1."""
    tail = special.log_ndtr
    return special.ndtr(mu / 2 - points / mu) - np.exp(points + tail(-mu / 2 - points / mu))


def descent(rate, steps, noise):
    step = dp_event.PoissonSampledDpEvent(rate, dp_event.GaussianDpEvent(noise))
    return PrivacyProfile.from_event(dp_event.SelfComposedDpEvent(step, steps), 1e-3)


RELEASES = {
    "descent": descent(0.05, 400, 3.0),
    "one step": descent(0.3, 1, 1.0),
    "sparse": descent(0.001, 1000, 0.8),
    "pure": PrivacyProfile.pure(0.7),
    "approximate": PrivacyProfile.approximate(0.3, 1e-8),
    "selection": PrivacyProfile.gaussian(0.2).selected(Geometric(0.3)),
    "either": PrivacyProfile.gaussian(0.2) | PrivacyProfile.pure(0.15),
    "read": PrivacyProfile.from_dict(PrivacyProfile.gaussian(0.4).to_dict()),
}


class TestBelow:
    """Theorem G5."""

    def test_what_touches_at_points_and_is_above_between_is_refused(self):
        mu, points = 1.0, 0.8192 * np.arange(11)
        profile = PrivacyProfile.from_curve(points, exact(mu, points), discretization=0.8192)
        side = sides_of(profile)[0]
        last = float(side.curve[-1])
        gap = float(np.max(side.delta(POINTS) - exact(mu, POINTS)))
        assert np.all(side.delta(points) <= exact(mu, points) + 1e-15)
        assert gap > 0.01
        assert not is_below(side, mu, last)
        assert not is_below(side, mu, 0.98 * gap)
        assert is_below(side, mu, 1.02 * gap)

    @given(
        mu=st.floats(0.05, 4.0),
        deltas=st.lists(st.floats(1e-7, 0.3), min_size=2, max_size=6),
        failure=st.sampled_from([1e-6, 1e-3]),
    )
    @settings(max_examples=100)
    def test_any_curve_that_is_accepted_is_below_everywhere(self, mu, deltas, failure):
        points = np.linspace(0.0, 3.0, len(deltas))
        profile = PrivacyProfile.from_curve(points, sorted(deltas, reverse=True))
        side = sides_of(profile)[0]
        largest = float(np.max(side.delta(POINTS) - exact(mu, POINTS)))
        if is_below(side, mu, failure):
            assert largest <= failure + 1e-13
        else:
            assert largest > failure * 0.99 - 1e-3 * exact(mu, np.zeros(1))[0]

    def test_what_is_left_beyond_every_loss_counts(self):
        side = sides_of(PrivacyProfile.approximate(0.0, 2e-7))[0]
        assert is_below(side, 1e-3, 2e-7)
        assert not is_below(side, 25.0, 1.9e-7)
        # Far out every Gaussian curve is lower than randomised response.
        assert not is_below(sides_of(PrivacyProfile.pure(50.0))[0], 1.0, 0.0)


class TestCharge:
    """Theorem G5."""

    def test_gaussian_releases_are_charged_their_own_shift(self):
        one, two = PrivacyProfile.gaussian(0.3), PrivacyProfile.gaussian(0.4)
        event = dp_event.GaussianDpEvent(4.0)
        for release, shift in (
            (one, 0.3),
            (9 * one, 0.9),
            (one + two, 0.5),
            (2 * (one + two) + one, math.sqrt(0.59)),
            (PrivacyProfile.from_event(event), 0.25),
            (PrivacyProfile.pure(0.0), 0.0),
            (one + PrivacyProfile.pure(0.0), 0.3),
        ):
            assert charge_of(release, 1e-7, 1.0) == (pytest.approx(shift, rel=1e-12), 0.0)

    def test_nothing_else_passes_for_gaussian(self):
        one = PrivacyProfile.gaussian(0.3)
        for release in (
            one | one,
            one + PrivacyProfile.pure(0.1),
            one.subsampled(0.5),
            one.selected(Geometric(0.5)),
            PrivacyProfile.from_event(
                dp_event.PoissonSampledDpEvent(0.5, dp_event.GaussianDpEvent(2.0))
            ),
        ):
            assert charge_of(release, 1e-7, 1.0)[1] > 0.0

    @pytest.mark.parametrize("name", RELEASES)
    @pytest.mark.parametrize("failure", [1e-6, 1e-4])
    def test_curve_is_above_in_both_directions(self, name, failure):
        shift, left = charge_of(RELEASES[name], failure, 2.0)
        assert math.isfinite(shift)
        for direction in ("remove", "add"):
            own = RELEASES[name].delta(POINTS, direction)
            assert np.all(own <= exact(shift, POINTS) + left + 1e-14)

    @pytest.mark.parametrize("name", RELEASES)
    def test_shift_is_hardly_larger_than_it_must_be(self, name):
        shift, _ = charge_of(RELEASES[name], 1e-6, 2.0)
        infinity = max(side.infinity for side in sides_of(RELEASES[name]))
        less = 0.997 * shift
        left = infinity + 1e-6 * (less / 2.0) ** 2
        excess = [
            RELEASES[name].delta(POINTS, direction) - exact(less, POINTS) - left
            for direction in ("remove", "add")
        ]
        assert np.max(excess) > 0.0

    @pytest.mark.parametrize("epsilon", [0.05, 0.5, 2.0])
    def test_pure_guarantees_by_their_total_variation(self, epsilon):
        shift, left = charge_of(PrivacyProfile.pure(epsilon), 0.0, 1.0)
        least = 2.0 * special.ndtri(1.0 / (1.0 + math.exp(-epsilon)))
        assert left == 0.0
        assert least <= shift <= least * (1 + 1e-3)

    def test_failure_grows_with_the_square_of_the_shift(self):
        shift, left = charge_of(RELEASES["descent"], 1e-6, 2.0)
        infinity = max(side.infinity for side in sides_of(RELEASES["descent"]))
        assert left == pytest.approx(infinity + 1e-6 * (shift / 2.0) ** 2, rel=1e-9)
        # No more than all of it.
        assert charge_of(RELEASES["descent"], 1e-6, 0.1)[1] == pytest.approx(1e-6, rel=1e-6)

    def test_no_gaussian_curve_is_above_a_large_loss(self):
        assert charge_of(PrivacyProfile.pure(500.0), 0.0, 1.0) == (math.inf, 0.0)
