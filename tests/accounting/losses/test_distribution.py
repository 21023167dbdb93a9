"""One direction's losses: against plain sums over the atoms."""

import math

import numpy as np
import pytest

from skdptune.accounting._losses import LossDistribution
from skdptune.accounting._losses._distribution import normalised, trimmed
from tests.accounting.cases import few
from tests.accounting.oracles_profile import hockey_stick_of_losses


def distribution(masses, step=0.25, lowest=-2, infinity=0.0):
    return LossDistribution(step, lowest, np.array(masses, dtype=float), infinity)


def naive_delta(losses, epsilon):
    atoms = [((losses.lowest + i) * losses.step, mass) for i, mass in enumerate(losses.masses)]
    return hockey_stick_of_losses(atoms, losses.infinity, epsilon)


EXAMPLES = {
    "both signs": distribution([0.1, 0.2, 0.1, 0.3, 0.2], infinity=0.1),
    "only positive": distribution([0.25, 0.75], lowest=3),
    "only negative": distribution([0.25, 0.74], lowest=-5, infinity=0.01),
    "nothing but zero": distribution([1.0], lowest=0),
    "nothing but infinity": distribution([0.0], lowest=0, infinity=1.0),
    "gaps": distribution([0.3, 0, 0, 0, 0, 0, 0.7], lowest=-1),
    "tiny tail": distribution([0.5, 0.5, 1e-200, 1e-250], lowest=-1),
    "beyond any use": distribution([0.5, 0.5], step=500.0, lowest=1),
}
every_example = pytest.mark.parametrize("losses", EXAMPLES.values(), ids=EXAMPLES.keys())


@every_example
def test_divergence_is_the_plain_sum_at_the_losses(losses):
    points = losses.step * np.arange(losses.highest + 2)
    for epsilon, value in zip(points, losses.delta(points), strict=True):
        assert value == pytest.approx(naive_delta(losses, epsilon), rel=1e-13, abs=1e-300)


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name != "beyond any use"])
def test_divergence_is_the_plain_sum_between_the_losses(name):
    losses = EXAMPLES[name]
    points = np.linspace(0.0, losses.step * (losses.highest + 1), 101)
    for epsilon, value in zip(points, losses.delta(points), strict=True):
        assert value == pytest.approx(naive_delta(losses, epsilon), rel=1e-9, abs=1e-300)


def test_losses_too_large_to_tell_apart_are_rounded_up():
    losses = EXAMPLES["beyond any use"]
    for epsilon in (599.0, 650.0, 999.0):
        claimed = float(losses.delta(np.array([epsilon]))[0])
        assert naive_delta(losses, epsilon) <= claimed * (1.0 + 1e-12) and claimed <= 1.0
    assert float(losses.delta(np.array([1000.0]))[0]) == 0.0


@every_example
def test_least_epsilon_is_where_the_divergence_has_come_down_to_delta(losses):
    for delta in (0.9, 0.3, 0.1, 0.05, 1e-3, 1e-100, 1e-220):
        epsilon = losses.epsilon(delta)
        if losses.infinity > delta:
            assert epsilon == math.inf
            continue
        assert naive_delta(losses, epsilon) <= delta * (1.0 + 1e-9) or losses.step > 1.0
        if epsilon > 0.0:
            assert naive_delta(losses, epsilon * (1.0 - 1e-6)) > delta


def test_least_epsilon_at_the_ends():
    losses = EXAMPLES["both signs"]
    assert losses.epsilon(0.1) == 0.5  # only infinity is left beyond the largest loss
    assert losses.epsilon(0.0999999) == math.inf
    assert losses.epsilon(1.0) == 0.0
    assert EXAMPLES["only positive"].epsilon(0.0) == 1.0
    assert EXAMPLES["nothing but zero"].epsilon(0.0) == 0.0
    assert EXAMPLES["nothing but infinity"].epsilon(1.0) == 0.0
    assert EXAMPLES["only negative"].epsilon(0.01) == 0.0


def test_a_tail_keeps_its_relative_accuracy():
    # Fifty orders of magnitude in one distribution.
    masses = 10.0 ** -np.arange(51.0)
    losses = distribution(masses / masses.sum(), step=0.5, lowest=-3)
    for k in range(losses.highest):
        value = float(losses.delta(np.array([k * 0.5]))[0])
        assert value == pytest.approx(naive_delta(losses, k * 0.5), rel=1e-12, abs=0.0)


@every_example
@pytest.mark.parametrize("factor", [1, 2, 7])
def test_a_finer_grid_changes_nothing(losses, factor):
    finer = losses.on_finer_grid(factor, losses.step / factor)
    assert finer.step == losses.step / factor
    assert finer.masses.sum() == pytest.approx(losses.masses.sum(), rel=1e-14, abs=0.0)
    points = np.linspace(0.0, 1.0, 23) * losses.step * (losses.highest + 0.5)
    if losses.step <= 1.0:
        np.testing.assert_allclose(finer.delta(points), losses.delta(points), rtol=1e-9)
    for delta in (0.5, 0.1, 0.0):
        assert finer.epsilon(delta) == pytest.approx(losses.epsilon(delta), rel=1e-9, abs=0.0)


@pytest.mark.parametrize(
    ("name", "factor"),
    few(
        14,
        [name for name in EXAMPLES if name != "beyond any use"],
        [1.0, 2.0, 3.0, 8.0, 1.7, 0.6, 2.0 / 3.0],
    ),
)
def test_another_grid_keeps_both_probabilities_and_the_curve_at_its_points(name, factor):
    # Theorem P1.
    losses = EXAMPLES[name]
    step = losses.step * factor
    moved = losses.on_grid(step)
    assert (moved.step, moved.infinity) == (step, losses.infinity)
    mine, theirs = (
        [side.masses.sum(), side.masses @ np.exp(-side.step * places)]
        for side in (losses, moved)
        for places in [np.arange(side.lowest, side.lowest + side.masses.size)]
    )
    assert theirs == pytest.approx(mine, rel=1e-12, abs=0.0)
    # At its own points the curve is what it was, between them the chord.
    points = step * np.arange(moved.highest + 2)
    np.testing.assert_allclose(moved.delta(points), losses.delta(points), rtol=1e-9, atol=1e-300)
    between = np.linspace(0.0, points[-1], 57)
    assert np.all(moved.delta(between) >= losses.delta(between) * (1.0 - 1e-12))


@pytest.mark.parametrize("factor", [10**7, 2.0**40, 10**15])
def test_a_far_coarser_grid_is_not_filled_up(factor):
    # Theorem P1. Zeros up to the next point of the other grid took seconds, or all memory.
    losses = LossDistribution(1e-16, -1, np.array([0.2, 0.3, 0.5]), 1e-9)
    step = losses.step * factor
    moved = losses.on_grid(step)
    assert moved.masses.size <= 3
    points = np.array([0.0, step, 2.0 * step])
    np.testing.assert_allclose(moved.delta(points), losses.delta(points), rtol=1e-9, atol=1e-12)


def test_another_grid_rounds_a_largest_loss_up():
    assert distribution([0.5, 0.5], lowest=3).on_grid(0.7).epsilon(0.0) == pytest.approx(1.4)
    assert distribution([0.5, 0.5], lowest=3).on_grid(0.5).epsilon(0.0) == 1.0


def test_cut_ends_are_paid_at_the_top():
    masses = np.array([3e-16, 4e-16, 0.25, 0.5, 0.25 - 1e-15, 4e-16, 5e-16])
    result = trimmed(0.25, -3, masses, 1e-9)
    assert result.lowest == -1 and result.highest == 1
    assert result.infinity == pytest.approx(1e-9 + 9e-16, abs=1e-24)
    # The lower end went to the lowest loss that stays.
    assert result.masses[0] >= 0.25 + 6.9e-16
    before = distribution(masses, lowest=-3, infinity=1e-9)
    for epsilon in (0.0, 0.1, 0.25, 0.3, 0.6):
        assert naive_delta(result, epsilon) >= naive_delta(before, epsilon) * (1.0 - 1e-12)


def test_negative_noise_is_paid_at_infinity():
    masses = np.array([0.5, -2e-12, 0.5, -1e-12])
    result = trimmed(0.25, -1, masses, 1e-9)
    assert result.infinity >= 1e-9 + 3e-12 * (1 - 1e-9)
    assert result.masses.min() >= 0.0


def test_without_a_tail_no_mass_goes_to_infinity():
    masses = np.array([1e-18, 0.5, -1e-12, 0.5, 1e-18, -1e-17])
    result = trimmed(0.25, -2, masses, 0.0, tail=0.0)
    assert result.infinity == 0.0
    # The last grid point is the guarantee at delta 0, and must not be lost.
    assert result.epsilon(0.0) == 0.75
    assert result.masses[-1] >= 1e-12
    assert result.lowest == -2


def test_losses_beyond_reason_count_as_infinite():
    result = trimmed(100.0, 0, np.full(10, 0.1), 1e-9)
    assert result.highest * result.step <= 600.0
    assert result.infinity == pytest.approx(0.3 + 1e-9, abs=1e-12)


def test_lost_mass_is_given_back_and_excess_stays():
    short = normalised(0.25, 0, np.array([0.5, 0.4]), 0.05)
    assert short.masses.sum() == pytest.approx(0.95, rel=1e-15, abs=0.0)
    long = normalised(0.25, 0, np.array([0.5, 0.6]), 0.05)
    assert long.masses.tolist() == [0.5, 0.6]
    empty = normalised(0.25, 0, np.array([0.0]), 0.3)
    assert empty.masses.tolist() == [0.0]
