"""Make up data with the form of others: a table's columns, names and types, and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from skdptune._validation import FloatArray
from skdptune.base._shared import kind_of_list, table_shape

_SEED = 20
_WORD = "made up"
_PER_ROW = 3
# If a trial with few records fails, it is repeated with this many, or with all if they are fewer.
_MORE = 1000
_MOST_NUMBERS = 10**7


def made_up_sizes(X: Any, few: int, n_samples: int) -> list[int]:
    """Return the numbers of made-up records to try in turn: few, more, and the public number.

    A step may fail if it gets fewer records than it returns columns.

    Parameters
    ----------
    X : array-like
        Only its number of columns is used.
    few : int
    n_samples : int
        Public number of records.
    """
    width = int(np.prod(np.shape(X)[1:])) if hasattr(X, "shape") else 1
    more = sorted({min(n_samples, _MORE), n_samples} - {few})
    return [few, *(size for size in more if size > few and size * width <= _MOST_NUMBERS)]


def made_up_like(X: Any, n_samples: int, *, with_words: bool = True, has_gap: bool = False) -> Any:
    """Return made-up records with the form of others; None if that form is not known.

    Parameters
    ----------
    X : array-like
        A table, or a list of texts or dicts.
    n_samples : int
    with_words : bool, default=True
        Whether a column whose type allows anything holds text instead of numbers.
    has_gap : bool, default=False
        Whether the last record is improper, as far as its types allow.

    Notes
    -----
    Theorem R6. The result follows from the number of columns, their names and types.
    """
    rng = np.random.default_rng(_SEED)
    if hasattr(X, "iloc"):
        return _frame_like(X, n_samples, with_words, has_gap, rng)
    if hasattr(X, "columns"):
        return _other_frame_like(X, n_samples, with_words, has_gap, rng)
    if sparse.issparse(X):
        return _sparse_like(X, n_samples, has_gap, rng)
    if not hasattr(X, "shape"):
        return _list_like(X, n_samples, has_gap, rng)
    # A tensor becomes an array: their types have the same names.
    dtype = X.dtype if isinstance(X, np.ndarray) else np.asarray(X[:0]).dtype
    if len(X.shape) < 2 and dtype.kind not in "OUS":
        return None
    made = _array(dtype, (n_samples, *X.shape[1:]), with_words, rng)
    if has_gap and dtype.kind in "fO":
        made[-1] = None
    return made


def _frame_like(
    X: Any, n_samples: int, with_words: bool, has_gap: bool, rng: np.random.Generator
) -> Any:
    import pandas as pd

    def made_up(dtype: Any) -> Any:
        entries = pd.Series(_column(dtype, n_samples, with_words, rng), dtype=dtype)
        if not has_gap:
            return entries
        try:
            return pd.Series([*entries.iloc[:-1], None], dtype=dtype)
        except (TypeError, ValueError):
            # A type that has no missing values.
            return entries

    if X.ndim == 1:
        return made_up(X.dtype).rename(X.name)
    made = pd.DataFrame({place: made_up(dtype) for place, dtype in enumerate(X.dtypes)})
    made.columns = X.columns
    return made


def _other_frame_like(
    X: Any, n_samples: int, with_words: bool, has_gap: bool, rng: np.random.Generator
) -> Any:
    """Return a table of a library other than pandas, such as polars."""
    without_rows = X[:0]
    columns = {}
    for name in X.columns:
        try:
            dtype = np.asarray(without_rows[name]).dtype
        except Exception:
            # Types that NumPy lacks are numeric.
            dtype = np.dtype(np.int64)
        entries = _array(dtype, (n_samples,), with_words, rng).tolist()
        columns[name] = [*entries[:-1], None] if has_gap else entries
    # Lists would lose types such as enumerations, or times in nanoseconds.
    types = {"schema": X.schema, "strict": False} if hasattr(X, "schema") else {}
    return type(X)(columns, **types)


def _sparse_like(X: Any, n_samples: int, has_gap: bool, rng: np.random.Generator) -> Any:
    rows = np.repeat(np.arange(n_samples), _PER_ROW)
    columns = rng.integers(0, X.shape[1], size=rows.size)
    values = rng.standard_normal(rows.size).astype(X.dtype)
    if has_gap and values.dtype.kind == "f":
        values[-1] = np.nan
    return type(X.tocsr())((values, (rows, columns)), shape=(n_samples, X.shape[1]))


def _list_like(X: Any, n_samples: int, has_gap: bool, rng: np.random.Generator) -> Any:
    """Return a list of the kind of records that most entries of a list are."""
    kind = kind_of_list(X)
    if kind == "rows":
        try:
            shape = table_shape(X)[1:]
        except ValueError:
            return None
        made = rng.standard_normal((n_samples, *shape)).tolist()
    else:
        made = [_WORD if kind == "texts" else {} for _ in range(n_samples if kind else 0)]
    return ([*made[:-1], None] if has_gap else made) if kind else None


def _array(dtype: Any, shape: tuple[int, ...], with_words: bool, rng: np.random.Generator) -> Any:
    if dtype.kind in "OUS":
        if with_words and dtype.kind == "O":
            return np.full(shape, _WORD, dtype=object)
        return rng.integers(0, 2, size=shape).astype(dtype)
    if dtype.kind in "mM":
        return rng.integers(0, 2, size=shape).astype(dtype)
    return _numbers(dtype, shape, rng)


def _numbers(dtype: Any, shape: tuple[int, ...], rng: np.random.Generator) -> FloatArray:
    if dtype.kind in "fc":
        return rng.standard_normal(shape).astype(dtype)
    return rng.integers(0, 2, size=shape).astype(dtype)


def _column(dtype: Any, n_samples: int, with_words: bool, rng: np.random.Generator) -> Any:
    import pandas as pd

    if isinstance(dtype, pd.CategoricalDtype):
        if not len(dtype.categories):
            return pd.Categorical([None] * n_samples, dtype=dtype)
        return pd.Categorical.from_codes(
            rng.integers(0, len(dtype.categories), size=n_samples), dtype=dtype
        )
    kind = getattr(dtype, "kind", "O")
    if kind in "fciub":
        plain = np.dtype(bool if kind == "b" else np.float64 if kind in "fc" else np.int64)
        return pd.array(_numbers(plain, (n_samples,), rng)).astype(dtype)
    if kind in "mM":
        # Two different days, so that a function that compares records with each other is detected.
        moments = pd.Series(rng.integers(0, 2, n_samples).astype(f"{kind}8[D]"))
        if getattr(dtype, "tz", None) is not None:
            moments = moments.dt.tz_localize("UTC")
        return moments.astype(dtype).array
    if with_words:
        return pd.array([_WORD] * n_samples, dtype=dtype)
    numbers = rng.integers(0, 2, size=n_samples)
    if isinstance(dtype, np.dtype):
        return numbers.astype(dtype)
    return pd.array(numbers.astype(str), dtype=dtype)
