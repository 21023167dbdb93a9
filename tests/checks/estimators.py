"""Estimators for checks: small private ones of other libraries, as it were."""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator, ClassifierMixin

from skdptune.accounting import PrivacyProfile


class Private(ClassifierMixin, BaseEstimator):
    """A private classifier without declared labels, whose cost is known."""

    def __init__(self, epsilon: float = 1.0, warm_start: bool = False) -> None:
        self.epsilon = epsilon
        self.warm_start = warm_start

    def fit(self, X: Any, y: Any = None) -> Private:
        raise AssertionError("a check must not fit anything")

    def predict(self, X: Any) -> Any:
        raise AssertionError("a check must not predict anything")

    def privacy_profile(self, n_samples: int, n_features: int | None = None) -> PrivacyProfile:
        return PrivacyProfile.pure(self.epsilon)


class Replacing(Private):
    """One whose guarantee is about replacing a record."""

    neighbouring = "replace one of a public number of records"


class Sized(Private):
    """One whose cost depends on the number of records, and that takes no constant for it."""

    def privacy_profile(self, n_samples: int, n_features: int | None = None) -> PrivacyProfile:
        return PrivacyProfile.pure(self.epsilon / n_samples)
