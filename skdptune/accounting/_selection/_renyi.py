"""Private selection under Rényi differential privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from skdptune._validation import FloatArray
from skdptune.accounting._losses import ORDERS, RenyiCurve
from skdptune.accounting._run_counts import (
    Poisson,
    RunCountDistribution,
    TruncatedNegativeBinomial,
)


@dataclass(frozen=True)
class RenyiSelected(RenyiCurve):
    """The best of a random number of runs: Papernot and Steinke (2022), Theorems 2 and 6.

    Notes
    -----
    Theorem S3.
    """

    run: RenyiCurve
    distribution: RunCountDistribution

    def at(self, orders: FloatArray) -> FloatArray:
        """Return the theorem's divergences; infinite for a distribution that none covers."""
        if not is_covered(self.distribution):
            return np.full(orders.shape, math.inf)
        # Divergences never fall with the order: what a larger one proves, a smaller one does, too.
        everywhere = np.union1d(orders, ORDERS)
        least = np.minimum.accumulate(self._of_theorem(everywhere)[::-1])[::-1]
        return least[np.searchsorted(everywhere, orders)]

    def _of_theorem(self, orders: FloatArray) -> FloatArray:
        excess: float | FloatArray
        if isinstance(self.distribution, TruncatedNegativeBinomial):
            excess = self._excess_of_negative_binomial(self.distribution)
        else:
            excess = self.distribution.mean * self.run.delta(np.log1p(1.0 / (orders - 1.0)))
        return self.run.at(orders) + excess + math.log(self.distribution.mean) / (orders - 1.0)

    def _excess_of_negative_binomial(self, distribution: TruncatedNegativeBinomial) -> float:
        log_odds = math.log(1.0 / distribution.gamma)
        excesses = (1.0 - 1.0 / ORDERS) * self.run.at(ORDERS) + log_odds / ORDERS
        return (1.0 + distribution.eta) * float(np.min(excesses))


def is_covered(distribution: RunCountDistribution) -> bool:
    """Return whether one of the two theorems holds for such a number of runs."""
    if isinstance(distribution, Poisson):
        # Below a mean of 1 the bound would be negative: Papernot and Steinke (2022), Theorem 6,
        # leaves out the chance of no run at all.
        return distribution.mean >= 1.0
    return isinstance(distribution, TruncatedNegativeBinomial)
