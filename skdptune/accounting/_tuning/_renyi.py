"""Tuning on a random sample of the data under Rényi differential privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from skdptune._validation import FloatArray
from skdptune.accounting._losses import (
    RenyiCurve,
    log_binomial,
    table_of_integer_orders,
)


@dataclass(frozen=True)
class RenyiTuneThenFit(RenyiCurve):
    """Tuning on a Poisson sample, fit on the rest: Koskela and Kulkarni (2023), Theorem 1.

    Integer orders, chords between them.

    Notes
    -----
    Theorem T5.
    """

    tune: RenyiCurve
    fit: RenyiCurve
    fraction: float

    def at(self, orders: FloatArray) -> FloatArray:
        """Return the larger of the two directions' bounds."""
        return table_of_integer_orders(self).at(orders)

    def at_integers(self, integers: FloatArray) -> FloatArray:
        """Return the theorem's bound at orders 2, 3, 4 and so on."""
        log_q, log_rest = math.log(self.fraction), math.log1p(-self.fraction)
        j = np.arange(0.0, integers[-1] + 1.0)
        tune, fit = (_moments(curve, j) for curve in (self.tune, self.fit))
        # One row for each order, one column for each term of its sums.
        order, k = integers[:, None], j[None, :]
        k, left = np.minimum(k, order), np.maximum(order - k, 0.0)
        term, other = k.astype(np.int64), left.astype(np.int64)
        # The distribution of the sampled record is the mixture, here in the first place ...
        remove = log_binomial(order, k) + left * log_q + k * log_rest + tune[other] + fit[term]
        # ... and here in the second, which leaves one factor of the fit's distribution.
        add = log_binomial(order - 1.0, np.minimum(k, order - 1.0)) + k * log_q
        add = add + (left - 1.0) * log_rest + tune[np.minimum(term + 1, j.size - 1)] + fit[other]
        worst = np.maximum(_log_sums(remove, j <= order), _log_sums(add, j < order))
        return worst / (integers - 1.0)


def _log_sums(terms: FloatArray, is_used: npt.NDArray[np.bool_]) -> FloatArray:
    sums: FloatArray = special.logsumexp(np.where(is_used, terms, -math.inf), axis=1)
    return sums


def _moments(curve: RenyiCurve, orders: FloatArray) -> FloatArray:
    """Return ``(order - 1) * divergence`` at 0, 1, 2, ...; zero at the first two."""
    moments = np.zeros_like(orders)
    moments[2:] = (orders[2:] - 1.0) * curve.at(orders[2:])
    return moments
