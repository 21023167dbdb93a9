"""Tables of any entries read as numbers, each record by itself.

**Guarantee.** What comes out for one record depends on that record alone (Theorem R5).
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

from skdptune._compat import number_of_samples, safe_indexing

Table = Any
Mask = NDArray[np.bool_]
NUMBERS = "fiub"
# Types whose every entry is read by itself; a word among numbers makes NumPy choose one of them.
_READ_ONE_BY_ONE = "OUS"
# Those of which NumPy makes the floats that Python does, ten times as fast.
_PLAIN = frozenset({bool, int, float, str, Decimal, type(None), np.float32, np.float64, np.int64})


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


def table_shape(X: Any) -> tuple[int, ...]:
    """Return the shape of a table, whatever its entries are."""
    shape = getattr(X, "shape", None)
    if shape is not None:
        return tuple(shape)
    natural = natural_array(X)
    if natural is not None:
        return natural.shape
    return object_array(X).shape


def natural_array(values: Any) -> NDArray[Any] | None:
    """Return a list as an array of the type of all entries; None if there is no one type."""
    if hasattr(values, "__array__") or hasattr(values, "__array_interface__"):
        return np.asarray(values)
    try:
        natural = np.asarray(values)
    except Exception:
        return None
    # NumPy makes words of numbers beside a word, and complex numbers of those beside one.
    is_mixed = natural.dtype.kind in "US" and not _are_words(values)
    return None if is_mixed or natural.dtype.kind not in NUMBERS + "US" else natural


def object_array(values: Any) -> NDArray[Any]:
    try:
        found = np.asarray(values, dtype=object)
    except ValueError:
        found = np.empty(0, dtype=object)
    if found.ndim < 2:
        raise ValueError(
            "a table must have rows that are all of one length; got others."
        ) from None
    return found


def _are_words(values: Any) -> bool:
    return isinstance(values, str | bytes) or (
        isinstance(values, list | tuple) and all(_are_words(one) for one in values)
    )


def _numbers(X: Any) -> tuple[NDArray[Any], Mask]:
    """Return a table's numbers, and which records have entries that are none."""
    if hasattr(X, "iloc") or hasattr(X, "__dataframe__"):
        return _numbers_of_frame(X)
    array = X if isinstance(X, np.ndarray) else natural_array(X)
    if array is None:
        array = object_array(X)
    if array.dtype.kind in NUMBERS:
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
    if array.dtype.kind != "O" or _PLAIN.issuperset(map(type, array.ravel())):
        return array.astype(np.float64)
    numbers = np.array([_as_float(entry) for entry in array.ravel()], dtype=np.float64)
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
    if all(isinstance(kind, np.dtype) and kind.kind in NUMBERS for kind in X.dtypes):
        is_single = all(kind == np.float32 for kind in X.dtypes)
        numbers = X.to_numpy(dtype=np.float32 if is_single else np.float64)
        return numbers, np.zeros(len(X), dtype=bool)
    check_column_types(X)
    columns, unread = [], np.zeros(len(X), dtype=bool)
    for place in range(X.shape[1]):
        column = X.iloc[:, place]
        if getattr(column.dtype, "kind", "O") in NUMBERS:
            columns.append(column.to_numpy(dtype=np.float64, na_value=np.nan))
            continue
        numbers, wrong = _numbers_of_objects(column.to_numpy(dtype=object))
        columns.append(numbers)
        unread |= wrong
    return np.stack(columns, axis=1), unread


def check_column_types(X: Any) -> None:
    """Refuse a table with columns of words or dates, by their types, which are public.

    Columns of objects pass: one record can make one of a column of numbers.
    """
    for name, dtype in zip(X.columns, X.dtypes, strict=True):
        if getattr(dtype, "kind", "O") in tuple("mMc") or is_of_words(dtype):
            raise TypeError(
                f"X must hold numbers; column {name!r} has type {dtype}. A table with words or "
                "dates wants a Schema: skdptune.preprocessing.make_private_pipeline(estimator, "
                "schema). Numbers that came as words: pandas.to_numeric(column, errors='coerce')."
            )


def is_of_words(dtype: Any) -> bool:
    """Return whether a type of pandas is one of words, or of categories that are words."""
    categories = getattr(dtype, "categories", None)
    if categories is not None:
        return is_of_words(categories.dtype) or categories.dtype.kind in tuple("US")
    return getattr(dtype, "name", "").startswith("str") and hasattr(dtype, "na_value")


def _finite_sparse(X: Any, dtype: DTypeLike) -> tuple[Table, Mask]:
    if X.dtype.kind not in NUMBERS:
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


def _part(X: Any, records: NDArray[np.intp]) -> Any:
    return safe_indexing(X, records)
