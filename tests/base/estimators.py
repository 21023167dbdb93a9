"""Estimators of the tests: one with its own profile, and one without."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator

from skdptune.accounting import PrivacyProfile, PrivacyReport

ROWS = np.random.default_rng(0).normal(size=(20, 3))


class Private(BaseEstimator):
    """Its cost is a parameter, grows with the number of features, and is in its report."""

    def __init__(self, epsilon=1.0, delta=0.0):
        self.epsilon = epsilon
        self.delta = delta

    def privacy_profile(self, n_samples, n_features=None):
        return PrivacyProfile.pure(self.epsilon + 1.0 / n_samples + (n_features or 0))

    def fit(self, X, y=None):
        profile = self.privacy_profile(len(X))
        self.privacy_ = PrivacyReport(profile, self.delta, name="Private", assumptions=("one",))
        return self

    def transform(self, X):
        return X


class Foreign(BaseEstimator):
    def fit(self, X, y=None):
        return self
