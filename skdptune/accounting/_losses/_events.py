"""The grid of losses that suits an event of dp_accounting."""

from __future__ import annotations

import functools

from dp_accounting import dp_event

from skdptune.accounting._losses._curves import step_at_most
from skdptune.accounting._losses._distribution import LARGEST_LOSS

# Spread and reach of the losses of one application.
Scales = tuple[float, float]
_USUAL: Scales = (1.0, 1.0)


def suitable_step(event: dp_event.DpEvent) -> float:
    """Return 1e-4; less where one application spreads less, more where losses reach far."""
    spread, reach = _scales(event)
    fine = min(step_at_most(max(spread / 20.0, 1e-7)), 1e-4)
    return max(fine, step_at_most(min(reach, LARGEST_LOSS) / 2**20))


@functools.singledispatch
def _scales(event: dp_event.DpEvent) -> Scales:
    """Return about how much the privacy loss spreads, and how far it goes."""
    return _USUAL


@_scales.register
def _(event: dp_event.GaussianDpEvent) -> Scales:
    if not event.noise_multiplier:
        return _USUAL
    mu = 1.0 / event.noise_multiplier
    return mu, mu * mu / 2.0 + 9.0 * mu


@_scales.register
def _(event: dp_event.LaplaceDpEvent) -> Scales:
    largest = 1.0 / event.noise_multiplier if event.noise_multiplier else 1.0
    return largest, largest


@_scales.register
def _(event: dp_event.PoissonSampledDpEvent) -> Scales:
    spread, reach = _scales(event.event)
    return event.sampling_probability * spread or 1.0, reach


@_scales.register
def _(event: dp_event.SelfComposedDpEvent) -> Scales:
    return _scales(event.event)


@_scales.register
def _(event: dp_event.ComposedDpEvent) -> Scales:
    parts = [_scales(part) for part in event.events] or [_USUAL]
    return min(spread for spread, _ in parts), max(reach for _, reach in parts)
