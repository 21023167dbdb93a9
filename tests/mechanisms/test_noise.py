"""Values with Gaussian or Laplace noise, their cost, and sums of units."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from skdptune.accounting import PrivacyProfile
from skdptune.mechanisms import (
    _noise,
    gaussian_profile,
    gaussian_release,
    laplace_profile,
    laplace_release,
    noise_for_budget,
    unit_sum,
)
from tests.accounting.cases import few

RELEASES = [(gaussian_release, stats.norm), (laplace_release, stats.laplace)]


@pytest.mark.parametrize(("release", "distribution"), RELEASES)
@pytest.mark.parametrize("state", [0, None])
def test_noise_has_the_scale_that_was_asked_for(release, distribution, state) -> None:
    noisy = release(np.full((50, 80), 7.0), 1.0, 0.25, state)
    assert noisy.shape == (50, 80)
    assert stats.kstest((noisy.ravel() - 7.0) / 0.25, distribution.cdf).pvalue > 1e-9


@pytest.mark.parametrize(("release", "distribution"), RELEASES)
@pytest.mark.parametrize("state", [0, None])
def test_shapes_are_kept(release, distribution, state) -> None:
    assert isinstance(release(1, 1.0, 1.0, state), float)
    assert release([1.0], 1.0, 1.0, state).shape == (1,)
    assert release(np.zeros((0, 3)), 1.0, 1.0, state).shape == (0, 3)
    assert release(np.zeros((2, 1, 3)), 1.0, 1.0, state).shape == (2, 1, 3)


@pytest.mark.parametrize(("release", "distribution"), RELEASES)
def test_seed_repeats_and_its_absence_does_not(release, distribution) -> None:
    assert release(0.0, 1.0, 1.0, 4) == release(0.0, 1.0, 1.0, 4)
    assert release(0.0, 1.0, 1.0) != release(0.0, 1.0, 1.0)
    generator = np.random.default_rng(0)
    assert release(0.0, 1.0, 1.0, generator) != release(0.0, 1.0, 1.0, generator)


@pytest.mark.parametrize(("release", "distribution"), RELEASES)
@pytest.mark.parametrize("state", [0, None])
def test_without_noise_a_copy_is_returned(release, distribution, state) -> None:
    value = np.ones(3)
    result = release(value, 1.0, 0.0, state)
    assert result is not value
    np.testing.assert_array_equal(result, value)


@pytest.mark.parametrize(("release", "distribution"), RELEASES)
@pytest.mark.parametrize("bad", [math.nan, math.inf, [0.0, -math.inf]])
def test_what_is_not_finite_is_refused_and_not_shown(release, distribution, bad) -> None:
    with pytest.raises(ValueError, match="value must be finite; got infinities or NaN"):
        release(bad, 1.0, 1.0, 0)


@pytest.mark.parametrize(("release", "distribution"), RELEASES)
@pytest.mark.parametrize(
    ("sensitivity", "scale", "name"),
    [
        (-1.0, 1.0, "sensitivity"),
        (math.inf, 1.0, "sensitivity"),
        (1.0, -1.0, "scale"),
        (1.0, math.inf, "scale"),
        (1.0, math.nan, "scale"),
    ],
)
def test_bad_numbers_are_refused(release, distribution, sensitivity, scale, name) -> None:
    profile = gaussian_profile if distribution is stats.norm else laplace_profile
    for function in (lambda *numbers: release(0.0, *numbers), profile):
        with pytest.raises(ValueError, match=f"{name} must be a number in"):
            function(sensitivity, scale)


def test_costs() -> None:
    assert gaussian_profile(3.0, 6.0) == PrivacyProfile.gaussian(0.5)
    assert laplace_profile(3.0, 6.0) == PrivacyProfile.pure(0.5)
    assert gaussian_profile(0.0, 0.0) == laplace_profile(0.0, 0.0) == PrivacyProfile.pure(0.0)


@pytest.mark.parametrize("seed", [0, 1])
def test_laplace_cost_bounds_several_values_at_once(seed) -> None:
    """The likelihood ratio of three values shifted by one in sum is within its cost."""
    rng = np.random.default_rng(seed)
    shift = rng.dirichlet(np.ones(3))
    outcomes = rng.laplace(scale=2.0, size=(20_000, 3))
    ratio = (np.abs(outcomes - shift).sum(1) - np.abs(outcomes).sum(1)) / 2.0
    cost_of = laplace_profile(1.0, 2.0).epsilon(0.0)
    assert 0.9 * cost_of < np.abs(ratio).max() <= cost_of + 1e-12


@pytest.mark.parametrize("direction", [1.0, -1.0])
def test_gaussian_cost_is_the_hockey_stick_of_its_release(direction) -> None:
    draws = gaussian_release(np.full(200_000, direction), 1.0, 2.0, 0)
    loss = (draws**2 - (draws - direction) ** 2) / 8.0
    for epsilon in (0.0, 0.3, 0.8):
        found = np.mean(np.maximum(1.0 - np.exp(epsilon - loss), 0.0))
        assert found == pytest.approx(gaussian_profile(1.0, 2.0).delta(epsilon), abs=2e-3)


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [(0.1, 0.0), (1.0, 1e-6), (8.0, 1e-5), (550.0, 1e-6), (1e5, 1e-6), (1e-6, 0.1)],
)
def test_noise_for_a_budget_meets_it(epsilon, delta) -> None:
    scale, profile = noise_for_budget(epsilon, delta)
    assert profile.epsilon(delta) <= epsilon
    cost_of = gaussian_profile(1.0, scale) if delta else laplace_profile(1.0, scale)
    assert cost_of.epsilon(delta) == pytest.approx(profile.epsilon(delta), abs=1e-9)
    if delta and 0.01 < epsilon < 100.0:
        assert gaussian_profile(1.0, 0.999 * scale).epsilon(delta) > epsilon


@pytest.mark.parametrize(
    ("epsilon", "sensitivity"),
    few(6, [0.1, 0.3, 0.7, 1.0, 3.0, 49.0], [1.0, 1.125, 3.375, 0.1, 11.25]),
)
def test_pure_budget_is_met_to_the_last_bit(epsilon, sensitivity) -> None:
    # Theorem R1: 1 / epsilon is not a double, and neither is its product with a sensitivity.
    scale = sensitivity * noise_for_budget(epsilon, 0.0)[0]
    assert Fraction(sensitivity) <= Fraction(epsilon) * Fraction(scale)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_infinite_budget_needs_no_noise(delta) -> None:
    scale, profile = noise_for_budget(math.inf, delta)
    assert scale == 0.0
    assert profile.epsilon(0.5) == math.inf


def test_bad_budgets_are_refused() -> None:
    with pytest.raises(ValueError, match="epsilon must be"):
        noise_for_budget(0.0, 0.0)
    with pytest.raises(ValueError, match="delta must be"):
        noise_for_budget(1.0, 1.0)


# Sums of units ---------------------------------------------------------------------------


def test_one_record_moves_the_sum_by_its_own_value_at_most() -> None:
    # Theorem R1: noise of the scalers.
    rng = np.random.default_rng(2)
    units = rng.uniform(-1, 1, size=5000)
    order = rng.permutation(5000)
    for value in (1.0, -1.0, 0.1, 1e-9, *rng.uniform(-1, 1, 50)):
        moved = unit_sum(np.append(units, value)[np.append(order, 5000)[::-1]]) - unit_sum(units)
        assert abs(moved) <= abs(value)
        assert abs(moved - value) <= _noise.UNIT


@pytest.mark.parametrize("order", [1, 2])
def test_no_norm_of_a_record_grows(order) -> None:
    rng = np.random.default_rng(3)
    for record in rng.uniform(-1, 1, size=(200, 1, 4)):
        assert np.linalg.norm(unit_sum(record), order) <= np.linalg.norm(record[0], order)


def test_what_is_no_unit_is_clipped() -> None:
    given = np.array([2.0, -np.inf, np.inf, np.nan])
    assert [float(unit_sum(given[i : i + 1])) for i in range(4)] == [1.0, -1.0, 1.0, -1.0]


def test_sums_of_too_many_records_move_no_farther(monkeypatch) -> None:
    # Theorem R1. As if doubles had 20 bits: beyond, neighbouring sums would round to even ones.
    monkeypatch.setattr(_noise, "UNIT", 2.0**-53 * 16)
    units = np.append(np.ones(20), 16.0 * 2.0**-53)
    sums = [float(unit_sum(units[:count])) for count in range(12, 22)]
    assert sums == [12.0, 13.0, 14.0, 15.0] + [16.0] * 6


def test_sum_is_close_to_the_sum_in_blocks_of_any_size(monkeypatch) -> None:
    units = np.random.default_rng(1).uniform(-1, 1, size=(100, 2))
    whole = unit_sum(units)
    np.testing.assert_allclose(whole, units.sum(axis=0), atol=2e-5)
    monkeypatch.setattr(_noise, "_ROWS", 7)
    np.testing.assert_array_equal(unit_sum(units), whole)
