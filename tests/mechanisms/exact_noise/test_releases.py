"""Releases: on their grid, of the stated distribution, and drawn alike whatever the values are."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from skdptune._secure_random import secure_generator
from skdptune.mechanisms._exact_noise import (
    NormalNoise,
    add_gaussian,
    add_laplace,
    add_spherical,
    draw_images,
    grid_of,
    spherical_spread,
)

ADD = {"gaussian": add_gaussian, "laplace": add_laplace, "spherical": add_spherical}


def grid_for(name, scale, width) -> float:
    return grid_of(spherical_spread(scale, width) if name == "spherical" else scale)


@pytest.mark.parametrize("name", ADD)
@pytest.mark.parametrize("width", [1, 3, 1000, 40_000])
@pytest.mark.parametrize("scale", [1e-5, 3.0])
def test_releases_lie_on_their_grid(name, width, scale) -> None:
    # Theorem E1.
    rng = np.random.default_rng(0)
    values = rng.normal(size=width) * rng.choice([0.0, 1e-3, 1.0, 1e6], width)
    steps = ADD[name](values, scale, rng) / grid_for(name, scale, width)
    np.testing.assert_array_equal(steps, np.rint(steps))


@pytest.mark.parametrize("name", ADD)
def test_noise_has_its_distribution(name) -> None:
    # Theorem E1, Theorem E2.
    rng = np.random.default_rng(1)
    values = np.full(30_000, 7.0)
    if name == "spherical":
        noise = np.stack([add_spherical(values[:3], 2.0, rng) - 7.0 for _ in range(4000)])
        norms = np.linalg.norm(noise, axis=1)
        assert stats.kstest(norms, stats.gamma(3, scale=2.0).cdf).pvalue > 1e-4
        # No direction is preferred: in three dimensions each share is uniform.
        for axis in range(3):
            assert stats.kstest(noise[:, axis] / norms, stats.uniform(-1, 2).cdf).pvalue > 1e-4
        assert spherical_spread(2.0, 3) == pytest.approx(noise.std(), rel=0.05)
        return
    distribution = {"gaussian": stats.norm, "laplace": stats.laplace}[name]
    noise = ADD[name](values, 2.0, rng) - 7.0
    assert stats.kstest(noise / 2.0, distribution.cdf).pvalue > 1e-4


@pytest.mark.parametrize("width", [1, 2, 50, 51])
def test_spherical_noise_has_a_gamma_distributed_norm(width) -> None:
    # Theorem E2.
    rng = np.random.default_rng(width)
    norms = [np.linalg.norm(add_spherical(np.zeros(width), 1.0, rng)) for _ in range(3000)]
    assert stats.kstest(norms, stats.gamma(width).cdf).pvalue > 1e-4


@pytest.mark.parametrize("name", ADD)
def test_what_is_drawn_does_not_depend_on_the_values(name) -> None:
    # Theorem E1: or later draws would differ between neighbouring data sets.
    states = []
    for value in (0.0, 1e-9, 1e300):
        rng = np.random.default_rng(2)
        ADD[name](np.full(20, value), 1e-3, rng)
        states.append(rng.bit_generator.state["state"])
    assert states[0] == states[1] == states[2]


def test_same_noise_for_neighbouring_values() -> None:
    # Theorem E1: given the noise, a value moves its release by its own distance, to one step.
    for name, add in ADD.items():
        first, second = (
            add(np.full(100, value), 1.0, np.random.default_rng(3)) for value in (0.25, 0.75)
        )
        assert np.abs(second - first - 0.5).max() <= grid_for(name, 1.0, 100)


@pytest.mark.parametrize("shape", [(), (1,), (3, 5), (7, 1)])
def test_portions_make_no_difference_to_shape_or_distribution(shape) -> None:
    noise = NormalNoise(2.0, np.random.default_rng(4), at_once=16)
    arrays = [noise.added_to(np.zeros(shape)) for _ in range(600)]
    assert arrays[0].shape == shape
    found = np.concatenate([array.ravel() for array in arrays])
    assert stats.kstest(found / 2.0, "norm").pvalue > 1e-4
    np.testing.assert_array_equal(found % grid_of(2.0), 0.0)


def test_values_are_left_as_they_were() -> None:
    values = np.ones(30)
    for add in ADD.values():
        add(values, 1.0, secure_generator())
    np.testing.assert_array_equal(values, 1.0)


def test_images_have_the_distribution_of_the_posterior() -> None:
    # Theorem E1.
    rng = np.random.default_rng(5)
    matrix = np.array([[2.0, 1.0], [0.0, 1.0]])
    draws = np.stack(
        [
            draw_images(np.array([1.0, -1.0]), matrix, np.array([0.5, 2.0]), rng, 2.0**-10)
            for _ in range(4000)
        ]
    )
    np.testing.assert_array_equal(draws * 1024, np.rint(draws * 1024))
    covariance = matrix @ np.diag([0.25, 4.0]) @ matrix.T
    np.testing.assert_allclose(np.cov(draws.T), covariance, atol=0.35)
    for axis, mean in ((0, 1.0), (1, -1.0)):
        expected = stats.norm(mean, covariance[axis, axis] ** 0.5)
        assert stats.kstest(draws[:, axis], expected.cdf).pvalue > 1e-4
