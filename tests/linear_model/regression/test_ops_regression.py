"""One posterior sample whose ridge is chosen before the fit, for any data there can be."""

import numpy as np
import pytest

from skdptune.accounting import posterior_sample
from skdptune.linear_model._regression._ops_regression import balanced_plan, residual_bound

rng = np.random.default_rng(0)


@pytest.mark.parametrize("seed", range(20))
def test_residuals_of_any_data_stay_below_their_bound(seed):
    # Theorem L6.
    generator = np.random.default_rng(seed)
    n, d, ridge = int(generator.integers(1, 40)), 2, 10 ** generator.uniform(-3, 3)
    rows = generator.normal(size=(n, d))
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1.0)
    targets = generator.choice([-1.0, 1.0], n)
    solution = np.linalg.solve(rows.T @ rows + ridge * np.eye(d), rows.T @ targets)
    assert 1.0 + np.linalg.norm(solution) <= residual_bound(1.0, ridge, n) + 1e-12


def test_residual_bound_is_attained():
    # Theorem L6.
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


def test_more_records_and_less_budget_ask_for_more_ridge():
    def ridge(epsilon, n):
        return balanced_plan(epsilon, 1e-6, None, 1.0, n, 4).ridge

    assert ridge(1.0, 100) < ridge(1.0, 10**6)
    assert ridge(10.0, 1000) < ridge(0.1, 1000)
