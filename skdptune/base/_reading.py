"""Read tables of any entries as numbers, each record independently of the others.

**Guarantee.** The result for one record depends only on that record (Theorem R5).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import get_tags

from skdptune._compat import number_of_samples, safe_indexing
from skdptune._formatting import shown
from skdptune.base._parameters import model_inside

Table = Any
Mask = NDArray[np.bool_]
# Larger integers are not exact as floats, and one entry may turn integers into floats.
LARGEST_INTEGER = 2.0**53
NUMBERS = "fiub"
# Types for which NumPy's conversion to floats agrees with Python's, at ten times the speed.
_PLAIN = frozenset({bool, int, float, str, Decimal, type(None), np.float32, np.float64, np.int64})
# Types of entries that are read as numbers; converting other types may warn, print or do worse.
# Each has the function of the type itself, since a subclass may return another value.
_READABLE: dict[type, Callable[[Any], Any]] = {
    int: int.__int__,
    float: float.__float__,
    str: lambda entry: str.__getitem__(entry, slice(None)),
    bytes: lambda entry: bytes.__getitem__(entry, slice(None)),
    np.bool_: bool,
    np.integer: int,
    np.floating: float,
}


def finite_rows(X: Any, dtype: DTypeLike | None = None) -> tuple[Table, Mask]:
    """Return numbers, with zeros for rows that are not all finite, and which rows these are.

    Proper numbers of the right type are not copied.

    Parameters
    ----------
    X : array-like
    dtype : dtype, optional
        Type of the result. An array of single precision keeps its type if this is double. Numbers
        keep their type if it is not given.
    """
    if sparse.issparse(X):
        return _finite_sparse(X, dtype)
    numbers, unread = _numbers(X)
    with np.errstate(over="ignore", invalid="ignore"):
        rows = numbers.astype(_wanted(numbers.dtype, dtype), copy=False)
        # If the sum is finite, all terms are; this takes a tenth of the time of checking all.
        is_proper = bool(np.isfinite(rows.sum())) and not unread.any()
    if is_proper:
        return rows, unread
    improper = unread | ~np.isfinite(rows).all(axis=tuple(range(1, rows.ndim)))
    return zeroed(rows, improper), improper


def _wanted(found: np.dtype[Any], dtype: DTypeLike | None) -> np.dtype[Any]:
    """Return the type in which numbers of a given type are stored."""
    if dtype is None:
        return np.dtype(np.float64) if found.kind == "f" and found.itemsize > 8 else found
    wanted = np.dtype(dtype)
    return found if wanted == np.float64 and found == np.float32 else wanted


def zeroed(rows: Table, chosen: Mask, value: float = 0.0) -> Table:
    """Return a table whose chosen rows are all zeros, or have another constant value.

    For a sparse table, only the stored entries change.
    """
    if not chosen.any():
        return rows
    if sparse.issparse(rows):
        kept = rows.tocsr(copy=True)
        kept.data[np.repeat(chosen, np.diff(kept.indptr))] = value
        return type(rows)(kept)
    rows = rows.copy()
    rows[chosen] = value
    return rows


def named_like(X: Any, rows: Table) -> Table:
    """Return rows in a table with the column names of the original one."""
    if not hasattr(X, "columns") or sparse.issparse(rows):
        return rows
    if hasattr(X, "iloc"):
        return type(X)(rows, columns=X.columns, copy=False)
    return type(X)({name: rows[:, place] for place, name in enumerate(X.columns)})


def reads_numbers(estimator: Any) -> bool:
    """Return whether an estimator, or a pipeline's first step, accepts only tables of numbers.

    Others, such as encoders, imputers and functions, get the records unchanged.
    """
    first = first_step(estimator)
    if first is None or isinstance(first, ColumnTransformer | FeatureUnion):
        return False
    tags = get_tags(first)
    takes = tags.input_tags
    if tags.no_validation or not (takes.two_d_array or takes.three_d_array):
        return False
    return not (takes.string or takes.categorical or takes.allow_nan or takes.dict)


def first_step(estimator: Any) -> Any:
    """Return the step that gets an estimator's records first; None for a keyword."""
    while isinstance(estimator, Pipeline) and estimator.steps:
        estimator = estimator.steps[0][1]
    return None if isinstance(estimator, str) else model_inside(estimator)


def by_halves(
    function: Callable[[Any], Any], X: Any, fallback: Callable[[Any], Any]
) -> list[tuple[Any, Any]]:
    """Apply a function to all records, or by halves if it fails.

    Returns
    -------
    list of (part, result)
        In order. If the function fails on a single record, the result is that of `fallback`. A
        function that treats records independently gives the same results as record by record.
    """
    try:
        return [(X, function(X))]
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException:
        # A library may panic, and a step may call exit: catch everything.
        size = number_of_samples(X)
    if size <= 1:
        return [(X, fallback(X))]
    halves = np.array_split(np.arange(size), 2)
    return [found for half in halves for found in by_halves(function, _part(X, half), fallback)]


def as_table(X: Any) -> Table:
    """Return a list of rows as an array of objects, and a masked array with missing values.

    Other inputs, such as a list of texts or dicts, are returned unchanged. A list has no type, so
    the type of the array must not follow from its entries: one record could change it.
    """
    if isinstance(X, np.ma.MaskedArray):
        return unmasked(X)
    if hasattr(X, "shape") or not hasattr(X, "__len__") or kind_of_list(X) != "rows":
        return X
    return _table_of_objects(X, None)


def kind_of_list(records: Any) -> str:
    """Return "texts", "dicts" or "rows": the kind of most records of a list; "" if it is empty."""
    kinds = Counter(
        "texts" if isinstance(one, str) else "dicts" if isinstance(one, dict) else "rows"
        for one in records
    )
    # With a tie the later word is returned, so that the order of records does not matter.
    return max(kinds, key=lambda kind: (kinds[kind], kind), default="")


def table_shape(X: Any) -> tuple[int, ...]:
    """Return the shape of a table, whatever its entries are."""
    shape = getattr(X, "shape", None)
    return tuple(shape if shape is not None else table_of(X).shape)


def table_of(values: Any, shape: tuple[int, ...] | None = None) -> NDArray[Any]:
    """Return a list of rows as an array, of objects unless all entries are numbers or text.

    Numbers always have double precision: one record must not decide the precision.

    Parameters
    ----------
    values : list
    shape : tuple of int, optional
        Shape of each row, if it is public; otherwise that of most rows. A row of another shape is
        filled with None.
    """
    natural = natural_array(values)
    if natural is not None and (shape is None or natural.shape[1:] == shape):
        is_list = isinstance(values, list | tuple) and natural.dtype.kind in NUMBERS
        return natural.astype(np.float64) if is_list else natural
    return _table_of_objects(values, shape)


def _table_of_objects(values: Any, shape: tuple[int, ...] | None) -> NDArray[Any]:
    rows = [_row(value) for value in values]
    if shape is None:
        # With a tie, plain rows and longer rows are preferred: the order of records does not
        # matter.
        counts = Counter(() if row is None else row.shape for row in rows)
        shape = max(counts, key=lambda one: (counts[one], len(one) == 1, one), default=())
    if not shape:
        raise ValueError(
            "X must be two-dimensional; got a list of single entries: Expected 2D array. "
            "Reshape your data with numpy.reshape(X, (-1, 1)) if it has a single column."
        )
    table = np.full((len(rows), *shape), None, dtype=object)
    for place, row in enumerate(rows):
        if row is not None and row.shape == shape:
            table[place] = row
    return table


def _row(value: Any) -> NDArray[Any] | None:
    """Return one row of a list as an array of objects; None if it is not a row."""
    if isinstance(value, np.ma.MaskedArray):
        value = unmasked(value)
    if not isinstance(value, list | tuple | np.ndarray) and hasattr(value, "__array__"):
        try:
            value = np.asarray(value)
        except Exception:
            return None
    if not isinstance(value, list | tuple | np.ndarray):
        return None
    try:
        row = np.array(value, dtype=object)
    except Exception:
        return None
    return row if row.ndim else None


def natural_array(values: Any) -> NDArray[Any] | None:
    """Return a list as an array of the type of all entries; None if they differ in type."""
    if isinstance(values, np.ma.MaskedArray):
        return unmasked(values)
    if hasattr(values, "__array__") or hasattr(values, "__array_interface__"):
        return np.asarray(values)
    kinds: set[str] = set()
    try:
        # NumPy converts numbers to text if they are mixed with text.
        if not _collect_kinds(values, kinds) or len(kinds) > 1:
            return None
        natural = np.asarray(values)
    except Exception:
        # The entries have another form, or are nested without end.
        return None
    return None if natural.dtype.kind not in NUMBERS + "US" else natural


def unmasked(values: Any) -> NDArray[Any]:
    """Return an array in which masked entries are missing values."""
    if values.dtype.kind in NUMBERS:
        return np.asarray(values.astype(np.float64).filled(np.nan))
    found = np.array(values.data, dtype=object)
    # `filled(None)` would write the fill value, which is "?" for text.
    found[np.ma.getmaskarray(values)] = None
    return found


def _collect_kinds(values: Any, kinds: set[str]) -> bool:
    """Add the kinds of all entries of nested lists; return whether all are of known kinds."""
    if type(values) in (list, tuple):
        return all(_collect_kinds(one, kinds) for one in values)
    if type(values) is np.ndarray:
        kinds.add("numbers" if values.dtype.kind in NUMBERS else values.dtype.kind)
        # An array without dimensions would stay an object among objects.
        return values.ndim > 0 and values.dtype.kind in NUMBERS + "US"
    # NumPy converts bytes among text, and drops zeros at the end of either.
    if type(values) in (str, np.str_):
        kinds.add("U")
        return not str.endswith(values, "\0")
    if type(values) in (bytes, np.bytes_):
        kinds.add("S")
        return not bytes.endswith(values, b"\0")
    kinds.add("numbers")
    return type(values) in (bool, int, float) or isinstance(
        values, np.bool_ | np.integer | np.floating
    )


def _numbers(X: Any) -> tuple[NDArray[Any], Mask]:
    """Return a table's numbers, and which records have entries that are not numbers."""
    if hasattr(X, "columns"):
        return _numbers_of_frame(X)
    is_array = isinstance(X, np.ndarray) and not isinstance(X, np.ma.MaskedArray)
    return _numbers_of_array(X if is_array else table_of(X))


def _numbers_of_array(array: NDArray[Any]) -> tuple[NDArray[Any], Mask]:
    if array.dtype.kind in NUMBERS:
        return array, np.zeros(array.shape[0], dtype=bool)
    if array.dtype.kind not in "OUS":
        raise TypeError(f"X must hold numbers; got {array.dtype}.")

    def failed(record: Any) -> None:
        return None

    unread = np.zeros(array.shape[0], dtype=bool)
    parts, start = [], 0
    # NumPy reads some texts differently from Python.
    for part, numbers in by_halves(_as_floats, array.astype(object, copy=False), failed):
        if numbers is None:
            unread[start] = True
            numbers = np.zeros(part.shape)
        parts.append(numbers)
        start += len(part)
    return np.concatenate(parts) if parts else np.zeros(array.shape), unread


def _as_floats(array: NDArray[Any]) -> NDArray[np.float64]:
    if _PLAIN.issuperset(map(type, array.ravel())):
        return array.astype(np.float64)
    numbers = np.array([as_float(entry) for entry in array.ravel()], dtype=np.float64)
    return numbers.reshape(array.shape)


def as_float(entry: Any) -> float:
    """Return an entry as a number, NaN for a missing one; raise for anything else."""
    if entry is None:
        return math.nan
    for kind, value_of in _READABLE.items():
        if isinstance(entry, kind):
            return float(value_of(entry))
    if type(entry) in (Decimal, Fraction):
        return float(entry)
    if type(entry) is np.ndarray and entry.ndim == 0 and entry.dtype.kind in NUMBERS:
        return float(entry)
    if isinstance(entry, complex | np.complexfloating) and entry.imag == 0.0:
        return float(entry.real)
    raise TypeError("an entry must be a number; got another object.")


def _numbers_of_frame(X: Any) -> tuple[NDArray[Any], Mask]:
    """Return the numbers of a table with columns of different types."""
    check_column_types(X)
    is_pandas = hasattr(X, "iloc")
    if is_pandas and all(isinstance(t, np.dtype) and t.kind in NUMBERS for t in X.dtypes):
        is_single = all(kind == np.float32 for kind in X.dtypes)
        numbers = X.to_numpy(dtype=np.float32 if is_single else np.float64)
        return numbers, np.zeros(len(X), dtype=bool)
    columns, unread = [], np.zeros(len(X), dtype=bool)
    for place, name in enumerate(X.columns):
        numbers, wrong = _numbers_of_array(_column(X.iloc[:, place] if is_pandas else X[name]))
        columns.append(numbers.astype(np.float64, copy=False))
        unread |= wrong
    return np.stack(columns, axis=1), unread


def _column(column: Any) -> NDArray[Any]:
    """Return a column of any library as an array of numbers or objects."""
    if not hasattr(column, "iloc"):
        try:
            return np.asarray(column)
        except Exception:
            # A type that NumPy lacks, such as integers of 128 bits.
            return np.array(column.to_list(), dtype=object)
    if getattr(column.dtype, "kind", "O") in NUMBERS:
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    return np.asarray(column.to_numpy(dtype=object))


def check_column_types(X: Any) -> None:
    """Refuse a table with columns of text or dates, judged by their types, which are public.

    Columns of objects or complex numbers are accepted: one record can turn a column of numbers
    into either.
    """
    for name, dtype in zip(X.columns, X.dtypes, strict=True):
        if getattr(dtype, "kind", "O") in tuple("mM") or is_of_words(dtype):
            raise TypeError(
                f"X must hold numbers; column {shown(name)} has type {dtype}. A table with text "
                "or dates needs a Schema: "
                "skdptune.preprocessing.make_private_pipeline(estimator, schema). Numbers "
                "stored as text: pandas.to_numeric(column, errors='coerce')."
            )


def is_of_words(dtype: Any) -> bool:
    """Return whether a pandas type is text, or categories that are text."""
    categories = getattr(dtype, "categories", None)
    if categories is not None:
        return is_of_words(categories.dtype) or categories.dtype.kind in tuple("US")
    return getattr(dtype, "name", "").startswith("str") and hasattr(dtype, "na_value")


def _finite_sparse(X: Any, dtype: DTypeLike | None) -> tuple[Table, Mask]:
    if X.dtype.kind not in NUMBERS:
        raise TypeError(f"X must hold numbers; got {X.dtype}.")
    if X.format != "csr" and hasattr(X, "check_format"):
        X.check_format(full_check=True)
    rows = X.tocsr()
    places = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    improper = np.zeros(rows.shape[0], dtype=bool)
    improper[places[(rows.indices < 0) | (rows.indices >= rows.shape[1])]] = True
    if improper.any():
        # An index beyond the number of columns would be read from other memory.
        rows = rows.copy()
        rows.indices[improper[places]] = 0
        rows.data[improper[places]] = 0
    if rows.indices.dtype != np.int32:
        if max(*rows.shape, rows.nnz) >= 2**31:
            raise ValueError("X must have fewer than 2^31 rows, columns and entries; got more.")
        # Many estimators accept only these indices.
        parts = rows.data, rows.indices.astype(np.int32), rows.indptr.astype(np.int32)
        rows = type(rows)(parts, shape=rows.shape)
    with np.errstate(over="ignore", invalid="ignore"):
        rows = rows.astype(_wanted(rows.dtype, dtype), copy=False)
        if not rows.has_canonical_format:
            # The norm of a row is computed from its entries, which must not be parts of a number.
            rows = rows.copy()
            rows.sum_duplicates()
        places = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    improper[places[~np.isfinite(rows.data)]] = True
    return zeroed(rows, improper), improper


def _part(X: Any, records: NDArray[np.intp]) -> Any:
    return safe_indexing(X, records)


# Numbers of rows ------------------------------------------------------------------------------

# Rows that are copied at once.
_ROWS_AT_ONCE = 1 << 10


def squared_norms(rows: NDArray[Any]) -> NDArray[np.float64]:
    """Return the squared norm of each row, which depends only on this row.

    NumPy adds in another order if columns are contiguous, instead of rows. One record can decide
    this, since a copy is made if a record is improper.
    """
    found = np.empty(rows.shape[0])
    for start in range(0, rows.shape[0], _ROWS_AT_ONCE):
        part = slice(start, start + _ROWS_AT_ONCE)
        block = np.ascontiguousarray(rows[part], dtype=np.float64)
        np.einsum("ij,ij->i", block, block, out=found[part])
    return found
