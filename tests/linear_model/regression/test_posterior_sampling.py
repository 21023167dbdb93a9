"""Regressions by one posterior sample: released bounds, plans, draws and their costs."""

from __future__ import annotations

import dataclasses
import functools
import math
import warnings

import numpy as np
import pytest
from scipy import stats

from skdptune.accounting import (
    PrivacyProfile,
    UnreachableBudgetError,
    posterior_sample,
    with_failure,
)
from skdptune.accounting._posterior_sample import posterior_sample_deltas
from skdptune.base import PrivacyWarning
from skdptune.linear_model import (
    PTRLinearRegression,
    SufficientStatistics,
)
from skdptune.linear_model._regression import _posterior_sampling
from skdptune.linear_model._regression._posterior_sampling import (
    _SLACK_SHARE,
    adaptive_plan,
    posterior_draw,
    posterior_grid,
    proposal_plan,
    release_least_eigenvalue,
    release_noisy_eigenvalue,
    release_residual_bound,
)
from skdptune.linear_model._regression._regressions import balanced_plan, residual_bound
from skdptune.linear_model._regression._sufficient_statistics import RidgeProblem
from skdptune.mechanisms import gaussian_release

rng = np.random.default_rng(0)
X = rng.uniform(-1.0, 1.0, size=(5000, 3)) @ np.diag([1.0, 0.5, 0.1])
Y = np.clip(X @ [0.5, -0.5, 1.0], -1.0, 1.0)


def problem_of(X, y, norm=1.5):
    """Return the ridge problem of rows without an intercept."""
    sums = SufficientStatistics(norm, 1.0, False).update(X, y)
    return RidgeProblem(*sums.spectrum, *reversed(sums.gram_and_moment), 1.0, 1.0, len(X))


def test_draws_have_the_posteriors_mean_and_covariance():
    problem = problem_of(X, Y)
    ridge, precision = 3.0, 40.0
    H = problem.gram + ridge * np.eye(3)
    mean = np.linalg.solve(H, problem.moment)
    rng = np.random.default_rng(0)
    draws = np.array(
        [
            posterior_draw(problem, problem.solution(ridge), ridge, precision, rng)
            for _ in range(5000)
        ]
    )
    covariance = np.linalg.inv(precision * H)
    errors = np.sqrt(np.diag(covariance) / len(draws))
    assert (np.abs(draws.mean(axis=0) - mean) < 5.0 * errors).all()
    np.testing.assert_allclose(
        np.cov(draws.T), covariance, rtol=0.05, atol=0.03 * covariance.max()
    )


def test_draws_lie_on_a_grid_that_no_data_choose():
    # Theorem E1: a release is real noise plus the value, rounded to a grid that no data choose.
    ridge, precision, steps = 3.0, 40.0, []
    for rows, targets in ((X, Y), (0.0 * X, Y), (X[:1], Y[:1])):
        problem = dataclasses.replace(problem_of(rows, targets), n_public=len(X))
        grid = posterior_grid(problem, ridge, precision)
        draws = [
            posterior_draw(problem, problem.solution(ridge), ridge, precision, rng) / grid
            for _ in range(20)
        ]
        np.testing.assert_array_equal(draws, np.rint(draws))
        steps.append(grid)
    assert steps[0] == steps[1] == steps[2]
    # Fine enough for the smallest spread that this number of records can have.
    spread = 1.0 / math.sqrt(precision * (len(X) * problem.radius2 + ridge))
    assert 2.0**20 <= spread / grid <= 2.0**21


def test_without_noise_the_solution_is_exact():
    problem = problem_of(X, Y)
    solution = problem.solution(1.0)
    found = posterior_draw(problem, solution, 1.0, math.inf, rng)
    np.testing.assert_array_equal(found, problem.vectors @ solution)


@pytest.mark.parametrize("mode", ["adaptive", "propose-test-release"])
def test_precision_is_no_more_than_the_plan_allows(mode, monkeypatch):
    seen = {}

    def record(problem, solution, ridge, precision, rng):
        seen.update(ridge=ridge, precision=precision, problem=problem)
        return problem.vectors @ solution

    monkeypatch.setattr(
        "skdptune.linear_model._regression._posterior_sampling.posterior_draw", record
    )
    for seed in range(20):
        model = PTRLinearRegression(
            1.0, 1e-6, alpha=400.0, mode=mode, target_bound=1.0, random_state=seed
        ).fit(X, Y)
        problem, plan = seen["problem"], model._plan(5000, 3)
        # At the true bounds, which the released ones err from on the safe side.
        leverage = problem.radius2 / (problem.values[0] + seen["ridge"])
        norm = float(np.linalg.norm(problem.solution(seen["ridge"])))
        residual = 1.0 + math.sqrt(problem.radius2) * norm
        if mode == "adaptive":
            assert leverage <= plan.leverage
            assert seen["ridge"] >= problem.alpha
        else:
            assert seen["ridge"] == problem.alpha
        assert seen["precision"] * residual**2 <= plan.largest_residual_at(leverage)


PAIRS = [(0.1, 1e-6), (1.0, 1e-6), (1.0, 1e-9), (8.0, 1e-4)]


@pytest.mark.parametrize(("epsilon", "delta"), PAIRS)
def test_adaptive_budget_is_met_and_used_up(epsilon, delta):
    plan = adaptive_plan(epsilon, delta, None, None, "exact")
    assert 0.998 * epsilon <= plan.profile.epsilon(delta) <= epsilon
    bounds = PrivacyProfile.gaussian(plan.eigenvalue_shift) + PrivacyProfile.gaussian(
        plan.norm_shift
    )
    sample = posterior_sample(plan.leverage, plan.squared_residual)
    lost = (2.0 + _SLACK_SHARE) * plan.failure
    parts = with_failure(bounds + sample, lost)
    assert parts.epsilon(delta) == pytest.approx(plan.profile.epsilon(delta), rel=1e-3)
    assert plan.profile.delta(50.0) >= 2.0 * plan.failure


@pytest.mark.parametrize(("epsilon", "delta"), PAIRS)
def test_smaller_leverages_stay_below_the_curve(epsilon, delta):
    # Theorem L5: a posterior sample at released bounds.
    plan = adaptive_plan(epsilon, delta, None, None, "exact")
    points = np.linspace(0.0, 3.0 * epsilon, 400)
    slack = _SLACK_SHARE * plan.failure
    for steps in (0.0, 0.3, 1.0, 3.5, 12.0, 40.0):
        leverage = plan.leverage * 1.15**-steps
        residual = plan.largest_residual_at(leverage)
        assert residual >= plan.squared_residual
        for index, direction in enumerate(("remove", "add")):
            curve = posterior_sample_deltas(points, leverage, residual)[index]
            assert (curve <= plan.sample.delta(points, direction) + slack * (1 + 1e-6)).all()
        if steps >= 1.0:
            # With less leverage, larger residuals are safe, nearly in proportion.
            assert residual * leverage >= 0.6 * plan.squared_residual * plan.leverage


def test_leverage_beyond_the_box_allows_no_sample():
    plan = adaptive_plan(1.0, 1e-6, None, None, "exact")
    assert plan.largest_residual_at(1.01 * plan.leverage) == 0.0


@pytest.mark.parametrize(("epsilon", "delta"), PAIRS)
def test_proposal_budget_is_met_and_used_up(epsilon, delta):
    plan = proposal_plan(epsilon, delta, None)
    assert 0.998 * epsilon <= plan.profile.epsilon(delta) <= epsilon
    for leverage in (1e-5, 1e-4, 1e-3):
        residual = plan.largest_residual_at(leverage)
        sample = posterior_sample(leverage, max(residual, 1e-9))
        if residual > 0.0:
            assert sample.delta(plan.epsilon) <= plan.delta * (1.0 + 1e-3)
    assert plan.largest_residual_at(500.0) == 0.0


def test_printed_form_costs_more_than_it_claims():
    printed = adaptive_plan(1.0, 1e-6, None, None, "closed-form")
    sample = posterior_sample(printed.leverage, printed.squared_residual)
    # Nothing is left for the released bounds, and the sample may cost more than it claims.
    assert printed.profile.epsilon(1e-6) > 1.0
    small = adaptive_plan(1.0, 1e-6, 1e-3, None, "closed-form")
    assert posterior_sample(1e-3, small.squared_residual).delta(1.0) > 3e-6
    assert sample.epsilon(1e-6) < printed.profile.epsilon(1e-6)


TRIALS = 100_000
FAILURE = 0.01


@pytest.fixture(autouse=True)
def _noise_may_be_given(monkeypatch):
    """Add a standard normal number that is given in place of a source of noise.

    Separate tests show that `gaussian_release` adds noise with the same distribution.
    """

    def release(value, sensitivity, scale, source):
        if isinstance(source, float):
            return value + scale * source
        return gaussian_release(value, sensitivity, scale, source)

    monkeypatch.setattr(_posterior_sampling, "gaussian_release", release)


def many(release, *arguments, seed):
    """Return 100,000 draws of standard noise, and the release as a function of one of them."""
    numbers = np.random.default_rng(seed).standard_normal(TRIALS)
    return numbers, functools.partial(release, *arguments)


def share_of_failures(numbers, at, fails):
    """Return in what share of the draws a release fails.

    It moves with its noise one way, so that it fails above one of the draws or below it.
    """
    ordered = np.sort(numbers)
    wrong = [fails(at(ordered[0])), fails(at(ordered[-1]))]
    if wrong[0] == wrong[1]:
        return float(wrong[0])
    low, high = 0, TRIALS - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fails(at(ordered[middle])) == wrong[0] else (low, middle)
    return (low + 1) / TRIALS if wrong[0] else (TRIALS - high) / TRIALS


def most_failures(probability):
    return stats.binom.ppf(1.0 - 1e-6, TRIALS, probability) / TRIALS


def neighbours(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 5))
    rows = rng.normal(size=(60, d))
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1.0)
    targets = np.clip(rows @ rng.normal(size=d) + rng.normal(size=60), -1.0, 1.0)
    if seed % 2:
        # Along the weakest direction, and as long as can be, a row moves most.
        rows[-1] = np.linalg.eigh(rows[:-1].T @ rows[:-1])[1][:, 0]
        targets[-1] = -1.0
    return rows, targets


@pytest.mark.parametrize("seed", range(8))
def test_eigenvalue_bound_lies_below_that_of_the_smaller_set(seed):
    # Theorem L4: released bounds on the least eigenvalue and on residuals.
    rows, _ = neighbours(seed)
    values = [np.linalg.eigvalsh(part.T @ part)[0] for part in (rows[:-1], rows)]
    assert values[0] <= values[1] <= values[0] + 1.0 + 1e-12
    for number, least in enumerate(values):
        numbers, at = many(
            release_least_eigenvalue, least, 1.0, 0.8, FAILURE, seed=10 * seed + number
        )
        found = share_of_failures(numbers, at, lambda bound: bound > values[0])
        assert found <= most_failures(FAILURE)


def test_eigenvalue_bound_fails_as_often_as_it_may():
    # The larger set, where the record adds all it can to the eigenvalue.
    numbers, at = many(release_least_eigenvalue, 21.0, 1.0, 0.8, FAILURE, seed=0)
    found = share_of_failures(numbers, at, lambda bound: bound > 20.0)
    assert found == pytest.approx(FAILURE, rel=0.15)
    numbers, at = many(release_noisy_eigenvalue, 20.0, 1.0, 0.8, FAILURE, seed=1)
    assert share_of_failures(numbers, at, lambda bound: bound > 20.0) == pytest.approx(
        FAILURE, rel=0.15
    )


@pytest.mark.parametrize(
    ("seed", "ridge"), [*zip(range(8), [0.5, 5.0, 50.0, 0.5] * 2, strict=True)]
)
def test_residual_bound_holds_for_every_record_of_the_smaller_set(seed, ridge):
    # Theorem L4: released bounds on the least eigenvalue and on residuals.
    rows, targets = neighbours(seed)
    solutions = [
        np.linalg.solve(x.T @ x + ridge * np.eye(x.shape[1]), x.T @ y)
        for x, y in ((rows[:-1], targets[:-1]), (rows, targets))
    ]
    least = np.linalg.eigvalsh(rows[:-1].T @ rows[:-1])[0]
    leverage = 1.0 / (least + ridge)
    norms = [float(np.linalg.norm(solution)) for solution in solutions]
    sizes = [math.log1p(norm) for norm in norms]
    assert abs(sizes[0] - sizes[1]) <= math.log1p(leverage) + 1e-12
    largest = 1.0 + norms[0]
    for number, norm in enumerate(norms):
        numbers, at = many(
            release_residual_bound, norm, 1.0, leverage, 0.5, FAILURE, seed=10 * seed + number
        )
        found = share_of_failures(numbers, at, lambda bound: bound < largest)
        assert found <= most_failures(FAILURE)


def test_leverage_stays_in_the_box_where_the_bounds_hold():
    plan = adaptive_plan(1.0, 1e-6, None, None, "exact")
    for seed in range(20):
        rows, targets = neighbours(seed)
        smaller = rows[:-1].T @ rows[:-1]
        least = float(np.linalg.eigvalsh(smaller)[0])
        for released in (0.0, 0.5 * least, least):
            ridge = max(1e-3, 1.0 / plan.leverage - released)
            H = smaller + ridge * np.eye(rows.shape[1])
            bound = 1.0 / (released + ridge)
            assert bound <= plan.leverage * (1.0 + 1e-12)
            assert rows[-1] @ np.linalg.solve(H, rows[-1]) <= bound * (1.0 + 1e-9)


def test_failed_test_publishes_the_data_independent_model():
    model = PTRLinearRegression(
        0.1, 1e-6, alpha=1e-3, mode="propose-test-release", target_bound=1.0, random_state=0
    )
    model.fit(X[:50], Y[:50])
    assert not model.released_
    assert (model.coef_ == 0.0).all()
    assert model.intercept_ == 0.0
    assert model.privacy_.epsilon == 0.1
    assert model.set_params(alpha=1e4).fit(X[:50], Y[:50]).released_


def test_adaptive_mode_always_releases():
    for size in (0, 1, 3, 5000):
        model = PTRLinearRegression(0.05, 1e-6, alpha=1e-9, target_bound=1.0, n_public=5000)
        assert model.set_params(random_state=0).fit(X[:size], Y[:size]).released_


def test_closed_form_reports_what_it_really_costs():
    model = PTRLinearRegression(
        1.0, 1e-6, calibration="closed-form", target_bound=1.0, random_state=0
    )
    report = model.fit(X, Y).privacy_
    assert report.epsilon > 1.0
    assert report.profile == model.privacy_profile(5000, 3)


def test_too_much_leverage_is_refused_before_data_are_read():
    model = PTRLinearRegression(0.1, 1e-6, target_bound=1.0, max_leverage=0.5)
    with pytest.raises(UnreachableBudgetError, match="max_leverage must be smaller"):
        model.privacy_profile(100, 2)


def on_steps(function, values):
    """Return a monotone step function at sorted values, from few calls."""
    found, parts = np.empty(values.size), [(0, values.size - 1)]
    while parts:
        low, high = parts.pop()
        found[low], found[high] = function(float(values[low])), function(float(values[high]))
        if found[low] == found[high]:
            found[low : high + 1] = found[low]
        elif high - low > 1:
            middle = (low + high) // 2
            parts += [(low, middle), (middle, high)]
    return found


class WholeRelease:
    """All that a fit with one feature releases, written anew: its draws and their densities."""

    def __init__(self, plan, alpha, x, y, radius2):
        self.plan, self.alpha, self.radius2 = plan, alpha, radius2
        self.square, self.product = float(x @ x), float(x @ y)

    def bounds(self, noisy_eigenvalue):
        """Return ridge and leverage, from what was released."""
        scale = self.radius2 / self.plan.eigenvalue_shift
        margin = stats.norm.isf(self.plan.failure)
        released = np.maximum(noisy_eigenvalue - margin * scale - self.radius2, 0.0)
        ridge = np.full_like(released, self.alpha)
        if self.plan.leverage:
            ridge = np.maximum(ridge, self.radius2 / self.plan.leverage * (1 + 1e-8) - released)
        leverage = self.radius2 / (released + ridge)
        values, places = np.unique(leverage.round(12), return_inverse=True)
        return ridge, leverage, on_steps(self.plan.largest_residual_at, values)[places]

    def precision(self, noisy_size, leverage, allowed):
        scale = np.log1p(leverage) / self.plan.norm_shift
        margin = stats.norm.isf(self.plan.failure)
        return allowed * ((1.0 + leverage) * np.exp(noisy_size + margin * scale)) ** -2.0

    def draw(self, count, generator):
        noise = generator.standard_normal((3, count))
        eigenvalue = self.square + noise[0] * self.radius2 / self.plan.eigenvalue_shift
        ridge, leverage, allowed = self.bounds(eigenvalue)
        mean = self.product / (self.square + ridge)
        size = np.log1p(np.sqrt(self.radius2) * np.abs(mean))
        size = size + noise[1] * np.log1p(leverage) / self.plan.norm_shift
        precision = np.maximum(self.precision(size, leverage, allowed), 1e-300)
        weight = mean + noise[2] / np.sqrt(precision * (self.square + ridge))
        return eigenvalue, size, np.where(allowed > 0.0, weight, 0.0)

    def log_density(self, eigenvalue, size, weight):
        ridge, leverage, allowed = self.bounds(eigenvalue)
        mean = self.product / (self.square + ridge)
        first = (eigenvalue - self.square) * self.plan.eigenvalue_shift / self.radius2
        second = size - np.log1p(np.sqrt(self.radius2) * np.abs(mean))
        second = second * self.plan.norm_shift / np.log1p(leverage)
        precision = self.precision(size, leverage, allowed) * (self.square + ridge)
        third = np.where(
            allowed > 0.0,
            0.5 * np.log(np.maximum(precision, 1e-300)) - 0.5 * precision * (weight - mean) ** 2,
            0.0,
        )
        return third - 0.5 * first**2 - 0.5 * second**2


def worst_neighbours(size):
    """Return records, the last of which contradicts all others as much as it can."""
    return np.ones(size + 1), np.append(np.ones(size), -1.0)


@pytest.mark.parametrize(
    ("mode", "size", "alpha"),
    [
        ("adaptive", 0, 1e-3),
        ("adaptive", 20, 60.0),
        ("adaptive", 400, 20.0),
        ("propose-test-release", 20, 60.0),
        ("propose-test-release", 400, 20.0),
        pytest.param("adaptive", 20, 1e-3, marks=pytest.mark.slow),
        # Samples of many leverages are calibrated.
        pytest.param("propose-test-release", 0, 1e-3, marks=pytest.mark.slow),
        pytest.param("propose-test-release", 20, 1e-3, marks=pytest.mark.slow),
    ],
)
def test_whole_release_stays_within_its_profile(mode, size, alpha):
    # Theorem L5: a posterior sample at released bounds.
    settings = {"alpha": alpha, "data_norm": 1.0, "target_bound": 1.0, "fit_intercept": False}
    model = PTRLinearRegression(2.0, 0.02, mode=mode, failure_probability=1e-3, **settings)
    plan = model._plan(size + 1, 1)
    x, y = worst_neighbours(size)
    smaller = WholeRelease(plan, alpha, x[:-1], y[:-1], 1.000001)
    larger = WholeRelease(plan, alpha, x, y, 1.000001)
    generator = np.random.default_rng(size)
    pairs = {"remove": (larger, smaller), "add": (smaller, larger)}
    for direction, (first, second) in pairs.items():
        released = first.draw(100_000, generator)
        losses = first.log_density(*released) - second.log_density(*released)
        for epsilon in (0.0, 0.2, 0.5, 1.0, 2.0):
            parts = np.maximum(-np.expm1(epsilon - losses), 0.0)
            error = 4.0 * parts.std() / math.sqrt(parts.size) + 4.0 / parts.size
            assert parts.mean() <= plan.profile.delta(epsilon, direction) + error
    # The estimator draws from the very distribution that was checked.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        sums = SufficientStatistics(1.0, 1.0, False).update(x[:, None], y)
        fitted = [
            model.set_params(random_state=int(generator.integers(2**31)))
            .fit_statistics(sums)
            .coef_[0]
            for _ in range(300)
        ]
    wanted = larger.draw(3000, generator)[2]
    assert stats.ks_2samp(fitted, wanted).pvalue > 1e-4


def test_oracle_of_the_whole_release_sees_a_precision_that_is_too_high():
    plan = PTRLinearRegression(2.0, 0.02, target_bound=1.0)._plan(21, 1)
    plan = dataclasses.replace(plan, squared_residual=400.0 * plan.squared_residual)
    x, y = worst_neighbours(0)
    smaller = WholeRelease(plan, 1e-3, x[:-1], y[:-1], 1.0)
    larger = WholeRelease(plan, 1e-3, x, y, 1.0)
    released = larger.draw(100_000, np.random.default_rng(0))
    losses = larger.log_density(*released) - smaller.log_density(*released)
    assert np.maximum(-np.expm1(2.0 - losses), 0.0).mean() > 2.0 * plan.profile.delta(2.0)


def test_residuals_of_any_data_stay_below_their_bound():
    # Theorem L6: bounds on weights and residuals that hold for any data.
    for seed in range(20):
        generator = np.random.default_rng(seed)
        n, d, ridge = int(generator.integers(1, 40)), 2, 10 ** generator.uniform(-3, 3)
        rows = generator.normal(size=(n, d))
        rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1.0)
        targets = generator.choice([-1.0, 1.0], n)
        solution = np.linalg.solve(rows.T @ rows + ridge * np.eye(d), rows.T @ targets)
        assert 1.0 + np.linalg.norm(solution) <= residual_bound(1.0, ridge, n) + 1e-12


def test_residual_bound_is_attained():
    # Theorem L6: bounds on weights and residuals that hold for any data.
    # Equal rows, of total square equal to the ridge.
    n = 64
    rows, targets = np.ones((n, 1)), np.ones(n)
    solution = (rows.T @ targets / (n + float(n)))[0]
    assert 1.0 + solution == pytest.approx(residual_bound(1.0, float(n), n))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0, 500.0])
@pytest.mark.parametrize("ridge", [None, 1e-3, 1e4])
def test_balanced_budget_is_met_and_used_up(epsilon, ridge):
    plan = balanced_plan(epsilon, 1e-6, ridge, 1.25, 1000, 4)
    cost = plan.profile.epsilon(1e-6)
    assert 0.998 * min(epsilon, 100.0) <= cost <= epsilon
    assert plan.profile == posterior_sample(1.25 / plan.ridge, plan.squared_residual)
    if ridge == 1e4:
        assert plan.ridge == 1e4
    else:
        assert plan.ridge > 0.1


@pytest.mark.parametrize("leverage", [1.0, 30.0, 1e3])
def test_leverages_beyond_the_budget_are_refused_without_sums(leverage, monkeypatch):
    # Sums with samples of such leverages take seconds each.
    monkeypatch.setattr(_posterior_sampling, "with_failure", None)
    with pytest.raises(UnreachableBudgetError, match="max_leverage must be smaller"):
        adaptive_plan(1.0, 1e-5, leverage, None, "exact")
