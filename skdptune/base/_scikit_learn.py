"""Costs, numbers of columns and reports of scikit-learn's compositions and stateless steps."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import OneToOneFeatureMixin
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_selector
from sklearn.decomposition import SparseCoder
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
from skdptune.base._parameters import AROUND, is_fitted, model_inside
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


def _after_components(step: Any, n_features: Width) -> Width:
    return None if isinstance(step.n_components, str) else int(step.n_components)


def _after_splines(splines: SplineTransformer, n_features: Width) -> Width:
    if n_features is None or isinstance(splines.knots, str):
        return None
    n_knots = len(splines.knots)
    each = n_knots - 1 if splines.extrapolation == "periodic" else n_knots + splines.degree - 1
    return n_features * (each - (0 if splines.include_bias else 1))


def _after_words(vectorizer: Any, n_features: Width) -> Width:
    return None if vectorizer.vocabulary is None else len(vectorizer.vocabulary)


def _after_frozen(frozen: FrozenEstimator, n_features: Width) -> Width:
    # Estimators of other libraries may have fewer or more names than columns.
    if not type(frozen.estimator).__module__.startswith("sklearn."):
        return None
    try:
        return len(frozen.estimator.get_feature_names_out())
    except Exception:
        # The frozen estimator may have no names, or require the names of its input columns.
        return None


def _after_pipeline(pipeline: Pipeline, n_features: Width) -> Width:
    for _, step in pipeline.steps:
        n_features = width_after(step, n_features)
    return n_features


def _after_columns(columns: ColumnTransformer, n_features: Width) -> Width:
    chosen = [_chosen(places) for _, _, places in columns.transformers]
    steps = [step for _, step, _ in columns.transformers]
    sizes: list[Width] = [None if places is None else len(places) for places in chosen]
    if not (isinstance(columns.remainder, str) and columns.remainder == "drop"):
        known = [place for places in chosen for place in places or ()]
        # A name and a position may denote the same column.
        is_mixed = len({isinstance(place, str) for place in known}) > 1
        is_unknown = n_features is None or None in chosen or is_mixed
        steps.append(columns.remainder)
        sizes.append(None if is_unknown else max((n_features or 0) - len(set(known)), 0))
    # A transformer without columns is left out.
    return _added(
        None if size is None else width_after(step, size) if size else 0
        for step, size in zip(steps, sizes, strict=True)
    )


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
    SelectFromModel: lambda step, n_features: None,
    GaussianRandomProjection: _after_components,
    SparseRandomProjection: _after_components,
    RBFSampler: _after_components,
    PolynomialCountSketch: _after_components,
    MissingIndicator: lambda step, n_features: n_features if step.features == "all" else None,
    SparseCoder: lambda step, n_features: len(step.dictionary) * (2 if step.split_sign else 1),
    SplineTransformer: _after_splines,
    FeatureHasher: lambda step, n_features: int(step.n_features),
    FeatureUnion: lambda union, n_features: _added(
        width_after(step, n_features) for _, step in union.transformer_list
    ),
    HashingVectorizer: lambda step, n_features: int(step.n_features),
    OneHotEncoder: _after_one_hot,
    Pipeline: _after_pipeline,
    PolynomialFeatures: _after_polynomials,
    SimpleImputer: lambda step, n_features: (
        n_features if step.keep_empty_features and not step.add_indicator else None
    ),
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


def _wrong_splines(splines: Any) -> Settings:
    # Named knots are quantiles or extreme values; "error" raises for values beyond them.
    wrong = [("knots", "[[...], ...]")] if isinstance(splines.knots, str) else []
    return [*wrong, ("extrapolation", "'constant'")] if splines.extrapolation == "error" else wrong


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


# For each step that can be stateless: which settings are missing for that, if any.
_CONDITIONS: dict[type, Callable[[Any], Settings]] = {
    **dict.fromkeys(_STATELESS, lambda step: []),
    OneHotEncoder: _wrong_one_hot,
    OrdinalEncoder: _wrong_ordinal,
    SimpleImputer: _wrong_imputer,
    MissingIndicator: lambda step: [("features", "'all'")] if step.features != "all" else [],
    GaussianRandomProjection: _wrong_projection,
    SparseRandomProjection: _wrong_projection,
    # "scale" is a variance; the weights drawn depend only on the number of columns.
    RBFSampler: lambda step: [("gamma", "1.0")] if isinstance(step.gamma, str) else [],
    SplineTransformer: _wrong_splines,
    CountVectorizer: _wrong_words,
    TfidfVectorizer: _wrong_words,
    TfidfTransformer: _wrong_frequencies,
    SelectFromModel: _wrong_selector,
    FrozenEstimator: lambda frozen: (
        [] if is_fitted(frozen) else [("estimator", "one that was fitted to public data")]
    ),
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


def _steps_of(whole: Any, n_features: int | None) -> list[Step]:
    """Return the steps of a composition with their names and numbers of columns, if known."""
    found: list[Step]
    if isinstance(whole, Pipeline):
        found, is_by_persons = [], getattr(whole, "_person_column", None) is not None
        for name, step in whole.steps:
            found.append((name, by_persons(step) if is_by_persons else step, n_features))
            n_features = width_after(step, n_features)
    elif isinstance(whole, FeatureUnion):
        found = [(name, step, n_features) for name, step in whole.transformer_list]
    else:
        found = [(name, step, None) for name, step, _ in whole.transformers]
        found.append(("remainder", whole.remainder, None))
    return [each for each in found if not _is_keyword(each[1])]


def _is_keyword(step: Any) -> bool:
    return step is None or (isinstance(step, str) and step in KEYWORDS)


@register_cost(Pipeline)
@register_cost(FeatureUnion)
@register_cost(ColumnTransformer)
def _composed(whole: Any, n_samples: int, n_features: int | None) -> PrivacyProfile:
    """Compose the costs of steps that all see the same records, or raise all that is wrong."""
    # Theorem R3: a pipeline costs as much as its steps together.
    total, relations = FREE, set()
    wrong: list[tuple[str, Exception]] = [
        (name, NoProfileError(_BY_FUNCTION))
        for name, _, columns in getattr(whole, "transformers", ())
        if callable(columns) and not isinstance(columns, make_column_selector)
    ]
    for name, step, width in _steps_of(whole, n_features):
        try:
            cost = cost_of(step, n_samples, width)
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


@assumption_registry.register(Pipeline)
@assumption_registry.register(FeatureUnion)
@assumption_registry.register(ColumnTransformer)
def _assumed_by_steps(whole: Any, n_samples: int, n_features: int | None) -> tuple[str, ...]:
    return once(
        sentence
        for _, step, width in _steps_of(whole, n_features)
        for sentence in assumptions_of(step, n_samples, width)
    )


# Assumption R4: what we assume of a user's function, list, vocabulary or frozen estimator.
_ASSUMED: dict[type, str] = {
    FunctionTransformer: _ROW_BY_ROW,
    OneHotEncoder: _PUBLIC_CATEGORIES,
    OrdinalEncoder: _PUBLIC_CATEGORIES,
    CountVectorizer: _PUBLIC_WORDS,
    TfidfVectorizer: _PUBLIC_WORDS,
    FrozenEstimator: _FROZEN,
    SelectFromModel: _FROZEN,
}


def _assuming(words: str) -> Callable[..., tuple[str, ...]]:
    # Assumption R4: the stated cost of estimators of other libraries.
    return lambda step, n_samples, n_features: (words,)


for _kind, _words in _ASSUMED.items():
    assumption_registry.register(_kind, _assuming(_words))


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


def _fitted_steps(whole: Any) -> list[tuple[str, Any]]:
    """Return the fitted steps of a composition with their names."""
    if isinstance(whole, ColumnTransformer):
        asked = {name for name, _, _ in _steps_of(whole, None)}
        # scikit-learn leaves a transformer without columns unfitted, and replaces "passthrough"
        # by a transformer.
        return [
            (name, step)
            for name, step, chosen in whole.transformers_
            if len(chosen) > 0 and name in asked
        ]
    found = whole.steps if isinstance(whole, Pipeline) else whole.transformer_list
    return [(name, step) for name, step in found if not _is_keyword(step)]


@report_registry.register(Pipeline)
@report_registry.register(FeatureUnion)
@report_registry.register(ColumnTransformer)
def _report_of_steps(whole: Any, n_samples: int | None) -> PrivacyReport:
    reports: list[PrivacyReport] = []
    wrong: list[tuple[str, Exception]] = []
    for name, step in _fitted_steps(whole):
        try:
            reports.append(report_of(step, n_samples))
        except NoProfileError as error:
            wrong.append((name, error))
    if wrong:
        raise together(wrong) from None
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
