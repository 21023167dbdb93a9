"""Tuning on a random sample of the data under Rényi differential privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from skdptune._validation import FloatArray
from skdptune.accounting._losses import RenyiCurve, at_integer_orders, log_binomial


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
        return at_integer_orders(self._at_integers, orders)

    def _at_integers(self, integers: FloatArray) -> FloatArray:
        log_q, log_rest = math.log(self.fraction), math.log1p(-self.fraction)
        j = np.arange(0.0, integers[-1] + 1.0)
        tune, fit = (_moments(curve, j) for curve in (self.tune, self.fit))
        bounds = []
        for order in integers:
            n = int(order)
            k = j[: n + 1]
            # The distribution of the sampled record is the mixture, here in the first place ...
            remove = log_binomial(order, k) + (order - k) * log_q + k * log_rest
            remove = remove + tune[: n + 1][::-1] + fit[: n + 1]
            # ... and here in the second, which leaves one factor of the fit's distribution.
            m = k[:n]
            add = log_binomial(order - 1.0, m) + m * log_q + (order - 1.0 - m) * log_rest
            add = add + tune[1 : n + 1] + fit[1 : n + 1][::-1]
            worst = max(special.logsumexp(remove), special.logsumexp(add))
            bounds.append(worst / (order - 1.0))
        return np.array(bounds)


def _moments(curve: RenyiCurve, orders: FloatArray) -> FloatArray:
    """Return ``(order - 1) * divergence`` at 0, 1, 2, ...; zero at the first two."""
    moments = np.zeros_like(orders)
    moments[2:] = (orders[2:] - 1.0) * curve.at(orders[2:])
    return moments
