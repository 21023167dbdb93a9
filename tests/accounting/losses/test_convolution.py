"""Sums of losses: against direct sums, closed forms and longer floats."""

from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting import dp_event
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import fft, stats

from skdptune.accounting._losses import (
    LossDistribution,
    _composition,
    _convolution,
    _curves,
    composed_sides,
    losses_of_event,
    self_composed_sides,
)
from skdptune.accounting._losses._closed_forms import gaussian_halves
from skdptune.accounting._losses._composition import composed
from skdptune.accounting._losses._convolution import (
    TAIL,
    convolved,
    convolved_with_rare,
)
from skdptune.accounting._losses._curves import connected
from tests.accounting.cases import few
from tests.accounting.oracles_profile import (
    gaussian_delta,
    gaussian_epsilon,
    hockey_stick_of_losses,
)


def distribution(masses, lowest=0, infinity=0.0, step=0.01):
    masses = np.array(masses, dtype=float)
    return LossDistribution(step, lowest, masses / masses.sum() * (1.0 - infinity), infinity)


rng = np.random.default_rng(0)
PLACES = np.arange(400)
SHAPES = {
    "normal": distribution(stats.norm.pdf(PLACES, 200, 30), lowest=-190),
    "spike and long tail": distribution(np.exp(-0.06 * PLACES) + 1e5 * (PLACES == 3), lowest=-3),
    "far jump": distribution(1e9 * stats.norm.pdf(PLACES, 8, 2) + (PLACES > 300), lowest=-9),
    "random": distribution(rng.random(400) ** 40, lowest=-100),
    "gaps": distribution((PLACES % 7 == 0) * rng.random(400), lowest=-100),
    "some at infinity": distribution(stats.norm.pdf(PLACES, 200, 30), lowest=-190, infinity=1e-7),
}
every_shape = pytest.mark.parametrize("losses", SHAPES.values(), ids=SHAPES.keys())


@pytest.fixture
def by_transforms(monkeypatch):
    """However few masses there are."""
    monkeypatch.setattr(_convolution, "_DIRECT", 0)


def direct_power(losses, count):
    """All masses by sums of positive products, whose relative error is some 1e-13."""
    masses = np.ones(1)
    for _ in range(count):
        masses = np.convolve(masses, losses.masses)
    return masses


def tails(masses):
    return np.cumsum(masses[::-1])[::-1]


def aligned(result, lowest, size):
    """Masses of a result at given places, what lies below added to the first."""
    masses = np.zeros(size)
    start = result.lowest - lowest
    kept = result.masses[max(-start, 0) :]
    masses[max(start, 0) : max(start, 0) + kept.size] = kept[: size - max(start, 0)]
    assert kept[size - max(start, 0) :].sum() == 0.0
    return masses


def check_upper_bound(result, exact, lowest, *, above, floor):
    """Every tail of finite losses at least the exact one, and hardly more where it counts."""
    # Of the parts' own mass at infinity nothing is a tail; of what was cut off a few times TAIL.
    gone = min(result.infinity, 4.0 * TAIL)
    found = tails(aligned(result, lowest, exact.size)) + gone
    wanted = tails(exact)
    assert np.all(found >= wanted * (1.0 - 1e-11))
    counts = wanted > floor
    assert np.all(found[counts] <= wanted[counts] * (1.0 + above) + gone)


# By how much tails may be above, where they are light enough for few slopes.
LIGHT = {"normal": 1e-6, "some at infinity": 1e-6, "random": 1e-3, "gaps": 1e-3}


@pytest.mark.parametrize(("name", "count"), few(15, SHAPES, [1, 2, 3, 12, 40]))
def test_bounds_are_direct_sums_rounded_up(by_transforms, name, count):
    # Theorem P12.
    losses = SHAPES[name]
    result = convolved([(losses, count)], TAIL)
    lost = -math.expm1(count * math.log1p(-losses.infinity))
    assert lost <= result.infinity <= lost * (1.0 + 1e-12) + 3.0 * TAIL
    # Long tails need `rare_part` to be seen clearly.
    above = LIGHT.get(name, math.inf)
    check_upper_bound(
        result, direct_power(losses, count), count * losses.lowest, above=above, floor=1e-14
    )


@every_shape
def test_without_a_tail_no_loss_is_moved(by_transforms, losses):
    result = convolved([(losses, 5)], 0.0)
    exact = direct_power(losses, 5)
    first, last = np.flatnonzero(exact)[[0, -1]]
    assert (result.lowest, result.masses.size) == (5 * losses.lowest + first, last - first + 1)
    assert result.masses[-1] > 0.0
    assert np.all(result.masses >= exact[first : last + 1] * (1.0 - 1e-11))


@pytest.mark.parametrize(
    ("first", "second"), few(6, SHAPES, ["normal", "spike and long tail", "some at infinity"])
)
def test_different_parts_are_convolved(by_transforms, first, second):
    # Theorem P12.
    one, other = SHAPES[first], SHAPES[second]
    exact = np.convolve(direct_power(one, 2), direct_power(other, 3))
    result = convolved([(one, 2), (other, 3)], TAIL)
    above = max(LIGHT.get(first, math.inf), LIGHT.get(second, math.inf))
    check_upper_bound(result, exact, 2 * one.lowest + 3 * other.lowest, above=above, floor=1e-13)


@given(
    st.lists(st.floats(0.0, 1.0), min_size=2, max_size=60).filter(lambda w: sum(w) > 0.1),
    st.integers(1, 30),
    st.floats(0.0, 40.0),
)
@settings(max_examples=60, deadline=None)
def test_no_mass_of_any_shape_is_understated(weights, count, decay):
    # Theorem P12.
    masses = np.array(weights) * np.exp(-decay * np.arange(len(weights)) / len(weights))
    losses = distribution(masses, lowest=-3)
    exact = direct_power(losses, count)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_convolution, "_DIRECT", 0)
        by_transform = convolved([(losses, count)], TAIL)
    check_upper_bound(by_transform, exact, -3 * count, above=math.inf, floor=1e-13)
    directly = convolved([(losses, count)], TAIL)
    check_upper_bound(directly, exact, -3 * count, above=1e-9, floor=1e-13)


@pytest.mark.parametrize("count", [10, 10**4, 10**6, 10**8])
def test_many_normal_losses_sum_to_a_normal_one(count):
    """A Gaussian release of shift 1 in ever more parts: mpmath's curve down to 1e-14."""
    # Theorem P12.
    mu = 1.0 / math.sqrt(count)
    step = mu / 40.0 if count < 10**7 else mu / 8.0
    one = connected(*gaussian_halves(mu, step))[0]
    result = convolved([(one, count)], TAIL)
    for delta in (1e-2, 1e-5, 1e-9, 1e-12, 1e-14):
        exact = gaussian_epsilon(1.0, delta)
        assert exact * (1.0 - 1e-9) <= result.epsilon(delta)
        # The chords of each part make the sum wider by 1 / 12 of the square of step / mu.
        assert result.epsilon(delta) <= exact * (1.0 + 0.5 * (step / mu) ** 2 + 1e-5)
    points = np.linspace(0.0, 7.0, 30)
    for epsilon, value in zip(points, result.delta(points), strict=True):
        assert value >= gaussian_delta(1.0, epsilon) * (1.0 - 1e-9)


@pytest.mark.parametrize(
    ("losses", "slope", "count"), few(18, SHAPES.values(), [0.0, 0.01, 0.05], [1, 3, 1000])
)
def test_allowances_are_many_times_the_rounding(losses, slope, count):
    """Longer floats show what a transform and its power are really off by."""
    # Theorem P12.
    source = _convolution._Sum([(losses, count)])
    spread = losses.deviation / losses.step * math.sqrt(count)
    size = int(min(20.0 * spread + 400, 400 * count))
    low = int(count * losses.lowest)
    masses, allowance = source.bounds(slope, low, size)
    tilt = _convolution.tilted([(losses, count)], slope)
    length = _convolution._length(size, 400)
    weights = np.zeros(max(length, 400), dtype=np.longdouble)
    weights[:400] = tilt.weights[0]
    weights = np.append(weights, np.zeros(-weights.size % length)).reshape(-1, length).sum(axis=0)
    exact = fft.irfft(fft.rfft(weights) ** count, length)[:size]
    assert exact.dtype == np.longdouble
    back = tilt.back(low, size)
    error = np.abs(np.maximum((masses - allowance) / back, 0.0) - exact)
    assert np.all(8.0 * error <= allowance / back + 8.0 * count * 1e-13 * exact)


@pytest.mark.parametrize(("count", "first"), few(8, [1, 2, 3, 4, 30], [60, 150, 301, 390]))
def test_rare_and_common_losses_make_up_all(by_transforms, count, first):
    # Theorem P12.
    masses = np.exp(-0.5 * PLACES) + 1e-9 * (PLACES > 100) * np.exp(-0.02 * PLACES)
    losses = distribution(masses, lowest=-1)
    common = LossDistribution(0.01, -1, losses.masses[: first + 1], 0.0)
    whole = convolved_with_rare(common, losses, first, count, TAIL)
    exact = direct_power(losses, count)
    # Where losses from 100 on count as common, these have a long tail themselves.
    above = {60: 1e-3, 150: 3e-2}.get(first, math.inf)
    check_upper_bound(whole, exact, -count, above=above, floor=1e-14)


def test_common_losses_may_have_a_finer_grid():
    # Theorem P1.
    masses = np.exp(-0.01 * np.arange(800)) * (np.arange(800) < 400) + 1e-9
    fine = distribution(masses, lowest=-8, step=0.01)
    coarse = fine.on_grid(0.08)
    first = 60
    common = LossDistribution(0.01, -8, fine.masses[: 8 * first + 1].copy(), 0.0)
    # The first rare place shares what is between it and the last common one.
    upper = LossDistribution(0.01, 8 * first - 7, fine.masses[8 * first + 1 :], 0.0).on_grid(0.08)
    common.masses[-1] += upper.masses[0] if upper.lowest == first - 1 else 0.0
    losses = LossDistribution(0.08, coarse.lowest, coarse.masses, 0.0)
    result = convolved_with_rare(common, losses, first, 50, TAIL)
    exact = convolved([(fine, 50)], TAIL)
    points = np.linspace(0.0, 0.01 * exact.highest, 60)
    known = exact.delta(points)
    found = result.delta(points)
    assert np.all(found >= known * (1.0 - 1e-9) - 1e-15)
    assert np.all(found[known > 1e-12] <= known[known > 1e-12] * 1.01)


# Exponential tilting ---------------------------------------------------------------------


# Composition -----------------------------------------------------------------------------


def quarters_of(masses, step=0.25, lowest=-2, infinity=0.0):
    masses = np.array(masses, dtype=float)
    return LossDistribution(step, lowest, masses / masses.sum() * (1.0 - infinity), infinity)


FINE_PLACES = np.arange(-4500, 4501)
FINE_NORMAL = LossDistribution(
    1e-3,
    -4500,
    np.exp(-0.5 * ((FINE_PLACES - 125) / 500.0) ** 2) / (500.0 * math.sqrt(2 * math.pi)),
    1e-18,
)


def atoms_of(losses):
    return [((losses.lowest + i) * losses.step, mass) for i, mass in enumerate(losses.masses)]


def naive_composition(first, second):
    """Sum of two independent losses, atom by atom."""
    sums = {}
    for a, p in enumerate(first.masses, first.lowest):
        for b, q in enumerate(second.masses, second.lowest):
            sums[a + b] = sums.get(a + b, 0.0) + p * q
    infinity = first.infinity + second.infinity - first.infinity * second.infinity
    return [(k * first.step, mass) for k, mass in sums.items()], infinity


DISTRIBUTIONS = [
    quarters_of([0.1, 0.2, 0.4, 0.3], infinity=0.01),
    quarters_of([0.5, 0.5], lowest=3),
    quarters_of([0.3, 0.0, 0.0, 0.0, 0.7], lowest=-4),
    quarters_of([1.0], lowest=0),
    quarters_of([0.2, 0.8], lowest=-9, infinity=1e-12),
]


@pytest.mark.parametrize(("first", "second"), few(12, DISTRIBUTIONS, DISTRIBUTIONS))
def test_composition_is_the_convolution(first, second):
    # Theorem P4.
    result = composed(first, second)
    atoms, infinity = naive_composition(first, second)
    for epsilon in np.linspace(-3.0, 3.0, 25):
        exact = hockey_stick_of_losses(atoms, infinity, epsilon)
        claimed = hockey_stick_of_losses(atoms_of(result), result.infinity, epsilon)
        assert exact * (1.0 - 1e-12) - 1e-16 <= claimed <= exact * (1.0 + 1e-9) + 1e-14


@pytest.mark.parametrize("count", [7, 1000])
def test_copies_by_halves_cost_what_copies_at_once_do(monkeypatch, count):
    at_once = self_composed_sides((FINE_NORMAL, FINE_NORMAL), count)
    monkeypatch.setattr(_composition, "_LARGEST_TRANSFORM", 40_000)
    monkeypatch.setattr(_curves, "MOST_POINTS", 2**12)
    by_halves = self_composed_sides((FINE_NORMAL, FINE_NORMAL), count)
    for one, other in zip(at_once, by_halves, strict=True):
        for delta in (1e-2, 1e-6, 1e-12):
            assert other.epsilon(delta) == pytest.approx(one.epsilon(delta), rel=3e-3)
            assert other.epsilon(delta) >= one.epsilon(delta) * (1.0 - 1e-6)


def test_a_composition_stays_on_a_grid_that_is_fine_enough():
    """A loss that is not on it goes to the two points around it."""
    third = LossDistribution(1 / 3, -1, np.array([0.4, 0.0, 0.6]), 0.0)
    for first, second in (
        ((FINE_NORMAL, FINE_NORMAL), (third, third)),
        ((third, third), (FINE_NORMAL, FINE_NORMAL)),
    ):
        remove, add = composed_sides(first, second)
        assert remove.step == add.step == FINE_NORMAL.step
    # A pure guarantee is not rounded for another one.
    pure = LossDistribution(0.01, -1, np.array([0.4, 0.0, 0.6]), 0.0)
    remove, _ = composed_sides((pure, pure), (third, third))
    assert remove.epsilon(0.0) == pytest.approx(1 / 3 + 0.01, rel=1e-12)


def test_sums_on_grids_coarser_than_any_loss_are_lost():
    sides = losses_of_event(dp_event.LaplaceDpEvent(0.5))[0]
    for side in self_composed_sides(sides, 10**12):
        assert side.infinity == 1.0
        assert side.epsilon(0.5) == math.inf
