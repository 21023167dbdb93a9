"""Thresholds from a noisy histogram, on records that were not fitted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import confusion_matrix, roc_auc_score

from skdptune import PrivacyLedger, PrivateRows
from skdptune.calibration import PrivateScoreCurves, PrivateThreshold
from skdptune.ensemble import DPExplainableBoostingClassifier
from skdptune.linear_model import DPLinearSVC, DPLogisticRegression

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40_000, 3))
Y = np.where(X[:, 0] + RNG.normal(size=40_000) > 2.0, "ill", "well")
TRAIN, TEST = slice(20_000), slice(20_000, None)


def fitted(model: Any = None, **settings: Any) -> PrivateThreshold:
    given = {"epsilon": 2.0, "pos_label": "ill", "random_state": 0} | settings
    return PrivateThreshold(model or DPLogisticRegression(), **given).fit(X[TRAIN], Y[TRAIN])


@pytest.mark.parametrize("model", [DPLogisticRegression(), DPLinearSVC()])
@pytest.mark.parametrize("wanted", [0.5, 0.9])
def test_wanted_recall_is_that_of_new_records(model: Any, wanted: float) -> None:
    found = fitted(clone(model), at_least=wanted)
    assert found.best_score_ == pytest.approx(wanted, abs=0.01)
    told = found.predict(X[TEST])
    recall = (told[Y[TEST] == "ill"] == "ill").mean()
    assert recall == pytest.approx(wanted, abs=0.06)
    assert abs(recall - wanted) < 3.0 * found.best_score_std_ < 0.15


def test_wanted_precision_is_that_of_new_records() -> None:
    found = fitted(metric="precision", at_least=0.6)
    told = found.predict(X[TEST])
    assert (Y[TEST][told == "ill"] == "ill").mean() == pytest.approx(found.best_score_, abs=0.08)
    assert found.best_score_ == pytest.approx(0.6)
    # One that no threshold has: the highest there is.
    assert fitted(metric="precision", at_least=1.0).best_score_ < 1.0


def test_least_cost_is_found() -> None:
    found = fitted(metric="cost", costs=(1.0, 10.0))

    def cost(told: Any) -> float:
        false, missed = told & (Y[TEST] == "well"), ~told & (Y[TEST] == "ill")
        return float((false + 10.0 * missed).mean())

    mine = cost(found.predict(X[TEST]) == "ill")
    assert mine == pytest.approx(found.best_score_, abs=5.0 * found.best_score_std_)
    assert 0.0 < found.best_score_std_ < 0.02
    chances = found.predict_proba(X[TEST])[:, 0]
    best = min(cost(chances >= limit) for limit in np.linspace(0.0, 1.0, 101))
    assert mine <= 1.15 * best
    assert mine < 0.75 * cost(found.estimator_.predict(X[TEST]) == "ill")


def test_ends_of_the_range() -> None:
    everyone = fitted(at_least=1.0)
    assert everyone.best_threshold_ == 0.0 and everyone.best_score_ == 1.0
    assert (everyone.predict(X[:50]) == "ill").all()
    nobody = fitted(metric="cost", costs=(1.0, 0.0))
    assert (nobody.predict(X[TEST]) == "well").mean() > 0.999


def test_either_label_can_be_the_positive_one() -> None:
    ill = PrivateScoreCurves(DPLogisticRegression(), epsilon=2.0, pos_label="ill", random_state=0)
    well = clone(ill).set_params(pos_label=None)
    ill.fit(X[TRAIN], Y[TRAIN]), well.fit(X[TRAIN], Y[TRAIN])
    truth = roc_auc_score(Y[TEST] == "ill", ill.predict_proba(X[TEST])[:, 0])
    for model in (ill, well):
        assert abs(model.roc_auc_ - truth) < 3.0 * model.roc_auc_std_
        matrix = confusion_matrix(Y[TRAIN], model.predict(X[TRAIN]), labels=model.classes_)
        # Noise of 24 counts at most.
        assert np.abs(model.confusion() - matrix).max() < 4.0 * model.histogram_.scale * 5.0


def test_confusion_at_a_threshold_is_that_of_the_records() -> None:
    found = fitted(at_least=0.8, epsilon=8.0)
    chances = found.predict_proba(X[TRAIN])[:, 0]
    for limit in (None, 0.1, 0.3, 0.5):
        least = found.best_threshold_ if limit is None else limit
        told = np.where(chances >= least, "ill", "well")
        matrix = confusion_matrix(Y[TRAIN], told, labels=["ill", "well"])
        assert np.abs(found.confusion(limit) - matrix).max() < 120
    with pytest.raises(ValueError, match="threshold must be"):
        found.confusion(1.5)
    curve = found.roc_curve_
    assert curve.thresholds[0] == np.inf and curve.thresholds[-1] == 0.0
    assert (np.diff(curve.thresholds) < 0.0).all()
    other = found.precision_recall_curve_
    assert (0.0 <= other.precision).all() and (other.precision <= 1.0).all()
    assert other.recall.shape == other.thresholds.shape == other.precision_std.shape


def test_deviations_of_a_confusion_matrix_are_those_of_the_records() -> None:
    model = FrozenEstimator(DPLogisticRegression(epsilon=8.0, random_state=0).fit(X, Y))
    errors = []
    for seed in range(60):
        budget: dict[str, Any] = {"epsilon": 0.2, "delta": 1e-6, "random_state": seed}
        found = PrivateScoreCurves(model, pos_label="ill", **budget).fit(X, Y)
        # Two thresholds between edges, and the edge at 0.
        for limit in (0.03, 0.2, 0.5):
            told = np.where(found.predict_proba(X)[:, 0] >= limit, "ill", "well")
            matrix, deviations = found.confusion(limit, return_std=True)
            assert np.array_equal(matrix, found.confusion(limit))
            errors.append((matrix - confusion_matrix(Y, told)) / deviations)
    covered = (np.abs(errors) <= 1.96).mean(axis=0)
    assert (covered >= 0.9).all(), covered
    # They are not just wide.
    assert (np.std(errors, axis=0) > 0.5).all()


def test_wrong_parameters_are_refused() -> None:
    for settings, message in (
        ({}, "at_least must be given"),
        ({"at_least": 0.0}, "at_least must be"),
        ({"at_least": 0.5, "costs": (1, 2)}, "costs must be None"),
        ({"metric": "cost"}, "costs must be given"),
        ({"metric": "cost", "costs": (1, -2)}, "each of costs must be"),
        ({"metric": "cost", "costs": 3}, "costs must be a pair"),
        ({"metric": "f1", "at_least": 0.5}, "metric must be"),
    ):
        with pytest.raises(ValueError, match=message):
            fitted(**settings)


@pytest.mark.parametrize("ids", [None, np.arange(20_000) // 2], ids=["rows", "persons"])
def test_rows_in_parts_have_the_histogram_of_a_table(ids: Any) -> None:
    # Theorem R10, Theorem Q1: of a model that is the same in memory and in any parts.
    bounds = {"bounds": (-4, 4), "classes": ["ill", "well"], "max_rounds": 4}
    model = PrivateThreshold(
        DPExplainableBoostingClassifier(**bounds), epsilon=4.0, at_least=0.9, random_state=0
    )
    rows, labels = X[TRAIN].copy(), Y[TRAIN].astype(object)
    rows[3, 1], labels[7] = np.nan, None
    whole = clone(model).fit(rows, labels, groups=ids)
    for size in (20_000, 4_999):
        parts = PrivateRows.from_arrays(rows, labels, rows_per_part=size)
        found = clone(model).fit(parts, groups=ids)
        assert found.histogram_.counts.tobytes() == whole.histogram_.counts.tobytes()
        assert found.best_threshold_ == whole.best_threshold_
        assert str(found.privacy_) == str(whole.privacy_)
    # Rows that the model was not fitted to; a model that is the same for any parts.
    linear = DPLogisticRegression(1.0, 1e-6, classes=["ill", "well"], random_state=0)
    frozen = FrozenEstimator(linear.fit(parts))
    held = PrivateScoreCurves(frozen, epsilon=1.0, random_state=0)
    counts = [clone(held).fit(*each).histogram_.counts for each in ((rows, labels), (parts,))]
    assert counts[0].tobytes() == counts[1].tobytes()


def test_models_that_take_no_rows_in_parts_are_refused_for_free() -> None:
    def unread() -> Any:
        raise AssertionError("read")

    rows = PrivateRows.from_chunks(unread)
    ledger = PrivacyLedger(":memory:", "people", epsilon=9.0, delta=1e-5)
    with ledger, pytest.raises(TypeError, match="Declare the labels"):
        PrivateThreshold(DPLogisticRegression(), at_least=0.9).fit(rows)
    assert not ledger.history()
