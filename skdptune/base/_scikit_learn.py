"""The privacy cost of scikit-learn's compositions, and of its steps that learn nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
)

from skdptune.accounting import PrivacyProfile, PrivacyReport
from skdptune.base._assumptions import (
    assumption_registry,
    assumptions_of,
    neighbouring_of,
    once,
    weakest,
)
from skdptune.base._costs import cost_of, register_cost
from skdptune.base._refusals import NoProfileError, Refusal, no_profile, together
from skdptune.base._reports import report_of, report_registry
from skdptune.base._widths import width_after

FREE = PrivacyProfile.pure(0.0)
KEYWORDS = (None, "passthrough", "drop")
_ROW_BY_ROW = "the function of a FunctionTransformer treats each record by itself"
_PUBLIC_CATEGORIES = "the categories that an encoder is given are public"
_BY_FUNCTION = Refusal(
    "a function",
    "it may look at the data",
    "Use names, places or make_column_selector.",
    demand="columns must be names, places or make_column_selector",
)
Step = tuple[str, Any, int | None]
Settings = list[tuple[str, str]]
# These fix the number of columns by rules that look at no value.
_STATELESS = (
    Binarizer,
    FeatureHasher,
    FunctionTransformer,
    HashingVectorizer,
    Normalizer,
    PolynomialFeatures,
)


def _wrong_list(encoder: Any) -> Settings:
    """Return what must be set so that an encoder's columns follow from its parameters alone."""
    wrong = [("categories", "[[...], ...]")] if isinstance(encoder.categories, str) else []
    for name in ("min_frequency", "max_categories"):
        if getattr(encoder, name) is not None:
            wrong.append((name, "None"))
    return wrong


def _wrong_one_hot(encoder: Any) -> Settings:
    # Other ways of handling unknown values raise, or count, depending on the data; so does
    # dropping a column by anything but its place.
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
    # Without keep_empty_features a column is dropped if no record has a value there, and an
    # indicator's columns depend on which have a gap.
    wrong = [("strategy", "'constant'")] if imputer.strategy != "constant" else []
    if not imputer.keep_empty_features:
        wrong.append(("keep_empty_features", "True"))
    return [*wrong, ("add_indicator", "False")] if imputer.add_indicator else wrong


# What must be set for a step to learn nothing; nothing where it does not.
_CONDITIONS: dict[type, Callable[[Any], Settings]] = {
    **dict.fromkeys(_STATELESS, lambda step: []),
    OneHotEncoder: _wrong_one_hot,
    OrdinalEncoder: _wrong_ordinal,
    SimpleImputer: _wrong_imputer,
}


def _cost_of_leaf(step: Any, n_samples: int, n_features: int | None) -> PrivacyProfile:
    # Theorem R3.
    # A subclass may learn what its base does not, so only the very class is known.
    condition = _CONDITIONS.get(type(step))
    if condition is None:
        raise no_profile(step)
    wrong = condition(step)
    if wrong:
        raise no_profile(step, wrong)
    return FREE


for _kind in _CONDITIONS:
    register_cost(_kind)(_cost_of_leaf)


def _steps_of_pipeline(pipeline: Any, n_features: int | None) -> list[Step]:
    steps = []
    for name, step in pipeline.steps:
        steps.append((name, step, n_features))
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
    """Compose steps that all see the same records, each with its number of columns if known.

    What is wrong with any of them, beside what was `found`, is raised together.
    """
    # Theorem R3.
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
        # Adding a cost of zero could still round.
        total = cost if total == FREE else total if cost == FREE else total + cost
    if wrong:
        raise together(wrong) from None
    # Theorem F11.
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
    # Assumption R4.
    return (_ROW_BY_ROW,)


@assumption_registry.register(OneHotEncoder)
@assumption_registry.register(OrdinalEncoder)
def _assumed_by_encoder(encoder: Any, n_samples: int, n_features: int | None) -> tuple[str, ...]:
    return (_PUBLIC_CATEGORIES,)


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
    # scikit-learn leaves a transformer without columns unfitted, and turns "passthrough" into a
    # transformer of its own.
    steps = [
        (name, step)
        for name, step, chosen in columns.transformers_
        if len(chosen) > 0 and not _is_keyword(asked.get(name))
    ]
    return _report(columns, steps, n_samples)


@report_registry.register(FunctionTransformer)
@report_registry.register(OneHotEncoder)
@report_registry.register(OrdinalEncoder)
def _free_report(step: Any, n_samples: int | None) -> PrivacyReport:
    profile, assumed = cost_of(step, 1, None), assumptions_of(step, 1)
    return PrivacyReport(profile, 0.0, name=type(step).__name__, assumptions=assumed)


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
        # Theorem F11.
        neighbouring=weakest(part.neighbouring for part in parts),
    )


def _reports(steps: Iterable[tuple[str, Any]], n_samples: int | None) -> list[PrivacyReport]:
    """Return the steps' reports, or raise all that is wrong with any of them."""
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
