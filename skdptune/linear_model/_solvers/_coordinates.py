"""Coordinates in which a descent runs: a public linear map from them to the weights."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from skdptune.linear_model._solvers._design import Design

# More than what rounding does to a norm.
_ROUNDING = 1.0 + 1e-9
# Numbers of dense rows that are in memory at once.
_NUMBERS_AT_ONCE = 1 << 21


class Coordinates:
    """The map from a descent's coordinates to weights, and what it does to gradients and norms.

    Parameters
    ----------
    basis : ndarray of shape (width,) or (width, width), or None
        Matrix ``A``, or its diagonal: ``weights = A coordinates``. None stands for the identity.
    design : Design
        Rows ``z``.
    shrinkage : ndarray of shape (width, 1)
        Weights ``s`` of ``sum(s * weights**2) / 2``, times the length of a step.

    Attributes
    ----------
    squared_norms : ndarray of shape (n_samples,) or None
        Squared norms of the rows ``A' z``, a little more rather than less; infinite where they
        overflow. None stands for those of the design.

    Notes
    -----
    Theorem M5, Theorem M7.

    The loss of a record depends on ``z . A v``, so that its gradient by ``v`` is ``A'`` times that
    by the weights, of norm ``|A' z| |r|`` for residuals ``r``.

    Examples
    --------
    >>> design = Design.clipped(np.array([[3.0, 4.0]]), norm=9.0, intercept=False)
    >>> coordinates = Coordinates(np.array([2.0, 1.0]), design, np.zeros((2, 1)))
    >>> coordinates.squared_norms.round(6).tolist()
    [52.0]
    >>> coordinates.weights(np.ones((2, 1))).tolist()
    [[2.0], [1.0]]
    """

    def __init__(self, basis: np.ndarray | None, design: Design, shrinkage: np.ndarray) -> None:
        self._basis = None if basis is None else _checked(basis, design.width)
        self._shrinkage = shrinkage
        self.squared_norms = None
        if self._basis is not None:
            pieces = _pieces(design, self._basis.ndim == 2)
            squares = [np.zeros(0), *(self._squares(*piece) for piece in pieces)]
            found = np.concatenate(squares) * _ROUNDING
            # Infinite in place of NaN: a row whose norm overflows moves nothing.
            self.squared_norms = np.where(np.isnan(found), np.inf, found)

    def weights(self, point: np.ndarray) -> np.ndarray:
        """Return the weights of coordinates of shape (width, n_outputs)."""
        if self._basis is None:
            return point
        if self._basis.ndim == 1:
            return self._basis[:, None] * point
        return self._basis @ point

    def of(self, weights: np.ndarray) -> np.ndarray:
        """Return the coordinates of weights."""
        if self._basis is None or not weights.any():
            return weights
        if self._basis.ndim == 1:
            return weights / self._basis[:, None]
        return np.linalg.solve(self._basis, weights)

    def gradient(self, gradient: np.ndarray) -> np.ndarray:
        """Return the gradient by coordinates from that by weights."""
        if self._basis is None:
            return gradient
        if self._basis.ndim == 1:
            return self._basis[:, None] * gradient
        return self._basis.T @ gradient

    def shrunk(self, point: np.ndarray) -> np.ndarray:
        """Return the coordinates nearest to a point, in half the square, and of small weights."""
        return self._shrinker * point if self._shrinker.shape[1] == 1 else self._shrinker @ point

    @cached_property
    def _shrinker(self) -> np.ndarray:
        assert self._basis is not None
        if self._basis.ndim == 1:
            return 1.0 / (1.0 + self._shrinkage * self._basis[:, None] ** 2)
        squares = self._basis.T @ (self._shrinkage * self._basis)
        return np.linalg.inv(np.eye(len(squares)) + squares)

    def _squares(self, rows: Any, scale: np.ndarray, last: float) -> np.ndarray:
        """Return the squared norms of rows that are to be scaled and end with a constant."""
        basis, width = self._basis, rows.shape[1]
        assert basis is not None
        with np.errstate(all="ignore"):
            if basis.ndim == 1:
                squares = rows.multiply(rows) if sparse.issparse(rows) else rows * rows
                squares = np.asarray(squares @ basis[:width] ** 2) * scale**2
                return squares + last * float((basis[width:] ** 2).sum())
            moved = (rows @ basis[:width]) * scale[:, None] + last * basis[width:].sum(axis=0)
            return np.einsum("ij,ij->i", moved, moved)


def _pieces(design: Design, dense: bool) -> Iterator[tuple[Any, np.ndarray, float]]:
    """Iterate over pieces of the rows as float64, their scales, and the constant that follows."""
    size = max(1, _NUMBERS_AT_ONCE // design.width)
    if not dense and sparse.issparse(design.rows):
        size = max(1, design.n_samples)
    for start in range(0, design.n_samples, size):
        part = slice(start, start + size)
        rows = design.rows[part]
        if dense and sparse.issparse(rows):
            rows = rows.toarray()
        yield rows.astype(np.float64, copy=False), design.scale[part], float(design.intercept)


def _checked(basis: np.ndarray, width: int) -> np.ndarray:
    basis = np.asarray(basis, dtype=np.float64)
    if basis.shape not in ((width,), (width, width)):
        raise ValueError(
            f"basis must be of shape ({width},) or ({width}, {width}); got shape {basis.shape}."
        )
    return basis
