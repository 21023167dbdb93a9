"""Losses of a margin, public facts about a minimisation, and the resulting tolerance.

Losses are convex and decreasing, with bounded slope and curvature.

The margin is ``sign * (row . weights)``: positive if a record is on its correct side.

Newton's method for a strongly convex linear problem, down to a certified gradient norm.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from skdptune._validation import check_integer, check_real
from skdptune.linear_model._solvers._design import Design

# Units of rounding that the tolerance of a gradient allows per unit of its summands. Rounding
# errors of sums grow as the root of their length, so this is ample.
_ROUNDINGS = 8.0


@dataclass(frozen=True)
class PublicProblem:
    """Public facts about one or several regularised linear problems on the same records.

    Attributes
    ----------
    loss : MarginLoss
        Loss of each record's margin.
    radius : float
        Bound on the norm of a clipped row, the intercept's 1 included.
    regularization : float
        ``lam`` in ``sum of losses + lam / 2 * norm(weights)**2``. The intercept's weight is
        regularised like the others: otherwise the minimum need not be strongly convex.
    width : int
        Number of weights, the intercept included.
    n_samples : int
        Public number of records, or a bound on it: it enters the tolerance of a minimisation.
    n_problems : int
        Number of such problems (one-vs-rest).

    Notes
    -----
    Theorem M0.
    """

    loss: MarginLoss
    radius: float
    regularization: float
    width: int
    n_samples: int
    n_problems: int = 1

    def __post_init__(self) -> None:
        """Refuse sizes that do not form a problem."""
        for name in ("radius", "regularization"):
            value = getattr(self, name)
            check_real(value, name=name, lower=1e-15, upper=1e15)
        for name in ("width", "n_samples", "n_problems"):
            check_integer(getattr(self, name), name=name, lower=1)

    @property
    def gradient_bound(self) -> float:
        """Largest norm of one record's gradient."""
        return self.loss.slope_bound * self.radius

    @property
    def curvature_bound(self) -> float:
        """Largest second derivative of one record's loss in any direction."""
        return self.loss.curvature_bound * self.radius**2

    def gradient_gap(self, noise_norm: float = 0.0, tol: float = 0.0) -> float:
        """Return the norm of the gradient at which a minimisation stops.

        Parameters
        ----------
        noise_norm : float
            Usual norm of a linear term in the objective.
        tol : float
            Requested norm, in units of the largest possible sum of gradients; the result is never
            less than rounding allows.

        Notes
        -----
        Many times the effect of rounding on a gradient of these sizes, so that a minimiser in
        floating point can reach it. Half of it is left for the error of computing the norm. The
        weights' norm W follows from ``F(minimum) <= F(0)``:
        ``W <= 2 norm(b) / lam + sqrt(2 n loss(0) / lam)``. Margins of size ``R W`` are rounded,
        and the slopes with them.
        """
        largest = self.n_samples * float(self.loss.value(np.zeros(1))[0])
        weights = 2.0 * noise_norm / self.regularization
        weights += math.sqrt(2.0 * largest / self.regularization)
        summands = self.n_samples * (self.gradient_bound + self.curvature_bound * weights)
        summands += self.regularization * weights + noise_norm
        rounding = _ROUNDINGS * float(np.finfo(np.float64).eps) * summands
        return max(rounding, tol * self.n_samples * self.gradient_bound)

    def check_fits(self, design: Design, signs: np.ndarray) -> None:
        """Refuse data whose shape differs from the problem's."""
        if design.width != self.width:
            raise ValueError(f"design must be of width {self.width}; got {design.width}.")
        if np.shape(signs) != (design.n_samples,):
            raise ValueError(
                f"signs must be of shape ({design.n_samples},); got {np.shape(signs)}."
            )


def largest_subset_size(n_public: int) -> int:
    """Return a size that a random subset of the data, of expected size `n_public`, never exceeds.

    If the number of records is secret, this public bound replaces it. It sets the tolerance of a
    minimisation, since the effect of rounding on a sum grows with its length, and bounds the norm
    of a ridge solution.

    Parameters
    ----------
    n_public : int
        Expected size of the subset; each record is a member independently of the others.

    Notes
    -----
    Theorem F3.

    With ``m = n_public`` and ``t = 10 sqrt(m) + 100``, Bernstein's inequality gives
    ``P(size >= m + t) <= exp(-t**2 / (2 m + 2 t / 3))``. Since ``t**2 = 100 m + 2000 sqrt(m) +
    10**4`` is more than 50 times that denominator, ``2 m + 6.7 sqrt(m) + 66.7``, this is below
    ``exp(-50) < 1e-20``, whatever m is.

    Examples
    --------
    >>> largest_subset_size(10_000)
    11100
    """
    return n_public + math.ceil(10.0 * math.sqrt(n_public)) + 100


@dataclass(frozen=True)
class MarginLoss(ABC):
    """A convex loss of the margin that never increases.

    Attributes
    ----------
    name : str
        Name of the loss.
    slope_bound : float
        Largest absolute first derivative.
    curvature_bound : float
        Largest second derivative.

    Notes
    -----
    Theorem M0.

    The first derivative is nowhere positive and the second nowhere negative: the proof of
    objective perturbation uses both signs.
    """

    name: str
    slope_bound: float
    curvature_bound: float

    @abstractmethod
    def value(self, margins: np.ndarray) -> np.ndarray:
        """Return the loss of each margin."""

    @abstractmethod
    def derivative(self, margins: np.ndarray) -> np.ndarray:
        """Return the first derivative, in [-slope_bound, 0]."""

    @abstractmethod
    def second_derivative(self, margins: np.ndarray) -> np.ndarray:
        """Return the second derivative, in [0, curvature_bound], almost everywhere."""

    @abstractmethod
    def curvature_at_slope(self, shares: np.ndarray) -> np.ndarray:
        """Return a bound on the second derivative where the slope is a share of its bound.

        Parameters
        ----------
        shares : ndarray
            Values of ``abs(derivative) / slope_bound``, in [0, 1].

        Returns
        -------
        ndarray
            ``k(share)``; k is concave, and ``k(share) / share**2`` does not increase.
        """

    def smoothed(self, factor: float) -> MarginLoss:
        """Return a loss whose corners are `factor` times as wide, for a minimiser's start."""
        return self


@dataclass(frozen=True)
class LogisticLoss(MarginLoss):
    """The loss ``log(1 + exp(-margin))`` of logistic regression.

    Examples
    --------
    >>> float(LogisticLoss().value(0.0).round(3))
    0.693
    """

    name: str = "logistic"
    slope_bound: float = 1.0
    curvature_bound: float = 0.25

    def value(self, margins: np.ndarray) -> np.ndarray:
        """Return the loss of each margin."""
        return np.logaddexp(0.0, -np.asarray(margins))

    def derivative(self, margins: np.ndarray) -> np.ndarray:
        """Return the first derivative."""
        # Four times as fast as `expit`; beyond 700, `exp` would overflow.
        return -1.0 / (1.0 + np.exp(np.minimum(margins, 700.0)))

    def second_derivative(self, margins: np.ndarray) -> np.ndarray:
        """Return the second derivative."""
        # The product of both tails keeps its relative accuracy where one of them is near 1.
        return special.expit(margins) * special.expit(-np.asarray(margins))

    def curvature_at_slope(self, shares: np.ndarray) -> np.ndarray:
        """Return ``share * (1 - share)``, which is exact."""
        return shares * (1.0 - shares)


@dataclass(frozen=True)
class HuberHingeLoss(MarginLoss):
    """The hinge of a support vector machine, its corner at 1 rounded by a parabola.

    Parameters
    ----------
    half_width : float
        The parabola reaches from ``1 - half_width`` to ``1 + half_width``.

    Notes
    -----
    Chaudhuri, Monteleoni and Sarwate (2011), section 3.4.2, with h for `half_width`:
    ``1 - m`` below ``1 - h``, ``(1 + h - m)**2 / (4 h)`` up to ``1 + h``, and 0 above.

    Examples
    --------
    >>> huber_hinge(0.5).value([0.0, 1.0, 2.0])
    array([1.   , 0.125, 0.   ])
    """

    name: str = "huber_hinge"
    slope_bound: float = 1.0
    curvature_bound: float = 1.0
    half_width: float = 0.5

    def value(self, margins: np.ndarray) -> np.ndarray:
        """Return the loss of each margin."""
        lack = 1.0 + self.half_width - np.asarray(margins)
        rounded = np.clip(lack, 0.0, 2.0 * self.half_width)
        # The parabola up to its end, and the line from there.
        return rounded**2 / (4.0 * self.half_width) + (np.maximum(lack, 0.0) - rounded)

    def derivative(self, margins: np.ndarray) -> np.ndarray:
        """Return the first derivative."""
        lack = 1.0 + self.half_width - np.asarray(margins)
        return -np.clip(lack / (2.0 * self.half_width), 0.0, 1.0)

    def second_derivative(self, margins: np.ndarray) -> np.ndarray:
        """Return the second derivative; at the two corners of the slope, that of the parabola."""
        inside = np.abs(1.0 - np.asarray(margins)) <= self.half_width
        return inside * self.curvature_bound

    def curvature_at_slope(self, shares: np.ndarray) -> np.ndarray:
        """Return the parabola's curvature: every slope occurs on it."""
        return np.full_like(shares, self.curvature_bound)

    def smoothed(self, factor: float) -> HuberHingeLoss:
        """Return the hinge rounded over `factor` times the width."""
        return huber_hinge(factor * self.half_width)


LOGISTIC = LogisticLoss()


def huber_hinge(width: float = 0.5) -> HuberHingeLoss:
    """Return the hinge rounded over ``1 - width`` to ``1 + width``.

    Parameters
    ----------
    width : float, default=0.5
        Positive. The slope is at most 1, the curvature ``1 / (2 * width)``.
    """
    width = check_real(width, name="width", lower=0.0, lower_open=True, upper=1e15)
    return HuberHingeLoss(curvature_bound=1.0 / (2.0 * width), half_width=width)


_STEPS = 300
# Corners are first this many times wider, then a quarter of that, and so on.
_SMOOTHINGS = 4.0 ** np.arange(12, 0, -1)
_LINE_STEPS = 100
_BLOCK = 4096


@dataclass(frozen=True)
class RegularisedSum:
    """The function ``sum_i c_i loss(sign_i row_i . w) + lam / 2 norm(w)**2 + linear_term . w``.

    Attributes
    ----------
    loss : MarginLoss
    design : Design
        Its weights are the ``c_i``.
    signs : ndarray of shape (n_samples,)
        -1 or 1.
    regularization : float
        ``lam``.
    linear_term : ndarray of shape (width,)
        Zeros, or the noise of objective perturbation.
    """

    loss: MarginLoss
    design: Design
    signs: np.ndarray
    regularization: float
    linear_term: np.ndarray

    def margins(self, weights: np.ndarray) -> np.ndarray:
        """Return each record's margin."""
        return self.signs * self.design.decision(weights)

    def gradient(self, weights: np.ndarray, margins: np.ndarray) -> np.ndarray:
        """Return the gradient at weights whose margins are known."""
        residuals = self.signs * self.slopes(margins)
        return self._records_sum(residuals) + self.regularization * weights + self.linear_term

    def slopes(self, margins: np.ndarray) -> np.ndarray:
        """Return the first derivative of each record's weighted loss."""
        return self.design.times_weights(self.loss.derivative(margins))

    def curvatures(self, margins: np.ndarray) -> np.ndarray:
        """Return the second derivative of each record's weighted loss."""
        return self.design.times_weights(self.loss.second_derivative(margins))

    def _records_sum(self, residuals: np.ndarray) -> np.ndarray:
        """Return the sum of residual times row, block by block.

        In a single sum over rows in the order of their labels, digits would be lost to partial
        sums as large as the number of records.
        """
        starts = range(0, max(residuals.size, 1), _BLOCK)
        blocks = [slice(start, start + _BLOCK) for start in starts]
        if len(blocks) == 1:
            return self.design.gradient(residuals)
        sums = [self.design.take(block).gradient(residuals[block]) for block in blocks]
        # Along the last axis numpy sums in pairs.
        return np.stack(sums, axis=-1).sum(axis=-1)

    def curved(self, curvatures: np.ndarray, vector: np.ndarray) -> np.ndarray:
        """Return the Hessian times a vector, from the records' second derivatives."""
        weighted = curvatures * self.design.decision(vector)
        return self.design.gradient(weighted) + self.regularization * vector


def minimise(function: RegularisedSum, gap: float, max_iter: int = _STEPS) -> np.ndarray:
    """Return weights at which the gradient's norm is at most `gap`.

    Parameters
    ----------
    function : RegularisedSum
    gap : float
        Half of it is required of the computed norm; the rest is left for rounding.
    max_iter : int
        Newton steps of each descent.

    Returns
    -------
    ndarray of shape (width,)
        Zeros if a bounded number of steps did not reach it. Only a breakdown of arithmetic should
        cause that: the guarantee would not cover the weights of a failed minimisation.

    Notes
    -----
    Theorem M2.

    Newton's method, with systems solved by conjugate gradients. A full step is taken if it halves
    the least gradient norm so far, which can happen only ``log2(start / gap)`` times. Otherwise
    the step goes to a point where the slope along the direction is between half of the first slope
    and zero. The function is convex, so it decreases all the way to that point, by at least
    ``slope**2 / (4 Lambda norm(direction)**2)`` where ``Lambda`` bounds its curvature. The
    direction is a Newton or truncated Newton one, whose angle to the gradient is bounded by
    ``lam`` and ``Lambda``, so the distance to the minimum shrinks by a constant factor. Values of
    the function are not compared, since that would stop before gradients are small.
    """
    weights, is_found = _descend(function, np.zeros(function.design.width), gap, max_iter)
    if is_found:
        return weights
    # A loss with a sharp corner, at large weights: follow the minimum from smooth to sharp.
    for factor in _SMOOTHINGS:
        smoothed = replace(function, loss=function.loss.smoothed(factor))
        weights, _ = _descend(smoothed, weights, gap, max_iter)
    weights, is_found = _descend(function, weights, gap, max_iter)
    return weights if is_found else np.zeros_like(weights)


def _descend(
    function: RegularisedSum, weights: np.ndarray, gap: float, max_iter: int
) -> tuple[np.ndarray, bool]:
    """Return the point after a bounded number of steps, and whether its gradient is small."""
    margins = function.margins(weights)
    gradient = function.gradient(weights, margins)
    least = start = float(np.linalg.norm(gradient))
    for _ in range(max_iter):
        norm = float(np.linalg.norm(gradient))
        if norm <= 0.5 * gap:
            return weights, True
        forcing = max(min(0.1, np.sqrt(norm / start)), 0.1 * gap / norm)
        direction = _newton_direction(function, margins, gradient, forcing)
        moved = weights + direction
        margins = function.margins(moved)
        slope = function.gradient(moved, margins)
        if not float(np.linalg.norm(slope)) <= 0.5 * least:
            moved = weights + _step(function, weights, gradient, direction) * direction
            margins = function.margins(moved)
            slope = function.gradient(moved, margins)
        weights, gradient = moved, slope
        least = min(least, float(np.linalg.norm(gradient)))
    return weights, False


def _newton_direction(
    function: RegularisedSum, margins: np.ndarray, gradient: np.ndarray, forcing: float
) -> np.ndarray:
    """Return a solution of ``H d = -gradient`` up to a residual of the share `forcing`."""
    curvatures = function.curvatures(margins)
    solution = np.zeros_like(gradient)
    residual = -gradient
    search = residual
    energy = float(residual @ residual)
    target = forcing**2 * energy
    for _ in range(2 * gradient.size + 20):
        image = function.curved(curvatures, search)
        length = energy / float(search @ image)
        solution = solution + length * search
        residual = residual - length * image
        before, energy = energy, float(residual @ residual)
        if energy <= target:
            break
        search = residual + (energy / before) * search
    return solution


def _step(
    function: RegularisedSum,
    weights: np.ndarray,
    gradient: np.ndarray,
    direction: np.ndarray,
) -> float:
    """Return a length at which the slope is between half of the first one and zero."""
    margins = function.margins(weights)
    moves = function.margins(direction)
    first = float(gradient @ direction)
    linear = function.regularization * float(weights @ direction)
    linear += float(function.linear_term @ direction)
    square = function.regularization * float(direction @ direction)
    low, high, length = 0.0, np.inf, 1.0
    for _ in range(_LINE_STEPS):
        slope = float(function.slopes(margins + length * moves) @ moves)
        slope += linear + length * square
        if slope > 0.0:
            high = length
        elif slope < 0.5 * first:
            low = length
        else:
            break
        length = 2.0 * length if np.isinf(high) else 0.5 * (low + high)
    return length
