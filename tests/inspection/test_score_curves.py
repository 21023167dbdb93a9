"""Curves of a histogram of scores: the drawing agrees with the release."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from skdptune.calibration import PrivateScoreCurves
from skdptune.inspection import ScoreCurvesDisplay
from skdptune.linear_model import DPLinearSVC, DPLogisticRegression
from skdptune.preprocessing import RowNormClipper
from tests.inspection.pictures import check_grey

RNG = np.random.default_rng(0)
X = RNG.normal(size=(12_000, 3))
Y = X[:, 0] + RNG.normal(size=12_000) > 0.7


def fitted(model: Any) -> PrivateScoreCurves:
    return PrivateScoreCurves(model, epsilon=1.0, random_state=0).fit(X, Y)


@pytest.fixture(scope="module")
def curves() -> PrivateScoreCurves:
    return fitted(DPLogisticRegression())


def test_each_kind_draws_its_numbers_with_bands(curves: Any, check_picture: Any) -> None:
    display = ScoreCurvesDisplay.from_estimator(curves, name="visits")
    roc, precision, reliability = display.lines_
    assert np.array_equal(roc.get_xydata().T, [curves.roc_curve_.fpr, curves.roc_curve_.tpr])
    found = curves.precision_recall_curve_
    assert np.array_equal(precision.get_xydata().T, [found.recall, found.precision])
    assert np.array_equal(reliability.get_ydata(), curves.reliability_.prob_true)
    assert roc.get_label() == (f"visits, area {curves.roc_auc_:.3f} ± {curves.roc_auc_std_:.3f}")
    for band, line in zip(display.bands_, display.lines_, strict=True):
        corners = band.get_paths()[0].vertices
        assert (0.0 <= corners).all() and (corners <= 1.0).all()
        heights = corners[np.isclose(corners[:, 0], line.get_xdata()[4]), 1]
        assert heights.min() <= line.get_ydata()[4] <= heights.max()
    assert display.ax_[0].get_title(loc="left").startswith("PrivateScoreCurves: ε = 1.000")
    check_picture(display.figure_, "score_curves")


def test_two_models_are_compared_on_one_ax(curves: Any) -> None:
    first = ScoreCurvesDisplay.from_estimator(curves, kind="roc")
    pipeline = make_pipeline(RowNormClipper(1.0), fitted(DPLinearSVC()))
    pipeline[0].fit(X)
    second = ScoreCurvesDisplay.from_estimator(pipeline, kind="roc", ax=first.ax_, name="SVC")
    texts = [text.get_text() for text in second.ax_.get_legend().get_texts()]
    assert [text.split(",")[0] for text in texts] == [
        "DPLogisticRegression",
        "95 % of noise and sampling",
        "SVC",
    ]
    check_grey(second.ax_)
    # A reliability curve needs probabilities.
    assert len(ScoreCurvesDisplay.from_estimator(pipeline, band=False).lines_) == 2
    with pytest.raises(AttributeError, match="no predict_proba"):
        ScoreCurvesDisplay.from_estimator(pipeline, kind="reliability")


def test_wrong_arguments_are_refused(curves: Any) -> None:
    with pytest.raises(ValueError, match="kind must be"):
        ScoreCurvesDisplay.from_estimator(curves, kind="lift")
    ax = ScoreCurvesDisplay.from_estimator(curves, kind="roc").ax_
    with pytest.raises(ValueError, match="a single kind if ax is given"):
        ScoreCurvesDisplay.from_estimator(curves, ax=ax)
    with pytest.raises(TypeError, match="estimator must be a PrivateScoreCurves"):
        ScoreCurvesDisplay.from_estimator(DPLogisticRegression())
    with pytest.raises(ValueError, match="must be fitted"):
        ScoreCurvesDisplay(PrivateScoreCurves(DPLogisticRegression(), epsilon=1.0))
