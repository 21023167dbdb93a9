"""Tables and targets in which no record can make a fit fail: an improper one becomes constant.

**Guarantee.** What comes out for one record depends on that record alone. Arguments that are wrong
whatever the records hold (no table, complex numbers, targets of another length) raise, and what
raises follows from shapes, types and names, never from values. So the table of a data set with one
record more is the same table with one row more, and whatever a fit proves about tables of finite
rows holds for all data (Theorem R5).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.validation import validate_data

from skdptune._compat import number_of_samples, safe_indexing

Table = Any
Mask = NDArray[np.bool_]
_NUMBERS = "fiub"
# Types whose every entry is read by itself; a word among numbers makes NumPy choose one of them.
_READ_ONE_BY_ONE = "OUS"


class Records(NamedTuple):
    """Rows and targets, all finite; they may share the caller's memory.

    Attributes
    ----------
    X : ndarray or CSR matrix
        A row that is no list of finite numbers is all zeros.
    y : ndarray
        Targets; where one is improper, its row is all zeros, too.
    """

    X: Table
    y: NDArray[Any]


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
    target_dtype: DTypeLike = np.float64,
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
        Whether targets are labels; they then keep their type.
    n_outputs : int or None, default=1
        Number of targets of a record; None for any number. One column counts as one number.
    target_dtype : dtype, default=float64
        Of targets that are numbers.
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
    targets = target_array(y, n_outputs, warns=n_outputs == 1)
    rows, improper = validate_rows(estimator, X, **settings)
    if targets.shape[0] != rows.shape[0]:
        raise ValueError(
            f"y must be as long as X; got {targets.shape[0]} targets for {rows.shape[0]} records: "
            "inconsistent numbers of samples."
        )
    targets, both = proper_targets(
        targets, improper, is_classifier=is_classifier, labels=labels, dtype=target_dtype
    )
    return Records(zeroed(rows, both & ~improper), targets)


def proper_targets(
    y: NDArray[Any],
    improper: Mask,
    *,
    is_classifier: bool,
    labels: Sequence[Any] | None = None,
    dtype: DTypeLike = np.float64,
) -> tuple[NDArray[Any], Mask]:
    """Return proper targets, and which records are improper because of them or before.

    Improper records have the target 0, or the first label of the public set.
    """
    if is_classifier:
        targets, wrong = proper_labels(y, labels)
    else:
        targets, wrong = finite_rows(y, dtype)
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
    """Return numbers, rows that are not all finite being all zeros, and which rows these are.

    Proper numbers of the right type are not copied.
    """
    if sparse.issparse(X):
        return _finite_sparse(X, dtype)
    numbers, unread = _numbers(X)
    wanted = np.dtype(dtype)
    if wanted == np.float64 and numbers.dtype == np.float32:
        wanted = numbers.dtype
    with np.errstate(over="ignore", invalid="ignore"):
        rows = numbers.astype(wanted, copy=False)
        # A finite sum has no other terms, and takes a tenth of the time of looking at all.
        is_proper = bool(np.isfinite(rows.sum())) and not unread.any()
    if is_proper:
        return rows, unread
    improper = unread | ~np.isfinite(rows).all(axis=tuple(range(1, rows.ndim)))
    return zeroed(rows, improper), improper


def sorted_labels(y: NDArray[Any]) -> NDArray[Any]:
    """Return the different labels in order, or raise where they have none."""
    try:
        return np.unique(y)
    except Exception:
        # The labels that occur are public where none are declared, but are not quoted.
        raise TypeError(
            "y must hold labels of one type, strings or numbers; got several types. Declare the "
            "labels in classes=, so that a record with another one cannot make a fit fail."
        ) from None


def zeroed(rows: Table, chosen: Mask) -> Table:
    """Return a table with the chosen rows all zeros."""
    if not chosen.any():
        return rows
    if sparse.issparse(rows):
        kept = rows.tocsr(copy=True)
        kept.data[np.repeat(chosen, np.diff(kept.indptr))] = 0
        return type(rows)(kept)
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
    shape = table_shape(X)
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


def table_shape(X: Any) -> tuple[int, ...]:
    """Return the shape of a table, whatever its entries are."""
    shape = getattr(X, "shape", None)
    if shape is not None:
        return tuple(shape)
    natural = _natural_array(X)
    if natural is not None:
        return natural.shape
    return _object_array(X).shape


def target_array(y: Any, n_outputs: int | None = 1, *, warns: bool = False) -> NDArray[Any]:
    """Return targets as an array, with one dimension where each record has one."""
    if sparse.issparse(y):
        raise TypeError("y must be dense; got a sparse matrix.")
    targets = np.asarray(y) if hasattr(y, "dtype") else _array_of_list(y, n_outputs)
    if targets.dtype.kind == "c":
        raise ValueError(f"y must be real; got {targets.dtype}. Complex data not supported.")
    if targets.ndim == 2 and targets.shape[1] == 1 and n_outputs is not None:
        if warns:
            warnings.warn(
                "A column-vector y was passed when a 1d array was expected. Use y.ravel().",
                DataConversionWarning,
                stacklevel=2,
            )
        targets = targets[:, 0]
    if targets.ndim == 0 or (n_outputs == 1 and targets.ndim != 1):
        raise ValueError(
            f"y should be a 1d array: y must have one target per record; got an array of shape "
            f"{targets.shape} instead."
        )
    if targets.ndim > 2 or 0 in targets.shape[1:]:
        raise ValueError(f"y must have a row of targets per record; got shape {targets.shape}.")
    return targets


def _array_of_list(values: Any, n_outputs: int | None) -> NDArray[Any]:
    """Return a list as an array of its entries' own type, of objects if they have several."""
    natural = _natural_array(values)
    if natural is not None:
        return natural
    if n_outputs is None:
        return _object_array(values)
    found = np.empty(len(values), dtype=object)
    # One record with a list of several must not make lists of the numbers of others.
    found[:] = [_single(value) for value in values]
    return found


def _single(value: Any) -> Any:
    is_list = isinstance(value, list | tuple | np.ndarray) and np.shape(value) == (1,)
    return value[0] if is_list else value


def _natural_array(values: Any) -> NDArray[Any] | None:
    """Return a list as an array of the type of all entries; None if there is no one type."""
    if hasattr(values, "__array__") or hasattr(values, "__array_interface__"):
        return np.asarray(values)
    try:
        natural = np.asarray(values)
    except Exception:
        return None
    # NumPy makes words of numbers beside a word, and complex numbers of those beside one.
    is_mixed = natural.dtype.kind in "US" and not _are_words(values)
    return None if is_mixed or natural.dtype.kind not in _NUMBERS + "US" else natural


def _are_words(values: Any) -> bool:
    return isinstance(values, str | bytes) or (
        isinstance(values, list | tuple) and all(_are_words(one) for one in values)
    )


def _object_array(values: Any) -> NDArray[Any]:
    try:
        found = np.asarray(values, dtype=object)
    except ValueError:
        found = np.empty(0, dtype=object)
    if found.ndim < 2:
        raise ValueError(
            "a table must have rows that are all of one length; got others."
        ) from None
    return found


def _numbers(X: Any) -> tuple[NDArray[Any], Mask]:
    """Return a table's numbers, and which records have entries that are none."""
    if hasattr(X, "iloc") or hasattr(X, "__dataframe__"):
        return _numbers_of_frame(X)
    array = X if isinstance(X, np.ndarray) else _natural_array(X)
    if array is None:
        array = _object_array(X)
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
    if all(isinstance(kind, np.dtype) and kind.kind in _NUMBERS for kind in X.dtypes):
        is_single = all(kind == np.float32 for kind in X.dtypes)
        numbers = X.to_numpy(dtype=np.float32 if is_single else np.float64)
        return numbers, np.zeros(len(X), dtype=bool)
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
    return np.stack(columns, axis=1), unread


def _finite_sparse(X: Any, dtype: DTypeLike) -> tuple[Table, Mask]:
    if X.dtype.kind not in _NUMBERS:
        raise TypeError(f"X must hold numbers; got {X.dtype}.")
    rows = X.tocsr()
    if rows.indices.dtype != np.int32 and max(rows.shape) >= 2**31:
        raise ValueError("X must have fewer than 2^31 rows and columns; got more.")
    wanted = np.dtype(dtype)
    if wanted == np.float64 and rows.dtype == np.float32:
        wanted = rows.dtype
    with np.errstate(over="ignore", invalid="ignore"):
        rows = rows.astype(wanted, copy=False)
        if not rows.has_canonical_format:
            # The length of a row is read from its entries, which must not be parts of numbers.
            rows = rows.copy()
            rows.sum_duplicates()
    wrong = ~np.isfinite(rows.data)
    places = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    improper = np.zeros(rows.shape[0], dtype=bool)
    improper[places[wrong]] = True
    return zeroed(rows, improper), improper


def _labels_among(y: NDArray[Any], labels: NDArray[Any]) -> tuple[NDArray[Any], Mask]:
    """Return each label as the set has it, others as the first one, and which are others."""
    known = np.unique(labels)
    kinds = y.dtype.kind, known.dtype.kind
    if kinds == ("U", "U") or (kinds[0] in _NUMBERS and kinds[1] in _NUMBERS):
        places = np.minimum(np.searchsorted(known, y), known.size - 1)
        wrong = known[places] != y
        return known[np.where(wrong, 0, places)], wrong
    # One word among numbers makes words of all of them, but a number is no word.
    reads = float if kinds[1] in _NUMBERS else _itself
    table = {reads(label): place for place, label in enumerate(known.tolist())}
    places = np.array([_place(label, reads, table) for label in y.tolist()], dtype=np.intp)
    return known[np.maximum(places, 0)], places < 0


def _itself(label: Any) -> Any:
    return label


def _place(label: Any, reads: Callable[[Any], Any], table: dict[Any, int]) -> int:
    """Return the place of a label in a set, -1 if it is none of it, whatever it is."""
    try:
        return table.get(reads(label), -1)
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
    return sorted_labels(y[~wrong])[0] if not wrong.all() else y[0]


def _part(X: Any, records: NDArray[np.intp]) -> Any:
    return safe_indexing(X, records)
