"""How many columns a step of a pipeline returns, where public parameters say it.

**Guarantee.** What is returned is the number of columns that the fitted step returns for any data
with so many columns; None wherever that could depend on more than parameters and that number.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import OneToOneFeatureMixin
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import SparseCoder
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfVectorizer,
)
from sklearn.feature_selection import SelectFromModel
from sklearn.frozen import FrozenEstimator
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.kernel_approximation import PolynomialCountSketch, RBFSampler
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, SplineTransformer
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection

Width = int | None
_SAME = (None, "passthrough")


def width_after(step: Any, n_features: Width) -> Width:
    """Return the number of columns that a step returns, None where it is not known.

    Parameters
    ----------
    step : transformer or str
        A step that learns nothing but what it says in its ``n_features_out``, one that keeps all
        columns, or a composition.
    n_features : int or None
        Number of columns that it is given, if known.

    Notes
    -----
    Theorem R3.
    """
    if step is None or isinstance(step, str):
        return n_features if step in _SAME else 0 if step == "drop" else None
    try:
        # A subclass may return what its base does not, so only the very class is known.
        rule = _RULES.get(type(step))
        if rule is not None:
            return rule(step, n_features)
        if isinstance(step, OneToOneFeatureMixin):
            return n_features
        return getattr(step, "n_features_out", None)
    except (TypeError, ValueError):
        # Bad parameters are reported with the step's cost, or by its fit.
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
    # Products of so many columns, of different ones or of any.
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
    # Of others nobody knows that there are as many names as columns.
    if not type(frozen.estimator).__module__.startswith("sklearn."):
        return None
    try:
        return len(frozen.estimator.get_feature_names_out())
    except Exception:
        # What it holds may have no names, or want those of columns.
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
    # Names and places may mean the same column.
    is_mixed = len({isinstance(place, str) for place in known}) > 1
    if n_features is None or None in chosen or is_mixed:
        return None
    left = n_features - len(set(known))
    return width_after(remainder, left) if left > 0 else 0


def _chosen(places: Any) -> list[Any] | None:
    """Return the names or places of columns, None where they are not listed one by one."""
    if isinstance(places, np.ndarray):
        places = places.tolist()
    if isinstance(places, str) or _is_place(places):
        places = [places]
    if not isinstance(places, list | tuple):
        return None
    is_listed = all(isinstance(place, str) or _is_place(place) for place in places)
    return list(places) if is_listed else None


def _is_place(place: Any) -> bool:
    # A negative place is another one's, and True is a mask.
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
