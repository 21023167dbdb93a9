"""The sums that a ridge regression needs, from one pass over the data."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from skdptune._validation import check_flag, check_kind, check_real
from skdptune.base._shared import (
    Persons,
    PrivateRows,
    Records,
    check_ranges,
    check_target_type,
    finite_rows,
    middle_and_half,
    rows_by_weight,
    table_shape,
    target_ranges,
)
from skdptune.mechanisms._shared import WHOLE

# The constant feature of an intercept, in units of the longest row. A larger one would add more to
# the norm of rows, and therefore to the noise; it is a power of 2, so that its sums are exact.
CONSTANT = 0.5
# Entries are cut to multiples of 2^-20 of the bound: products of two are whole multiples of
# 2^-40, and 2^12 of them sum below 2^53, where doubles count exactly in any order.
UNIT = 2.0**20
BLOCK = 2**12
# Attributes that two sums must share, and those that they must share once they have records.
_BOUNDS = ("data_norm", "target_range", "fit_intercept")
_FORM = ("n_features_in_", "_form", "_whole")
# Number of blocks of at most 2^52 whose sum a 64-bit integer can hold.
_MOST_BLOCKS = 2**10
_ROUNDING = 1.0 + 1e-6
# Slightly less than 1, so that rounding does not make a row longer than its bound.
_SHRINKAGE = 1.0 - 16.0 * float(np.finfo(np.float64).eps)


BlockFunction = Callable[[Iterator[np.ndarray]], np.ndarray]


class SufficientStatistics:
    r"""Sums of products of rows and targets, in chunks, to which private regressions are fitted.

    Each row is shortened to norm `data_norm` and each target clipped to `target_bound`, one at a
    time. With an intercept, targets are then measured from the middle of their range. Data that do
    not fit in memory are added chunk by chunk, or in parts whose sums are added up: ``a + b``. The
    sums are exact, so neither chunks nor parts nor their order make a difference. **They are not
    private**: pass them to ``fit_statistics`` of a private regression, whose result is.

    Parameters
    ----------
    data_norm : float
        Bound on the norm of a row.
    target_bound : float, tuple (lower, upper) or sequence of these
        Bound on the absolute value of a target, or its public range; a sequence of ranges has one
        for each of several targets.
    fit_intercept : bool, default=True
        Whether rows end with a constant feature, half as large as `data_norm`.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns; known after the first chunk.
    n_samples : int
        Number of records so far.

    Notes
    -----
    Theorem L0, Theorem L9, Theorem R5.

    Entries are rounded towards zero to multiples of ``data_norm * 2**-20`` (targets: of half of
    their range, times ``2**-20``) before they are multiplied. This does not increase any norm, all
    sums are integers, and one record changes them only by its own products. A float sum does not
    have this property: an additional record may change the rounding of all others.

    Examples
    --------
    >>> import numpy as np
    >>> from skdptune.linear_model import PTRLinearRegression, SufficientStatistics
    >>> rng = np.random.default_rng(0)
    >>> sums = SufficientStatistics(data_norm=2.0, target_bound=1.0)
    >>> for _ in range(3):
    ...     X = rng.uniform(-1, 1, size=(1000, 3))
    ...     sums = sums.update(X, X @ [0.3, 0.2, -0.1])
    >>> model = PTRLinearRegression(data_norm=2.0, target_bound=1.0, random_state=0)
    >>> model.fit_statistics(sums).coef_.shape
    (3,)
    """

    def __init__(
        self,
        data_norm: float,
        target_bound: Any,
        fit_intercept: bool = True,
    ) -> None:
        self.data_norm = check_bound(data_norm, name="data_norm")
        self.target_bound = target_bound
        self.target_range = target_ranges(target_bound)
        check_flag(fit_intercept, name="fit_intercept")
        self.fit_intercept = bool(fit_intercept)
        self.n_samples = 0
        self._blocks = 0
        # Weight of a record in the sums.
        self._whole = 1

    def update(self, X: Any, y: Any) -> SufficientStatistics:
        """Add a chunk of records.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Real numbers of any precision; read once, block by block, and not changed. A record
            with entries that are not finite numbers counts as a row of zeros with the target 0.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)

        Returns
        -------
        self
        """
        X, y = self._checked_chunk(X, y)
        self._add_rows(X, y, 1)
        self.n_samples += X.shape[0]
        return self

    def _add_by_weight(
        self, X: Any, y: Any, weights: Iterable[tuple[int, Any]]
    ) -> SufficientStatistics:
        """Add rows with integer weights, of which a record has `WHOLE` in all.

        Parameters
        ----------
        X, y
            See `update`.
        weights : iterable of (int, index)
            The different weights, and the places of the rows that have them.

        Notes
        -----
        Theorem P14. Products of rows are added up exactly for each weight, and then multiplied by
        it as integers.
        """
        X, y = self._checked_chunk(X, y)
        self._start(X.shape[1], y.shape[1:])
        self._whole = WHOLE
        for weight, places in weights:
            self.add_weighted(X[places], y[places], weight)
        return self

    def add_weighted(self, X: np.ndarray, y: np.ndarray, weight: int) -> None:
        """Add rows of equal weight; the weights of a record's rows sum to at most `WHOLE`."""
        self._whole = WHOLE
        self._add_rows(X, y, weight)
        self._flush(weight)

    def merge(self, other: SufficientStatistics) -> SufficientStatistics:
        """Add the sums over other records, such as those of another file or machine.

        Parameters
        ----------
        other : SufficientStatistics
            Made with the same `data_norm`, `target_bound` and `fit_intercept`. It does not change.

        Returns
        -------
        self

        Notes
        -----
        Theorem L9: all sums are integers, so the result has the same bits as that of one pass.
        Each record must be in exactly one of the two.
        """
        check_kind(other, name="other", kind=SufficientStatistics, domain="SufficientStatistics")
        have_records = hasattr(self, "n_features_in_") and hasattr(other, "n_features_in_")
        for name in (*_BOUNDS, *(_FORM if have_records else ())):
            if getattr(self, name) != getattr(other, name):
                raise ValueError(
                    "other must have the same data_norm, target_bound, fit_intercept and columns "
                    f"as these sums; got another {name.strip('_')}."
                )
        if hasattr(other, "n_features_in_"):
            self._start(other.n_features_in_, other._form)
            self._forget()
            self._large += other._large + other._sums.astype(object)
            self._whole = other._whole
            self.n_samples += other.n_samples
        return self

    def __add__(self, other: SufficientStatistics) -> SufficientStatistics:
        """Return the sums over the records of both, as new sums; see `merge`."""
        if not isinstance(other, SufficientStatistics):
            return NotImplemented
        return copy.deepcopy(self).merge(other)

    def _start(self, n_features: int, form: tuple[int, ...]) -> None:
        """Prepare for the first records."""
        if not hasattr(self, "n_features_in_"):
            self.n_features_in_, self._form = n_features, form
            width = self.width + math.prod(self._form)
            self._sums = np.zeros((width, width), dtype=np.int64)
            self._large = np.zeros((width, width), dtype=object)

    def _forget(self) -> None:
        """Forget what was computed from earlier sums."""
        vars(self).pop("gram_and_moment", None)
        vars(self).pop("spectrum", None)

    def _add_rows(self, X: np.ndarray, y: np.ndarray, weight: int) -> None:
        self._start(X.shape[1], y.shape[1:])
        self._forget()
        for block in self._blocks_of(X, y):
            self._add(block, weight)

    def blocks(self, X: Any, y: Any) -> Iterator[np.ndarray]:
        """Iterate over records that were added before, as they count in the sums.

        Parameters
        ----------
        X, y
            See `update`.

        Yields
        ------
        ndarray of shape (at most BLOCK, width + n_targets)
            Rows with their constant and, in the last columns, targets: integers, in units of
            ``2**-20`` of the bounds. Each block is overwritten by the next.
        """
        X, y = self._checked_chunk(X, y)
        self._start(X.shape[1], y.shape[1:])
        return self._blocks_of(X, y)

    def _sum_over_blocks(
        self, function: BlockFunction, X: Any, y: Any, weights: Iterable[tuple[int, Any]] | None
    ) -> np.ndarray:
        """Return the sum of a function of `blocks`; weights are as in `_add_by_weight`."""
        if weights is None:
            return function(self.blocks(X, y))
        X, y = self._checked_chunk(X, y)
        self._start(X.shape[1], y.shape[1:])
        # Theorem P14: integers are multiplied after the last cut of a row.
        total = function(iter(()))
        for weight, places in weights:
            total = total + function(self._blocks_of(X[places], y[places])) * weight
        return total

    def _checked_chunk(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return arrays in which an improper record does not have a number as its target."""
        check_target_type(y, None, is_classifier=False)
        X, no_numbers = _read(X, "X")
        y, no_targets = _read(y, "y")
        self._check_chunk(X, y)
        if no_numbers.any() or no_targets.any():
            improper = no_numbers | no_targets
            y = np.where(improper if y.ndim == 1 else improper[:, None], np.nan, y)
        return X, y

    def _check_chunk(self, X: np.ndarray, y: np.ndarray) -> None:
        if X.ndim != 2 or y.shape[:1] != X.shape[:1] or y.ndim > 2 or 0 in y.shape[1:]:
            raise ValueError(
                "each chunk must be of shapes (n_samples, n_features) and (n_samples,); got "
                f"other shapes, of {X.ndim} and {y.ndim} dimensions."
            )
        known = getattr(self, "n_features_in_", X.shape[1])
        if X.shape[1] != known:
            raise ValueError(f"each chunk must have {known} columns; got {X.shape[1]}.")
        form = getattr(self, "_form", y.shape[1:])
        if y.shape[1:] != form:
            raise ValueError(f"each chunk must have targets of shape {form}; got {y.shape[1:]}.")
        check_ranges(self.target_range, y.shape)

    def _blocks_of(self, X: np.ndarray, y: np.ndarray) -> Iterator[np.ndarray]:
        for start in range(0, X.shape[0], BLOCK):
            yield self._block(X[start : start + BLOCK], y[start : start + BLOCK])

    def _block(self, rows: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Return one block in units of 2^-20 of the bounds, in a buffer that all blocks share."""
        size, d = rows.shape
        scale = UNIT / self.data_norm
        if not hasattr(self, "_buffer"):
            self._buffer = np.empty((BLOCK, self.width + math.prod(self._form)))
        block = self._buffer[:size]
        units = block[:, :d]
        with np.errstate(over="ignore", invalid="ignore"):
            targets = targets.astype(np.float64)
            if rows.dtype != np.float64 and not (rows.dtype == np.float32 and scale < 1e30):
                rows = rows.astype(np.float64)
            # In the precision of the rows, one row at a time: twice as fast as in double.
            np.multiply(rows, scale, out=units, casting="unsafe")
            squares = np.einsum("ij,ij->i", units, units)
        improper = ~np.isfinite(targets).reshape(size, -1).all(axis=1)
        if not np.isfinite(squares).all():
            _shorten_huge_rows(rows, units, squares)
            improper |= ~np.isfinite(squares)
        if improper.any():
            units[improper], squares[improper] = 0.0, 0.0
            targets[improper] = 0.0
        limit = UNIT * _SHRINKAGE
        long = np.flatnonzero(squares > limit * limit)
        if long.size:
            units[long] *= (limit / np.sqrt(squares[long]))[:, None]
        if self.fit_intercept:
            block[:, d] = CONSTANT * UNIT
        centre, half = self.centre_and_half
        bounded = np.clip(targets, *np.transpose(self.target_range)) - centre
        bounded = np.clip(bounded * (UNIT / half), -UNIT, UNIT)
        block[:, self.width :] = bounded.reshape(size, -1)
        return np.trunc(block, out=block)

    def _add(self, block: np.ndarray, weight: int) -> None:
        self._sums += (block.T @ block).astype(np.int64)
        self._blocks += 1
        if self._blocks % _MOST_BLOCKS == 0:
            self._flush(weight)

    def _flush(self, weight: int) -> None:
        self._large += self._sums.astype(object) * weight
        self._sums[:] = 0

    # Reading -------------------------------------------------------------------------------

    @property
    def centre_and_half(self) -> tuple[Any, Any]:
        """Public constant that is subtracted from targets, and a bound on the shifted targets.

        Without an intercept the constant could not be added to predictions again, so it is 0.
        """
        low, high = np.transpose(self.target_range)
        if self.fit_intercept:
            return middle_and_half(low, high)
        return np.zeros_like(low), np.maximum(-low, high)

    @property
    def width(self) -> int:
        """Number of weights, the intercept's included."""
        return self.n_features_in_ + int(self.fit_intercept)

    @cached_property
    def gram_and_moment(self) -> tuple[np.ndarray, np.ndarray]:
        """Products of rows with rows, and of rows with targets, in units of the bounds."""
        total = (self._large + self._sums.astype(object)).astype(np.float64)
        total /= UNIT**2 * self._whole
        rows, targets = total[: self.width, : self.width], total[: self.width, self.width :]
        return rows, targets.reshape(self.width, *self._form)

    @cached_property
    def spectrum(self) -> tuple[np.ndarray, np.ndarray]:
        """Eigenvalues, sorted and not negative, and eigenvectors of the rows' products."""
        values, vectors = np.linalg.eigh(self.gram_and_moment[0])
        return np.maximum(values, 0.0), vectors

    def __getstate__(self) -> dict[str, Any]:
        """Leave the block's buffer out of copies."""
        return {name: value for name, value in vars(self).items() if name != "_buffer"}


def sums_of_chunk(
    bounds: tuple[float, Any, bool], X: Any, y: Any, weights: np.ndarray | None = None
) -> SufficientStatistics:
    """Return the sums of a chunk of `PrivateRows`, whose rows have weights in fits by persons."""
    sums = SufficientStatistics(*bounds)
    if weights is None:
        return sums.update(X, y)
    return sums._add_by_weight(X, y, rows_by_weight(weights))


@dataclass(frozen=True)
class Blocks:
    """Records that can be read again, for exact sums of a function over their blocks.

    Attributes
    ----------
    records : Records or PrivateRows
    bounds : tuple
        Arguments of `SufficientStatistics`.
    persons : Persons or None
        The persons to whom rows in memory belong; parts have weights of rows instead.
    """

    records: Records | PrivateRows
    bounds: tuple[float, Any, bool]
    persons: Persons | None = None

    def total(self, function: BlockFunction) -> np.ndarray:
        """Return the sum of a function of `SufficientStatistics.blocks` over all rows.

        With weights of rows, the function is summed with these weights.
        """
        if isinstance(self.records, PrivateRows):
            total: np.ndarray = self.records.total(partial(_total_of_chunk, self.bounds, function))
            return total
        weights = None if self.persons is None else self.persons.by_weight()
        sums = SufficientStatistics(*self.bounds)
        return sums._sum_over_blocks(function, *self.records, weights)

    @property
    def whole(self) -> int:
        """Weight of a record in the sums."""
        has_weights = self.persons is not None
        if isinstance(self.records, PrivateRows):
            has_weights = self.records.has_weights
        return WHOLE if has_weights else 1


def _total_of_chunk(
    bounds: tuple[float, Any, bool],
    function: BlockFunction,
    X: Any,
    y: Any,
    weights: np.ndarray | None = None,
) -> np.ndarray:
    by_weight = None if weights is None else rows_by_weight(weights)
    return SufficientStatistics(*bounds)._sum_over_blocks(function, X, y, by_weight)


def _read(values: Any, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return an array of real numbers, and which records hold other entries."""
    kind = getattr(getattr(values, "dtype", None), "kind", "O")
    if kind not in "fiubOUS":
        raise TypeError(f"{name} must be real numbers; got dtype {values.dtype}.")
    if isinstance(values, np.ndarray) and kind in "fiub" and values.ndim:
        return values, np.zeros(values.shape[0], dtype=bool)
    if not table_shape(values):
        raise ValueError(f"{name} must have records; got a single value.")
    return finite_rows(values, np.float64)


def squared_radius(fit_intercept: bool) -> float:
    """Return the largest squared norm of a row in units of ``data_norm``, constant included.

    The result is slightly larger, because of rounding in eigenvalues and in sums read as floats:
    with 10^9 records they are off by some 10^-7 at most.

    Notes
    -----
    Theorem L0.
    """
    return (1.0 + (CONSTANT**2 if fit_intercept else 0.0)) * _ROUNDING


def check_bound(value: Any, *, name: str) -> float:
    """Return a bound on data as a float, or raise."""
    return check_real(value, name=name, lower=1e-100, upper=1e100)


def _shorten_huge_rows(rows: np.ndarray, units: np.ndarray, squares: np.ndarray) -> None:
    """Shorten rows whose squares overflow; leave those that are not finite."""
    for index in np.flatnonzero(~np.isfinite(squares)):
        row = rows[index].astype(np.float64)
        if not np.isfinite(row).all():
            continue
        largest = float(np.abs(row).max())
        row = row / largest
        length = math.sqrt(float(row @ row))
        # The row is far longer than any bound.
        units[index] = row * (UNIT * _SHRINKAGE / length)
        squares[index] = 0.0


# In units of the rows' bound; no ridge in use is smaller.
LEAST_RIDGE = 1e-12
# Ridges among which a rule chooses, for rows of norm 1.
RIDGES = np.geomspace(1e-2, 1e8, 401)
# Budgets are lowered to this: a larger epsilon means almost no privacy.
LARGEST_EPSILON = 100.0


@dataclass(frozen=True)
class RidgeProblem:
    """A ridge regression in units of its bounds.

    Attributes
    ----------
    values, vectors : ndarray
        Spectrum of the rows' products with rows; the values are sorted and not negative.
    moment : ndarray of shape (width,) or (width, n_targets)
        Products of rows with targets.
    gram : ndarray
        Products of rows with rows.
    radius2 : float
        Bound on the squared norm of a row, the constant of the intercept included.
    alpha : float
        Ridge in these units.
    n_public : int
        A public number that bounds the number of records.
    blocks : Blocks, optional
        The records; None where they cannot be read again.
    """

    values: np.ndarray
    vectors: np.ndarray
    moment: np.ndarray
    gram: np.ndarray
    radius2: float
    alpha: float
    n_public: int
    blocks: Blocks | None = None

    @property
    def joint_norm(self) -> float:
        """Bound on the joint norm of all targets of a record."""
        return math.sqrt(math.prod(self.moment.shape[1:]))

    def solution(self, ridge: float) -> np.ndarray:
        """Return the weights of a ridge regression, in the basis of the eigenvectors."""
        return (self.vectors.T @ self.moment) / np.maximum(self.values + ridge, LEAST_RIDGE)
