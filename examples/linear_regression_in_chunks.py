"""Private regression on data read in chunks
============================================

Private linear regressions on data that are read once, in chunks.

Ten chunks of synthetic rows take the place of a file that does not fit in memory. One pass sums
products exactly; every model after that takes some algebra on small matrices. Each printed model
is a release of its own: publish one, or add up their privacy costs.
"""

import numpy as np

from skdptune.linear_model import (
    AdaSSPLinearRegression,
    NoisyStatisticsRidge,
    PTRLinearRegression,
    SufficientStatistics,
)

# Known without looking at the data: how long a row, and how large a target, can be.
BOUNDS = {"data_norm": 2.0, "target_bound": 2.0}
COEFFICIENTS = np.array([0.8, -0.5, 0.3, 0.0])


def chunks(seed=0, count=10, size=10_000):
    """Yield rows and targets, as a reader of a large file would."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        X = rng.uniform(-1, 1, size=(size, 4))
        yield X, X @ COEFFICIENTS + 0.4 + 0.1 * rng.normal(size=size)


sums = SufficientStatistics(**BOUNDS)
for X, y in chunks():
    sums.update(X, y)
print(f"read {sums.n_samples} rows once\n")

X_test, y_test = next(chunks(seed=1, count=1))
for epsilon in (0.1, 1.0):
    for kind in (NoisyStatisticsRidge, AdaSSPLinearRegression, PTRLinearRegression):
        # The seed is for a page that reads the same twice; leave it out for real noise.
        model = kind(epsilon, 1e-6, random_state=0, **BOUNDS).fit_statistics(sums)
        print(f"{kind.__name__:<24} ε = {epsilon:<4} R² = {model.score(X_test, y_test):.4f}")

print("\nThe same in one call, from an iterator of chunks:")
model = NoisyStatisticsRidge(1.0, 1e-6, random_state=0, **BOUNDS).fit(chunks())
print(model.privacy_)
