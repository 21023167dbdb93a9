"""Transformers that learn nothing from data, because the user gives bounds and norms."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin

from skdptune._formatting import shown
from skdptune._validation import NamedArguments, check_integer, check_real
from skdptune.accounting import PrivacyProfile, PrivacyReport
from skdptune.base._shared import PrivateRows, rows_with_gaps, squared_norms, validate_rows

# Bounds on features, which must be public ----------------------------------------------------

_DOMAIN = "a pair (lower, upper) of numbers, or of arrays with one number per feature"
_WHY = (
    "Bounds must be known without looking at the data, such as (0, 120) for an age: bounds "
    "computed from the data reveal its extreme records. Values beyond them are clipped."
)


def check_bounds(bounds: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return lower and upper bounds as arrays of zero or one dimension, or raise."""
    if bounds is None:
        raise ValueError(f"bounds must be {_DOMAIN}; got None. {_WHY}")
    try:
        low, high = (np.asarray(side, dtype=np.float64) for side in bounds)
    except (TypeError, ValueError):
        raise ValueError(f"bounds must be {_DOMAIN}; got {shown(bounds)}. {_WHY}") from None
    if low.ndim > 1 or high.ndim > 1 or (low.ndim and high.ndim and low.size != high.size):
        raise ValueError(
            f"bounds must be {_DOMAIN}; got arrays of shapes {low.shape} and {high.shape}. {_WHY}"
        )
    if not (np.isfinite(low).all() and np.isfinite(high).all() and np.all(low < high)):
        raise ValueError(f"bounds must be finite, lower below upper; got {shown(bounds)}. {_WHY}")
    return low, high


def bounds_per_feature(bounds: Any, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """Return bounds with one number for each feature, or raise if the numbers do not match."""
    low, high = check_bounds(bounds)
    for side in (low, high):
        if side.ndim and side.size != n_features:
            raise ValueError(
                f"bounds must be one number, or one per feature, of {n_features} features; got "
                f"{side.size} numbers."
            )
    shape = (n_features,)
    return np.broadcast_to(low, shape).copy(), np.broadcast_to(high, shape).copy()


def check_feature_range(feature_range: Any) -> tuple[float, float]:
    """Return the range to which features are mapped, or raise."""
    try:
        low, high = (float(end) for end in feature_range)
    except (TypeError, ValueError):
        low, high = np.nan, np.nan
    if not (low < high and np.isfinite(low) and np.isfinite(high)):
        raise ValueError(
            f"feature_range must be a pair of finite numbers, the first smaller; "
            f"got {shown(feature_range)}."
        )
    return low, high


# Transformers --------------------------------------------------------------------------------

FLOATS = ("float64", "float32")


class FreeTransformer(TransformerMixin, NamedArguments, BaseEstimator):
    """A transformer that processes each record separately, at no privacy cost."""

    # Whether rows may lie in parts (Theorem R10). A class that answers by `_input_refusal` takes
    # groups in its fit as well, which these do not.
    _takes_parts: ClassVar[bool] = True
    # The cost is zero for all parameters.
    cost_parameters: frozenset[str] = frozenset()

    def privacy_profile(self, n_samples: int, n_features: int | None = None) -> PrivacyProfile:
        """Return the privacy cost of fitting, which is zero for all data.

        Parameters
        ----------
        n_samples : int
            Number of records.
        n_features : int, optional
            Number of columns.
        """
        check_integer(n_samples, name="n_samples", lower=1)
        return PrivacyProfile.pure(0.0)


class StatelessTransformer(OneToOneFeatureMixin, FreeTransformer):
    """A transformer of numeric columns that costs nothing.

    A subclass validates its parameters in ``_check_parameters``, and transforms in ``transform``.
    """

    _accept_sparse: Any = False

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check the parameters and the form of the table; no entry is read.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or PrivateRows
        y : None
            Ignored.

        Returns
        -------
        self
        """
        self._check_parameters()
        # Theorem R5. The fit costs nothing, so it must learn nothing, not even which entries are
        # finite.
        if isinstance(X, PrivateRows):
            X.check_columns(self)
        else:
            validate_rows(self, X, accept_sparse=bool(self._accept_sparse))
        self._check_width(self.n_features_in_)
        self.privacy_ = PrivacyReport(self.privacy_profile(1), 0.0, name=type(self).__name__)
        return self

    def _check_parameters(self) -> None:
        raise NotImplementedError

    def _check_width(self, n_features: int) -> None:
        """Raise if the parameters do not match the number of features."""

    def _rows(self, X: Any) -> Any:
        # Theorem R5: an improper record is passed on as a row of NaN.
        return rows_with_gaps(self, X, accept_sparse=bool(self._accept_sparse))

    def __sklearn_tags__(self) -> Any:
        """Declare that fitting is optional."""
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.sparse = bool(self._accept_sparse)
        tags.transformer_tags.preserves_dtype = list(FLOATS)
        return tags


class BoundedScaler(StatelessTransformer):
    """Clip each feature to known bounds, and map these to a given range.

    MinMaxScaler learns the bounds from the data. Here, they are given, so nothing is learned and
    the privacy cost is zero.

    Parameters
    ----------
    bounds : tuple (lower, upper)
        Lower and upper bounds: numbers, or arrays with one number per feature. Required, and must
        be known without looking at the data.
    feature_range : tuple (low, high), default=(0, 1)
        Range to which the bounds are mapped.

    Attributes
    ----------
    privacy_ : PrivacyReport
        Reports a privacy cost of zero.
    n_features_in_ : int
        Number of features seen during ``fit``.
    feature_names_in_ : ndarray of str
        Names of the features, if they have names.

    Notes
    -----
    For linear regressions and neural nets, use ``feature_range=(-2, 2)``. They expect features
    whose middle is about 0 and whose size is about 1. For pixels, use (-1, 1).

    Examples
    --------
    >>> from skdptune.preprocessing import BoundedScaler
    >>> scaler = BoundedScaler(bounds=([0, 0], [120, 1000]))
    >>> scaler.fit_transform([[30, 250], [150, -1]])
    array([[0.25, 0.25],
           [1.  , 0.  ]])
    """

    def __init__(self, bounds: Any = None, feature_range: tuple[float, float] = (0, 1)) -> None:
        self.bounds = bounds
        self.feature_range = feature_range

    def transform(self, X: Any) -> Any:
        """Return the features, clipped and mapped to `feature_range`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or PrivateRows
            A record with any entry that is not a finite number becomes a row of NaN.

        Returns
        -------
        ndarray of shape (n_samples, n_features), or PrivateRows
        """
        self._check_parameters()
        if isinstance(X, PrivateRows):
            return X.transformed(self, X.width)
        rows = self._rows(X)
        low, high = bounds_per_feature(self.bounds, rows.shape[1])
        return _mapped(rows, (low, high), check_feature_range(self.feature_range))

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Map the features back to the bounds; clipped values stay clipped.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        self._check_parameters()
        rows = self._rows(X)
        low, high = bounds_per_feature(self.bounds, rows.shape[1])
        return _mapped(rows, check_feature_range(self.feature_range), (low, high))

    def _check_parameters(self) -> None:
        check_bounds(self.bounds)
        check_feature_range(self.feature_range)

    def _check_width(self, n_features: int) -> None:
        bounds_per_feature(self.bounds, n_features)


def _mapped(rows: np.ndarray, source: tuple[Any, Any], target: tuple[Any, Any]) -> np.ndarray:
    # Subtract halves of the bounds, since the difference of two finite numbers may overflow.
    share = (np.clip(rows, *source) / 2 - source[0] / 2) / (source[1] / 2 - source[0] / 2)
    mapped = (target[0] * (1 - share) + target[1] * share).astype(rows.dtype)
    return np.clip(mapped, *target).astype(rows.dtype, copy=False)


class RowNormClipper(StatelessTransformer):
    """Clip rows to a Euclidean norm: longer rows are scaled down to it, others stay unchanged.

    The influence of a record on a linear model grows with the norm of its row, so private linear
    models need a bound on it. Each record is processed separately, which costs nothing.

    Parameters
    ----------
    norm : float, default=1.0
        Largest Euclidean norm of a row, in [1e-100, 1e100].

    Attributes
    ----------
    privacy_ : PrivacyReport
        Reports a privacy cost of zero.
    n_features_in_ : int
        Number of features seen during ``fit``.
    feature_names_in_ : ndarray of str
        Names of the features, if they have names.

    Notes
    -----
    Rounding errors cannot make a returned row longer than `norm`: rows are scaled to a few units
    in the last place below it.

    Examples
    --------
    >>> from skdptune.preprocessing import RowNormClipper
    >>> RowNormClipper(norm=1.0).fit_transform([[3.0, 4.0], [0.3, 0.4]]).round(3)
    array([[0.6, 0.8],
           [0.3, 0.4]])
    """

    _accept_sparse = "csr"

    def __init__(self, norm: float = 1.0) -> None:
        self.norm = norm

    def transform(self, X: Any) -> Any:
        """Return the rows, scaled so that none is longer than `norm`.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features), or PrivateRows
            A record with any entry that is not a finite number becomes a row of NaN.

        Returns
        -------
        {ndarray, CSR matrix} of shape (n_samples, n_features), or PrivateRows
        """
        self._check_parameters()
        if isinstance(X, PrivateRows):
            return X.transformed(self, X.width)
        rows = self._rows(X)
        if not sparse.issparse(rows):
            return _clipped(rows, self.norm)
        rows = rows.copy()
        rows.data = _clipped_data(rows.data, rows.indptr, rows.shape[1], self.norm)
        return rows

    def _check_parameters(self) -> None:
        check_real(self.norm, name="norm", lower=1e-100, upper=1e100)


def _clipped(rows: np.ndarray, norm: float) -> np.ndarray:
    peaks = np.abs(rows).max(axis=1)
    unit = rows / np.where(peaks > 0.0, peaks, 1.0)[:, None]
    # After division by the largest entry, squares cannot overflow, and underflow is harmless.
    lengths = np.sqrt(squared_norms(unit))
    radius = _safe_norm(norm, rows.shape[1], rows.dtype) / np.maximum(lengths, 1.0)
    short = peaks <= radius
    return np.where(short[:, None], rows, unit * radius[:, None].astype(rows.dtype))


def _clipped_data(data: np.ndarray, starts: np.ndarray, width: int, norm: float) -> np.ndarray:
    """Return the entries of a CSR matrix, clipped row by row."""
    counts = np.diff(starts)
    row = np.repeat(np.arange(counts.size), counts)
    peaks = np.zeros(counts.size, dtype=data.dtype)
    np.maximum.at(peaks, row, np.abs(data))
    unit = data / np.where(peaks > 0.0, peaks, 1.0)[row]
    squares = np.bincount(row, weights=unit.astype(np.float64) ** 2, minlength=counts.size)
    radius = _safe_norm(norm, width, data.dtype) / np.maximum(np.sqrt(squares), 1.0)
    short = peaks <= radius
    return np.where(short[row], data, unit * radius[row].astype(data.dtype))


def _safe_norm(norm: float, width: int, dtype: np.dtype) -> float:
    """Return the norm minus the rounding errors of summing squares and scaling."""
    wide, own = np.finfo(np.float64).eps, np.finfo(dtype).eps
    return norm * max(1.0 - width * wide - 4.0 * own, 0.5)
