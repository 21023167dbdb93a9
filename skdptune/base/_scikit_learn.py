"""Costs, numbers of columns and reports of scikit-learn's compositions and stateless steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from sklearn.base import OneToOneFeatureMixin
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_selector
from sklearn.decomposition import SparseCoder
from sklearn.exceptions import NotFittedError
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
from sklearn.kernel_approximation import PolynomialCountSketch, RBFSampler
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    SplineTransformer,
)
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection
from sklearn.utils.validation import check_is_fitted

from skdptune.accounting import PrivacyProfile, PrivacyReport
from skdptune.base._costs import (
    assumption_registry,
    assumptions_of,
    cost_of,
    neighbouring_of,
    once,
    register_cost,
    report_of,
    report_registry,
    weakest,
)
from skdptune.base._parameters import AROUND, model_inside
from skdptune.base._persons import by_persons
from skdptune.base._refusals import NoProfileError, Refusal, no_profile, together

# Numbers of columns --------------------------------------------------------------------------
#
# **Guarantee.** The result is the number of columns that the fitted step returns for any data with
# this number of columns. It is None if the number could depend on anything except parameters and
# the number of input columns.

Width = int | None
_SAME = (None, "passthrough")


def width_after(step: Any, n_features: Width) -> Width:
    """Return the number of columns that a step returns, or None if it is unknown.

    Parameters
    ----------
    step : transformer or str
        A composition, a step that keeps all columns, or a step that learns nothing but what it
        declares in ``n_features_out``.
    n_features : int or None
        Number of input columns, if known.

    Notes
    -----
    Theorem R3.
    """
    if step is None or isinstance(step, str):
        return n_features if step in _SAME else 0 if step == "drop" else None
    try:
        # A subclass may return other columns than its base class, so only exact classes are known.
        rule = _RULES.get(type(step))
        if rule is not None:
            return rule(step, n_features)
        if isinstance(step, OneToOneFeatureMixin):
            return n_features
        return getattr(step, "n_features_out", None)
    except (TypeError, ValueError):
        # Invalid parameters are reported when the step's cost is computed, or by its fit.
        return None


def _after_one_hot(encoder: OneHotEncoder, n_features: Width) -> Width:
    if isinstance(encoder.categories, str) or encoder.drop not in (None, "first"):
        return None
    dropped = 0 if encoder.drop is None else 1
    return sum(len(categories) - dropped for categories in encoder.categories)


def _after_imputer(imputer: SimpleImputer, n_features: Width) -> Width:
    return n_features if imputer.keep_empty_features and not imputer.add_indicator else None


def _after_polynomials(polynomials: PolynomialFeatures, n_features: Width) -> Width:
    degree = polynomials.degree
    least, most = (0, degree) if isinstance(degree, int) else degree
    if n_features is None:
        return None
    # Products of this many columns: of different columns, or with repetitions.
    extra = 0 if polynomials.interaction_only else 1
    products = (
        math.comb(n_features + extra * (size - 1), size) for size in range(max(least, 1), most + 1)
    )
    return int(polynomials.include_bias) + sum(products)


def _after_hashing(hasher: Any, n_features: Width) -> Width:
    return int(hasher.n_features)


def _after_components(step: Any, n_features: Width) -> Width:
    return None if isinstance(step.n_components, str) else int(step.n_components)


def _after_splines(splines: SplineTransformer, n_features: Width) -> Width:
    if n_features is None or isinstance(splines.knots, str):
        return None
    n_knots = len(splines.knots)
    each = n_knots - 1 if splines.extrapolation == "periodic" else n_knots + splines.degree - 1
    return n_features * (each - (0 if splines.include_bias else 1))


def _after_indicator(indicator: MissingIndicator, n_features: Width) -> Width:
    return n_features if indicator.features == "all" else None


def _after_words(vectorizer: Any, n_features: Width) -> Width:
    return None if vectorizer.vocabulary is None else len(vectorizer.vocabulary)


def _after_coder(coder: SparseCoder, n_features: Width) -> Width:
    return len(coder.dictionary) * (2 if coder.split_sign else 1)


def _after_frozen(frozen: FrozenEstimator, n_features: Width) -> Width:
    # Estimators of other libraries may have fewer or more names than columns.
    if not type(frozen.estimator).__module__.startswith("sklearn."):
        return None
    try:
        return len(frozen.estimator.get_feature_names_out())
    except Exception:
        # The frozen estimator may have no names, or require the names of its input columns.
        return None


def _unknown(step: Any, n_features: Width) -> Width:
    return None


def _after_pipeline(pipeline: Pipeline, n_features: Width) -> Width:
    for _, step in pipeline.steps:
        n_features = width_after(step, n_features)
    return n_features


def _after_union(union: FeatureUnion, n_features: Width) -> Width:
    return _added(width_after(step, n_features) for _, step in union.transformer_list)


def _after_columns(columns: ColumnTransformer, n_features: Width) -> Width:
    chosen = [_chosen(places) for _, _, places in columns.transformers]
    widths = [
        None if places is None else width_after(step, len(places)) if places else 0
        for (_, step, _), places in zip(columns.transformers, chosen, strict=True)
    ]
    if not (isinstance(columns.remainder, str) and columns.remainder == "drop"):
        widths.append(_after_remainder(columns.remainder, chosen, n_features))
    return _added(widths)


def _after_remainder(remainder: Any, chosen: list[list[Any] | None], n_features: Width) -> Width:
    known = [place for places in chosen for place in places or ()]
    # A name and a position may denote the same column.
    is_mixed = len({isinstance(place, str) for place in known}) > 1
    if n_features is None or None in chosen or is_mixed:
        return None
    left = n_features - len(set(known))
    return width_after(remainder, left) if left > 0 else 0


def _chosen(places: Any) -> list[Any] | None:
    """Return a list of column names or positions, or None if they are not listed one by one."""
    if isinstance(places, np.ndarray):
        places = places.tolist()
    if isinstance(places, str) or _is_place(places):
        places = [places]
    if not isinstance(places, list | tuple):
        return None
    is_listed = all(isinstance(place, str) or _is_place(place) for place in places)
    return list(places) if is_listed else None


def _is_place(place: Any) -> bool:
    # A negative position may denote a column that is listed otherwise, and True is a mask.
    return isinstance(place, int) and not isinstance(place, bool) and place >= 0


def _added(widths: Any) -> Width:
    total = 0
    for width in widths:
        if width is None:
            return None
        total += width
    return total


_RULES: dict[type, Callable[[Any, Width], Width]] = {
    ColumnTransformer: _after_columns,
    CountVectorizer: _after_words,
    TfidfVectorizer: _after_words,
    FrozenEstimator: _after_frozen,
    SelectFromModel: _unknown,
    GaussianRandomProjection: _after_components,
    SparseRandomProjection: _after_components,
    RBFSampler: _after_components,
    PolynomialCountSketch: _after_components,
    MissingIndicator: _after_indicator,
    SparseCoder: _after_coder,
    SplineTransformer: _after_splines,
    FeatureHasher: _after_hashing,
    FeatureUnion: _after_union,
    HashingVectorizer: _after_hashing,
    OneHotEncoder: _after_one_hot,
    Pipeline: _after_pipeline,
    PolynomialFeatures: _after_polynomials,
    SimpleImputer: _after_imputer,
}


# Costs ---------------------------------------------------------------------------------------

FREE = PrivacyProfile.pure(0.0)
KEYWORDS = (None, "passthrough", "drop")
_ROW_BY_ROW = "the function of a FunctionTransformer treats each record separately"
_PUBLIC_CATEGORIES = "the categories that an encoder is given are public"
_PUBLIC_WORDS = (
    "the vocabulary that a vectorizer is given is public, and its functions treat each text "
    "separately"
)
_FROZEN = (
    "the content of a FrozenEstimator was learnt from public data, or is paid for separately, "
    "and treats each record separately"
)
_NOT_LAST = Refusal(
    "a composition inside a model",
    "a fit could not identify records that no step accepts",
    "Put the model around the last step: make_pipeline(scaler, FixedThresholdClassifier(model)); "
    "and the search around the pipeline.",
    demand="estimator must hold a single model",
)
_BY_FUNCTION = Refusal(
    "a function",
    "it may look at the data",
    "Use names, positions or make_column_selector.",
    demand="columns must be names, positions or make_column_selector",
)
_TARGETS = "the functions of a TransformedTargetRegressor treat each target separately"
COMPOSITIONS = (Pipeline, FeatureUnion, ColumnTransformer)
# Objects that cost only as much as the estimators that they hold.
HOLDERS = (*COMPOSITIONS, *AROUND)
Step = tuple[str, Any, int | None]
Settings = list[tuple[str, str]]
# Their number of columns follows from rules that look at no value. One of them draws hashes
# according to that number.
_STATELESS = (
    Binarizer,
    FeatureHasher,
    FunctionTransformer,
    HashingVectorizer,
    Normalizer,
    PolynomialCountSketch,
    PolynomialFeatures,
    SparseCoder,
)


def _wrong_list(encoder: Any) -> Settings:
    """Return what must be set so that an encoder's columns depend only on its parameters."""
    wrong = [("categories", "[[...], ...]")] if isinstance(encoder.categories, str) else []
    for name in ("min_frequency", "max_categories"):
        if getattr(encoder, name) is not None:
            wrong.append((name, "None"))
    return wrong


def _wrong_one_hot(encoder: Any) -> Settings:
    # Other ways of handling unknown values raise errors or count values, depending on the data.
    # Dropping a column depends on the data too, unless it is chosen by its position.
    wrong = _wrong_list(encoder)
    if encoder.handle_unknown != "ignore":
        wrong.append(("handle_unknown", "'ignore'"))
    drops_by_place = encoder.drop is None or (
        isinstance(encoder.drop, str) and encoder.drop == "first"
    )
    return wrong if drops_by_place else [*wrong, ("drop", "None")]


def _wrong_ordinal(encoder: Any) -> Settings:
    wrong = _wrong_list(encoder)
    if encoder.handle_unknown != "use_encoded_value":
        wrong += [("handle_unknown", "'use_encoded_value'"), ("unknown_value", "-1")]
    return wrong


def _wrong_imputer(imputer: Any) -> Settings:
    # Without keep_empty_features, a column is dropped if it has no values. The columns of an
    # indicator depend on which columns have missing values.
    wrong = [("strategy", "'constant'")] if imputer.strategy != "constant" else []
    if not imputer.keep_empty_features:
        wrong.append(("keep_empty_features", "True"))
    return [*wrong, ("add_indicator", "False")] if imputer.add_indicator else wrong


def _wrong_projection(projection: Any) -> Settings:
    # "auto" depends on the number of records; the matrix only on the number of columns.
    return [("n_components", "100")] if isinstance(projection.n_components, str) else []


def _wrong_sampler(sampler: Any) -> Settings:
    # "scale" is a variance; the weights drawn depend only on the number of columns.
    return [("gamma", "1.0")] if isinstance(sampler.gamma, str) else []


def _wrong_splines(splines: Any) -> Settings:
    # Named knots are quantiles or extreme values; "error" raises for values beyond them.
    wrong = [("knots", "[[...], ...]")] if isinstance(splines.knots, str) else []
    return [*wrong, ("extrapolation", "'constant'")] if splines.extrapolation == "error" else wrong


def _wrong_indicator(indicator: Any) -> Settings:
    return [("features", "'all'")] if indicator.features != "all" else []


def _wrong_words(vectorizer: Any) -> Settings:
    wrong = [("vocabulary", "[...]")] if vectorizer.vocabulary is None else []
    return [*wrong, *_wrong_frequencies(vectorizer)]


def _wrong_frequencies(step: Any) -> Settings:
    return [("use_idf", "False")] if getattr(step, "use_idf", False) else []


def _wrong_selector(selector: Any) -> Settings:
    # Fitting a frozen model reads no data, and the threshold follows from what the model learned.
    wrong = []
    if type(selector.estimator) is not FrozenEstimator or selector.prefit:
        wrong = [("estimator", "FrozenEstimator(...)"), ("prefit", "False")]
    return [*wrong, ("max_features", "None")] if callable(selector.max_features) else wrong


def _wrong_frozen(frozen: Any) -> Settings:
    try:
        check_is_fitted(frozen)
    except NotFittedError:
        return [("estimator", "one that was fitted to public data")]
    return []


# For each step that can be stateless: which settings are missing for that, if any.
_CONDITIONS: dict[type, Callable[[Any], Settings]] = {
    **dict.fromkeys(_STATELESS, lambda step: []),
    OneHotEncoder: _wrong_one_hot,
    OrdinalEncoder: _wrong_ordinal,
    SimpleImputer: _wrong_imputer,
    MissingIndicator: _wrong_indicator,
    GaussianRandomProjection: _wrong_projection,
    SparseRandomProjection: _wrong_projection,
    RBFSampler: _wrong_sampler,
    SplineTransformer: _wrong_splines,
    CountVectorizer: _wrong_words,
    TfidfVectorizer: _wrong_words,
    TfidfTransformer: _wrong_frequencies,
    SelectFromModel: _wrong_selector,
    FrozenEstimator: _wrong_frozen,
}


def _cost_of_leaf(step: Any, n_samples: int, n_features: int | None) -> PrivacyProfile:
    # Theorem R3: only a step of an exact class that is known to learn nothing is free. A subclass
    # may learn what its base class does not.
    condition = _CONDITIONS.get(type(step))
    if condition is None:
        raise no_profile(step)
    wrong = condition(step)
    if wrong:
        raise no_profile(step, wrong)
    return FREE


for _kind in _CONDITIONS:
    register_cost(_kind)(_cost_of_leaf)


@register_cost(FixedThresholdClassifier)
@register_cost(TransformedTargetRegressor)
def _cost_around(whole: Any, n_samples: int, n_features: int | None) -> PrivacyProfile:
    # Theorem R3: targets and predictions are changed one by one.
    name = AROUND.get(type(whole))
    if name is None:
        raise no_profile(whole)
    if isinstance(whole, TransformedTargetRegressor):
        _check_targets_of(whole)
    inner = getattr(whole, name)
    is_search = getattr(type(inner), "_is_private_search", False)
    if isinstance(inner, HOLDERS) or is_search:
        raise NoProfileError(_NOT_LAST)
    try:
        return cost_of(inner, n_samples, n_features)
    except NoProfileError as error:
        raise error.within(name) from None


def _check_targets_of(whole: TransformedTargetRegressor) -> None:
    """Raise if a regressor's transformation of a target depends on other targets."""
    if whole.regressor is None:
        raise no_profile(whole, [("regressor", "a private one")])
    # With these options, it warns if some targets do not survive the round trip.
    names = {"check_inverse": whole, "transformer__check_inverse": whole.transformer}
    wrong = [
        (name, "False") for name, one in names.items() if getattr(one, "check_inverse", False)
    ]
    if wrong:
        raise no_profile(whole, wrong)
    if whole.transformer is not None:
        try:
            _cost_of_leaf(whole.transformer, 1, None)
        except NoProfileError as error:
            raise error.within("transformer") from None


def _steps_of_pipeline(pipeline: Any, n_features: int | None) -> list[Step]:
    steps = []
    is_by_persons = getattr(pipeline, "_person_column", None) is not None
    for name, step in pipeline.steps:
        steps.append((name, by_persons(step) if is_by_persons else step, n_features))
        n_features = width_after(step, n_features)
    return steps


def _steps_of_union(union: Any, n_features: int | None) -> list[Step]:
    return [(name, step, n_features) for name, step in union.transformer_list]


def _steps_of_columns(transformer: Any, n_features: int | None) -> list[Step]:
    steps = [(name, step, None) for name, step, _ in transformer.transformers]
    return [*steps, ("remainder", transformer.remainder, None)]


@register_cost(Pipeline)
def _pipeline(pipeline: Any, n_samples: int, n_features: int | None) -> PrivacyProfile:
    return _composed(_steps_of_pipeline(pipeline, n_features), n_samples)


@register_cost(FeatureUnion)
def _union(union: Any, n_samples: int, n_features: int | None) -> PrivacyProfile:
    return _composed(_steps_of_union(union, n_features), n_samples)


@register_cost(ColumnTransformer)
def _columns(transformer: Any, n_samples: int, n_features: int | None) -> PrivacyProfile:
    chosen = [
        (name, NoProfileError(_BY_FUNCTION))
        for name, _, columns in transformer.transformers
        if callable(columns) and not isinstance(columns, make_column_selector)
    ]
    return _composed(_steps_of_columns(transformer, n_features), n_samples, chosen)


def _is_keyword(step: Any) -> bool:
    return step is None or (isinstance(step, str) and step in KEYWORDS)


def _composed(
    steps: Iterable[Step], n_samples: int, found: Iterable[tuple[str, Exception]] = ()
) -> PrivacyProfile:
    """Compose the costs of steps that all see the same records.

    Each step has its number of columns, if known. All errors of the steps are raised together,
    including those already `found`.
    """
    # Theorem R3: a pipeline costs as much as its steps together.
    total, relations, wrong = FREE, set(), list(found)
    for name, step, n_features in steps:
        if _is_keyword(step):
            continue
        try:
            cost = cost_of(step, n_samples, n_features)
        except (TypeError, ValueError) as error:
            wrong.append((name, error))
            continue
        if cost != FREE:
            relations.add(neighbouring_of(step))
        # Adding a cost of zero could still cause rounding errors.
        total = cost if total == FREE else total if cost == FREE else total + cost
    if wrong:
        raise together(wrong) from None
    # Theorem F11: guarantees about different neighbours are not mixed.
    weakest(relations)
    return total


# Assumptions before a fit ------------------------------------------------------------------


def _assumed(steps: Iterable[Step], n_samples: int) -> tuple[str, ...]:
    return once(
        sentence
        for _, step, n_features in steps
        if not _is_keyword(step)
        for sentence in assumptions_of(step, n_samples, n_features)
    )


@assumption_registry.register
def _assumed_by_pipeline(
    pipeline: Pipeline, n_samples: int, n_features: int | None
) -> tuple[str, ...]:
    return _assumed(_steps_of_pipeline(pipeline, n_features), n_samples)


@assumption_registry.register
def _assumed_by_union(
    union: FeatureUnion, n_samples: int, n_features: int | None
) -> tuple[str, ...]:
    return _assumed(_steps_of_union(union, n_features), n_samples)


@assumption_registry.register
def _assumed_by_columns(
    columns: ColumnTransformer, n_samples: int, n_features: int | None
) -> tuple[str, ...]:
    return _assumed(_steps_of_columns(columns, n_features), n_samples)


@assumption_registry.register
def _assumed_by_function(
    step: FunctionTransformer, n_samples: int, n_features: int | None
) -> tuple[str, ...]:
    # Assumption R4: we assume that the user's function treats records one by one.
    return (_ROW_BY_ROW,)


@assumption_registry.register(OneHotEncoder)
@assumption_registry.register(OrdinalEncoder)
def _assumed_by_encoder(encoder: Any, n_samples: int, n_features: int | None) -> tuple[str, ...]:
    return (_PUBLIC_CATEGORIES,)


@assumption_registry.register(CountVectorizer)
@assumption_registry.register(TfidfVectorizer)
def _assumed_by_vectorizer(
    vectorizer: Any, n_samples: int, n_features: int | None
) -> tuple[str, ...]:
    # Assumption R4: we assume that the vocabulary is public.
    return (_PUBLIC_WORDS,)


@assumption_registry.register(FrozenEstimator)
@assumption_registry.register(SelectFromModel)
def _assumed_by_frozen(step: Any, n_samples: int, n_features: int | None) -> tuple[str, ...]:
    # Assumption R4: we assume that the frozen estimator was fitted to public data.
    return (_FROZEN,)


@assumption_registry.register(FixedThresholdClassifier)
@assumption_registry.register(TransformedTargetRegressor)
def _assumed_around(whole: Any, n_samples: int, n_features: int | None) -> tuple[str, ...]:
    # Assumption R4: we assume that a user's functions treat each target separately.
    own: list[str] = []
    if isinstance(whole, TransformedTargetRegressor):
        is_given = whole.func is not None or whole.transformer is not None
        own = [_TARGETS] if is_given else []
        if whole.transformer is not None:
            own += assumptions_of(whole.transformer, n_samples, 1)
    return once((*own, *assumptions_of(model_inside(whole), n_samples, n_features)))


# Reports after a fit -----------------------------------------------------------------------


@report_registry.register
def _pipeline_report(pipeline: Pipeline, n_samples: int | None) -> PrivacyReport:
    return _report(pipeline, pipeline.steps, n_samples)


@report_registry.register
def _union_report(union: FeatureUnion, n_samples: int | None) -> PrivacyReport:
    return _report(union, union.transformer_list, n_samples)


@report_registry.register
def _columns_report(columns: ColumnTransformer, n_samples: int | None) -> PrivacyReport:
    asked = {name: step for name, step, _ in columns.transformers}
    asked["remainder"] = columns.remainder
    # scikit-learn leaves a transformer without columns unfitted, and replaces "passthrough" by a
    # transformer.
    steps = [
        (name, step)
        for name, step, chosen in columns.transformers_
        if len(chosen) > 0 and not _is_keyword(asked.get(name))
    ]
    return _report(columns, steps, n_samples)


@report_registry.register(CountVectorizer)
@report_registry.register(TfidfVectorizer)
@report_registry.register(FrozenEstimator)
@report_registry.register(SelectFromModel)
@report_registry.register(FunctionTransformer)
@report_registry.register(OneHotEncoder)
@report_registry.register(OrdinalEncoder)
def _free_report(step: Any, n_samples: int | None) -> PrivacyReport:
    profile, assumed = cost_of(step, 1, None), assumptions_of(step, 1)
    return PrivacyReport(profile, 0.0, name=type(step).__name__, assumptions=assumed)


@report_registry.register(FixedThresholdClassifier)
@report_registry.register(TransformedTargetRegressor)
def _report_around(whole: Any, n_samples: int | None) -> PrivacyReport:
    _cost_around(whole, 1, None)
    fitted = getattr(whole, f"{AROUND[type(whole)]}_", None)
    if fitted is None:
        raise ValueError(f"fitted must be fitted; got a {type(whole).__name__} without a fit.")
    inner = report_of(fitted, n_samples)
    own = assumptions_of(whole, n_samples or 1)
    return PrivacyReport(
        inner.profile,
        inner.delta,
        name=type(whole).__name__,
        parts=(inner,) if inner.profile != FREE else (),
        assumptions=tuple(each for each in own if each not in inner.assumptions),
        neighbouring=inner.neighbouring,
        bound=inner.bound,
    )


def _report(whole: Any, steps: Iterable[tuple[str, Any]], n_samples: int | None) -> PrivacyReport:
    reports = _reports(steps, n_samples)
    parts = tuple(part for part in reports if part.profile != FREE)
    free = [part.assumptions for part in reports if part.profile == FREE]
    assumed = dict.fromkeys(sentence for sentences in free for sentence in sentences)
    profile = sum((part.profile for part in parts[1:]), parts[0].profile) if parts else FREE
    return PrivacyReport(
        profile,
        min(sum(part.delta for part in parts), 1.0),
        name=type(whole).__name__,
        parts=parts,
        assumptions=tuple(assumed),
        # Theorem F11: the whole has the weakest relation of its parts.
        neighbouring=weakest(part.neighbouring for part in parts),
    )


def _reports(steps: Iterable[tuple[str, Any]], n_samples: int | None) -> list[PrivacyReport]:
    """Return the reports of all steps, or raise everything that is wrong with any of them."""
    reports, wrong = [], []
    for name, step in steps:
        if _is_keyword(step):
            continue
        try:
            reports.append(report_of(step, n_samples))
        except NoProfileError as error:
            wrong.append((name, error))
    if wrong:
        raise together(wrong) from None
    return reports
