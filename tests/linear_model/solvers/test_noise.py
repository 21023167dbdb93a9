"""Noise of perturbed problems: budgets, and draws of the stated distribution."""

import math

import numpy as np
import pytest
from scipy import stats

from skdptune._secure_random import SecureGenerator
from skdptune.linear_model._solvers import _noise
from skdptune.linear_model._solvers._noise import (
    add_noise,
    additive_noise,
    check_budget,
    draw_linear_term,
    linear_term_error,
    noise_generator,
    noise_grid,
)


def test_a_budget_is_epsilon_or_noise():
    assert check_budget(1.0, 1e-5, None, 1) == (1.0, 1e-5)
    assert check_budget(1.0, 1e-5, 3.0, 1) == (pytest.approx(math.nan, nan_ok=True), 1e-5)
    assert check_budget(math.inf, 0.0, None, 1)[0] == 600.0
    with pytest.raises(ValueError, match="noise_multiplier must be"):
        check_budget(None, 1e-5, 1e-3, 1)


@pytest.mark.parametrize("epsilon", [5e-324, 1e-310, 1e-10])
def test_noise_beyond_the_largest_is_refused(epsilon):
    with pytest.raises(ValueError, match="epsilon must be at least 2e-09; got"):
        additive_noise(epsilon, 0.0, None, 2)


@pytest.mark.parametrize("is_pure", [True, False])
def test_noise_has_the_stated_distribution(is_pure):
    # Theorem E2.
    rng = np.random.default_rng(0)
    values = np.array([1.0, -2.0, 0.0])
    draws = np.stack([add_noise(values, 2.0, is_pure, rng) for _ in range(4000)]) - values
    norms = np.linalg.norm(draws, axis=1)
    distribution = stats.gamma(3, scale=2.0) if is_pure else stats.chi(3, scale=2.0)
    assert stats.kstest(norms, distribution.cdf).pvalue > 1e-4
    # No direction is preferred: the share of the first coordinate is uniform in three dimensions.
    assert stats.kstest(draws[:, 0] / norms, stats.uniform(-1, 2).cdf).pvalue > 1e-4


@pytest.mark.parametrize("width", [1, 3])
def test_pure_noise_has_a_gamma_norm_and_a_uniform_direction(width):
    # Theorem E2.
    rng = np.random.default_rng(0)
    draws = np.array([add_noise(np.zeros(width), 2.0, True, rng) for _ in range(4000)])
    norms = np.linalg.norm(draws, axis=1)
    assert stats.kstest(norms, stats.gamma(width, scale=2.0).cdf).pvalue > 1e-3
    assert np.all(np.abs(draws.mean(axis=0)) < 5 * draws.std(axis=0) / np.sqrt(4000))


@pytest.mark.parametrize("is_pure", [True, False])
def test_noise_is_on_the_grid_that_its_plan_states(is_pure):
    # Theorem E1.
    rng = np.random.default_rng(1)
    for scale in (1e-6, 3.0, 1e7):
        values = rng.normal(size=500) * rng.choice([0.0, 1e-3, 1e6], 500)
        steps = add_noise(values, scale, is_pure, rng) / noise_grid(scale, 500, is_pure)
        np.testing.assert_array_equal(steps, np.rint(steps))


@pytest.mark.parametrize("is_pure", [True, False])
@pytest.mark.parametrize("width", [1, 40])
def test_linear_terms_are_near_noise_in_real_numbers(is_pure, width, monkeypatch):
    # Theorem M2: the same draws on a finer grid are the same real numbers, rounded less.
    rough = draw_linear_term(width, 2.0, is_pure, np.random.default_rng(2))
    monkeypatch.setattr(_noise, "_FINE_BITS", 60)
    fine = draw_linear_term(width, 2.0, is_pure, np.random.default_rng(2))
    least = linear_term_error(width, 2.0, is_pure)
    monkeypatch.undo()
    bound = linear_term_error(width, 2.0, is_pure)
    assert 0.0 < np.linalg.norm(rough - fine) <= bound + least
    assert bound <= 1e-9 * (width if is_pure else math.sqrt(width))


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_noise_meets_the_budget_of_all_releases(delta):
    multiplier, profile = additive_noise(2.0, delta, None, 3)
    assert 0.999 * 2.0 <= profile.epsilon(delta) <= 2.0
    given, same = additive_noise(math.nan, delta, multiplier, 3)
    assert given == multiplier
    assert same.epsilon(delta) == pytest.approx(profile.epsilon(delta), rel=1e-6)


def test_seeds_repeat():
    assert noise_generator(3).normal() == noise_generator(3).normal()
    # Assumption E0.
    assert noise_generator(None).random() != noise_generator(None).random()
    assert isinstance(noise_generator(None), SecureGenerator)
