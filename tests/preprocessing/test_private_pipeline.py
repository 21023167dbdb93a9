"""A private estimator for a table, in one step: separately and in every search."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, Normalizer, StandardScaler

from skdptune import DoublingThresholdSearchCV, DPGridSearchCV, DPRandomSearchCV
from skdptune.accounting import PrivacyProfile
from skdptune.base import NoProfileError, privacy_of, profile_of, register_profile
from skdptune.ensemble import DPExplainableBoostingRegressor
from skdptune.linear_model import (
    AdaSSPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    DPRidge,
)
from skdptune.preprocessing import Schema, TableEncoder, make_private_pipeline
from tests.base.nasty_records import CELLS, as_column
from tests.flat import flat
from tests.tables import COLUMNS, people

N = 400
LABELS = Schema(COLUMNS, target=["no", "yes"])
NUMBERS = Schema(COLUMNS, target=(-50, 100))


X, LABEL, NUMBER = people(N)


def classifier(**settings: Any) -> DPLogisticRegression:
    given = {"epsilon": 5.0, "solver": "sgd", "epochs": 2, "batch_size": 0.1, "random_state": 0}
    return DPLogisticRegression(**{**given, **settings})


# Settings of the estimator ---------------------------------------------------------------------


@pytest.mark.parametrize("kind", [DPLogisticRegression, DPLinearSVC])
def test_classifier_knows_norm_and_labels(kind) -> None:
    given = kind(epsilon=3.0)
    pipeline = make_private_pipeline(given, LABELS)
    name = kind.__name__.lower()
    assert list(pipeline.named_steps) == ["tableencoder", name]
    model = pipeline[-1]
    assert model.data_norm == pipeline[0].data_norm == 5**0.5
    assert model.classes == ["no", "yes"]
    # The given one is left alone.
    assert (given.data_norm, given.classes) == (None, None)
    assert profile_of(pipeline, 1000) == profile_of(model, 1000, pipeline[0].n_features_out)


@pytest.mark.parametrize("kind", [DPRidge, AdaSSPLinearRegression])
def test_regression_knows_norm_and_bound(kind) -> None:
    pipeline = make_private_pipeline(kind(epsilon=3.0), NUMBERS, n_knots=3)
    assert pipeline[-1].target_bound == (-50.0, 100.0)
    assert pipeline[-1].data_norm == 5**0.5
    assert pipeline[0].n_knots == 3
    pipeline.fit(X, NUMBER)
    assert pipeline.predict(X).shape == (N,)
    assert len(pipeline[-1].coef_) == pipeline[0].n_features_out


def test_nets_and_boosting_know_the_range_of_targets() -> None:
    pytest.importorskip("torch")
    nets = pytest.importorskip("skdptune.neural_network", exc_type=ImportError)
    for kind in (nets.DPNeuralNetRegressor, DPExplainableBoostingRegressor):
        assert make_private_pipeline(kind(), NUMBERS)[-1].target_bound == (-50.0, 100.0)
        kept = make_private_pipeline(kind(target_bound=7.0), NUMBERS)[-1]
        assert kept.target_bound == 7.0
    # A net needs no range.
    assert make_private_pipeline(nets.DPNeuralNetRegressor(), COLUMNS)[-1].target_bound is None
    with pytest.raises(ValueError, match=r"such as target=\(0, 100\)"):
        make_private_pipeline(DPExplainableBoostingRegressor(), COLUMNS)


def test_models_of_diffprivlib_know_ranges(registry: None) -> None:
    models = pytest.importorskip("diffprivlib.models", exc_type=ImportError)
    # Even with known objections to them.
    for kind in (models.GaussianNB, models.LinearRegression, models.LogisticRegression):
        register_profile(kind, insist=True)(lambda model, *_: PrivacyProfile.pure(model.epsilon))
    bayes = make_private_pipeline(models.GaussianNB(epsilon=50.0, random_state=0), LABELS)
    assert bayes[-1].bounds == (-1.0, 1.0)
    assert profile_of(bayes, N).epsilon(0.0) == 50.0
    assert bayes.fit(X, LABEL).score(X, LABEL) > 0.5
    line = make_private_pipeline(models.LinearRegression(epsilon=5.0), NUMBERS)
    assert (line[-1].bounds_X, line[-1].bounds_y) == ((-1.0, 1.0), (-50.0, 100.0))
    assert line.fit(X, NUMBER).predict(X).shape == (N,)
    kept = make_private_pipeline(models.LogisticRegression(epsilon=5.0, data_norm=9.0), LABELS)
    assert kept[-1].data_norm == 9.0


def test_what_the_user_says_is_kept() -> None:
    model = classifier(data_norm=1.0, classes=["yes", "no", "?"])
    kept = make_private_pipeline(model, LABELS)[-1]
    assert (kept.data_norm, kept.classes) == (1.0, ["yes", "no", "?"])
    kept = make_private_pipeline(DPRidge(target_bound=7.0), COLUMNS)[-1]
    assert kept.target_bound == 7.0


def test_fit_predict_and_report() -> None:
    pipeline = make_private_pipeline(classifier(epsilon=50.0, epochs=20), LABELS).fit(X, LABEL)
    assert pipeline.score(X, LABEL) > 0.9
    report = privacy_of(pipeline)
    assert report.profile == profile_of(pipeline, N)
    assert any("schema of the table" in sentence for sentence in report.assumptions)
    assert pipeline[:-1].get_feature_names_out().size == pipeline[-1].coef_.size
    # Rows that arrive as text, one at a time, in another order.
    words = X.astype(object).where(X.notna(), None)[X.columns[::-1]]
    assert_array_equal(pipeline.predict(words), pipeline.predict(X))


# Refusals --------------------------------------------------------------------------------------


def test_model_that_is_not_private_is_refused_with_its_counterpart() -> None:
    with pytest.raises(NoProfileError) as refusal:
        make_private_pipeline(LogisticRegression(), LABELS)
    assert str(refusal.value) == (
        "estimator must be private or learn nothing; got LogisticRegression (step "
        "'logisticregression'): this model is not private. Use "
        "skdptune.linear_model.DPLogisticRegression."
    )


def test_all_that_is_wrong_is_listed() -> None:
    with pytest.raises(NoProfileError) as refusal:
        make_private_pipeline(LinearRegression(), {"age": (9, 0), "note": "text"})
    message = str(refusal.value)
    assert "- tableencoder: a parameter: schema must describe every column; 2 problems" in message
    assert "- age: range must be" in message
    assert "- note: free text" in message
    assert "- linearregression: LinearRegression: this model is not private. Use skdp" in message


def test_regression_needs_a_range_of_targets() -> None:
    for schema in (COLUMNS, LABELS):
        with pytest.raises(ValueError, match=r"such as target=\(0, 100\)"):
            make_private_pipeline(DPRidge(), schema)


def test_regression_is_not_given_labels() -> None:
    with pytest.raises(ValueError, match=r"got labels\. Take a classifier, or give the target's"):
        make_private_pipeline(DPRidge(), LABELS)


@pytest.mark.parametrize("target", [[0, 1], (0, 1), {"range": [0, 1]}], ids=str)
@pytest.mark.parametrize("kind", [DPLogisticRegression, DPLinearSVC])
def test_classifier_is_not_given_a_range(kind, target) -> None:
    # The labels would be read off the private targets.
    with pytest.raises(ValueError, match=r"schema must name labels for a classifier") as refusal:
        make_private_pipeline(kind(), Schema(COLUMNS, target=target))
    assert 'target={"categories": [0, 1]}' in str(refusal.value)
    with pytest.raises(ValueError, match="schema must name labels"):
        make_private_pipeline(make_pipeline(Normalizer(), kind()), Schema(COLUMNS, target=target))
    labels = Schema(COLUMNS, target={"categories": [0, 1]})
    assert make_private_pipeline(kind(), labels)[-1].classes == [0, 1]
    # Values that the user sets are kept.
    own = make_private_pipeline(kind(classes=[0, 1]), Schema(COLUMNS, target=target))
    assert own[-1].classes == [0, 1]


@pytest.mark.parametrize("classes", [["a", "b"], ["no", "Yes"]], ids=str)
def test_labels_of_the_schema_are_among_the_classes(classes) -> None:
    # Records with the schema's labels would teach the model nothing, in silence.
    for model in (
        classifier(classes=classes),
        make_pipeline(Normalizer(), classifier(classes=classes)),
    ):
        with pytest.raises(
            ValueError, match="classes must contain the labels of the schema's target"
        ):
            make_private_pipeline(model, LABELS)


def test_steps_that_learn_are_refused_as_searches_refuse_them() -> None:
    nested = make_pipeline(StandardScaler(), MinMaxScaler(), classifier())
    with pytest.raises(NoProfileError) as refusal:
        make_private_pipeline(nested, LABELS)
    assert [each.path for each in refusal.value.refusals] == [
        "pipeline__standardscaler",
        "pipeline__minmaxscaler",
    ]
    given = Pipeline([("tableencoder", TableEncoder(LABELS)), ("pipeline", nested)])
    with pytest.raises(NoProfileError) as of_search:
        DPGridSearchCV(given, {"tableencoder__n_knots": [3, 5]}, epsilon=1.0).plan(N, 3)
    assert str(refusal.value) == str(of_search.value)
    # Steps that learn nothing, and faults that only occur for some sizes, do not matter here.
    made = make_private_pipeline(make_pipeline(Normalizer(), classifier()), LABELS)
    assert profile_of(made, N).epsilon(1e-5) <= 5.0


@pytest.mark.parametrize("estimator", ["model", None, DPLogisticRegression])
@pytest.mark.parametrize("schema", [LABELS, NUMBERS], ids=["labels", "numbers"])
def test_only_estimators_are_taken(estimator, schema) -> None:
    with pytest.raises(NoProfileError, match="estimator must be an"):
        make_private_pipeline(estimator, schema)


# Searches --------------------------------------------------------------------------------------


def random_search(model: Any, space: dict[str, Any], **settings: Any) -> Any:
    return flat(DPRandomSearchCV, model, space, n_iter=3, **settings)


SEARCHES = {"random": random_search, "threshold": DoublingThresholdSearchCV}


@pytest.mark.parametrize("name", SEARCHES)
def test_every_search_takes_it(name) -> None:
    pipeline = make_private_pipeline(classifier(), LABELS)
    space = {"dplogisticregression__C": [0.1, 1.0], "tableencoder__n_knots": [None, 3]}
    search = SEARCHES[name](pipeline, space, epsilon=8.0, delta=1e-5, random_state=0)
    assert search.plan(N, X.shape[1], compare=False).epsilon <= 8.0
    search.fit(X, LABEL)
    assert search.privacy_.epsilon_spent <= 8.0
    assert set(search.predict(X)) <= {"no", "yes"}
    assert search.best_estimator_[0].n_features_out == search.best_estimator_[-1].coef_.size
    assert any("schema of the table" in each for each in search.privacy_.assumptions)


@pytest.mark.parametrize("as_words", [False, True])
def test_record_of_any_cells_changes_its_own_row_on_the_way_to_the_model(as_words) -> None:
    # Theorem R7: a table with a public schema is encoded cell by cell.
    table = X[:6].astype(object)
    if as_words:
        table = table.astype(str)
    pipeline = make_private_pipeline(Recorder(solver="sgd"), LABELS)
    rows = clone(pipeline).fit(table, LABEL[:6])[-1].rows_
    for cell in CELLS[as_words::2]:
        more = pd.DataFrame(
            {name: as_column([*table[name].tolist(), cell]) for name in table}, dtype=object
        )
        found = clone(pipeline).fit(more, np.append(LABEL[:6], "no"))[-1].rows_
        assert_array_equal(found[:-1], rows)
        assert np.linalg.norm(found, axis=1).max() <= pipeline[0].data_norm * (1 + 1e-15)


class Recorder(DPLogisticRegression):
    """Keeps what it is fitted to."""

    def fit(self, X: Any, y: Any) -> Any:
        self.rows_ = np.asarray(X)
        return super().fit(X, y)
