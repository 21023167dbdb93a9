"""Made-up data of the form of others: of a table's columns, names and types, and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from skdptune._validation import FloatArray

_SEED = 20
_WORD = "made up"
_PER_ROW = 3


def made_up_like(X: Any, n_samples: int, *, with_words: bool = True) -> Any:
    """Return made-up records of the form of others, None where that form is not known.

    Parameters
    ----------
    X : array-like
        A table, or a list of texts or dicts.
    n_samples : int
    with_words : bool, default=True
        Whether a column whose type allows anything holds words, and not numbers.

    Notes
    -----
    Theorem R6. What is returned follows from the number of columns, their names and types.
    """
    rng = np.random.default_rng(_SEED)
    if hasattr(X, "iloc"):
        return _frame_like(X, n_samples, with_words, rng)
    if hasattr(X, "columns"):
        return _other_frame_like(X, n_samples, with_words, rng)
    if sparse.issparse(X):
        return _sparse_like(X, n_samples, rng)
    if not hasattr(X, "shape"):
        return _list_like(X, n_samples, rng)
    if len(X.shape) < 2 and X.dtype.kind not in "OUS":
        return None
    return _array(X.dtype, (n_samples, *X.shape[1:]), with_words, rng)


def _frame_like(X: Any, n_samples: int, with_words: bool, rng: np.random.Generator) -> Any:
    import pandas as pd

    if X.ndim == 1:
        return pd.Series(_column(X.dtype, n_samples, with_words, rng), dtype=X.dtype, name=X.name)
    columns = {
        place: pd.Series(_column(dtype, n_samples, with_words, rng), dtype=dtype)
        for place, dtype in enumerate(X.dtypes)
    }
    made = pd.DataFrame(columns)
    made.columns = X.columns
    return made


def _other_frame_like(X: Any, n_samples: int, with_words: bool, rng: np.random.Generator) -> Any:
    """Return a table of another library than pandas, such as polars."""
    without_rows = X[:0]
    columns = {
        name: _array(np.asarray(without_rows[name]).dtype, (n_samples,), with_words, rng).tolist()
        for name in X.columns
    }
    return type(X)(columns)


def _sparse_like(X: Any, n_samples: int, rng: np.random.Generator) -> Any:
    rows = np.repeat(np.arange(n_samples), _PER_ROW)
    columns = rng.integers(0, X.shape[1], size=rows.size)
    values = rng.standard_normal(rows.size).astype(X.dtype)
    return type(X.tocsr())((values, (rows, columns)), shape=(n_samples, X.shape[1]))


def _list_like(X: Any, n_samples: int, rng: np.random.Generator) -> Any:
    """Return a list like a list; of records only the kind and the length of the first count."""
    first = X[0] if len(X) else None
    if isinstance(first, str):
        return [_WORD] * n_samples
    if isinstance(first, dict):
        return [{}] * n_samples
    if isinstance(first, list | tuple | np.ndarray):
        return rng.standard_normal((n_samples, len(first)))
    return None


def _array(dtype: Any, shape: tuple[int, ...], with_words: bool, rng: np.random.Generator) -> Any:
    if dtype.kind in "OUS":
        if with_words and dtype.kind == "O":
            return np.full(shape, _WORD, dtype=object)
        return rng.integers(0, 2, size=shape).astype(dtype)
    if dtype.kind in "mM":
        return np.zeros(shape, dtype=np.int64).astype(dtype)
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
    if kind in "fiub":
        plain = np.dtype(bool if kind == "b" else np.float64 if kind == "f" else np.int64)
        return pd.array(_numbers(plain, (n_samples,), rng)).astype(dtype)
    if kind in "mM":
        return pd.array(np.zeros(n_samples, dtype=np.int64).astype("datetime64[ns]")).astype(dtype)
    if with_words:
        return pd.array([_WORD] * n_samples, dtype=dtype)
    numbers = rng.integers(0, 2, size=n_samples)
    if isinstance(dtype, np.dtype):
        return numbers.astype(dtype)
    return pd.array(numbers.astype(str), dtype=dtype)
