"""From curves to losses and back: against exact pairs and plain sums."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skdptune.accounting._losses import LossDistribution, _curves
from skdptune.accounting._losses._distribution import normalised, trimmed
from skdptune.accounting._losses._forms import SampledGaussian
from tests.accounting.cases import few
from tests.accounting.oracles_profile import (
    hockey_stick_of_losses,
    lower_hull,
)


def atoms_of(losses):
    return [((losses.lowest + i) * losses.step, mass) for i, mass in enumerate(losses.masses)]


def plain_delta(losses, epsilon):
    return hockey_stick_of_losses(atoms_of(losses), losses.infinity, epsilon)


def hull_of_half(step, half):
    """The lower convex hull of ``(0, 1)`` and a half's points, at these points."""
    alphas = [0.0, *np.exp(step * np.arange(len(half)))]
    heights = [1.0, *half]
    kept = lower_hull(alphas, heights)
    return np.interp(alphas[1:], np.array(alphas)[kept], np.array(heights)[kept])


def hull_of_both(step, remove, add):
    """Both halves of the hull of the whole curve, the other direction mirrored below 1."""
    best = min(remove[0], add[0])
    remove, add = np.minimum(remove, best), np.minimum(add, best)
    left = len(add) - 1
    alphas = np.exp(step * np.arange(-left, len(remove)))
    mirrored = [1.0 - a + a * h for a, h in zip(alphas[:left], add[:0:-1], strict=True)]
    alphas = np.array([0.0, *alphas])
    # No curve rises, in this direction or the other.
    heights = np.minimum.accumulate([1.0, *mirrored, *remove])
    kept = lower_hull(alphas, heights)
    hull = np.interp(alphas, alphas[kept], heights[kept])
    below = (hull[1 : left + 2] - 1.0 + alphas[1 : left + 2]) / alphas[1 : left + 2]
    return hull[left + 1 :], below[::-1]


halves = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=15)


@given(halves)
def test_convex_minorant_is_the_hull_of_the_falling_points(half):
    # Theorem P3.
    result = _curves.convex_minorant(np.array(half), 0.3)
    falling = np.minimum.accumulate(half)
    np.testing.assert_allclose(result, hull_of_half(0.3, falling), rtol=1e-11, atol=1e-14)
    assert np.all(result <= falling)


@given(halves, halves)
def test_dots_are_connected_along_the_hull_of_both_halves(remove, add):
    """The total variation is common, and chords may span both halves."""
    # Theorem P1.
    sides = _curves.connect_dots(0.3, np.array(remove), np.array(add))
    wanted = hull_of_both(0.3, np.minimum.accumulate(remove), np.minimum.accumulate(add))
    for side, hull in zip(sides, wanted, strict=True):
        values = [plain_delta(side, 0.3 * k) for k in range(len(hull))]
        np.testing.assert_allclose(values, hull, rtol=1e-8, atol=1e-12)


@given(halves, halves)
def test_connected_dots_are_two_distributions(remove, add):
    """Wavy and rising input gives two probability distributions as well."""
    # Theorem P1.
    first, second = _curves.connect_dots(0.3, np.array(remove), np.array(add))
    for side, mirror in ((first, second), (second, first)):
        assert side.masses.min() >= 0.0 and side.infinity >= 0.0
        assert side.masses.sum() + side.infinity == pytest.approx(1.0, abs=1e-12)
        # What Q has on the finite losses and alone.
        q = math.fsum(mass * math.exp(-loss) for loss, mass in atoms_of(side))
        assert q + mirror.infinity == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("step", [0.02, 0.3])
def test_convex_halves_are_connected_as_they_are(step):
    # Theorem P1.
    release = SampledGaussian(1.0, 0.3)
    remove, add = (curve(step * np.arange(60)) for curve in (release.remove, release.add))
    remove[0] = add[0] = min(remove[0], add[0])
    for one, other, halves in zip(
        _curves.connected(step, remove, add),
        _curves.connect_dots(step, remove, add),
        (remove, add),
        strict=True,
    ):
        points = step * np.arange(60)
        assert np.all(one.delta(points) >= halves * (1.0 - 1e-12))
        np.testing.assert_allclose(one.delta(points), halves, rtol=1e-9, atol=1e-15)
        np.testing.assert_allclose(one.delta(points), other.delta(points), rtol=1e-9, atol=1e-15)
        assert one.masses.sum() + one.infinity == pytest.approx(1.0, abs=1e-13)
    same, mirrored = _curves.connected(step, remove, remove)
    assert same is mirrored


def test_connected_dots_of_a_fine_grid_lose_nothing():
    """Rounding noise must not grow where neighbouring points differ by next to nothing."""
    step = 1e-11
    half = 3e-8 * (1.0 - np.arange(10001) / 1e4)
    for side in _curves.connect_dots(step, half, half):
        assert side.masses.sum() + side.infinity == pytest.approx(1.0, abs=1e-6)
        assert plain_delta(side, 0.0) == pytest.approx(3e-8, rel=1e-6, abs=0.0)


def test_pair_masses_are_those_of_both_distributions():
    # Theorem P2: each has at infinity what the other lacks.
    falling = np.array([0.5, 0.25, 0.0, -0.25])
    q = np.array([0.1, 0.3, 0.25, 0.34])
    p = 0.9 * q * np.exp(falling)
    only_p, only_q = 1.0 - p.sum(), 1.0 - q.sum()
    assert abs(only_p - only_q) > 1e-3
    own = LossDistribution(0.25, -1, p[::-1].copy(), only_p)
    other = LossDistribution(0.25, -2, q.copy(), only_q)
    losses, mine, theirs = _curves.pair_masses(own, other)
    assert losses.tolist() == falling.tolist()
    # Masses above zero come from one direction, below from the other, and zero has the rest.
    np.testing.assert_allclose(mine[:2], p[:2], rtol=1e-12)
    np.testing.assert_allclose(theirs[3:], q[3:], rtol=1e-12)
    assert (mine.sum() + only_p, theirs.sum() + only_q) == pytest.approx((1.0, 1.0), abs=1e-12)


# One direction ---------------------------------------------------------------------------


def one_direction(masses, step=0.25, lowest=-2, infinity=0.0):
    return LossDistribution(step, lowest, np.array(masses, dtype=float), infinity)


EXAMPLES = {
    "both signs": one_direction([0.1, 0.2, 0.1, 0.3, 0.2], infinity=0.1),
    "only positive": one_direction([0.25, 0.75], lowest=3),
    "only negative": one_direction([0.25, 0.74], lowest=-5, infinity=0.01),
    "nothing but zero": one_direction([1.0], lowest=0),
    "nothing but infinity": one_direction([0.0], lowest=0, infinity=1.0),
    "gaps": one_direction([0.3, 0, 0, 0, 0, 0, 0.7], lowest=-1),
    "tiny tail": one_direction([0.5, 0.5, 1e-200, 1e-250], lowest=-1),
    "beyond any use": one_direction([0.5, 0.5], step=500.0, lowest=1),
}
every_example = pytest.mark.parametrize("losses", EXAMPLES.values(), ids=EXAMPLES.keys())


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name != "beyond any use"])
def test_divergence_is_the_plain_sum_between_the_losses(name):
    losses = EXAMPLES[name]
    points = np.linspace(0.0, losses.step * (losses.highest + 1), 101)
    for epsilon, value in zip(points, losses.delta(points), strict=True):
        assert value == pytest.approx(plain_delta(losses, epsilon), rel=1e-9, abs=1e-300)


def test_losses_too_large_to_tell_apart_are_rounded_up():
    losses = EXAMPLES["beyond any use"]
    for epsilon in (599.0, 650.0, 999.0):
        claimed = float(losses.delta(np.array([epsilon]))[0])
        assert plain_delta(losses, epsilon) <= claimed * (1.0 + 1e-12) and claimed <= 1.0
    assert float(losses.delta(np.array([1000.0]))[0]) == 0.0


@every_example
def test_least_epsilon_is_where_the_divergence_has_come_down_to_delta(losses):
    for delta in (0.9, 0.3, 0.1, 0.05, 1e-3, 1e-100, 1e-220):
        epsilon = losses.epsilon(delta)
        if losses.infinity > delta:
            assert epsilon == math.inf
            continue
        assert plain_delta(losses, epsilon) <= delta * (1.0 + 1e-9) or losses.step > 1.0
        if epsilon > 0.0:
            assert plain_delta(losses, epsilon * (1.0 - 1e-6)) > delta


def test_least_epsilon_at_the_ends():
    losses = EXAMPLES["both signs"]
    assert losses.epsilon(0.1) == 0.5  # only infinity is left beyond the largest loss
    assert losses.epsilon(0.0999999) == math.inf
    assert losses.epsilon(1.0) == 0.0
    assert EXAMPLES["only positive"].epsilon(0.0) == 1.0
    assert EXAMPLES["nothing but zero"].epsilon(0.0) == 0.0
    assert EXAMPLES["nothing but infinity"].epsilon(1.0) == 0.0
    assert EXAMPLES["only negative"].epsilon(0.01) == 0.0


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
    assert one_direction([0.5, 0.5], lowest=3).on_grid(0.7).epsilon(0.0) == pytest.approx(1.4)
    assert one_direction([0.5, 0.5], lowest=3).on_grid(0.5).epsilon(0.0) == 1.0


def test_cut_ends_are_paid_at_the_top():
    masses = np.array([3e-16, 4e-16, 0.25, 0.5, 0.25 - 1e-15, 4e-16, 5e-16])
    result = trimmed(0.25, -3, masses, 1e-9)
    assert result.lowest == -1 and result.highest == 1
    assert result.infinity == pytest.approx(1e-9 + 9e-16, abs=1e-24)
    # The lower end went to the lowest loss that stays.
    assert result.masses[0] >= 0.25 + 6.9e-16
    before = one_direction(masses, lowest=-3, infinity=1e-9)
    for epsilon in (0.0, 0.1, 0.25, 0.3, 0.6):
        assert plain_delta(result, epsilon) >= plain_delta(before, epsilon) * (1.0 - 1e-12)


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
