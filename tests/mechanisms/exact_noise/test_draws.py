"""Standard random numbers near real ones, and their digits."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats

from skdptune.mechanisms._exact_noise import _draws
from skdptune.mechanisms._exact_noise._draws import (
    ERROR,
    ChiFactor,
    LaplaceDraws,
    LazyPoint,
    LazyUniforms,
    NormalDraws,
    further_digits,
)
from tests.accounting.cases import few


class Words:
    """A generator whose 64-bit outputs are given."""

    def __init__(self, *blocks) -> None:
        self._blocks = [np.asarray(block) for block in blocks]
        self._rng = np.random.default_rng(0)

    def integers(self, low, high, size, dtype):
        if dtype == np.uint8:
            return np.zeros(size, dtype=np.uint8)
        found = self._blocks.pop(0) if self._blocks else None
        if found is None:
            return self._rng.integers(low, high, size=size, dtype=dtype)
        full = self._rng.integers(low, high, size=size, dtype=dtype)
        full[..., : found.shape[-1]] = found if found.dtype == np.uint64 else found.view(np.uint64)
        return full

    def bytes(self, count):
        return self._rng.bytes(count)


def distance(draws, place) -> float:
    low, high = draws.bounds(place, 100)
    value = Fraction(float(draws.values[place]))
    return float(max(abs(value - low), abs(value - high)))


@pytest.mark.parametrize("kind", [NormalDraws, LaplaceDraws])
def test_draws_have_their_distribution(kind) -> None:
    # Theorem E1: a release is real noise plus the value, rounded to a grid that no data choose.
    expected = stats.norm if kind is NormalDraws else stats.laplace
    values = kind(100_001, np.random.default_rng(0)).values
    assert values.shape == (100_001,)
    assert stats.kstest(values, expected.cdf).pvalue > 1e-4
    # Neither sign and size nor the two of a pair hang together.
    assert abs(np.corrcoef(values[:50_000], values[50_001:])[0, 1]) < 0.02
    assert abs(np.corrcoef(np.abs(values[:50_000]), np.abs(values[50_001:]))[0, 1]) < 0.02


@pytest.mark.parametrize("kind", [NormalDraws, LaplaceDraws])
def test_doubles_are_near_the_real_numbers(kind) -> None:
    # Theorem E1: a release is real noise plus the value, rounded to a grid that no data choose.
    draws = kind(400, np.random.default_rng(1))
    errors = [distance(draws, place) for place in range(400)]
    assert draws.doubtful.size == 0
    assert max(errors) <= 2.0**-47


# Points near the circle and near its centre: where doubles are least precise.
RADII = [1.0 - 2.0**-k for k in (10, 15, 17, 17.9, 18.1, 20, 30, 40, 49, 51, 53)]
RADII += [2.0**-k for k in (5, 10, 12.9, 13.1, 20, 30, 50, 62)]


def test_doubles_are_near_the_real_numbers_at_the_edges() -> None:
    # Theorem E1: w beyond 1 - 2^-18 or below 2^-26 is listed as doubtful.
    angles = np.linspace(0.01, 6.2, 40)
    r, a = (grid.ravel() for grid in np.meshgrid(np.sqrt(RADII), angles))
    x, y = ((part * 2.0**63).astype(np.int64) for part in (r * np.cos(a), r * np.sin(a)))
    draws = NormalDraws(2 * r.size, Words(np.stack([x, y])))
    doubtful = set(draws.doubtful.tolist())
    assert len(doubtful) > 100
    checked = [place for place in range(draws.values.size) if place not in doubtful]
    assert max(distance(draws, place) for place in checked) <= 0.5 * ERROR
    assert max(abs(draws.values[checked])) <= draws.largest
    for place in list(doubtful)[:50]:
        low, high = draws.bounds(place, 60)
        assert 0 <= high - low <= Fraction(1, 2**60)


def test_points_on_the_border_are_settled_by_their_digits() -> None:
    # Theorem E1: digits that decided about a point stay those of its numbers.
    border = np.array([[2**61, 2**63 - 1, -(2**63), 2**62], [2**61, 0, 0, 2**62]])
    draws = NormalDraws(8, Words(border))
    (_, words, places), *_ = draws._origins
    kept = [tuple(column) for column in words[:, places].T.tolist()]
    # 1 - 2^-63 and a second coordinate below 2^-63: inside whatever follows, which doubles miss.
    assert kept[:2] == [(2**61, 2**61), (2**63 - 1, 0)]
    assert (2**62, 2**62) in kept
    assert draws.values.size == 8
    settled = draws._lazy[1]
    assert settled._squared_distance()[1] <= 1
    draws.bounds(1, 200)
    assert draws._lazy[1] is settled
    assert {1, 5} <= set(draws.doubtful.tolist())
    for pair in draws._lazy:
        assert draws._lazy[pair]._point[0] >> (draws._lazy[pair]._n_digits - 63) == kept[pair][0]


def test_least_words_of_a_laplace_number_are_doubtful() -> None:
    # Theorem E1: a release is real noise plus the value, rounded to a grid that no data choose.
    draws = LaplaceDraws(4, Words(np.array([0, 1, 2**44 - 1, 2**44])))
    assert draws.doubtful.tolist() == [0, 1, 2]
    assert distance(draws, 3) <= 0.5 * ERROR
    assert 13.0 < abs(draws.values[3]) <= draws.largest
    low, high = draws.bounds(0, 60)
    # A uniform number below 2^-64.
    assert low > 44
    assert high - low <= Fraction(1, 2**60)


@pytest.mark.parametrize("degrees", [1, 2, 3, 100, 5001])
def test_factors_are_roots_of_chi_squared_numbers(degrees) -> None:
    # Theorem E2: noise of density exp(-norm) is a chi number times normal ones.
    rng = np.random.default_rng(degrees)
    count = 500 if degrees < 1000 else 100
    factors = [ChiFactor(3.0, degrees, rng) for _ in range(count)]
    values = np.array([factor.value for factor in factors])
    assert stats.kstest((values / 3.0) ** 2, stats.chi2(degrees).cdf).pvalue > 1e-4
    for factor in factors[:5]:
        low, high = factor.bounds(100)
        assert 0 < high - low <= factor.value * 2.0**-95
        error = float(max(abs(Fraction(factor.value) - end) for end in (low, high)))
        assert error <= factor.relative_error * float(low)
        assert factor.relative_error < 2.0**-35


@pytest.mark.parametrize("word", [0, 5, 2**64 - 1])
def test_factors_of_few_digits_are_computed_with_more(word) -> None:
    # Theorem E2: a word of 0 or of ones says next to nothing about the logarithm.
    factor = ChiFactor(1.0, 2, Words(np.array([word], dtype=np.uint64)))
    low, high = factor.bounds(100)
    assert factor.relative_error == 2.0**-50
    assert abs(factor.value - float(low)) <= 2.0**-50 * factor.value
    assert 0 < high - low <= low * 2.0**-95


def test_logarithms_are_as_precise_as_assumed() -> None:
    # Assumption E0: the source of randomness, and the precision of logarithms.
    rng = np.random.default_rng(0)
    numbers = np.concatenate([rng.random(2000), 2.0 ** -rng.uniform(0, 64, 2000)])
    numbers = np.concatenate([numbers, 1.0 - 2.0 ** -rng.uniform(1, 53, 2000)])
    numbers = numbers[numbers < 1.0]
    with mpmath.workprec(200):
        for number, found in zip(numbers, np.log(numbers), strict=True):
            true = mpmath.log(float(number))
            assert abs(float(found) / true - 1) <= _draws._LOG_ERROR / 8


def test_further_digits_leave_later_draws_alone() -> None:
    # Theorem E1: a release is real noise plus the value, rounded to a grid that no data choose.
    first, second = np.random.default_rng(0), np.random.default_rng(0)
    asked, silent = further_digits(first), further_digits(second)
    assert [asked(128) for _ in range(3)] != [0, 0, 0]
    assert first.random() == second.random()
    # The same digits, whenever they are asked for.
    again = further_digits(np.random.default_rng(0))
    assert again(128) == silent(128)


# Digits ----------------------------------------------------------------------------------

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


@pytest.mark.parametrize(
    ("first", "places"), few(5, [0, 1, 2**40, 2**63, 2**64 - 1], [30, 56, 200])
)
def test_logarithms_are_within_their_bounds(first, places) -> None:
    # Theorem E1: a release is real noise plus the value, rounded to a grid that no data choose.
    lazy = LazyUniforms([first, 12345678901234567890], 64, digits_from(0))
    bounds = lazy.minus_log_product(places)
    assert 0 <= bounds[1] - bounds[0] <= Fraction(1, 2**places)
    lazy.minus_log_product(places + MORE)
    unit = mpmath.mpf(2) ** lazy._n_digits
    number = -sum(mpmath.log((mpmath.mpf(k) + 0.5) / unit) for k in lazy._numerators)
    assert lies_within(bounds, number, places)


@pytest.mark.parametrize(
    ("first", "second", "places"),
    [
        (2**60, -(2**61), 30),
        (-1, 0, 56),
        (0, 2**63 - 1, 200),
        (2**30, -(2**33), 56),
        (2**62, int(3**0.5 * 2**62) - 2**20, 200),
        (-(2**63), 0, 30),
    ],
)
def test_normal_numbers_are_within_their_bounds(first, second, places) -> None:
    # Theorem E1: a release is real noise plus the value, rounded to a grid that no data choose.
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
