"""Data that a search accepts: tables of proper records, and labels of a public set."""

from __future__ import annotations

from typing import Any

from sklearn.base import is_classifier, is_regressor
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from skdptune._compat import number_of_samples
from skdptune.base._shared import (
    check_rows_form,
    check_target_shape,
    check_target_type,
    declared_labels,
    first_step,
    labels_in,
    nested_estimators,
    own_parameters,
    target_array,
)

# Assumptions that reports state, according to Assumption P0.
PUBLIC_VALIDATION = "the validation data are public"
PUBLIC_RULE = "the rule that holds records out for validation, and its expected share, are public"


def is_search(estimator: Any) -> bool:
    """Return whether an estimator is a private search of this package."""
    return getattr(type(estimator), "_is_private_search", False)


def public_labels(estimator: Any, y: Any, n_samples: int, *, is_random: bool) -> Any:
    """Return the label set of a classifier's targets, which is assumed to be public.

    Parameters
    ----------
    estimator : estimator
    y : array-like
        Targets.
    n_samples : int
        Number of records of X.
    is_random : bool
        Whether the data are a random part of other data, so that their labels are secret.
    """
    if y is None or not is_classifier(estimator):
        return None
    if number_of_samples(y) != n_samples:
        raise ValueError("y must be as long as X.")
    declared = declared_labels(estimator)
    if declared is not None:
        # Records with other labels are improper, each independently of the others (Theorem R5).
        return declared
    labels = target_array(y, None)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        return None
    if is_random:
        if _lacks_classes(estimator):
            raise ValueError(
                "classes must be declared in the estimator if n_public is given; got None. The "
                "labels in a random part of the data are secret."
            )
        return None
    found = labels_in(labels)
    if found.size < 2:
        raise ValueError("y must have at least two classes; got one class.")
    return found.tolist()


def _lacks_classes(estimator: Any) -> bool:
    return any(
        own_parameters(step).get("classes", 0) is None for _, step in nested_estimators(estimator)
    )


def check_form(estimator: Any, X: Any) -> None:
    """Refuse data that are not a table of records, by their shape and the estimator's input."""
    check_not_pairwise(estimator)
    takes = get_tags(first_step(estimator) or estimator)
    if takes.input_tags.two_d_array and not takes.no_validation:
        check_rows_form(X, accept_sparse=True, allow_nd=takes.input_tags.three_d_array)


def check_not_pairwise(estimator: Any) -> None:
    """Refuse an estimator of a matrix of all pairs, in which each row depends on every record.

    Theorem R6: a record may change only its own row.
    """
    if get_tags(estimator).input_tags.pairwise:
        raise ValueError(
            f"estimator must take one row per record; got {type(estimator).__name__}, which "
            "takes a matrix of all pairs of records (a precomputed kernel or distance). There, "
            "a record changes the rows of all others."
        )


def check_targets(estimator: Any, y: Any) -> None:
    """Refuse targets that the estimator cannot use, by their form.

    Theorem R5: whatever their values, a fit would fail, or each of its runs would.
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
    shape = tuple(y.shape) if hasattr(y, "shape") else target_array(y, None).shape
    check_target_shape(shape, None if wanted.multi_output or wanted.two_d_labels else 1)
