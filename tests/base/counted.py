"""A private estimator that counts its fits in a file, from all processes."""

from __future__ import annotations

import os
import sys

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from skdptune.accounting import PrivacyProfile
from skdptune.base import PrivateEstimatorMixin

try:  # a separate package since joblib 1.6
    import cloudpickle
except ImportError:
    from joblib.externals import cloudpickle

# Workers cannot import the tests: as from a notebook, classes are sent to them whole.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

ROWS = np.random.default_rng(0).normal(size=(24, 2))
LABELS = (ROWS[:, 0] > 0).astype(int)


class Counted(PrivateEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Guesses, costs epsilon, and writes a line for each of its fits."""

    def __init__(
        self, counts=None, epsilon=0.25, delta=0.0, C=1.0, random_state=None, ledger=None
    ):
        self.counts = counts
        self.epsilon = epsilon
        self.delta = delta
        self.C = C
        self.random_state = random_state
        self.ledger = ledger

    def privacy_profile(self, n_samples, n_features=None):
        return PrivacyProfile.pure(self._checked_budget()[0])

    def fit(self, X, y):
        if self.counts is not None:
            with open(self.counts, "a", encoding="utf-8") as file:
                file.write(f"{len(X)}\n")
        if self.C == "dies":
            os._exit(1)
        if self.C == "fails":
            raise RuntimeError("the fit failed")
        self.classes_ = np.unique(y)
        self.privacy_ = self._make_report(self.privacy_profile(len(X)))
        return self

    def partial_fit(self, X, y, classes=None):
        return self.fit(X, y)

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


def count_of(path):
    """Return the numbers of records of all fits that were counted, in order."""
    if not path.exists():
        return []
    return sorted(map(int, path.read_text("utf-8").split()))


def sizes_of(ledger):
    """Return the numbers of records of all fits that a ledger has, in order."""
    return sorted(record.details["n_samples"] for record in ledger.history())
