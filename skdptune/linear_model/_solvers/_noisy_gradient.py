"""Noisy gradient descent for linear models: DP-SGD and DP-Adam."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from types import EllipsisType
from typing import Any

import numpy as np
from scipy import sparse

from skdptune._progress import Progress
from skdptune._validation import check_numbers, check_option, check_real
from skdptune.linear_model._solvers._design import Design, DesignInParts
from skdptune.mechanisms._shared import (
    Batch,
    NoiseOfSeveral,
    NoisyGradientPlan,
    NormalNoise,
)

# Sums of clipped per-record gradients of linear models, without the per-record gradients --------
# `Coordinates` are the coordinates of a descent: a public linear map takes them to the weights.

# Rows are gathered into a buffer that stays in a processor's cache between its two products.
_BUFFER_BYTES = 1 << 20
_LEAST_ROWS = 64
# Number of residuals, over all models, that are computed at once.
_NUMBERS_OF_MODELS = 1 << 15

Models = slice | EllipsisType
Residuals = Callable[[np.ndarray, np.ndarray], np.ndarray]


def margin_residuals(derivative: Callable[[np.ndarray], np.ndarray]) -> Residuals:
    """Return the residuals of a loss of the margin, from the loss's derivative.

    The targets are signs, of shape (n,) for one output and (n, k) for one output against the rest
    each: ``d loss(sign * decision) / d decision = sign * loss'(sign * decision)``.

    Examples
    --------
    >>> import numpy as np
    >>> hinge = margin_residuals(lambda margins: np.where(margins < 1, -1.0, 0.0))
    >>> hinge(np.array([[0.5], [2.0], [0.5]]), np.array([1, 1, -1])).ravel().tolist()
    [-1.0, 0.0, 1.0]
    """

    def residuals(decision: np.ndarray, signs: np.ndarray) -> np.ndarray:
        signs = signs.reshape(decision.shape[-2:])
        return signs * derivative(signs * decision)

    return residuals


def softmax_residuals(decision: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the residuals of multinomial logistic loss, for labels 0, ..., k - 1.

    Examples
    --------
    >>> import numpy as np
    >>> softmax_residuals(np.zeros((1, 2)), np.array([1])).tolist()
    [[0.5, -0.5]]
    """
    result = np.exp(decision - decision.max(axis=-1, keepdims=True))
    result /= result.sum(axis=-1, keepdims=True)
    result[..., np.arange(labels.size), labels] -= 1.0
    return result


class ClippedGradients:
    """Sums of a batch's gradients, each of which is clipped to a norm.

    Parameters
    ----------
    design : Design
        The rows ``z``. Their weights, if there are any, multiply clipped gradients. If gradients
        were weighted before clipping, weights would have no effect when most gradients are longer
        than the norm.
    targets : ndarray of shape (n_samples, ...)
        Second argument of `residuals_of`.
    residuals_of : callable
        From decisions (..., b, k) and targets of a batch to residuals ``r`` (..., b, k), the
        derivatives of each record's loss by its decisions.
    max_grad_norm : float or ndarray of shape (n_models,)
        The norm to which the gradient of each record is clipped.
    squared_norms : ndarray of shape (n_samples,) or (n_models, n_samples), optional
        Squared norm of each row in the coordinates in which gradients are measured; by default
        that of the row itself.

    Notes
    -----
    Theorem M5.

    The gradient of a record is the outer product of its row and its residuals, whose norm is
    ``|z| |r|``: the clipping factor is known before any gradient is formed (Goodfellow 2015,
    arXiv:1510.01799), and the sum is one matrix product with the residuals scaled.

    A record whose residuals are NaN, or several and not all finite, counts as a gradient of
    zero: the bound on its influence must not depend on the absence of overflow.

    Several models read the rows at the same time, while these are in a processor's cache. Each
    has its own products, so that its sums do not depend on the others, to the last bit.

    Examples
    --------
    >>> import numpy as np
    >>> design = Design.clipped(np.array([[3.0, 4.0], [0.0, 1.0]]), norm=5.0, intercept=False)
    >>> sums = ClippedGradients(design, np.zeros(2), lambda m, t: m - t[:, None] - 1.0, 1.0)
    >>> sums(np.zeros((2, 1)), slice(None)).ravel().round(12).tolist()
    [-0.6, -1.8]
    """

    def __init__(
        self,
        design: Design,
        targets: np.ndarray,
        residuals_of: Residuals,
        max_grad_norm: float | np.ndarray,
        squared_norms: np.ndarray | None = None,
    ) -> None:
        self._design = design
        squared_norms = design.squared_norms if squared_norms is None else squared_norms
        self._targets = np.asarray(targets)
        self._residuals_of = residuals_of
        # The products have the precision of the rows: a mixed product would copy the rows.
        dtype = design.rows.dtype
        self._precision = np.finfo(dtype if dtype.kind == "f" else np.float64)
        # The residuals' norm beyond which a record's gradient is clipped.
        limits = np.asarray(max_grad_norm)[..., None]
        self._longest = self._longest_residuals(limits, squared_norms)[..., None]
        has_huge_rows = self._largest_denormal() > 1e-9 * limits[..., None]
        self._least = float(self._precision.tiny) * has_huge_rows if has_huge_rows.any() else None
        self._weights = None if design.weights is None else design.weights[:, None]
        # Multiplying by ones would change nothing, and takes a tenth of a step.
        self._scale = None if (design.scale == 1.0).all() else design.scale[:, None]
        self._n_features = design.rows.shape[1]
        self._is_sparse = sparse.issparse(design.rows)
        self._product = _product_of_sparse if self._is_sparse else np.matmul
        row_bytes = max(1, design.rows.shape[1] * design.rows.dtype.itemsize)
        self._rows_at_once = max(_LEAST_ROWS, _BUFFER_BYTES // row_bytes)
        self._buffer = self._make_buffer()
        n_samples, size = design.n_samples, self._rows_at_once
        starts = range(0, n_samples, size)
        self._all_chunks: list[Batch] = [slice(s, min(s + size, n_samples)) for s in starts]

    def _longest_residuals(self, limits: np.ndarray, squared_norms: np.ndarray) -> np.ndarray:
        """Return for each record the norm of residuals beyond which its gradient is clipped."""
        norms = np.sqrt(np.maximum(squared_norms, 1e-300))
        # It must also be finite for rows near zero, in the precision of the products.
        return np.minimum(limits / norms, 0.25 * float(self._precision.max))

    def _largest_denormal(self) -> float:
        """Return the norm of the longest row's gradient at the smallest normal residual."""
        design = self._design
        squares = np.maximum(design.squared_norms - float(design.intercept), 0.0)
        lengths = np.sqrt(squares) / design.scale
        return float(self._precision.tiny) * float(np.max(lengths, initial=0.0))

    def _make_buffer(self) -> np.ndarray | None:
        """Return space for a gathered chunk; None if ``take`` would copy all the data first."""
        rows = self._design.rows
        if self._is_sparse or not rows.flags.c_contiguous:
            return None
        # Only indices are gathered, never slices, and their number is at most that of the rows.
        size = min(self._rows_at_once, rows.shape[0])
        return np.empty((size, rows.shape[1]), dtype=rows.dtype)

    def __call__(self, weights: np.ndarray, batch: Batch) -> np.ndarray:
        """Return the sum over a batch, float64 of the shape of the weights.

        Weights have the shape (width, n_outputs), or (n_models, width, n_outputs) for models with
        their own norms.
        """
        total, centre = np.zeros(weights.shape), self._design.centre
        features = weights[..., : self._n_features, :].astype(self._precision.dtype)
        for chunk in self._chunks(batch):
            rows = self._gather(chunk)
            targets = _selected(self._targets, chunk)
            scale = None if self._scale is None else _selected(self._scale, chunk)
            for some in _of_models(weights, rows.shape[0]):
                decision = self._product(rows, features[some]).astype(np.float64, copy=False)
                if scale is not None:
                    decision *= scale
                if self._design.intercept:
                    decision += weights[some][..., -1:, :]
                if centre is not None:
                    decision -= (centre @ features[some])[..., None, :]
                residuals, sums = self._clipped(decision, targets, chunk, some)
                if self._design.intercept:
                    total[some][..., -1, :] += sums
                if scale is not None:
                    residuals *= scale
                if self._least is not None:
                    # Denormal numbers have few digits: after rounding they could exceed the bound.
                    residuals[np.abs(residuals) < self._least[some]] = 0.0
                residuals = residuals.astype(features.dtype, copy=False)
                total[some][..., : self._n_features, :] += self._product(rows.T, residuals)
                if centre is not None:
                    of_centre = centre[:, None] * sums[..., None, :]
                    total[some][..., : self._n_features, :] -= of_centre
        return total

    def _clipped(
        self, decision: np.ndarray, targets: np.ndarray, chunk: Batch, some: Models
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return a chunk's residuals, scaled so that gradients respect the norm, and their sum."""
        residuals = self._residuals_of(decision, targets)
        residuals = np.asarray(residuals, dtype=np.float64)
        longest = _selected(self._longest[some], chunk, axis=-2)
        if decision.shape[-1] == 1:
            residuals = np.minimum(residuals, longest)
            np.maximum(residuals, np.negative(longest), out=residuals)
        else:
            norms = np.sqrt(np.einsum("...j,...j->...", residuals, residuals))[..., None]
            residuals = residuals * np.minimum(1.0, longest / np.maximum(norms, 1e-300))
        if self._weights is not None:
            residuals *= _selected(self._weights, chunk)
        sums = np.add.reduce(residuals, axis=-2)
        if not math.isfinite(sums[0] if sums.shape == (1,) else np.add.reduce(sums, axis=None)):
            residuals[~np.isfinite(residuals).all(axis=-1)] = 0.0
            sums = np.add.reduce(residuals, axis=-2)
        return residuals, sums

    def _chunks(self, batch: Batch) -> list[Batch]:
        size = self._rows_at_once
        if isinstance(batch, slice):
            return self._all_chunks
        if batch.size <= size:
            return [batch]
        return [batch[start : start + size] for start in range(0, batch.size, size)]

    def _gather(self, chunk: Batch) -> np.ndarray:
        rows = self._design.rows
        if self._buffer is None or isinstance(chunk, slice):
            return rows[chunk]
        # All indices are in range; mode="clip" avoids the copy that checking them would make.
        return rows.take(chunk, axis=0, out=self._buffer[: chunk.size], mode="clip")


def _selected(values: np.ndarray, chunk: Batch, axis: int = 0) -> np.ndarray:
    """Return some of the values; ``take`` has half the overhead of an index."""
    if isinstance(chunk, slice):
        return values[chunk] if axis == 0 else values[..., chunk, :]
    return values.take(chunk, axis=axis)


def _of_models(weights: np.ndarray, n_rows: int) -> Iterable[Models]:
    """Return which models have their residuals computed at once, so that these stay in a cache."""
    if weights.ndim == 2:
        return (...,)
    size = max(1, _NUMBERS_OF_MODELS // max(1, n_rows * weights.shape[-1]))
    return [slice(start, start + size) for start in range(0, len(weights), size)]


def _product_of_sparse(rows: Any, columns: np.ndarray) -> np.ndarray:
    """Return rows times columns of one model, or times those of each of several."""
    if columns.ndim == 2:
        return np.asarray(rows @ columns)
    return np.stack([rows @ own for own in columns])


# More than the change of a norm by rounding.
_ROUNDING = 1.0 + 1e-9
# Numbers of dense rows that are in memory at once.
_NUMBERS_AT_ONCE = 1 << 21


class Coordinates:
    """The map from a descent's coordinates to weights, and its effect on gradients and norms.

    Parameters
    ----------
    basis : ndarray of shape (width,) or (width, width), or None
        Matrix ``A``, or its diagonal: ``weights = A coordinates``. None means the identity.
    width : int
        Number of coefficients of one linear function.

    Notes
    -----
    Theorem M5, Theorem M7.

    The loss of a record depends on ``z . A v``. Its gradient by ``v`` is therefore ``A'`` times
    the one by the weights, and has norm ``|A' z| |r|`` for residuals ``r``.

    Examples
    --------
    >>> design = Design.clipped(np.array([[3.0, 4.0]]), norm=9.0, intercept=False)
    >>> coordinates = Coordinates(np.array([2.0, 1.0]), 2)
    >>> coordinates.squared_norms(design).round(6).tolist()
    [52.0]
    >>> coordinates.weights(np.ones((2, 1))).tolist()
    [[2.0], [1.0]]
    """

    def __init__(self, basis: np.ndarray | None, width: int) -> None:
        if basis is not None:
            basis = np.asarray(basis, dtype=np.float64)
            if basis.shape not in ((width,), (width, width)):
                raise ValueError(
                    f"basis must be of shape ({width},) or ({width}, {width}); got shape "
                    f"{basis.shape}."
                )
        self.basis, self.width = basis, width
        matrix = np.ones(1) if basis is None else basis
        self._is_diagonal = matrix.ndim == 1
        # A diagonal is a column, by which the numbers of a point are multiplied.
        self._matrix = matrix[:, None] if self._is_diagonal else matrix

    def with_others(self, others: Sequence[Coordinates]) -> Coordinates:
        """Return the coordinates of several points in one array, from those of each.

        All have a diagonal basis, or none has.
        """
        made = copy.copy(self)
        made._matrix = np.stack([each._matrix for each in (self, *others)])
        return made

    def squared_norms(self, design: Design) -> np.ndarray:
        """Return squared norms of the rows ``A' z``, slightly more rather than less."""
        if self.basis is None:
            return design.squared_norms
        pieces = _pieces(design, self.basis.ndim == 2)
        squares = [np.zeros(0), *(self._squares(*piece, design.centre) for piece in pieces)]
        found = np.concatenate(squares) * _ROUNDING
        # Infinite in place of NaN: a row whose norm overflows changes nothing.
        return np.where(np.isnan(found), np.inf, found)

    def weights(self, point: np.ndarray) -> np.ndarray:
        """Return the weights of coordinates of shape (width, n_outputs)."""
        return point if self.basis is None else self._times(self._matrix, point)

    def of(self, weights: np.ndarray) -> np.ndarray:
        """Return the coordinates of weights."""
        if self.basis is None or not weights.any():
            return weights
        if self.basis.ndim == 1:
            return weights / self.basis[:, None]
        return np.linalg.solve(self.basis, weights)

    def start(self, initial: np.ndarray | None, n_outputs: int) -> np.ndarray:
        """Return the coordinates of initial weights; None means zeros."""
        if initial is None:
            return np.zeros((self.width, n_outputs))
        return self.of(np.array(initial, dtype=np.float64))

    def gradient(self, gradient: np.ndarray) -> np.ndarray:
        """Return the gradient by coordinates, given that by weights."""
        if self.basis is None:
            return gradient
        matrix = self._matrix if self._is_diagonal else np.swapaxes(self._matrix, -1, -2)
        return self._times(matrix, gradient)

    def shrinker(self, strength: float | np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """Return the implicit step of a penalty on the weights, a function of a point.

        The new point minimises half its squared distance to the given one, plus half of `strength`
        times the squared norm of its weights.
        """
        if self._is_diagonal:
            factors = 1.0 / (1.0 + strength * self._matrix**2)
        else:
            squares = np.swapaxes(self._matrix, -1, -2) @ (strength * self._matrix)
            factors = np.linalg.inv(np.eye(self.width) + squares)
        return partial(self._times, factors)

    def _times(self, matrix: np.ndarray, point: np.ndarray) -> np.ndarray:
        return matrix * point if self._is_diagonal else matrix @ point

    def _squares(
        self, rows: Any, scale: np.ndarray, last: float, centre: np.ndarray | None
    ) -> np.ndarray:
        """Return the squared norms of rows that will be scaled and end with a constant.

        If there is a centre, which is then subtracted, the basis is diagonal.
        """
        basis, width = self.basis, rows.shape[1]
        assert basis is not None
        with np.errstate(all="ignore"):
            if basis.ndim == 1:
                squares = rows.multiply(rows) if sparse.issparse(rows) else rows * rows
                own = basis[:width] ** 2
                squares = np.asarray(squares @ own) * scale**2
                if centre is not None:
                    products = 2.0 * scale * np.asarray(rows @ (own * centre))
                    # The square of a difference may be smaller than the rounding of its parts.
                    squares = (squares + float(own @ centre**2)) * _ROUNDING - products
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


OPTIMIZERS = ("sgd", "adam")
SGD_LEARNING_RATE = 2.0
# Adam's learning rate times the root of the number of steps: the distance moved by noise only.
_ADAM_DISTANCE = 0.3
# Random numbers drawn at once: intermediate results stay in a processor's cache.
_AT_ONCE = 1 << 14
_FIRST_DECAY, _SECOND_DECAY, _ADAM_FLOOR = 0.9, 0.999, 1e-8

Step = Callable[[np.ndarray, np.ndarray], None]
# From labels and the number of outputs to residuals and targets.
Problem = Callable[[Any, int], tuple[Residuals, np.ndarray]]
_LARGEST = float(np.finfo(np.float64).max)


def fit_noisy_gradient(
    plan: NoisyGradientPlan,
    design: Design | DesignInParts,
    problem_of: Problem,
    labels: Any,
    n_outputs: int,
    *,
    optimizer: str = "sgd",
    learning_rate: float,
    max_grad_norm: float,
    regularization: float = 0.0,
    rng: np.random.Generator,
    initial: np.ndarray | None = None,
    basis: np.ndarray | None = None,
    averages: bool = False,
) -> np.ndarray:
    r"""Return the last weights of a noisy gradient descent, or the mean of the last half.

    Parameters
    ----------
    plan : NoisyGradientPlan
        Sampling, number of steps and noise; its profile is the cost of the weights.
    design : Design or DesignInParts
        The rows.
    problem_of : callable
        From labels and `n_outputs` to residuals and their targets. Residuals are a function from
        decisions (b, n_outputs) and targets of a batch to the derivatives of each record's loss by
        its decisions (b, n_outputs). Both treat each record independently.
    labels : ndarray of shape (n_samples, ...) or None
        First argument of `problem_of`; None if they come with rows that lie in parts.
    n_outputs : int
        Number of linear functions, whose gradients are clipped jointly.
    optimizer : {"sgd", "adam"}, default="sgd"
        How a gradient is used in a step; Adam with bias correction and the usual constants.
    learning_rate : float
        Length of a step.
    max_grad_norm : float
        Norm to which the gradient of each record is clipped.
    regularization : float, default=0.0
        Weight of half the squared norm, in an objective with the *sum* of the losses.
    rng : numpy.random.Generator
        Source of the batches and of the noise.
    initial : ndarray of shape (width, n_outputs), optional
        Starting weights, chosen without looking at the data; zeros by default.
    basis : ndarray of shape (width,) or (width, width), optional
        Invertible matrix, or its diagonal, chosen without looking at the data. The descent runs in
        coordinates that the matrix maps to weights, and clips gradients by these coordinates.
    averages : bool, default=False
        Whether to return the mean of the weights after each step of the last half.

    Returns
    -------
    ndarray of float64 of shape (width, n_outputs)
        It may be infinite or NaN if the learning rate is too large to converge.

    Notes
    -----
    A step moves along ``(sum of clipped gradients + s C N(0, I)) / B``, where ``B`` is the plan's
    batch size: a constant, not the drawn number. An implicit step of the regularization follows,
    which cannot diverge. Adam without a basis adds the gradient of the regularization instead.
    That sum is the only use of the data (Abadi et al. 2016, arXiv:1607.00133). Batches are drawn
    ahead, for as many steps as public numbers allow. For rows that lie in parts, one pass gathers
    the rows of these batches, and the steps then run in memory (Theorem R10). The rest,
    including means of weights, is post-processing. The noisy sum is rounded to a grid that does
    not depend on data (Theorem E1). The guarantee is for adding or removing one record, with the
    plan kept.

    Examples
    --------
    >>> import numpy as np
    >>> from skdptune.mechanisms._shared import plan_noisy_gradient
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.normal(size=(500, 2))
    >>> design = Design.clipped(rows, norm=2.0, intercept=False)
    >>> plan = plan_noisy_gradient(500, epochs=20, batch_size=100, noise_multiplier=0.5)
    >>> residuals = lambda decision, target: decision - target[:, None]
    >>> weights = fit_noisy_gradient(
    ...     plan, design, lambda labels, n_outputs: (residuals, labels),
    ...     rows @ [1.0, -1.0], 1, learning_rate=0.3, max_grad_norm=1.0, rng=rng,
    ... )
    >>> bool(np.abs(weights.ravel() - [1.0, -1.0]).max() < 0.2)
    True
    """
    _check_size(plan, design)
    coordinates = Coordinates(basis, design.width)
    limit = _positive(max_grad_norm, "max_grad_norm")

    def sums_of(rows: Design, labels: Any) -> ClippedGradients:
        residuals_of, targets = problem_of(labels, n_outputs)
        norms = None if basis is None else coordinates.squared_norms(rows)
        return ClippedGradients(rows, targets, residuals_of, limit, norms)

    sums: Any = sums_of(design, labels) if isinstance(design, Design) else None

    def gradient_at(point: np.ndarray, batch: Batch) -> np.ndarray:
        return coordinates.gradient(sums(coordinates.weights(point), batch))

    def batches() -> Iterator[Batch]:
        nonlocal sums
        for drawn in plan.batches_ahead(design.n_records, design.width, rng):
            if isinstance(design, Design):
                yield from map(design.rows_of, drawn)
            else:
                # The rows of earlier batches are freed before others are read.
                sums = None
                rows, codes, places = design.gathered(drawn)
                sums = sums_of(rows, codes)
                del rows
                yield from places

    return descend(
        plan,
        gradient_at,
        coordinates,
        batches(),
        coordinates.start(initial, n_outputs),
        noise_of_steps([plan], [limit], coordinates.width * n_outputs, [rng]),
        optimizer=optimizer,
        learning_rate=learning_rate,
        regularization=regularization,
        averages=averages,
    )


def descend_together(
    plans: Sequence[NoisyGradientPlan],
    design: Design,
    problem_of: Problem,
    labels: Any,
    n_outputs: int,
    settings: Sequence[Mapping[str, Any]],
) -> np.ndarray:
    """Return the weights of several descents with all records, which share each pass over them.

    Parameters
    ----------
    plans : sequence of NoisyGradientPlan
        They differ in the noise only, which either all have or none has.
    design, problem_of, labels, n_outputs
        See `fit_noisy_gradient`.
    settings : sequence of mapping
        Further arguments of each `fit_noisy_gradient`, which agree in `averages`. All bases are
        diagonal, or none is; all descents have a penalty, or none has.

    Returns
    -------
    ndarray of shape (n_models, width, n_outputs)
        The weights of each descent are those of `fit_noisy_gradient`, to the last bit.

    Notes
    -----
    Theorem M7.
    """
    limits = [_positive(own["max_grad_norm"], "max_grad_norm") for own in settings]
    rates, strengths = (
        np.reshape([own[name] for own in settings], (-1, 1, 1))
        for name in ("learning_rate", "regularization")
    )
    each = [Coordinates(own["basis"], design.width) for own in settings]
    coordinates = each[0].with_others(each[1:])
    norms = np.stack([one.squared_norms(design) for one in each])
    residuals_of, targets = problem_of(labels, n_outputs)
    sums = ClippedGradients(design, targets, residuals_of, np.array(limits), norms)
    starts = zip(each, settings, strict=True)
    return descend(
        plans[0],
        lambda point, batch: coordinates.gradient(sums(coordinates.weights(point), batch)),
        coordinates,
        iter([slice(None)] * plans[0].steps),
        np.stack([one.start(own["initial"], n_outputs) for one, own in starts]),
        noise_of_steps(plans, limits, design.width * n_outputs, [own["rng"] for own in settings]),
        learning_rate=rates,
        regularization=strengths,
        averages=settings[0]["averages"],
    )


def descend(
    plan: NoisyGradientPlan,
    gradient_at: Callable[[np.ndarray, Batch], np.ndarray],
    coordinates: Coordinates,
    batches: Iterator[Batch],
    point: np.ndarray,
    with_noise: Callable[[np.ndarray], np.ndarray],
    *,
    optimizer: str = "sgd",
    learning_rate: float | np.ndarray,
    regularization: float | np.ndarray,
    averages: bool,
) -> np.ndarray:
    """Return the weights of `fit_noisy_gradient`, from a function that sums clipped gradients.

    Parameters
    ----------
    plan, optimizer, averages
        See `fit_noisy_gradient`.
    gradient_at : callable
        Function of coordinates and a batch. It returns the sum of the batch's gradients by these
        coordinates, each clipped.
    coordinates : Coordinates
    batches : iterator
    point : ndarray of shape (width, n_outputs) or (n_models, width, n_outputs)
        The coordinates to start from.
    with_noise : callable
        From `noise_of_steps`.
    learning_rate, regularization : float or ndarray of shape (n_models, 1, 1)
        See `fit_noisy_gradient`.
    """
    learning_rate = _numbers_of_each(learning_rate, "learning_rate", lower_open=True)
    penalty = _numbers_of_each(regularization, "regularization") / plan.n_samples
    is_penalised = bool(np.any(penalty > 0.0))
    # Adam divides a gradient by its usual length, of which the penalty is a part.
    is_explicit = is_penalised and optimizer == "adam" and coordinates.basis is None
    step = {"sgd": _sgd, "adam": _adam}[optimizer](learning_rate, point.shape)
    shrunk = None
    if is_penalised and not is_explicit:
        shrunk = coordinates.shrinker(learning_rate * penalty)
    mean, first = np.zeros(point.shape), plan.steps // 2 if averages else plan.steps - 1
    # A warning that depends on the data would be a release.
    with np.errstate(all="ignore"), Progress("noisy gradient descent") as progress:
        for count, batch in enumerate(batches):
            progress.count(count, plan.steps, "steps")
            gradient = with_noise(gradient_at(point, batch))
            gradient /= plan.batch_size
            if is_explicit:
                gradient += penalty * point
            step(point, gradient)
            if shrunk is not None:
                point = shrunk(point)
            if count >= first:
                mean += point
        return coordinates.weights(mean / (plan.steps - first))


def default_learning_rate(optimizer: str, steps: int) -> float:
    """Return a learning rate that suits standardised rows, from public numbers.

    Parameters
    ----------
    optimizer : {"sgd", "adam"}
    steps : int
        Number of steps of the descent.

    Notes
    -----
    A step of Adam has about the learning rate's length, whether its gradient is signal or noise.
    Noise only moves the weights by ``rate * sqrt(steps)``, and keeping this fixed did better than
    one rate for all on breast cancer, digits and Adult, at 34 to 2,544 steps.

    Examples
    --------
    >>> default_learning_rate("sgd", 900), round(default_learning_rate("adam", 900), 6)
    (2.0, 0.01)
    """
    check_option(optimizer, name="optimizer", options=OPTIMIZERS)
    return SGD_LEARNING_RATE if optimizer == "sgd" else _ADAM_DISTANCE / math.sqrt(steps)


def noise_of_steps(
    plans: Sequence[NoisyGradientPlan],
    limits: Sequence[float],
    n_weights: int,
    rngs: Sequence[np.random.Generator],
) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function that adds noise to each model's sum of gradients clipped to a limit."""
    if not any(plan.noise_multiplier for plan in plans):
        return lambda total: total
    sources = [
        NormalNoise(
            # A product that underflows must not mean no noise.
            _positive(plan.noise_multiplier * limit, "the deviation of the noise"),
            rng,
            # Many steps with few weights share a portion of random numbers.
            at_once=min(plan.steps * n_weights, _AT_ONCE),
        )
        for plan, limit, rng in zip(plans, limits, rngs, strict=True)
    ]
    return sources[0].added_to if len(sources) == 1 else NoiseOfSeveral(sources).added_to


def _sgd(learning_rate: float | np.ndarray, shape: tuple[int, ...]) -> Step:
    def step(weights: np.ndarray, gradient: np.ndarray) -> None:
        gradient *= learning_rate
        weights -= gradient

    return step


def _adam(learning_rate: float | np.ndarray, shape: tuple[int, ...]) -> Step:
    """Return Adam's step (Kingma and Ba 2015, arXiv:1412.6980, Algorithm 1)."""
    first, second = np.zeros(shape), np.zeros(shape)
    count = 0

    def step(weights: np.ndarray, gradient: np.ndarray) -> None:
        nonlocal count, first, second
        count += 1
        first *= _FIRST_DECAY
        first += (1.0 - _FIRST_DECAY) * gradient
        second *= _SECOND_DECAY
        second += (1.0 - _SECOND_DECAY) * np.square(gradient)
        spread = np.sqrt(second / (1.0 - _SECOND_DECAY**count))
        spread += _ADAM_FLOOR
        weights -= learning_rate / (1.0 - _FIRST_DECAY**count) * first / spread

    return step


def _check_size(plan: NoisyGradientPlan, design: Design | DesignInParts) -> None:
    # Batches of fixed size contain each record more often if there are fewer records than the
    # plan's cost covers, which allows for a neighbour with one record less.
    if plan.sampling == "fixed" and design.n_records < plan.n_samples - 1:
        raise ValueError(
            f"design must be of at least the plan's {plan.n_samples} rows; got "
            f"{design.n_records}. Make a plan for that number."
        )


def _positive(value: float, name: str) -> float:
    return check_real(value, name=name, lower=0.0, lower_open=True, upper=_LARGEST)


def _numbers_of_each(values: Any, name: str, *, lower_open: bool = False) -> np.ndarray:
    """Return the number of one descent, or those of several, as floats from 0."""
    numbers = [
        check_real(value, name=name, lower=0.0, lower_open=lower_open, upper=_LARGEST)
        for value in np.ravel(values).tolist()
    ]
    return np.reshape(numbers, np.shape(values))


def initial_weights(
    coef: Any,
    intercept: Any,
    *,
    n_outputs: int | None,
    n_features: int | None,
    fit_intercept: bool,
) -> np.ndarray | None:
    """Return starting weights of shape (width, n_outputs); None if none were given.

    Parameters
    ----------
    coef : array-like of shape (n_outputs, n_features) or None
        With one output also of shape (n_features,).
    intercept : array-like of shape (n_outputs,) or None
        With one output also a number.
    n_outputs, n_features : int or None
        Number of linear functions and of their coefficients. By default, the numbers of the given
        weights.
    fit_intercept : bool
        Whether the intercepts are the last row of the weights; without it they must be 0.

    Returns
    -------
    ndarray of float64 or None

    Examples
    --------
    >>> initial_weights([1.0, 2.0], 3.0, n_outputs=1, n_features=2, fit_intercept=True).tolist()
    [[1.0], [2.0], [3.0]]
    """
    if coef is None and intercept is None:
        return None
    coef, intercept = _numbers(coef, "coef_init"), _numbers(intercept, "intercept_init")
    if n_outputs is None:
        # One for each label, but a single one for two labels.
        found = len(np.atleast_2d(coef)) if intercept is None else intercept.size
        n_outputs = found if found > 2 else 1
    if n_features is None:
        n_features = 1 if coef is None else np.atleast_2d(coef).shape[-1]
    weights = np.zeros((n_features + int(fit_intercept), n_outputs))
    if coef is not None:
        weights[:n_features] = _shaped(coef, "coef_init", (n_outputs, n_features)).T
    if intercept is None:
        return weights
    last = _shaped(intercept, "intercept_init", (n_outputs,))
    if fit_intercept:
        weights[n_features] = last
    elif last.any():
        raise ValueError("intercept_init must be 0 or None where fit_intercept is False.")
    return weights


def _numbers(value: Any, name: str) -> Any:
    if value is None:
        return None
    array = check_numbers(value, name=name, hint="Name the ids of persons: groups=ids.")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite throughout.")
    return array


def _shaped(array: np.ndarray, name: str, shape: tuple[int, ...]) -> np.ndarray:
    if shape[0] == 1 and array.shape == shape[1:]:
        array = array.reshape(shape)
    if array.shape != shape:
        raise ValueError(f"{name} must be of shape {shape}; got shape {array.shape}.")
    return array
