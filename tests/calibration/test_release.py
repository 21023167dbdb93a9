"""The histogram of a classifier: its cost, its cells, and refused arguments."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline

from skdptune.accounting import PrivacyProfile
from skdptune.base import NoProfileError, privacy_of
from skdptune.calibration import PrivateScoreCurves, PrivateThreshold
from skdptune.ensemble import DPExplainableBoostingClassifier
from skdptune.ledger import PrivacyLedger
from skdptune.linear_model import DPLinearSVC, DPLogisticRegression
from skdptune.model_selection import DPGridSearchCV, DPRandomSearchCV
from skdptune.preprocessing import DPStandardScaler, Schema, make_private_pipeline
from tests.base.nasty_records import FIT_TAKES_ANY_RECORD
from tests.conventions import check_as_scikit_learn_does

RNG = np.random.default_rng(0)
X = RNG.normal(size=(6000, 3))
Y = (X[:, 0] + RNG.normal(size=6000) > 0.5).astype(int)
DELTA = 1e-5


class Fixed(ClassifierMixin, BaseEstimator):
    """A model whose decision is the first column, rounded otherwise in each batch."""

    def __init__(self, jitter: float = 0.0) -> None:
        self.jitter = jitter

    def fit(self, X: Any, y: Any) -> Fixed:
        self.classes_ = np.array([0, 1])
        self.n_features_in_ = X.shape[1]
        return self

    def predict(self, X: Any) -> NDArray[np.intp]:
        return (self.decision_function(X) > 0.0).astype(np.intp)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        column = np.asarray(X, dtype=np.float64)[:, 0]
        if not np.isfinite(column).all():
            raise ValueError("X must be finite.")
        return column + self.jitter * (-1.0) ** len(column)


def exact(rows: Any, y: Any, model: Any = None, **more: Any) -> PrivateScoreCurves:
    """Return a histogram without noise of a model that was fitted before."""
    frozen = FrozenEstimator((model or Fixed()).fit(X, Y))
    return PrivateScoreCurves(frozen, epsilon=math.inf, n_bins=8, **more).fit(rows, y)


# Cost -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.03, 0.3])
def test_classifier_and_histogram_meet_one_budget(share: float) -> None:
    # Theorem Q1: counts of scores by label in addition to the fit of a classifier.
    model = PrivateScoreCurves(
        DPLogisticRegression(), epsilon=1.0, delta=DELTA, share=share, insist=True
    )
    announced = model.privacy_profile(6000, 3)
    assert 0.999 < announced.epsilon(DELTA) <= 1.0
    inner, release = model.fit(X, Y).privacy_.parts
    assert model.privacy_.profile == announced == inner.profile + release.profile
    # By hand: the whole is a Gaussian of some shift, and the release has its share of the square.
    shift = 1.0 / 3.7307
    by_hand = PrivacyProfile.gaussian(shift * math.sqrt(share))
    assert release.profile.epsilon(DELTA) == pytest.approx(by_hand.epsilon(DELTA), rel=1e-3)
    by_hand = PrivacyProfile.gaussian(shift * math.sqrt(1.0 - share))
    assert inner.profile.epsilon(DELTA) == pytest.approx(by_hand.epsilon(DELTA), rel=2e-3)
    # The two releases of the histogram are one Gaussian of this shift: their squares add up.
    fine = model.histogram_.scale
    assert 0.9 * shift**2 * share == pytest.approx(fine**-2.0, rel=1e-3)


def test_relation_is_that_of_the_classifier_and_moves_of_a_record_count_twice() -> None:
    # Theorem Q1: counts of scores by label in addition to the fit of a classifier.
    settings: dict[str, Any] = {"epsilon": 1.0, "delta": DELTA, "insist": True}
    added = PrivateScoreCurves(DPLogisticRegression(solver="sgd", epochs=1), **settings)
    moved = PrivateScoreCurves(DPLogisticRegression(solver="psgd", epochs=1), **settings)
    one, other = added.fit(X, Y), moved.fit(X, Y)
    assert one.privacy_.neighbouring == "add or remove one record"
    assert other.privacy_.neighbouring == moved.estimator.neighbouring != one.privacy_.neighbouring
    ratio = other.histogram_.scale / one.histogram_.scale
    assert ratio == pytest.approx(math.sqrt(2.0), rel=1e-9)
    assert one.privacy_.parts[1].profile == other.privacy_.parts[1].profile


def test_frozen_model_pays_for_the_histogram_alone() -> None:
    model = DPLogisticRegression(delta=DELTA).fit(X, Y)
    curves = PrivateScoreCurves(FrozenEstimator(model), epsilon=0.5, delta=DELTA).fit(X, Y)
    assert curves.estimator_.coef_ is model.coef_
    (part,) = curves.privacy_.parts
    assert part.profile == curves.privacy_.profile
    assert curves.privacy_.profile.epsilon(DELTA) == pytest.approx(0.5, rel=1e-3)
    assert any(
        "the cost of the frozen model is additional" in one for one in curves.privacy_.assumptions
    )


def test_delta_is_that_of_the_classifier_by_default() -> None:
    model = PrivateScoreCurves(DPLogisticRegression(delta=1e-7), epsilon=1.0, insist=True)
    assert model.fit(X, Y).privacy_.delta == 1e-7
    with pytest.raises(ValueError, match="delta must be positive"):
        PrivateScoreCurves(DPLogisticRegression(delta=0.0), epsilon=1.0).fit(X, Y)
    pure = PrivateScoreCurves(
        DPLogisticRegression(solver="output", delta=0.0), epsilon=1.0, delta=DELTA, insist=True
    )
    inner, _ = pure.fit(X, Y).privacy_.parts
    assert inner.delta == 0.0 and inner.epsilon < 1.0


# Cells ----------------------------------------------------------------------------------------


def test_one_record_changes_one_count_by_one() -> None:
    # Theorem Q1: counts of scores by label in addition to the fit of a classifier.
    whole = exact(X, Y).histogram_
    assert whole.counts.sum() == len(Y)
    for place in range(8):
        less = exact(np.delete(X, place, 0), np.delete(Y, place)).histogram_
        assert np.array_equal(less.edges, whole.edges)
        change = whole.counts - less.counts
        assert change.sum() == np.abs(change).sum() == 1.0
        assert change[Y[place]].sum() == 1.0


@pytest.mark.parametrize("row", [np.nan, np.inf, -np.inf, "word", None, "1e999"])
def test_improper_record_is_counted_nowhere(row: Any) -> None:
    # Theorem Q1, Theorem R5.
    whole = exact(X, Y).histogram_
    table = np.vstack([X.astype(object), [[row, 0.0, 0.0]]])
    found = exact(table, np.append(Y, 1)).histogram_
    assert np.array_equal(found.counts, whole.counts)
    assert np.array_equal(exact(table.tolist(), np.append(Y, 1)).histogram_.counts, whole.counts)


@pytest.mark.parametrize("label", [None, np.nan, 7, "one"])
def test_record_with_an_improper_label_is_counted_nowhere(label: Any) -> None:
    # Theorem Q1, Theorem R5.
    whole = exact(X, Y).histogram_
    y = np.append(Y.astype(object), [label])
    assert np.array_equal(exact(np.vstack([X, X[:1]]), y).histogram_.counts, whole.counts)


def test_rounding_that_depends_on_other_records_moves_none() -> None:
    # Theorem Q1. The scores lie at the edges of the bins, from which a batch of even size drives
    # them up, and one of odd size down.
    rows = np.zeros((600, 3))
    rows[:, 0] = np.resize([-0.25, 0.0, 0.25, 0.5, -0.5], 600)
    y = np.resize([0, 1], 600)
    even = exact(rows, y, Fixed(jitter=1e-7)).histogram_
    odd = exact(rows[:-1], y[:-1], Fixed(jitter=1e-7)).histogram_
    change = even.counts - odd.counts
    assert np.abs(change).sum() == 1.0
    # The test can fail: what is computed in batches falls into other cells.
    batches = [Fixed(jitter=1e-7).fit(rows, y).decision_function(rows[:n]) for n in (600, 599)]
    cells = [np.histogram(each, even.edges)[0] for each in batches]
    assert np.abs(cells[0] - cells[1]).sum() > 100


def test_fits_with_a_record_that_no_step_reads_end() -> None:
    people = pd.DataFrame(X, columns=list("abc")).astype(object)
    labels = np.where(Y == 1, "yes", "no").astype(object)
    people.loc[3, "a"], people.loc[4, "b"] = "old", None
    labels[5], labels[6] = None, 3.0
    ranges: dict[str, Any] = dict.fromkeys("abc", (-3.0, 3.0))
    schema = Schema(ranges, target=["no", "yes"])
    for model in (
        make_private_pipeline(
            PrivateScoreCurves(DPLogisticRegression(), epsilon=4.0, random_state=0), schema
        ),
        PrivateScoreCurves(
            DPExplainableBoostingClassifier(schema=schema, max_rounds=5),
            epsilon=4.0,
            random_state=0,
        ),
    ):
        model.fit(people, labels)
        curves = model[-1] if hasattr(model, "steps") else model
        assert curves.roc_auc_ == pytest.approx(0.8, abs=0.1)
        assert set(model.predict(people[10:40])) == {"no", "yes"}


# Refusals -------------------------------------------------------------------------------------


def test_too_few_records_for_the_noise_are_refused_before_they_are_read() -> None:
    ledger = PrivacyLedger(":memory:", "patients", epsilon=9.0, delta=1e-4)
    model = PrivateScoreCurves(DPLogisticRegression(), epsilon=0.5, ledger=ledger)
    for call in (lambda: model.fit(X, Y), lambda: model.privacy_profile(6000, 3)):
        with pytest.raises(ValueError, match=r"n_samples must be at least 9,\d.*insist=True"):
            call()
    assert ledger.history() == []
    insisted = clone(model).set_params(insist=True, ledger=None).fit(X, Y)
    assert "insist=True: areas" in str(insisted.privacy_)
    # About 5,000 records at an epsilon of 1.
    model.set_params(epsilon=1.0, ledger=None)
    model.privacy_profile(5000, 3)
    with pytest.raises(ValueError, match="n_samples must be at least"):
        model.privacy_profile(4900, 3)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"share": 1.0}, "share must be"),
        ({"epsilon": 0.0}, "epsilon must be"),
        ({"n_bins": 1}, "n_bins must be"),
        ({"pos_label": 3}, "pos_label must be one of .*; got 3"),
        ({"estimator": DPLogisticRegression(classes=[0, 1, 2])}, "must have two classes"),
        ({"estimator": DPLogisticRegression(epsilon=None, noise_multiplier=2.0)}, "an epsilon"),
        ({"estimator": make_pipeline(DPLogisticRegression())}, "Put it around the last step"),
        ({"estimator": DPRandomSearchCV(DPLogisticRegression(), {}, epsilon=1.0)}, "single model"),
        ({"estimator": FrozenEstimator(DPLogisticRegression())}, "fitted"),
    ],
)
def test_wrong_parameters_are_refused(settings: dict[str, Any], message: str) -> None:
    given = {"estimator": DPLogisticRegression(), "epsilon": 1.0} | settings
    with pytest.raises((ValueError, NoProfileError), match=message):
        PrivateScoreCurves(**given).fit(X, Y)
    with pytest.raises(ValueError, match="must have two classes; got 3 classes"):
        PrivateScoreCurves(DPLogisticRegression(), epsilon=1.0).fit(X, np.arange(6000) % 3)


# In compositions ------------------------------------------------------------------------------


def test_one_column_is_refused_whatever_its_index() -> None:
    column = pd.Series(np.arange(30.0), index=np.arange(1, 31))
    with pytest.raises(ValueError, match="X must be two-dimensional"):
        PrivateScoreCurves(DPLogisticRegression(), insist=True).fit(column, np.arange(30) % 2)


def test_works_in_a_pipeline_and_as_what_a_search_tunes() -> None:
    curves = PrivateScoreCurves(DPLogisticRegression(), epsilon=1.0, random_state=0)
    scaler = DPStandardScaler(bounds=(-3.0, 3.0), epsilon=0.5)
    pipeline = make_pipeline(scaler, curves).fit(X, Y)
    assert privacy_of(pipeline).parts[1].parts[1].name == "score histogram"
    search = DPRandomSearchCV(
        curves, {"estimator__C": [0.1, 10.0]}, epsilon=2.0, n_iter=2, random_state=0
    ).fit(X, Y)
    assert search.privacy_.epsilon == 2.0
    best = search.best_estimator_
    assert best.roc_auc_ == pytest.approx(0.83, abs=0.08)
    # Whose seeds are taken back, with those inside.
    assert best.estimator_.random_state is None


def test_a_table_search_tunes_thresholds_too() -> None:
    model = PrivateThreshold(DPLogisticRegression(), at_least=0.7)
    search = DPGridSearchCV(
        make_pipeline(model),
        {"privatethreshold__estimator__C": [0.1, 10.0]},
        epsilon=4.0,
        random_state=0,
    ).fit(X, Y)
    found = search.best_estimator_[-1]
    assert (found.predict(X)[Y == 1] == 1).mean() == pytest.approx(0.7, abs=0.12)


def test_what_a_fit_is_given_is_passed_on_by_scikit_learns_routing() -> None:
    model = PrivateScoreCurves(
        DPLogisticRegression(epochs=1, solver="sgd", learning_rate=1e-9), epsilon=4.0
    )
    start = [[2.0, 0.0, 0.0]]
    assert model.fit(X, Y, coef_init=start).estimator_.coef_[0, 0] == pytest.approx(2.0, abs=1e-3)
    with pytest.raises(TypeError, match="sample_weight is not supported"):
        model.fit(X, Y, sample_weight=np.ones(len(Y)))
    with config_context(enable_metadata_routing=True):
        inner = model.estimator.set_fit_request(coef_init=True)
        routed = PrivateScoreCurves(inner, epsilon=4.0).fit(X, Y, coef_init=start)
    assert routed.estimator_.coef_[0, 0] == pytest.approx(2.0, abs=1e-3)


@pytest.mark.parametrize("kind", [PrivateScoreCurves, PrivateThreshold])
def test_scikit_learn_takes_it_for_a_classifier(kind: Any) -> None:
    of_threshold: dict[str, Any] = {} if kind is PrivateScoreCurves else {"at_least": 0.5}
    expected = dict(FIT_TAKES_ANY_RECORD)
    if of_threshold:
        expected["check_classifiers_train"] = "labels follow from the chosen threshold"
    model = kind(DPLogisticRegression(), epsilon=1.0, insist=True, **of_threshold)
    check_as_scikit_learn_does(model, expected, 40)
    for use in (lambda: model.predict(X), model.confusion):
        with pytest.raises(NotFittedError):
            use()


def test_methods_are_those_of_the_classifier() -> None:
    linear = PrivateScoreCurves(DPLogisticRegression(), epsilon=1.0, random_state=0).fit(X, Y)
    for method in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
        found = getattr(linear, method)(X[:5])
        assert np.array_equal(found, getattr(linear.estimator_, method)(X[:5]))
    vectors = PrivateScoreCurves(DPLinearSVC(), epsilon=1.0, random_state=0).fit(X, Y)
    assert not hasattr(vectors, "predict_proba")
    with pytest.raises(AttributeError, match="no predict_proba"):
        _ = vectors.reliability_
    assert vectors.confusion(0.0).sum() == pytest.approx(6000, abs=600)
