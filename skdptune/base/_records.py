"""Tables and targets in which no record can make a fit fail: improper records become constant.

**Guarantee.** The result for one record depends only on that record. Arguments that are wrong
whatever the records contain (not a table, complex numbers, targets of another length) raise an
error, and this error depends on shapes, types and names, never on values. So adding a record to a
data set adds one row to the table and leaves the other rows unchanged. Everything proven about a
fit to tables of finite rows therefore holds for all data (Theorem R5).
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from numbers import Number
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse
from sklearn.base import is_classifier, is_regressor
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from skdptune._formatting import shown, shown_names
from skdptune._validation import check_real
from skdptune.base._reading import (
    LARGEST_INTEGER,
    NUMBERS,
    Mask,
    Table,
    as_float,
    finite_rows,
    is_of_words,
    natural_array,
    table_of,
    table_shape,
    unmasked,
    zeroed,
)


class Records(NamedTuple):
    """Rows and targets, all finite; they may share the caller's memory.

    Attributes
    ----------
    X : ndarray or CSR matrix
        A row that does not consist of finite numbers is replaced by zeros.
    y : ndarray
        Targets. If a target is improper, its row is replaced by zeros, too.
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
    """Return a table of finite rows, and a mask of the rows that had other entries.

    Parameters
    ----------
    estimator : estimator
        Its ``n_features_in_`` and ``feature_names_in_`` are set (`reset`) or compared.
    X : array-like
    reset : bool, default=True
    dtype : dtype, default=float64
        Type of the result. If it is double precision, arrays of single precision keep their type.
    accept_sparse : bool, default=False
        Whether a sparse matrix is accepted; it is returned in CSR format.
    allow_nd : bool, default=False
        Whether a record may be an array of any shape.
    min_samples : int, default=1
        Use 0 for a random part of the data, whose size is secret.

    Notes
    -----
    Theorem R5.
    """
    # The length of a list's first row depends on one record.
    X = X if hasattr(X, "shape") else table_of(X)
    check_rows_form(X, accept_sparse=accept_sparse, allow_nd=allow_nd, min_samples=min_samples)
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    rows, improper = finite_rows(X, dtype)
    return rows, improper


def rows_with_gaps(estimator: Any, X: Any, *, accept_sparse: bool = False) -> Table:
    """Return a table of numbers for a fitted transformer; improper rows contain only NaN.

    In `fit`, these rows are read as zeros; NaN lets the next step recognise them.

    Parameters
    ----------
    estimator : estimator
    X : array-like
    accept_sparse : bool, default=False
        See `validate_rows`.

    Notes
    -----
    Theorem R5.
    """
    rows, improper = validate_rows(estimator, X, reset=False, accept_sparse=accept_sparse)
    return zeroed(rows, improper, np.nan)


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
        Whether targets are labels, which keep their type.
    n_outputs : int or None, default=1
        Number of targets per record; None for any number. A single column counts as one target.
    target_dtype : dtype, default=float64
        Type of numeric targets.
    **settings
        See `validate_rows`.

    Notes
    -----
    Theorem R5.
    """
    check_given(y, estimator)
    check_target_type(y, labels, is_classifier=is_classifier)
    targets = target_array(y, n_outputs, warns=n_outputs == 1)
    rows, improper = validate_rows(estimator, X, **settings)
    check_length(targets.shape[0], rows.shape[0])
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
    """Return proper targets, and a mask of records improper due to their targets or rows.

    Improper records get the target 0, or the first label of the public set.
    """
    if is_classifier:
        targets, wrong = proper_labels(y, labels)
    else:
        targets, wrong = finite_rows(y, dtype)
    both = improper | wrong
    if both.any():
        targets = targets.copy()
        targets[both] = _first(targets, wrong, labels) if is_classifier else 0.0
    if is_classifier and targets.dtype.kind == "O":
        # Numbers next to a missing value are objects; without it, they would be numbers.
        natural = natural_array(targets.tolist())
        if natural is not None and natural.ndim == 1 and natural.dtype.kind in NUMBERS:
            return natural, both
    return targets, both


def proper_labels(y: NDArray[Any], labels: Sequence[Any] | None) -> tuple[NDArray[Any], Mask]:
    """Return labels with the label set's type, and a mask of missing and undeclared labels.

    Without a label set, every label counts that is not missing. The set of labels that occur is
    then public.
    """
    if labels is not None:
        return _labels_among(y, np.asarray(labels))
    if y.dtype.kind == "f":
        return y, ~np.isfinite(y)
    if y.dtype.kind == "O":
        return y, np.array([_is_missing(label) for label in y], dtype=bool)
    return y, np.zeros(y.shape[0], dtype=bool)


def labels_of_chunk(y: Any, labels: Any) -> NDArray[Any]:
    """Return the labels of a chunk in a type with which each is read by its own value.

    Numbers are read as doubles if the label set has only numbers, which is much faster.
    """
    given = np.asarray(y)
    is_numeric = all(np.asarray(one).dtype.kind in NUMBERS for one in (given, list(labels)))
    return given.astype(np.float64 if is_numeric else object)


def check_target_type(y: Any, labels: Sequence[Any] | None, *, is_classifier: bool) -> None:
    """Raise if the type of the targets, which is public, rules out proper targets.

    For labels, this means numbers, dates or categories that cannot equal a declared label. For
    numeric targets, it means strings or dates. Lists and targets of type object are accepted,
    because one record can cause that type.
    """
    dtype = getattr(y, "dtype", None)
    # An empty array's type depends on no record.
    if dtype is None or np.size(y) == 0:
        return
    kind = getattr(dtype, "kind", "O")
    if is_classifier and labels is not None:
        _check_label_type(y, labels)
    if not is_classifier and (kind in tuple("mMUS") or is_of_words(dtype)):
        raise TypeError(
            f"y must hold numbers; got {dtype}. For labels use a classifier; for numbers stored "
            "as text: pandas.to_numeric(y, errors='coerce')."
        )


def _check_label_type(y: Any, labels: Sequence[Any]) -> None:
    """Raise if the targets have a type that cannot hold any of the declared labels."""
    categories: Any = getattr(y.dtype, "categories", None)
    kind = _kind_of(y)
    if hasattr(categories, "__len__"):
        got, possible = "categories, none of which is a label", _object_column(categories)
    elif kind in NUMBERS:
        numbers = [number for number in map(_number_of, labels) if number is not None]
        if any(not abs(number) < LARGEST_INTEGER for number in numbers):
            return
        # Values of the labels in a numeric type of this kind, and one number that may not be a
        # label.
        plain = np.dtype({"b": np.bool_, "f": np.float64}.get(kind, np.int64))
        possible = np.array([*numbers, 0.0]).astype(plain)
        got = f"numbers ({y.dtype}). The number 1 is not the label '1'"
    elif kind in tuple("mM") and not any(isinstance(one, date | np.datetime64) for one in labels):
        got, possible = f"{y.dtype}", _object_column([None])
    else:
        return
    if possible.size and proper_labels(possible, labels)[1].all():
        raise TypeError(f"y must hold the labels {shown_names(labels)}; got {got}.")


def _kind_of(y: Any) -> str:
    """Return NumPy's code for the kind of a type, or "O" for other types."""
    try:
        return str(getattr(y.dtype, "kind", None) or np.asarray(y[:0]).dtype.kind)
    except Exception:
        return "O"


def _object_column(values: Any) -> NDArray[Any]:
    """Return values as an array of objects."""
    found = np.empty(len(values), dtype=object)
    # Assign one by one, since NumPy treats lists of equal length as rows.
    for place, value in enumerate(values):
        is_single = type(value) is np.ndarray and value.ndim == 0
        found[place] = value.item() if is_single else value
    return found


def _number_of(label: Any) -> float | None:
    try:
        return float(label)
    except (TypeError, ValueError, OverflowError):
        return None


def check_classes(classes: Sequence[Any] | None) -> None:
    """Raise unless a public set of labels is a list of at least two different labels."""
    if classes is None:
        return
    domain = "classes must be at least two different labels"
    if isinstance(classes, str | bytes) or np.ndim(classes) != 1:
        raise TypeError(f"{domain}, in a list; got {shown(classes)}.")
    labels = np.asarray(classes)
    if proper_labels(labels, None)[1].any():
        raise ValueError(f"{domain}, none of them missing; got {shown(classes)}.")
    # Labels are compared as in a fit: 1 and "1" are not told apart there.
    if np.unique(labels).size < max(labels.size, 2):
        raise ValueError(f"{domain}; got {shown(classes)}.")
    if mixes_text(classes):
        raise ValueError(f"{domain}, all text or all numbers; got {shown(classes)}.")
    _check_exact(labels, "classes")


def mixes_text(labels: Sequence[Any]) -> bool:
    """Return whether some labels are text: in an array with them, no number equals a label."""
    texts = [isinstance(label, str | bytes) for label in labels]
    return any(texts) and not all(texts)


def _check_exact(labels: NDArray[Any], name: str) -> None:
    """Raise if a label is a number that other labels' types would round.

    Notes
    -----
    Theorem R5. One missing label turns a column of integers into floats, and from 2^53 on several
    integers become one float.
    """
    if labels.dtype.kind not in f"{NUMBERS}O":
        return
    numbers: list[Any] = [label for label in labels.tolist() if isinstance(label, Number)]
    if not all(abs(number) < LARGEST_INTEGER for number in numbers):
        raise ValueError(
            f"{name} must hold numbers below 2^53 or text as labels; got larger ones. A missing "
            "label would round them. Write them as text, in y, too: y.astype(str)."
        )


def check_given(y: Any, estimator: Any) -> None:
    """Raise unless there are targets."""
    if y is None:
        name = type(estimator).__name__
        raise ValueError(f"{name} requires y to be passed, but the target y is None.")


def check_has_records(n_samples: int, least: int = 1) -> None:
    """Raise if there are fewer records than the least number."""
    if n_samples < least:
        raise ValueError(
            f"X must have records; got {n_samples} sample(s) while a minimum of {least} is "
            "required."
        )


def check_length(n_targets: int, n_samples: int) -> None:
    """Raise unless there is a target for each record."""
    if n_targets != n_samples:
        raise ValueError(
            f"y must be as long as X; got {n_targets} targets for {n_samples} records: "
            "inconsistent numbers of samples."
        )


def label_set(y: NDArray[Any], declared: Any) -> NDArray[Any]:
    """Return the declared labels in order, or else those that occur, at least two; or raise."""
    if declared is not None:
        return np.unique(np.asarray(declared))
    labels = sorted_labels(y)
    _check_exact(labels, "y")
    # Its warnings depend on the labels in the data, so it is not used with declared labels.
    check_classification_targets(y)
    if labels.size < 2:
        raise ValueError(
            "y must have at least two classes, or classes= must name them; got one class."
        )
    return labels


def sorted_labels(y: NDArray[Any]) -> NDArray[Any]:
    """Return the different labels in order, or raise if they cannot be ordered."""
    try:
        return np.unique(y)
    except Exception:
        # Without declared labels, the labels that occur are public, but they are not quoted.
        raise TypeError(
            "y must hold labels of one type, strings or numbers; got several types. Declare the "
            "labels in classes=, so that a record with another one cannot make a fit fail."
        ) from None


def labels_in(y: NDArray[Any]) -> NDArray[Any]:
    """Return the different labels that are not missing, in order and with their natural type."""
    labels = y[~proper_labels(y, None)[1]]
    natural = natural_array(labels.tolist()) if labels.dtype.kind == "O" else None
    labels = labels if natural is None else natural
    check_classification_targets(labels)
    return sorted_labels(labels)


def check_rows_form(X: Any, *, accept_sparse: bool, allow_nd: bool, min_samples: int = 0) -> None:
    """Raise if the form of the data shows that it is not a table of numbers."""
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
    if not any(hasattr(X, name) for name in ("shape", "__len__", "__array__")):
        raise TypeError(f"X must be a table of rows and columns; got {shown(X)}.")
    shape = table_shape(X)
    if len(shape) == 1 or (len(shape) > 2 and not allow_nd) or not shape:
        raise ValueError(
            f"X must be two-dimensional; got shape {shown_shape(shape)}: Expected 2D array. "
            "Reshape your data with X.reshape(-1, 1) if it has a single column, "
            "X.reshape(1, -1) if a single record."
        )
    check_has_records(shape[0], min_samples)
    if 0 in shape[1:]:
        raise ValueError(
            f"X must have columns; got 0 feature(s) (shape={shape}) while a minimum of 1 is "
            "required."
        )


def kind_of_targets(estimator: Any) -> str:
    """Return what an estimator's targets are: "labels", "numbers", or "any" for others."""
    if is_classifier(estimator):
        return "labels"
    return "numbers" if is_regressor(estimator) else "any"


def read_targets(
    y: Any,
    kind: str,
    labels: Sequence[Any] | None,
    improper: Mask | None = None,
    *,
    keeps_column: bool = False,
) -> tuple[NDArray[Any], Mask]:
    """Return targets as a fit reads them, and a mask of improper records.

    Parameters
    ----------
    y : array-like
    kind : {"labels", "numbers", "any"}
        For several labels per record, and for "any" kind, targets are returned as they are.
    labels : sequence or None
        The public label set.
    improper : ndarray of bool, optional
        Mask of records that are improper because of their rows.
    keeps_column : bool, default=False
        Whether a single column stays two-dimensional.

    Notes
    -----
    Theorem R5.
    """
    targets = target_array(y, None)
    if targets.ndim == 2 and targets.shape[1] == 1 and not keeps_column:
        targets = targets[:, 0]
    if improper is None:
        improper = np.zeros(targets.shape[0], dtype=bool)
    if kind == "any" or (kind == "labels" and targets.ndim > 1):
        return targets, improper
    return proper_targets(targets, improper, is_classifier=kind == "labels", labels=labels)


def target_array(y: Any, n_outputs: int | None = 1, *, warns: bool = False) -> NDArray[Any]:
    """Return targets as an array, one-dimensional if there is one target per record."""
    if sparse.issparse(y):
        raise TypeError("y must be dense; got a sparse matrix.")
    if isinstance(y, np.ma.MaskedArray):
        targets = unmasked(y)
    elif hasattr(y, "dtype"):
        # NumPy would change the type of a pandas column because of one missing value.
        is_of_numpy = isinstance(y.dtype, np.dtype)
        if is_of_numpy and y.dtype.kind == "c":
            # One record can make a pandas column complex; an array's type was chosen by the user.
            is_of_numpy = not hasattr(y, "iloc")
        targets = np.asarray(y) if is_of_numpy else np.asarray(y, dtype=object)
    else:
        targets = _array_of_list(y)
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
    check_target_shape(targets.shape, n_outputs)
    return targets


def shown_shape(shape: tuple[int, ...]) -> str:
    """Return a shape without its number of rows, which is secret for persons (Theorem P14)."""
    return f"({', '.join(map(str, ('n_samples', *shape[1:])))})" if shape else "()"


def check_target_shape(shape: tuple[int, ...], n_outputs: int | None) -> None:
    """Raise for targets of a shape that cannot be used by any fit."""
    is_column = len(shape) == 2 and shape[1] == 1
    words = shown_shape(shape)
    if not shape or (n_outputs == 1 and len(shape) != 1 and not is_column):
        raise ValueError(
            f"y should be a 1d array: y must have one target per record; got an array of shape "
            f"{words} instead."
        )
    if len(shape) > 2 or 0 in shape[1:]:
        raise ValueError(f"y must have a row of targets per record; got shape {words}.")


def _array_of_list(values: Any) -> NDArray[Any]:
    """Return a list as an array of its entries' common type, or of objects if there is none."""
    natural = natural_array(values)
    if natural is not None:
        return natural
    # One record with a list must not turn the other records' numbers into lists.
    found = _object_column(values)
    rows = sum(isinstance(value, list | tuple | np.ndarray) for value in found)
    return table_of(values) if 2 * rows > len(found) else found


def _labels_among(y: NDArray[Any], labels: NDArray[Any]) -> tuple[NDArray[Any], Mask]:
    """Return labels as in the set, or its first one for others; and a mask of the others."""
    known = np.unique(labels)
    kinds = y.dtype.kind, known.dtype.kind
    if kinds == ("U", "U") or (kinds[0] in NUMBERS and kinds[1] in NUMBERS):
        places = np.minimum(np.searchsorted(known, y), known.size - 1)
        wrong = known[places] != y
        return known[np.where(wrong, 0, places)], wrong
    # A string among numbers turns all of them into strings, but a number is not a string.
    reads = as_float if kinds[1] in NUMBERS else lambda label: label
    table = {reads(label): place for place, label in enumerate(known.tolist())}
    given, found = y.tolist(), None
    if kinds[1] not in NUMBERS:
        # Much faster than one by one, unless a label is of a type that no table can hold.
        with contextlib.suppress(Exception):
            found = [table.get(label, -1) for label in given]
    if found is None:
        found = [_place(label, reads, table) for label in given]
    places = np.array(found, dtype=np.intp)
    return known[np.maximum(places, 0)], places < 0


def _place(label: Any, reads: Callable[[Any], Any], table: dict[Any, int]) -> int:
    """Return the position of a label in the set, or -1 if it is not in it, whatever its type."""
    try:
        return table.get(reads(label), -1)
    except Exception:
        return -1


def _is_missing(label: Any) -> bool:
    if label is np.ma.masked:
        return True
    try:
        return label is None or bool(label != label)
    except Exception:
        return True


def _first(y: NDArray[Any], wrong: Mask, labels: Sequence[Any] | None) -> Any:
    """Return the label assigned to improper records: the first one of the public set."""
    if labels is not None:
        return np.unique(np.asarray(labels))[0]
    return sorted_labels(y[~wrong])[0] if not wrong.all() else y[0]


# Public weights of classes, relative to the largest: no record's influence grows -------------

_DOMAIN = "class_weight must be a mapping of class to a positive public weight"


def check_class_weight(class_weight: Any, classes: Sequence[Any] | None) -> None:
    """Raise unless weights are public positive numbers of known classes; no data are needed.

    Parameters
    ----------
    class_weight : mapping of class to float, or None
    classes : sequence or None
        The public labels, if they are declared.
    """
    if class_weight is None:
        return
    weights = checked_class_weight(class_weight)
    if classes is not None:
        _check_known(weights, np.unique(np.asarray(classes)))


def weights_of_classes(class_weight: Any, classes: NDArray[Any]) -> NDArray[np.float64] | None:
    """Return the weight of each class divided by the largest, or None if all are equal.

    Parameters
    ----------
    class_weight : mapping of class to float, or None
        A class that is not listed has weight 1, as in scikit-learn.
    classes : ndarray
        The labels of a model; public.

    Returns
    -------
    ndarray of numbers in [0, 1], or None

    Notes
    -----
    Theorem M0.

    Examples
    --------
    >>> import numpy as np
    >>> weights_of_classes({"ill": 10}, np.array(["ill", "well"])).tolist()
    [1.0, 0.1]
    """
    if class_weight is None:
        return None
    weights = checked_class_weight(class_weight)
    _check_known(weights, classes)
    found = np.array([weights.get(label, 1.0) for label in classes.tolist()])
    relative = found / found.max()
    return None if (relative == 1.0).all() else relative


def checked_class_weight(class_weight: Any) -> dict[Any, float]:
    """Return public weights of classes as positive numbers, or raise."""
    if isinstance(class_weight, str) and class_weight == "balanced":
        raise TypeError(
            f"{_DOMAIN}; got 'balanced', which would count private labels. Give weights by public "
            "shares of the classes, such as {'ill': 1 / 0.02, 'well': 1 / 0.98}. For a rare "
            "class, PrivateThreshold around the unweighted classifier is better."
        )
    if not isinstance(class_weight, Mapping) or not class_weight:
        got = "an empty one" if isinstance(class_weight, Mapping) else shown(class_weight)
        raise TypeError(f"{_DOMAIN}; got {got}. Weights computed from the data are not public.")
    return {
        label: check_real(
            weight,
            name=f"class_weight[{shown(label)}]",
            lower=0.0,
            upper=1e9,
            lower_open=True,
            is_entry=True,
        )
        for label, weight in class_weight.items()
    }


def _check_known(weights: Mapping[Any, float], classes: NDArray[Any]) -> None:
    known = set(classes.tolist())
    unknown = [label for label in weights if label not in known]
    if unknown:
        raise ValueError(
            f"class_weight must only name classes of the model; got {shown(unknown[0])}, which "
            f"is not one of {shown_names(classes.tolist())}."
        )


# The public range of a regression's targets --------------------------------------------------

# Largest absolute value of a target; its inverse is the shortest range.
_FARTHEST = 1e100


def target_range(bound: Any) -> tuple[float, float]:
    """Return the range of targets from a bound on their absolute value, or from a pair.

    Parameters
    ----------
    bound : float or tuple (lower, upper)

    Notes
    -----
    Theorem L0.

    Examples
    --------
    >>> target_range(2.0), target_range((100, 140))
    ((-2.0, 2.0), (100.0, 140.0))
    """
    if not isinstance(bound, tuple | list):
        end = check_real(bound, name="target_bound", lower=1.0 / _FARTHEST, upper=_FARTHEST)
        return -end, end
    if any(isinstance(end, tuple | list) for end in bound):
        raise ValueError(
            f"target_bound must be the range of one target; got ranges of {len(bound)} targets. "
            "Fit one model for each target, or use DPRidge."
        )
    if len(bound) != 2:
        raise ValueError(f"target_bound must be a number or a pair; got {shown(bound)}.")
    low, high = (
        check_real(end, name="each end of target_bound", lower=-_FARTHEST, upper=_FARTHEST)
        for end in bound
    )
    if not high - low >= 1.0 / _FARTHEST:
        raise ValueError(
            f"target_bound must have a lower end below the upper one; got {shown(bound)}."
        )
    return low, high


def target_ranges(bound: Any) -> tuple[Any, Any] | tuple[tuple[float, float], ...]:
    """Return the range that `target_range` does, or a tuple of ranges, one for each target.

    Parameters
    ----------
    bound : float, tuple (lower, upper) or sequence of these
        A sequence holds at least one pair, so that two numbers are a range.

    Examples
    --------
    >>> target_ranges(2.0), target_ranges([(0, 1), 3.0])
    ((-2.0, 2.0), ((0.0, 1.0), (-3.0, 3.0)))
    """
    if isinstance(bound, tuple | list) and any(isinstance(one, tuple | list) for one in bound):
        return tuple(target_range(one) for one in bound)
    return target_range(bound)


def check_ranges(ranges: Any, shape: tuple[int, ...]) -> None:
    """Raise unless there is one range, or one for each target in an array of targets."""
    count = np.shape(ranges)[:-1]
    if count not in ((), shape[1:]):
        raise ValueError(
            f"target_bound must be one range, or one for each target; got {count[0]} for y of "
            f"shape {shown_shape(shape)}."
        )


def middle_and_half(low: Any, high: Any) -> tuple[Any, Any]:
    """Return the middle of a range and half of its length; 0 and b for the range from -b to b."""
    return low / 2 + high / 2, high / 2 - low / 2
