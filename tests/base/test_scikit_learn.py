"""Compositions of scikit-learn, and steps that learn nothing."""

from __future__ import annotations

import ast
import re

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline, make_union
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)

from skdptune.accounting import PrivacyProfile
from skdptune.base import NoProfileError, privacy_of, profile_of
from skdptune.preprocessing import DPMinMaxScaler, DPStandardScaler, RowNormClipper

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


# Steps -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "step",
    [
        Binarizer(),
        FeatureHasher(),
        FunctionTransformer(np.abs),
        HashingVectorizer(),
        Normalizer(),
        PolynomialFeatures(2),
        one_hot(),
        one_hot(drop="first"),
        ordinal(),
        imputer(),
        imputer(fill_value=3),
    ],
    ids=str,
)
def test_step_that_learns_nothing_is_free(step) -> None:
    assert profile_of(step, 10) == FREE
    assert profile_of(make_pipeline(step), 10, 3) == FREE


@pytest.mark.parametrize(
    "step",
    [
        CountVectorizer(),
        KBinsDiscretizer(),
        MaxAbsScaler(),
        MinMaxScaler(),
        PCA(),
        RobustScaler(),
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
    # Theorem R3.
    with pytest.raises(NoProfileError, match=f"got {type(step).__name__}"):
        profile_of(step, 10)


def test_encoder_that_drops_known_categories_has_an_answer() -> None:
    encoder = one_hot(categories=[["a", "b"], ["c", "d"]], drop=np.array(["a", "c"], dtype=object))
    try:
        assert profile_of(encoder, 10) == FREE
    except NoProfileError:
        pass


# Compositions ------------------------------------------------------------------------------------


def test_pipeline_costs_the_sum_of_its_steps() -> None:
    # Theorem R3.
    pipeline = make_pipeline(RowNormClipper(), gauss(), Normalizer(), pure())
    wanted = gauss().privacy_profile(30) + pure().privacy_profile(30)
    assert profile_of(pipeline, 30) == wanted


def test_one_private_step_costs_what_it_says_to_the_last_digit() -> None:
    pipeline = make_pipeline(Normalizer(), pure(), Normalizer())
    assert profile_of(pipeline, 30) == pure().privacy_profile(30)


def test_equal_steps_count_each() -> None:
    pipeline = make_pipeline(pure(0.25), pure(0.25), pure(0.25))
    assert profile_of(pipeline, 30).epsilon(0) == pytest.approx(0.75)


def test_nested_compositions_cost_the_sum_of_all_within() -> None:
    inner = make_pipeline(Normalizer(), pure(0.25))
    union = FeatureUnion([("one", inner), ("two", pure(0.5)), ("three", "drop")])
    columns = ColumnTransformer([("union", union, [0, 1])], remainder=pure(1.0))
    parts = [pure(0.25), pure(0.5), pure(1.0), gauss()]
    wanted = sum(part.privacy_profile(30) for part in parts)
    found = profile_of(make_pipeline(columns, gauss()), 30)
    assert found.epsilon(1e-6) == pytest.approx(wanted.epsilon(1e-6), rel=1e-9)


@pytest.mark.parametrize("word", ["passthrough", None])
def test_placeholders_in_a_pipeline_are_free(word) -> None:
    assert profile_of(Pipeline([("a", word), ("b", pure())]), 30).epsilon(0) == 0.5


@pytest.mark.parametrize("word", ["passthrough", "drop"])
def test_placeholders_elsewhere_are_free(word) -> None:
    assert profile_of(FeatureUnion([("a", word), ("b", pure())]), 30).epsilon(0) == 0.5
    columns = ColumnTransformer([("a", word, [0]), ("b", pure(), [1])], remainder=word)
    assert profile_of(columns, 30).epsilon(0) == 0.5


@pytest.mark.parametrize(("remainder", "cost_of"), [("drop", 0.5), ("passthrough", 0.5)])
def test_remainder_by_word_is_free(remainder, cost_of) -> None:
    columns = make_column_transformer((pure(), [0]), remainder=remainder)
    assert profile_of(columns, 30).epsilon(0) == cost_of


def test_remainder_is_paid_for() -> None:
    columns = make_column_transformer((pure(), [0]), remainder=pure(0.25))
    assert profile_of(columns, 30).epsilon(0) == pytest.approx(0.75)


def test_columns_are_not_disjoint_records() -> None:
    """Transformers on different columns see the same records, so they compose."""
    columns = make_column_transformer((pure(), [0]), (pure(), [1]))
    assert profile_of(columns, 30).epsilon(0) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("whole", "step"),
    [
        (Pipeline([("scale", StandardScaler()), ("last", pure())]), "scale"),
        (FeatureUnion([("scale", StandardScaler())]), "scale"),
        (ColumnTransformer([("scale", StandardScaler(), [0])]), "scale"),
        (ColumnTransformer([("n", Normalizer(), [0])], remainder=StandardScaler()), "remainder"),
        (Pipeline([("outer", Pipeline([("inner", StandardScaler())]))]), "inner"),
        (Pipeline([("outer", FeatureUnion([("inner", StandardScaler())]))]), "inner"),
        (Pipeline([("c", ColumnTransformer([("inner", StandardScaler(), [0])]))]), "inner"),
    ],
)
def test_refusal_names_the_step_and_what_to_use(whole, step) -> None:
    with pytest.raises(NoProfileError) as refusal:
        profile_of(whole, 30)
    assert re.search(rf"got StandardScaler \(step '(\w+__)*{step}'\)", str(refusal.value))
    assert "Use skdptune.preprocessing.DPStandardScaler" in str(refusal.value)


def test_refusal_lists_all_that_is_wrong() -> None:
    # Theorem R3.
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    columns = ColumnTransformer(
        [("num", numbers, ["age"]), ("cat", OneHotEncoder(), ["sector"])], remainder=pure()
    )
    mixed = make_pipeline(columns, DPStandardScaler(), LogisticRegression())
    with pytest.raises(NoProfileError) as refusal:
        profile_of(mixed, 30)
    head, *lines = str(refusal.value).splitlines()
    assert head == "estimator must be private or learn nothing; 5 things wrong:"
    assert [line.split(": ")[:2] for line in lines] == [
        ["- columntransformer__num__simpleimputer", "SimpleImputer"],
        ["- columntransformer__num__standardscaler", "StandardScaler"],
        ["- columntransformer__cat", "OneHotEncoder"],
        ["- dpstandardscaler", "a parameter"],
        ["- logisticregression", "LogisticRegression"],
    ]
    # In the words in which the user sets them.
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
    with pytest.raises(ValueError, match=r"2 things wrong:\n- dpstandardscaler: bounds must"):
        profile_of(wrong, 30)
    # One by itself is raised as it is.
    with pytest.raises(ValueError, match="^bounds must be"):
        profile_of(make_pipeline(DPStandardScaler(), pure()), 30)


def test_function_for_columns_is_refused_with_the_others() -> None:
    columns = ColumnTransformer([("some", PCA(), lambda X: [0])])
    with pytest.raises(NoProfileError, match="2 things") as refusal:
        profile_of(columns, 30)
    assert {each.path for each in refusal.value.refusals} == {"some"}


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


def test_unknown_word_is_named() -> None:
    with pytest.raises(NoProfileError, match="must be an estimator; got 'bogus'"):
        profile_of(Pipeline([("a", "bogus"), ("b", pure())]), 30)


@pytest.mark.parametrize("nothing", [None, "drop", "passthrough"])
def test_nothing_is_no_estimator_outside_a_composition(nothing) -> None:
    with pytest.raises(TypeError):
        profile_of(nothing, 30)


def test_refusal_from_within_a_step_keeps_its_words() -> None:
    class Search(Normalizer.__mro__[-2]):
        def privacy_profile(self, n_samples, n_features=None):
            return profile_of(PCA(), n_samples)

    with pytest.raises(NoProfileError, match="got PCA"):
        profile_of(make_pipeline(Search()), 30)


# Reports -----------------------------------------------------------------------------------------


def test_report_of_a_pipeline_is_a_tree_of_what_costs() -> None:
    pipeline = make_pipeline(RowNormClipper(), gauss(), Normalizer(), pure()).fit(ROWS)
    report = privacy_of(pipeline)
    assert report.profile == profile_of(pipeline, 30)
    assert report.name == "Pipeline"
    assert [part.name for part in report.parts] == ["DPStandardScaler", "DPMinMaxScaler"]
    assert [part.delta for part in report.parts] == [1e-6, 0.0]
    assert report.delta == 1e-6
    assert report.epsilon == report.profile.epsilon(1e-6)


def test_report_of_what_is_not_private_names_all_of_it() -> None:
    whole = make_union(make_pipeline(SimpleImputer(), StandardScaler()), PCA()).fit(ROWS)
    with pytest.raises(NoProfileError) as refusal:
        privacy_of(whole)
    assert [each.path for each in refusal.value.refusals] == [
        "pipeline__simpleimputer",
        "pipeline__standardscaler",
        "pca",
    ]


def test_report_at_another_delta() -> None:
    pipeline = make_pipeline(gauss(), pure()).fit(ROWS)
    report = privacy_of(pipeline, delta=1e-4)
    assert report.delta == 1e-4
    assert report.epsilon == profile_of(pipeline, 30).epsilon(1e-4)
    assert report.parts == privacy_of(pipeline).parts


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


def test_report_of_a_free_pipeline_has_no_parts() -> None:
    report = privacy_of(make_pipeline(Normalizer(), RowNormClipper()).fit(ROWS))
    assert (report.epsilon, report.delta, report.parts) == (0.0, 0.0, ())


def test_report_says_what_a_function_must_keep_to() -> None:
    # Assumption R4.
    report = privacy_of(make_pipeline(FunctionTransformer(np.abs), pure()).fit(ROWS))
    assert any("FunctionTransformer" in words for words in report.assumptions)
    assert privacy_of(make_pipeline(Normalizer(), pure()).fit(ROWS)).assumptions == ()


@pytest.mark.parametrize("depth", [0, 2])
def test_report_says_so_at_any_depth(depth) -> None:
    step = FunctionTransformer(np.abs)
    for _ in range(depth):
        step = make_pipeline(step)
    assert any("FunctionTransformer" in words for words in privacy_of(step.fit(ROWS)).assumptions)


def test_what_is_passed_through_assumes_nothing() -> None:
    columns = make_column_transformer((pure(), [0]), remainder="passthrough").fit(ROWS)
    assert privacy_of(columns).assumptions == ()


def test_transformer_without_columns_costs_nothing() -> None:
    columns = ColumnTransformer([("none", pure(), []), ("one", pure(), [0])]).fit(ROWS)
    assert privacy_of(columns).epsilon == 0.5


def test_clone_of_a_fitted_pipeline_has_a_cost_and_no_report() -> None:
    pipeline = make_pipeline(Normalizer(), pure()).fit(ROWS)
    copy = clone(pipeline)
    assert profile_of(copy, 30) == profile_of(pipeline, 30)
    with pytest.raises(ValueError, match="without privacy_"):
        privacy_of(copy)


@pytest.mark.parametrize(
    ("between", "known"),
    [(Normalizer(), 4), (PolynomialFeatures(), 15), (FunctionTransformer(), None)],
)
def test_the_number_of_features_is_passed_on_while_it_is_known(between, known) -> None:
    seen = []

    class Curious(Normalizer.__mro__[-2]):
        def privacy_profile(self, n_samples, n_features=None):
            seen.append(n_features)
            return PrivacyProfile.pure(1.0)

    profile_of(make_pipeline(Normalizer(), between, Curious()), 30, 4)
    assert seen == [known]
