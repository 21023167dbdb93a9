"""The losses of dp_accounting's events: closed forms if known, otherwise by its accountant."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from dp_accounting import dp_event

from skdptune.accounting._closed_forms import (
    Form,
    GaussianForm,
    ResponseForm,
    SampledGaussianForm,
    laplace_halves,
)
from skdptune.accounting._composition import composed_sides, self_composed_sides
from skdptune.accounting._curves import Sides, connected, everything_lost, step_at_most
from skdptune.accounting._dp_accounting import is_supported, losses_of_single_event
from skdptune.accounting._loss_distribution import LARGEST_LOSS

# The components of an event: closed forms or other events, with their numbers.
Parts = Iterator[tuple[Form | dp_event.DpEvent, int]]


def losses_of_event(event: dp_event.DpEvent, step: float | None) -> Sides | None:
    """Return both directions of an event.

    Parameters
    ----------
    event : DpEvent
    step : float or None
        Grid of the losses; None uses a suitable one.

    Returns
    -------
    Sides, or None if the PLD accountant of dp_accounting has no answer.
    """
    form = form_of_event(event)
    if form is not None:
        return form.sides(step)
    if not is_supported(event):
        return None
    parts = list(_parts(event, 1))
    if any(isinstance(part, dp_event.NonPrivateDpEvent) for part, _ in parts):
        return everything_lost(step or 1e-4)
    forms = _merged([(part, count) for part, count in parts if isinstance(part, Form)])
    sides = [form.sides(step) for form in forms]
    sides += [
        self_composed_sides(_losses_of_one(part, step), count)
        for part, count in parts
        if not isinstance(part, Form)
    ]
    return functools.reduce(composed_sides, sides)


def form_of_event(event: dp_event.DpEvent) -> Form | None:
    """Return the closed form of a whole event, or None if it has none."""
    parts = list(_parts(event, 1)) if is_supported(event) else [(event, 1)]
    forms = _merged([(part, count) for part, count in parts if isinstance(part, Form)])
    if len(forms) > 1 or not all(isinstance(part, Form) for part, _ in parts):
        return None
    return forms[0] if forms else ResponseForm(0.0, 0.0)


def _merged(forms: list[tuple[Form, int]]) -> list[Form]:
    """Return the smallest number of closed forms with the same composition."""
    found: list[Form] = []
    for form, count in forms:
        new = form.repeated(count) or form
        for index, known in enumerate(found):
            both = known.composed(new)
            if both is not None:
                found[index] = both
                break
        else:
            found.append(new)
    return found


def _parts(event: dp_event.DpEvent, count: int) -> Parts:
    """Yield the components of an event."""
    match event:
        case dp_event.NoOpDpEvent():
            return
        case dp_event.SelfComposedDpEvent():
            yield from _parts(event.event, count * int(event.count))
        case dp_event.ComposedDpEvent():
            for part in event.events:
                yield from _parts(part, count)
        case dp_event.GaussianDpEvent():
            yield from _parts_of_gaussian(event, event, 1.0, count)
        case dp_event.PoissonSampledDpEvent():
            # A rate in single precision would leave few digits of 1 - rate.
            rate = float(event.sampling_probability)
            if rate == 1.0:
                yield from _parts(event.event, count)
            elif isinstance(event.event, dp_event.GaussianDpEvent) and 0.0 <= rate < 1.0:
                yield from _parts_of_gaussian(event, event.event, rate, count)
            else:
                yield event, count
        case _:
            yield event, count


def _parts_of_gaussian(
    event: dp_event.DpEvent, gaussian: dp_event.GaussianDpEvent, rate: float, count: int
) -> Parts:
    """Yield Gaussian releases on samples; none if the noise is infinite or samples are empty."""
    noise = float(gaussian.noise_multiplier)
    if noise > 0.0:
        mu = 1.0 / noise
        if rate / noise > 0.0 and count > 0:
            yield GaussianForm(mu) if rate == 1.0 else SampledGaussianForm(mu, rate), count
    elif rate > 0.0:
        yield dp_event.NonPrivateDpEvent() if noise == 0.0 else event, count


# Events without a closed form -------------------------------------------------------------


def _losses_of_one(event: dp_event.DpEvent, step: float | None) -> Sides:
    if step is None:
        # 1e-4, less for losses with a small spread, or more for those with a large range.
        spread, reach = _scales(event)
        fine = min(step_at_most(max(spread / 20.0, 1e-7)), 1e-4)
        step = max(fine, step_at_most(min(reach, LARGEST_LOSS) / 2**20))
    if isinstance(event, dp_event.LaplaceDpEvent) and event.noise_multiplier > 0:
        return connected(*laplace_halves(1.0 / event.noise_multiplier, step))
    return losses_of_single_event(event, step)


def _scales(event: dp_event.DpEvent) -> tuple[float, float]:
    """Return the approximate spread of the privacy loss, and its range."""
    match event:
        case dp_event.LaplaceDpEvent():
            largest = 1.0 / event.noise_multiplier if event.noise_multiplier else 1.0
            return largest, largest
        case dp_event.PoissonSampledDpEvent():
            spread, reach = _scales(event.event)
            return event.sampling_probability * spread or 1.0, reach
    return 1.0, 1.0
