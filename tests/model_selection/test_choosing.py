"""The choice from a table of noisy scores: points, the process against oracles, and the rule."""

from __future__ import annotations

import inspect
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from scipy.stats import multivariate_normal, norm

from skdptune.accounting import Geometric, Poisson, TruncatedNegativeBinomial
from skdptune.ledger import config_context
from skdptune.linear_model import DPRidge
from skdptune.model_selection import DPGridSearchCV
from skdptune.model_selection._choosing import (
    TableChoice,
    TableOutlook,
    _of_process,
    _Table,
    choose_from_table,
    correlations,
    encode,
    margin,
)

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=3),
    st.tuples(st.integers(0, 1), st.floats(0, 1)),
)
CANDIDATES = st.lists(st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3), max_size=8)


@settings(max_examples=40)
@given(CANDIDATES, st.randoms(use_true_random=False))
def test_any_candidates_are_finite_points_whatever_their_order(
    candidates: list[dict[str, Any]], random: Any
) -> None:
    points = encode(candidates)
    assert points.shape[0] == len(candidates)
    assert ((points >= 0.0) & (points <= 1.0)).all()
    order = list(range(len(candidates)))
    random.shuffle(order)
    shuffled = encode([candidates[place] for place in order])
    apart = cdist(points, points)[np.ix_(order, order)]
    assert cdist(shuffled, shuffled) == pytest.approx(apart)


CLEAR = {
    "n_samples": 40_000,
    "epsilon": 1.0,
    "noise_ratio": 16.0,
    "n_score": 8000,
    "score_noise": 0.004,
}


def test_what_cannot_be_seen_speaks_against_a_search() -> None:
    """Theorem N6: the gain that is found half of the time follows from public numbers."""
    blurred = {**CLEAR, "score_noise": 0.03}
    assert TableOutlook(**blurred, rivals=1).reason_against == ""
    reason = TableOutlook(**blurred, rivals=20).reason_against
    assert reason == "a score deviates by 3.0 %, so gains of less than 12 points cannot be found"
    assert TableOutlook(**CLEAR, rivals=4).reason_against == ""
    # Of losses, gains are a smaller part of the range.
    loss = TableOutlook(**CLEAR, rivals=4, score="neg_log_loss")
    assert loss.reason_against.endswith("less than 2 % of the range of a score cannot be found")
    # The loss has the unit of the score.
    squares = TableOutlook(**{**CLEAR, "n_samples": 500}, score="neg_squared_error")
    assert squares.reason_against.endswith("% of the range of a score")
    # Many records at a low cost; noise below that of an untuned fit loses nothing.
    assert loss.reason_by_noise(1.1) == loss.reason_by_noise(0.9) == loss.reason_by_deviation == ""


def test_noise_of_predictions_is_in_units_of_the_target() -> None:
    """It grows with the range, and falls with records and budget; deviations were measured."""

    def noise(bound: float, n_samples: int, epsilon: float) -> float:
        start = DPRidge(epsilon, 1e-5, target_bound=bound)
        search = DPGridSearchCV(start, {"alpha": [1.0, 2.0]}, epsilon=epsilon, delta=1e-5)
        words = search.plan(n_samples, 3, compare=False).target
        return float(words.split("noise of about ")[1].split(":")[0])

    assert noise(5000.0, 60, 1.0) == pytest.approx(1000.0 * noise(5.0, 60, 1.0), rel=0.05)
    assert noise(5.0, 60, 1.0) > noise(5.0, 600, 1.0) > noise(5.0, 600, 4.0)
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, size=(600, 3))
    y = X[:, 0] + 0.1 * rng.normal(size=600)
    fits = [DPRidge(1.0, 1e-5, target_bound=5.0, random_state=seed) for seed in range(12)]
    with config_context(ledger=False):
        found = np.array([fit.fit(X, y).predict(X[:100]) for fit in fits])
    deviation = np.sqrt(found.var(axis=0, ddof=1).mean())
    assert 0.4 < deviation / noise(5.0, 600, 1.0) < 2.5
    unknown = DPGridSearchCV(DPRidge(target_bound=5.0), {"alpha": [1.0, 2.0]}, epsilon=1.0)
    assert unknown.plan(600, compare=False).target == ""


RATES = [0.01, 0.1, 1.0, 10.0, 100.0]
POINTS = encode([{"learning_rate": rate} for rate in RATES])


def choose(scores: Any, deviations: Any, default: int | None = 0, **options: Any) -> TableChoice:
    return choose_from_table(POINTS, np.array(scores, dtype=float), deviations, default, **options)


class TestProcess:
    """One process of known covariance: Gaussian conditioning, with a nearly flat prior level.

    Theorem N5 asks no more of it; here the moments are checked.
    """

    FLAT = 1e5

    def table(self, known: list[int]) -> tuple[_Table, np.ndarray, np.ndarray]:
        rng = np.random.default_rng(3)
        points = rng.random((5, 2))
        apart = cdist(points, points)
        shape = correlations(apart, 0.3)
        covariance = 0.7 * (shape - np.outer(shape[:, 1], shape[:, 1]))
        noise = rng.uniform(0.1, 0.5, len(known))
        table = _Table(apart, rng.normal(size=len(known)), noise, np.array(known), 1)
        return table, covariance, -0.8 * (1.0 - shape[:, 1])

    @pytest.mark.parametrize("known", [[0, 1, 2, 3, 4], [3], [0, 2]])
    def test_moments_are_those_of_joint_conditioning(self, known: list[int]) -> None:
        table, covariance, prior = self.table(known)
        (found,) = _of_process(table, covariance, [prior])
        size = len(prior)
        # All gains and then the level.
        joint = np.zeros((size + 1, size + 1))
        joint[:size, :size] = covariance
        joint[size, size] = self.FLAT
        seen = np.hstack([np.eye(size), np.ones((size, 1))])
        reading = seen[known] @ joint @ seen[known].T + np.diag(table.noise**2)
        weights = joint @ seen[known].T @ np.linalg.inv(reading)
        mean = np.append(prior, 0.0) + weights @ (table.scores - prior[known])
        left = joint - weights @ seen[known] @ joint
        assert found.gain == pytest.approx(mean[:size], abs=1e-4)
        assert found.mean == pytest.approx(seen @ mean, abs=1e-4)
        assert found.std == pytest.approx(np.sqrt((seen @ left @ seen.T).diagonal()), abs=1e-4)


class TestRule:
    def test_a_clear_gain_is_taken(self) -> None:
        assert choose([0.7, 0.8, 0.9, 0.8, 0.7], 0.01).index == 2
        assert choose([0.9, 0.8, 0.7, 0.6, 0.5], 0.01).index == 0

    def test_noise_alone_rarely_leaves_the_default(self) -> None:
        """What is lost by leaving, in units of the noise, on average over tables."""
        rng = np.random.default_rng(0)
        for deficit in (0.25, 0.5, 1.0):
            truth = np.array([0.0, -deficit, -deficit, -deficit, -deficit])
            lost = [-truth[choose(truth + rng.normal(size=5), 1.0).index] for _ in range(100)]
            assert np.mean(lost) < 0.15

    @pytest.mark.parametrize("seed", range(2))
    def test_scale_and_origin_of_scores_do_not_matter(self, seed: int) -> None:
        scores = np.random.default_rng(seed).normal(size=5)
        for factor, origin in ((1e-150, 0.0), (1e150, 0.0), (2.0, -7.0)):
            one, other = choose(scores, 0.5), choose(factor * scores + origin, factor * 0.5)
            assert other.index == one.index
            assert other.mean / factor - origin / factor == pytest.approx(one.mean, abs=1e-9)
            assert other.std / factor == pytest.approx(one.std, rel=1e-9)

    @pytest.mark.parametrize("default", [None, 2])
    def test_order_does_not_matter(self, default: int | None) -> None:
        rng = np.random.default_rng(4)
        for _ in range(10):
            scores, noise, order = rng.normal(size=5), rng.uniform(0.1, 1, 5), rng.permutation(5)
            one = choose_from_table(POINTS, scores, noise, default)
            place = None if default is None else int(np.flatnonzero(order == default)[0])
            other = choose_from_table(POINTS[order], scores[order], noise[order], place)
            assert order[other.index] == one.index
            assert other.mean == pytest.approx(one.mean[order])
            assert other.std == pytest.approx(one.std[order])

    def test_choice_follows_from_the_published_table_alone(self) -> None:
        """Theorem N5: a function of public points and published numbers, and of no randomness."""
        assert list(inspect.signature(choose_from_table).parameters) == [
            "points",
            "scores",
            "deviations",
            "default",
            "run_deviation",
            "n_rivals",
        ]
        random_before = np.random.get_state()[1].copy()
        scores = np.random.default_rng(5).normal(size=5)
        given = scores.copy()
        first, second = (choose_from_table(POINTS, given, 0.4, 1) for _ in range(2))
        assert first.index == second.index
        assert (first.mean == second.mean).all()
        assert (first.std == second.std).all()
        assert (given == scores).all()
        assert (np.random.get_state()[1] == random_before).all()


class TestErrors:
    """Theorem N6: what is worse than the default is chosen with a chance of at most 5 %."""

    def test_one_other_is_a_test_of_two_means(self) -> None:
        assert margin(1) == pytest.approx(norm.ppf(0.95))
        for gap in (0.0, 0.5):
            # Exact: the difference of two normal numbers.
            chance = norm.sf(margin(1) + gap / math.sqrt(2.0))
            assert chance == pytest.approx(0.05) if gap == 0.0 else chance < 0.05

    def test_two_others_by_the_bivariate_normal_law(self) -> None:
        """Both differences share the default's noise: their correlation is a half."""
        none_is_above = multivariate_normal([0.0, 0.0], [[1.0, 0.5], [0.5, 1.0]]).cdf
        chance = 1.0 - none_is_above([margin(2)] * 2)
        assert 0.04 < chance < 0.05
        # The margin of one candidate is too small for two.
        assert 1.0 - none_is_above([margin(1)] * 2) > 0.08

    @pytest.mark.parametrize(
        "rivals", [Poisson(10.0), Geometric.from_mean(10), TruncatedNegativeBinomial(0.5, 0.05)]
    )
    def test_a_random_number_of_others_is_their_generating_function(self, rivals: Any) -> None:
        c = margin(rivals.pgf)
        assert rivals.pgf(norm.cdf(c)) == pytest.approx(0.95)
        # E[K] p is the bound of the sum over all runs.
        assert rivals.mean * norm.sf(c) >= 0.05 > 1.0 - rivals.pgf(norm.cdf(c)) - 1e-9

    def test_a_fixed_number_is_its_generating_function(self) -> None:
        assert margin(lambda x: x**7) == pytest.approx(margin(7))
        # Mostly there is none.
        assert margin(Poisson(0.01).pgf) == 0.0

    @pytest.mark.parametrize(("deficit", "count"), [(0.0, 2), (0.02, 12), (1.0, 5)])
    def test_tables_of_what_is_no_better(self, deficit: float, count: int) -> None:
        """Theorem N6: all others worse by 0 to 3 deviations of a score."""
        rng = np.random.default_rng(count)
        points = encode([{"rate": 2.0**place} for place in range(count)])
        truth = -np.linspace(deficit, deficit / 2, count)
        truth[1], n_tables, wrong = 0.0, 150, 0
        for _ in range(n_tables):
            noise = rng.uniform(0.5, 2.0, count)
            scores = truth + noise * rng.normal(size=count)
            wrong += choose_from_table(points, scores, noise, 1).index != 1
        # Three deviations of a count above 5 %.
        assert wrong <= 0.05 * n_tables + 3.0 * math.sqrt(0.05 * n_tables)

    def test_candidates_that_are_chosen_by_the_scores_before(self) -> None:
        """Theorem N6: a driver that goes on until something passes, and stops there."""
        rng, most, wrong = np.random.default_rng(1), 12, 0
        limit = margin(most) * math.sqrt(2.0)
        for _ in range(2000):
            own, last = rng.normal(), 0.0
            for _ in range(most):
                # A little worse than the default where the last score was poor.
                last = -0.1 * (last < own) + rng.normal()
                if last - own > limit:
                    wrong += 1
                    break
        assert 0.01 < wrong / 2000 < 0.05
        # With fewer trials than possible, a table requires the same gain.
        points, scores = encode([{"a": 1.0}, {"a": 2.0}]), np.array([0.0, 0.99 * limit])
        assert choose_from_table(points, scores, 1.0, 0, n_rivals=most).index == 0
        assert choose_from_table(points, scores, 1.0, 0).index == 1

    def test_the_best_of_a_random_number_of_runs(self) -> None:
        """Theorem N6: only the winner is compared, and its number of rivals is secret."""
        law, rng = Geometric.from_mean(10), np.random.default_rng(2)
        limit = margin(law.pgf) * math.sqrt(2.0)
        wrong = [
            rng.normal(size=count).max() - rng.normal() > limit
            for count in law.sample(rng, size=4000)
        ]
        assert 0.02 < np.mean(wrong) < 0.05
        assert np.mean([rng.normal(size=10).max() > rng.normal() for _ in range(400)]) > 0.8


class TestEdges:
    @pytest.mark.parametrize(("noise", "default"), [(0.0, None), (0.0, 3), (0.1, 3)])
    def test_equal_scores_return_the_default_or_the_first(
        self, noise: float, default: int | None
    ) -> None:
        found = choose([0.3] * 5, noise, default)
        assert found.index == (default or 0)
        assert found.mean[default or 0] == pytest.approx(0.3, abs=noise + 1e-6)
        assert np.isfinite(found.std).all()

    def test_scores_without_noise_are_believed(self) -> None:
        scores = [0.70, 0.71, 0.703, 0.72, 0.5]
        found = choose(scores, 0.0)
        assert found.index == 3
        assert found.mean == pytest.approx(scores, abs=1e-4)
        assert (found.std < 1e-4).all()

    @pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
    def test_a_score_that_says_nothing_is_as_if_it_were_not_there(self, odd: float) -> None:
        by_noise = choose([0.7, 0.8, 99.0, 0.8, 0.7], [0.05, 0.05, np.inf, 0.05, 0.05])
        by_score = choose([0.7, 0.8, odd, 0.8, 0.7], 0.05)
        assert by_noise.index == by_score.index != 2
        assert by_noise.mean == pytest.approx(by_score.mean)
        assert by_noise.std[2] > 1.1 * by_noise.std[[0, 1, 3, 4]].max()

    @pytest.mark.parametrize("default", [None, 4])
    def test_no_score_at_all(self, default: int | None) -> None:
        found = choose([0.5] * 5, np.inf, default)
        assert found.index == (default or 0)
        assert np.isnan(found.mean).all()
        assert np.isinf(found.std).all()

    @pytest.mark.parametrize(
        ("scores", "noise"),
        [
            *(([0.3] * 5, 0.0), ([0.0] * 5, 1e-310), ([0.3] * 5, 1e200)),
            *(([1e200, 2e200, 0, 1e-200, 1], noise) for noise in (0.0, 1e-310, 1e200)),
        ],
    )
    def test_numbers_of_any_size(self, scores: list[float], noise: float) -> None:
        found = choose(scores, noise)
        assert found.index == (1 if scores[0] > 1.0 and noise < 1e200 else 0)
        assert np.isfinite(found.mean).all()
        assert np.isfinite(found.std).all()
