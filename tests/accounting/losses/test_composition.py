"""Composition of loss distributions: against plain convolution."""

import math

import numpy as np
import pytest
from dp_accounting import dp_event

from skdptune.accounting._losses import (
    LossDistribution,
    _composition,
    _curves,
    composed_sides,
    losses_of_event,
    self_composed_sides,
)
from skdptune.accounting._losses._composition import composed, self_composed
from tests.accounting.cases import few
from tests.accounting.oracles_profile import hockey_stick_of_losses


def distribution(masses, step=0.25, lowest=-2, infinity=0.0):
    masses = np.array(masses, dtype=float)
    return LossDistribution(step, lowest, masses / masses.sum() * (1.0 - infinity), infinity)


PLACES = np.arange(-4500, 4501)
NORMAL = LossDistribution(
    1e-3,
    -4500,
    np.exp(-0.5 * ((PLACES - 125) / 500.0) ** 2) / (500.0 * math.sqrt(2 * math.pi)),
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
    distribution([0.1, 0.2, 0.4, 0.3], infinity=0.01),
    distribution([0.5, 0.5], lowest=3),
    distribution([0.3, 0.0, 0.0, 0.0, 0.7], lowest=-4),
    distribution([1.0], lowest=0),
    distribution([0.2, 0.8], lowest=-9, infinity=1e-12),
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


REACHING_FAR = {
    "exponential": distribution([1e5 if k == 3 else math.exp(-0.06 * k) for k in range(400)]),
    "jump": distribution([math.exp(-((k - 8) ** 2) / 8) + 1e-9 * (k > 300) for k in range(400)]),
}


@pytest.mark.parametrize("losses", REACHING_FAR.values(), ids=REACHING_FAR.keys())
@pytest.mark.parametrize("count", [2, 12, 40])
def test_losses_that_reach_far_keep_small_tails(losses, count):
    # Theorem P12.
    losses = LossDistribution(0.01, losses.lowest, losses.masses, 1e-300)
    exact = np.ones(1)
    for _ in range(count):
        exact = np.convolve(exact, losses.masses)
    found = self_composed(losses, count)
    wanted = np.cumsum(exact[::-1])[::-1]
    for place in range(1, exact.size, 37):
        tail = found.masses[max(place + count * losses.lowest - found.lowest, 0) :].sum()
        if wanted[place] > 1e-12:
            assert wanted[place] * (1.0 - 1e-11) <= tail + found.infinity
            assert tail <= wanted[place] * (1.0 + 1e-3)


@pytest.mark.parametrize("count", [2, 7, 64, 1000])
def test_copies_by_halves_cost_what_copies_at_once_do(monkeypatch, count):
    at_once = self_composed_sides((NORMAL, NORMAL), count)
    monkeypatch.setattr(_composition, "_LARGEST_TRANSFORM", 40_000)
    monkeypatch.setattr(_curves, "MOST_POINTS", 2**12)
    by_halves = self_composed_sides((NORMAL, NORMAL), count)
    for one, other in zip(at_once, by_halves, strict=True):
        for delta in (1e-2, 1e-6, 1e-12):
            assert other.epsilon(delta) == pytest.approx(one.epsilon(delta), rel=3e-3)
            assert other.epsilon(delta) >= one.epsilon(delta) * (1.0 - 1e-6)


def test_a_composition_stays_on_a_grid_that_is_fine_enough():
    """A loss that is not on it goes to the two points around it."""
    third = LossDistribution(1 / 3, -1, np.array([0.4, 0.0, 0.6]), 0.0)
    for first, second in (((NORMAL, NORMAL), (third, third)), ((third, third), (NORMAL, NORMAL))):
        remove, add = composed_sides(first, second)
        assert remove.step == add.step == NORMAL.step
    # A pure guarantee is not rounded for another one.
    pure = LossDistribution(0.01, -1, np.array([0.4, 0.0, 0.6]), 0.0)
    remove, _ = composed_sides((pure, pure), (third, third))
    assert remove.epsilon(0.0) == pytest.approx(1 / 3 + 0.01, rel=1e-12)


def test_sums_on_grids_coarser_than_any_loss_are_lost():
    sides = losses_of_event(dp_event.LaplaceDpEvent(0.5))[0]
    for side in self_composed_sides(sides, 10**12):
        assert side.infinity == 1.0
        assert side.epsilon(0.5) == math.inf
