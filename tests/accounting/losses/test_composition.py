"""Composition of loss distributions: against plain convolution."""

import math

import numpy as np
import pytest

from skdptune.accounting._losses._composition import composed, self_composed
from skdptune.accounting._losses._distribution import LossDistribution
from tests.accounting.oracles_profile import hockey_stick_of_losses


def distribution(masses, step=0.25, lowest=-2, infinity=0.0):
    masses = np.array(masses, dtype=float)
    return LossDistribution(step, lowest, masses / masses.sum() * (1.0 - infinity), infinity)


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


@pytest.mark.parametrize("first", DISTRIBUTIONS)
@pytest.mark.parametrize("second", DISTRIBUTIONS)
def test_composition_is_the_convolution(first, second):
    # Theorem P4.
    result = composed(first, second)
    atoms, infinity = naive_composition(first, second)
    for epsilon in np.linspace(-3.0, 3.0, 25):
        exact = hockey_stick_of_losses(atoms, infinity, epsilon)
        claimed = hockey_stick_of_losses(atoms_of(result), result.infinity, epsilon)
        assert exact * (1.0 - 1e-12) - 1e-16 <= claimed <= exact * (1.0 + 1e-9) + 1e-14


@pytest.mark.parametrize("losses", DISTRIBUTIONS)
@pytest.mark.parametrize("count", [1, 2, 5])
def test_copies_compose_like_themselves(losses, count):
    result = self_composed(losses, count)
    atoms, infinity = atoms_of(losses), losses.infinity
    for _ in range(count - 1):
        width = len(atoms)
        so_far = LossDistribution(
            losses.step,
            round(atoms[0][0] / losses.step),
            np.array([m for _, m in atoms]),
            infinity,
        )
        atoms, infinity = naive_composition(so_far, losses)
        atoms.sort()
        assert len(atoms) >= width
    for epsilon in np.linspace(-2.0, 4.0, 25):
        exact = hockey_stick_of_losses(atoms, infinity, epsilon)
        claimed = hockey_stick_of_losses(atoms_of(result), result.infinity, epsilon)
        assert exact * (1.0 - 1e-12) - 1e-16 <= claimed <= exact * (1.0 + 1e-9) + 1e-14


def test_composition_keeps_the_largest_loss_of_a_pure_guarantee():
    """Its mass underflows, or drowns in the noise of the transform, and yet counts."""
    half = distribution([0.5, 0.0, 0.5], step=0.01, lowest=-1)
    for count in (2, 60, 1100, 3000):
        result = self_composed(half, count)
        assert result.infinity == 0.0
        assert result.highest == count and result.masses[-1] > 0.0
    twice = composed(result, result)
    assert twice.infinity == 0.0 and twice.highest == 6000 and twice.masses[-1] > 0.0


def test_certain_disclosure_composes():
    """Mass 1 at infinity stays there."""
    revealed = distribution([1.0], lowest=0, infinity=1.0)
    for result in (
        self_composed(revealed, 3),
        composed(revealed, DISTRIBUTIONS[0]),
        composed(DISTRIBUTIONS[0], revealed),
    ):
        assert result.infinity == 1.0
        assert result.epsilon(1.0 - 1e-9) == math.inf
