"""Write, check and tune an estimator of one's own
==================================================

Write a private classifier of one's own, check it, and tune it.

A private estimator is a scikit-learn estimator that announces its privacy cost before it sees data
and reports it after the fit; `skdptune.base.protocol` states the whole contract. This one sums the
records, each times the sign of its label, and adds Laplace noise.
"""

import numpy as np
from scipy.stats import loguniform
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from sklearn.utils.validation import check_is_fitted, validate_data

from skdptune import DPRandomSearchCV
from skdptune.accounting import PrivacyReport
from skdptune.mechanisms import laplace_profile, laplace_release, unit_sum
from skdptune.testing import check_private_estimator, replay_neighbours


class NoisySumClassifier(ClassifierMixin, BaseEstimator):
    """Predict a class by the sign of a linear score with noisy weights."""

    cost_parameters = frozenset({"epsilon"})  # `clip` may be searched without changing the cost

    def __init__(self, epsilon=1.0, clip=1.0, random_state=None):
        self.epsilon, self.clip, self.random_state = epsilon, clip, random_state

    def privacy_profile(self, n_samples, n_features=None):
        """Return what a fit costs: it follows from the parameters alone."""
        return laplace_profile(sensitivity=1.0, scale=1.0 / self.epsilon)

    def fit(self, X, y):
        """Release the sums with noise, and report what they cost."""
        X, y = validate_data(self, X, y)
        self.classes_ = np.unique(y)  # the label set is public
        clipped = np.clip(X, -self.clip, self.clip)
        units = clipped / (self.clip * X.shape[1])  # no record's absolute values add up to above 1
        sums = unit_sum(units * np.where(y == self.classes_[-1], 1.0, -1.0)[:, None])
        self.coef_ = laplace_release(sums, 1.0, 1.0 / self.epsilon, self.random_state)
        self.privacy_ = PrivacyReport(self.privacy_profile(len(X)), 0.0, name="NoisySumClassifier")
        return self

    def predict(self, X):
        """Return the class on whose side a record is."""
        check_is_fitted(self)
        X = np.clip(validate_data(self, X, reset=False), -self.clip, self.clip)
        return self.classes_[(X @ self.coef_ > 0).astype(int) * (len(self.classes_) - 1)]


results = check_private_estimator(NoisySumClassifier())
for name, passed, message in results:
    print(f"{name:34} {'passed' if passed else message}")

X, y = make_classification(20_000, 6, n_informative=4, n_redundant=0, flip_y=0.02, random_state=0)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
replay = replay_neighbours(NoisySumClassifier(), X[:200], y[:200], (1e6 * X[0], y[0]))
print(f"\n{replay}\n")
replay.assert_passes()  # what one record changes, however far away it is, is covered by the noise

search = DPRandomSearchCV(
    NoisySumClassifier(),
    {"clip": loguniform(0.01, 10.0)},
    epsilon=0.5,
    delta=1e-6,
    random_state=0,  # for a page that reads the same twice; leave it out for real noise
)
search.fit(X_train, y_train)
print(f"\n{search.privacy_}")
chosen, accuracy = search.best_params_["clip"], search.score(X_test, y_test)
print(f"\nchosen clip: {chosen:.2f}, test accuracy: {accuracy:.3f}")
