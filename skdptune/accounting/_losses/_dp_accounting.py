"""The bridge to dp_accounting: the only module that overrides or reads what is private there.

Its private functions and attributes may change with any version, so pyproject.toml admits only
those that this module was tested with, and the tests compare every signature that it relies on
with a recorded one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from dp_accounting import dp_event
from dp_accounting.pld import PLDAccountant, pld_pmf, privacy_loss_distribution
from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution
from dp_accounting.pld.privacy_loss_mechanism import AdjacencyType, GaussianPrivacyLoss
from dp_accounting.rdp import RdpAccountant

from skdptune._validation import FloatArray
from skdptune.accounting._losses._closed_forms import loss_before_sampling
from skdptune.accounting._losses._curves import Sides
from skdptune.accounting._losses._distribution import TAIL_MASS, LossDistribution, trimmed

# Events -----------------------------------------------------------------------------------


def losses_of_event(event: dp_event.DpEvent, discretization: float) -> Sides | None:
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
    """Return whether the RDP accountant has an answer for the event."""
    return bool(RdpAccountant().supports(event))


def renyi_divergences(event: dp_event.DpEvent, orders: tuple[float, ...]) -> FloatArray:
    """Return what the RDP accountant says of the event, order by order."""
    return np.array(RdpAccountant(list(orders)).compose(event).rdp)


class _Accountant(PLDAccountant):
    """The PLD accountant, faster where a Gaussian mechanism runs on Poisson samples."""

    def _maybe_compose(self, event: dp_event.DpEvent, count: int, do_compose: bool) -> Any:
        if not (do_compose and _is_sampled_gaussian(event)):
            return super()._maybe_compose(event, count, do_compose)
        single = _sampled_gaussian_pld(
            # A rate of single precision would leave few digits of 1 - rate.
            float(event.event.noise_multiplier),
            float(event.sampling_probability),
            self._value_discretization_interval,
        )
        self._pld: PrivacyLossDistribution = self._pld.compose(single.self_compose(count))
        return None


def _is_sampled_gaussian(event: dp_event.DpEvent) -> bool:
    """Return whether there is noise, and a sample that is neither empty nor the whole."""
    return (
        isinstance(event, dp_event.PoissonSampledDpEvent)
        and isinstance(event.event, dp_event.GaussianDpEvent)
        and event.event.noise_multiplier > 0
        and 0 < event.sampling_probability < 1
    )


# The Gaussian mechanism on a Poisson sample, all points of the grid at once ----------------


def _sampled_gaussian_pld(
    deviation: float, rate: float, discretization: float
) -> PrivacyLossDistribution:
    """Return the privacy loss distribution of adding noise to a sum over a Poisson sample.

    Parameters
    ----------
    deviation : float
        Standard deviation of the noise, in multiples of what a record can contribute.
    rate : float
        Probability in (0, 1) with which a record is in the sample.
    discretization : float
        Grid of the losses.

    Returns
    -------
    PrivacyLossDistribution
        What ``from_gaussian_mechanism`` of dp_accounting returns, by its own construction, up to
        rounding. That inverts the loss one point at a time, which was nine tenths of its time.

    Notes
    -----
    Theorem P7.
    """
    remove, add = (
        privacy_loss_distribution._create_pld_pmf_from_monotone_privacy_loss(
            _SampledGaussianLoss(deviation, sampling_prob=rate, adjacency_type=adjacency),
            value_discretization_interval=discretization,
            use_connect_dots=True,
        )
        for adjacency in (AdjacencyType.REMOVE, AdjacencyType.ADD)
    )
    return PrivacyLossDistribution(remove, add)


class _SampledGaussianLoss(GaussianPrivacyLoss):
    """The loss of adding or removing a record, inverted for whole arrays."""

    def get_delta_for_epsilon(self, epsilon: FloatArray) -> FloatArray:
        """Return the hockey-stick divergence at each epsilon."""
        epsilon = np.asarray(epsilon, dtype=np.float64)
        cutoffs = self._cutoffs(epsilon)
        deltas = self.mu_upper_cdf(cutoffs) - np.exp(epsilon + self.mu_lower_log_cdf(cutoffs))
        return np.clip(deltas, 0.0, 1.0)

    def _cutoffs(self, epsilon: FloatArray) -> FloatArray:
        """Return the largest outcome at which the loss is at least epsilon.

        The loss of a sample is ``log(1 - q + q e^l)`` for removing a record and ``-log(1 - q +
        q e^-l)`` for adding one, where ``l`` is the loss of all records. Where no outcome has
        such a loss the result is ``-inf``, and ``inf`` where all have.
        """
        if self.adjacency_type == AdjacencyType.ADD:
            whole = -loss_before_sampling(-epsilon, self.sampling_prob)
            return np.asarray(self._inverse_privacy_loss_without_subsampling_add(whole))
        whole = loss_before_sampling(epsilon, self.sampling_prob)
        return np.asarray(self._inverse_privacy_loss_without_subsampling_remove(whole))


# Its objects ------------------------------------------------------------------------------


def from_pld(pld: PrivacyLossDistribution) -> Sides:
    """Return the two directions (remove, add) of a privacy loss distribution."""
    remove, add = (from_pmf(pmf) for pmf in (pld._pmf_remove, pld._pmf_add))
    return remove, add


def to_pld(remove: LossDistribution, add: LossDistribution) -> PrivacyLossDistribution:
    """Return dp_accounting's object for the two directions."""
    return PrivacyLossDistribution(to_pmf(remove), to_pmf(add))


def to_pmf(losses: LossDistribution) -> pld_pmf.DensePLDPmf:
    """Return dp_accounting's object for one direction."""
    return pld_pmf.DensePLDPmf(
        losses.step, losses.lowest, losses.masses, losses.infinity, pessimistic_estimate=True
    )


def from_pmf(pmf: pld_pmf.PLDPmf, tail: float = TAIL_MASS, error: float = 0.0) -> LossDistribution:
    """Return one direction of dp_accounting's, without its negligible ends (see `trimmed`)."""
    dense = pmf.to_dense_pmf()
    return trimmed(
        dense._discretization,
        int(dense._lower_loss),
        np.asarray(dense._probs, dtype=np.float64),
        float(dense._infinity_mass),
        tail=tail,
        error=error,
    )
