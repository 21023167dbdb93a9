"""Your own estimators, and those of other libraries
====================================================

We write a private classifier that this library does not know, check it, and tune it like any
other. Then we register the cost of a classifier of another library, and tune it as well.

Needs the extra ``plot``. A model of diffprivlib is included if that is installed.
"""

# %%
# A private classifier
# --------------------
# A private estimator is a scikit-learn estimator that announces its privacy cost before it sees
# data, and reports it after the fit; :doc:`the protocol </api/protocol>` states the whole
# contract. This one sums the records, each times the sign of its label, and adds Laplace noise.
# Nothing has to be inherited from this package.

import importlib
from importlib.util import find_spec

import numpy as np
from matplotlib import pyplot as plt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from sklearn.utils.validation import check_is_fitted, validate_data

from skdptune import DPGridSearchCV
from skdptune.accounting import PrivacyProfile, PrivacyReport
from skdptune.base import privacy_of, register_profile
from skdptune.inspection import GridScoresDisplay
from skdptune.mechanisms import fit_generator, laplace_profile, laplace_release, unit_sum
from skdptune.model_selection import FullTable
from skdptune.testing import check_private_estimator, replay_neighbours


class NoisySumClassifier(ClassifierMixin, BaseEstimator):
    """Predict a class by the sign of a linear score with noisy weights."""

    cost_parameters = frozenset({"epsilon"})  # `clip` may be searched without changing the cost

    def __init__(self, epsilon=1.0, clip=1.0, random_state=None):
        self.epsilon, self.clip, self.random_state = epsilon, clip, random_state

    def privacy_profile(self, n_samples, n_features=None):
        """Return the cost of a fit: it follows only from the parameters."""
        return laplace_profile(sensitivity=1.0, scale=1.0 / self.epsilon)

    def fit(self, X, y):
        """Release the sums with noise, and report what they cost."""
        X, y = validate_data(self, X, y)
        self.classes_ = np.unique(y)  # the label set is public
        clipped = np.clip(X, -self.clip, self.clip)
        units = clipped / (self.clip * X.shape[1])  # no record's absolute values add up to above 1
        sums = unit_sum(units * np.where(y == self.classes_[-1], 1.0, -1.0)[:, None])
        noise = fit_generator(self.random_state)  # None or an int: clones would copy a generator
        self.coef_ = laplace_release(sums, 1.0, 1.0 / self.epsilon, noise)
        self.privacy_ = PrivacyReport(self.privacy_profile(len(X)), 0.0, name="NoisySumClassifier")
        return self

    def predict(self, X):
        """Return the class on whose side a record is."""
        check_is_fitted(self)
        X = np.clip(validate_data(self, X, reset=False), -self.clip, self.clip)
        return self.classes_[(X @ self.coef_ > 0).astype(int) * (len(self.classes_) - 1)]


# %%
# Is it right?
# ------------
# One call checks the contract. Checks of features that the class does not have are skipped, with
# the reason.

for name, passed, message in check_private_estimator(NoisySumClassifier()):
    print(f"{name:34} {'passed' if passed else message}")

# %%
# Another call fits the classifier with and without a record, with the same noise, and compares
# everything that both models publish: the noise must cover the differences. Here the record is an
# outlier, a million times as far away as others.

X, y = make_classification(20_000, 6, n_informative=4, n_redundant=0, flip_y=0.02, random_state=0)
X, X_test, y, y_test = train_test_split(X, y, random_state=0)
replay = replay_neighbours(NoisySumClassifier(), X[:200], y[:200], (1e6 * X[0], y[0]))
print(replay)
replay.assert_passes()

# %%
# A model of another library
# --------------------------
# A class that does not know this package gets its cost from a function, and this cost is trusted.
# It cannot be seen from outside whether there is enough noise, or that NumPy's noise, unlike that
# of :func:`~skdptune.mechanisms.laplace_release`, reveals something in its last digits.
# :func:`~skdptune.testing.replay_neighbours` finds values without noise, and
# :func:`~skdptune.audit.audit_epsilon` finds values with far too little noise.


class TheirCentroids(ClassifierMixin, BaseEstimator):
    """Predict the class of the nearer centroid; centroids have Laplace noise."""

    def __init__(self, epsilon=1.0, bound=1.0, random_state=None):
        self.epsilon, self.bound, self.random_state = epsilon, bound, random_state

    def fit(self, X, y):
        """Divide noisy sums by noisy counts."""
        noise = np.random.default_rng(self.random_state)
        self.classes_ = np.array([0, 1])
        X = np.nan_to_num(np.clip(X, -self.bound, self.bound))
        # A record moves the sum and the count of one class: by at most 2, if sums are in units
        # of the bound and of the number of columns.
        scale = 2.0 / self.epsilon
        sums = [X[y == label].sum(axis=0) / (self.bound * X.shape[1]) for label in (0, 1)]
        counts = [np.sum(y == label) for label in (0, 1)]
        noisy = np.array(sums) + noise.laplace(scale=scale, size=(2, X.shape[1]))
        sizes = np.maximum(np.array(counts) + noise.laplace(scale=scale, size=2), 1.0)
        self.centroids_ = noisy * self.bound * X.shape[1] / sizes[:, None]
        return self

    def predict(self, X):
        """Return the class whose centroid is nearer."""
        far = ((np.asarray(X)[:, None, :] - self.centroids_) ** 2).sum(axis=2)
        return self.classes_[far.argmin(axis=1)]


@register_profile(TheirCentroids)
def cost_of_centroids(model, n_samples, n_features):
    """Return the cost of a fit, from the parameters."""
    return PrivacyProfile.pure(model.epsilon)


print(replay_neighbours(TheirCentroids(), X[:200], y[:200], (1e6 * X[0], y[0])))

# %%
# Tuned like any other
# --------------------
# Both are tuned within one total. Searches set ``epsilon`` as needed, since both have a parameter
# of that name.


def tuned(model, parameter):
    """Return a search over eight clipping bounds."""
    return DPGridSearchCV(
        model,
        {parameter: [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4]},
        epsilon=2.0,
        delta=1e-6,
        random_state=0,
        strategy=FullTable(try_own_values=False),
    ).fit(X, y)


searches = {
    "our own": tuned(NoisySumClassifier(), "clip"),
    "another library's": tuned(TheirCentroids(), "bound"),
}
for name, search in searches.items():
    accuracy = search.score(X_test, y_test)
    cost = search.privacy_.epsilon
    print(f"{name}: {search.best_params_}, test accuracy {accuracy:.3f}, ε = {cost:g}")
print(searches["another library's"].privacy_)

# %%
# Models of diffprivlib are already registered, and are refused if their guarantee fails.

if find_spec("diffprivlib"):
    models = importlib.import_module("diffprivlib.models")
    theirs = models.LogisticRegression(
        epsilon=0.5, data_norm=2.0, fit_intercept=False, n_jobs=1, random_state=0
    ).fit(X, y)
    print(f"diffprivlib: test accuracy {theirs.score(X_test, y_test):.3f}")
    print(privacy_of(theirs))
else:
    print("diffprivlib is not installed here.")

# %%
# The choice of a bound
# ---------------------
# Every bound costs the same. Narrow bounds lose information, wide bounds add too much noise.

figure, axes = plt.subplots(1, 2, figsize=(9.6, 4.2), layout="constrained", sharey=True)
for ax, (name, search) in zip(axes, searches.items(), strict=True):
    GridScoresDisplay.from_search(search, ax=ax)
    ax.set_title(name, loc="left")
plt.show()
