"""Sums of losses: against direct sums, closed forms and longer floats."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import fft, stats

from skdptune.accounting import _composition, _convolution, _curves
from skdptune.accounting._closed_forms import GaussianForm
from skdptune.accounting._composition import composed, self_composed_sides
from skdptune.accounting._convolution import (
    TAIL,
    convolved,
    convolved_in_stages,
    convolved_with_rare,
)
from skdptune.accounting._dp_accounting import trimmed
from skdptune.accounting._loss_distribution import LossDistribution
from tests.accounting.cases import few
from tests.accounting.oracles_profile import (
    gaussian_curve,
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
    """Every tail of finite losses is at least the exact one, and relevant ones are close."""
    # Of the parts' own mass at infinity nothing is a tail; of what was cut off a few times TAIL.
    gone = min(result.infinity, 4.0 * TAIL)
    found = tails(aligned(result, lowest, exact.size)) + gone
    wanted = tails(exact)
    assert np.all(found >= wanted * (1.0 - 1e-11))
    counts = wanted > floor
    assert np.all(found[counts] <= wanted[counts] * (1.0 + above) + gone)


def test_stages_of_many_releases_stay_above_the_closed_form():
    # Theorem P1, Theorem P4: 2**18 + 100 Gaussian releases; the group's size is no divisor.
    mu, count = 0.002, 2**18 + 100
    losses = GaussianForm(mu).sides(1e-4 / 2**9)[0]
    found = convolved_in_stages(losses, count, TAIL)
    assert found.step > losses.step
    epsilons = np.linspace(0.0, 5.0, 50)
    exact = gaussian_curve(mu * math.sqrt(count), epsilons)
    values = found.delta(epsilons)
    assert np.all(values >= exact) and np.all(values <= 1.01 * exact + 1e-13)


# By how much tails may be above, where they are light enough for few slopes.
LIGHT = {"normal": 1e-6, "some at infinity": 1e-6, "random": 1e-3, "gaps": 1e-3}


@pytest.mark.parametrize(("name", "count"), few(8, SHAPES, [1, 2, 3, 12, 40]))
def test_bounds_are_direct_sums_rounded_up(by_transforms, name, count):
    # Theorem P12: allowances for the rounding of Fourier transforms.
    losses = SHAPES[name]
    result = convolved([(losses, count)], TAIL)
    lost = -math.expm1(count * math.log1p(-losses.infinity))
    assert lost <= result.infinity <= lost * (1.0 + 1e-12) + 3.0 * TAIL
    # Long tails need `rare_part` to be seen clearly.
    above = LIGHT.get(name, math.inf)
    check_upper_bound(
        result, direct_power(losses, count), count * losses.lowest, above=above, floor=1e-14
    )


@given(
    st.lists(st.floats(0.0, 1.0), min_size=2, max_size=60).filter(lambda w: sum(w) > 0.1),
    st.integers(1, 30),
    st.floats(0.0, 40.0),
)
@settings(max_examples=30, deadline=None)
def test_no_mass_of_any_shape_is_understated(weights, count, decay):
    # Theorem P12: allowances for the rounding of Fourier transforms.
    masses = np.array(weights) * np.exp(-decay * np.arange(len(weights)) / len(weights))
    losses = distribution(masses, lowest=-3)
    exact = direct_power(losses, count)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_convolution, "_DIRECT", 0)
        by_transform = convolved([(losses, count)], TAIL)
    check_upper_bound(by_transform, exact, -3 * count, above=math.inf, floor=1e-13)
    directly = convolved([(losses, count)], TAIL)
    check_upper_bound(directly, exact, -3 * count, above=1e-9, floor=1e-13)


@pytest.mark.parametrize("count", [10, 10**6, 10**8])
def test_many_normal_losses_sum_to_a_normal_one(count):
    """A Gaussian release of shift 1 in ever more parts: mpmath's curve down to 1e-14."""
    # Theorem P12: allowances for the rounding of Fourier transforms.
    mu = 1.0 / math.sqrt(count)
    step = mu / 40.0 if count < 10**7 else mu / 8.0
    one = GaussianForm(mu).sides(step)[0]
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
    ("losses", "slope", "count"), few(8, SHAPES.values(), [0.0, 0.01, 0.05], [1, 3, 1000])
)
def test_allowances_are_many_times_the_rounding(losses, slope, count):
    """Longer floats show what a transform and its power are really off by."""
    # Theorem P12: allowances for the rounding of Fourier transforms.
    spread = losses.deviation / losses.step * math.sqrt(count)
    size = int(min(20.0 * spread + 400, 400 * count))
    low = int(count * losses.lowest)
    masses, allowance = _convolution.bounds([(losses, count)], slope, low, size)
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
    # Theorem P12: allowances for the rounding of Fourier transforms.
    masses = np.exp(-0.5 * PLACES) + 1e-9 * (PLACES > 100) * np.exp(-0.02 * PLACES)
    losses = distribution(masses, lowest=-1)
    common = LossDistribution(0.01, -1, losses.masses[: first + 1], 0.0)
    whole = convolved_with_rare(common, losses, first, count, TAIL)
    exact = direct_power(losses, count)
    # Where losses from 100 on count as common, these have a long tail themselves.
    above = {60: 1e-3, 150: 3e-2}.get(first, math.inf)
    check_upper_bound(whole, exact, -count, above=above, floor=1e-14)


# Composition -----------------------------------------------------------------------------


quarters_of = functools.partial(distribution, lowest=-2, step=0.25)
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


@pytest.mark.parametrize(("first", "second"), few(8, DISTRIBUTIONS, DISTRIBUTIONS))
def test_composition_is_the_convolution(first, second):
    # Theorem P4: losses of composed releases add up.
    result = composed(first, second, TAIL if first.infinity or second.infinity else 0.0)
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


# What is cut off ------------------------------------------------------------------------


def delta_of(losses, epsilon):
    return hockey_stick_of_losses(atoms_of(losses), losses.infinity, epsilon)


def test_cut_ends_are_paid_at_the_top():
    masses = np.array([3e-16, 4e-16, 0.25, 0.5, 0.25 - 1e-15, 4e-16, 5e-16])
    result = trimmed(0.25, -3, masses, 1e-9, tail=1e-15, error=0.0)
    assert result.lowest == -1 and result.highest == 1
    assert result.infinity == pytest.approx(1e-9 + 9e-16, abs=1e-24)
    # The lower end went to the lowest loss that stays.
    assert result.masses[0] >= 0.25 + 6.9e-16
    before = LossDistribution(0.25, -3, masses, 1e-9)
    for epsilon in (0.0, 0.1, 0.25, 0.3, 0.6):
        assert delta_of(result, epsilon) >= delta_of(before, epsilon) * (1.0 - 1e-12)


def test_negative_noise_is_paid_at_infinity():
    masses = np.array([0.5, -2e-12, 0.5, -1e-12])
    result = trimmed(0.25, -1, masses, 1e-9, tail=1e-15, error=0.0)
    assert result.infinity >= 1e-9 + 3e-12 * (1 - 1e-9)
    assert result.masses.min() >= 0.0


def test_without_a_tail_no_mass_goes_to_infinity():
    masses = np.array([1e-18, 0.5, -1e-12, 0.5, 1e-18, -1e-17])
    result = trimmed(0.25, -2, masses, 0.0, tail=0.0, error=0.0)
    assert result.infinity == 0.0
    # The last grid point is the guarantee at delta 0, and must not be lost.
    assert result.epsilon(0.0) == 0.75
    assert result.masses[-1] >= 1e-12
    assert result.lowest == -2
