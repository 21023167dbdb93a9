"""The interface to dp_accounting: the only module that uses private attributes of it.

Private attributes may change with any version. Therefore pyproject.toml allows only versions with
which this module was tested, and the tests compare every used signature with a recorded one.
"""

from __future__ import annotations

import functools
import logging
import math
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from dp_accounting import dp_event
from dp_accounting.pld import PLDAccountant, pld_pmf
from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution
from dp_accounting.rdp import RdpAccountant

from skdptune._validation import FloatArray
from skdptune.accounting._closed_forms import (
    Form,
    GaussianForm,
    ResponseForm,
    SampledGaussianForm,
    laplace_halves,
)
from skdptune.accounting._composition import composed_sides, self_composed_sides
from skdptune.accounting._curves import Sides, connected, everything_lost, step_at_most
from skdptune.accounting._loss_distribution import LARGEST_LOSS, LossDistribution, normalised

# dp_accounting computes a curve as the difference of two probabilities with a few roundings each.
_ROUNDING = 8.0 * float(np.finfo(np.float64).eps)
# Mass that a single event may move to infinity if there is mass at infinity.
_TAIL = 1e-20

# The components of an event: closed forms or other events, with their numbers.
Parts = Iterator[tuple[Form | dp_event.DpEvent, int]]

# Events -----------------------------------------------------------------------------------


def is_supported(event: dp_event.DpEvent) -> bool:
    """Return whether the PLD accountant supports the event."""
    return bool(PLDAccountant().supports(event))


def losses_of_single_event(event: dp_event.DpEvent, discretization: float) -> Sides:
    """Return both directions of an event that the accountant supports."""
    accountant = PLDAccountant(value_discretization_interval=discretization)
    accountant.compose(event)
    if accountant._contains_non_dp_event:
        return everything_lost(discretization)
    remove, add = map(_from_pmf, (accountant._pld._pmf_remove, accountant._pld._pmf_add))
    return remove, add


def is_renyi_supported(event: dp_event.DpEvent) -> bool:
    """Return whether the RDP accountant supports the event."""
    return bool(RdpAccountant().supports(event))


def renyi_divergences(event: dp_event.DpEvent, orders: tuple[float, ...]) -> FloatArray:
    """Return the RDP accountant's divergences of the event at each order, at least 0."""
    with _no_warnings_of_orders():
        divergences = np.array(RdpAccountant(list(orders)).compose(event).rdp)
    # Differences of logarithms may be negative because of rounding.
    return np.maximum(divergences, 0.0)


@contextmanager
def _no_warnings_of_orders() -> Iterator[None]:
    """Suppress warnings that an order's series does not converge: its divergence is infinite."""
    logger = logging.getLogger("absl")
    logger.addFilter(_is_not_about_an_order)
    try:
        yield
    finally:
        logger.removeFilter(_is_not_about_an_order)


def _is_not_about_an_order(record: logging.LogRecord) -> bool:
    return "_compute_log_a_frac failed to converge" not in record.getMessage()


# Losses of events: closed forms if known, otherwise by the accountant ------------------------


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


# Objects of dp_accounting ----------------------------------------------------------------


def to_pld(remove: LossDistribution, add: LossDistribution) -> PrivacyLossDistribution:
    """Return dp_accounting's object for the two directions."""
    return PrivacyLossDistribution(_to_pmf(remove), _to_pmf(add))


def _to_pmf(losses: LossDistribution) -> pld_pmf.DensePLDPmf:
    return pld_pmf.DensePLDPmf(
        losses.step, losses.lowest, losses.masses, losses.infinity, pessimistic_estimate=True
    )


def _from_pmf(pmf: pld_pmf.PLDPmf) -> LossDistribution:
    """Return one direction of dp_accounting's; rounding is added at the top (see `trimmed`)."""
    dense = pmf.to_dense_pmf()
    infinity = float(dense._infinity_mass)
    return trimmed(
        dense._discretization,
        int(dense._lower_loss),
        np.asarray(dense._probs, dtype=np.float64),
        infinity,
        tail=_TAIL if infinity > 0.0 else 0.0,
        error=_ROUNDING,
    )


def trimmed(
    step: float,
    lowest: int,
    masses: FloatArray,
    infinity: float,
    tail: float,
    error: float,
) -> LossDistribution:
    """Return a distribution without its negligible ends, from masses with rounding noise.

    Negative masses (noise of a Fourier transform) become zero. The mass that they lacked, and the
    allowance for invisible errors, is added at the top. An upper end with mass below ``tail`` is
    moved to infinity, a lower end to the lowest remaining loss. Both can only raise the
    divergence. With ``tail = 0``, the highest loss stays finite, as required for a pure guarantee.

    Notes
    -----
    Theorem P4.
    """
    noise = float(-np.minimum(masses, 0.0).sum()) + error
    masses = np.maximum(masses, 0.0)
    if tail > 0.0:
        infinity += noise
        beyond = max(math.floor(LARGEST_LOSS / step) - lowest + 1, 1)
        keep = int(np.searchsorted(-np.cumsum(masses[::-1])[::-1], -tail, side="right"))
        keep = min(max(keep, 1), beyond)
        infinity += float(masses[keep:].sum())
        masses = masses[:keep].copy()
    else:
        masses[-1] = max(masses[-1] + noise, np.finfo(float).tiny)
    start = int(np.searchsorted(np.cumsum(masses), tail, side="right"))
    start = min(start, masses.size - 1)
    masses[start] += masses[:start].sum()
    return normalised(step, lowest + start, masses[start:], min(infinity, 1.0))
