"""Losses of events: closed forms, and dp_accounting's own."""

import math

import numpy as np
import pytest
from dp_accounting import dp_event

from skdptune.accounting._losses import GaussianForm, ResponseForm, _events, losses_of_event
from skdptune.accounting._losses._events import suitable_step
from skdptune.accounting._losses._forms import SampledGaussianForm

Gaussian, Laplace = dp_event.GaussianDpEvent, dp_event.LaplaceDpEvent
Composed, Repeated = dp_event.ComposedDpEvent, dp_event.SelfComposedDpEvent
Sampled = dp_event.PoissonSampledDpEvent


def sides_of(event, step=None):
    return losses_of_event(event, step)[0]


# Closed forms -----------------------------------------------------------------------------

FORMS = [
    (Gaussian(2.0), GaussianForm(0.5)),
    (Repeated(Gaussian(2.0), 4), GaussianForm(1.0)),
    (Composed([Gaussian(1 / 3), Repeated(Gaussian(0.5), 4)]), GaussianForm(5.0)),
    (Sampled(1.0, Gaussian(0.25)), GaussianForm(4.0)),
    (Sampled(0.1, Gaussian(2.0)), SampledGaussianForm(0.5, 0.1)),
    (Repeated(Sampled(0.1, Gaussian(2.0)), 7), SampledGaussianForm(0.5, 0.1, 7)),
    (
        Repeated(Composed([Repeated(Sampled(0.1, Gaussian(2.0)), 2), dp_event.NoOpDpEvent()]), 3),
        SampledGaussianForm(0.5, 0.1, 6),
    ),
    (dp_event.NoOpDpEvent(), ResponseForm(0.0, 0.0)),
    (Sampled(0.0, Gaussian(1.0)), ResponseForm(0.0, 0.0)),
    (Composed([]), ResponseForm(0.0, 0.0)),
    (Gaussian(math.inf), ResponseForm(0.0, 0.0)),
    (Laplace(2.0), None),
    (Composed([Gaussian(1.0), Laplace(2.0)]), None),
    (Composed([Gaussian(1.0), Sampled(0.1, Gaussian(2.0))]), None),
    (Gaussian(0.0), None),
]


@pytest.mark.parametrize(("event", "form"), FORMS, ids=lambda value: repr(value)[:60])
def test_events_have_the_closed_form_of_what_they_do(event, form):
    sides, found = losses_of_event(event)
    assert found == form
    for side in sides:
        assert side.masses.min() >= 0.0
        assert side.masses.sum() + side.infinity >= 1.0 - 1e-12


def test_directions_are_not_swapped():
    """Sampling makes removal cost more than adding at large epsilon."""
    remove, add = sides_of(Sampled(0.1, Gaussian(1.0)), 1e-3)
    at = np.array([1.0])
    assert float(remove.delta(at)[0]) > 1e-4
    assert float(add.delta(at)[0]) <= 1e-12


def test_rates_of_single_precision_cost_no_less():
    rate = np.float32(1.0 - 1e-6)
    exact = sides_of(Sampled(float(rate), Gaussian(0.5)), 1e-3)
    for found, known in zip(sides_of(Sampled(rate, Gaussian(0.5)), 1e-3), exact, strict=True):
        np.testing.assert_array_equal(found.masses, known.masses)


# Beside the accountant --------------------------------------------------------------------


def test_events_without_an_answer():
    assert losses_of_event(dp_event.UnsupportedDpEvent(), 1e-3) is None
    assert losses_of_event(Composed([Gaussian(1.0), dp_event.UnsupportedDpEvent()])) is None
    assert losses_of_event(Sampled(1.0, dp_event.NonPrivateDpEvent())) is None


@pytest.mark.parametrize("step", [None, 1e-2])
def test_an_event_that_reveals_everything_is_certain_disclosure(step):
    for event in (
        dp_event.NonPrivateDpEvent(),
        Gaussian(0.0),
        Laplace(0.0),
        Composed([Gaussian(1.0), dp_event.NonPrivateDpEvent()]),
        Repeated(Composed([Gaussian(1.0), Laplace(0.0)]), 3),
    ):
        for side in sides_of(event, step):
            assert side.infinity == 1.0


@pytest.mark.parametrize("noise", [0.3, 7.0])
def test_a_pure_event_stays_pure_in_any_number(noise):
    for count in (1, 9, 300):
        for side in sides_of(Repeated(Laplace(noise), count)):
            assert side.infinity == 0.0
            assert side.epsilon(0.0) == pytest.approx(count / noise, rel=1e-2)
            assert side.epsilon(0.0) >= count / noise * (1.0 - 1e-9)


# Grids -------------------------------------------------------------------------------------

GRIDS = [
    (Laplace(5000.0), 1 / 5000),
    (Laplace(0.0), 1.0),
    (Sampled(1e-3, Laplace(2.0)), 1e-3 / 2.0),
    (Sampled(0.0, Laplace(2.0)), 1.0),
    (dp_event.DiscreteLaplaceDpEvent(0.5, 1), 1.0),
]


@pytest.mark.parametrize(("event", "spread"), GRIDS, ids=lambda value: repr(value)[:60])
def test_step_is_fine_beside_the_losses_of_one_application(event, spread):
    step = suitable_step(event)
    assert 0.0 < step <= 2e-3
    assert step <= spread / 20.0
    # No finer than needed, and on the family of grids that fit into each other.
    assert step > min(spread / 40.0, 1e-4) * (1.0 - 1e-9)
    assert math.log2(step / 1e-4) == round(math.log2(step / 1e-4))


def test_grids_of_ever_weaker_events_stop_at_a_finest_one():
    assert suitable_step(Laplace(1e300)) == suitable_step(Laplace(1e12)) > 1e-8


def test_a_given_grid_is_that_of_all_parts():
    event = Composed([Gaussian(1.0), Laplace(2.0), Repeated(Sampled(0.1, Gaussian(2.0)), 5)])
    assert [side.step for side in sides_of(event, 2e-3)] == [2e-3, 2e-3]


def test_equal_releases_are_composed_once(monkeypatch):
    """Whatever the tree around them."""
    calls = []

    def counted(sides, count):
        calls.append(count)
        return sides

    monkeypatch.setattr(_events, "self_composed_sides", counted)
    training = Repeated(Sampled(0.1, Gaussian(2.0)), 50)
    assert losses_of_event(Composed([training, training, Gaussian(1.0)]))[1] is None
    assert calls == []
    losses_of_event(Repeated(Composed([training, Laplace(3.0)]), 4))
    assert calls == [4]
