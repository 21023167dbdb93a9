"""The privacy cost of scikit-learn's compositions, and of its steps that learn nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from sklearn.base import OneToOneFeatureMixin
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
from skdptune.base._costs import NoProfileError, cost_of, no_profile, register_profile
from skdptune.base._reports import report_of, report_registry

FREE = PrivacyProfile.pure(0.0)
KEYWORDS = (None, "passthrough", "drop")
_ROW_BY_ROW = "the function of a FunctionTransformer treats each record by itself"
_PUBLIC_CATEGORIES = "the categories that an encoder is given are public"
Step = tuple[str, Any, int | None]
# These fix the number of columns by rules that look at no value.
_STATELESS = (
    Binarizer,
    FeatureHasher,
    FunctionTransformer,
    HashingVectorizer,
    Normalizer,
    PolynomialFeatures,
)


def _is_known_list(encoder: Any) -> bool:
    """Return whether an encoder's output follows from its parameters alone."""
    counts = encoder.min_frequency is not None or encoder.max_categories is not None
    return not isinstance(encoder.categories, str) and not counts


def _is_one_hot_free(encoder: Any) -> bool:
    # Other ways of handling unknown values raise, or count, depending on the data; so does
    # dropping a column by anything but its place.
    drops_by_place = encoder.drop is None or (
        isinstance(encoder.drop, str) and encoder.drop == "first"
    )
    return _is_known_list(encoder) and encoder.handle_unknown == "ignore" and drops_by_place


def _is_ordinal_free(encoder: Any) -> bool:
    return _is_known_list(encoder) and encoder.handle_unknown == "use_encoded_value"


def _is_imputer_free(imputer: Any) -> bool:
    # Without keep_empty_features a column is dropped if no record has a value there, and an
    # indicator's columns depend on which have a gap.
    keeps = imputer.keep_empty_features and not imputer.add_indicator
    return bool(imputer.strategy == "constant" and keeps)


_CONDITIONS: dict[type, Callable[[Any], bool]] = {
    **dict.fromkeys(_STATELESS, lambda step: True),
    OneHotEncoder: _is_one_hot_free,
    OrdinalEncoder: _is_ordinal_free,
    SimpleImputer: _is_imputer_free,
}


def _cost_of_leaf(step: Any, n_samples: int, n_features: int | None) -> PrivacyProfile:
    # Theorem R3.
    # A subclass may learn what its base does not, so only the very class is known.
    condition = _CONDITIONS.get(type(step))
    if condition is None or not condition(step):
        raise no_profile(step)
    return FREE


for _kind in _CONDITIONS:
    register_profile(_kind)(_cost_of_leaf)


def _steps_of_pipeline(pipeline: Any, n_features: int | None) -> list[Step]:
    steps = []
    for name, step in pipeline.steps:
        steps.append((name, step, n_features))
        # How many columns other steps return is not known here.
        if not (_is_keyword(step) or isinstance(step, OneToOneFeatureMixin)):
            n_features = None
    return steps


def _steps_of_union(union: Any, n_features: int | None) -> list[Step]:
    return [(name, step, n_features) for name, step in union.transformer_list]


def _steps_of_columns(transformer: Any, n_features: int | None) -> list[Step]:
    steps = [(name, step, None) for name, step, _ in transformer.transformers]
    return [*steps, ("remainder", transformer.remainder, None)]


@register_profile(Pipeline)
def _pipeline(pipeline: Any, n_samples: int, n_features: int | None) -> PrivacyProfile:
    return _composed(_steps_of_pipeline(pipeline, n_features), n_samples)


@register_profile(FeatureUnion)
def _union(union: Any, n_samples: int, n_features: int | None) -> PrivacyProfile:
    return _composed(_steps_of_union(union, n_features), n_samples)


@register_profile(ColumnTransformer)
def _columns(transformer: Any, n_samples: int, n_features: int | None) -> PrivacyProfile:
    for name, _, columns in transformer.transformers:
        if callable(columns) and not isinstance(columns, make_column_selector):
            raise NoProfileError(
                "columns must be names, places or make_column_selector; got a function",
                ", which may look at the data.",
                (name,),
            )
    return _composed(_steps_of_columns(transformer, n_features), n_samples)


def _is_keyword(step: Any) -> bool:
    return step is None or (isinstance(step, str) and step in KEYWORDS)


def _composed(steps: Iterable[Step], n_samples: int) -> PrivacyProfile:
    """Compose steps that all see the same records, each with its number of columns if known."""
    # Theorem R3.
    total, relations = FREE, set()
    for name, step, n_features in steps:
        if _is_keyword(step):
            continue
        try:
            cost = cost_of(step, n_samples, n_features)
        except NoProfileError as error:
            raise error.within(name) from None
        if cost != FREE:
            relations.add(neighbouring_of(step))
        # Adding a cost of zero could still round.
        total = cost if total == FREE else total if cost == FREE else total + cost
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
    return _report(pipeline, [step for _, step in pipeline.steps], n_samples)


@report_registry.register
def _union_report(union: FeatureUnion, n_samples: int | None) -> PrivacyReport:
    return _report(union, [step for _, step in union.transformer_list], n_samples)


@report_registry.register
def _columns_report(columns: ColumnTransformer, n_samples: int | None) -> PrivacyReport:
    asked = {name: step for name, step, _ in columns.transformers}
    asked["remainder"] = columns.remainder
    # scikit-learn leaves a transformer without columns unfitted, and turns "passthrough" into a
    # transformer of its own.
    steps = [
        step
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


def _report(whole: Any, steps: Iterable[Any], n_samples: int | None) -> PrivacyReport:
    reports = [report_of(step, n_samples) for step in steps if not _is_keyword(step)]
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
