"""Ridge regressions on sums with Gaussian noise."""

import math

import numpy as np
import pytest

from skdptune.linear_model import AdaSSPLinearRegression, NoisyStatisticsRidge
from skdptune.linear_model._regression._noisy_statistics import solve_noisy

rng = np.random.default_rng(0)
X = rng.uniform(-1.0, 1.0, size=(3000, 3))
Y = np.clip(X @ [0.5, -0.4, 0.1], -1.0, 1.0)


def test_ridge_of_adassp_follows_noise_and_eigenvalue(monkeypatch):
    ridges = []

    def record(gram, moment, ridge):
        ridges.append(ridge)
        return solve_noisy(gram, moment, ridge)

    monkeypatch.setattr("skdptune.linear_model._regression._noisy_statistics.solve_noisy", record)
    for epsilon, size in ((0.1, 300), (1.0, 300), (1.0, 20), (100.0, 3000)):
        AdaSSPLinearRegression(epsilon, 1e-5, target_bound=1.0, random_state=0).fit(
            X[:size], Y[:size]
        )
    assert ridges[0] > ridges[1] > ridges[3] == 0.0
    assert ridges[2] > ridges[1]
    AdaSSPLinearRegression(100.0, alpha=12.0, target_bound=1.0, data_norm=2.0).fit(X, Y)
    assert ridges[-1] == 3.0


def test_default_ridge_follows_the_noise(monkeypatch):
    ridges = []

    def record(gram, moment, ridge):
        ridges.append(ridge)
        return solve_noisy(gram, moment, ridge)

    monkeypatch.setattr("skdptune.linear_model._regression._noisy_statistics.solve_noisy", record)
    model = NoisyStatisticsRidge(1.0, 1e-5, target_bound=1.0, fit_intercept=False, random_state=0)
    model.fit(X, Y)
    deviation = 1.0 / model._plan(3000, 3).shift
    assert ridges[-1] == pytest.approx(math.sqrt(3) * deviation, rel=1e-5)
    model.set_params(alpha=6.0).fit(X, Y)
    assert ridges[-1] == pytest.approx(2.0)
    model.set_params(alpha=None, epsilon=math.inf).fit(X, Y)
    assert ridges[-1] == 0.0
    np.testing.assert_allclose(model.coef_, [0.5, -0.4, 0.1], atol=1e-3)


@pytest.mark.parametrize("kind", [AdaSSPLinearRegression, NoisyStatisticsRidge])
def test_unseeded_noise_is_drawn_safely(kind):
    models = [kind(5.0, 1e-5, target_bound=1.0).fit(X, Y) for _ in range(2)]
    assert (models[0].coef_ != models[1].coef_).all()
    assert not any("seed" in sentence for sentence in models[0].privacy_.assumptions)
