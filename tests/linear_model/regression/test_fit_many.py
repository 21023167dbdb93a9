"""Many regressions fitted in one pass over the data, each as by itself."""

import time

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge

from skdptune.linear_model import PTRLinearRegression, SufficientStatistics
from tests.linear_model.regression_examples import DELTA, X, Y, every_kind


@every_kind
def test_fits_of_many_equal_fits_one_by_one(kind):
    models = [
        kind(1.0, DELTA, alpha=alpha, target_bound=1.5, random_state=seed, fit_intercept=flag)
        for seed, alpha in enumerate([0.1, 10.0, 1000.0])
        for flag in (True, False)
    ]
    together = PTRLinearRegression.fit_many([clone(model) for model in models], X, Y)
    for one, other in zip(models, together, strict=True):
        one.fit(X, Y)
        np.testing.assert_array_equal(one.coef_, other.coef_)
        assert one.intercept_ == other.intercept_
        assert one.privacy_.profile == other.privacy_.profile


def test_fit_many_of_frames_and_chunks():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    models = [PTRLinearRegression(target_bound=1.5, random_state=s) for s in range(2)]
    for model in PTRLinearRegression.fit_many(models, frame, Y):
        assert list(model.feature_names_in_) == ["a", "b", "c"]
    chunks = ((X[k : k + 1000], Y[k : k + 1000]) for k in range(0, 4000, 1000))
    streamed = PTRLinearRegression.fit_many([clone(model) for model in models], chunks)
    for one, other in zip(models, streamed, strict=True):
        np.testing.assert_array_equal(one.coef_, other.coef_)
    models[0].set_params(target_bound=1.0)
    with pytest.raises(ValueError, match="estimators must agree"):
        PTRLinearRegression.fit_many(models, iter([(X, Y)]))
    with pytest.raises(TypeError, match="each of estimators must be"):
        PTRLinearRegression.fit_many([Ridge()], X, Y)


@pytest.mark.slow
def test_a_hundred_ridges_after_one_pass():
    generator = np.random.default_rng(0)
    wide = generator.normal(size=(5000, 50))
    sums = SufficientStatistics(7.0, 1.0).update(wide, wide[:, 0])
    models = [
        PTRLinearRegression(1.0, DELTA, alpha=alpha, data_norm=7.0, target_bound=1.0)
        for alpha in np.geomspace(1.0, 1e5, 100)
    ]
    seconds = []
    # The first round finds what holds for each leverage; a busy machine may slow some of the rest.
    for _ in range(6):
        started = time.perf_counter()
        for model in models:
            model.fit_statistics(sums)
        seconds.append(time.perf_counter() - started)
    assert min(seconds) < 0.2
