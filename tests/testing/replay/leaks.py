"""A noisy mean that is private, and others that each publish more than they claim."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from skdptune.accounting import PrivacyProfile, PrivacyReport
from skdptune.mechanisms import gaussian_release

SECRET = 98765.25
NOISE = 4.0


class NoisyMean(TransformerMixin, BaseEstimator):
    """Mean of rows that are clipped to norm 1, over a public number, with Gaussian noise."""

    def __init__(self, noise=NOISE, random_state=None):
        self.noise = noise
        self.random_state = random_state

    def privacy_profile(self, n_samples, n_features=None):
        return PrivacyProfile.gaussian(1.0 / self.noise)

    def fit(self, X, y=None):
        self._before(X)
        total = self._clipped(X).sum(axis=0)
        self.mean_ = self._released(total, self._rng(X)) / self._size(X)
        self.privacy_ = PrivacyReport(self.privacy_profile(100), 1e-5, name="toy")
        return self

    def transform(self, X):
        return np.asarray(X) - self.mean_

    def _before(self, X) -> None:
        self.clip_norm_ = 1.0

    def _clipped(self, X) -> Any:
        norms = np.linalg.norm(X, axis=1, keepdims=True)
        return X / np.maximum(norms, 1.0)

    def _released(self, total, rng) -> Any:
        return gaussian_release(total, 1.0, self.noise, rng)

    def _size(self, X) -> float:
        return 100.0

    def _rng(self, X) -> Any:
        return np.random.default_rng(self.random_state)


# Records that count for too much -----------------------------------------------------------------


class ForgetsToClip(NoisyMean):
    def _clipped(self, X):
        return X


class ClipsEachNumberAlone(NoisyMean):
    def _clipped(self, X):
        return np.clip(X, -1.0, 1.0)


class StandardizesForFree(NoisyMean):
    def _clipped(self, X):
        return super()._clipped((X - X.mean(axis=0)) / X.std(axis=0))


class ReleasesTwice(NoisyMean):
    """Each of many releases has the noise for one."""

    def _before(self, X):
        super()._before(X)
        rng = np.random.default_rng([7, self.random_state or 0])
        total = self._clipped(X).sum(axis=0)
        self.totals_ = list(self._released(np.tile(total, (200, 1)), rng))


class MeanOverPrivateSize(NoisyMean):
    """The mean itself gets noise for a public size, but changes by twice the sensitivity."""

    def _released(self, total, rng):
        return 100.0 * gaussian_release(total / self.size, 1.0, self.noise / 100.0, rng)

    def _rng(self, X):
        self.size = len(X)
        return super()._rng(X)


class ClaimsNothing(NoisyMean):
    def privacy_profile(self, n_samples, n_features=None):
        return PrivacyProfile.approximate(0.0, 1.0)


class TakesNoiseFromTheSystem(NoisyMean):
    """Its draws go on from fit to fit, whatever its seed; tests set where they start."""

    stream = np.random.default_rng(0)

    def _rng(self, X):
        return self.stream


class NoiseFromTheSystemAndNoClipping(TakesNoiseFromTheSystem):
    def _clipped(self, X):
        return X


class ShufflesFirst(NoisyMean):
    """How many numbers are drawn before the noise depends on the number of records."""

    def _rng(self, X):
        rng = super()._rng(X)
        rng.permutation(len(X))
        return rng


class HidesItsNoise(NoisyMean):
    """Draws from NumPy's global generator, like much other code."""

    def _released(self, total, rng):
        return total + self.noise * np.random.normal(size=total.shape)


# What carries no noise ---------------------------------------------------------------------------


class CountsForFree(NoisyMean):
    def _before(self, X):
        self.positive_count_ = int((X[:, 0] > 0.0).sum())


class CountsIterations(NoisyMean):
    def _before(self, X):
        self.n_iter_ = 3 + int(np.abs(X).max())


class StoresItsData(NoisyMean):
    def _before(self, X):
        self._kept = {"table": [X]}


class StoresAnObject(NoisyMean):
    """A free value deep inside an object."""

    def _before(self, X):
        self.scaler_ = Box(Box(np.float32(X.sum())))


class Box:
    """An object without a dictionary of its attributes."""

    __slots__ = ("content",)

    def __init__(self, content):
        self.content = content


class NamesKeysAfterRecords(NoisyMean):
    def _before(self, X):
        self.seen_ = {f"record {X.max()}": 1}


class NamesAttributesAfterRecords(NoisyMean):
    def _before(self, X):
        setattr(self, f"seen_{X.max()}_", 1)
        self.box_ = Box(1)
        self.table_ = Table(f"of_{X.max()}", 3)


class Table:
    def __init__(self, name, value):
        setattr(self, name, value)


class FailsForOne(NoisyMean):
    def _before(self, X):
        if X.max() > 1e4:
            raise ValueError(f"{X.max()} is too large")


class WarnsOfOne(NoisyMean):
    def _before(self, X):
        if X.max() > 1e4:
            warnings.warn(f"{X.max()} is large", UserWarning, stacklevel=2)


class PredictsFromItsData(NoisyMean):
    """Nothing is stored but a function, which knows the data."""

    def _before(self, X):
        self._nearest = lambda rows: np.abs(rows[:, None] - X[None]).sum(axis=2).min(axis=1)

    def predict(self, X):
        return self._nearest(np.asarray(X))


# A private number of records as a constant -------------------------------------------------------


class ExpectsABatchOfPrivateSize(NoisyMean):
    """As an optimizer that is given a fraction of the records as its expected batch size."""

    def _before(self, X):
        self.expected_batch_size_ = 0.1 * len(X)


class CountsStepsByPrivateSize(NoisyMean):
    def _before(self, X):
        self.steps_ = -(-len(X) // 4)


class PublishesItsRate(NoisyMean):
    def _before(self, X):
        self.optimizer_ = {"lr": 1.0 / np.sqrt(len(X)), "name": "sgd"}


class DividesByPrivateSize(NoisyMean):
    def _size(self, X):
        return float(len(X))


class RegularizesByPrivateSize(NoisyMean):
    """The published weights are multiples of a square of the private size."""

    def _size(self, X):
        return float(len(X)) ** 2


class ScalesByRootOfPrivateSize(NoisyMean):
    def _size(self, X):
        return float(np.sqrt(len(X)))


class HasPublicSize(NoisyMean):
    """Has a public constant, and states what it is about without one."""

    states = True

    def __init__(self, noise=NOISE, random_state=None, n_public=None):
        super().__init__(noise, random_state)
        self.n_public = n_public

    def fit(self, X, y=None):
        super().fit(X, y)
        words = ("the number of records is public",) if self.states else ()
        profile = self.privacy_profile(100)
        self.privacy_ = PrivacyReport(profile, 1e-5, name="toy", assumptions=words)
        return self

    def _size(self, X):
        return float(self.n_public or len(X))


class IgnoresItsPublicSize(HasPublicSize):
    def _size(self, X):
        return float(len(X))


class StatesNoPublicSize(HasPublicSize):
    states = False


class AnnouncesByPrivateSize(NoisyMean):
    def noise_level(self, n_samples, n_features=None):
        return self.noise * 100.0 / n_samples
