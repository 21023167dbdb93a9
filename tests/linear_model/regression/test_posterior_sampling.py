"""One posterior sample: its distribution, and its precision at the released bounds."""

import dataclasses
import math

import numpy as np
import pytest

from skdptune.linear_model import PTRLinearRegression
from skdptune.linear_model._regression._posterior_sampling import posterior_draw, posterior_grid
from tests.linear_model.regression_examples import problem_of

rng = np.random.default_rng(0)
X = rng.uniform(-1.0, 1.0, size=(5000, 3)) @ np.diag([1.0, 0.5, 0.1])
Y = np.clip(X @ [0.5, -0.5, 1.0], -1.0, 1.0)


def test_draws_have_the_posteriors_mean_and_covariance():
    problem = problem_of(X, Y)
    ridge, precision = 3.0, 40.0
    H = problem.gram + ridge * np.eye(3)
    mean = np.linalg.solve(H, problem.moment)
    rng = np.random.default_rng(0)
    draws = np.array(
        [
            posterior_draw(problem, problem.solution(ridge), ridge, precision, rng)
            for _ in range(40_000)
        ]
    )
    covariance = np.linalg.inv(precision * H)
    errors = np.sqrt(np.diag(covariance) / len(draws))
    assert (np.abs(draws.mean(axis=0) - mean) < 5.0 * errors).all()
    np.testing.assert_allclose(
        np.cov(draws.T), covariance, rtol=0.05, atol=0.03 * covariance.max()
    )


def test_draws_lie_on_a_grid_that_no_data_choose():
    # Theorem E1.
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
    # Fine enough for the least spread that so many records can have.
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
