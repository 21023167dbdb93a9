"""The curves of a minimum under a random linear term for persons, against oracles."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from skdptune.accounting._shared import gaussian_delta, persons_minimum_curves

EPSILONS = np.array([0.0, 0.01, 0.1, 0.3, 1.0, 2.0, 5.0])


def curves(curvature, shift, epsilons=EPSILONS):
    """Return the curves of a loss whose curvature is the same at every slope."""
    return persons_minimum_curves(np.ones(1), np.full(1, curvature), shift, epsilons)


def followed(curvature, shift, starts):
    """Return powers after one unit of time, by the fourth-order rule of Runge and Kutta."""

    def speed(power):
        power = np.minimum(power, 1.0)
        rest = shift * stats.norm.pdf(stats.norm.ppf(power))
        return curvature * np.minimum(power, 0.5) + rest

    power, step = stats.norm.cdf(starts), 1e-2
    for _ in range(100):
        one = speed(power)
        two = speed(power + step / 2.0 * one)
        three = speed(power + step / 2.0 * two)
        four = speed(power + step * three)
        power = power + step / 6.0 * (one + 2.0 * two + 2.0 * three + four)
    return np.minimum(power, 1.0)


@pytest.mark.parametrize("shift", [1e-3, 0.27, 1.0, 5.0])
def test_without_curvature_the_cost_is_that_of_normal_noise(shift):
    # Theorem M8: objective perturbation where one person has any number of rows.
    remove, add = curves(0.0, shift)
    gauss = gaussian_delta(shift, EPSILONS)
    far = EPSILONS >= shift**2 / 2.0
    for found in (remove, add):
        assert np.all(found >= gauss * (1.0 - 1e-12))
        assert np.all(found <= min(shift / math.sqrt(2.0 * math.pi), 1.0))
    np.testing.assert_allclose(add[far], gauss[far], rtol=1e-9)
    np.testing.assert_allclose(remove[far], gauss[far], rtol=1e-3, atol=1e-280)


@pytest.mark.parametrize(
    ("curvature", "shift"), [(0.06, 0.27), (0.5, 0.3), (0.5, 1.0), (2.0, 1.0)]
)
def test_curves_match_a_plain_solver(curvature, shift):
    # Theorem M8. The oracle's supremum over starts is a little too low.
    starts = np.linspace(-9.0, 0.0, 401)
    powers, levels = followed(curvature, shift, starts), stats.norm.cdf(starts)
    epsilons = curvature + shift * np.array([1.0, 2.0, 3.0, 4.0])
    oracle = [np.max(powers - math.exp(epsilon) * levels) for epsilon in epsilons]
    remove, _ = curves(curvature, shift, epsilons)
    assert np.all(remove >= np.multiply(oracle, 1.0 - 1e-6))
    assert np.all(remove <= np.multiply(oracle, 1.05))


@pytest.mark.parametrize("curvature", [0.0, 0.06, 0.5, 2.0])
@pytest.mark.parametrize("shift", [0.05, 0.3, 2.0])
def test_curves_are_within_the_closed_form(curvature, shift):
    # Theorem M8: exp(K) times the curve of normal noise, moved by K.
    epsilons = curvature + np.linspace(0.0, 4.0, 41) * shift
    remove, add = curves(curvature, shift, epsilons)
    closed = math.exp(curvature) * gaussian_delta(shift, epsilons - curvature)
    most = min(shift / math.sqrt(2.0 * math.pi), 1.0)
    assert np.all(remove <= 1.01 * np.minimum(closed, most) + 1e-200)
    far = epsilons >= shift**2 / 2.0
    assert np.all(add[far] <= closed[far] * (1.0 + 1e-9))
    assert np.all(add <= most)


@pytest.mark.parametrize("curvature", [1e-9, 0.3, 20.0])
@pytest.mark.parametrize("shift", [1e-9, 1e-3, 0.3, 30.0])
def test_curves_at_the_edges(curvature, shift):
    # Theorem M8: objective perturbation where one person has any number of rows.
    epsilons = np.append(np.linspace(0.0, 30.0, 301), 500.0)
    for found in curves(curvature, shift, epsilons):
        assert np.all(np.isfinite(found))
        assert np.all((found >= 0.0) & (found <= 1.0))
        assert gaussian_delta(shift, np.zeros(1))[0] * (1.0 - 1e-6) <= found[0]
        assert found[0] <= min(shift / math.sqrt(2.0 * math.pi), 1.0)
        assert np.all(np.diff(found) <= 1e-12)
    # More curvature or more shift never costs less.
    more = curves(1.1 * curvature, 1.1 * shift, epsilons)
    for found, larger in zip(curves(curvature, shift, epsilons), more, strict=True):
        assert np.all(larger >= found * (1.0 - 1e-2) - 1e-15)
