"""From dp_accounting's events to loss distributions, on a grid that suits the event."""

from __future__ import annotations

import functools

from dp_accounting import dp_event

from skdptune.accounting import _curves


@functools.singledispatch
def _spread(event: dp_event.DpEvent) -> float:
    """Return about how far one application of the event spreads the privacy loss."""
    return 1.0


@_spread.register
def _(event: dp_event.GaussianDpEvent) -> float:
    return 1.0 / event.noise_multiplier if event.noise_multiplier else 1.0


@_spread.register
def _(event: dp_event.LaplaceDpEvent) -> float:
    return 1.0 / event.noise_multiplier if event.noise_multiplier else 1.0


@_spread.register
def _(event: dp_event.PoissonSampledDpEvent) -> float:
    return event.sampling_probability * _spread(event.event) or 1.0


@_spread.register
def _(event: dp_event.SelfComposedDpEvent) -> float:
    return _spread(event.event)


@_spread.register
def _(event: dp_event.ComposedDpEvent) -> float:
    return min((_spread(part) for part in event.events), default=1.0)


def suitable_step(event: dp_event.DpEvent) -> float:
    """Return 1e-4, or less where that would be coarse beside the losses of one application."""
    return min(_curves.step_at_most(max(_spread(event) / 20.0, 1e-7)), 1e-4)
