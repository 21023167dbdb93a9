"""Releases lie on grids and are rounded as in real numbers."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from skdptune.mechanisms._exact_noise import add_laplace
from skdptune.mechanisms._exact_noise._draws import (
    ChiFactor,
    ConstantFactor,
    LaplaceDraws,
    NormalDraws,
)
from skdptune.mechanisms._exact_noise._releases import RoundedSums, rounded_images, rounded_sums
from skdptune.mechanisms._shared import (
    NormalNoise,
    add_gaussian,
    add_spherical,
    draw_images,
    grid_of,
    spherical_spread,
)
from tests.accounting.cases import few

ADD = {"gaussian": add_gaussian, "laplace": add_laplace, "spherical": add_spherical}


def grid_for(name, scale, width) -> float:
    return grid_of(spherical_spread(scale, width) if name == "spherical" else scale)


@pytest.mark.parametrize(
    ("name", "width", "scale"), few(6, ADD, [1, 3, 1000, 40_000], [1e-5, 3.0])
)
def test_releases_lie_on_their_grid(name, width, scale) -> None:
    # Theorem E1: a release is real noise plus the value, rounded to a grid that no data choose.
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
        noise = np.stack([add_spherical(values[:3], 2.0, rng) - 7.0 for _ in range(2000)])
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


@pytest.mark.parametrize("width", [1, 50])
def test_spherical_noise_has_a_gamma_distributed_norm(width) -> None:
    # Theorem E2: noise of density exp(-norm) is a chi number times normal ones.
    rng = np.random.default_rng(width)
    norms = [np.linalg.norm(add_spherical(np.zeros(width), 1.0, rng)) for _ in range(800)]
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


def test_images_have_the_distribution_of_the_posterior() -> None:
    # Theorem E1: a release is real noise plus the value, rounded to a grid that no data choose.
    rng = np.random.default_rng(5)
    matrix = np.array([[2.0, 1.0], [0.0, 1.0]])
    draws = np.stack(
        [
            draw_images(np.array([1.0, -1.0]), matrix, np.array([0.5, 2.0]), rng, 2.0**-10)
            for _ in range(2000)
        ]
    )
    np.testing.assert_array_equal(draws * 1024, np.rint(draws * 1024))
    covariance = matrix @ np.diag([0.25, 4.0]) @ matrix.T
    np.testing.assert_allclose(np.cov(draws.T), covariance, atol=0.35)
    for axis, mean in ((0, 1.0), (1, -1.0)):
        expected = stats.norm(mean, covariance[axis, axis] ** 0.5)
        assert stats.kstest(draws[:, axis], expected.cdf).pvalue > 1e-4


# Rounding --------------------------------------------------------------------------------

LARGEST = float(np.finfo(np.float64).max)


def by_definition(values, factor, draws, grid) -> np.ndarray:
    """Round the middle of bounds that are as close as 400 binary places."""
    result = []
    scale = sum(factor.bounds(400)) / 2
    for place, value in enumerate(values):
        number = sum(draws.bounds(place, 400)) / 2
        steps = math.floor(
            (Fraction(float(value)) + scale * number) / Fraction(grid) + Fraction(1, 2)
        )
        result.append(float(steps * Fraction(grid)))
    return np.array(result)


@pytest.mark.parametrize(
    ("scale", "bits", "kind"),
    few(6, [1e-300, 3e-7, 1.0, 5e8, 1e200], [-2, 0, 20, 35, 60], [NormalDraws, LaplaceDraws]),
)
def test_sums_are_rounded_by_definition(kind, bits, scale) -> None:
    # Theorem E1: a release is real noise plus the value, rounded to a grid that no data choose.
    rng = np.random.default_rng(0)
    draws, grid = kind(40, rng), grid_of(scale, bits)
    values = scale * rng.normal(size=40) * 10.0 ** rng.integers(-20, 30, size=40)
    values[:20] = scale * rng.normal(size=20)
    factor = ConstantFactor(scale)
    found = rounded_sums(values, factor, draws, grid)
    np.testing.assert_array_equal(found, by_definition(values, factor, draws, grid))


@pytest.mark.parametrize("size", [1.0, 2.0**33, 2.0**45, 2.0**70])
def test_sums_next_to_the_middle_are_rounded_by_definition(size) -> None:
    # Theorem E1: with doubles only, results would be on either side.
    draws, factor, grid = NormalDraws(80, np.random.default_rng(1)), ConstantFactor(1.0), 0.25
    whole = grid * np.floor(size * np.arange(80))
    values = whole + 0.5 * grid - draws.values
    found = rounded_sums(values, factor, draws, grid)
    np.testing.assert_array_equal(found, by_definition(values, factor, draws, grid))
    if size == 1.0:
        # Half of them are rounded up: doubles see a tie, and it is none.
        assert 24 < np.sum(found > whole) < 56


def test_doubles_and_rational_numbers_agree() -> None:
    # Theorem E1: a release is real noise plus the value, rounded to a grid that no data choose.
    rng = np.random.default_rng(2)
    values, draws = rng.normal(size=300), NormalDraws(300, rng)
    factor = ChiFactor(0.3, 7, rng)
    found = rounded_sums(values, factor, draws, 2.0**-22)
    draws.doubtful = np.arange(300)
    np.testing.assert_array_equal(rounded_sums(values, factor, draws, 2.0**-22), found)


@pytest.mark.parametrize("value", [0.0, 0.3, 2.0**31 + 0.25])
def test_multiples_have_the_probabilities_of_their_cells(value) -> None:
    # Theorem E1: a release is real noise plus the value, rounded to a grid that no data choose.
    draws = NormalDraws(40_000, np.random.default_rng(4))
    found = rounded_sums(np.full(40_000, value), ConstantFactor(0.7), draws, 0.5)
    steps = (found - math.floor(value)) / 0.5
    assert np.array_equal(steps, np.rint(steps))
    cells = np.arange(-4, 6)
    edges = np.concatenate([[-np.inf], 0.5 * (cells[:-1] + 0.5), [np.inf]])
    expected = np.diff(stats.norm(value - math.floor(value), 0.7).cdf(edges))
    counts = [np.sum(np.clip(steps, -4, 5) == cell) for cell in cells]
    assert stats.chisquare(counts, 40_000 * expected).pvalue > 1e-4


def test_what_is_not_finite_and_what_overflows() -> None:
    # Theorem E1: a function of the value and the noise for all values.
    values = np.array([np.nan, np.inf, -np.inf, LARGEST, 1.0])
    draws = NormalDraws(5, np.random.default_rng(5))
    found = rounded_sums(values, ConstantFactor(1.0), draws, 2.0**-20)
    assert abs(found[0]) < 10.0
    assert found[1:4].tolist() == [LARGEST, -LARGEST, LARGEST]
    # A warning of an overflow, which is an error in these tests, would tell of the value.
    noise = NormalNoise(1.0, np.random.default_rng(5))
    assert noise.added_to(np.array([LARGEST, 1.0]))[0] == LARGEST
    wide = rounded_sums(values, ConstantFactor(1e308), draws, 2.0**1000)
    assert np.isfinite(wide).all()
    assert rounded_sums(np.zeros(0), ConstantFactor(1.0), draws, 1.0).shape == (0,)


def test_draws_are_used_from_the_first_that_is_asked_for() -> None:
    draws = NormalDraws(10, np.random.default_rng(6))
    all_of_them = rounded_sums(np.arange(10.0), ConstantFactor(1.0), draws, 2.0**-20)
    part = RoundedSums(ConstantFactor(1.0), draws, 2.0**-20).of(np.arange(4.0, 7.0), first=4)
    np.testing.assert_array_equal(part, all_of_them[4:7])


@pytest.mark.parametrize("bits", [0, 20, 45])
def test_images_are_rounded_by_definition(bits) -> None:
    # Theorem E1: a release is real noise plus the value, rounded to a grid that no data choose.
    rng = np.random.default_rng(7)
    centre, matrix = rng.normal(size=4), rng.normal(size=(6, 4))
    spreads, draws, grid = rng.random(4), NormalDraws(4, rng), 2.0**-bits
    found = rounded_images(centre, matrix, spreads, draws, grid)
    numbers = [sum(draws.bounds(place, 300)) / 2 for place in range(4)]
    exact = [
        Fraction(one) + Fraction(two) * number
        for one, two, number in zip(centre, spreads, numbers, strict=True)
    ]
    for row, result in zip(matrix, found, strict=True):
        image = sum(Fraction(one) * number for one, number in zip(row, exact, strict=True))
        steps = math.floor(image / Fraction(grid) + Fraction(1, 2))
        assert result == float(steps * Fraction(grid))


@pytest.mark.parametrize("scale", [5e-324, 1e-310, 1e-9, 1.0, 1.999, 1e308])
def test_grid_is_a_power_of_two_below_the_scale(scale) -> None:
    grid = grid_of(scale)
    assert math.frexp(grid)[0] == 0.5
    if scale > 1e-290:
        assert 2.0**20 <= scale / grid < 2.0**21
