"""Intervals and sets: split conformal prediction without noise, and coverage with it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.exceptions import NotFittedError

from skdptune.calibration import PrivateConformalClassifier, PrivateConformalRegressor
from skdptune.calibration import _private_conformal as module
from skdptune.ensemble import DPExplainableBoostingRegressor
from skdptune.linear_model import DPLogisticRegression, DPRidge
from tests.calibration.models import Told, ToldChances


def watched(monkeypatch: pytest.MonkeyPatch) -> list[tuple[np.ndarray, float, int]]:
    """Return a list to which scores, level and steps of each quantile are added."""
    seen: list[tuple[np.ndarray, float, int]] = []
    real = module.private_quantile

    def quantile(values: Any, level: float, *others: Any, **more: Any) -> float:
        seen.append((np.sort(values), level, more["steps"]))
        return real(values, level, *others, **more)

    monkeypatch.setattr(module, "private_quantile", quantile)
    return seen


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.95])
def test_without_noise_it_is_split_conformal_prediction(coverage, monkeypatch) -> None:
    # Theorem I2: the least score of a rank of (m + 1) coverage, up to a step of the grid.
    seen, rng = watched(monkeypatch), np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, size=(5000, 1))
    y = X[:, 0] + rng.normal(scale=0.1, size=5000)
    model = PrivateConformalRegressor(
        Told(), epsilon=math.inf, coverage=coverage, target_bound=2.0, random_state=0
    ).fit(X, y)
    (scores, level, steps), m = seen[0], seen[0][0].size
    # The level is that of the mean number held out, and m is another one.
    rank = math.ceil((m + 1) * coverage)
    assert abs(level * m - (m + 1) * coverage) < 1.0
    near = 4.0 * 2.0 ** (10.0 * (scores[[rank - 2, rank]] - 1.0))
    step = 2.0 ** (10.0 / steps)
    assert near[0] / step <= model.half_width_ <= near[1] * step**1.5


def test_intervals_are_cut_to_the_range_and_centred_on_predictions() -> None:
    X = np.linspace(-3.0, 3.0, 4001)[:, None]
    y = X[:, 0] + 0.1 * np.sin(1e4 * X[:, 0])
    model = PrivateConformalRegressor(Told(), target_bound=(-1.0, 2.0), random_state=0).fit(X, y)
    low, high = model.predict_interval(X).T
    centre, half = np.clip(X[:, 0], -1.0, 2.0), model.half_width_
    np.testing.assert_allclose(low, np.maximum(centre - half, -1.0))
    np.testing.assert_allclose(high, np.minimum(centre + half, 2.0))
    np.testing.assert_array_equal(model.predict(X), X[:, 0])


def test_sets_hold_the_labels_that_are_probable_enough() -> None:
    rng = np.random.default_rng(0)
    X = rng.random((4000, 1))
    y = (rng.random(4000) < X[:, 0]).astype(int)
    model = PrivateConformalClassifier(ToldChances(), random_state=0).fit(X, y)
    chances = np.column_stack([1.0 - X[:, 0], X[:, 0]])
    np.testing.assert_array_equal(model.predict_set(X), 1.0 - chances <= model.quantile_)
    # Of a label of chance p the score is 1 - p, with a density of 2 (1 - s).
    assert model.quantile_ == pytest.approx(1.0 - math.sqrt(0.1), abs=0.03)
    np.testing.assert_array_equal(model.predict_proba(X), chances)


def fitted_coverage(seed: int, share: float) -> float:
    """Return the coverage of scores of which a share is 0 and all others are the largest."""
    y = np.ones(400)
    y[: round(share * y.size)] = 0.0
    model = PrivateConformalRegressor(
        Told(), target_bound=(0.0, 1.0), calibration_fraction=0.95, random_state=seed
    )
    is_whole = model.fit(np.zeros((y.size, 1)), y).half_width_ == 1.0
    # No score lies between.
    return 1.0 if is_whole else share


def test_new_records_are_covered(monkeypatch: pytest.MonkeyPatch) -> None:
    # Theorem I2: scores with which nearly all points of the grid are a little too low.
    found = np.array([fitted_coverage(seed, 0.8875) for seed in range(60)])
    assert found.mean() - 3.0 * found.std() / math.sqrt(60) > 0.9
    # A quantile of the level that is claimed covers less than is claimed.
    monkeypatch.setattr(module, "quantile_level", lambda coverage, *others: coverage)
    found = np.array([fitted_coverage(seed, 0.8875) for seed in range(100)])
    assert found.mean() + 3.0 * found.std() / math.sqrt(100) < 0.9


@pytest.mark.slow
@pytest.mark.parametrize(("n_samples", "epsilon"), [(500, 1.0), (1000, 0.5), (4000, 1.0)])
def test_coverage_of_new_records_over_many_fits(n_samples: int, epsilon: float) -> None:
    # Theorem I2: the coverage of intervals and sets by a private quantile of scores held out.
    found = []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-1.0, 1.0, size=(n_samples + 2000, 2))
        y = X @ [0.5, -0.3] + rng.normal(scale=0.2, size=n_samples + 2000)
        model = PrivateConformalRegressor(
            DPRidge(target_bound=2.0), epsilon=epsilon, random_state=seed
        ).fit(X[:n_samples], y[:n_samples])
        low, high = model.predict_interval(X[n_samples:]).T
        found.append(np.mean((low <= y[n_samples:]) & (y[n_samples:] <= high)))
    error = np.std(found) / math.sqrt(len(found))
    assert 0.9 - 3.0 * error < np.mean(found) < 0.9 + 6000.0 / (n_samples * epsilon) * 0.01 + 0.01


# Ranges of targets -----------------------------------------------------------------------------


def test_the_range_is_that_of_the_estimator_or_its_schema() -> None:
    schema = {"columns": {"x": (0.0, 1.0)}, "target": {"range": [0.0, 5.0]}}
    boosting = DPExplainableBoostingRegressor(schema=schema, max_rounds=2)
    ridge = DPRidge(target_bound=3.0)
    for estimator, wanted in ((boosting, (0.0, 5.0)), (ridge, (-3.0, 3.0))):
        assert PrivateConformalRegressor(estimator)._target_range() == wanted
    told = PrivateConformalRegressor(DPRidge(), target_bound=2.0)
    told.fit(np.zeros((2000, 1)), np.zeros(2000))
    assert told.estimator_.target_bound == 2.0
    assert told.estimator.target_bound is None


def test_targets_that_are_transformed_have_another_range() -> None:
    model = TransformedTargetRegressor(
        DPRidge(target_bound=1.0),
        func=np.log1p,
        inverse_func=np.expm1,
        check_inverse=False,
    )
    X, y = np.zeros((2000, 1)), np.random.default_rng(0).random(2000)
    with pytest.raises(ValueError, match="target_bound must be given"):
        PrivateConformalRegressor(model).fit(X, y)
    fitted = PrivateConformalRegressor(model, target_bound=(0.0, 1.7), random_state=0).fit(X, y)
    assert fitted.estimator_.regressor_.target_bound == 1.0
    assert fitted.half_width_ < 1.7


# Labels ------------------------------------------------------------------------------------------


def test_labels_are_those_declared_or_those_that_occur() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, size=(3000, 2)), rng.integers(0, 2, 3000)
    y[0] = 7
    declared = PrivateConformalClassifier(DPLogisticRegression(), classes=[0, 1, 2]).fit(X, y)
    assert declared.classes_.tolist() == [0, 1, 2]
    assert declared.predict_set(X).shape == (3000, 3)
    found = PrivateConformalClassifier(DPLogisticRegression()).fit(X, y)
    assert found.classes_.tolist() == [0, 1, 7]
    assert found.decision_function(X).shape == (3000, 3)


def test_a_model_without_a_fit_says_so() -> None:
    with pytest.raises(NotFittedError):
        PrivateConformalRegressor(Told(), target_bound=1.0).predict_interval(np.zeros((2, 1)))
    with pytest.raises(NotFittedError):
        PrivateConformalClassifier(ToldChances()).predict_set(np.zeros((2, 1)))
