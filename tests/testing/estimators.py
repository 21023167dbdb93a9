"""A private estimator with every optional member, and faulty ones that each break one promise."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone

from skdptune.accounting import PrivacyProfile, PrivacyReport
from skdptune.mechanisms import fit_generator, laplace_profile, laplace_release


class Right(ClassifierMixin, BaseEstimator):
    """Weighs the columns by their clipped mean products with the label, with Laplace noise."""

    cost_parameters: Any = frozenset({"epsilon", "noise_multiplier"})
    noise_parameter: str | None = "noise_multiplier"

    def __init__(
        self, epsilon=1.0, clip=1.0, noise_multiplier=None, random_state=None, n_public=None
    ):
        self.epsilon = epsilon
        self.clip = clip
        self.noise_multiplier = noise_multiplier
        self.random_state = random_state
        self.n_public = n_public

    def noise_level(self, n_samples, n_features=None):
        return 1.0 / self.epsilon if self.noise_multiplier is None else self.noise_multiplier

    def privacy_profile(self, n_samples, n_features=None):
        return laplace_profile(1.0, self.noise_level(n_samples))

    def tuning_parameters(self, n_tune, n_final):
        return {"clip": self.clip}

    def suggested_space(self, n_samples, n_features=None):
        return {"clip": [self.clip, 2.0 * self.clip]}

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.size_ = self.n_public or len(X)
        signs = np.where(y == self.classes_[-1], 1.0, -1.0)
        sums = signs @ np.clip(X, -self.clip, self.clip) / (self.clip * X.shape[1])
        noisy = laplace_release(sums, 1.0, self.noise_level(len(X)), self._randomness())
        self.coef_ = noisy / self.size_
        self.privacy_ = self._report(X)
        return self

    @classmethod
    def fit_many(cls, estimators, X, y, *, return_exceptions=False):
        return [one.fit(X, y) for one in estimators]

    def predict(self, X):
        return self.classes_[(np.asarray(X) @ self.coef_ > 0).astype(int)]

    def decision_function(self, X):
        return np.asarray(X) @ self.coef_

    def _randomness(self):
        return fit_generator(self.random_state)

    def _report(self, X):
        profile = self.privacy_profile(len(X), X.shape[1])
        assumptions = ("the number of records is public",)
        return PrivacyReport(profile, 0.0, name="toy", assumptions=assumptions)


class RightTransformer(TransformerMixin, BaseEstimator):
    """Learns nothing, and says so."""

    def __init__(self, factor=2.0):
        self.factor = factor

    def privacy_profile(self, n_samples, n_features=None):
        return PrivacyProfile.pure(0.0)

    def fit(self, X, y=None):
        self.privacy_ = PrivacyReport(self.privacy_profile(len(X)), 0.0, name="toy")
        return self

    def transform(self, X):
        return self.factor * np.asarray(X)


# Wrong parameters and constructors -------------------------------------------------------------


class ChangesParameters(Right):
    def set_params(self, **params):
        return super().set_params(**{name: _halved(value) for name, value in params.items()})


def _halved(value):
    return value / 2.0 if isinstance(value, float) else value


class FittedByItsConstructor(Right):
    def __init__(
        self, epsilon=1.0, clip=1.0, noise_multiplier=None, random_state=None, n_public=None
    ):
        super().__init__(epsilon, clip, noise_multiplier, random_state, n_public)
        self.coef_ = np.zeros(3)


# Wrong profiles --------------------------------------------------------------------------------


class AnnouncesAfterFitAlone(Right):
    def privacy_profile(self, n_samples, n_features=None):
        return laplace_profile(1.0, self.noise_level(n_samples) * self.size_ / self.size_)


class AnnouncesAtRandom(Right):
    def privacy_profile(self, n_samples, n_features=None):
        return PrivacyProfile.pure(0.5 * self.epsilon + 0.1 * np.random.default_rng().random())


class AnnouncesANumber(Right):
    def privacy_profile(self, n_samples, n_features=None):
        return self.epsilon


class CostsMoreThanItsBudget(Right):
    def privacy_profile(self, n_samples, n_features=None):
        return PrivacyProfile.pure(2.0 * self.epsilon)


class CostsLessForMore(Right):
    def privacy_profile(self, n_samples, n_features=None):
        return PrivacyProfile.pure(min(self.epsilon, 1.0 / self.epsilon))


class HidesACostParameter(Right):
    def privacy_profile(self, n_samples, n_features=None):
        return PrivacyProfile.pure(self.epsilon * min(self.clip, 1.0))


class NamesNoParameters(Right):
    cost_parameters = frozenset({"epsilon", "noise"})


class HasNegativeNoise(Right):
    def noise_level(self, n_samples, n_features=None):
        return -super().noise_level(n_samples)

    def privacy_profile(self, n_samples, n_features=None):
        return laplace_profile(1.0, super().noise_level(n_samples))


class HasNoiseThatGrows(Right):
    def noise_level(self, n_samples, n_features=None):
        return self.epsilon

    def privacy_profile(self, n_samples, n_features=None):
        return laplace_profile(1.0, super().noise_level(n_samples))


class IgnoresItsNoiseParameter(Right):
    noise_parameter = "clip"


class CalibratesItself(Right):
    def calibrate_to_curve(self, curve, n_samples, n_features=None):
        return {"epsilon": 0.1 * curve.shift}


class CalibratesTooLittle(Right):
    def calibrate_to_curve(self, curve, n_samples, n_features=None):
        return {"epsilon": 3.0 * curve.shift}


class ScalesItsBudget(Right):
    def tuning_parameters(self, n_tune, n_final):
        return {"epsilon": self.epsilon * n_final / n_tune}


class SuggestsOthersFirst(Right):
    def suggested_space(self, n_samples, n_features=None):
        return {"clip": [2.0 * self.clip, self.clip]}


class SuggestsBudgets(Right):
    def suggested_space(self, n_samples, n_features=None):
        return {"epsilon": [self.epsilon, 2.0]}


# Wrong fits --------------------------------------------------------------------------------------


class ReportsLess(Right):
    def _report(self, X):
        return PrivacyReport(PrivacyProfile.pure(self.epsilon / 2.0), 0.0, name="toy")


class ReportsNothing(Right):
    def _report(self, X):
        return None


class ReturnsAnother(Right):
    def fit(self, X, y):
        super().fit(X, y)
        return clone(self).set_params(clip=self.clip)


class ReportsWhatItSaw(Right):
    def _report(self, X):
        whole = super()._report(X)
        seen = (f"values up to {np.max(X):.0f}",)
        return PrivacyReport(whole.profile, 0.0, name="toy", assumptions=seen)


class CostsMoreForLargeValues(Right):
    def _report(self, X):
        factor = 1.0 if np.max(X) <= 1.0 else 2.0
        return PrivacyReport(PrivacyProfile.pure(factor * self.epsilon), 0.0, name="toy")


class CostsByTheRealSize(Right):
    def privacy_profile(self, n_samples, n_features=None):
        return laplace_profile(1.0, self.noise_level(n_samples) * max(1000.0 / n_samples, 1.0))


class ShowsTheRealSize(Right):
    def fit(self, X, y):
        self.n_samples_seen_ = len(X)
        return super().fit(X, y)


class IgnoresItsSeed(Right):
    def _randomness(self):
        return None


class SharesAGenerator(Right):
    def _randomness(self):
        return self.random_state


class IsAlwaysSeeded(Right):
    def _randomness(self):
        return 0 if self.random_state is None else self.random_state


class FitsCopies(Right):
    @classmethod
    def fit_many(cls, estimators, X, y, *, return_exceptions=False):
        return [clone(one).fit(X, y) for one in estimators]


class CannotBeSent(Right):
    def fit(self, X, y):
        self.lock_ = threading.Lock()
        return super().fit(X, y)


class CountsForFree(Right):
    def fit(self, X, y):
        # How far the farthest record is, in steps that no made-up data of other checks reach.
        self.n_kept_ = int(1e6 * np.max(np.sum(np.square(X), axis=1)))
        return super().fit(X, y)


# Wrong in company --------------------------------------------------------------------------------


class DropsRecords(RightTransformer):
    def transform(self, X):
        return np.asarray(X)[np.asarray(X)[:, 0] > 0.0]


class PredictsPairs(Right):
    def predict(self, X):
        return np.tile(super().predict(X)[:, None], (1, 2))


class NeedsManyRecords(Right):
    def privacy_profile(self, n_samples, n_features=None):
        if (self.n_public or 80) < 80:
            raise ValueError("n_public must be at least 80.")
        return super().privacy_profile(n_samples, n_features)
