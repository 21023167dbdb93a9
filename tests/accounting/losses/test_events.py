"""The grid that suits an event."""

import math

import pytest
from dp_accounting import dp_event

from skdptune.accounting._losses._events import suitable_step

Gaussian, Laplace = dp_event.GaussianDpEvent, dp_event.LaplaceDpEvent
Composed, Repeated = dp_event.ComposedDpEvent, dp_event.SelfComposedDpEvent
Sampled = dp_event.PoissonSampledDpEvent

EVENTS = [
    (Gaussian(1.0), 1.0),
    (Gaussian(0.05), 1.0),
    (Gaussian(2000.0), 1 / 2000),
    (Laplace(5000.0), 1 / 5000),
    (Gaussian(0.0), 1.0),
    (Laplace(0.0), 1.0),
    (Sampled(1e-3, Gaussian(2.0)), 1e-3 / 2.0),
    (Sampled(0.0, Gaussian(2.0)), 1.0),
    (Repeated(Gaussian(3e3), 100), 1 / 3e3),
    (Composed([Gaussian(1.0), Laplace(4e3), Gaussian(2.0)]), 1 / 4e3),
    (Composed([]), 1.0),
    (Repeated(Composed([Sampled(1e-2, Gaussian(50.0)), Gaussian(1.0)]), 3), 1e-2 / 50.0),
    (dp_event.NoOpDpEvent(), 1.0),
    (dp_event.NonPrivateDpEvent(), 1.0),
    (dp_event.UnsupportedDpEvent(), 1.0),
]


@pytest.mark.parametrize(("event", "spread"), EVENTS, ids=lambda value: repr(value)[:60])
def test_step_is_fine_beside_the_losses_of_one_application(event, spread):
    step = suitable_step(event)
    assert 0.0 < step <= 2e-3
    assert step <= spread / 20.0
    # No finer than needed, and on the family of grids that fit into each other.
    assert step > min(spread / 40.0, 1e-4) * (1.0 - 1e-9)
    assert math.log2(step / 1e-4) == round(math.log2(step / 1e-4))


def test_grids_of_ever_weaker_events_stop_at_a_finest_one():
    assert suitable_step(Gaussian(1e300)) == suitable_step(Gaussian(1e12)) > 1e-8
