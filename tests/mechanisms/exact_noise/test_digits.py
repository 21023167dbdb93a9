"""Real random numbers: bounds hold the number that all further digits lead to."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from skdptune.mechanisms._exact_noise._draws import LazyPoint, LazyUniforms, root

MORE = 300


@pytest.fixture(autouse=True)
def _many_digits():
    with mpmath.workprec(1500):
        yield


def digits_from(seed):
    rng = np.random.default_rng(seed)
    return lambda count: int.from_bytes(rng.bytes(count // 8), "little")


def lies_within(bounds, number, places) -> bool:
    """Return whether bounds hold a number that is known far better than they are apart."""
    slack = mpmath.mpf(2) ** -(places + MORE // 2)
    low, high = (mpmath.mpf(end.numerator) / end.denominator for end in bounds)
    return low <= number + slack and number - slack <= high


@pytest.mark.parametrize("places", [30, 56, 200])
@pytest.mark.parametrize("first", [0, 1, 2**40, 2**63, 2**64 - 1])
def test_logarithms_are_within_their_bounds(first, places) -> None:
    # Theorem E1.
    lazy = LazyUniforms([first, 12345678901234567890], 64, digits_from(0))
    bounds = lazy.minus_log_product(places)
    assert 0 <= bounds[1] - bounds[0] <= Fraction(1, 2**places)
    lazy.minus_log_product(places + MORE)
    unit = mpmath.mpf(2) ** lazy._n_digits
    number = -sum(mpmath.log((mpmath.mpf(k) + 0.5) / unit) for k in lazy._numerators)
    assert lies_within(bounds, number, places)


@pytest.mark.parametrize("places", [30, 56, 200])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        (2**60, -(2**61)),
        (-1, 0),
        (0, 2**63 - 1),
        (2**30, -(2**33)),
        (2**62, int(3**0.5 * 2**62) - 2**20),
        (-(2**63), 0),
    ],
)
def test_normal_numbers_are_within_their_bounds(first, second, places) -> None:
    # Theorem E1.
    point = LazyPoint(first, second, 63, digits_from(1))
    assert point.is_inside()
    bounds = [point.normal(axis, places) for axis in (0, 1)]
    point.normal(0, places + MORE)
    unit = mpmath.mpf(2) ** point._n_digits
    u, v = ((mpmath.mpf(k) + 0.5) / unit for k in point._point)
    factor = mpmath.sqrt(-2 * mpmath.log(u * u + v * v) / (u * u + v * v))
    for (low, high), number in zip(bounds, (u * factor, v * factor), strict=True):
        assert 0 <= high - low <= Fraction(1, 2**places)
        assert lies_within((low, high), number, places)


def test_sides_of_the_circle_are_told_apart_by_further_digits() -> None:
    # Theorem E1: a cell that begins on the circle lies outside of it.
    assert not LazyPoint(2**63, 0, 63, digits_from(0)).is_inside()
    # What is left of 1 - 2^-63 takes a second coordinate up to about 2^-31.
    edge = 2**63 - 1
    assert LazyPoint(edge, 0, 63, lambda count: 0).is_inside()
    assert not LazyPoint(edge, 2**33, 63, lambda count: 0).is_inside()
    # (-1, 0) begins outside, and ends inside with the first digit that is not 0.
    for digits, expected in (([0, 1 << 40], True), ([0, 1 << 100], True)):
        tape = iter(digits)
        assert LazyPoint(-(2**63), 0, 63, lambda count: next(tape)).is_inside() is expected  # noqa: B023


def test_digits_are_drawn_once_and_only_when_needed() -> None:
    drawn = []

    def draw(count):
        drawn.append(count)
        return 0

    point = LazyPoint(2**61, 2**61, 63, draw)
    rough = point.normal(0, 40)
    assert drawn == []
    fine = point.normal(0, 90)
    assert drawn == [256]
    point.normal(1, 90)
    assert drawn == [256]
    assert rough[0] <= fine[0] <= fine[1] <= rough[1]


@pytest.mark.parametrize("number", [Fraction(2), Fraction(1, 3), Fraction(10) ** 40])
def test_roots_are_within_their_bounds(number) -> None:
    low, high = root((number, number), 100)
    assert low**2 <= number <= high**2
    assert high - low <= low / 2**100
