"""The bridge to dp_accounting: the only module that knows how its objects look inside."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from dp_accounting import dp_event
from dp_accounting.pld import PLDAccountant, pld_pmf
from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution
from dp_accounting.rdp import RdpAccountant

from skdptune.accounting._losses._distribution import TAIL_MASS, LossDistribution, trimmed
from skdptune.accounting._losses._sampled_gaussian import sampled_gaussian_pld

_LARGEST_TRANSFORM = 2**21
_FEW_MASSES = 16


class _Accountant(PLDAccountant):
    """The PLD accountant, faster where a Gaussian mechanism runs on Poisson samples."""

    def _maybe_compose(self, event: dp_event.DpEvent, count: int, do_compose: bool) -> Any:
        if not (do_compose and _is_sampled_gaussian(event)):
            return super()._maybe_compose(event, count, do_compose)
        single = sampled_gaussian_pld(
            # A rate of single precision would leave few digits of 1 - rate.
            float(event.event.noise_multiplier),
            float(event.sampling_probability),
            self._value_discretization_interval,
        )
        self._pld: PrivacyLossDistribution = self._pld.compose(single.self_compose(count))
        return None


def _is_sampled_gaussian(event: dp_event.DpEvent) -> bool:
    """Say whether there is noise, and a sample that is neither empty nor the whole."""
    return (
        isinstance(event, dp_event.PoissonSampledDpEvent)
        and isinstance(event.event, dp_event.GaussianDpEvent)
        and event.event.noise_multiplier > 0
        and 0 < event.sampling_probability < 1
    )


def losses_of_event(
    event: dp_event.DpEvent, discretization: float
) -> tuple[LossDistribution, LossDistribution] | None:
    """Return both directions of an event, or None if the PLD accountant has no answer."""
    accountant = _Accountant(value_discretization_interval=discretization)
    if not accountant.supports(event):
        return None
    accountant.compose(event)
    if accountant._contains_non_dp_event:
        empty = LossDistribution(discretization, 0, np.zeros(1), 1.0)
        return empty, empty
    return from_pld(accountant._pld)


def is_renyi_supported(event: dp_event.DpEvent) -> bool:
    """Say whether the RDP accountant has an answer for the event."""
    return bool(RdpAccountant().supports(event))


def from_pld(pld: PrivacyLossDistribution) -> tuple[LossDistribution, LossDistribution]:
    """Return the two directions (remove, add) of a privacy loss distribution."""
    remove, add = (_from_pmf(pmf) for pmf in (pld._pmf_remove, pld._pmf_add))
    return remove, add


def to_pld(remove: LossDistribution, add: LossDistribution) -> PrivacyLossDistribution:
    """Return dp_accounting's object for the two directions."""
    return PrivacyLossDistribution(_to_pmf(remove), _to_pmf(add))


def composed(first: LossDistribution, second: LossDistribution) -> LossDistribution:
    """Return the composition of two distributions on one grid."""
    # Theorem P4.
    few, many = sorted((first, second), key=lambda side: np.count_nonzero(side.masses))
    if np.count_nonzero(few.masses) <= _FEW_MASSES:
        return _directly_composed(few, many)
    pmf = _to_pmf(first).compose(_to_pmf(second), tail_mass_truncation=0.0)
    result = _from_pmf(
        pmf,
        tail=_tail(first.infinity + second.infinity),
        error=_transform_error(max(first.masses.size, second.masses.size), 1),
    )
    top = float(first.masses[-1] * second.masses[-1])
    return _with_honest_top(result, top)


def _directly_composed(few: LossDistribution, many: LossDistribution) -> LossDistribution:
    """Return the composition with a distribution of a few masses, exact but for rounding."""
    masses = np.zeros(few.masses.size + many.masses.size - 1)
    for place in np.flatnonzero(few.masses):
        masses[place : place + many.masses.size] += few.masses[place] * many.masses
    infinity = few.infinity + many.infinity - few.infinity * many.infinity
    return LossDistribution(few.step, few.lowest + many.lowest, masses, infinity)


def is_small_enough(losses: LossDistribution, count: int) -> bool:
    """Say whether ``count`` copies can be composed in one transform of moderate size."""
    return losses.masses.size * math.isqrt(count) <= _LARGEST_TRANSFORM


def self_composed(losses: LossDistribution, count: int) -> LossDistribution:
    """Return the composition of ``count >= 1`` copies of a distribution."""
    # Theorem P4.
    if losses.infinity >= 1.0:
        return losses
    tail = _tail(losses.infinity)
    if losses.masses.size * count > _LARGEST_TRANSFORM:
        # Too many losses to keep the last one: a share of them goes to infinity.
        tail = TAIL_MASS
    pmf = _to_pmf(losses).self_compose(count, tail_mass_truncation=tail)
    result = _from_pmf(pmf, tail=tail, error=_transform_error(losses.masses.size, count))
    return _with_honest_top(result, float(losses.masses[-1]) ** count)


def _transform_error(size: int, count: int) -> float:
    """Return an allowance for what a Fourier transform's rounding may take from a tail.

    Products of transforms are off by a fraction of the unit of rounding times the logarithm of
    their size, powers by the root of the exponent more; this is several times what closed forms
    show.
    """
    roundings = 0.25 * math.log2(size + 1.0) + 2.0 * (math.sqrt(count) - 1.0)
    return float(np.finfo(np.float64).eps) * roundings


def _tail(infinity: float) -> float:
    # A guarantee without mass at infinity (a pure one) must not get any from tidying up.
    return TAIL_MASS if infinity > 0.0 else 0.0


def _with_honest_top(result: LossDistribution, top: float) -> LossDistribution:
    """Make sure that the noise of a Fourier transform has not erased the largest loss."""
    if result.infinity > 0.0 or result.masses[-1] >= top:
        return result
    masses = result.masses.copy()
    masses[-1] = top
    return LossDistribution(result.step, result.lowest, masses, result.infinity)


def _to_pmf(losses: LossDistribution) -> pld_pmf.DensePLDPmf:
    return pld_pmf.DensePLDPmf(
        losses.step, losses.lowest, losses.masses, losses.infinity, pessimistic_estimate=True
    )


def _from_pmf(
    pmf: pld_pmf.PLDPmf, tail: float = TAIL_MASS, error: float = 0.0
) -> LossDistribution:
    dense = pmf.to_dense_pmf()
    return trimmed(
        dense._discretization,
        int(dense._lower_loss),
        np.asarray(dense._probs, dtype=np.float64),
        float(dense._infinity_mass),
        tail=tail,
        error=error,
    )
