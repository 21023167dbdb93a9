"""The envelope: against its formula, every order of small mechanisms, and its cells."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from skdptune.accounting import (
    Binomial,
    Geometric,
    Poisson,
    PrivacyProfile,
    TruncatedNegativeBinomial,
)
from tests.accounting import oracles
from tests.accounting.cases import few, trained
from tests.accounting.oracles import DISTRIBUTIONS, STEP, Pair

DIRECTIONS = ("remove", "add")
EPSILONS = np.array([0.0, 0.02, 0.3, 1.0, 2.0, 4.0])
ALL_EPSILONS = np.concatenate([-EPSILONS[:0:-1], EPSILONS])
# Rounding of a mass by 1e-16 counts E[K] times, which is at most 100 here.
ROUNDING = 3e-14
# The envelope is made of tangents on cells, and read between grid points: it may charge that
# much more epsilon than its formula.
CELLS = 1e-4

distributions = st.sampled_from(DISTRIBUTIONS)
truncated = [
    distribution
    for distribution in DISTRIBUTIONS
    if isinstance(distribution, TruncatedNegativeBinomial)
]
may_be_empty = [
    distribution for distribution in DISTRIBUTIONS if distribution.probability_of_none > 0.0
]


def envelope(pair, distribution, epsilons, direction="remove", step=STEP):
    profile = oracles.profile_of(pair, step)
    return oracles.selection_delta(
        profile, distribution, np.atleast_1d(epsilons), direction, "envelope"
    )


def envelope_alone(pair, distribution, epsilons, direction):
    """Return the bound of Theorem S1 without what Theorem S6 takes off."""
    return oracles.envelope_alone(
        oracles.profile_of(pair, STEP), distribution, epsilons, direction
    )


def assert_covers(bound, exact):
    """The bound may round, but may not lie below any of the exact figures."""
    worst = exact.max(axis=0) if exact.ndim == 2 else exact
    short = worst * (1.0 - 1e-9) - ROUNDING - bound
    assert short.max() <= 0.0, (bound, worst)


class TestTheOracles:
    """The slow figures are themselves checked against slower ones."""

    @pytest.mark.parametrize(
        ("distribution", "counts"),
        [
            (Poisson(3.0), stats.poisson(3.0).pmf(np.arange(80))),
            (Binomial(4, 1.0), np.eye(5)[4]),
            (Binomial(12, 0.6), stats.binom(12, 0.6).pmf(np.arange(13))),
            (Geometric(0.1), np.append(0.0, 0.1 * 0.9 ** np.arange(600))),
        ],
        ids=["poisson", "all", "binomial", "geometric"],
    )
    def test_masses_of_the_winner_sum_over_the_number_of_runs(self, distribution, counts):
        masses = np.array([0.2, 0.0, 0.05, 0.7, 0.05])
        by_counts = oracles.winner_masses_by_counts(masses, counts)
        np.testing.assert_allclose(
            oracles.winner_masses(masses, distribution), by_counts, atol=1e-13
        )


class TestCoversEverySelection:
    """No score, order or direction of a small mechanism costs more than the bound.

    Theorem S1.
    """

    @given(st.one_of(oracles.pairs_on_grid(), oracles.finite_pairs()), distributions)
    @settings(max_examples=15)
    def test_every_order_with_ties_broken_by_a_hidden_mark(self, pair, distribution):
        for direction in DIRECTIONS:
            exact = oracles.deltas_of_all_orders(pair.one_way(direction), distribution, EPSILONS)
            assert_covers(envelope(pair, distribution, EPSILONS, direction), exact)

    @given(oracles.pairs_on_grid(), distributions, st.permutations(range(12)))
    @settings(max_examples=15)
    def test_marks_that_are_shown_with_the_outcome(self, pair, distribution, shuffled):
        marked = oracles.split(pair, 12)
        order = np.argsort(np.argsort(shuffled)[np.arange(marked.p.size) % 12], kind="stable")
        orders = np.stack([order, np.arange(marked.p.size), np.arange(marked.p.size)[::-1]])
        for direction in DIRECTIONS:
            exact = oracles.deltas_of_all_orders(
                marked.one_way(direction), distribution, EPSILONS, orders=orders
            )
            assert_covers(envelope(pair, distribution, EPSILONS, direction), exact)

    @given(oracles.any_pairs(size=3), distributions)
    @settings(max_examples=12)
    def test_every_order_of_half_outcomes_with_losses_off_the_grid(self, pair, distribution):
        halves = oracles.split(pair, 2)
        for direction in DIRECTIONS:
            exact = oracles.deltas_of_all_orders(halves.one_way(direction), distribution, EPSILONS)
            assert_covers(envelope(pair, distribution, EPSILONS, direction, step=0.037), exact)

    @given(oracles.any_pairs(), distributions)
    @settings(max_examples=12)
    def test_the_resulting_profile_at_positive_and_negative_epsilon(self, pair, distribution):
        profile = oracles.profile_by_curve(pair, np.linspace(0.0, 15.0, 120), None)
        selected = profile.selected(distribution)
        for direction in DIRECTIONS:
            exact = oracles.deltas_of_all_orders(
                pair.one_way(direction), distribution, ALL_EPSILONS
            )
            assert_covers(selected.delta(ALL_EPSILONS, direction=direction), exact)

    @pytest.mark.parametrize("gamma", [1e-3, 1e-5, 1e-7])
    def test_very_many_runs(self, gamma):
        pair = oracles.pair_with_losses([(10 * STEP, 1e-6), (STEP, 1.0)], [(-STEP, 1.0)])
        grid = np.arange(0.0, 30.0) * STEP
        exact = oracles.deltas_of_all_orders(oracles.split(pair, 2), Geometric(gamma), grid)
        bound = envelope(pair, Geometric(gamma), grid)
        assert (bound >= exact.max(axis=0) * (1.0 - 1e-9) - 3e-16 / gamma).all()

    @pytest.mark.parametrize(
        ("mu", "distribution"),
        [(0.02, Geometric(0.1)), (1.5, Binomial(4, 1.0)), (0.3, Poisson(100.0))],
        ids=str,
    )
    def test_gaussian_runs_whose_output_is_only_seen_in_bins(self, mu, distribution):
        edges = np.concatenate([[np.inf], np.linspace(mu + 9.0, -9.0, 3000), [-np.inf]])
        p, q = (-np.diff(stats.norm.cdf(edges - shift)) for shift in (mu, 0.0))
        bins = Pair(p / p.sum(), q / q.sum())
        found = oracles.epsilon_under_adversary(bins, distribution, 1e-4)
        claimed = PrivacyProfile.gaussian(mu).selected(distribution).epsilon(1e-4)
        assert 0.7 * claimed < found <= claimed


class TestAgainstTheFormula:
    """The figure is the theorem's, neither less nor, beyond the cells, more.

    Theorem S2.
    """

    @given(st.one_of(oracles.pairs_on_grid(), oracles.finite_pairs()), distributions)
    @settings(max_examples=12)
    def test_is_the_supremum_over_all_tests(self, pair, distribution):
        for direction in DIRECTIONS:
            got = envelope_alone(pair, distribution, EPSILONS, direction)
            for value, e in zip(got, EPSILONS, strict=True):
                low, high = (
                    min(
                        oracles.naive_envelope(pair.one_way(direction), distribution, at, 1500),
                        1.0,
                    )
                    for at in (e, e - CELLS)
                )
                assert low * (1.0 - 1e-9) - ROUNDING <= value <= high + ROUNDING

    @given(oracles.finite_pairs(), st.sampled_from([*truncated, Poisson(3.0), Binomial(12, 0.6)]))
    @settings(max_examples=12)
    def test_is_not_above_the_printed_formulas(self, pair, distribution):
        """Koskela, Redberg and Wang (2024), Theorem 5.2, and its relatives."""
        helpers = STEP * np.arange(13)
        for direction in DIRECTIONS:
            one_way = pair.one_way(direction)
            got = envelope(pair, distribution, EPSILONS + CELLS, direction)
            for value, e in zip(got, EPSILONS, strict=True):
                if isinstance(distribution, Poisson):
                    printed = oracles.poisson_formula(one_way, distribution, e)
                elif isinstance(distribution, Binomial):
                    printed = oracles.binomial_formula(one_way, distribution, e, helpers)
                else:
                    printed = oracles.negative_binomial_formula(one_way, distribution, e, helpers)
                assert value <= printed * (1 + 1e-9) + ROUNDING

    @given(
        oracles.finite_pairs(),
        st.sampled_from(
            [
                distribution
                for distribution in DISTRIBUTIONS
                if not isinstance(distribution, Binomial) and distribution.mean >= 1
            ]
        ),
    )
    @settings(max_examples=12)
    def test_is_not_above_the_renyi_bound_of_the_same_pair(self, pair, distribution):
        orders = np.concatenate([np.linspace(1.05, 12.0, 60), np.geomspace(12.5, 300.0, 30)])
        for direction in DIRECTIONS:
            got = envelope(pair, distribution, EPSILONS + CELLS, direction)
            for value, e in zip(got, EPSILONS, strict=True):
                assert value <= oracles.renyi_formula(pair, distribution, e, orders) + ROUNDING


class TestEquality:
    """Where the bound is known to be attained, it is exact.

    Theorem S1.
    """

    @given(oracles.pairs_on_grid(), st.floats(0.05, 1.0))
    @settings(max_examples=12)
    def test_one_run_or_none_costs_its_probability(self, pair, probability):
        distribution = Binomial(1, probability)
        for direction in DIRECTIONS:
            one_way = pair.one_way(direction)
            exact = [probability * oracles.hockey_stick(one_way, e) for e in EPSILONS]
            np.testing.assert_allclose(
                envelope(pair, distribution, EPSILONS, direction), exact, rtol=1e-9, atol=1e-15
            )

    @pytest.mark.parametrize(
        "distribution",
        [distribution for distribution in DISTRIBUTIONS if distribution.mean < 21],
        ids=str,
    )
    def test_one_rare_revealing_outcome_of_highest_score(self, distribution):
        pair = oracles.pair_on_grid([20 * STEP, 0.0], [1e-9 * math.exp(-20 * STEP), 1.0])
        for e in STEP * np.array([3, 10, 15]):
            exact = distribution.mean * oracles.hockey_stick(pair, e)
            reached = oracles.selection_delta_of_order(pair, [1, 2, 3, 0], distribution, e)
            # 1e-9 runs against a rounding error of 1e-16 in what is left to them.
            assert reached == pytest.approx(exact, rel=1e-5, abs=0.0)
            assert envelope(pair, distribution, e)[0] == pytest.approx(exact, rel=1e-5, abs=0.0)

    @pytest.mark.parametrize(("distribution", "run"), few(13, DISTRIBUTIONS, [0.2, 1.0, 3.0]))
    def test_the_end_of_a_pure_guarantee_is_attained(self, distribution, run):
        high = 1.0 / (1.0 + math.exp(-run))
        powers = np.concatenate([np.linspace(0.0, high, 4001), np.linspace(high, 1.0, 4001)[1:]])
        powers = np.union1d(powers, 1.0 - np.geomspace(1e-6, 1.0, 3000))[1:]
        errors = np.where(
            powers < high, powers * math.exp(-run), 1.0 - high + (powers - high) * math.exp(run)
        )
        with np.errstate(divide="ignore"):
            ratios = distribution.pgf_derivative(powers) / distribution.pgf_derivative(
                np.clip(errors, 0.0, 1.0)
            )
        expected = run + math.log(ratios.max())
        got = PrivacyProfile.pure(run).selected(distribution).epsilon(0.0)
        assert expected - 1e-5 <= got <= expected * (1 + 1e-3) + 1e-4


class TestTheEmptySearch:
    """Without any run the result is the same on both data sets: its mass counts below zero."""

    @pytest.mark.parametrize("distribution", may_be_empty, ids=str)
    def test_the_bound_without_the_term_would_be_too_small(self, distribution):
        pair = oracles.randomised_response(STEP)
        none = distribution.probability_of_none
        selected = oracles.profile_of(pair, STEP).selected(distribution)
        for e in (-0.3, -1.0, -3.0):
            exact = oracles.deltas_of_all_orders(pair, distribution, [e]).max()
            without = oracles.naive_envelope(pair, distribution, e) + none * math.expm1(e)
            if none > 0.5:
                assert without < exact
            assert selected.delta(e, direction="remove") >= exact * (1 - 1e-9)


class TestNumerics:
    """Theorem P2."""

    def test_unnormalised_distributions_do_not_make_long_searches_cheap(self):
        """Cumulated from the top as they come, dp_accounting's masses understate the cost."""
        run, distribution = trained(0.01, 2.0, 1000), Geometric(1e-7)
        real = oracles.epsilon_under_adversary(oracles.pair_of(run, "add"), distribution, 1e-5)
        assert real <= run.selected(distribution).epsilon(1e-5) < 1.03 * real

    @pytest.mark.parametrize(
        ("distribution", "bound"), [(Poisson(1e4), "envelope"), (Binomial(2000, 1.0), "best")]
    )
    def test_many_runs_of_a_heavy_outcome_among_many(self, distribution, bound):
        """At the left end of a heavy outcome's cell ``phi''`` underflows: its cell still bends.

        Theorem S2. Best is a share of the least loss, then a bit of the largest, then the rest.
        """
        step = 2.0**-10
        light = [(step * place, 1e-5) for place in range(1, 601)]
        falls = [(-loss, weight * math.exp(loss)) for loss, weight in light]
        heavy = 640 * step
        pair = oracles.pair_with_losses(
            [(heavy, 1.0), *light], [(-heavy, math.exp(heavy)), *falls]
        )
        most, least = 0, 601
        top, bit = 1.7 / distribution.mean / pair.p[least], 2.2 / distribution.mean / pair.p[most]
        assert max(top, bit) < 1.0
        winner = []
        for side in (pair.p, pair.q):
            above, reached = top * side[least], bit * side[most]
            ranks = np.array([0.0, 1.0 - above - reached, 1.0 - above, 1.0])
            winner.append(np.diff(distribution.pgf(ranks)))
        exact = oracles.hockey_stick(Pair(*winner), 1.0)
        assert exact > 0.08
        profile = oracles.profile_of(pair, step).selected(distribution, bound)
        for direction in DIRECTIONS:
            assert profile.delta(1.0, direction) >= exact

    @pytest.mark.parametrize(
        ("points", "deltas", "deltas_add"),
        [
            ([26.9, 27.5], [0.56, 0.0], [0.59, 0.33]),
            ([22.8, 28.2], [0.79, 0.0], [0.52, 0.12]),
            ([24.9, 25.2], [0.94, 0.81], [0.42, 0.38]),
        ],
    )
    def test_slopes_of_the_hull_that_are_equal_up_to_rounding(self, points, deltas, deltas_add):
        run = PrivacyProfile.from_curve(points, deltas, deltas_add=deltas_add, discretization=0.01)
        selected = run.selected(Binomial(4, 1.0))
        for direction in DIRECTIONS:
            # With equal scores the search returns one run.
            alone = run.delta(EPSILONS, direction=direction)
            assert (selected.delta(EPSILONS, direction=direction) >= alone - 1e-6).all()
