"""Rows clipped to a Euclidean norm, which bounds the influence of a record."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from skdptune._validation import check_real
from skdptune.preprocessing._stateless import StatelessTransformer


class RowNormClipper(StatelessTransformer):
    """Clip rows to a Euclidean norm: scale longer rows down to it, leave the others unchanged.

    The influence of a record on a linear model grows with the norm of its row, so that private
    linear models need a bound on it. Each record is treated by itself, which costs nothing.

    Parameters
    ----------
    norm : float, default=1.0
        Largest Euclidean norm of a row, in [1e-100, 1e100].

    Attributes
    ----------
    privacy_ : PrivacyReport
        States a cost of zero.
    n_features_in_ : int
        Number of features seen during ``fit``.
    feature_names_in_ : ndarray of str
        Names of the features, where they had names.

    Notes
    -----
    The norm of what is returned exceeds `norm` by no rounding error: rows are scaled to a few
    units in the last place below it.

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
        """Return the rows, none longer than `norm`.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            A record that holds anything but finite numbers comes out as a row of NaN.

        Returns
        -------
        {ndarray, CSR matrix} of shape (n_samples, n_features)
        """
        self._check_parameters()
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
    # Divided by the largest entry, no square overflows and none that matters underflows.
    lengths = np.sqrt(np.einsum("ij,ij->i", unit, unit, dtype=np.float64))
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
    """Return the norm less the rounding errors of summing squares and scaling."""
    wide, own = np.finfo(np.float64).eps, np.finfo(dtype).eps
    return norm * max(1.0 - width * wide - 4.0 * own, 0.5)
