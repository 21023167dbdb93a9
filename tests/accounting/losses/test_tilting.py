"""Exponential tilting: against plain sums, and Chernoff's bound against tails that are known."""

import math

import numpy as np
import pytest
from scipy import stats

from skdptune.accounting._losses._convolution import Cumulant, tilted
from skdptune.accounting._losses._distribution import LossDistribution


def distribution(masses, lowest=-2):
    masses = np.array(masses, dtype=float)
    return LossDistribution(0.25, lowest, masses / masses.sum(), 0.0)


SMALL = distribution([0.1, 0.2, 0.4, 0.3])
OTHER = distribution([0.5, 0.0, 0.5], lowest=3)
NORMAL = distribution(stats.norm.pdf(np.linspace(-8.0, 8.0, 9001)), lowest=-4500)


@pytest.mark.parametrize("slope", [-3.0, -0.1, 0.0, 0.2, 5.0])
def test_tilted_masses_are_those_times_an_exponential(slope):
    result = tilted([(SMALL, 3), (OTHER, 1)], slope)
    log_scale = 0.0
    for weights, (part, count) in zip(result.weights, [(SMALL, 3), (OTHER, 1)], strict=True):
        places = np.arange(part.lowest, part.lowest + part.masses.size)
        raw = part.masses * np.exp(slope * places)
        np.testing.assert_allclose(weights, raw / raw.sum(), rtol=1e-13)
        log_scale += count * math.log(raw.sum())
    assert result.log_scale == pytest.approx(log_scale, rel=1e-13, abs=1e-13)
    back = result.back(2, 4)
    np.testing.assert_allclose(np.log(back), log_scale - slope * np.arange(2, 6), atol=1e-12)
    assert 0.0 < result.error < 1e-13


def test_tilting_far_neither_overflows_nor_loses_its_scale():
    result = tilted([(NORMAL, 1000)], 0.5)
    assert np.isfinite(result.weights[0]).all() and result.weights[0].sum() == pytest.approx(1.0)
    assert math.isfinite(result.log_scale) and result.error < 1e-8


@pytest.mark.parametrize("count", [1, 50, 10**6])
@pytest.mark.parametrize("exponent", [2.0, 10.0, 22.0])
def test_chernoffs_bound_is_above_the_normal_tail_and_near_it(count, exponent):
    parts = [(NORMAL, count)]
    cumulant = Cumulant(parts)
    spread = NORMAL.masses.size / 16.0 * math.sqrt(count)
    assert cumulant.deviation == pytest.approx(spread, rel=1e-2)
    for sign in (1.0, -1.0):
        tilt = tilted(parts, cumulant.slope_of_tail(exponent, sign))
        place = tilt.place_of_tail(math.exp(-exponent))
        assert sign * place == pytest.approx(spread * math.sqrt(2.0 * exponent), rel=2e-2)
        assert tilt.tail(place) == pytest.approx(math.exp(-exponent), rel=1e-6)
        assert tilt.tail(place) >= stats.norm.sf(sign * place / spread)


def test_a_slope_moves_the_mean():
    parts = [(NORMAL, 100)]
    for place in (5e3, 2e4):
        weights = tilted(parts, Cumulant(parts).slope_of_mean(place)).weights[0]
        mean = 100.0 * float(weights @ np.arange(-4500, 4501))
        assert mean == pytest.approx(place, rel=0.05)


def test_bounded_losses_have_a_largest_exponent():
    cumulant = Cumulant([(SMALL, 4), (OTHER, 1)])
    assert cumulant.largest_exponent() == pytest.approx(-4 * math.log(0.3) - math.log(0.5))
    assert cumulant.largest_exponent(-1.0) == pytest.approx(-4 * math.log(0.1) - math.log(0.5))


def test_long_distributions_are_lumped_where_nothing_happens():
    """A spike beside a long tail keeps its shape."""
    masses = np.full(50_000, 1e-12)
    masses[:5] = [0.1, 0.5, 0.2, 0.1, 0.1]
    part = distribution(masses, lowest=-1)
    cumulant = Cumulant([(part, 10)])
    exact = 10 * float(part.masses @ np.arange(-1, 49_999))
    assert cumulant.mean == pytest.approx(exact, rel=1e-9)
    assert cumulant.largest_exponent(-1.0) == pytest.approx(-10 * math.log(part.masses[0]))
