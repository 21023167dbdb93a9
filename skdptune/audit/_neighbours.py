"""Neighbouring data sets from a record that the user gives."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

from skdptune._compat import number_of_features, number_of_samples, safe_indexing
from skdptune._formatting import shown
from skdptune.audit._canaries import Canary, worst_canary
from skdptune.audit._statistics import numbers_of
from skdptune.base import (
    ADD_OR_REMOVE,
    REPLACE,
    assumptions_of,
    neighbouring_of,
    nested_estimators,
    own_parameters,
    profile_of,
)

_PUBLIC_SIZE = "number of records is public"


def canary_for(estimator: Any, X: Any, y: Any, canary: Any) -> Canary:
    """Return the neighbouring data sets of an audit.

    Parameters
    ----------
    estimator : estimator
    X, y : array-like
        The other records, and targets or None.
    canary : "auto", Canary, or a record
        A row where `y` is None, else a pair of a row and a target.
    """
    if isinstance(canary, Canary):
        return canary
    if isinstance(canary, str):
        if canary != "auto":
            raise ValueError(f'canary must be "auto", a Canary or a record; got {shown(canary)}.')
        return worst_canary(estimator, X, y)
    return _with_record(estimator, X, y, *_parts(canary, X, y))


def _parts(record: Any, X: Any, y: Any) -> tuple[Any, Any]:
    row, target = record, None
    if y is not None:
        if not isinstance(record, tuple) or len(record) != 2:
            raise ValueError(
                "canary must be a pair (row, target), since y is given; got "
                f"{type(record).__name__}."
            )
        row, target = record
    try:
        shape = np.shape(row)
    except ValueError:
        shape = ()
    wanted = tuple(X.shape[1:]) if hasattr(X, "shape") else np.shape(X)[1:]
    if shape != wanted:
        raise ValueError(f"canary must have a row of the shape {wanted}; got shape {shape}.")
    return np.asarray(row), target


def _with_record(estimator: Any, X: Any, y: Any, row: Any, target: Any) -> Canary:
    """Return the data with one record more, or with one replaced where the claim is about that."""
    relation, size = neighbouring_of(estimator), number_of_samples(X)
    kept = np.arange(size - 1 if relation == REPLACE else size)
    others = safe_indexing(X, kept)
    targets = None if y is None else safe_indexing(y, kept)
    return Canary(
        _longer(others, row),
        None if y is None else _longer(targets, target),
        X,
        y,
        relation,
        lambda fitted: numbers_of(fitted, row, target),
        _constant(estimator, X, relation),
        "the given record",
    )


def _constant(estimator: Any, X: Any, relation: str) -> int | None:
    """Return the constant that stands for the number of records, if there is one.

    Raises
    ------
    ValueError
        If the claim holds for a public number of records, which one record more changes.
    """
    size, width = number_of_samples(X), number_of_features(X)
    if relation == REPLACE:
        return None
    sized, constants = clone(estimator), []
    for prefix, part in list(nested_estimators(sized)):
        constant = own_parameters(part).get("n_public", 0)
        if constant is None:
            sized.set_params(**{f"{prefix}n_public": size})
        if constant != 0:
            constants.append(constant)
    try:
        if None in constants:
            profile_of(sized, size, width)
        # The constant is public in place of the real number.
        stated = () if constants else assumptions_of(estimator, size, width)
    except (TypeError, ValueError):
        # Some take no constant with their other parameters.
        constants, stated = [], (_PUBLIC_SIZE,)
    if relation != ADD_OR_REMOVE or any(_PUBLIC_SIZE in sentence for sentence in stated):
        raise ValueError(
            "canary must be a Canary of two data sets of one size, since the claim of "
            f"{type(estimator).__name__} holds where the number of records is public; got a "
            'record. "auto" makes one.'
        )
    return size if None in constants else None


def _longer(rows: Any, row: Any) -> Any:
    """Return a table, or a column, with one entry more."""
    if sparse.issparse(rows):
        return sparse.vstack([rows, sparse.csr_matrix(np.asarray(row)[None])]).tocsr()
    if hasattr(rows, "columns"):
        longer = rows.reset_index(drop=True)
        longer.loc[len(longer)] = list(row)
        return longer
    column = np.asarray(rows)
    entry = np.asarray(row)[None]
    kind = np.result_type(column, entry) if column.dtype.kind in "biuf" else column.dtype
    return np.concatenate([column.astype(kind), entry.astype(kind)])
