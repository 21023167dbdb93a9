"""Threshold mechanisms against their exact output distributions, by quadrature."""

import functools
import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdptune.accounting import (
    BudgetFilter,
    PrivacyProfile,
    above_threshold,
    doubling_threshold,
    sparse_vector,
    sparse_vector_split,
)
from tests.accounting.oracles_profile import lower_hull

deterministic = settings(derandomize=True, deadline=None, max_examples=30)
NODES, WEIGHTS = np.polynomial.legendre.leggauss(24)


def upper_tail(x, scale):
    """Return the probability that Laplace noise is above ``x``."""
    small = 0.5 * np.exp(-np.abs(x) / scale)
    return np.where(x > 0, small, 1 - small)


def output_probability(hits, scores, threshold_scale, score_scale):
    """Return the probability of a sequence of hits and misses, given one threshold noise.

    Scores are relative to their thresholds. The integrand is analytic between the scores and zero.
    """
    width = min(threshold_scale, score_scale)
    breaks = np.unique([0.0, *scores])
    reach = 45 * max(threshold_scale, score_scale)
    breaks = np.concatenate([[breaks[0] - reach], breaks, [breaks[-1] + reach]])
    pieces = [np.linspace(a, b, 2 + int((b - a) / width)) for a, b in itertools.pairwise(breaks)]
    edges = np.unique(np.concatenate(pieces))
    half = np.diff(edges)[:, None] / 2
    noise = edges[:-1, None] + half + half * NODES
    values = half * WEIGHTS * np.exp(-np.abs(noise) / threshold_scale) / (2 * threshold_scale)
    for hit, score in zip(hits, scores, strict=False):
        gap = noise - score
        values = values * upper_tail(gap if hit else -gap, score_scale)
    return float(values.sum())


def transcripts(length, max_hits):
    """Return all outputs of the sparse vector technique on this number of queries."""
    result = []
    for hits in itertools.product([False, True], repeat=length):
        ends = [i for i in range(length) if sum(hits[: i + 1]) == max_hits]
        result.append(hits[: ends[0] + 1] if ends else hits)
    return sorted(set(result))


def changes(count, monotone):
    """Return extreme and some middling changes of the scores, by a sensitivity of 1."""
    if monotone:
        up = list(itertools.product([0.0, 1.0], repeat=count))
        return [np.array(c) for c in up] + [-np.array(c) for c in up]
    return [np.array(c) for c in itertools.product([-1.0, 0.4, 1.0], repeat=count)]


def losses(scores, change, outputs, threshold_scale, score_scale):
    """Return the log-ratio of each output's probabilities."""
    distributions = []
    for values in (np.asarray(scores), np.asarray(scores) + change):
        distribution = [
            output_probability(o, values, threshold_scale, score_scale) for o in outputs
        ]
        assert sum(distribution) == pytest.approx(1, abs=1e-11)
        distributions.append(distribution)
    return np.log(distributions[0]) - np.log(distributions[1])


class TestSparseVector:
    """Theorem N3."""

    threshold, queries = 0.5, 1.2

    def scale(self, max_hits, monotone):
        return (1 if monotone else 2) * max_hits / self.queries

    @pytest.mark.parametrize("monotone", [False, True])
    @pytest.mark.parametrize(("length", "max_hits"), [(1, 1), (3, 2)])
    def test_covers_the_exact_probabilities(self, length, max_hits, monotone):
        bound = sparse_vector(self.threshold, self.queries, max_hits).epsilon(0)
        outputs = transcripts(length, max_hits)
        rng = np.random.default_rng(length)
        for spread in (0.0, 6.0):
            scores = spread * rng.uniform(-1, 1, length)
            for change in changes(length, monotone):
                found = losses(
                    scores, change, outputs, 1 / self.threshold, self.scale(max_hits, monotone)
                )
                assert np.max(np.abs(found)) <= bound * (1 + 1e-10)

    @pytest.mark.parametrize("monotone", [False, True])
    @pytest.mark.parametrize("max_hits", [1, 4])
    def test_the_figure_is_attained(self, max_hits, monotone):
        """Many misses pin the noisy threshold; then come hits, all of them unlikely."""
        hits = [False] * 50 + [True] * max_hits
        scores = np.array([20.0] * 50 + [-20.0] * max_hits)
        change = np.array([1.0] * 50 + [0.0 if monotone else -1.0] * max_hits)
        scales = 1 / self.threshold, self.scale(max_hits, monotone)
        p = output_probability(hits, scores, *scales)
        q = output_probability(hits, scores + change, *scales)
        bound = sparse_vector(self.threshold, self.queries, max_hits).epsilon(0)
        assert math.log(p / q) == pytest.approx(bound, rel=1e-6)
        # Hence with any less noise it would be exceeded.
        for less in ((0.9 * scales[0], scales[1]), (scales[0], 0.9 * scales[1])):
            p = output_probability(hits, scores, *less)
            q = output_probability(hits, scores + change, *less)
            assert math.log(p / q) > 1.02 * bound

    def test_is_pure_and_the_same_for_any_number_of_hits(self):
        for max_hits in (1, 7, 10**6):
            assert sparse_vector(0.5, 0.25, max_hits) == PrivacyProfile.pure(0.75)
        assert above_threshold(0.5, 0.25) == PrivacyProfile.pure(0.75)


class TestSplit:
    @given(st.floats(1e-6, 600), st.integers(1, 10**6), st.booleans())
    @deterministic
    def test_adds_up_exactly(self, epsilon, max_hits, monotone):
        threshold, queries = sparse_vector_split(epsilon, max_hits, monotone)
        assert threshold > 0
        assert threshold + queries == epsilon
        ratio = queries / threshold
        assert ratio == pytest.approx(((1 if monotone else 2) * max_hits) ** (2 / 3))


def round_distribution(utilities, threshold, round_epsilon):
    """Return the probabilities of a hit at each candidate, and of a miss, in one round."""
    scales = 2 / round_epsilon, 4 / round_epsilon
    count = len(utilities)
    outputs = [[False] * s + [True] for s in range(count)] + [[False] * count]
    distribution = [
        output_probability(o, np.asarray(utilities) - threshold, *scales) for o in outputs
    ]
    assert sum(distribution) == pytest.approx(1, abs=1e-11)
    return np.array(distribution)


class TestRound:
    """The cost of an outcome, on which the filter rests; sensitivity 1.

    Theorem N4.
    """

    @pytest.mark.parametrize("round_epsilon", [0.3, 2.0])
    @pytest.mark.parametrize("count", [1, 2, 3])
    def test_a_hit_costs_all_and_a_miss_half(self, count, round_epsilon):
        rng = np.random.default_rng(5)
        cost_of = np.append(np.full(count, round_epsilon), round_epsilon / 2)
        for threshold in (-6.0, 0.0, 3.0):
            utilities = rng.uniform(-2, 2, count)
            p = round_distribution(utilities, threshold, round_epsilon)
            for change in itertools.product([-1.0, 0.3, 1.0], repeat=count):
                q = round_distribution(utilities + change, threshold, round_epsilon)
                assert np.all(np.abs(np.log(p / q)) <= cost_of * (1 + 1e-10))

    @pytest.mark.parametrize("round_epsilon", [0.3, 2.0])
    def test_both_costs_are_attained(self, round_epsilon):
        utilities = np.array([40.0, 40, 40, 40, 40, 40, -40]) / round_epsilon
        change = np.array([1.0, 1, 1, 1, 1, 1, -1])
        p = round_distribution(utilities, 0.0, round_epsilon)
        q = round_distribution(utilities + change, 0.0, round_epsilon)
        assert math.log(p[-2] / q[-2]) == pytest.approx(round_epsilon, rel=1e-3)
        assert math.log(p[-1] / q[-1]) == pytest.approx(round_epsilon / 2, rel=1e-3)


def transcript_masses(utilities, neighbours, round_epsilon, make_filter, ends_at_step_zero):
    """Return both data sets' probabilities of every transcript of the doubling threshold search.

    Utilities are in units of the sensitivity, and so is the granularity.
    """
    goal, granularity = 6.0, 1.0

    @functools.cache
    def distributions(threshold):
        return [
            round_distribution(values, threshold, round_epsilon)
            for values in (utilities, neighbours)
        ]

    def ends_after(reached, step, history, p, q):
        budget_filter = make_filter()
        for hit in history:
            budget_filter.record(hit)
        if step == 0 or reached >= goal or not budget_filter.may_continue:
            return [(p, q)]
        ends = []
        for outcome, (one, other) in enumerate(zip(*distributions(reached + step), strict=True)):
            hit = outcome < len(utilities)
            after = reached + step * hit
            lower = step // 2 if ends_at_step_zero else step / 2
            following = 2 * step if hit else lower
            ends += ends_after(after, following, (*history, hit), p * one, q * other)
        return ends

    result = np.array(ends_after(0.0, granularity, (), 1.0, 1.0)).T
    assert result.sum(axis=1) == pytest.approx(1, abs=1e-9)
    return result


# Nearly always a hit, and the noisy threshold far out where it is not.
EXTREME = ([60.0, 60, 60, 60, -60], [1.0, 1, 1, 1, -1])
LIMITS = [
    (0.8, {"budget": 2.0}),
    (0.5, {"budget": 1.74}),
    (0.8, {"max_rounds": 4}),
    (0.8, {"budget": 2.4, "max_rounds": 2}),
]


class TestDoublingThreshold:
    """Theorem N4."""

    @pytest.mark.parametrize("ends_at_step_zero", [False, True])
    @pytest.mark.parametrize(("round_epsilon", "limits"), LIMITS)
    def test_covers_the_exact_transcripts(self, round_epsilon, limits, ends_at_step_zero):
        """The whole search, with a stop that depends on its outcomes, on both data sets."""

        def make_filter():
            return BudgetFilter(round_epsilon, limits.get("budget"), limits.get("max_rounds"))

        profile = doubling_threshold(round_epsilon, **limits)
        largest = profile.epsilon(0)
        epsilons = largest * np.linspace(0, 1, 9)
        bounds = profile.delta(epsilons) + 1e-12
        for utilities, change in (([0.5, 2.0], [1.0, -1.0]), ([4.0, 1.0], [1.0, 1.0]), EXTREME):
            moved = np.add(utilities, change)
            p, q = transcript_masses(
                utilities, moved, round_epsilon, make_filter, ends_at_step_zero
            )
            assert np.max(np.abs(np.log(p / q))) <= largest * (1 + 1e-9)
            for one, other in ((p, q), (q, p)):
                exact = np.maximum(one - np.exp(epsilons)[:, None] * other, 0).sum(axis=1)
                assert np.all(exact <= bounds)

    @pytest.mark.parametrize(("budget", "cap"), [(2.0, None), (2.4, 4), (2.4, 2), (0.8, 9)])
    def test_a_budget_is_used_up_by_some_transcript(self, budget, cap):
        utilities, moved = EXTREME[0], np.add(*EXTREME)
        p, q = transcript_masses(
            utilities, moved, 0.8, lambda: BudgetFilter(0.8, budget, cap), True
        )
        limit = doubling_threshold(0.8, budget=budget, max_rounds=cap).epsilon(0)
        assert np.max(np.abs(np.log(p / q))) == pytest.approx(limit, rel=1e-4)

    def test_without_the_filter_it_would_be_exceeded(self):
        utilities, moved = EXTREME[0], np.add(*EXTREME)
        p, q = transcript_masses(utilities, moved, 0.8, lambda: BudgetFilter(0.8, None, 4), True)
        limit = doubling_threshold(0.8, budget=2.4).epsilon(0)
        assert np.max(np.abs(np.log(p / q))) > 1.15 * limit

    @pytest.mark.parametrize(
        ("round_epsilon", "budget", "largest"),
        [(0.1, 1.0, 1.0), (0.1, 0.3, 0.3), (0.3, 1.0, 0.9), (0.4, 1.0, 1.0), (2.0, 2.0, 2.0)],
    )
    def test_a_budget_is_a_pure_guarantee(self, round_epsilon, budget, largest):
        """What no search can use, half-rounds that do not fit, is not charged."""
        profile = doubling_threshold(round_epsilon, budget=budget)
        assert profile.epsilon(0) == pytest.approx(largest, rel=1e-14)
        pure = PrivacyProfile.pure(largest)
        points = np.linspace(0, 1.1, 12) * largest
        for direction in ("remove", "add"):
            assert np.all(profile.delta(points, direction) <= pure.delta(points) + 1e-14)

    @pytest.mark.parametrize(("round_epsilon", "rounds"), [(0.1, 30), (2.0, 3), (0.01, 1)])
    def test_a_cap_is_a_composition(self, round_epsilon, rounds):
        profile = doubling_threshold(round_epsilon, max_rounds=rounds)
        assert profile == rounds * PrivacyProfile.pure(round_epsilon)

    @pytest.mark.parametrize(
        ("round_epsilon", "budget", "rounds"),
        [(0.1, 2.0, 30), (0.1, 5.0, 30), (0.1, 2.95, 30), (0.5, 2.0, 5), (1.5, 3.0, 2)],
    )
    def test_of_budget_and_cap_the_smaller_counts(self, round_epsilon, budget, rounds):
        profile = doubling_threshold(round_epsilon, budget=budget, max_rounds=rounds)
        pure = PrivacyProfile.pure(min(budget, rounds * round_epsilon))
        composed = rounds * PrivacyProfile.pure(round_epsilon)
        epsilons = np.linspace(0, 1.02 * budget, 200)
        smaller = np.minimum(pure.delta(epsilons), composed.delta(epsilons))
        found = profile.delta(epsilons)
        assert np.all(found <= smaller * (1 + 1e-9) + 1e-14)
        assert profile.epsilon(0) == pytest.approx(pure.epsilon(0), rel=1e-14)
        # Nothing is lowered by more than the convex hull of the two curves' corners.
        corners = round_epsilon / 2 * np.arange(2 * rounds + 1)
        alphas = np.append(0.0, np.exp(corners))
        heights = np.minimum(pure.delta(corners), composed.delta(corners))
        heights = np.append(1.0, heights)
        kept = lower_hull(alphas, heights)
        hull = np.interp(np.exp(epsilons), alphas[kept], heights[kept])
        assert found == pytest.approx(hull, rel=1e-6, abs=1e-12)

    def test_extreme_sizes(self):
        assert doubling_threshold(600, budget=600).epsilon(0) == 600
        assert doubling_threshold(1e-9, budget=1e-9).epsilon(0) == 1e-9
        # Too many rounds to compose: the budget itself is the bound.
        assert doubling_threshold(1e-6, budget=1.0) == PrivacyProfile.pure(1.0)
        assert doubling_threshold(1e-6, budget=1.0, max_rounds=1).epsilon(0) == 1e-6
