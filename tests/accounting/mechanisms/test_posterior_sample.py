"""The posterior sample's profile against quadrature and against the real densities."""

import math

import numpy as np
import pytest
from scipy import integrate, stats

from skdptune.accounting import (
    PrivacyProfile,
    largest_squared_residual,
    posterior_sample,
    printed_posterior_epsilon,
)
from skdptune.accounting._posterior_sample import (
    hockey_stick,
    posterior_sample_deltas,
    turning_slope,
)

DIRECTIONS = {"remove": 1.0, "add": -1.0}


def quadrature(epsilon, leverage, squared_residual, direction):
    """Integrate the positive part of the densities' difference, on a fine grid."""
    deviation = 1.0 / math.sqrt(1.0 + leverage)
    shift = math.sqrt(leverage * squared_residual) / (1.0 + leverage)
    smaller, larger = stats.norm(), stats.norm(shift, deviation)
    first, second = (larger, smaller) if direction == "remove" else (smaller, larger)

    points = np.linspace(-14.0, 14.0 + shift, 100_001)
    density = first.pdf(points) - math.exp(epsilon) * second.pdf(points)
    return integrate.trapezoid(np.maximum(density, 0.0), points)


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize(
    ("epsilon", "leverage", "squared_residual"),
    [(0.0, 0.1, 1.0), (0.3, 0.001, 50.0), (1.3, 0.2, 3.0), (0.5, 2.0, 0.5)],
)
def test_curve_at_one_leverage_is_that_of_the_two_gaussians(
    epsilon, leverage, squared_residual, direction
):
    # Theorem L1: the exact curve of one posterior sample.
    exact = hockey_stick(
        np.array([epsilon]), np.array([leverage]), squared_residual, DIRECTIONS[direction]
    )[0]
    brute = quadrature(epsilon, leverage, squared_residual, direction)
    assert exact == pytest.approx(brute, rel=1e-6, abs=1e-11)


def brute_supremum(epsilons, leverage, squared_residual, sign):
    grid = leverage * np.concatenate([np.geomspace(1e-12, 0.05, 4000), np.linspace(0.05, 1, 4000)])
    values = hockey_stick(epsilons[:, None], grid[None, :], squared_residual, sign)
    return values.max(axis=1)


@pytest.mark.parametrize("direction", [0, 1])
def test_supremum_over_the_box_against_a_fine_grid(direction):
    # Theorem L1: the exact curve of one posterior sample.
    rng = np.random.default_rng(direction)
    sign = [1.0, -1.0][direction]
    for _ in range(15):
        leverage, residual = 10 ** rng.uniform(-4, 2), 10 ** rng.uniform(-1, 2.5)
        epsilons = 10 ** rng.uniform(-2, 1.5, 8)
        value = posterior_sample_deltas(epsilons, leverage, residual)[direction]
        brute = brute_supremum(epsilons, leverage, residual, sign)
        assert (value >= brute * (1.0 - 1e-12)).all()
        seen = brute > 1e-13
        np.testing.assert_allclose(value[seen], brute[seen], rtol=1e-3)


@pytest.mark.parametrize("bound", [1.0001, 1.5, 10.0, 1e6])
def test_function_behind_the_supremum_falls_and_then_rises(bound):
    # Theorem L1: the exact curve of one posterior sample.
    points = np.geomspace(1e-3, bound + 1.0, 6000)
    points = points[points / np.tanh(points) <= bound]
    signs = np.sign([turning_slope(z, bound) for z in points])
    assert np.count_nonzero(np.diff(signs[signs != 0.0])) <= 1
    if bound >= 1.5:
        assert signs[0] < 0.0 < signs[-1]


@pytest.mark.parametrize(
    ("leverage", "squared_residual"), [(0.001, 60.0), (0.02, 2.0), (0.3, 3.0), (5.0, 0.2)]
)
def test_profile_is_never_below_the_curve_and_close_to_it(leverage, squared_residual):
    profile = posterior_sample(leverage, squared_residual)
    epsilons = np.random.default_rng(0).uniform(0.0, 1.5 * profile.epsilon(1e-8), 200)
    curves = posterior_sample_deltas(epsilons, leverage, squared_residual)
    for direction, curve in zip(DIRECTIONS, curves, strict=True):
        shown = profile.delta(epsilons, direction)
        assert (shown >= curve * (1.0 - 1e-9)).all()
        # Where a curve ends in zero, no chord is close to it by a factor, but in epsilon.
        nearby = posterior_sample_deltas(epsilons * (1.0 - 1e-3), leverage, squared_residual)
        near = nearby[0] if direction == "remove" else nearby[1]
        tight = curve > 1e-9
        assert (shown[tight] <= near[tight] * (1.0 + 1e-3)).all()
        plain = curve > 1e-3 * curve.max()
        assert (shown[plain] <= curve[plain] * (1.0 + 1e-3)).all()


def test_small_leverage_is_a_gaussian_release():
    sample, gaussian = posterior_sample(1e-6, 2.5e5), PrivacyProfile.gaussian(0.5)
    for delta in (1e-3, 1e-6, 1e-9):
        assert sample.epsilon(delta) == pytest.approx(gaussian.epsilon(delta), rel=1e-3)


class Release:
    """One posterior sample in d dimensions, from its definition."""

    def __init__(self, X, y, ridge, precision):
        self.H = X.T @ X + ridge * np.eye(X.shape[1])
        self.mean = np.linalg.solve(self.H, X.T @ y)
        covariance = np.linalg.inv(precision * self.H)
        self.distribution = stats.multivariate_normal(self.mean, 0.5 * (covariance + covariance.T))


@pytest.mark.parametrize("seed", range(3))
def test_real_densities_stay_within_the_profile(seed):
    # Theorem L1: the exact curve of one posterior sample.
    rng = np.random.default_rng(seed)
    d, ridge, precision = 3, 2.0, [0.5, 3.0][seed % 2]
    X = rng.normal(size=(25, d)) / 2.0
    y = np.clip(X @ rng.normal(size=d) + rng.normal(size=25), -2.0, 2.0)
    smaller, larger = Release(X[:-1], y[:-1], ridge, precision), Release(X, y, ridge, precision)
    x = X[-1]
    leverage = float(x @ np.linalg.solve(smaller.H, x))
    squared = precision * float(y[-1] - x @ smaller.mean) ** 2
    # The same two numbers, read off the larger set.
    b = float(x @ np.linalg.solve(larger.H, x))
    assert leverage == pytest.approx(b / (1.0 - b))
    assert squared == pytest.approx(precision * ((y[-1] - x @ larger.mean) / (1.0 - b)) ** 2)
    profile = posterior_sample(leverage, squared)
    for direction, (first, second) in {
        "remove": (larger, smaller),
        "add": (smaller, larger),
    }.items():
        draws = first.distribution.rvs(200_000, random_state=rng)
        losses = first.distribution.logpdf(draws) - second.distribution.logpdf(draws)
        for epsilon in (0.0, 0.1, 0.4, 1.0):
            parts = np.maximum(-np.expm1(epsilon - losses), 0.0)
            # The last term is for events that the sample may have missed.
            error = 4.0 * parts.std() / math.sqrt(parts.size) + 4.0 / parts.size
            exact = hockey_stick(
                np.array([epsilon]), np.array([leverage]), squared, DIRECTIONS[direction]
            )[0]
            assert parts.mean() == pytest.approx(exact, abs=error)
            assert parts.mean() <= profile.delta(epsilon, direction) + error


def test_printed_closed_form_understates():
    # Theorem L2: the curve published for it understates the cost.
    # 1,000 rows (1, 1) without a ridge, and the neighbour's row (1, -1): residual -2.
    leverage, epsilon, delta = 1 / 1000, 1.0, 1e-6
    allowed = 15.89
    assert printed_posterior_epsilon(leverage, 4.0 * allowed, delta) == pytest.approx(
        1.0, abs=5e-3
    )
    assert printed_posterior_epsilon(leverage, 4.0 * allowed, delta) <= epsilon
    true = max(
        float(hockey_stick(np.array([epsilon]), np.array([leverage]), 4.0 * allowed, sign)[0])
        for sign in (1.0, -1.0)
    )
    assert true == pytest.approx(3.9e-6, rel=0.02)
    assert largest_squared_residual(leverage, epsilon, delta) / 4.0 == pytest.approx(
        13.8, abs=0.05
    )


@pytest.mark.parametrize("leverage", [1e-5, 1e-3, 0.03])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.3, 1e-6), (1.0, 1e-5), (8.0, 1e-10)])
def test_largest_squared_residual_meets_the_pair(leverage, epsilon, delta):
    found = largest_squared_residual(leverage, epsilon, delta)
    point = np.array([epsilon])
    if found == 0.0:
        assert max(c[0] for c in posterior_sample_deltas(point, leverage, 1e-9)) > delta
        return
    assert max(c[0] for c in posterior_sample_deltas(point, leverage, found)) <= delta
    assert max(c[0] for c in posterior_sample_deltas(point, leverage, found * 1.0001)) > delta
