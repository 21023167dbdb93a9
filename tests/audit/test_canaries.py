"""Neighbouring data sets on which a claim is nearly attained."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skdptune.accounting import PrivacyProfile
from skdptune.audit import audit_epsilon, worst_canary
from skdptune.base import register_profile
from skdptune.ensemble import DPExplainableBoostingClassifier
from skdptune.linear_model import (
    AdaSSPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    DPRidge,
)
from skdptune.mechanisms import noise_for_budget
from skdptune.model_selection import DPGridSearchCV, DPRandomSearchCV
from skdptune.preprocessing import DPMinMaxScaler, DPStandardScaler, RowNormClipper
from tests.accounting.cases import few

SHAPE = (50, 4)
LABELS = {"classes": ["no", "yes", "zero"]}


@pytest.mark.parametrize(
    "estimator, length",
    [
        (DPLogisticRegression(solver="output", data_norm=3.0, **LABELS), 3.0),
        (DPLogisticRegression(solver="objective", **LABELS), math.sqrt(4.0)),
        (DPLogisticRegression(delta=0.0, data_norm=3.0, **LABELS), 3.0),
        (DPLogisticRegression(solver="sgd", max_grad_norm=0.5, **LABELS), 1.5),
        (DPRidge(data_norm=2.0, target_bound=1.0), 2.0),
        (make_pipeline(RowNormClipper(0.7), DPRidge(target_bound=1.0)), 0.7),
    ],
)
def test_rows_are_as_long_as_they_may_be(estimator, length):
    canary = worst_canary(estimator, np.zeros(SHAPE))
    assert np.linalg.norm(canary.X_with[-1]) == pytest.approx(length)


def test_rows_are_at_the_bounds_of_the_first_step_that_has_any():
    bounds = (np.array([0.0, 1.0, 2.0, 3.0]), 10.0)
    model = DPLogisticRegression(data_norm=1.0, **LABELS)
    pipeline = make_pipeline(DPStandardScaler(bounds=bounds), model)
    for estimator in (pipeline, DPRandomSearchCV(pipeline, {}), DPStandardScaler(bounds=bounds)):
        canary = worst_canary(estimator, np.zeros(SHAPE))
        np.testing.assert_array_equal(canary.X_with[-1], np.full(4, 10.0))
        np.testing.assert_array_equal(canary.X_without[0], bounds[0] / 2 + 5.0)
    # Between others at both ends a record moves all ranks.
    rows = worst_canary(DPMinMaxScaler(bounds=(-1, 3)), np.zeros(SHAPE)).X_with
    assert rows[[0, 1, 2, -1], 0].tolist() == [-1.0, 3.0, -1.0, 1.0]


def test_the_direction_is_that_in_which_others_vary_least():
    rows = np.random.default_rng(0).normal(size=SHAPE) * [3.0, 2.0, 0.1, 1.0]
    model = DPLogisticRegression(solver="output", data_norm=1.0, **LABELS)
    y = np.array(LABELS["classes"])[np.arange(50) % 3]
    canary = worst_canary(model, rows, y, background="given")
    assert abs(canary.X_with[-1, 2]) > 0.99


ADD_OR_REMOVE = "add or remove one record"
REPLACE = "replace one of a public number of records"


X = np.random.default_rng(0).normal(size=(60, 3))
Y = np.arange(60) % 2
LOGISTIC = DPLogisticRegression(4.0, classes=[0, 1], data_norm=2.0)
PIPELINE = make_pipeline(DPStandardScaler(4.0, bounds=(-3, 5)), LOGISTIC)


class Mean(StandardScaler):
    """A scaler without noise, for neighbours that replace a record."""

    neighbouring = REPLACE


class Nearest(GaussianNB):
    """A model of another library, whose cost is registered."""


@register_profile(Mean)
@register_profile(Nearest)
def cost(estimator, n_samples, n_features):
    return PrivacyProfile.pure(1.0)


ESTIMATORS = {
    "classifier": (LOGISTIC, Y),
    "pipeline": (PIPELINE, Y),
    "stateless": (make_pipeline(FunctionTransformer(), LOGISTIC), Y),
    "search": (DPGridSearchCV(LOGISTIC, {"C": [0.1, 1.0]}, epsilon=2.0, delta=1e-5), Y),
    "regression": (DPRidge(4.0, data_norm=1.0, target_bound=1.0), X[:, 0]),
    "scaler": (DPStandardScaler(4.0, bounds=(-1, 1)), None),
    "ranks": (DPMinMaxScaler(4.0, bounds=(-1, 1)), None),
    "fixed size": (DPLogisticRegression(4.0, solver="sgd", sampling="fixed"), Y),
    "other": (Nearest(), Y),
}


@pytest.mark.parametrize(("name", "background"), few(9, ESTIMATORS, ["made-up", "given"]))
def test_one_record_is_added(name, background):
    # Theorem A7: the data of an audit are neighbours of the right kind.
    estimator, y = ESTIMATORS[name]
    canary = worst_canary(estimator, X, y, background=background)
    assert canary.neighbouring == ADD_OR_REMOVE
    np.testing.assert_array_equal(canary.X_with[:-1], canary.X_without)
    if y is None:
        assert canary.y_with is None and canary.y_without is None
    else:
        np.testing.assert_array_equal(canary.y_with[:-1], canary.y_without)
    if background == "given":
        np.testing.assert_array_equal(canary.X_without, X)


def test_one_record_is_replaced():
    # Theorem A7: the data of an audit are neighbours of the right kind.
    canary = worst_canary(Mean(), X)
    assert canary.neighbouring == REPLACE and canary.n_public is None
    assert len(canary.X_with) == len(canary.X_without)
    np.testing.assert_array_equal(canary.X_with[:-1], canary.X_without[:-1])
    np.testing.assert_array_equal(canary.X_with[-1], -canary.X_without[-1])


def test_a_contribution_is_removed_at_its_place():
    # Theorem A7: the data of an audit are neighbours of the right kind.
    model = DPLinearSVC(4.0, solver="psgd", classes=[0, 1], data_norm=1.0, fit_intercept=False)
    canary = worst_canary(model, X)
    assert canary.neighbouring.startswith("add or remove one record's contribution")
    assert canary.n_public is None
    np.testing.assert_array_equal(canary.X_with[:-1], canary.X_without[:-1])
    np.testing.assert_array_equal(canary.y_with, canary.y_without)
    assert not canary.X_without[-1].any() and canary.X_with[-1].any()
    with pytest.raises(ValueError, match="fit_intercept=False"):
        worst_canary(model.set_params(fit_intercept=True), X)


def test_the_size_is_a_constant_wherever_there_is_one_to_set():
    canary = worst_canary(PIPELINE, X, Y)
    made = canary.prepared(PIPELINE)
    assert canary.n_public == made[0].n_public == made[-1].n_public == len(X)
    assert PIPELINE[0].n_public is None
    given = worst_canary(LOGISTIC, X).prepared(DPLogisticRegression(n_public=7))
    assert given.n_public == 7
    assert worst_canary(*ESTIMATORS["other"][:1], X, Y).n_public is None
    assert worst_canary(ESTIMATORS["fixed size"][0], X, Y).n_public is None


def test_the_record_of_a_hinge_nearly_attains_the_claim():
    model = DPLinearSVC(4.0, solver="output", classes=[0, 1], data_norm=1.0)
    canary = worst_canary(model, X)
    sides = [
        np.array([canary.statistic(canary.fit(model, present, seed)) for seed in range(150)])
        for present in (True, False)
    ]
    shift = (sides[0].mean() - sides[1].mean()) / sides[0].std()
    low, high = (PrivacyProfile.gaussian(factor * shift).epsilon(1e-5) for factor in (0.7, 1.3))
    assert low < 4.0 < high


def test_improper_arguments_are_refused():
    with pytest.raises(TypeError, match="instance"):
        worst_canary(DPLinearSVC, X)
    with pytest.raises(TypeError, match="get_params"):
        worst_canary(3.0, X)
    with pytest.raises(ValueError, match="each of 60"):
        worst_canary(LOGISTIC, X, Y[:5])
    with pytest.raises(ValueError, match="table"):
        worst_canary(LOGISTIC, np.zeros(3))
    with pytest.raises(ValueError, match="two labels"):
        worst_canary(DPLogisticRegression(data_norm=1.0), X)
    with pytest.raises(ValueError, match="background"):
        worst_canary(LOGISTIC, X, background="none")


# Fits with too little noise leave nothing to minimise, and SciPy says so.
@pytest.mark.filterwarnings("ignore")
def test_corners_of_bounds_find_what_the_middle_misses():
    models = pytest.importorskip("diffprivlib.models", exc_type=ImportError)
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(30, 1)), rng.uniform(size=30)
    faulty = models.LinearRegression(epsilon=1.0, bounds_X=(0, 1), bounds_y=(0, 1))
    canary = worst_canary(faulty, X, y)
    assert canary.reason.endswith("with all other records at the lower ends")
    assert (canary.X_with[:-1] == 0.0).all() and canary.X_with[-1] == 1.0
    found = audit_epsilon(faulty, X, y, canary=canary, claim=1.0, n_trials=200, random_state=0)
    assert found.is_refuted


@pytest.mark.parametrize("name", ["scaler", "boosting"])
def test_other_records_stay_in_the_middle_where_noise_is_proved(name):
    bounds = {"bounds": (0, 2)}
    models = {
        "scaler": (DPStandardScaler(4.0, **bounds), None),
        "boosting": (DPExplainableBoostingClassifier(**bounds, classes=[0, 1]), [0, 1] * 5),
    }
    canary = worst_canary(models[name][0], np.zeros((10, 2)), models[name][1])
    assert (canary.X_with[:-1] == 1.0).all()


def shift_of(estimator, canary, n_fits):
    """Return the shift in deviations; both fits of a pair draw the same noise."""
    sides = [
        np.array(
            [canary.statistic(canary.fit(estimator, there, seed))[0] for seed in range(n_fits)]
        )
        for there in (True, False)
    ]
    return abs(sides[0].mean() - sides[1].mean()) / math.sqrt(
        0.5 * sides[0].var() + 0.5 * sides[1].var()
    )


BOUNDED = {"epsilon": 8.0, "data_norm": 1.0, "fit_intercept": False}
PULLED = {
    # The share of the whole shift that the fitted weights show; without the others, half of it.
    "steps": (DPRidge(target_bound=1.0, **BOUNDED), 1.0),
    "two sums": (DPRidge(target_bound=1.0, alpha=1.0, **BOUNDED), 1.0),
    # A third of the squared shift is for an eigenvalue.
    "three sums": (AdaSSPLinearRegression(target_bound=1.0, **BOUNDED), math.sqrt(2.0 / 3.0)),
    # The moments take 8 %; the mean of the last half of the steps shows 92 % of the rest.
    "preconditioned": (DPLinearSVC(epochs=20, classes=[0, 1], **BOUNDED), 0.88),
}


@pytest.mark.parametrize("name", PULLED)
def test_a_record_among_others_that_pull_away_nearly_attains_the_claim(name):
    # Theorem A7: the data of an audit are neighbours of the right kind.
    estimator, share = PULLED[name]
    canary = worst_canary(estimator, np.zeros((50, 2)), np.zeros(50))
    np.testing.assert_array_equal(canary.X_with[:-1], canary.X_without)
    assert "pull the weights away" in canary.reason
    whole = 1.0 / noise_for_budget(8.0, 1e-5)[0]
    # The deviation of so few fits is known to about a tenth.
    assert shift_of(estimator, canary, 80) / whole == pytest.approx(share, abs=0.16)
