"""Scripted learners, so that tests are about searches and not about training."""

from __future__ import annotations

import logging
import sys
import warnings
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from skdptune.accounting import PrivacyProfile, PrivacyReport
from skdptune.base import PrivateEstimatorMixin
from skdptune.base._shared import REPLACE
from skdptune.mechanisms import gaussian_profile, noise_for_budget

try:
    from joblib.externals import cloudpickle
except ImportError:  # since joblib 1.6
    import cloudpickle


def table(n_samples: int = 600, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return records of which the first column tells the label, and the second is uniform."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n_samples)
    return np.column_stack([2.0 * y - 1.0, rng.random(n_samples), rng.random(n_samples)]), y


class Unread(np.ndarray):
    """Raises when a record is read."""

    def __getitem__(self, key: Any) -> Any:
        raise AssertionError("a record was read")


class _Here(dict):
    """Stays where it is: workers, to whom this module travels by content, start with none."""

    def __reduce__(self) -> Any:
        return type(self), ()


# Not functools.cache, whose wrapper is pickled by its name.
_PROFILES: dict[tuple[float, float], PrivacyProfile] = _Here()


def _gaussian(epsilon: float, delta: float) -> PrivacyProfile:
    key = (epsilon, delta)
    if key not in _PROFILES:
        _PROFILES[key] = noise_for_budget(epsilon, delta)[1]
    return _PROFILES[key]


# Searches ask for parameters so often that reading signatures would be a third of their time.
_NAMES: dict[type, list[str]] = _Here()


class QuickParameters:
    """Knows the names of its parameters."""

    @classmethod
    def _get_param_names(cls) -> list[str]:
        if cls not in _NAMES:
            _NAMES[cls] = super()._get_param_names()
        return _NAMES[cls]


class Private(QuickParameters, ClassifierMixin, PrivateEstimatorMixin, BaseEstimator):
    """What the learners share: the price of Gaussian noise, and nothing drawn."""

    cost_parameters = frozenset({"epsilon", "delta"})

    def privacy_profile(self, n_samples: int, n_features: int | None = None) -> PrivacyProfile:
        epsilon, delta = self._checked_budget()
        if np.isinf(epsilon):
            return PrivacyProfile.approximate(0.0, 1.0)
        return _gaussian(epsilon, delta)

    def _start(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        X, y = validate_data(self, X, y, accept_sparse=True)
        check_classification_targets(y)
        self.classes_ = np.unique(y)
        size = self.n_public or X.shape[0]
        self.privacy_ = PrivacyReport(
            self.privacy_profile(size, X.shape[1]), self.delta, name=type(self).__name__
        )
        return dense(X), y

    def _table(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return dense(validate_data(self, X, accept_sparse=True, reset=False))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def dense(X: Any) -> np.ndarray:
    return X.toarray() if sparse.issparse(X) else X


class Scripted(Private):
    """Predicts right where the second column is below `quality`; the first says what is right.

    So its accuracy on data of `table` is about `quality`, whatever it was trained on.
    """

    def __init__(
        self,
        quality: float = 0.5,
        mark: Any = None,
        epsilon: float | None = 1.0,
        delta: float = 1e-6,
        n_public: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.quality = quality
        self.mark = mark
        self.epsilon = epsilon
        self.delta = delta
        self.n_public = n_public
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Scripted:
        self._start(X, y)
        self.was_told_ = self.random_state
        self.weight_ = None if sample_weight is None else float(np.mean(sample_weight))
        return self

    def predict(self, X: Any) -> np.ndarray:
        X = self._table(X)
        right, truth = X[:, 1] < self.quality, X[:, 0] > 0.0
        return self.classes_[np.where(right, truth, ~truth).astype(int)]

    def decision_function(self, X: Any) -> np.ndarray:
        return self._table(X)[:, 0]


class Loud(Scripted):
    """Warns, logs, prints and (with a quality below 0.2) raises, and says its mark each time.

    It raises on no made-up data, of which there are few: a search would refuse it.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Loud:
        warnings.warn(f"warning of {self.mark}", UserWarning, stacklevel=2)
        logging.getLogger("learners").error("record of %s", self.mark)
        print(f"print of {self.mark}")
        if self.quality < 0.2 and len(y) > 6:
            raise ValueError(f"exception of {self.mark}")
        return super().fit(X, y)


class Told(Scripted):
    """Notes the number that it is given at each fit."""

    heard: list[tuple[Any, ...]] = []

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Told:
        Told.heard.append((self.n_public, self.privacy_profile(self.n_public or len(X))))
        return super().fit(X, y)


class Centroids(Private):
    """Predicts the class of the nearest mean, shrunk; its price is as scripted."""

    def __init__(
        self,
        shrink: float = 0.0,
        epsilon: float | None = 1.0,
        delta: float = 1e-6,
        n_public: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.shrink = shrink
        self.epsilon = epsilon
        self.delta = delta
        self.n_public = n_public
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Centroids:
        X, y = self._start(X, y)
        means = np.array([X[y == label].mean(axis=0) for label in self.classes_])
        self.means_ = (1.0 - self.shrink) * means
        return self

    def predict(self, X: Any) -> np.ndarray:
        X = self._table(X)
        distances = ((X[:, None, :] - self.means_[None, :, :]) ** 2).sum(axis=2)
        return self.classes_[distances.argmin(axis=1)]


# Workers may find another package of the name `tests`.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


class Together(Scripted):
    """Counts how often it is fitted separately, and how often with others."""

    calls: list[str] = []

    def fit(self, X: Any, y: Any) -> Any:
        self.calls.append("alone")
        return super().fit(X, y)

    @classmethod
    def fit_many(cls, estimators: Any, X: Any, y: Any, *, return_exceptions: bool) -> Any:
        """Fail for all at quality 0.9, and for that one at 0.8."""
        cls.calls.append("together")
        if any(estimator.quality == 0.9 for estimator in estimators):
            raise ValueError("one of them cannot")
        for estimator in estimators:
            Scripted.fit(estimator, X, y)
        return [
            ValueError("this one cannot") if estimator.quality == 0.8 else estimator
            for estimator in estimators
        ]


class PersonSum(QuickParameters, ClassifierMixin, PrivateEstimatorMixin, BaseEstimator):
    """Releases a noisy sum over persons of the last column, and says 1 above `cut`."""

    cost_parameters = frozenset({"noise"})
    heard: list[Any] = []

    def __init__(self, noise=1.0, cut=0.5, random_state=None, n_public=None):
        self.noise = noise
        self.cut = cut
        self.random_state = random_state
        self.n_public = n_public

    def privacy_profile(self, n_samples, n_features=None):
        return gaussian_profile(1.0, self.noise)

    def _input_refusal(self, form):
        return None

    def fit(self, X, y, *, groups=None):
        self.heard.append((X, groups))
        shares = np.ones(len(X)) if groups is None else groups.shares
        noise = np.random.default_rng(self.random_state).normal(scale=self.noise)
        self.sum_ = float((shares * np.clip(X[:, -1], 0.0, 1.0)).sum()) + noise
        self.classes_ = np.array([0, 1])
        return self

    def predict(self, X):
        return ((X[:, -1] > self.cut) | (X[:, -1] < -self.sum_)).astype(int)


class PersonCut(PersonSum):
    """Says 1 by the cut alone, so that only scores show a person."""

    def predict(self, X):
        return (X[:, -1] > self.cut).astype(int)


class Replacing(Scripted):
    """Has a guarantee about replacing a record."""

    neighbouring = REPLACE


class Stopped(KeyboardInterrupt):
    """What ends a search as a user does."""
