"""Sums of clipped gradients that are exact, for rows that lie in parts.

All products are of whole numbers below 2^53, which doubles add up exactly in any order. So a sum
does not depend on the parts (Theorem R10), and no record changes the rounding of others.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from skdptune.base._shared import squared_norms
from skdptune.linear_model._solvers._design import Design
from skdptune.linear_model._solvers._noisy_gradient import Residuals

# Rows, and rows in the coordinates of a descent, have whole entries and at most this length.
_ROW_BITS = 20
# The same for columns of a basis and of a point.
_POINT_BITS = 32
# The same for a record's residuals, which are added up in two halves.
_RESIDUAL_BITS = 40
_HALF = 2.0**20
# At most 2^12, so that the products of rows have a sum below 2^53.
_ROWS = 1 << 11
# Slightly less than 1, so that no rounding makes a gradient longer than the clipping norm.
_SHORTER = 1.0 - 2.0**-40
_ROUNDED_UP = 1.0 + 2.0**-30
_LEAST_EXPONENT = -900
_TINY = 1e-140


def cut_basis(basis: np.ndarray) -> np.ndarray:
    """Return a basis of which entries have at most 32 bits relative to the longest column.

    Examples
    --------
    >>> float(cut_basis(np.array([[1.0 + 2.0**-40]]))[0, 0])
    1.0
    """
    if basis.ndim == 1:
        return basis
    units, scale = _in_units(basis, _length(basis), _POINT_BITS)
    return units * scale


@dataclass(frozen=True)
class ExactGradients:
    """The sum of a chunk's gradients by coordinates, each clipped to a norm.

    Attributes
    ----------
    problem_of : callable
        From labels 0, 1, ... and the number of outputs to residuals, as in `ClippedGradients`, and
        targets.
    basis : ndarray of shape (width, width) or (width,)
        From `cut_basis`: weights are this matrix, or diagonal matrix, times the coordinates.
    limit : float
        The norm to which gradients are clipped.
    point : ndarray of shape (width, n_outputs)
        Coordinates.

    Notes
    -----
    Theorem R10, Theorem M5. Rows ``A' z`` are cut to whole multiples of 2^-20 of the next power of
    two above their length, and residuals to multiples of about 2^-40 of the largest that the limit
    allows. Both cuts are towards zero, so no gradient becomes longer.

    Examples
    --------
    >>> from skdptune.linear_model._solvers import softmax_residuals
    >>> design = Design.clipped(np.array([[3.0, 4.0], [0.0, 0.5]]), norm=5.0, intercept=False)
    >>> sums = ExactGradients(
    ...     lambda codes, outputs: (softmax_residuals, codes), np.ones(2), 1.0, np.zeros((2, 2))
    ... )
    >>> sums.of_total(sums(design, np.array([0, 1]))).round(3).tolist()
    [[-0.424, 0.424], [-0.316, 0.316]]
    """

    problem_of: Callable[[np.ndarray, int], tuple[Residuals, np.ndarray]]
    basis: np.ndarray
    limit: float
    point: np.ndarray

    def __call__(self, design: Design, codes: np.ndarray) -> np.ndarray:
        """Return the sum over a chunk, as integers (objects) of shape (width, n_outputs)."""
        outputs = self.point.shape[1]
        residuals_of, targets = self.problem_of(codes, outputs)
        total = np.zeros(self.point.shape, dtype=object)
        if not math.isfinite(_length(self.point)):
            # A descent that diverged. Sums that overflow would depend on the number of rows.
            return total
        point, point_scale = _in_units(self.point, _length(self.point), _POINT_BITS)
        for start in range(0, design.n_samples, _ROWS):
            part = slice(start, start + _ROWS)
            rows, scale, norms = self._moved(design, part)
            decision = rows @ point
            decision *= scale * point_scale
            residuals = np.array(residuals_of(decision, targets[part]), dtype=np.float64)
            residuals = self._clipped(residuals.reshape(decision.shape), norms)
            if design.weights is not None:
                residuals *= design.weights[part, None]
            residuals *= scale
            units = np.trunc(residuals / self.limit * 2.0 ** (_ROW_BITS + _RESIDUAL_BITS - 1))
            high = np.trunc(units / _HALF)
            sums = rows.T @ np.concatenate([high, units - high * _HALF], axis=1)
            whole = sums.astype(np.int64).astype(object)
            total += whole[:, :outputs] * int(_HALF) + whole[:, outputs:]
        return total

    def of_total(self, total: np.ndarray) -> np.ndarray:
        """Return the sum of all records' gradients, from the total of all chunks."""
        unit = self.limit * 2.0 ** (1 - _ROW_BITS - _RESIDUAL_BITS)
        return np.array(total, dtype=np.float64) * unit

    def _moved(self, design: Design, part: slice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return rows in the coordinates: whole numbers, and powers of two that scale them.

        The third result are their norms, rounded up.
        """
        given, factor = design.rows[part], 1.0
        if self.basis.ndim == 2:
            factor = _to_bits(np.sqrt(design.squared_norms[part]), _ROW_BITS)
        rows = np.empty((given.shape[0], design.width))
        rows[:, given.shape[1] :] = np.reshape(factor, (-1, 1))
        np.multiply(given, (design.scale[part] * factor)[:, None], out=rows[:, : given.shape[1]])
        if self.basis.ndim == 1:
            scale, moved = 1.0, np.multiply(rows, self.basis, out=rows)
        else:
            basis, basis_scale = self._basis_units
            scale, moved = basis_scale / factor, np.trunc(rows, out=rows) @ basis
        lengths = np.sqrt(squared_norms(moved))
        # A row whose norm overflows changes nothing.
        moved[~np.isfinite(lengths)] = 0.0
        norms = np.where(np.isfinite(lengths), lengths, 0.0) * scale * _ROUNDED_UP
        factor = _to_bits(lengths, _ROW_BITS)
        moved *= factor[:, None]
        return np.trunc(moved, out=moved), (scale / factor)[:, None], norms

    @cached_property
    def _basis_units(self) -> tuple[np.ndarray, float]:
        return _in_units(self.basis, _length(self.basis), _POINT_BITS)

    def _clipped(self, residuals: np.ndarray, norms: np.ndarray) -> np.ndarray:
        """Return residuals whose gradients, for rows with these norms, are within the limit."""
        # The squares of smaller residuals would be 0.
        residuals[~np.isfinite(residuals).all(axis=1)] = 0.0
        residuals[np.abs(residuals) < _TINY] = 0.0
        norms = norms * np.sqrt(squared_norms(residuals))
        residuals *= np.minimum(1.0, self.limit * _SHORTER / np.maximum(norms, 1e-300))[:, None]
        # Smaller residuals have too few digits, and their squares underflow.
        residuals[np.abs(residuals) < _TINY] = 0.0
        return residuals


def _length(columns: np.ndarray) -> float:
    """Return the length of the longest column."""
    largest = float(np.abs(columns).max(initial=0.0))
    if not 0.0 < largest < math.inf:
        return largest
    columns = columns / largest
    return largest * float(np.sqrt((columns * columns).sum(axis=0)).max())


def _to_bits(lengths: Any, bits: int) -> Any:
    """Return powers of two that scale lengths to at most ``2**bits``, and above half of it."""
    finite = np.where(np.isfinite(lengths), lengths, 0.0)
    exponents = np.frexp(finite * _ROUNDED_UP)[1]
    return np.ldexp(1.0, bits - np.maximum(exponents, _LEAST_EXPONENT))


def _in_units(columns: np.ndarray, length: float, bits: int) -> tuple[np.ndarray, float]:
    """Return whole numbers, and the power of two that scales them."""
    factor = float(_to_bits(length, bits))
    return np.trunc(columns * factor), 1.0 / factor
