"""The interface to dp_accounting: the only module that uses private attributes of it.

Private attributes may change with any version. Therefore pyproject.toml allows only versions with
which this module was tested, and the tests compare every used signature with a recorded one.
"""

from __future__ import annotations

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
from skdptune.accounting._curves import Sides, everything_lost
from skdptune.accounting._loss_distribution import LARGEST_LOSS, LossDistribution, normalised

# dp_accounting computes a curve as the difference of two probabilities with a few roundings each.
_ROUNDING = 8.0 * float(np.finfo(np.float64).eps)
# Mass that a single event may move to infinity if there is mass at infinity.
_TAIL = 1e-20

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
