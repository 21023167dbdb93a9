"""Sums with Gaussian noise: what they cost, and what is solved on them."""

import math

import numpy as np
import pytest

from skdptune.accounting import PrivacyProfile
from skdptune.linear_model._regression._noisy_statistics import (
    noisy_sums_plan,
    release_sums,
    solve_noisy,
)
from tests.linear_model.regression_examples import problem_of

rng = np.random.default_rng(0)
X = rng.uniform(-1.0, 1.0, size=(3000, 3))
Y = np.clip(X @ [0.5, -0.4, 0.1], -1.0, 1.0)


@pytest.mark.parametrize("releases", [2, 3])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.2, 1e-6), (1.0, 1e-5), (10.0, 1e-9)])
def test_cost_is_that_of_the_gaussian_releases(releases, epsilon, delta):
    # Theorem L8.
    plan = noisy_sums_plan(epsilon, delta, releases)
    composed = releases * PrivacyProfile.gaussian(plan.shift)
    assert composed.epsilon(delta) == pytest.approx(plan.profile.epsilon(delta), rel=1e-3)
    assert 0.998 * epsilon <= plan.profile.epsilon(delta) <= epsilon


def test_released_sums_have_the_planned_noise():
    problem, rng, shift = problem_of(X, Y), np.random.default_rng(0), 0.5
    grams, moments = zip(*(release_sums(problem, shift, rng) for _ in range(4000)), strict=True)
    grams, moments = np.array(grams), np.array(moments)
    np.testing.assert_array_equal(grams, grams.transpose(0, 2, 1))
    scale = problem.radius2 / shift
    np.testing.assert_allclose(grams.std(axis=0), scale, rtol=0.06)
    np.testing.assert_allclose(grams.mean(axis=0), problem.gram, atol=5 * scale / 60)
    np.testing.assert_allclose(moments.std(axis=0), math.sqrt(problem.radius2) / shift, rtol=0.06)
    flat = grams[:, *np.triu_indices(3)]
    assert np.abs(np.corrcoef(flat.T) - np.eye(6)).max() < 0.1


def test_upper_triangle_moves_by_the_squared_norm_at_most():
    # Theorem L8.
    for seed in range(50):
        z = np.random.default_rng(seed).normal(size=4)
        outer = np.outer(z, z)
        assert np.linalg.norm(outer[np.triu_indices(4)]) <= z @ z + 1e-12


def test_noise_that_makes_eigenvalues_negative_does_no_harm():
    gram = np.diag([5.0, -3.0])
    np.testing.assert_allclose(solve_noisy(gram, np.array([7.0, 2.0]), 2.0), [1.0, 1.0])
    assert np.isfinite(solve_noisy(-np.eye(2), np.ones(2), 0.0)).all()
