"""Which data a search takes: tables of proper records, and labels of a public set."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.multiclass import check_classification_targets

from skdptune._compat import number_of_samples
from skdptune.base import (
    check_column_types,
    check_target_type,
    declared_labels,
    nested_estimators,
    own_parameters,
    proper_labels,
)

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
    declared = declared_labels(estimator)
    if declared is not None:
        # Records with other labels are improper, each by itself (Theorem R5).
        return declared
    labels = np.asarray(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        return None
    labels = labels[~proper_labels(labels, None)[1]]
    if is_random:
        if _lacks_classes(estimator):
            raise ValueError(
                "classes must be named in the estimator where n_public is given; got None. "
                "Which labels a random part of the data has is secret."
            )
        return None
    check_classification_targets(labels)
    found = np.unique(labels)
    if found.size < 2:
        raise ValueError("y must have at least two classes; got one class.")
    return found.tolist()


def _lacks_classes(estimator: Any) -> bool:
    return any(
        own_parameters(step).get("classes", 0) is None for _, step in nested_estimators(estimator)
    )


def check_form(estimator: Any, X: Any) -> None:
    """Refuse what is no table of records, by its shape and by what the estimator takes."""
    check_not_pairwise(estimator)
    _check_columns(estimator, X)
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


def _check_columns(estimator: Any, X: Any) -> None:
    """Refuse columns of words or dates for an estimator of this package that takes numbers."""
    first = estimator
    while isinstance(first, Pipeline) and first.steps:
        first = first.steps[0][1]
    is_ours = type(first).__module__.startswith("skdptune.")
    if hasattr(X, "iloc") and is_ours and not get_tags(first).input_tags.string:
        check_column_types(X)


def check_not_pairwise(estimator: Any) -> None:
    """Refuse an estimator of a matrix of all pairs, in which each row is about every record.

    Theorem R6: a record may change its own row alone.
    """
    if get_tags(estimator).input_tags.pairwise:
        raise ValueError(
            "estimator must take one row per record; got "
            f"{type(estimator).__name__}, which takes a matrix of all pairs of records (a "
            "precomputed kernel or distance). A record would change the rows of all others."
        )


def check_targets(estimator: Any, y: Any) -> None:
    """Refuse targets that the estimator cannot use, by their form.

    Theorem R5: whatever values they have, a fit would fail, or each of its runs.
    """
    last = estimator
    while isinstance(last, Pipeline) and last.steps:
        last = last.steps[-1][1]
    if not hasattr(last, "fit"):
        return
    wanted = get_tags(last).target_tags
    if y is None:
        if wanted.required:
            raise ValueError(
                f"y must be given: {type(last).__name__} requires y to be passed, but the target "
                "y is None."
            )
        return
    if is_classifier(last):
        check_target_type(y, declared_labels(last), is_classifier=True)
    elif is_regressor(last):
        check_target_type(y, None, is_classifier=False)
    shape = np.shape(y) if hasattr(y, "shape") else np.asarray(y, dtype=object).shape
    takes_several = wanted.multi_output or wanted.two_d_labels
    if len(shape) != 1 and (len(shape) != 2 or (shape[1] != 1 and not takes_several)):
        raise ValueError(
            f"y should be a 1d array: {type(last).__name__} takes one target per record; got an "
            f"array of shape {shape} instead."
        )


def check_domain(X: Any, y: Any) -> None:
    """Refuse what no estimator takes, by its type; what records hold is read one by one."""
    for name, values in (("X", X), ("y", y)):
        if getattr(getattr(values, "dtype", None), "kind", "") == "c":
            raise ValueError(
                f"{name} must be real; got {values.dtype}. Complex data not supported."
            )
