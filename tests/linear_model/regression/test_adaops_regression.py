"""One posterior sample whose ridge follows from a released eigenvalue."""

import numpy as np
import pytest

from skdptune.linear_model import AdaOPSLinearRegression, OPSLinearRegression

rng = np.random.default_rng(0)


def test_ridge_of_adaops_falls_with_the_eigenvalue():
    model = AdaOPSLinearRegression(1.0, 1e-6, target_bound=1.0)
    plan = model._plan(1000, 3)

    class Sizes:
        radius2, alpha, moment = 1.0, 0.0, np.zeros(3)

    ridges = [model._ridge(plan, Sizes, least) for least in (0.0, 50.0, 1e4)]
    assert ridges[0] > ridges[1] > ridges[2]
    Sizes.alpha = 1e6
    assert model._ridge(plan, Sizes, 0.0) == 1e6


def test_adaops_and_ops_learn():
    X = rng.uniform(-1.0, 1.0, size=(30_000, 2))
    y = X @ [0.5, -0.4]
    for kind in (AdaOPSLinearRegression, OPSLinearRegression):
        model = kind(3.0, 1e-6, data_norm=1.5, target_bound=1.0, random_state=0).fit(X, y)
        np.testing.assert_allclose(model.coef_, [0.5, -0.4], atol=0.15)


def test_zero_alpha_is_for_adaops_alone():
    X, y = rng.normal(size=(50, 2)), np.ones(50)
    AdaOPSLinearRegression(alpha=0.0, target_bound=1.0, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="alpha must be"):
        OPSLinearRegression(alpha=0.0, target_bound=1.0).fit(X, y)
