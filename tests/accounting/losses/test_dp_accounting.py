"""The bridge to dp_accounting: both ways, and composition against plain convolution."""

import math

import numpy as np
import pytest
from dp_accounting import dp_event
from dp_accounting.pld import PLDAccountant
from dp_accounting.pld import privacy_loss_distribution as pld

from skdptune.accounting._losses import _dp_accounting
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
    result = _dp_accounting.composed(first, second)
    atoms, infinity = naive_composition(first, second)
    for epsilon in np.linspace(-3.0, 3.0, 25):
        exact = hockey_stick_of_losses(atoms, infinity, epsilon)
        claimed = hockey_stick_of_losses(atoms_of(result), result.infinity, epsilon)
        assert exact * (1.0 - 1e-12) - 1e-16 <= claimed <= exact * (1.0 + 1e-9) + 1e-14


@pytest.mark.parametrize("losses", DISTRIBUTIONS)
@pytest.mark.parametrize("count", [1, 2, 5])
def test_copies_compose_like_themselves(losses, count):
    result = _dp_accounting.self_composed(losses, count)
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
        result = _dp_accounting.self_composed(half, count)
        assert result.infinity == 0.0
        assert result.highest == count and result.masses[-1] > 0.0
    twice = _dp_accounting.composed(result, result)
    assert twice.infinity == 0.0 and twice.highest == 6000 and twice.masses[-1] > 0.0


def test_certain_disclosure_composes():
    """Mass 1 at infinity stays there."""
    revealed = distribution([1.0], lowest=0, infinity=1.0)
    for result in (
        _dp_accounting.self_composed(revealed, 3),
        _dp_accounting.composed(revealed, DISTRIBUTIONS[0]),
        _dp_accounting.composed(DISTRIBUTIONS[0], revealed),
    ):
        assert result.infinity == 1.0
        assert result.epsilon(1.0 - 1e-9) == math.inf


def test_there_and_back_again():
    original = (
        distribution([0.1, 0.2, 0.4, 0.3], infinity=0.01),
        distribution([0.3, 0.2, 0.5], infinity=0.02),
    )
    back = _dp_accounting.from_pld(_dp_accounting.to_pld(*original))
    for before, after in zip(original, back, strict=True):
        assert (after.step, after.lowest) == (before.step, before.lowest)
        np.testing.assert_allclose(after.masses, before.masses, rtol=1e-14)
        assert after.infinity == pytest.approx(before.infinity, rel=1e-12, abs=0.0)


def test_the_foreign_object_answers_alike():
    sides = (
        distribution([0.1, 0.2, 0.4, 0.3], infinity=0.01),
        distribution([0.3, 0.2, 0.5], infinity=0.02),
    )
    foreign = _dp_accounting.to_pld(*sides)
    assert isinstance(foreign, pld.PrivacyLossDistribution)
    for epsilon in (0.0, 0.1, 0.3, 1.0):
        worst = max(float(side.delta(np.array([epsilon]))[0]) for side in sides)
        assert foreign.get_delta_for_epsilon(epsilon) == pytest.approx(worst, rel=1e-9, abs=0.0)


def test_directions_are_not_swapped():
    """Sampling makes removal cost more than adding at large epsilon."""
    event = dp_event.PoissonSampledDpEvent(0.1, dp_event.GaussianDpEvent(1.0))
    remove, add = _dp_accounting.losses_of_event(event, 1e-3)
    at = np.array([1.0])
    assert float(remove.delta(at)[0]) > 1e-4
    assert float(add.delta(at)[0]) <= 1e-12


def test_events_without_an_answer():
    assert _dp_accounting.losses_of_event(dp_event.UnsupportedDpEvent(), 1e-3) is None
    assert not _dp_accounting.is_renyi_supported(dp_event.UnsupportedDpEvent())
    assert _dp_accounting.is_renyi_supported(dp_event.GaussianDpEvent(1.0))


def test_an_event_that_reveals_everything_is_certain_disclosure():
    for event in (
        dp_event.NonPrivateDpEvent(),
        dp_event.GaussianDpEvent(0.0),
        dp_event.ComposedDpEvent([dp_event.GaussianDpEvent(1.0), dp_event.NonPrivateDpEvent()]),
    ):
        for side in _dp_accounting.losses_of_event(event, 1e-2):
            assert side.infinity == 1.0


@pytest.mark.parametrize("noise", [0.3, 1.0, 7.0])
def test_masses_of_an_event_are_one_law(noise):
    """The accountant's own masses miss 1 by some 1e-5; the bridge never does from below."""
    for side in _dp_accounting.losses_of_event(dp_event.GaussianDpEvent(noise), 1e-3):
        assert side.masses.min() >= 0.0
        assert side.masses.sum() + side.infinity >= 1.0 - 1e-12


def test_an_event_agrees_with_its_accountant():
    event = dp_event.ComposedDpEvent([dp_event.GaussianDpEvent(1.3), dp_event.LaplaceDpEvent(2.0)])
    accountant = PLDAccountant(value_discretization_interval=1e-3).compose(event)
    sides = _dp_accounting.losses_of_event(event, 1e-3)
    for delta in (0.1, 1e-3, 1e-6, 1e-9):
        ours = max(side.epsilon(delta) for side in sides)
        theirs = accountant.get_epsilon(delta)
        assert theirs - 1e-9 <= ours <= theirs + 1e-6
