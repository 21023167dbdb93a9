"""Whatever a record holds, the private step's input differs in its row alone (Theorem R6)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    RegressorMixin,
    TransformerMixin,
    clone,
)
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
)

from skdptune.accounting import PrivacyProfile
from skdptune.linear_model import DPLogisticRegression
from skdptune.model_selection import DPGridSearchCV, DPRandomSearchCV
from skdptune.model_selection._running._data import Door
from skdptune.model_selection._running._record_by_record import (
    ProperRecords,
    RecordByRecord,
    check_steps,
    fit_record_by_record,
)
from skdptune.preprocessing import BoundedScaler, DPStandardScaler, RowNormClipper

N = 12


class Recorder(ClassifierMixin, BaseEstimator):
    """Keeps what it is fitted to, and refuses what scikit-learn would."""

    def __init__(self, classes: Any = None, epsilon: float = 1.0) -> None:
        self.classes = classes
        self.epsilon = epsilon

    def privacy_profile(self, n_samples: int, n_features: int | None = None) -> PrivacyProfile:
        return PrivacyProfile.pure(self.epsilon)

    def fit(self, X: Any, y: Any) -> Recorder:
        self.rows_ = X.toarray() if sparse.issparse(X) else np.asarray(X, dtype=float)
        assert np.isfinite(self.rows_).all()
        self.targets_ = np.asarray(y)
        self.classes_ = np.array([0, 1])
        return self

    def predict(self, X: Any) -> Any:
        return np.zeros(len(X), dtype=int)


class Numbers(RegressorMixin, Recorder):
    """The same for targets that are numbers."""


IMPUTER = SimpleImputer(strategy="constant", fill_value=0.0, keep_empty_features=True)
KINDS = [["a", "b"]]
LOG = FunctionTransformer(lambda X: np.log(np.asarray(X, dtype=float)))
STEPS = {
    "log": FunctionTransformer(lambda X: np.log(np.asarray(X, dtype=float))),
    "validated": FunctionTransformer(np.sqrt, validate=True),
    "reciprocal": FunctionTransformer(lambda X: 1.0 / np.asarray(X, dtype=float)),
    "polynomials": PolynomialFeatures(3),
    "normalizer": Normalizer(),
    "binarizer": Binarizer(),
    "imputer": IMPUTER,
    "clipper": RowNormClipper(),
    "bounded": BoundedScaler(bounds=(-1.0, 1.0)),
    "union": make_union(LOG, Normalizer()),
    "columns": make_column_transformer((LOG, [0]), (Normalizer(), [1]), remainder="passthrough"),
    "nested": make_pipeline(IMPUTER, make_pipeline(PolynomialFeatures(2), Normalizer())),
    "hashes": FunctionTransformer(lambda X: np.array([[hash(str(row)) % 7] for row in X])),
}
NASTY = [
    *([0.0, 1.0], [-1.0, 1.0], [np.nan, 1.0], [np.inf, -np.inf], [1e200, 1e200], [1e-320, 1.0]),
    *([None, 1.0], ["word", 1.0], [{}, 2.0], [10**400, 1.0], [1j, 0.0], [pd.NA, 1.0]),
]


def table_with(record: list[Any]) -> tuple[Any, Any]:
    """Return a table of proper records, and the same with one more, of the same type."""
    X = np.random.default_rng(3).uniform(0.5, 2.0, size=(N, 2))
    if all(isinstance(entry, float) for entry in record):
        return X, np.vstack([X, record])
    more = np.empty((1, 2), dtype=object)
    more[0] = record
    return X.astype(object), np.vstack([X.astype(object), more])


def inputs(pipeline: Any, X: Any, y: Any) -> tuple[Any, Any]:
    fitted = fit_record_by_record(clone(pipeline), X, y)
    last = fitted[-1] if hasattr(fitted, "steps") else fitted
    return last.rows_, last.targets_


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("record", NASTY, ids=str)
@pytest.mark.parametrize("name", STEPS)
def test_a_record_more_is_a_row_more(name: str, record: list[Any]) -> None:
    # Theorem R6.
    pipeline = make_pipeline(STEPS[name], Recorder(classes=[0, 1]))
    without, with_it = table_with(record)
    y = np.arange(N) % 2
    rows, targets = inputs(pipeline, without, y)
    more, more_targets = inputs(pipeline, with_it, np.append(y, 1))
    assert_array_equal(more[:N], rows)
    assert_array_equal(more_targets[:N], targets)


FRAME = pd.DataFrame(
    {
        "kind": ["a", "b"] * (N // 2),
        "size": np.linspace(0.5, 2.0, N),
        "note": ["some text"] * N,
    }
)
TABLES = {
    "one-hot": (OneHotEncoder(categories=KINDS, handle_unknown="ignore"), ["kind"]),
    "ordinal": (
        OrdinalEncoder(categories=KINDS, handle_unknown="use_encoded_value", unknown_value=-1),
        ["kind"],
    ),
    "words": (HashingVectorizer(n_features=8), "note"),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("output", ["default", "pandas"])
@pytest.mark.parametrize(
    "record",
    [
        ("q", 1.0, "text"),
        (None, 1.0, "text"),
        ("a", np.inf, "text"),
        ("a", 1.0, None),
        (3, 0.0, 4),
        ({}, np.nan, b"x"),
        (pd.NA, -1.0, pd.NaT),
    ],
    ids=str,
)
@pytest.mark.parametrize("name", TABLES)
def test_columns_of_words(name: str, record: tuple[Any, ...], output: str) -> None:
    # Theorem R6.
    if output == "pandas" and name == "words":
        pytest.skip("sparse results have no names")
    encoder, chosen = TABLES[name]
    columns = make_column_transformer(
        (clone(encoder), chosen), (FunctionTransformer(np.log), ["size"])
    )
    if output == "pandas":
        columns.set_output(transform="pandas")
        if name == "one-hot":
            pytest.skip("sparse results have no names")
    pipeline = make_pipeline(columns, Recorder(classes=[0, 1]))
    more = FRAME.copy()
    more.loc[N] = pd.Series(record, index=FRAME.columns, dtype=object)
    more = more.astype({"size": float})
    y = np.arange(N) % 2
    rows, _ = inputs(pipeline, FRAME, y)
    assert_array_equal(inputs(pipeline, more, np.append(y, 1))[0][:N], rows)


@pytest.mark.parametrize("bad", [None, 3, {"a": {}}, {1: 2}, "text"], ids=str)
def test_lists_of_dicts(bad: Any) -> None:
    pipeline = make_pipeline(FeatureHasher(n_features=8), Recorder(classes=[0, 1]))
    records: list[Any] = [{"a": 1.0}, {"b": 2.0}] * (N // 2)
    y = np.arange(N) % 2
    rows, _ = inputs(pipeline, records, y)
    assert_array_equal(inputs(pipeline, [*records, bad], np.append(y, 1))[0][:N], rows)


@pytest.mark.parametrize("target", [2, -1, np.nan, np.inf, None, "word", {}], ids=str)
@pytest.mark.parametrize("kind", [Recorder, Numbers])
def test_targets(kind: Any, target: Any) -> None:
    # Theorem R6.
    X, _ = table_with([0.0, 0.0])
    y: Any = np.arange(N) % 2
    rows, targets = inputs(kind(classes=[0, 1]), X, y)
    longer = np.empty(N + 1, dtype=object)
    longer[:N], longer[N] = y, target
    more, more_targets = inputs(kind(classes=[0, 1]), np.vstack([X, [1.0, 2.0]]), longer)
    assert_array_equal(more[:N], rows)
    assert_array_equal(more_targets[:N], targets)
    assert np.isfinite(more_targets.astype(float)).all()


@pytest.mark.filterwarnings("ignore")
def test_private_transformers_are_fitted_to_proper_records() -> None:
    pipeline = make_pipeline(
        FunctionTransformer(np.log),
        DPStandardScaler(bounds=(-3, 3), random_state=0, epsilon=1e4, delta=1e-5),
        Recorder(classes=[0, 1]),
    )
    X, more = table_with([0.0, 1.0])
    y = np.arange(N) % 2
    assert_array_equal(np.shape(inputs(pipeline, more, np.append(y, 1))[0]), (N + 1, 2))
    fitted = fit_record_by_record(clone(pipeline), more, np.append(y, 1))
    assert np.isfinite(fitted[1].mean_).all()


class Carrier(TransformerMixin, Recorder):
    """Keeps what it is fitted to, and passes records on."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "transformer"
        return tags

    def transform(self, X: Any) -> Any:
        return X


@pytest.mark.parametrize("target", ["yes", None, np.nan, {}, 3], ids=str)
def test_words_for_labels_leave_rows_to_private_transformers(target: Any) -> None:
    # Theorem R6: neighbouring data differ in one row, and no row is lost to a word.
    X, _ = table_with([0.0, 0.0])
    y = np.where(np.arange(N) % 2, "yes", "no").astype(object)
    door = Door.of([Carrier()], X, None, varies=False)
    carrier = door.open(X, y).fit(Carrier())
    assert_array_equal(carrier.rows_, X)
    longer = np.empty(N + 1, dtype=object)
    longer[:N], longer[N] = y, target
    more = door.open(np.vstack([X, [1.0, 2.0]]), longer).fit(Carrier())
    assert_array_equal(more.rows_[:N], X)
    assert_array_equal(more.targets_[:N], carrier.targets_)
    assert np.isfinite(more.targets_.astype(float)).all()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("labels", [[0, 1], ["no", "yes"], [False, True]], ids=str)
def test_scalers_learn_the_same_whatever_the_labels_are(labels: list[Any]) -> None:
    scaler = DPStandardScaler(bounds=(0, 3), random_state=0, epsilon=1e4, delta=1e-5)
    pipeline = make_pipeline(scaler, Recorder(classes=labels))
    X, _ = table_with([0.0, 0.0])
    fitted = fit_record_by_record(pipeline, X, np.array(labels)[np.arange(N) % 2])
    np.testing.assert_allclose(fitted[0].mean_, X.mean(axis=0), atol=0.1)


@pytest.mark.filterwarnings("ignore")
def test_the_estimator_holds_its_own_steps_afterwards() -> None:
    log, poly = FunctionTransformer(np.log), PolynomialFeatures(2)
    columns = make_column_transformer((log, [0]), remainder=poly)
    last = Recorder(classes=[0, 1])
    pipeline = make_pipeline(make_union(columns, Normalizer()), last)
    X, _ = table_with([0.0, 1.0])
    fit_record_by_record(pipeline, X, np.arange(N) % 2)
    shown = repr(pipeline) + repr(pipeline[0].transformer_list[0][1].transformers_)
    assert "RecordByRecord" not in shown
    assert pipeline[1] is last
    with pytest.raises(ValueError, match="never"):
        fit_record_by_record(make_pipeline(log, _Never()), X, np.arange(N) % 2)
    pipeline.predict(X)


class _Never(Recorder):
    def fit(self, X: Any, y: Any) -> Recorder:
        raise ValueError("never")


def test_names_of_columns_reach_the_estimator() -> None:
    class Named(Recorder):
        def fit(self, X: Any, y: Any) -> Recorder:
            self.names_ = list(X.columns)
            return super().fit(X, y)

    frame = FRAME[["size"]].assign(other=1.0)
    frame.loc[3, "other"] = np.nan
    made = fit_record_by_record(Named(classes=[0, 1]), frame, np.arange(N) % 2)
    assert made.names_ == ["size", "other"]
    assert_array_equal(made.rows_[3], [0.0, 0.0])


# Steps that mix records -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "function",
    [
        lambda X: X - X.mean(axis=0),
        lambda X: X / np.abs(X).max(),
        lambda X: np.sort(X, axis=0),
        lambda X: X * len(X),
        lambda X: X[::-1],
    ],
)
def test_functions_that_mix_records_are_refused(function: Any) -> None:
    pipeline = make_pipeline(FunctionTransformer(function), Recorder())
    # Theorem R6.
    X, _ = table_with([0.0, 0.0])
    with pytest.raises(ValueError, match="must not mix records"):
        check_steps(pipeline, X)
    search = DPRandomSearchCV(pipeline, {"recorder__classes": [None]}, epsilon=1.0, delta=1e-5)
    with pytest.raises(ValueError, match="must not mix records"):
        search.fit(X, np.arange(N) % 2)


@pytest.mark.parametrize("name", STEPS)
def test_steps_that_do_not_mix_records_pass(name: str) -> None:
    check_steps(make_pipeline(STEPS[name], Recorder()), table_with([0.0, 0.0])[0])


class PricedPCA(PCA):
    """A user's own transformer, whose cost is known and which wants many records."""

    def privacy_profile(self, n_samples: int, n_features: int | None = None) -> PrivacyProfile:
        return PrivacyProfile.pure(0.5)


@pytest.mark.parametrize("size", [20, 64])
def test_steps_are_tried_on_as_many_records_as_they_want(size: int) -> None:
    # Theorem R6.
    X = np.zeros((100, 64))
    check_steps(make_pipeline(PricedPCA(size), Recorder()), X, n_samples=len(X))
    with pytest.raises(ValueError, match="n_components=65"):
        check_steps(make_pipeline(PricedPCA(65), Recorder()), X, n_samples=len(X))
    with pytest.raises(ValueError, match="must not mix records"):
        mixing = FunctionTransformer(lambda X: X - X.mean(axis=0))
        check_steps(make_pipeline(PricedPCA(size), mixing, Recorder()), X, n_samples=len(X))


def test_steps_that_can_never_work_are_refused_before_data_are_read() -> None:
    pipeline = make_pipeline(FunctionTransformer(lambda X: X["missing"]), Recorder())
    with pytest.raises(ValueError, match="one raised KeyError: 'missing'") as caught:
        check_steps(pipeline, FRAME)
    assert isinstance(caught.value.__cause__, KeyError)
    check_steps(Recorder(), FRAME)
    check_steps(make_pipeline(FunctionTransformer(), Recorder()), [object()])


@pytest.mark.parametrize(
    "dtype", ["str", "object", "string[pyarrow]", "category", "datetime64[ns]"]
)
def test_functions_of_numbers_are_refused_for_columns_of_all_other_types(dtype: str) -> None:
    """Arrow's errors are no ValueError."""
    if dtype == "string[pyarrow]":
        pytest.importorskip("pyarrow")
    words = pd.Series(["2020-01-01", "2020-01-02"] * 10).astype(dtype)
    X = pd.DataFrame({"words": words, "x": np.linspace(-1.0, 1.0, 20)})
    pipeline = make_pipeline(FunctionTransformer(np.sqrt), DPLogisticRegression(solver="sgd"))
    search = DPRandomSearchCV(pipeline, {}, n_iter=2, epsilon=1.0, delta=1e-5)
    with pytest.raises((ValueError, TypeError)):
        search.fit(X, np.arange(20) % 2)


# Whole searches ---------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", [DPGridSearchCV, DPRandomSearchCV])
@pytest.mark.parametrize("record", [[0.0, 1.0], [np.nan, 1.0], [-np.inf, 1.0]], ids=str)
def test_one_record_does_not_turn_the_published_model_into_that_of_no_data(
    kind: Any, record: list[float]
) -> None:
    # Theorem R6.
    rng = np.random.default_rng(0)
    X = rng.uniform(0.1, 3.0, size=(600, 2))
    y = (X[:, 0] > X[:, 1]).astype(int)
    pipeline = make_pipeline(FunctionTransformer(np.log), DPLogisticRegression(solver="output"))
    values = {"dplogisticregression__C": [1.0], "dplogisticregression__data_norm": [1.0]}
    search = kind(pipeline, values, epsilon=20.0, delta=1e-5, random_state=1)
    search.fit(np.vstack([X, record]), np.append(y, 0))
    assert search.best_estimator_.score(X, y) > 0.85


def test_what_wraps_steps_shows_their_sides() -> None:
    step = RecordByRecord(OneHotEncoder(categories=KINDS, handle_unknown="ignore"))
    step.fit(FRAME[["kind"]])
    assert list(step.get_feature_names_out()) == ["kind_a", "kind_b"]
    assert step.set_output(transform="default") is step
    assert ProperRecords(Recorder()).__sklearn_tags__().estimator_type == "classifier"
