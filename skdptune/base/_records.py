"""Tables and targets in which no record can make a fit fail: an improper one becomes constant.

**Guarantee.** What comes out for one record depends on that record alone. Arguments that are wrong
whatever the records hold (no table, complex numbers, targets of another length) raise, and what
raises follows from shapes, types and names, never from values. So the table of a data set with one
record more is the same table with one row more, and whatever a fit proves about tables of finite
rows holds for all data (Theorem R5).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse
from sklearn.utils.validation import validate_data

from skdptune._compat import number_of_samples, safe_indexing

Table = Any
Mask = NDArray[np.bool_]
_NUMBERS = "fiub"
# Types whose every entry is read by itself; a word among numbers makes NumPy choose one of them.
_READ_ONE_BY_ONE = "OUS"


class Records(NamedTuple):
    """Rows and targets, all finite.

    Attributes
    ----------
    X : ndarray or CSR matrix
        A row that is no list of finite numbers is all zeros.
    y : ndarray or None
        Targets; where one is improper, its row is all zeros, too.
    """

    X: Table
    y: NDArray[Any] | None


def validate_rows(
    estimator: Any,
    X: Any,
    *,
    reset: bool = True,
    dtype: DTypeLike = np.float64,
    accept_sparse: bool = False,
    allow_nd: bool = False,
    min_samples: int = 1,
) -> tuple[Table, Mask]:
    """Return a table of finite rows, and which of its rows were no finite numbers.

    Parameters
    ----------
    estimator : estimator
        Whose ``n_features_in_`` and ``feature_names_in_`` are set (`reset`) or compared.
    X : array-like
    reset : bool, default=True
    dtype : dtype, default=float64
        Of the result; an array of single precision keeps its own where this is double.
    accept_sparse : bool, default=False
        Whether a sparse matrix is taken, and returned in CSR format.
    allow_nd : bool, default=False
        Whether a record may be an array of any shape.
    min_samples : int, default=1
        0 for a random part of the data, whose size is secret.

    Notes
    -----
    Theorem R5.
    """
    _check_form(X, accept_sparse=accept_sparse, allow_nd=allow_nd, min_samples=min_samples)
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    rows, improper = finite_rows(X, dtype)
    return rows, improper


def validate_records(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    labels: Sequence[Any] | None = None,
    is_classifier: bool = False,
    n_outputs: int | None = 1,
    **settings: Any,
) -> Records:
    """Return a table of finite rows with proper targets.

    Parameters
    ----------
    estimator : estimator
    X, y : array-like
    labels : sequence, optional
        The public label set of a classifier. A record with another label is improper.
    is_classifier : bool, default=False
        Whether targets are labels; they then keep their type. Numbers become float64.
    n_outputs : int or None, default=1
        Number of targets of a record; None for any number. One column counts as one number.
    **settings
        See `validate_rows`.

    Notes
    -----
    Theorem R5.
    """
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None."
        )
    targets = _target_array(y, n_outputs)
    rows, improper = validate_rows(estimator, X, **settings)
    if targets.shape[0] != rows.shape[0]:
        raise ValueError(
            f"y must be as long as X; got {targets.shape[0]} targets for {rows.shape[0]} records: "
            "inconsistent numbers of samples."
        )
    targets, both = proper_targets(targets, improper, is_classifier=is_classifier, labels=labels)
    return Records(zeroed(rows, both & ~improper), targets)


def proper_targets(
    y: NDArray[Any],
    improper: Mask,
    *,
    is_classifier: bool,
    labels: Sequence[Any] | None = None,
) -> tuple[NDArray[Any], Mask]:
    """Return proper targets, and which records are improper because of them or before.

    Improper records have the target 0, or the first label of the public set.
    """
    if is_classifier:
        targets, wrong = proper_labels(y, labels)
    else:
        targets, wrong = finite_rows(y, np.float64)
    both = improper | wrong
    if both.any():
        targets = targets.copy()
        targets[both] = _first(targets, wrong, labels) if is_classifier else 0.0
    return targets, both


def proper_labels(y: NDArray[Any], labels: Sequence[Any] | None) -> tuple[NDArray[Any], Mask]:
    """Return labels in the type of the label set, and which are none of it, or missing.

    Without a label set all labels count that are not missing: which there are is then public.
    """
    if labels is not None:
        return _labels_among(y, np.asarray(labels))
    if y.dtype.kind == "f":
        return y, ~np.isfinite(y)
    if y.dtype.kind == "O":
        return y, np.array([_is_missing(label) for label in y], dtype=bool)
    return y, np.zeros(y.shape[0], dtype=bool)


def finite_rows(X: Any, dtype: DTypeLike) -> tuple[Table, Mask]:
    """Return numbers, rows that are not all finite being all zeros, and which rows these are."""
    if sparse.issparse(X):
        return _finite_sparse(X, dtype)
    numbers, unread = _numbers(X)
    wanted = np.dtype(dtype)
    if wanted == np.float64 and numbers.dtype == np.float32:
        wanted = numbers.dtype
    with np.errstate(over="ignore", invalid="ignore"):
        rows = numbers.astype(wanted)
    improper = unread | ~np.isfinite(rows.reshape(rows.shape[0], -1)).all(axis=1)
    rows[improper] = 0
    return rows, improper


def zeroed(rows: Table, chosen: Mask) -> Table:
    """Return a table with the chosen rows all zeros."""
    if not chosen.any():
        return rows
    if sparse.issparse(rows):
        kept = sparse.diags_array(np.where(chosen, 0.0, 1.0).astype(rows.dtype))
        return type(rows)(kept @ rows)
    rows = rows.copy()
    rows[chosen] = 0
    return rows


def by_halves(
    function: Callable[[Any], Any], X: Any, fallback: Callable[[Any], Any]
) -> list[tuple[Any, Any]]:
    """Apply a function to all records, or by halves where it fails.

    Returns
    -------
    list of (part, result)
        In order. The result of a single record on which the function fails is that of `fallback`.
        A function that treats each record by itself gives the same as one record at a time.
    """
    try:
        return [(X, function(X))]
    except Exception:
        size = number_of_samples(X)
    if size <= 1:
        return [(X, fallback(X))]
    halves = np.array_split(np.arange(size), 2)
    return [found for half in halves for found in by_halves(function, _part(X, half), fallback)]


# Reading -----------------------------------------------------------------------------------------


def _check_form(X: Any, *, accept_sparse: bool, allow_nd: bool, min_samples: int) -> None:
    """Refuse what is no table of numbers, by its form alone."""
    kind = getattr(getattr(X, "dtype", None), "kind", "")
    if kind == "c":
        raise ValueError(f"X must be real; got {X.dtype}. Complex data not supported.")
    if kind in tuple("mM"):
        raise TypeError(f"X must hold numbers; got {X.dtype}.")
    if sparse.issparse(X) and not accept_sparse:
        raise TypeError(
            "X must be dense; got a sparse matrix. Sparse data was passed, but dense data is "
            "required: use X.toarray() if it fits into memory."
        )
    shape = _shape_of(X)
    if len(shape) == 1 or (len(shape) > 2 and not allow_nd) or not shape:
        raise ValueError(
            f"X must be two-dimensional; got shape {shape}: Expected 2D array. Reshape your data "
            "with X.reshape(-1, 1) if it has a single column, X.reshape(1, -1) if a single record."
        )
    if shape[0] < min_samples:
        raise ValueError(
            f"X must have records; got {shape[0]} sample(s) (shape={shape}) while a minimum of "
            f"{min_samples} is required."
        )
    if 0 in shape[1:]:
        raise ValueError(
            f"X must have columns; got 0 feature(s) (shape={shape}) while a minimum of 1 is "
            "required."
        )


def _shape_of(X: Any) -> tuple[int, ...]:
    shape = getattr(X, "shape", None)
    if shape is not None:
        return tuple(shape)
    found = np.asarray(X, dtype=object)
    if found.ndim == 1 and any(isinstance(row, list | tuple | np.ndarray) for row in found):
        raise ValueError("X must be a table whose rows are all of one length; got others.")
    return found.shape


def _target_array(y: Any, n_outputs: int | None) -> NDArray[Any]:
    """Return targets as an array, with one dimension where each record has one."""
    if sparse.issparse(y):
        raise TypeError("y must be dense; got a sparse matrix.")
    targets = np.asarray(y) if hasattr(y, "dtype") else _array_of_list(y)
    if targets.dtype.kind == "c":
        raise ValueError(f"y must be real; got {targets.dtype}. Complex data not supported.")
    if targets.ndim == 2 and targets.shape[1] == 1 and n_outputs is not None:
        targets = targets[:, 0]
    if targets.ndim == 0 or (n_outputs == 1 and targets.ndim != 1):
        raise ValueError(
            f"y should be a 1d array: y must have one target per record; got an array of shape "
            f"{targets.shape} instead."
        )
    return targets


def _array_of_list(y: Any) -> NDArray[Any]:
    """Return a list as an array of its entries' own type, of objects if they have several."""
    natural = np.asarray(y)
    is_mixed = natural.dtype.kind in "US" and not all(isinstance(one, str) for one in y)
    return np.asarray(y, dtype=object) if is_mixed else natural


def _numbers(X: Any) -> tuple[NDArray[Any], Mask]:
    """Return a table's numbers, and which records have entries that are none."""
    if hasattr(X, "iloc") or hasattr(X, "__dataframe__"):
        return _numbers_of_frame(X)
    array = np.asarray(X)
    if array.dtype.kind in _NUMBERS:
        return array, np.zeros(array.shape[0], dtype=bool)
    if array.dtype.kind not in _READ_ONE_BY_ONE:
        raise TypeError(f"X must hold numbers; got {array.dtype}.")
    return _numbers_of_objects(array)


def _numbers_of_objects(array: NDArray[Any]) -> tuple[NDArray[Any], Mask]:
    def failed(record: Any) -> None:
        return None

    unread = np.zeros(array.shape[0], dtype=bool)
    parts, start = [], 0
    for part, numbers in by_halves(_as_floats, array, failed):
        if numbers is None:
            unread[start] = True
            numbers = np.zeros(part.shape)
        parts.append(numbers)
        start += len(part)
    return np.concatenate(parts) if parts else np.zeros(array.shape), unread


def _as_floats(array: NDArray[Any]) -> NDArray[np.float64]:
    numbers = (
        np.array([_as_float(entry) for entry in array.ravel()], dtype=np.float64)
        if array.dtype.kind == "O"
        else array.astype(np.float64)
    )
    return numbers.reshape(array.shape)


def _as_float(entry: Any) -> float:
    # Dates and complex numbers lose something on the way to a float, if only a warning.
    if isinstance(entry, complex | np.complexfloating | np.datetime64 | np.timedelta64):
        raise TypeError("no number")
    # What pandas has for a missing value cannot be asked for its truth.
    return float("nan") if entry is None else float(entry)


def _numbers_of_frame(X: Any) -> tuple[NDArray[Any], Mask]:
    """Return the numbers of a table with columns of different types."""
    if not hasattr(X, "iloc"):
        return _numbers(np.asarray(X, dtype=object))
    columns, unread = [], np.zeros(len(X), dtype=bool)
    for place in range(X.shape[1]):
        column = X.iloc[:, place]
        kind = getattr(column.dtype, "kind", "O")
        if kind in tuple("mMc"):
            raise TypeError(
                f"X must hold numbers; column {X.columns[place]!r} has type {column.dtype}."
            )
        if kind in _NUMBERS:
            columns.append(column.to_numpy(dtype=np.float64, na_value=np.nan))
            continue
        numbers, wrong = _numbers_of_objects(column.to_numpy(dtype=object))
        columns.append(numbers)
        unread |= wrong
    is_single = all(getattr(kind, "name", "") == "float32" for kind in X.dtypes)
    table = np.stack(columns, axis=1)
    return table.astype(np.float32) if is_single else table, unread


def _finite_sparse(X: Any, dtype: DTypeLike) -> tuple[Table, Mask]:
    rows = X.tocsr()
    if rows.indices.dtype != np.int32 and max(rows.shape) >= 2**31:
        raise ValueError("X must have fewer than 2^31 rows and columns; got more.")
    wanted = np.dtype(dtype)
    if wanted == np.float64 and rows.dtype == np.float32:
        wanted = rows.dtype
    with np.errstate(over="ignore", invalid="ignore"):
        rows = rows.astype(wanted, copy=True)
    wrong = ~np.isfinite(rows.data)
    places = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    improper = np.zeros(rows.shape[0], dtype=bool)
    improper[places[wrong]] = True
    rows.data[improper[places]] = 0
    return rows, improper


def _labels_among(y: NDArray[Any], labels: NDArray[Any]) -> tuple[NDArray[Any], Mask]:
    """Return each label as the set has it, others as the first one, and which are others."""
    known = np.unique(labels)
    if y.dtype.kind in _NUMBERS and known.dtype.kind in _NUMBERS:
        places = np.minimum(np.searchsorted(known, y), known.size - 1)
    else:
        # One word among numbers makes words of all of them.
        reads = float if known.dtype.kind in _NUMBERS else str
        table = {reads(label): place for place, label in enumerate(known.tolist())}
        places = np.array([_place(label, reads, table) for label in y.tolist()], dtype=np.intp)
        return known[np.maximum(places, 0)], places < 0
    wrong = known[places] != y
    return known[np.where(wrong, 0, places)], wrong


def _place(label: Any, reads: Callable[[Any], Any], table: dict[Any, int]) -> int:
    """Return the place of a label in a set, -1 if it is none of it, whatever it is."""
    try:
        is_word = isinstance(label, str)
        # A number is no word, though it can be written as one.
        return table.get(reads(label), -1) if is_word or reads is float else -1
    except Exception:
        return -1


def _is_missing(label: Any) -> bool:
    try:
        return label is None or bool(label != label)
    except Exception:
        return True


def _first(y: NDArray[Any], wrong: Mask, labels: Sequence[Any] | None) -> Any:
    """Return the label that improper records get: the first of the public set."""
    if labels is not None:
        return np.unique(np.asarray(labels))[0]
    return np.unique(y[~wrong])[0] if not wrong.all() else y[0]


def _part(X: Any, records: NDArray[np.intp]) -> Any:
    return safe_indexing(X, records)
