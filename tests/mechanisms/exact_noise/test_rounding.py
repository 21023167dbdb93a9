"""Sums of values and noise are rounded as in real numbers, whatever the values are."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from skdptune.mechanisms._exact_noise import _releases, grid_of
from skdptune.mechanisms._exact_noise._draws import (
    ChiFactor,
    ConstantFactor,
    LaplaceDraws,
    NormalDraws,
)
from skdptune.mechanisms._exact_noise._releases import (
    RoundedSums,
    rounded_images,
    rounded_sums,
)

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


@pytest.mark.parametrize("scale", [1e-300, 3e-7, 1.0, 5e8, 1e200])
@pytest.mark.parametrize("bits", [-2, 0, 20, 35, 60])
@pytest.mark.parametrize("kind", [NormalDraws, LaplaceDraws])
def test_sums_are_rounded_by_definition(kind, bits, scale) -> None:
    # Theorem E1.
    rng = np.random.default_rng(0)
    draws, grid = kind(60, rng), grid_of(scale, bits)
    values = scale * rng.normal(size=60) * 10.0 ** rng.integers(-20, 30, size=60)
    values[:20] = scale * rng.normal(size=20)
    factor = ConstantFactor(scale)
    found = rounded_sums(values, factor, draws, grid)
    np.testing.assert_array_equal(found, by_definition(values, factor, draws, grid))


@pytest.mark.parametrize("size", [1.0, 2.0**33, 2.0**45, 2.0**70])
def test_sums_next_to_the_middle_are_rounded_by_definition(size) -> None:
    # Theorem E1: doubles alone would fall on either side.
    draws, factor, grid = NormalDraws(200, np.random.default_rng(1)), ConstantFactor(1.0), 0.25
    whole = grid * np.floor(size * np.arange(200))
    values = whole + 0.5 * grid - draws.values
    found = rounded_sums(values, factor, draws, grid)
    np.testing.assert_array_equal(found, by_definition(values, factor, draws, grid))
    if size == 1.0:
        # Half of them are rounded up: doubles see a tie, and it is none.
        assert 60 < np.sum(found > whole) < 140


def test_doubles_and_rational_numbers_agree() -> None:
    # Theorem E1.
    rng = np.random.default_rng(2)
    values, draws = rng.normal(size=300), NormalDraws(300, rng)
    factor = ChiFactor(0.3, 7, rng)
    found = rounded_sums(values, factor, draws, 2.0**-22)
    draws.doubtful = np.arange(300)
    np.testing.assert_array_equal(rounded_sums(values, factor, draws, 2.0**-22), found)


def test_slow_path_is_rare(monkeypatch) -> None:
    asked = []
    monkeypatch.setattr(
        _releases, "_exact_steps", lambda value, *rest: asked.append(value) or round(value)
    )
    rng = np.random.default_rng(3)
    for _ in range(10):
        rounded_sums(rng.normal(size=2**14), ConstantFactor(1.0), NormalDraws(2**14, rng), 2**-21)
    assert len(asked) <= 10


@pytest.mark.parametrize("value", [0.0, 0.3, 2.0**31 + 0.25])
def test_multiples_have_the_probabilities_of_their_cells(value) -> None:
    # Theorem E1.
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
    # Theorem E1.
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
