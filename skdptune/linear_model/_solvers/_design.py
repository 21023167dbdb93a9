"""The rows of a linear model: clipped, with an intercept, dense or sparse, without a copy."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

# Slightly less than 1, so that no rounding breaks the guarantee's premise.
_SHRINKAGE = 1.0 - 16.0 * float(np.finfo(np.float64).eps)
# The products of longer rows may overflow, and then fail for all records.
_LONGEST = 1e100


@dataclass(frozen=True)
class Design:
    """Rows ``(scale_i * x_i, 1)``, or without the 1, as a linear operator.

    Attributes
    ----------
    rows : ndarray or CSR matrix of shape (n_samples, n_features)
        The given data, except that rows longer than 1e100 are clipped here already.
    scale : ndarray of shape (n_samples,)
        Factor in (0, 1] that brings a row's norm down to the bound.
    squared_norms : ndarray of shape (n_samples,)
        Squared norm of each clipped row, the intercept's 1 included.
    intercept : bool
        Whether a constant 1 follows the features.
    weights : ndarray of shape (n_samples,) or None
        Factor in [0, 1] of each record's loss, or of its gradient after clipping; None means ones.
    """

    rows: Any
    scale: np.ndarray
    squared_norms: np.ndarray
    intercept: bool
    weights: np.ndarray | None = None

    @classmethod
    def clipped(cls, rows: Any, norm: float, intercept: bool) -> Design:
        """Return the design of rows clipped to a norm; each row is clipped independently."""
        # Theorem M0: rows are shortened to a public norm, one at a time.
        with np.errstate(over="ignore"):
            lengths = np.sqrt(_squared_norms(rows))
        huge = np.flatnonzero(~(lengths <= _LONGEST))
        if huge.size:
            rows = _with_short_rows(rows, huge, min(norm, _LONGEST) * _SHRINKAGE)
            lengths = np.sqrt(_squared_norms(rows))
        tiny = np.finfo(np.float64).tiny
        scale = np.minimum(1.0, norm * _SHRINKAGE / np.maximum(lengths, tiny))
        return cls(rows, scale, (lengths * scale) ** 2 + float(intercept), intercept)

    def weighted(self, weights: np.ndarray | None) -> Design:
        """Return the design with a weight in [0, 1] for each record, independent of the others."""
        # Theorem M0: the bound on a record's influence does not grow.
        if weights is None:
            return self
        if weights.shape != (self.n_samples,) or not ((weights >= 0) & (weights <= 1)).all():
            raise ValueError(f"weights must be {self.n_samples} numbers in [0, 1]; got others.")
        return replace(self, weights=weights)

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return int(self.rows.shape[0])

    @property
    def width(self) -> int:
        """Number of coefficients of one linear function, the intercept included."""
        return int(self.rows.shape[1]) + int(self.intercept)

    def take(self, index: np.ndarray | slice) -> Design:
        """Return the design of some of the rows."""
        weights = None if self.weights is None else self.weights[index]
        return Design(
            self.rows[index],
            self.scale[index],
            self.squared_norms[index],
            self.intercept,
            weights,
        )

    def times_weights(self, values: np.ndarray) -> np.ndarray:
        """Return values (n_samples,) or (n_samples, k) times the weight of each record."""
        if self.weights is None:
            return values
        return values * (self.weights if values.ndim == 1 else self.weights[:, None])

    def decision(self, weights: np.ndarray) -> np.ndarray:
        """Return the rows times weights of shape (width,) or (width, n_outputs)."""
        features = weights[:-1] if self.intercept else weights
        product = np.asarray(self.rows @ features)
        product = product * (self.scale if product.ndim == 1 else self.scale[:, None])
        return product + weights[-1] if self.intercept else product

    def gradient(self, residuals: np.ndarray) -> np.ndarray:
        """Return the sum of residual times row, for residuals (n_samples,) or (n_samples, k)."""
        scale = self.scale if residuals.ndim == 1 else self.scale[:, None]
        product = np.asarray(self.rows.T @ (residuals * scale))
        if not self.intercept:
            return product
        last = np.reshape(residuals.sum(axis=0), (1, *residuals.shape[1:]))
        return np.concatenate([product, last])


def row_norm(data_norm: float | None, n_features: int | None) -> float:
    """Return the bound on a row's norm: the given one, or about that of standardised features."""
    if data_norm is not None:
        return float(data_norm)
    if n_features is None:
        raise ValueError(
            "data_norm must be given if n_features is not; got None. Its default is "
            "sqrt(n_features), about the norm of a row of standardised features."
        )
    return math.sqrt(n_features)


def _with_short_rows(rows: Any, chosen: np.ndarray, norm: float) -> Any:
    """Return a copy in which each of the chosen long rows has the given norm."""
    rows = rows.copy()
    for index in chosen:
        own = slice(rows.indptr[index], rows.indptr[index + 1]) if sparse.issparse(rows) else index
        entries = rows.data if sparse.issparse(rows) else rows
        row = entries[own] / np.abs(entries[own]).max()
        entries[own] = row * (norm / float(np.linalg.norm(row)))
    return rows


def _squared_norms(rows: Any) -> np.ndarray:
    if sparse.issparse(rows):
        squares = rows.astype(np.float64)
        squares.data **= 2
        return np.asarray(squares.sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
