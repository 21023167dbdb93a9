"""Many regressions fitted in one pass over the data, each as by itself."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge

from skdptune.linear_model import PTRLinearRegression, SufficientStatistics
from skdptune.linear_model._regression import _posterior_sampling
from tests.accounting.calls import calls_of
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


def test_a_hundred_ridges_share_one_pass_one_spectrum_and_one_plan(monkeypatch):
    counted = {
        "passes": (SufficientStatistics, "update"),
        "spectra": (np.linalg, "eigh"),
        "plans": (_posterior_sampling, "calibrate"),
    }
    counts = dict.fromkeys(counted, 0)

    def count(name, function):
        def counting(*arguments, **given):
            counts[name] += 1
            return function(*arguments, **given)

        return counting

    for name, (home, attribute) in counted.items():
        monkeypatch.setattr(home, attribute, count(name, getattr(home, attribute)))
    wide = np.random.default_rng(0).normal(size=(5000, 50))
    models = [
        PTRLinearRegression(
            1.0, 1.2e-5, alpha=alpha, data_norm=7.0, target_bound=1.0, random_state=0
        )
        for alpha in np.geomspace(1.0, 1e5, 100)
    ]
    PTRLinearRegression.fit_many(models, wide, wide[:, 0])
    assert counts == {"passes": 1, "spectra": 1, "plans": 1}
    # What holds for each leverage is known by now.
    calls = calls_of(lambda: PTRLinearRegression.fit_many(models, wide, wide[:, 0]))
    assert counts == {"passes": 2, "spectra": 2, "plans": 1}
    assert calls < 100 * 2000
