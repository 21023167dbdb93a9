import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdptune.accounting._mechanisms._random_allocation import GridVariable, added

STEP = 0.07


def variable(numbers, masses, step=STEP, zero=0.0, excess=0.0):
    return GridVariable(
        step, np.array(numbers), np.array(masses, dtype=np.float64), zero, excess, 0.0
    )


def call(of, strike):
    """Return the bound on ``E[(T - strike)_+]``."""
    return float(of.masses @ np.maximum(of.points - strike, 0.0)) + of.excess


def put(of, strike):
    """Return the bound on ``E[(strike - T)_+]``."""
    return float(of.masses @ np.maximum(strike - of.points, 0.0)) + of.zero * strike


def exact_sums(first, second):
    """Return the values and the masses of a sum, pair by pair, what is at 0 included."""
    values, masses = (
        (np.append(of.points, 0.0), np.append(of.masses, of.zero)) for of in (first, second)
    )
    pairs = itertools.product(zip(*values, strict=True), zip(*masses, strict=True))
    return np.array([(x + y, p * q) for (x, p), (y, q) in pairs]).T


weights = st.floats(1e-6, 1.0)


@st.composite
def variables(draw):
    numbers = draw(st.lists(st.integers(-30, 40), min_size=1, max_size=8, unique=True))
    masses = np.array(draw(st.lists(weights, min_size=len(numbers), max_size=len(numbers))))
    zero = draw(st.sampled_from([0.0, 1e-3]))
    return variable(sorted(numbers), masses / masses.sum() * (1.0 - zero), zero=zero)


@settings(deadline=None)
@given(variables(), variables())
def test_sums_bound_every_call_and_put(first, second):
    # Theorem M6.
    for one, other in ((first, second), (first, first)):
        values, masses = exact_sums(one, other)
        total = added(one, other)
        for strike in np.quantile(values, [0.0, 0.2, 0.5, 0.8, 1.0]):
            assert call(total, strike) >= masses @ np.maximum(values - strike, 0.0) - 1e-12
            assert put(total, strike) >= masses @ np.maximum(strike - values, 0.0) - 1e-12
        # The mean stays, but for what was lowered to 0 and is counted as cut off.
        assert total.mean + total.excess == pytest.approx(masses @ values, rel=1e-12)


@settings(deadline=None)
@given(variables(), variables())
def test_sums_are_as_close_as_the_grid(first, second):
    values, masses = exact_sums(first, second)
    total = added(first, second)
    spread = total.masses @ total.points**2 - masses @ values**2
    # A split over a cell of width w adds at most a quarter of its square.
    width = math.expm1(STEP)
    assert spread <= 0.25 * width**2 * (masses @ values**2) + 1e-12


def test_ranges_that_do_not_overlap_add_up():
    first, second = variable([-400, -399], [0.5, 0.5]), variable([0, 1], [0.25, 0.75])
    for total in (added(first, second), added(second, first)):
        assert total.masses.sum() == pytest.approx(1.0)
        assert total.mean == pytest.approx(first.mean + second.mean, rel=1e-14)


@pytest.mark.parametrize("tail", [1e-12, 1e-3, 0.3])
def test_ends_are_cut_off_safely(tail):
    # Theorem M6.
    numbers = np.arange(-60, 61)
    masses = np.exp(-0.5 * (numbers * 0.1) ** 2)
    whole = variable(numbers, masses / masses.sum())
    cut = whole.trimmed(tail)
    assert cut.numbers.size < whole.numbers.size or tail == 1e-12
    assert cut.zero <= tail and cut.excess <= tail
    for strike in np.append(0.0, whole.points):
        assert call(cut, strike) >= call(whole, strike) * (1.0 - 1e-13)
        assert put(cut, strike) >= put(whole, strike) * (1.0 - 1e-13)


@settings(deadline=None)
@given(variables(), st.floats(0.01, 30.0))
def test_fewer_points_bound_every_call_and_put(of, spacing):
    # Theorem M6.
    thin = of.thinned(spacing)
    assert set(thin.numbers) <= set(of.numbers)
    assert thin.masses.sum() == pytest.approx(of.masses.sum(), rel=1e-13)
    assert thin.mean == pytest.approx(of.mean, rel=1e-13)
    for strike in of.points:
        assert call(thin, strike) >= call(of, strike) - 1e-13 * of.mean
        assert put(thin, strike) >= put(of, strike) - 1e-13 * strike


def test_points_stay_where_they_are_needed():
    numbers = np.arange(-4000, 4001)
    masses = np.exp(-0.5 * (numbers / 400.0) ** 2)
    dense = variable(numbers, masses / masses.sum(), step=1e-3)
    thin = dense.thinned(0.05)
    # Both scores run over 20 deviations, a step of 1e-3 being a 400th.
    assert 500 < thin.numbers.size < 900
    middle = thin.numbers[np.abs(thin.numbers) < 800]
    assert np.diff(middle).max() <= 0.05 * 400


def test_a_finer_grid_holds_the_same_points():
    coarse = variable([-3, 0, 5], [0.2, 0.3, 0.5])
    fine = coarse.on_step(STEP / 8)
    np.testing.assert_allclose(fine.points, coarse.points, rtol=1e-15)
    assert fine.masses is coarse.masses
