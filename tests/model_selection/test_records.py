"""A record with any content has no more effect than its own row may have (Theorem R6)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, TransformerMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
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
from sklearn.utils import get_tags

from skdptune.accounting import PrivacyProfile
from skdptune.linear_model import DPLogisticRegression, DPRidge
from skdptune.model_selection import DPGridSearchCV, DPRandomSearchCV
from skdptune.model_selection._running._data import Data, Door
from skdptune.model_selection._running._engine import check_fits, data_independent_model
from skdptune.model_selection._running._made_up import check_targets, made_up_like
from skdptune.model_selection._running._record_by_record import (
    check_steps,
    fit_record_by_record,
)
from skdptune.preprocessing import (
    BoundedScaler,
    DPStandardScaler,
    RowNormClipper,
)
from tests.flat import changed, flat
from tests.model_selection.learners import Scripted, table
from tests.model_selection.ways import USUAL, WAYS

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
@pytest.mark.parametrize("name", STEPS)
def test_a_record_more_is_a_row_more(name: str) -> None:
    # Theorem R6: steps before the private one process each record separately.
    pipeline = make_pipeline(STEPS[name], Recorder(classes=[0, 1]))
    y = np.arange(N) % 2
    for record in NASTY:
        without, with_it = table_with(record)
        rows, targets = inputs(pipeline, without, y)
        more, more_targets = inputs(pipeline, with_it, np.append(y, 1))
        assert_array_equal(more[:N], rows, str(record))
        assert_array_equal(more_targets[:N], targets, str(record))


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
WORDS = [
    *(("q", 1.0, "text"), (None, 1.0, "text"), ("a", np.inf, "text"), ("a", 1.0, None)),
    *((3, 0.0, 4), ({}, np.nan, b"x"), (pd.NA, -1.0, pd.NaT)),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("name", "output"),
    # Sparse results have no names.
    [*((name, "default") for name in TABLES), ("ordinal", "pandas")],
)
def test_columns_of_words(name: str, output: str) -> None:
    # Theorem R6: steps before the private one process each record separately.
    encoder, chosen = TABLES[name]
    columns = make_column_transformer(
        (clone(encoder), chosen), (FunctionTransformer(np.log), ["size"])
    )
    if output == "pandas":
        columns.set_output(transform=output)
    pipeline = make_pipeline(columns, Recorder(classes=[0, 1]))
    y = np.arange(N) % 2
    rows, _ = inputs(pipeline, FRAME, y)
    for record in WORDS:
        more = FRAME.copy()
        more.loc[N] = pd.Series(record, index=FRAME.columns, dtype=object)
        more = more.astype({"size": float})
        assert_array_equal(inputs(pipeline, more, np.append(y, 1))[0][:N], rows, str(record))


@pytest.mark.parametrize("kind", [Recorder, Numbers])
def test_targets(kind: Any) -> None:
    # Theorem R6: steps before the private one process each record separately.
    X, _ = table_with([0.0, 0.0])
    y: Any = np.arange(N) % 2
    rows, targets = inputs(kind(classes=[0, 1]), X, y)
    for target in (2, -1, np.nan, np.inf, None, "word", {}):
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


def test_words_for_labels_leave_rows_to_private_transformers() -> None:
    # Theorem R6: neighbouring data differ in one row, and no row is lost to a word.
    X, _ = table_with([0.0, 0.0])
    y = np.where(np.arange(N) % 2, "yes", "no").astype(object)
    door = Door.of([Carrier()], X, None, varies=False)
    carrier = door.open(X, y).fit(Carrier())
    assert_array_equal(carrier.rows_, X)
    for target in ("yes", None, np.nan, {}, 3):
        longer = np.empty(N + 1, dtype=object)
        longer[:N], longer[N] = y, target
        more = door.open(np.vstack([X, [1.0, 2.0]]), longer).fit(Carrier())
        assert_array_equal(more.rows_[:N], X)
        assert_array_equal(more.targets_[:N], carrier.targets_)
        assert np.isfinite(more.targets_.astype(float)).all()


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
    # Theorem R6: steps before the private one process each record separately.
    X, _ = table_with([0.0, 0.0])
    with pytest.raises(ValueError, match="must not mix records"):
        check_steps(pipeline, X)
    search = DPRandomSearchCV(pipeline, {"recorder__classes": [None]}, epsilon=1.0, delta=1e-5)
    with pytest.raises(ValueError, match="must not mix records"):
        search.fit(X, np.arange(N) % 2)


class PricedPCA(PCA):
    """A user's own transformer, whose cost is known and which wants many records."""

    def privacy_profile(self, n_samples: int, n_features: int | None = None) -> PrivacyProfile:
        return PrivacyProfile.pure(0.5)


@pytest.mark.parametrize("size", [64])
def test_steps_are_tried_on_as_many_records_as_they_want(size: int) -> None:
    # Theorem R6: steps before the private one process each record separately.
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


# Whole searches ---------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("kind", "record"), [(DPGridSearchCV, [0.0, 1.0]), (DPRandomSearchCV, [np.nan, 1.0])], ids=str
)
def test_one_record_does_not_turn_the_published_model_into_that_of_no_data(
    kind: Any, record: list[float]
) -> None:
    # Theorem R6: steps before the private one process each record separately.
    rng = np.random.default_rng(0)
    X = rng.uniform(0.1, 3.0, size=(600, 2))
    y = (X[:, 0] > X[:, 1]).astype(int)
    pipeline = make_pipeline(FunctionTransformer(np.log), DPLogisticRegression(solver="output"))
    values = {"dplogisticregression__C": [1.0], "dplogisticregression__data_norm": [1.0]}
    search = kind(pipeline, values, epsilon=20.0, delta=1e-5, random_state=1)
    search.fit(np.vstack([X, record]), np.append(y, 0))
    assert search.best_estimator_.score(X, y) > 0.85


# Which data a search takes -----------------------------------------------------------------------


DELTA = 1e-5


def random_search(estimator: object, **settings: object) -> DPRandomSearchCV:
    return flat(DPRandomSearchCV, estimator, {}, delta=DELTA, **settings)


@pytest.mark.parametrize("name", USUAL)
def test_bad_tables(name: str) -> None:
    X, y = table(600)
    search = WAYS[name].make(Scripted(), {"quality": [0.2, 0.8]}, delta=DELTA)
    for bad, words in (
        (X[:, 0], "X must be two-dimensional"),
        (X[:, :0], "X must have columns"),
        (X + 1j, "X must be real"),
    ):
        with pytest.raises(ValueError, match=words):
            search.fit(bad, y)
    with pytest.raises(ValueError, match="one class"):
        search.fit(X, np.zeros(600))
    with pytest.raises(ValueError, match="continuous"):
        search.fit(X, X[:, 1])


@pytest.mark.parametrize("name", USUAL)
@pytest.mark.parametrize("estimator", [make_pipeline(Normalizer(), Scripted())])
def test_targets_that_no_run_could_use(name: str, estimator: object) -> None:
    X, y = table(600)
    prefix = "" if isinstance(estimator, Scripted) else "scripted__"
    values = {f"{prefix}quality": [0.2, 0.8]}
    search = WAYS[name].make(estimator, values, delta=DELTA)
    with pytest.raises(ValueError, match="requires y to be passed"):
        search.fit(X)
    for two in (np.column_stack([y, y]), np.column_stack([y, y]).tolist()):
        with pytest.raises(ValueError, match="should be a 1d array"):
            search.fit(X, two)
    assert "privacy_" not in vars(search)
    with pytest.raises(TypeError, match="does not support: 'typo'"):
        search.fit(X, y, typo=3)


class Pairwise(Scripted):
    """Takes a matrix of all pairs of records."""

    def __sklearn_tags__(self) -> object:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = True
        return tags


@pytest.mark.parametrize("name", USUAL)
def test_matrices_of_all_pairs_are_refused(name: str) -> None:
    """Theorem R6: each of its rows is about every record."""
    X, y = table(40)
    values = {"quality": [0.2, 0.8]}
    for estimator in (Pairwise(), make_pipeline(Pairwise())):
        prefix = "" if isinstance(estimator, Pairwise) else "pairwise__"
        search = WAYS[name].make(
            estimator, {f"{prefix}{key}": each for key, each in values.items()}, delta=1e-5
        )
        with pytest.raises(ValueError, match="must take one row per record; got .*all pairs"):
            search.fit(X @ X.T, y)
        assert "privacy_" not in vars(search)
    assert get_tags(WAYS[name].make(Pairwise(), values)).input_tags.pairwise


class MayBePairwise(Scripted):
    """Takes a matrix of all pairs for a quality above one half, and would read it."""

    def fit(self, X: object, y: object, sample_weight: object = None) -> MayBePairwise:
        assert self.quality <= 0.5
        return super().fit(X, y)

    def __sklearn_tags__(self) -> object:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.quality > 0.5
        return tags


def test_a_candidate_that_takes_all_pairs_fails_unseen() -> None:
    """Theorem R6: whatever the matrix holds, it has the worst score."""
    X, y = table(600)
    search = WAYS["grid-table"].make(
        MayBePairwise(), {"quality": [0.4, 0.9]}, epsilon=50.0, delta=1e-5
    )
    changed(search, diagnostics=True).fit(X, y)
    assert search.best_params_ == {"quality": 0.4}
    assert "all pairs" in search.diagnostics_["errors"][1]


def test_tables_and_targets_of_another_type_are_refused_before_anything_is_paid_for() -> None:
    """Theorem R5: types are public; the search would publish a model of constant rows."""
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame({"age": np.arange(60.0), "seen": pd.Timestamp("2020-01-01")})
    y = np.arange(60) % 2
    for estimator in (DPLogisticRegression(), make_pipeline(Normalizer(), DPLogisticRegression())):
        search = random_search(estimator, epsilon=1.0)
        if isinstance(estimator, DPLogisticRegression):
            with pytest.raises(TypeError, match="column 'seen' has type datetime64.* Schema"):
                search.fit(X, y)
        with pytest.raises(TypeError, match="y must hold the labels"):
            random_search(estimator, epsilon=1.0).set_params(
                estimator=DPLogisticRegression(classes=["ill", "well"])
            ).fit(X[["age"]], y)
    with pytest.raises(TypeError, match="y must hold numbers"):
        check_targets(DPRidge(), np.array(["ill", "well"]))


# What belongs to the records ---------------------------------------------------------------------


def test_an_odd_weight_counts_as_zero_and_changes_no_other() -> None:
    # Theorem R5: in the worst case a record becomes a constant row.
    X, y = table(500)
    door = Door.of([DPLogisticRegression()], X, [0, 1], varies=False)
    weights: list[Any] = np.linspace(0.0, 1.0, 500).tolist()
    before = door.open(X, y, {"weight": list(weights)}).per_record["weight"]
    for odd in ("heavy", None, np.nan, np.inf, 1j, (1.0, 2.0)):
        weights[7] = odd
        after = door.open(X, y, {"weight": weights}).per_record["weight"]
        assert after[7] == 0.0
        assert_array_equal(np.delete(after, 7), np.delete(before, 7))


# Made-up data, which follow only from the form of a table ---------------------------------------


ALL_TYPES = pd.DataFrame(
    {
        "number": [1.5, 2.5],
        "count": [1, 2],
        "gap": pd.array([1, None], dtype="Int64"),
        "flag": [True, False],
        "word": pd.Series(["secret", "x"], dtype=object),
        "kind": pd.Categorical(["b", "a"], categories=["a", "b", "c"]),
        "when": pd.to_datetime(["2020", "2021"]),
        "span": pd.to_timedelta([1, 2], unit="s"),
        "text": pd.array(["secret", "y"], dtype="string"),
    }
)


def test_frames_keep_names_and_types() -> None:
    made = made_up_like(ALL_TYPES, 5)
    assert list(made.columns) == list(ALL_TYPES.columns)
    assert made.dtypes.equals(ALL_TYPES.dtypes)
    assert len(made) == 5
    assert set(made["word"]) == {"made up"}
    numbers = made_up_like(ALL_TYPES, 5, with_words=False)
    assert numbers["word"].isin([0, 1]).all()
    assert numbers["text"].isin(["0", "1"]).all()
    assert numbers.dtypes.equals(ALL_TYPES.dtypes)


def test_what_records_hold_changes_nothing() -> None:
    other = ALL_TYPES.iloc[::-1].reset_index(drop=True)
    pd.testing.assert_frame_equal(made_up_like(ALL_TYPES, 4), made_up_like(other, 4))
    X = np.arange(6.0).reshape(3, 2)
    assert np.array_equal(made_up_like(X, 4), made_up_like(-X, 4))


def test_types_of_polars_are_kept() -> None:
    """Theorem R6: what a step refuses by a type, it refuses before records are read."""
    polars = pytest.importorskip("polars")
    types = [polars.Enum(["a"]), polars.Datetime("ns"), polars.Datetime("us", "UTC")]
    types += [polars.Duration("ns"), polars.Null, polars.Float32, polars.String, polars.Decimal]
    X = polars.DataFrame({f"x{at}": polars.Series([], dtype=t) for at, t in enumerate(types)})
    made = made_up_like(X, 3)
    assert made.schema == X.schema
    assert len(made) == 3


# Fits to made-up data ---------------------------------------------------------------------------


@pytest.mark.parametrize("frame", [False, True])
def test_the_fallback_model_sees_no_record(frame: bool) -> None:
    # Theorem R6: steps before the private one process each record separately.
    X = np.full((4, 2), 7.0)
    given = pd.DataFrame(X, columns=["a", "b"]) if frame else X
    made = data_independent_model(Scripted(), Data(given, np.ones(4), {}, {}), 4)
    again = data_independent_model(Scripted(), Data(given * -3.0, np.zeros(4), {}, {}), 4)
    assert made is not again
    model = DPLogisticRegression(classes=[0, 1], random_state=0)
    one = data_independent_model(model, Data(given, np.ones(4), {}, {}), 4)
    other = data_independent_model(model, Data(given * -3.0, np.zeros(4), {}, {}), 4)
    assert np.array_equal(one.coef_, other.coef_)
    assert one.n_features_in_ == 2


class AtLeast(Scripted):
    """Cannot be fitted to fewer records than its minimum, nor to strings."""

    def __init__(
        self,
        least: int = 1,
        epsilon: float | None = 1.0,
        delta: float = 1e-6,
        n_public: int | None = None,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            epsilon=epsilon, delta=delta, n_public=n_public, random_state=random_state
        )
        self.least = least

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        if len(X) < self.least:
            raise RuntimeError(f"fewer than {self.least} records")
        return super().fit(np.asarray(X, dtype=float), y)


def test_fits_that_want_more_records_are_tried_with_more() -> None:
    # Theorem R6: steps before the private one process each record separately.
    data = Data(np.full((5000, 3), 7.0), np.arange(5000) % 2, {}, {})
    for least in (1, 7, 1000, 5000):
        check_fits([AtLeast(least)], data, 5000, "predict")
        assert hasattr(data_independent_model(AtLeast(least), data, 5000), "classes_")
    with pytest.raises(ValueError, match="RuntimeError: fewer than 5001 records"):
        check_fits([AtLeast(5001)], data, 5000, "predict")


@pytest.mark.parametrize(
    ("search", "in_pipeline"), [(DPGridSearchCV, False), (DPRandomSearchCV, True)]
)
def test_a_search_raises_where_no_fit_could_ever_work(search: Any, in_pipeline: bool) -> None:
    estimator = AtLeast(10**4)
    name = "least"
    if in_pipeline:
        estimator, name = make_pipeline(estimator), "atleast__least"
    X = np.random.default_rng(0).normal(size=(300, 3))
    y = np.arange(300) % 2
    options = {"tuning_estimator": clone(estimator)} if search is DPGridSearchCV else {}
    wrong = flat(search, estimator, {name: [1000, 2000]}, epsilon=1.0, **options)
    with pytest.raises(ValueError, match="fewer than 1000 records"):
        wrong.fit(X, y)
    assert not hasattr(wrong, "privacy_")
    fine = flat(search, estimator, {name: [1, 1000]}, epsilon=1.0, **options).fit(X, y)
    assert hasattr(fine.best_estimator_, "predict")
