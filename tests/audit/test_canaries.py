"""Neighbouring data sets on which a claim is nearly attained."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skdptune.accounting import PrivacyProfile
from skdptune.audit import audit_epsilon, worst_canary
from skdptune.audit._canaries import generic_extremes, known_extremes, last_step
from skdptune.base import register_profile
from skdptune.base._shared import ADD_OR_REMOVE, REPLACE, ZERO_OUT
from skdptune.ensemble import DPExplainableBoostingClassifier, DPExplainableBoostingRegressor
from skdptune.linear_model import DPLinearSVC, DPLogisticRegression, NoisyStatisticsRidge
from skdptune.model_selection import DPGridSearchCV, DPRandomSearchCV
from skdptune.preprocessing import DPMinMaxScaler, DPStandardScaler, RowNormClipper

SHAPE = (50, 4)
LABELS = {"classes": ["no", "yes", "zero"]}


def lengths(estimator, y=None):
    found = known_extremes(estimator, SHAPE, y)
    assert found is not None
    return np.linalg.norm(found.row), np.linalg.norm(found.row - found.opposite)


@pytest.mark.parametrize(
    "estimator, length",
    [
        (DPLogisticRegression(solver="output", data_norm=3.0, **LABELS), 3.0),
        (DPLogisticRegression(solver="objective", **LABELS), math.sqrt(4.0)),
        (DPLogisticRegression(delta=0.0, data_norm=3.0, **LABELS), 3.0),
        (DPLogisticRegression(solver="sgd", max_grad_norm=0.5, **LABELS), 1.5),
        (NoisyStatisticsRidge(data_norm=2.0, target_bound=1.0), 2.0),
        (make_pipeline(RowNormClipper(0.7), Ridge()), 0.7),
    ],
)
def test_rows_are_as_long_as_they_may_be(estimator, length):
    row, between = lengths(estimator, np.zeros(50))
    assert row == pytest.approx(length) and between == pytest.approx(2.0 * length)


def test_rows_are_at_the_bounds_of_the_first_step_that_has_any():
    bounds = (np.array([0.0, 1.0, 2.0, 3.0]), 10.0)
    model = DPLogisticRegression(data_norm=1.0, **LABELS)
    pipeline = make_pipeline(DPStandardScaler(bounds=bounds), model)
    for estimator in (pipeline, DPRandomSearchCV(pipeline, {}), DPStandardScaler(bounds=bounds)):
        found = known_extremes(estimator, SHAPE, None)
        np.testing.assert_array_equal(found.row, np.full(4, 10.0))
        np.testing.assert_array_equal(found.opposite, bounds[0])
        np.testing.assert_array_equal(found.others, [bounds[0] / 2 + 5.0])


def test_a_record_between_others_at_both_ends_moves_all_ranks():
    found = known_extremes(DPMinMaxScaler(bounds=(-1, 3)), SHAPE, None)
    np.testing.assert_array_equal(found.row, np.ones(4))
    rows, targets = found.background(3)
    np.testing.assert_array_equal(rows[:, 0], [-1.0, 3.0, -1.0])
    assert targets is None


def test_targets_contradict_the_others():
    found = known_extremes(DPLogisticRegression(data_norm=1.0, **LABELS), SHAPE, None)
    assert found.target == "zero"
    assert found.background(3)[1].tolist() == ["no", "zero", "no"]
    found = known_extremes(
        DPExplainableBoostingRegressor(bounds=(0, 1), target_bound=(2.0, 4.0)), SHAPE, None
    )
    assert found.target == 4.0 and found.background(2)[1].tolist() == [3.0, 3.0]
    with pytest.raises(ValueError, match="two labels"):
        known_extremes(DPLogisticRegression(data_norm=1.0), SHAPE, np.zeros(50))


def test_the_direction_is_that_in_which_others_vary_least():
    rows = np.random.default_rng(0).normal(size=SHAPE) * [3.0, 2.0, 0.1, 1.0]
    model = DPLogisticRegression(solver="output", data_norm=1.0, **LABELS)
    found = known_extremes(model, SHAPE, None, rows)
    assert abs(found.row[2]) > 0.99
    found = generic_extremes(model, rows, None, 10.0)
    assert abs(found.row[2]) > 9.9 * np.linalg.norm(rows, axis=1).max()


def test_others_are_of_no_known_family():
    assert known_extremes(Ridge(), SHAPE, np.zeros(50)) is None
    images = known_extremes(DPLogisticRegression(data_norm=2.0, **LABELS), (5, 1, 3, 3), None)
    assert images.row.shape == (1, 3, 3) and np.ptp(images.row) == 0.0


def test_what_learns_from_targets_is_found():
    ridge = Ridge()
    assert last_step(make_pipeline(RowNormClipper(), ridge, "passthrough")) is ridge
    assert last_step(DPRandomSearchCV(make_pipeline(ridge), {})) is ridge
    assert last_step(ridge) is ridge


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
    "regression": (NoisyStatisticsRidge(4.0, data_norm=1.0, target_bound=1.0), X[:, 0]),
    "scaler": (DPStandardScaler(4.0, bounds=(-1, 1)), None),
    "ranks": (DPMinMaxScaler(4.0, bounds=(-1, 1)), None),
    "fixed size": (DPLogisticRegression(4.0, solver="sgd", sampling="fixed"), Y),
    "other": (Nearest(), Y),
}


@pytest.mark.parametrize("background", ["made-up", "given"])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_one_record_is_added(name, background):
    # Theorem A7.
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
    # Theorem A7.
    canary = worst_canary(Mean(), X)
    assert canary.neighbouring == REPLACE and canary.n_public is None
    assert len(canary.X_with) == len(canary.X_without)
    np.testing.assert_array_equal(canary.X_with[:-1], canary.X_without[:-1])
    np.testing.assert_array_equal(canary.X_with[-1], -canary.X_without[-1])


def test_a_contribution_is_removed_at_its_place():
    # Theorem A7.
    model = DPLinearSVC(4.0, solver="psgd", classes=[0, 1], data_norm=1.0, fit_intercept=False)
    canary = worst_canary(model, X)
    assert canary.neighbouring == ZERO_OUT and canary.n_public is None
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


@pytest.mark.parametrize("best", [1.0, 10.0, 100.0])
def test_rows_of_several_lengths_are_tried_where_the_family_is_unknown(best):
    longest = np.linalg.norm(X, axis=1).max()

    class Picky(Nearest):
        """A model that one length of rows moves."""

        def predict_proba(self, rows):
            moved = np.isclose(np.linalg.norm(rows, axis=1), best * longest)
            counts = 0.5 + 0.1 * moved * (self.class_count_[1] - 30)
            return np.column_stack([1.0 - counts, counts])

    register_profile(Picky)(cost)
    canary = worst_canary(Picky(), X, Y)
    assert np.linalg.norm(canary.X_with[-1]) == pytest.approx(best * longest)
    np.testing.assert_array_equal(canary.X_without, X)


def test_nothing_of_the_data_is_shown():
    text = repr(worst_canary(LOGISTIC, X, Y, background="given"))
    assert text == (
        "Canary('a row whose gradient is clipped, with a label that contradicts others', "
        "61 and 60 records)"
    )


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
    assert canary.reason.endswith("beside others at all lower ends")
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
