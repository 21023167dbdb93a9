"""Compositions of scikit-learn, and steps that learn nothing."""

from __future__ import annotations

import ast
import inspect
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_selector
from sklearn.decomposition import PCA, SparseCoder
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.feature_selection import SelectFromModel
from sklearn.frozen import FrozenEstimator
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.kernel_approximation import Nystroem, PolynomialCountSketch, RBFSampler
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline, make_union
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    SplineTransformer,
    StandardScaler,
)
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection
from sklearn.utils import all_estimators

from skdptune.accounting import PrivacyProfile
from skdptune.base import NoProfileError, privacy_of, profile_of
from skdptune.linear_model import DPLogisticRegression, DPRidge
from skdptune.model_selection import DPGridSearchCV
from skdptune.preprocessing import DPMinMaxScaler, DPStandardScaler, RowNormClipper, TableEncoder

ROWS = np.random.default_rng(0).normal(size=(30, 3))
FREE = PrivacyProfile.pure(0.0)
BOUNDS = (-4.0, 4.0)


def pure(epsilon=0.5) -> DPMinMaxScaler:
    return DPMinMaxScaler(epsilon, bounds=BOUNDS, random_state=0)


def gauss(epsilon=1.0, delta=1e-6) -> DPStandardScaler:
    return DPStandardScaler(epsilon, delta, bounds=BOUNDS, random_state=0)


def one_hot(**changes) -> OneHotEncoder:
    return OneHotEncoder(**{"categories": [["a"]], "handle_unknown": "ignore", **changes})


def ordinal(**changes) -> OrdinalEncoder:
    given = {"handle_unknown": "use_encoded_value", "unknown_value": -1, "categories": [["a"]]}
    return OrdinalEncoder(**{**given, **changes})


def imputer(**changes) -> SimpleImputer:
    return SimpleImputer(**{"strategy": "constant", "keep_empty_features": True, **changes})


class Last(BaseEstimator):
    """Keeps the number of columns that it is asked with."""

    def privacy_profile(self, n_samples, n_features=None):
        self.asked_ = n_features
        return FREE


def width_after(step, n_features):
    """Return how many columns a step is known to return, None if that is not known."""
    last = Last()
    try:
        profile_of(make_pipeline(step, last), 30, n_features)
    except (NoProfileError, ValueError):
        return None
    return last.asked_


# Steps -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "step",
    [
        CountVectorizer(),
        KBinsDiscretizer(),
        PCA(),
        StandardScaler(),
        OneHotEncoder(),
        one_hot(categories="auto"),
        one_hot(handle_unknown="error"),
        one_hot(handle_unknown="infrequent_if_exist"),
        one_hot(handle_unknown="warn"),
        one_hot(drop="if_binary"),
        one_hot(min_frequency=2),
        one_hot(max_categories=3),
        OrdinalEncoder(),
        ordinal(categories="auto"),
        ordinal(handle_unknown="error"),
        ordinal(min_frequency=0.1),
        ordinal(max_categories=2),
        SimpleImputer(),
        imputer(strategy="mean"),
        imputer(keep_empty_features=False),
        imputer(add_indicator=True),
    ],
    ids=str,
)
def test_step_that_learns_is_refused(step) -> None:
    # Theorem R3: a pipeline costs what its steps cost together.
    with pytest.raises(NoProfileError, match=f"got {type(step).__name__}"):
        profile_of(step, 10)


PUBLIC = np.random.default_rng(1).normal(size=(20, 3))
KNOTS = [[-1.0] * 3, [0.0] * 3, [2.0] * 3]
FROZEN_MODEL = FrozenEstimator(LogisticRegression().fit(PUBLIC, PUBLIC[:, 0] > 0))
# Steps that learn nothing with these parameters, and what makes each of them learn.
HARMLESS = [
    (Binarizer(), None),
    (FeatureHasher(8), None),
    (FunctionTransformer(np.abs), None),
    (HashingVectorizer(n_features=8), None),
    (Normalizer(), None),
    (PolynomialCountSketch(n_components=5, degree=3, random_state=0), None),
    (PolynomialFeatures(2), None),
    (SparseCoder(np.eye(3), transform_algorithm="threshold"), None),
    (SparseCoder(np.eye(3), transform_algorithm="lasso_cd", split_sign=True), None),
    (SparseCoder(np.eye(3)), None),
    (one_hot(categories=[[0.0, 1.0]] * 3), {"categories": "auto"}),
    (ordinal(categories=[[0.0, 1.0]] * 3), {"categories": "auto"}),
    (imputer(), {"strategy": "median"}),
    (MissingIndicator(features="all"), {"features": "missing-only"}),
    (GaussianRandomProjection(2, random_state=0), {"n_components": "auto"}),
    (
        SparseRandomProjection(2, compute_inverse_components=True, random_state=0),
        {"n_components": "auto"},
    ),
    (RBFSampler(gamma=0.5, n_components=7, random_state=0), {"gamma": "scale"}),
    (SplineTransformer(knots=KNOTS), {"knots": "quantile"}),
    (SplineTransformer(knots=KNOTS, extrapolation="linear"), {"extrapolation": "error"}),
    (SplineTransformer(knots=KNOTS, degree=2, extrapolation="periodic"), {"knots": "uniform"}),
    (SplineTransformer(knots=KNOTS, extrapolation="continue", include_bias=False), None),
    (CountVectorizer(vocabulary=["a", "b"], token_pattern=r"\w"), {"vocabulary": None}),
    (
        TfidfVectorizer(vocabulary={"b": 1, "a": 0}, use_idf=False, token_pattern=r"\w"),
        {"use_idf": True},
    ),
    (TfidfTransformer(use_idf=False, sublinear_tf=False), {"use_idf": True}),
    (FrozenEstimator(PCA(2).fit(PUBLIC)), {"estimator": PCA(2)}),
    (FrozenEstimator(StandardScaler().fit(PUBLIC)), {"estimator": StandardScaler()}),
    (FrozenEstimator(Nystroem(n_components=4, random_state=0).fit(PUBLIC)), None),
    (SelectFromModel(FROZEN_MODEL, threshold="median"), {"max_features": len}),
    (SelectFromModel(FROZEN_MODEL), {"estimator": LogisticRegression()}),
]
BY_NAME = [
    pytest.param(*pair, id=f"{type(pair[0]).__name__}{n}") for n, pair in enumerate(HARMLESS)
]
# The record that differs: far away, tiny, or a missing value if these are accepted.
EXTREMES = [1e300, -1e154, 5e-324]


def records_for(step, value):
    """Return records of which the last holds a value."""
    if isinstance(step, FeatureHasher):
        return [{"a": 1.0, "b": 2.0}, {"b": -1.0}, {f"c{value}": value}]
    if isinstance(step, CountVectorizer | HashingVectorizer):
        return ["a b", "b", f"z {value}" * 9]
    rows = np.abs(ROWS[:6]) if isinstance(step, TfidfTransformer) else ROWS[:6].copy()
    rows[-1] = abs(value) if isinstance(step, TfidfTransformer) else value
    return rows


def dense(made):
    return made.toarray() if hasattr(made, "toarray") else np.asarray(made)


@pytest.mark.parametrize(("step", "learning"), BY_NAME)
@pytest.mark.filterwarnings("ignore")
def test_what_is_free_is_the_same_on_neighbours(step, learning) -> None:
    # Theorem R3: a pipeline costs what its steps cost together.
    assert profile_of(step, 10) == FREE
    for value in EXTREMES:
        check_same_on_neighbours(step, value)


def check_same_on_neighbours(step, value) -> None:
    one, other = (clone(step).fit(records_for(step, each), None) for each in (0.0, value))
    # Bit by bit: pickles of equal attributes in equal order.
    assert pickle.dumps(vars(one)) == pickle.dumps(vars(other))
    records = records_for(step, value)
    together = dense(one.transform(records))
    kept = dense(one.transform(records_for(step, 0.0)))
    assert np.array_equal(together[:-1], kept[:-1])
    # Assumption F6: batches change the cosine of a huge product, but only for the last record.
    is_chaotic = isinstance(step, RBFSampler) and abs(value) > 1e10
    for place in range(len(records) - is_chaotic):
        alone = dense(one.transform(records[place : place + 1]))
        np.testing.assert_allclose(together[place : place + 1], alone, rtol=1e-9, atol=1e-300)
    width = width_after(step, 3)
    assert width in (None, together.shape[1])
    if not isinstance(step, FunctionTransformer | SelectFromModel):
        assert width is not None


@pytest.mark.parametrize(
    ("step", "learning"), [each for each in BY_NAME if each.values[1] is not None]
)
def test_what_is_free_is_refused_where_it_learns(step, learning) -> None:
    # Theorem R3: a pipeline costs what its steps cost together.
    changed = type(step)(**{**step.get_params(deep=False), **learning})
    with pytest.raises(NoProfileError, match=f"got {type(step).__name__}") as raised:
        profile_of(changed, 10)
    assert "Set " in str(raised.value)


def test_all_other_transformers_of_scikit_learn_are_refused() -> None:
    known = {type(step).__name__ for step, _ in HARMLESS}
    compositions = {"ColumnTransformer", "FeatureUnion", "Pipeline"}
    for name, kind in all_estimators("transformer"):
        if name in known | compositions:
            continue
        inner = {"estimator", "estimators"} & set(inspect.signature(kind).parameters)
        given = {"estimator": LogisticRegression(), "estimators": [("a", LogisticRegression())]}
        made = kind(**{name: given[name] for name in inner})
        with pytest.raises(NoProfileError):
            profile_of(made, 100, 3)


def test_frozen_model_is_named_in_the_report_and_keeps_its_parameters() -> None:
    # Assumption R4: the stated cost of estimators of other libraries.
    private = gauss().fit(ROWS)
    frozen = FrozenEstimator(private)
    whole = make_pipeline(frozen, pure())
    assert profile_of(whole, 30, 3) == profile_of(pure(), 30, 3)
    report = privacy_of(whole.fit(ROWS))
    words = "content of a FrozenEstimator was learnt from public data"
    assert any(words in sentence for sentence in report.assumptions)
    assert privacy_of(frozen).epsilon == 0.0
    search = DPGridSearchCV(
        make_pipeline(frozen, DPLogisticRegression(classes=[0, 1])),
        {"dplogisticregression__C": [0.1, 1.0]},
        epsilon=1.0,
        delta=1e-6,
        random_state=0,
    )
    X = np.resize(ROWS, (300, 3))
    search.fit(X, np.arange(300) % 2)
    assert private.epsilon == 1.0 and private.random_state == 0


# What passes records on to one model ------------------------------------------------------------


def threshold(model, **changes) -> FixedThresholdClassifier:
    return FixedThresholdClassifier(model, **{"threshold": 0.3, **changes})


def transformed(model, **changes) -> TransformedTargetRegressor:
    given = {"func": np.log1p, "inverse_func": np.expm1, "check_inverse": False}
    return TransformedTargetRegressor(model, **{**given, **changes})


LINE = DPRidge(epsilon=0.5, target_bound=3.0, data_norm=1.0, random_state=0)
CLASSIFIER = DPLogisticRegression(epsilon=0.5, classes=[0, 1], data_norm=1.0, random_state=0)
LOGARITHM = FunctionTransformer(np.log1p, np.expm1, check_inverse=False)


@pytest.mark.parametrize(
    ("whole", "inner"),
    [
        (threshold(CLASSIFIER), CLASSIFIER),
        (threshold(FROZEN_MODEL), FROZEN_MODEL),
        (transformed(LINE), LINE),
        (transformed(LINE, func=None, inverse_func=None), LINE),
        (transformed(LINE, func=None, inverse_func=None, transformer=LOGARITHM), LINE),
    ],
)
def test_model_around_another_costs_what_that_one_does(whole, inner) -> None:
    # Theorem R3: a pipeline costs what its steps cost together.
    assert profile_of(whole, 100, 3) == profile_of(inner, 100, 3)
    assert profile_of(make_pipeline(Normalizer(), whole), 100, 3) == profile_of(inner, 100, 3)
    fitted = clone(whole).fit(ROWS, (ROWS[:, 0] > 0).astype(float))
    assert privacy_of(fitted).profile == profile_of(inner, 30, 3)


def test_functions_of_targets_are_an_assumption() -> None:
    # Assumption R4: the stated cost of estimators of other libraries.
    report = privacy_of(transformed(clone(LINE)).fit(ROWS, np.abs(ROWS[:, 0])))
    assert any("treat each target separately" in sentence for sentence in report.assumptions)


@pytest.mark.parametrize(
    ("whole", "words"),
    [
        (threshold(LogisticRegression()), "step 'estimator'"),
        (threshold(make_pipeline(CLASSIFIER)), "around the last step"),
        (threshold(DPGridSearchCV(CLASSIFIER, {"C": [1.0]})), "around the last step"),
        (transformed(LINE, check_inverse=True), "Set check_inverse=False"),
        (transformed(LINE, func=None, inverse_func=None, transformer=StandardScaler()), "learns"),
        (
            transformed(
                LINE, func=None, inverse_func=None, transformer=FunctionTransformer(np.log1p)
            ),
            "Set transformer__check_inverse=False",
        ),
        (transformed(None), "not private"),
        (TunedThresholdClassifierCV(CLASSIFIER), "not private"),
    ],
)
def test_model_around_another_is_refused_with_what_to_do(whole, words) -> None:
    with pytest.raises(NoProfileError, match=words):
        profile_of(whole, 100, 3)


def test_searches_tune_thresholds() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    y = (X[:, 0] > 0).astype(float)
    # An undeclared label and a row of missing values must each change only one record.
    y[0], X[1] = 7.0, np.nan
    search = DPGridSearchCV(
        make_pipeline(Normalizer(), threshold(DPLogisticRegression(classes=[0, 1]))),
        {"fixedthresholdclassifier__threshold": [0.5, 0.99]},
        epsilon=20.0,
        delta=1e-6,
        random_state=0,
    ).fit(X, y)
    assert search.privacy_.epsilon == pytest.approx(20.0, rel=1e-3)
    assert search.best_params_["fixedthresholdclassifier__threshold"] < 0.99
    assert search.best_estimator_[-1].estimator_.n_features_in_ == 3
    assert search.score(X[2:], y[2:]) > 0.8


# Compositions ------------------------------------------------------------------------------------


def test_pipeline_costs_the_sum_of_its_steps() -> None:
    # Theorem R3: a pipeline costs what its steps cost together.
    pipeline = make_pipeline(RowNormClipper(), gauss(), Normalizer(), pure())
    wanted = gauss().privacy_profile(30) + pure().privacy_profile(30)
    assert profile_of(pipeline, 30) == wanted


def test_nested_compositions_cost_the_sum_of_all_within() -> None:
    inner = make_pipeline(Normalizer(), pure(0.25))
    union = FeatureUnion([("one", inner), ("two", pure(0.5)), ("three", "drop")])
    columns = ColumnTransformer([("union", union, [0, 1])], remainder=pure(1.0))
    parts = [pure(0.25), pure(0.5), pure(1.0), gauss()]
    wanted = sum(part.privacy_profile(30) for part in parts)
    found = profile_of(make_pipeline(columns, gauss()), 30)
    assert found.epsilon(1e-6) == pytest.approx(wanted.epsilon(1e-6), rel=1e-9)


@pytest.mark.parametrize("word", ["passthrough", "drop"])
def test_placeholders_elsewhere_are_free(word) -> None:
    assert profile_of(FeatureUnion([("a", word), ("b", pure())]), 30).epsilon(0) == 0.5
    columns = ColumnTransformer([("a", word, [0]), ("b", pure(), [1])], remainder=word)
    assert profile_of(columns, 30).epsilon(0) == 0.5
    if word == "passthrough":
        for nothing in (word, None):
            pipeline = Pipeline([("a", nothing), ("b", pure())])
            assert profile_of(pipeline, 30).epsilon(0) == 0.5


def test_refusal_lists_all_that_is_wrong() -> None:
    # Theorem R3: a pipeline costs what its steps cost together.
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    columns = ColumnTransformer(
        [("num", numbers, ["age"]), ("cat", OneHotEncoder(), ["sector"])], remainder=pure()
    )
    mixed = make_pipeline(columns, DPStandardScaler(), LogisticRegression())
    with pytest.raises(NoProfileError) as refusal:
        profile_of(mixed, 30)
    head, *lines = str(refusal.value).splitlines()
    assert head == "estimator must be private or learn nothing; 5 problems:"
    assert [line.split(": ")[:2] for line in lines] == [
        ["- columntransformer__num__simpleimputer", "SimpleImputer"],
        ["- columntransformer__num__standardscaler", "StandardScaler"],
        ["- columntransformer__cat", "OneHotEncoder"],
        ["- dpstandardscaler", "a parameter"],
        ["- logisticregression", "LogisticRegression"],
    ]
    # With the names that the user sets.
    assert "columntransformer__num__simpleimputer__strategy='constant' and columntrans" in lines[0]
    assert "columntransformer__num__simpleimputer__keep_empty_features=True" in lines[0]
    assert "columntransformer__cat__handle_unknown='ignore'" in lines[2]
    assert "bounds must be" in lines[3]
    assert "this model is not private. Use skdptune.linear_model.DPLogisticRegression." in lines[4]


def test_following_the_refusal_leaves_nothing_to_refuse() -> None:
    columns = ColumnTransformer([("num", SimpleImputer(), [0]), ("cat", OneHotEncoder(), [1])])
    with pytest.raises(NoProfileError) as refusal:
        profile_of(columns, 30)
    for each in refusal.value.refusals:
        for name, value in each.settings:
            given = [["a"]] if value == "[[...], ...]" else ast.literal_eval(value)
            columns.set_params(**{f"{each.path}__{name}": given})
    assert profile_of(columns, 30) == FREE


def test_all_bad_parameters_are_listed() -> None:
    wrong = make_pipeline(DPStandardScaler(), DPMinMaxScaler())
    with pytest.raises(ValueError, match=r"2 problems:\n- dpstandardscaler: bounds must"):
        profile_of(wrong, 30)
    # A single error is raised unchanged.
    with pytest.raises(ValueError, match="^bounds must be"):
        profile_of(make_pipeline(DPStandardScaler(), pure()), 30)


class Widening(BaseEstimator):
    """Says how many columns it returns."""

    n_features_out = 7

    def privacy_profile(self, n_samples, n_features=None):
        return FREE


class PaysByColumn(BaseEstimator):
    def privacy_profile(self, n_samples, n_features=None):
        return PrivacyProfile.pure(0.25 * (n_features or 100))


def test_step_may_say_how_many_columns_it_returns() -> None:
    as_wide = make_pipeline(RowNormClipper(), PaysByColumn())
    assert profile_of(as_wide, 30, 2).epsilon(0) == 0.5
    wider = make_pipeline(Widening(), PaysByColumn())
    assert profile_of(wider, 30, 2).epsilon(0) == 0.25 * 7
    nothing_said = make_pipeline(FunctionTransformer(), PaysByColumn())
    assert profile_of(nothing_said, 30, 2).epsilon(0) == 25.0


@pytest.mark.parametrize("nothing", [None, "drop", "passthrough"])
def test_nothing_is_no_estimator_outside_a_composition(nothing) -> None:
    with pytest.raises(TypeError):
        profile_of(nothing, 30)


# Reports -----------------------------------------------------------------------------------------


def test_report_of_what_is_not_private_names_all_of_it() -> None:
    whole = make_union(make_pipeline(SimpleImputer(), StandardScaler()), PCA()).fit(ROWS)
    with pytest.raises(NoProfileError) as refusal:
        privacy_of(whole)
    assert [each.path for each in refusal.value.refusals] == [
        "pipeline__simpleimputer",
        "pipeline__standardscaler",
        "pca",
    ]


def test_report_of_nested_compositions_is_a_nested_tree() -> None:
    columns = ColumnTransformer([("a", pure(0.25), [0])], remainder=pure(0.125))
    union = FeatureUnion([("c", columns), ("p", "passthrough"), ("d", pure(0.5))])
    pipeline = make_pipeline(Normalizer(), union).fit(ROWS)
    report = privacy_of(pipeline)
    assert report.epsilon == pytest.approx(0.875)
    (part,) = report.parts
    assert [inner.name for inner in part.parts] == ["ColumnTransformer", "DPMinMaxScaler"]
    leaves = [leaf.epsilon for leaf in part.parts[0].parts]
    assert leaves == [0.25, 0.125]


def test_report_says_what_a_function_must_keep_to() -> None:
    # Assumption R4: the stated cost of estimators of other libraries.
    report = privacy_of(make_pipeline(FunctionTransformer(np.abs), pure()).fit(ROWS))
    assert any("FunctionTransformer" in words for words in report.assumptions)
    assert privacy_of(make_pipeline(Normalizer(), pure()).fit(ROWS)).assumptions == ()


def test_transformer_without_columns_costs_nothing() -> None:
    columns = ColumnTransformer([("none", pure(), []), ("one", pure(), [0])]).fit(ROWS)
    assert privacy_of(columns).epsilon == 0.5


# Numbers of columns that follow from public parameters are those of fitted steps -------------


FRAME = pd.DataFrame(
    {"a": [1.0, 2.0], "b": [0.5, np.nan], "c": [3.0, 4.0], "w": ["x", "y"], "v": ["p", "q"]}
)
NUMBERS = FRAME[["a", "c"]]
WORDS = FRAME[["w", "v"]]
LISTS = [["x", "y", "z"], ["p", "q"]]
ONE_HOT = OneHotEncoder(categories=LISTS, handle_unknown="ignore")
IMPUTER = SimpleImputer(strategy="constant", keep_empty_features=True)
DROPPING = OneHotEncoder(categories=LISTS, handle_unknown="ignore", drop="first")
TABLE = TableEncoder({"a": (0, 9), "c": (0, 9)}, n_knots=4)


def columns(*transformers: Any, **settings: Any) -> ColumnTransformer:
    named = [(str(place), *each) for place, each in enumerate(transformers)]
    return ColumnTransformer(named, **settings)


KNOWN = [
    (Normalizer(), NUMBERS),
    (RowNormClipper(), NUMBERS),
    (IMPUTER, NUMBERS),
    (ONE_HOT, WORDS),
    (DROPPING, WORDS),
    (TABLE, NUMBERS),
    (HashingVectorizer(n_features=16), FRAME["w"]),
    *((PolynomialFeatures(degree), NUMBERS) for degree in (0, 1, 2, 5, (2, 3), (0, 2))),
    (
        PolynomialFeatures(3, interaction_only=True),
        FRAME[["a", "c", "a"]].set_axis([*"abc"], axis=1),
    ),
    (PolynomialFeatures((2, 3), include_bias=False), NUMBERS),
    (make_pipeline(Normalizer(), PolynomialFeatures(2), PolynomialFeatures(2)), NUMBERS),
    (make_pipeline("passthrough", Normalizer()), NUMBERS),
    (make_union(Normalizer(), PolynomialFeatures(2)), NUMBERS),
    (FeatureUnion([("n", Normalizer()), ("d", "drop"), ("p", "passthrough")]), NUMBERS),
    (columns((ONE_HOT, ["w", "v"]), (Normalizer(), ["a", "c"])), FRAME),
    (columns((ONE_HOT, [3, 4]), ("passthrough", [0]), ("drop", [1])), FRAME),
    (columns((ONE_HOT, ("w", "v")), (Normalizer(), []), remainder=IMPUTER), FRAME),
    (columns((ONE_HOT, np.array([3, 4])), remainder="passthrough"), FRAME),
    (columns((HashingVectorizer(n_features=8), "w"), ("passthrough", ["a"])), FRAME),
    (columns((Normalizer(), ["a", "c"]), (TABLE, ["a", "c"])), FRAME),
    (columns((Normalizer(), ["a", "c"]), remainder=Normalizer()), NUMBERS),
]


@pytest.mark.parametrize(("step", "X"), KNOWN, ids=range(len(KNOWN)))
def test_width_is_that_of_the_fitted_step(step, X) -> None:
    # Theorem R3: a pipeline costs what its steps cost together.
    width = width_after(step, X.shape[1] if X.ndim == 2 else None)
    assert width == step.fit(X).transform(X).shape[1]


class OtherPolynomials(PolynomialFeatures):
    """May return anything."""


UNKNOWN = [
    FunctionTransformer(np.hstack),
    OneHotEncoder(),
    OneHotEncoder(categories=LISTS, drop="if_binary"),
    SimpleImputer(keep_empty_features=False),
    SimpleImputer(keep_empty_features=True, add_indicator=True),
    OtherPolynomials(2),
    TableEncoder({"a": (9, 0)}),
    make_pipeline(FunctionTransformer(), Normalizer()),
    make_union(Normalizer(), FunctionTransformer()),
    columns((ONE_HOT, make_column_selector()), (Normalizer(), ["a"])),
    columns((Normalizer(), slice(0, 2))),
    columns((Normalizer(), [True, False])),
    columns((Normalizer(), [-1]), remainder="passthrough"),
    columns((Normalizer(), ["a"]), (Normalizer(), [0]), remainder="passthrough"),
    columns((FunctionTransformer(), ["a"])),
    # Refused by their fits.
    PolynomialFeatures("two"),
    PolynomialFeatures((1, 2, 3)),
    HashingVectorizer(n_features="many"),
]


@pytest.mark.parametrize("step", UNKNOWN, ids=range(len(UNKNOWN)))
def test_width_that_may_depend_on_more_is_not_known(step) -> None:
    # Theorem R3: a pipeline costs what its steps cost together.
    assert width_after(step, 2) is None


def test_width_that_nobody_knows_stays_so() -> None:
    for step in (Normalizer(), PolynomialFeatures(2), "passthrough", None, IMPUTER):
        assert width_after(step, None) is None
    assert width_after(columns((Normalizer(), ["a"]), remainder="passthrough"), None) is None
    assert width_after(columns((Normalizer(), ["a", "b"])), None) == 2


def test_model_after_columns_has_a_cost() -> None:
    # Its default bound on rows follows from their number of columns.
    scaled = DPStandardScaler(epsilon=0.5, bounds=(0, 9))
    both = columns((scaled, ["a", "c"]), (ONE_HOT, ["w", "v"]))
    model = DPLogisticRegression(epsilon=1.0, solver="objective")
    total = profile_of(make_pipeline(both, model), 1000, 5)
    assert isinstance(total, PrivacyProfile)
    assert total.epsilon(2e-5) <= 1.5


def test_unknown_word_is_named() -> None:
    with pytest.raises(NoProfileError, match="must be an estimator; got 'bogus'"):
        profile_of(Pipeline([("a", "bogus"), ("b", pure())]), 30)
