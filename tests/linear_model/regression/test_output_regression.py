"""Output perturbation: the sensitivity of a ridge regression, and the noise for it."""

import math

import numpy as np
import pytest

from skdptune.linear_model import OutputPerturbationLinearRegression


def weights_sensitivity(ridge, n):
    """Return what the noise is planned for, over its multiplier."""
    settings = {"data_norm": 1.0, "target_bound": 1.0, "fit_intercept": False}
    plan = OutputPerturbationLinearRegression(1.0, 1e-6, alpha=ridge, **settings)._plan(n, 3)
    return plan.noise_scale / plan.noise_multiplier


def solution(rows, targets, ridge):
    return np.linalg.solve(rows.T @ rows + ridge * np.eye(rows.shape[1]), rows.T @ targets)


@pytest.mark.parametrize("ridge", [0.05, 1.0, 40.0])
def test_one_record_moves_the_weights_by_the_sensitivity_at_most(ridge):
    # Theorem L7: output perturbation of a ridge regression.
    rng = np.random.default_rng(0)
    for _ in range(200):
        n, d = int(rng.integers(1, 30)), int(rng.integers(1, 4))
        rows = rng.normal(size=(n, d)) * rng.choice([0.1, 1.0, 10.0])
        rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1.0)
        targets = rng.choice([-1.0, 1.0], n)
        moved = solution(rows, targets, ridge) - solution(rows[:-1], targets[:-1], ridge)
        assert np.linalg.norm(moved) <= weights_sensitivity(ridge, n)


def test_sensitivity_is_nearly_attained():
    moved = solution(np.ones((1, 1)), np.ones(1), 1000.0)
    assert moved[0] >= 0.98 * weights_sensitivity(1000.0, 1)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_budget_is_met_and_used_up(epsilon, delta):
    model = OutputPerturbationLinearRegression(epsilon, delta, alpha=5.0, target_bound=1.0)
    assert 0.998 * epsilon <= model.privacy_profile(100, 3).epsilon(delta) <= epsilon


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_fit_adds_the_planned_noise_to_the_solution(delta):
    rng = np.random.default_rng(1)
    X = rng.uniform(-0.5, 0.5, size=(500, 3))
    y = X @ [0.5, 0.2, -0.3]
    settings = {"alpha": 20.0, "data_norm": 1.0, "target_bound": 1.0, "fit_intercept": False}
    exact = OutputPerturbationLinearRegression(math.inf, delta, **settings).fit(X, y).coef_
    model = OutputPerturbationLinearRegression(1.0, delta, **settings)
    plan = model._plan(500, 3)
    noise = (
        np.array([model.set_params(random_state=seed).fit(X, y).coef_ for seed in range(150)])
        - exact
    )
    if delta:
        assert noise.std() == pytest.approx(plan.noise_scale, rel=0.1)
    else:
        norms = np.linalg.norm(noise, axis=1)
        assert norms.mean() == pytest.approx(3 * plan.noise_scale, rel=0.1)
