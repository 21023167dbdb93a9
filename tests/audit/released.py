"""An estimator whose cost is known and whose faults are planted, for audits in tests."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from skdptune.accounting import PrivacyProfile, PrivacyReport
from skdptune.mechanisms import gaussian_profile


class NoisySum(BaseEstimator):
    """Releases the sum of the first column, clipped to [0, 1], with Gaussian noise.

    Parameters
    ----------
    noise : float
        That is claimed.
    factor : float
        Of the noise that is drawn.
    limit : float
        To which records are really clipped.
    shows_sum : bool
        Whether the sum itself is published, too.
    fails_beyond : float
        A sum at which the fit raises an error.
    """

    def __init__(
        self,
        noise: float = 1.0,
        factor: float = 1.0,
        limit: float = 1.0,
        shows_sum: bool = False,
        fails_beyond: float = np.inf,
        random_state: Any = None,
        n_public: int | None = None,
    ) -> None:
        self.noise = noise
        self.factor = factor
        self.limit = limit
        self.shows_sum = shows_sum
        self.fails_beyond = fails_beyond
        self.random_state = random_state
        self.n_public = n_public

    def privacy_profile(self, n_samples: int, n_features: int | None = None) -> PrivacyProfile:
        return gaussian_profile(1.0, self.noise)

    def fit(self, X: Any, y: Any = None) -> NoisySum:
        total = float(np.clip(np.asarray(X)[:, 0], 0.0, self.limit).sum())
        if total > self.fails_beyond:
            raise RuntimeError("too large")
        noise = np.random.default_rng(self.random_state).normal(scale=self.noise * self.factor)
        self.sum_ = total + noise
        if self.shows_sum:
            self.exact_ = total
        self.privacy_ = _reported(self.noise)
        return self


@functools.cache
def _reported(noise: float) -> PrivacyReport:
    """Return the claim, whose computation takes longer than the rest of a fit."""
    return PrivacyReport(gaussian_profile(1.0, noise), 1e-5, name="NoisySum")


RECORDS = np.zeros((4, 1))
RECORD = np.array([100.0])


def sum_of(fitted: Any) -> float:
    """Return what was released."""
    return float(fitted.sum_)
