"""Noise of perturbed problems: budgets, and draws of the stated distribution."""

import math

import numpy as np
import pytest
from scipy import stats

from skdptune.linear_model._solvers._noise import (
    additive_noise,
    check_budget,
    draw_noise,
    noise_generator,
)


def test_a_budget_is_epsilon_or_noise():
    assert check_budget(1.0, 1e-5, None, 1) == (1.0, 1e-5)
    assert check_budget(1.0, 1e-5, 3.0, 1) == (pytest.approx(math.nan, nan_ok=True), 1e-5)
    assert check_budget(math.inf, 0.0, None, 1)[0] == 600.0
    with pytest.raises(ValueError, match="noise_multiplier must be"):
        check_budget(None, 1e-5, 1e-3, 1)


@pytest.mark.parametrize("is_pure", [True, False])
def test_noise_has_the_stated_distribution(is_pure):
    rng = np.random.default_rng(0)
    draws = np.stack([draw_noise(rng, 3, 2.0, is_pure) for _ in range(4000)])
    norms = np.linalg.norm(draws, axis=1)
    distribution = stats.gamma(3, scale=2.0) if is_pure else stats.chi(3, scale=2.0)
    assert stats.kstest(norms, distribution.cdf).pvalue > 1e-4
    # No direction is preferred: the share of the first coordinate is uniform in three dimensions.
    assert stats.kstest(draws[:, 0] / norms, stats.uniform(-1, 2).cdf).pvalue > 1e-4


@pytest.mark.parametrize("width", [1, 3])
def test_pure_noise_has_a_gamma_norm_and_a_uniform_direction(width):
    rng = np.random.default_rng(0)
    draws = np.array([draw_noise(rng, width, 2.0, True) for _ in range(4000)])
    norms = np.linalg.norm(draws, axis=1)
    assert stats.kstest(norms, stats.gamma(width, scale=2.0).cdf).pvalue > 1e-3
    assert np.all(np.abs(draws.mean(axis=0)) < 5 * draws.std(axis=0) / np.sqrt(4000))


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_noise_meets_the_budget_of_all_releases(delta):
    multiplier, profile = additive_noise(2.0, delta, None, 3)
    assert 0.999 * 2.0 <= profile.epsilon(delta) <= 2.0
    given, same = additive_noise(math.nan, delta, multiplier, 3)
    assert given == multiplier
    assert same.epsilon(delta) == pytest.approx(profile.epsilon(delta), rel=1e-6)


def test_seeds_repeat_and_generators_are_used_themselves():
    assert noise_generator(3).normal() == noise_generator(3).normal()
    assert noise_generator(None).normal() != noise_generator(None).normal()
    generator, legacy = np.random.default_rng(0), np.random.RandomState(0)
    assert noise_generator(generator) is generator
    assert noise_generator(legacy).normal() != noise_generator(legacy).normal()
