"""A filter by Gaussian curves: the total holds for every choice of an adversary."""

from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting import dp_event
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, special, stats

from skdptune.accounting import GaussianFilter, Geometric, PrivacyProfile, UnreachableBudgetError
from tests.accounting.budgets.interactions import (
    EPSILONS,
    LEAKY,
    PURE,
    Interaction,
    adverse,
    check_all_courses,
    chosen_by,
    filled,
    greedy,
)
from tests.accounting.cases import trained
from tests.accounting.oracles_profile import gaussian_curve, gaussian_epsilon


class TestTotal:
    """Theorem G4."""

    @pytest.mark.parametrize("share", [0.0, 0.1, 0.9])
    @pytest.mark.parametrize(("epsilon", "delta"), [(1e-3, 1e-4), (2.0, 1e-6), (30.0, 1e-12)])
    def test_budget_is_the_square_of_the_largest_shift(self, epsilon, delta, share):
        total = GaussianFilter(epsilon, delta, failure=share * delta)
        exact = gaussian_epsilon(math.sqrt(total.budget), (1.0 - share) * delta)
        assert epsilon * (1.0 - 1e-4) <= exact <= epsilon
        assert total.profile.epsilon(delta) <= epsilon
        assert total.profile.delta(500.0) == pytest.approx(share * delta, rel=1e-6, abs=1e-17)

    def test_profile_is_above_the_curve_and_near(self):
        total = GaussianFilter(3.0, 1e-5, failure=1e-6)
        for epsilon in EPSILONS:
            exact = gaussian_curve(math.sqrt(total.budget), epsilon) + 1e-6
            assert exact <= total.profile.delta(epsilon) <= exact * (1.0 + 1e-4)

    @pytest.mark.parametrize("mu", [0.05, 0.1, 0.3])
    def test_gaussian_parts_cost_their_square_and_no_failure(self, mu):
        total = filled(GaussianFilter(3.0, 1e-6, failure=1e-8), PrivacyProfile.gaussian(mu))
        assert total.n_parts == math.floor(total.budget / (mu * mu))
        assert total.spent == pytest.approx(total.n_parts * mu * mu, rel=1e-12)
        assert total.spent_failure == 0.0

    def test_both_totals_run_out_together(self):
        total = filled(GaussianFilter(2.0, 1e-5, failure=1e-6), trained(0.02, 6.0, 250, 1e-3))
        assert total.n_parts > 50
        assert total.spent / total.budget > 0.98
        assert total.spent_failure / total.failure == pytest.approx(
            total.spent / total.budget, rel=1e-6
        )

    def test_parts_of_one_delta_stop_at_the_set_aside_failure(self):
        part = PrivacyProfile.approximate(0.01, 1e-7)
        total = filled(GaussianFilter(2.0, 1e-5, failure=5e-7), part)
        assert total.n_parts == 4
        assert total.spent_failure <= 5e-7
        assert not GaussianFilter(2.0, 1e-5).fits(part)


# Interactions ------------------------------------------------------------------------------


def binned(mu, edges=(-1.0, 0.3, 1.5)):
    """Return a Gaussian release that shows only a bin; its cost is a bound."""
    ends = np.array([-np.inf, *edges, np.inf])
    pair = [np.diff(stats.norm.cdf(ends, loc=mean)) for mean in (mu, 0.0)]
    return tuple(zip(*(side.tolist() for side in pair), strict=True)), PrivacyProfile.gaussian(mu)


def read(pair):
    """Return a pair of lists of masses with the profile of its curve."""
    p, q = np.array(pair).T
    points = np.linspace(0.0, 6.0, 601)
    curves = [
        np.maximum(a - np.exp(points)[:, np.newaxis] * b, 0.0).sum(axis=1)
        for a, b in ((p, q), (q, p))
    ]
    profile = PrivacyProfile.from_curve(
        points, curves[0], deltas_add=curves[1], discretization=0.01
    )
    return pair, profile


BINNED = [binned(mu) for mu in (0.5, 0.7, 1.0)]
READ = [read(binned(mu)[0]) for mu in (0.6, 0.8, 1.0)]


def two_rounds(first, second, epsilon, is_mirrored):
    """Return delta of two Gaussian rounds, the shift of the second a function of the first.

    Outcomes of the first are normal around 0 or `first`.
    """
    x = np.linspace(-9.0, 9.0 + first, 200_001)
    # Losses of the first round, and what the second adds.
    losses = first * (x - first / 2)
    losses = -losses if is_mirrored else losses
    weights = stats.norm.pdf(x, 0.0 if is_mirrored else first)
    rest = np.maximum(-np.expm1(epsilon - losses), 0.0)
    shifts = second(x)
    used = shifts > 0.0
    rest[used] = gaussian_curve(shifts[used], epsilon - losses[used])
    return integrate.trapezoid(weights * rest, x)


class TestAdaptiveChoices:
    """Theorem G4."""

    @pytest.mark.parametrize(
        ("choose", "parts"), [(greedy, PURE), (adverse, BINNED), (greedy, READ)]
    )
    def test_choices_that_follow_the_losses(self, choose, parts):
        check_all_courses(GaussianFilter(3.0, 0.05, failure=0.001), choose, parts)

    @given(seed=st.integers(0, 10**9))
    @settings(max_examples=3)
    def test_random_choices(self, seed):
        total = GaussianFilter(3.0, 0.05, failure=0.002)
        check_all_courses(total, chosen_by(seed, 6), BINNED + READ)

    @given(seed=st.integers(0, 10**9))
    @settings(max_examples=3)
    def test_parts_that_may_tell_all(self, seed):
        total = GaussianFilter(3.0, 0.05, failure=0.02)
        found = check_all_courses(total, chosen_by(seed, 4), LEAKY)
        assert found.delta(60.0) <= 0.02 + 1e-12

    def test_the_guarantee_is_not_idle(self):
        """With twice the budget, the interaction breaks what is promised for the single one."""
        total, double = (GaussianFilter(e, 0.1, failure=0.001) for e in (1.0, 2.0))
        assert double.budget >= 2.0 * total.budget
        found = Interaction(double, greedy, BINNED)
        assert any(found.delta(e) > total.profile.delta(e) for e in EPSILONS)

    @pytest.mark.parametrize(("epsilon", "is_mirrored"), [(0.0, True), (1.5, False)])
    def test_a_second_round_that_follows_the_first(self, epsilon, is_mirrored):
        first, rest = 0.6, 0.8
        rules = {
            "whole": lambda x: np.full_like(x, rest),
            "where the loss is high": lambda x: np.where(x > 0.75, rest, 0.0),
            "where it is low": lambda x: np.where(x < 0.25, rest, 0.3),
            "in steps": lambda x: rest * (np.floor(4.0 * x) % 4) / 3.0,
        }
        found = {
            name: two_rounds(first, second, epsilon, is_mirrored) for name, second in rules.items()
        }
        whole = found.pop("whole")
        assert whole == pytest.approx(gaussian_curve(1.0, epsilon), rel=1e-7)
        assert max(found.values()) < whole
        # Totals that are within the budget only on average violate the bound in the tail.
        beyond = two_rounds(
            first, lambda x: np.where(x > 1.5, 1.6, 0.0), 6.0 + epsilon, is_mirrored=False
        )
        assert beyond > gaussian_curve(1.0, 6.0 + epsilon)


class TestState:
    def test_huge_totals_stop_at_the_largest_shift(self):
        total = GaussianFilter(590.0, 0.5)
        assert 25.0**2 < total.budget <= 30.0**2
        assert total.profile.epsilon(0.5) <= 590.0
        with pytest.raises(UnreachableBudgetError, match="epsilon must be at least"):
            GaussianFilter(1e-13, 1e-13)


# Charges of a release ---------------------------------------------------------------------

POINTS = np.append(np.linspace(0.0, 3.0, 4001), np.random.default_rng(0).uniform(0.0, 30.0, 4000))
RELEASES = {
    "descent": trained(0.05, 3.0, 400, 1e-3),
    "one step": trained(0.3, 1.0, 1, 1e-3),
    "sparse": trained(0.001, 0.8, 1000, 1e-3),
    "pure": PrivacyProfile.pure(0.7),
    "approximate": PrivacyProfile.approximate(0.3, 1e-8),
    "selection": PrivacyProfile.gaussian(0.2).selected(Geometric(0.3)),
    "either": PrivacyProfile.gaussian(0.2) | PrivacyProfile.pure(0.15),
    "read": PrivacyProfile.from_dict(PrivacyProfile.gaussian(0.4).to_dict()),
}


def charged(release, failure=1e-6, epsilon=12.0):
    """Return the shift and the failure that a release is charged, and the shift of the total."""
    total = GaussianFilter(epsilon, 0.1, failure=failure)
    total.record(release)
    return math.sqrt(total.spent), total.spent_failure, math.sqrt(total.budget)


def excess(release, shift, left):
    """Return by how much a curve is above a Gaussian one, at most."""
    return max(
        float(np.max(release.delta(POINTS, direction) - gaussian_curve(shift, POINTS) - left))
        for direction in ("remove", "add")
    )


class TestBelow:
    """Theorem G5."""

    def test_what_touches_at_points_and_is_above_between_costs_more(self):
        points = 0.8192 * np.arange(11)
        deltas = np.append(gaussian_curve(1.0, points)[:-1], 0.0)
        release = PrivacyProfile.from_curve(points, deltas, discretization=0.8192)
        shift, left, _ = charged(release)
        assert np.all(release.delta(points) <= gaussian_curve(1.0, points) + 1e-15)
        assert excess(release, 1.0, left) > 0.01 and shift > 1.01
        assert excess(release, shift, left) <= 1e-13

    @given(
        deltas=st.lists(st.floats(1e-7, 0.3), min_size=1, max_size=5),
        failure=st.sampled_from([1e-6, 1e-3]),
    )
    @settings(max_examples=8)
    def test_any_curve_is_below_what_is_charged(self, deltas, failure):
        points = np.linspace(0.0, 3.0, len(deltas) + 1)
        release = PrivacyProfile.from_curve(points, [*sorted(deltas, reverse=True), 0.0])
        shift, left, _ = charged(release, failure, epsilon=60.0)
        assert excess(release, shift, left) <= 1e-13

    def test_what_is_left_beyond_every_loss_counts(self):
        release = PrivacyProfile.approximate(0.0, 2e-7)
        assert 2e-7 <= charged(release, 3e-7)[1] <= 2.1e-7
        assert not GaussianFilter(12.0, 0.1, failure=1.9e-7).fits(release)
        # No Gaussian curve is above so large a loss.
        assert not GaussianFilter(12.0, 0.1).fits(PrivacyProfile.pure(500.0))


class TestCharge:
    """Theorem G5."""

    def test_gaussian_releases_are_charged_their_own_shift(self):
        one, two = PrivacyProfile.gaussian(0.3), PrivacyProfile.gaussian(0.4)
        for release, shift in (
            (one, 0.3),
            (9 * one, 0.9),
            (2 * (one + two) + one, math.sqrt(0.59)),
            (PrivacyProfile.from_event(dp_event.GaussianDpEvent(4.0)), 0.25),
            (PrivacyProfile.pure(0.0), 0.0),
            (one + PrivacyProfile.pure(0.0), 0.3),
        ):
            assert charged(release)[:2] == (pytest.approx(shift, rel=1e-12), 0.0)

    def test_nothing_else_passes_for_gaussian(self):
        one = PrivacyProfile.gaussian(0.3)
        event = dp_event.PoissonSampledDpEvent(0.5, dp_event.GaussianDpEvent(2.0))
        for release in (
            one | one,
            one + PrivacyProfile.pure(0.1),
            one.subsampled(0.5),
            one.selected(Geometric(0.5)),
            PrivacyProfile.from_event(event),
        ):
            assert charged(release)[1] > 0.0

    @pytest.mark.parametrize("name", RELEASES)
    def test_curve_is_above_in_both_directions_and_hardly_more_than_it_must_be(self, name):
        release = RELEASES[name]
        shift, left, whole = charged(release)
        assert excess(release, shift, left) <= 1e-14
        infinity = release.delta(math.inf)
        assert left in (0.0, pytest.approx(infinity + 1e-6 * (shift / whole) ** 2, rel=1e-9))
        less = 0.997 * shift
        assert excess(release, less, infinity + 1e-6 * (less / whole) ** 2) > 0.0

    @pytest.mark.parametrize("epsilon", [0.05, 0.5, 2.0])
    def test_pure_guarantees_by_their_total_variation(self, epsilon):
        shift, left, _ = charged(PrivacyProfile.pure(epsilon), failure=0.0)
        least = 2.0 * special.ndtri(1.0 / (1.0 + math.exp(-epsilon)))
        assert left == 0.0
        assert least <= shift <= least * (1 + 1e-3)
