"""The minimiser: gets to the asked gradient whatever the data, and to the known minimum."""

import numpy as np
import pytest
from scipy import optimize

from skdptune.linear_model._solvers._design import Design
from skdptune.linear_model._solvers._margin_losses import LOGISTIC, huber_hinge
from skdptune.linear_model._solvers._newton import RegularisedSum, minimise

LOSSES = [LOGISTIC, huber_hinge(0.5), huber_hinge(0.05)]


def problem(loss, seed, lam, tilt_scale=0.0, n=60, d=4):
    rng = np.random.default_rng(seed)
    design = Design.clipped(rng.normal(size=(n, d)) * 2.0, 3.0, True)
    signs = np.where(rng.random(n) < 0.5, -1.0, 1.0)
    return RegularisedSum(loss, design, signs, lam, tilt_scale * rng.normal(size=d + 1))


def value(function, weights):
    margins = function.signs * function.design.decision(weights)
    penalty = 0.5 * function.regularization * weights @ weights
    return function.loss.value(margins).sum() + penalty + function.tilt @ weights


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("lam", [1e-2, 1.0, 1e3])
@pytest.mark.parametrize("tilt", [0.0, 30.0])
def test_gradient_is_as_small_as_asked(loss, lam, tilt):
    # Theorem M2.
    function = problem(loss, 0, lam, tilt)
    weights = minimise(function, 1e-8)
    gradient = optimize.approx_fprime(weights, lambda w: value(function, w), 1e-6)
    assert np.abs(gradient).max() < 1e-3 * max(1.0, lam)
    assert np.linalg.norm(function.gradient(weights, function.margins(weights))) <= 1e-8


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_no_other_point_is_lower(loss):
    function = problem(loss, 1, 0.5, 5.0)
    weights = minimise(function, 1e-9)
    found = optimize.minimize(lambda w: value(function, w), np.zeros(weights.size), method="BFGS")
    assert value(function, weights) <= found.fun + 1e-9
    np.testing.assert_allclose(weights, found.x, atol=1e-3)


def test_too_few_steps_give_the_model_that_no_data_touched():
    function = problem(LOGISTIC, 2, 1e-3)
    np.testing.assert_array_equal(minimise(function, 1e-300, max_iter=3), np.zeros(5))
