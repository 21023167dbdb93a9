"""The Rényi filter: closed forms, and all courses of adaptive interactions."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdptune.accounting import PrivacyProfile, RenyiFilter, UnreachableBudgetError, suitable_order
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
from tests.accounting.oracles_profile import (
    approximate_composition,
    gaussian_curve,
    gaussian_delta,
    gaussian_epsilon,
    renyi_of_pair,
)


def budget_of(epsilon, delta, order):
    """Return the divergence that proves (epsilon, delta), by the printed conversion."""
    a, e, d = mpmath.mpf(order), mpmath.mpf(epsilon), mpmath.mpf(delta)
    # d = exp((a - 1) (B - e)) / (a - 1) * (1 - 1/a)^a
    return float(e + (mpmath.log(d * (a - 1)) - a * mpmath.log(1 - 1 / a)) / (a - 1))


def charged(release, order, delta=0.5):
    """Return the divergence and the failure that a release is charged by a filter of an order."""
    total = RenyiFilter(500.0, delta, order, failure=0.9 * delta)
    total.record(release)
    return total.spent, total.spent_failure


class TestClosedForms:
    """Theorem G1."""

    @pytest.mark.parametrize("order", [2.5, 8.0, 12.0, 17.3])
    @pytest.mark.parametrize(("epsilon", "delta"), [(2.0, 1e-2), (5.0, 1e-4), (30.0, 1e-9)])
    def test_budget_is_that_of_the_conversion(self, epsilon, delta, order):
        wanted = budget_of(epsilon, delta, order)
        if wanted <= 0.0:
            with pytest.raises(UnreachableBudgetError, match=f"for order {order:g}"):
                RenyiFilter(epsilon, delta, order)
            return
        total = RenyiFilter(epsilon, delta, order)
        assert wanted * (1.0 - 1e-4) <= total.budget <= wanted
        assert epsilon * (1.0 - 1e-4) <= total.profile.epsilon(delta) <= epsilon

    @pytest.mark.parametrize("mu", [0.05, 0.1, 0.3])
    def test_gaussian_parts_cost_in_proportion_to_their_square(self, mu):
        total = filled(RenyiFilter(3.0, 1e-6, 8.0), PrivacyProfile.gaussian(mu))
        assert total.n_parts == math.floor(total.budget / (4.0 * mu * mu))
        assert total.spent == pytest.approx(total.n_parts * 4.0 * mu * mu, rel=1e-12)

    def test_gaussian_total_is_above_the_exact_one_and_near(self):
        """For Gaussian parts, the exact total is known for all choices."""
        part = PrivacyProfile.gaussian(0.05)
        total = filled(RenyiFilter(2.0, 1e-6, suitable_order(2.0, 1e-6, [part])), part)
        exact = gaussian_epsilon(0.05 * math.sqrt(total.n_parts), 1e-6)
        assert 0.8 * 2.0 < exact < 2.0
        for epsilon in EPSILONS:
            assert total.profile.delta(epsilon) >= gaussian_delta(
                0.05 * math.sqrt(total.n_parts), epsilon
            )

    def test_profile_is_the_least_over_the_orders_up_to_its_own(self):
        total = RenyiFilter(3.0, 1e-5, 6.0)
        orders = np.append(np.arange(1.1, 6.0, 0.1), 6.0)
        for epsilon in (0.5, 1.0, 2.0, 3.0, 4.0):
            proven = [
                math.exp((a - 1) * (total.budget - epsilon)) / (a - 1) * (1 - 1 / a) ** a
                for a in orders
            ]
            found = total.profile.delta(epsilon)
            # Near 0 the curve's convexity proves more than the orders do.
            assert found <= min(1.0, *proven) * (1 + 1e-3)
            if epsilon >= 1.5:
                assert found >= min(proven)

    def test_failure_is_set_aside(self):
        without = RenyiFilter(3.0, 1e-5, 8.0)
        some = RenyiFilter(3.0, 1e-5, 8.0, failure=4e-6)
        assert some.budget == pytest.approx(budget_of(3.0, 6e-6, 8.0), rel=1e-4)
        assert some.budget < without.budget
        assert some.profile.delta(40.0) == pytest.approx(4e-6, rel=1e-6)
        assert some.profile.epsilon(1e-5) <= 3.0


class TestDivergences:
    """Theorem G2."""

    @pytest.mark.parametrize("mu", [0.1, 1.0, 3.0])
    def test_read_from_a_curve_as_known_in_closed_form(self, mu):
        points = np.linspace(0.0, 4 * mu * mu + 9 * mu, 1501)
        profile = PrivacyProfile.from_curve(points, np.maximum(gaussian_curve(mu, points), 0.0))
        for order in (1.5, 2.0, 4.0):
            divergence, failure = charged(profile, order)
            least = order * mu * mu / 2.0
            assert least * (1.0 - 1e-6) <= divergence <= least * (1.0 + 5e-3)
            assert failure < 1e-14
            # Known divergences are taken as they are.
            assert charged(PrivacyProfile.gaussian(mu), order) == (
                PrivacyProfile.gaussian(mu).rdp(order),
                0.0,
            )

    @pytest.mark.parametrize("order", [1.1, 2.0, 5.0, 40.0])
    @pytest.mark.parametrize(("epsilon", "delta"), [(1e-4, 1e-3), (1.0, 1e-6), (3.0, 0.1)])
    def test_approximate_guarantee_leaves_out_its_delta(self, epsilon, delta, order):
        divergence, failure = charged(PrivacyProfile.approximate(epsilon, delta), order)
        e, a = mpmath.mpf(epsilon), mpmath.mpf(order)
        high, low = mpmath.exp(e) / (1 + mpmath.exp(e)), 1 / (1 + mpmath.exp(e))
        # Q has the mirrored masses; the mass of Q where P has none adds nothing to the moment.
        moment = (1 - delta) * (high * mpmath.exp((a - 1) * e) + low * mpmath.exp(-(a - 1) * e))
        least = float(mpmath.log(moment) / (a - 1))
        # The bound may count mass that only Q has as if P had it as well.
        most = float(mpmath.log(moment + a * delta) / (a - 1))
        assert failure == pytest.approx(delta)
        assert max(least, 0.0) - 1e-12 <= divergence <= most + 1e-12

    @given(st.integers(0, 10**6), st.sampled_from([1.2, 2.0, 7.0, 30.0]))
    @settings(max_examples=6)
    def test_pair_of_discrete_distributions(self, seed, order):
        rng = np.random.default_rng(seed)
        p, q = rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(4))
        exact = max(renyi_of_pair(p, q, order), renyi_of_pair(q, p, order))
        points = np.linspace(0.0, 12.0, 6001)
        sides = [
            np.maximum(a - np.exp(points)[:, np.newaxis] * b, 0.0).sum(axis=1)
            for a, b in ((p, q), (q, p))
        ]
        profile = PrivacyProfile.from_curve(points, sides[0], deltas_add=sides[1])
        # Losses beyond the last point are left out.
        if max(np.abs(np.log(p / q))) < 12.0:
            divergence, failure = charged(profile, order)
            assert failure < 1e-12
            assert exact - 1e-9 <= divergence
            assert divergence == pytest.approx(exact, rel=5e-3, abs=1e-5)


class TestAdaptiveChoices:
    """Theorem G1."""

    @pytest.mark.parametrize(("choose", "order"), [(greedy, 2.5), (adverse, 4.0), (greedy, 8.0)])
    def test_choices_that_follow_the_losses(self, choose, order):
        check_all_courses(RenyiFilter(3.0, 0.05, order), choose, PURE)

    @given(st.integers(0, 10**9), st.sampled_from([2.5, 4.0, 9.0]))
    @settings(max_examples=3)
    def test_random_choices(self, seed, order):
        check_all_courses(RenyiFilter(3.0, 0.05, order), chosen_by(seed, 3), PURE)

    @given(st.integers(0, 10**9), st.sampled_from([3.0, 6.0]))
    @settings(max_examples=3)
    def test_parts_that_may_tell_all(self, seed, order):
        total = RenyiFilter(3.0, 0.05, order, failure=0.012)
        found = check_all_courses(total, chosen_by(seed, 4), LEAKY)
        beyond = found.delta(60.0)
        assert beyond <= 0.012 + 1e-12

    def test_the_guarantee_is_not_idle(self):
        """With twice the budget, the interaction breaks what is promised for the single one."""
        total, double = RenyiFilter(2.0, 0.1, 4.0), RenyiFilter(8.0, 0.1, 4.0)
        assert double.budget >= 2.0 * total.budget
        found = Interaction(double, greedy, PURE)
        assert any(found.delta(e) > total.profile.delta(e) for e in EPSILONS)

    def test_approximate_parts_stop_at_the_set_aside_failure(self):
        part = PrivacyProfile.approximate(0.01, 1e-7)
        total = filled(RenyiFilter(2.0, 1e-5, 10.0, failure=5e-7), part)
        assert total.n_parts == 5
        assert total.spent_failure == pytest.approx(5e-7)
        exact = approximate_composition(0.01, 1e-7, 5, 1.0)
        assert exact <= total.profile.delta(1.0)


class TestOrder:
    @pytest.mark.parametrize(
        "parts",
        [
            [PrivacyProfile.gaussian(0.1)],
            [PrivacyProfile.pure(0.3)],
            [PrivacyProfile.pure(0.05), PrivacyProfile.gaussian(0.3)],
        ],
    )
    def test_no_other_order_lets_more_pass(self, parts):
        def passed(order):
            try:
                total = RenyiFilter(3.0, 1e-6, order)
            except UnreachableBudgetError:
                return 0
            return total.budget / np.mean([part.rdp(order) for part in parts])

        best = suitable_order(3.0, 1e-6, parts)
        others = [passed(order) for order in np.geomspace(1.1, 1000.0, 12)]
        assert passed(best) >= (1.0 - 1e-5) * max(others)
        assert passed(best) > 1.2 * min(others)

    def test_parts_that_need_failure_and_get_none(self):
        part = PrivacyProfile.approximate(0.1, 1e-8)
        order = suitable_order(2.0, 1e-5, [part], failure=1e-6)
        assert RenyiFilter(2.0, 1e-5, order, failure=1e-6).fits(part)
        assert not RenyiFilter(2.0, 1e-5, order).fits(part)

    def test_too_small_a_total_names_the_least(self):
        # No order proves that little at that delta: the largest is 1024.
        with pytest.raises(UnreachableBudgetError, match="for any order") as caught:
            suitable_order(1e-3, 1e-12, [PrivacyProfile.pure(1e-6)])
        least = caught.value.least_epsilon
        assert suitable_order(least * 1.01, 1e-12, [PrivacyProfile.pure(1e-9)]) == 1024.0
