"""Losses of the Gaussian mechanism on a Poisson sample, all points of the grid at once.

Theorem P7.
"""

from __future__ import annotations

import math

import numpy as np
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.pld.privacy_loss_mechanism import AdjacencyType, GaussianPrivacyLoss

from skdptune._validation import FloatArray

# Losses up to here are small: log 2.
_SMALL = math.log(2.0)


def sampled_gaussian_pld(
    deviation: float, rate: float, discretization: float
) -> pld.PrivacyLossDistribution:
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
    """
    remove, add = (
        pld._create_pld_pmf_from_monotone_privacy_loss(
            _SampledGaussianLoss(deviation, sampling_prob=rate, adjacency_type=adjacency),
            value_discretization_interval=discretization,
            use_connect_dots=True,
        )
        for adjacency in (AdjacencyType.REMOVE, AdjacencyType.ADD)
    )
    return pld.PrivacyLossDistribution(remove, add)


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
            whole = -_before_sampling(-epsilon, self.sampling_prob)
            return np.asarray(self._inverse_privacy_loss_without_subsampling_add(whole))
        whole = _before_sampling(epsilon, self.sampling_prob)
        return np.asarray(self._inverse_privacy_loss_without_subsampling_remove(whole))


def _before_sampling(losses: FloatArray, rate: float) -> FloatArray:
    """Return ``log(1 + (e^loss - 1) / rate)``, and ``-inf`` at and below ``log(1 - rate)``."""
    is_small = np.abs(losses) < _SMALL
    small = np.where(is_small, losses, 0.0)
    # Far from 0 this would overflow, or lose all digits of 1 - rate where the rate is near 1.
    large = np.where(is_small, _SMALL, losses)
    with np.errstate(divide="ignore", over="ignore"):
        small = np.log1p(np.maximum(np.expm1(small) / rate, -1.0))
        logs = np.log1p(np.maximum(-(1.0 - rate) * np.exp(-large), -1.0))
        return np.where(is_small, small, large - math.log(rate) + logs)
