"""Models that predict the first column, so that tests are about intervals and not about fits."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from skdptune.accounting import PrivacyProfile
from skdptune.base import PrivateEstimatorMixin


class _Told(PrivateEstimatorMixin, BaseEstimator):
    """Costs a pure epsilon, and remembers the rows of its fit (which no model may)."""

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 0.0,
        random_state: int | None = None,
        n_public: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.random_state = random_state
        self.n_public = n_public

    cost_parameters = frozenset({"epsilon"})

    def privacy_profile(self, n_samples: int, n_features: int | None = None) -> PrivacyProfile:
        if self.epsilon == np.inf:
            return PrivacyProfile.approximate(0.0, 1.0)
        return PrivacyProfile.pure(self.epsilon)

    def fit(self, X: Any, y: Any) -> Any:
        self.rows_, self.n_features_in_ = np.array(X), np.shape(X)[1]
        self.privacy_ = self._make_report(self.privacy_profile(1))
        return self


class Told(RegressorMixin, _Told):
    """Predicts the first column."""

    def predict(self, X: Any) -> Any:
        return np.asarray(X)[:, 0].astype(float)


class ToldChances(ClassifierMixin, _Told):
    """Predicts label 1 with the chance in the first column."""

    classes_ = np.array([0, 1])

    def predict_proba(self, X: Any) -> Any:
        chances = np.asarray(X)[:, 0].astype(float)
        return np.column_stack([1.0 - chances, chances])

    def predict(self, X: Any) -> Any:
        return (self.predict_proba(X)[:, 1] > 0.5).astype(int)
