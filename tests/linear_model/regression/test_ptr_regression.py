"""The regression by one tested posterior sample: its modes, and what a failed test publishes."""

import dataclasses
import math
import warnings

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone

from skdptune.accounting import UnreachableBudgetError
from skdptune.base import PrivacyWarning
from skdptune.linear_model import PTRLinearRegression, SufficientStatistics

rng = np.random.default_rng(0)
X = rng.uniform(-1.0, 1.0, size=(5000, 3)) @ np.diag([1.0, 0.5, 0.1])
Y = np.clip(X @ [0.5, -0.5, 1.0], -1.0, 1.0)


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


def test_alpha_is_raised_to_what_the_leverage_needs():
    model = PTRLinearRegression(1.0, 1e-6, data_norm=1.0, target_bound=1.0, random_state=0)
    by_rule = clone(model).fit(X, Y).coef_
    for alpha, is_raised in ((1e-9, True), (1e5, False)):
        found = clone(model).set_params(alpha=alpha).fit(X, Y).coef_
        assert np.array_equal(found, by_rule) == is_raised


def test_large_least_eigenvalue_needs_less_ridge():
    wide = rng.choice([-1.0, 1.0], size=(100_000, 2))
    targets = np.clip(wide @ [0.4, 0.4], -1.0, 1.0)
    model = PTRLinearRegression(
        1.0, 1e-6, alpha=1e-3, target_bound=1.0, fit_intercept=False, random_state=0
    )
    # Were the released eigenvalue not deducted from the 176 units of ridge that the plan asks
    # for, the coefficients would be some 0.3 % too small.
    np.testing.assert_allclose(model.fit(wide, targets).coef_, [0.4, 0.4], atol=0.01)


def test_closed_form_reports_what_it_really_costs():
    model = PTRLinearRegression(
        1.0, 1e-6, calibration="closed-form", target_bound=1.0, random_state=0
    )
    report = model.fit(X, Y).privacy_
    assert report.epsilon > 1.0
    assert report.profile == model.privacy_profile(5000, 3)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mode": "hopeful"}, "mode must be one of"),
        ({"calibration": "guess"}, "calibration must be one of"),
        ({"max_leverage": 0.0}, "max_leverage must be"),
        ({"failure_probability": 1e-6}, "failure_probability must be"),
        (
            {"mode": "propose-test-release", "calibration": "closed-form"},
            "calibration must be 'exact' in mode",
        ),
        ({"mode": "propose-test-release"}, "alpha must be given in mode 'propose-test-release'"),
    ],
)
def test_bad_parameters_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        PTRLinearRegression(1.0, 1e-6, target_bound=1.0, **settings).fit(X, Y)


def test_too_much_leverage_is_refused_before_data_are_read():
    model = PTRLinearRegression(0.1, 1e-6, target_bound=1.0, max_leverage=0.5)
    with pytest.raises(UnreachableBudgetError, match="max_leverage must be smaller"):
        model.privacy_profile(100, 2)


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
        allowed_residuals = np.array([self.plan.largest_residual_at(float(v)) for v in values])
        return ridge, leverage, allowed_residuals[places]

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


@pytest.mark.parametrize("mode", ["adaptive", "propose-test-release"])
@pytest.mark.parametrize(("size", "alpha"), [(0, 1e-3), (20, 1e-3), (20, 60.0), (400, 20.0)])
def test_whole_release_stays_within_its_profile(mode, size, alpha):
    # Theorem L5.
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
