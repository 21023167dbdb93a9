"""Seeded fits to neighbouring data sets, and all that comes of them."""

from __future__ import annotations

import contextlib
import copy
import random
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import clone

from skdptune._compat import safe_indexing
from skdptune.base import (
    expected_refits,
    nested_estimators,
    own_parameters,
    set_seeds,
    table_shape,
)
from skdptune.testing._replay._published import Leaves, Whole, published
from skdptune.testing._replay._result import FIT

_WARNINGS = "warnings"
_RETURNED = "returns"
# Rows of the data at whose predictions are looked, beside the record itself.
_PROBES = 15


class Data(NamedTuple):
    """Records, and their targets or None."""

    X: Any
    y: Any


@dataclass(frozen=True)
class Neighbours:
    """Data sets that differ in one record.

    Attributes
    ----------
    without, added, replaced : Data
        The given data; one record more; in place of that one a copy of another.
    constant : Data
        As many records as `added`, all with the same row.
    rows : array-like
        Some rows to predict.
    n_samples, n_features : int
        Size of `without`.
    """

    without: Data
    added: Data
    replaced: Data
    constant: Data
    rows: Any
    n_samples: int
    n_features: int


def neighbours(X: Any, y: Any, record: Any) -> Neighbours:
    """Return the data sets to compare.

    Parameters
    ----------
    X, y : array-like
        Targets may be None.
    record : array-like, or pair of a row and a target
        The pair where `y` is given.
    """
    n_samples, n_features = _sizes(X)
    row, target = record, None
    if y is not None:
        if not isinstance(record, tuple) or len(record) != 2:
            raise ValueError(
                "record must be a pair (row, target), since y is given; got another kind."
            )
        row, target = record
    if not sparse.issparse(X) and np.shape(row) != tuple(table_shape(X)[1:]):
        raise ValueError(
            f"record must have the shape of a row of X, {tuple(table_shape(X)[1:])}; got shape "
            f"{np.shape(row)}."
        )
    rows = _with_row(X, row)
    targets = None if y is None else _with_row(y, target)
    other = _unlike_last(targets) if y is not None else 0
    first = list(range(n_samples))
    whole = Data(rows, targets)
    return Neighbours(
        _taken(whole, first),
        whole,
        _taken(whole, [*first, other]),
        Data(_take(rows, [other] * (n_samples + 1)), targets),
        _take(rows, [*first[:_PROBES], n_samples]),
        n_samples,
        n_features,
    )


@expected_refits()
def fit(estimator: Any, data: Data, rows: Any, seed: np.random.SeedSequence) -> Leaves:
    """Return all that a copy of an estimator publishes after a seeded fit.

    A fit that fails publishes the type of its error. Messages are compared, and never shown.
    """
    made = clone(estimator)
    set_seeds(made, seed)
    # A fit may change what it is given.
    arguments = copy.deepcopy((data.X,) if data.y is None else (data.X, data.y))
    with global_generators(seed), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            fitted = made.fit(*arguments)
        except Exception as problem:
            return {FIT: Whole(type(problem).__qualname__)}
        told = sorted((each.category.__name__, str(each.message)) for each in caught)
        leaves = published(fitted, rows)
    return {FIT: Whole(_RETURNED), _WARNINGS: Whole(told), **leaves}


def has_returned(leaves: Leaves) -> bool:
    """Return whether a fit raised nothing."""
    return leaves[FIT] == Whole(_RETURNED)


def error_of(leaves: Leaves) -> str:
    """Return the type of the error with which a fit ended."""
    end = leaves[FIT]
    return str(end.value) if isinstance(end, Whole) else ""


def with_public_size(estimator: Any, size: int) -> Any:
    """Return a copy with ``n_public`` wherever it is a parameter and has no value yet."""
    made = clone(estimator)
    for prefix, part in list(nested_estimators(made)):
        if own_parameters(part).get("n_public", 0) is None:
            made.set_params(**{f"{prefix}n_public": size})
    return made


@contextlib.contextmanager
def global_generators(seed: np.random.SeedSequence) -> Iterator[None]:
    """Seed the generators that estimators without ``random_state`` fall back on, for a while."""
    number = int(seed.generate_state(1)[0])
    torch = sys.modules.get("torch")
    before = random.getstate(), np.random.get_state(), torch and torch.get_rng_state()
    random.seed(number)
    np.random.seed(number)
    if torch is not None:
        torch.manual_seed(number)
    try:
        yield
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])
        if torch is not None:
            torch.set_rng_state(before[2])


def _sizes(X: Any) -> tuple[int, int]:
    shape = table_shape(X)
    if len(shape) < 2 or shape[0] < 2:
        raise ValueError(
            f"X must be a table of at least two records; got shape {tuple(shape)}. Some hundred "
            "are enough."
        )
    return int(shape[0]), int(shape[1])


def _unlike_last(targets: Any) -> int:
    """Return the place of a record with another target than the last one, 0 if there is none."""
    values = targets.tolist() if hasattr(targets, "tolist") else list(targets)
    return next((place for place, value in enumerate(values) if value != values[-1]), 0)


def _taken(data: Data, places: list[int]) -> Data:
    return Data(_take(data.X, places), None if data.y is None else _take(data.y, places))


def _take(rows: Any, places: list[int]) -> Any:
    taken = safe_indexing(rows, np.asarray(places))
    return taken.reset_index(drop=True) if hasattr(taken, "iloc") else taken


def _with_row(rows: Any, row: Any) -> Any:
    """Return a table, or a column, with one entry more, in its own form."""
    if hasattr(rows, "columns"):
        longer = _take(rows, [*range(len(rows)), 0])
        entries = zip(rows.columns, list(row), strict=True)
        for name, entry in entries:
            longer[name] = _with_row(rows[name], entry)
        return longer
    if hasattr(rows, "iloc"):
        return _longer_column(rows, row)
    if sparse.issparse(rows):
        return sparse.vstack([rows, sparse.csr_matrix(row)]).tocsr()
    if not hasattr(rows, "shape"):
        return [*rows, row]
    array, last = np.asarray(rows), np.asarray(row)[None]
    if (array.dtype.kind in "biuf") != (last.dtype.kind in "biuf"):
        array, last = array.astype(object), last.astype(object)
    elif array.dtype.kind == "f" or (last.astype(array.dtype) == last).all():
        last = last.astype(array.dtype)
    return np.concatenate([array, last])


def _longer_column(column: Any, entry: Any) -> Any:
    """Return a column of pandas with one entry more, in its own type where that can hold it."""
    longer = type(column)([*column, entry], name=column.name)
    try:
        kept = longer.astype(column.dtype)
        return kept if (kept == longer).all() else longer
    except (TypeError, ValueError):
        return longer
