"""The public form of data: what a search accepts of it, and made-up data of the same form.

The form of a table is its columns, their names and types, and nothing else.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import is_classifier, is_regressor
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from skdptune._compat import number_of_samples
from skdptune._validation import FloatArray
from skdptune.base._shared import (
    check_rows_form,
    check_target_shape,
    check_target_type,
    declared_labels,
    first_step,
    kind_of_list,
    labels_in,
    nested_estimators,
    own_parameters,
    table_shape,
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
        steps = (own_parameters(step) for _, step in nested_estimators(estimator))
        if any(own.get("classes", 0) is None for own in steps):
            raise ValueError(
                "classes must be declared in the estimator if n_public is given; got None. The "
                "labels in a random part of the data are secret."
            )
        return None
    found = labels_in(labels)
    if found.size < 2:
        raise ValueError("y must have at least two classes; got one class.")
    return found.tolist()


def check_form(estimator: Any, X: Any) -> None:
    """Refuse data that are not a table of records, by their shape and the estimator's input."""
    check_not_pairwise(estimator)
    first = first_step(estimator)
    # Not by truth value: the length of a forest is undefined before its fit.
    takes = get_tags(estimator if first is None else first)
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
