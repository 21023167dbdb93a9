"""Which data a search takes: tables of proper records, and labels of a public set."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import is_classifier
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.utils import assert_all_finite, get_tags
from sklearn.utils.multiclass import check_classification_targets

from skdptune._compat import number_of_samples, safe_indexing
from skdptune.base import declared_labels, nested_estimators, own_parameters

# An assumption that reports state, by Assumption P0.
PUBLIC_VALIDATION = "the validation data are public"


def is_search(estimator: Any) -> bool:
    """Return whether an estimator is a private search of this package."""
    return getattr(type(estimator), "_is_private_search", False)


def public_labels(estimator: Any, y: Any, n_samples: int, *, is_random: bool) -> Any:
    """Return the label set of a classifier's targets, which is taken to be public.

    Parameters
    ----------
    estimator : estimator
    y : array-like
        Targets.
    n_samples : int
        Number of records of X.
    is_random : bool
        Whether the data are a random part of others, so that its labels are secret.
    """
    if y is None or not is_classifier(estimator):
        return None
    if number_of_samples(y) != n_samples:
        raise ValueError("y must be as long as X.")
    check_classification_targets(y)
    labels = np.asarray(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        return None
    if labels.dtype.kind == "f":
        assert_all_finite(labels, input_name="y")
    declared = declared_labels(estimator)
    if declared is not None:
        if not np.isin(labels, np.asarray(declared)).all():
            raise ValueError("y must hold only labels named in classes; got others.")
        return declared
    if is_random:
        if _lacks_classes(estimator):
            raise ValueError(
                "classes must be named in the estimator where n_public is given; got None. "
                "Which labels a random part of the data has is secret."
            )
        return None
    found = np.unique(labels)
    if found.size < 2:
        raise ValueError("y must have at least two classes; got one class.")
    return found.tolist()


def _lacks_classes(estimator: Any) -> bool:
    return any(
        own_parameters(step).get("classes", 0) is None for _, step in nested_estimators(estimator)
    )


def check_form(estimator: Any, X: Any) -> None:
    """Refuse what is no table, by its shape."""
    shape: tuple[int, ...] = getattr(X, "shape", ())
    if len(shape) == 1 and get_tags(estimator).input_tags.two_d_array:
        raise ValueError(
            f"X must be two-dimensional; got shape {shape}. Reshape your data with "
            "X.reshape(-1, 1) if it has a single column, X.reshape(1, -1) if a single record."
        )
    if len(shape) == 2 and shape[1] == 0:
        raise ValueError(
            f"X must have columns; got 0 feature(s) (shape={shape}) while a minimum of 1 is "
            "required."
        )


def check_domain(estimator: Any, X: Any, y: Any, name: str) -> None:
    """Refuse tables that hold no records at all: what is not finite where numbers must be.

    The guarantee is about tables of proper records.
    """
    if getattr(getattr(X, "dtype", None), "kind", "") == "c":
        raise ValueError(f"X must be real; got {X.dtype}. Complex data not supported.")
    _check_numbers(estimator, X, name)
    targets = np.asarray(y)
    if targets.dtype.kind == "f":
        assert_all_finite(targets, input_name="y")


def _check_numbers(estimator: Any, X: Any, name: str) -> None:
    """Raise where numbers are not finite that an estimator hands to what needs them so."""
    if is_search(estimator):
        return _check_numbers(estimator.estimator, X, name)
    if isinstance(estimator, Pipeline):
        steps = [step for _, step in estimator.steps if hasattr(step, "get_params")]
        return _check_numbers(steps[0], X, name) if steps else None
    if isinstance(estimator, ColumnTransformer) and hasattr(X, "iloc"):
        for _, step, columns in estimator.transformers:
            chosen = columns(X) if callable(columns) else columns
            if hasattr(step, "get_params"):
                part = safe_indexing(X, chosen, axis=1)
                _check_numbers(step, part.to_frame() if part.ndim == 1 else part, name)
        return None
    numbers = _numbers_of(X)
    numeric = sparse.issparse(numbers) or (
        isinstance(numbers, np.ndarray) and numbers.dtype.kind in "fiub"
    )
    if numeric and not get_tags(estimator).input_tags.allow_nan:
        assert_all_finite(numbers, estimator_name=name, input_name="X")
    return None


def _numbers_of(X: Any) -> Any:
    """Return the numbers in a table; words are the estimator's affair."""
    if hasattr(X, "select_dtypes"):
        columns = X.select_dtypes("number", exclude=["timedelta", "complex"])
        return columns.to_numpy(dtype=np.float64, na_value=np.nan)
    if isinstance(X, list | tuple) or getattr(getattr(X, "dtype", None), "kind", "") == "O":
        try:
            return np.asarray(X, dtype=np.float64)
        except (TypeError, ValueError):
            return X
    return X
