"""The extreme record of each family."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from skdptune.audit._canaries import generic_extremes, known_extremes, last_step
from skdptune.ensemble import DPExplainableBoostingRegressor
from skdptune.linear_model import DPLogisticRegression, NoisyStatisticsRidge
from skdptune.model_selection import DPRandomSearchCV
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
