"""Closed forms: against many digits, and against atoms moved one by one."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skdptune.accounting._losses import LossDistribution, _closed_forms
from tests.accounting.oracles_profile import (
    DIRECTIONS,
    gaussian_delta,
    hockey_stick_of_losses,
    sampled_losses,
)


@pytest.mark.parametrize("mu", [1e-3, 0.03, 0.5, 1.0, 3.0, 8.0, 14.0, 25.0])
def test_gaussian_curve_keeps_its_digits_however_small_the_tail(mu):
    # Theorem P6.
    epsilons = np.linspace(0.0, mu * mu / 2.0 + 30.0 * mu, 40)
    values = _closed_forms.gaussian_delta(mu, epsilons)
    for epsilon, value in zip(epsilons, values, strict=True):
        exact = gaussian_delta(mu, epsilon)
        if exact > 1e-190:
            assert value == pytest.approx(exact, rel=1e-9, abs=0.0)


@pytest.mark.parametrize("mu", [1e-9, 1e-4, 0.02, 0.099, 0.1, 0.3, 2.0, 29.0, 31.0, 100.0])
def test_gaussian_curve_is_good_to_what_is_paid_for_it(mu):
    # Theorem P6.
    epsilons = np.linspace(0.0, mu * mu / 2.0 + 13.0 * mu, 40)
    values = _closed_forms.gaussian_delta(mu, epsilons)
    for epsilon, value in zip(epsilons, values, strict=True):
        exact = gaussian_delta(mu, epsilon)
        # The oracle's digits end at 1e-60 of 1.
        if exact > 1e-45:
            assert value == pytest.approx(exact, rel=0.25 * _closed_forms.ROUNDING, abs=0.0)


@pytest.mark.parametrize("mu", [0.01, 0.5, 3.0])
def test_laplace_curve_is_never_below_the_integral(mu):
    """``P(loss > e) - exp(e) Q(loss > e)`` of two shifted Laplace distributions."""
    step, remove, add = _closed_forms.laplace_halves(mu, mu / 64.0)
    assert remove is add and remove.size == 65 and remove[-1] == 0.0
    for place, value in enumerate(remove[:-1]):
        with mpmath.workdps(40):
            epsilon = step * mpmath.mpf(place)
            # Up to the outcome (mu - e) / 2 the loss is at least e.
            cut = (mpmath.mpf(mu) - epsilon) / 2
            mine = 1 - mpmath.exp(-cut) / 2
            theirs = mpmath.exp(cut - mpmath.mpf(mu)) / 2
            exact = float(mine - mpmath.exp(epsilon) * theirs)
        assert exact <= value <= exact * (1.0 + 1e-11)


@pytest.mark.parametrize("mu", [1e-3, 1.0, 14.0, 30.0, 75.0, 1e4])
def test_gaussian_curve_stays_finite_and_between_zero_and_one(mu):
    values = _closed_forms.gaussian_delta(mu, np.linspace(0.0, 600.0, 999))
    assert np.all((values >= 0.0) & (values <= 1.0))
    assert np.all(np.diff(values) <= 1e-12)


def finite_pair(infinity):
    """A direction's losses and their atoms."""
    masses = np.array([0.1, 0.25, 0.05, 0.3, 0.2, 0.1]) * (1.0 - infinity)
    losses = LossDistribution(0.3, -3, masses, infinity)
    atoms = [(0.3 * (i - 3), mass) for i, mass in enumerate(masses)]
    return losses, atoms


@pytest.mark.parametrize("infinity", [0.0, 0.02])
@pytest.mark.parametrize("fraction", [0.999, 0.5, 0.1, 1e-3, 1e-5])
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_sampling_moves_every_atom(direction, fraction, infinity):
    # Theorem P7.
    losses, atoms = finite_pair(infinity)
    formula = getattr(_closed_forms, f"subsampled_{direction}")
    moved, beyond = sampled_losses(atoms, infinity, fraction, direction)
    largest = max(max(loss for loss, _ in moved), 1e-9)
    grid = np.linspace(0.0, 1.05 * largest, 60)
    values = formula(losses.delta, grid, fraction)
    for epsilon, value in zip(grid, values, strict=True):
        exact = hockey_stick_of_losses(moved, beyond, epsilon)
        # The atoms themselves lose digits where the fraction is small.
        assert value == pytest.approx(exact, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("fraction", [1e-6, 1e-9, 1e-12, 1e-15, 1e-300])
def test_small_fractions_cancel_nothing(fraction):
    """With 50 digits the add direction's ``1 - (1 - q) exp(epsilon)`` is known however small."""
    losses, _ = finite_pair(0.01)
    for share in (0.0, 0.3, 0.7, 0.99):
        epsilon = share * fraction
        value = _closed_forms.subsampled_add(losses.delta, np.array([epsilon]), fraction)[0]
        with mpmath.workdps(400):
            rest = 1 - mpmath.mpf(fraction)
            alpha = mpmath.exp(mpmath.mpf(epsilon))
            kept = 1 - rest * alpha
            inner = float(mpmath.log(mpmath.mpf(fraction) * alpha / kept))
            exact = float(kept) * float(losses.delta(np.array([max(inner, 0.0)]))[0])
        assert value == pytest.approx(exact, rel=1e-9, abs=0.0)


def test_nothing_is_left_beyond_what_the_sample_hides():
    losses, _ = finite_pair(0.02)
    beyond = -math.log1p(-0.3) + np.array([1e-9, 0.1, 5.0, 500.0])
    assert _closed_forms.subsampled_add(losses.delta, beyond, 0.3).tolist() == [0.0] * 4


@given(st.floats(1e-6, 1.0), st.floats(0.0, 600.0))
def test_remove_direction_is_finite_everywhere(fraction, epsilon):
    losses, _ = finite_pair(0.02)
    value = _closed_forms.subsampled_remove(losses.delta, np.array([epsilon]), fraction)[0]
    assert fraction * 0.02 * (1.0 - 1e-12) <= value <= fraction


@pytest.mark.parametrize("rate", [1e-9, 0.01, 0.5, 0.999])
def test_the_loss_before_sampling_has_the_loss_after_it(rate):
    before = np.concatenate([-np.geomspace(1e-6, 30.0, 50), [0.0], np.geomspace(1e-6, 700.0, 50)])
    after = np.logaddexp(np.log1p(-rate), np.log(rate) + before)
    again = _closed_forms.loss_before_sampling(after, rate)
    # A loss after sampling of x says as much of the one before as its rounding leaves.
    error = 5e-14 * (1.0 + np.abs(after)) / (rate * np.exp(np.minimum(before - after, 0.0)))
    assert (np.abs(again - before) <= error + 1e-14 * np.abs(before)).all()


def test_losses_that_no_outcome_has_are_below_all():
    rate = 0.25
    least = np.log1p(-rate)
    found = _closed_forms.loss_before_sampling(np.array([least - 1.0, least - 1e-12, 0.0]), rate)
    assert found.tolist() == [-np.inf, -np.inf, 0.0]


@pytest.mark.parametrize("rest", [1e-6, 1e-12, 2.0**-53])
def test_a_rate_near_one_keeps_the_digits_of_what_is_left(rest):
    """Adding a record: the largest loss is -log(1 - rate), and is likely where noise is low."""
    with mpmath.workdps(50):
        for below in (1e-3, 0.1, 2.0):
            loss = float(np.log(rest)) + below
            found = float(_closed_forms.loss_before_sampling(np.array([loss]), 1.0 - rest)[0])
            exact = mpmath.log(1 + mpmath.expm1(mpmath.mpf(loss)) / mpmath.mpf(1.0 - rest))
            # The loss itself is rounded, to 4e-15 near 36.
            assert found == pytest.approx(float(exact), abs=2e-14 + 1e-14 / below)
