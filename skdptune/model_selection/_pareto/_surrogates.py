"""Pareto fronts with their hypervolume, and surrogates: processes that predict the objectives."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg, optimize, special
from scipy.linalg import lapack

from skdptune._validation import installed

FloatArray = NDArray[np.float64]
Reference = Sequence[float] | FloatArray

# Share of the reference's first coordinate: on a logarithmic scale, smaller values count as this.
LEAST_SHARE = 1e-6


def non_dominated(points: ArrayLike) -> NDArray[np.bool_]:
    """Return which points are not dominated by another; of equal points only the first.

    A point dominates another if none of its coordinates is larger and at least one is smaller.
    """
    array = _points(points)
    if len(array) == 0:
        return np.zeros(0, dtype=bool)
    return np.asarray(_moocore().is_nondominated(array, keep_weakly=False), dtype=bool)


def front(points: ArrayLike) -> FloatArray:
    """Return the non-dominated points, sorted by the first coordinate."""
    array = _points(points)
    kept = array[non_dominated(array)]
    return kept[np.lexsort(kept.T[::-1])]


def hypervolume(points: ArrayLike, reference: Reference) -> float:
    """Return the volume between points and a reference point.

    Points with a coordinate at or beyond the reference's add nothing.
    """
    array = _points(points)
    inside = array[(array < np.asarray(reference)).all(axis=1)] if len(array) else array
    if len(inside) == 0:
        return 0.0
    return float(_moocore().hypervolume(inside, ref=np.asarray(reference, dtype=float)))


def on_log_scale(points: ArrayLike, reference: Reference) -> FloatArray:
    """Return the points with the logarithm of their first coordinates.

    First coordinates below `LEAST_SHARE` of the reference's are raised to that value, so that no
    volume is infinite.
    """
    array = np.array(_points(points))
    array[:, 0] = np.log(np.maximum(array[:, 0], LEAST_SHARE * reference[0]))
    return array


def hypervolume_history(
    points: ArrayLike, reference: Reference, epsilon_scale: str = "linear"
) -> FloatArray:
    """Return the hypervolume of the points up to each one; rows of NaN change nothing."""
    array = _points(points)
    if epsilon_scale == "log":
        array = on_log_scale(array, reference)
        reference = on_log_scale(np.asarray([reference]), reference)[0]
    history, known, volume = np.zeros(len(array)), np.empty((0, array.shape[1])), 0.0
    for number, point in enumerate(array):
        inside = not np.isnan(point).any() and bool((point < np.asarray(reference)).all())
        if inside and not (known <= point).all(axis=1).any():
            known = front(np.vstack([known, point]))
            volume = hypervolume(known, reference)
        history[number] = volume
    return history


def _points(points: ArrayLike) -> FloatArray:
    array = np.asarray(points, dtype=float)
    if array.ndim != 2:
        raise ValueError(f"points must be rows of coordinates; got {array.ndim} dimensions.")
    return array


def _moocore() -> Any:
    with installed("Pareto fronts need", "pareto"):
        import moocore
    return moocore


_SQRT5 = math.sqrt(5.0)
_NEEDED_FOR_FIT = 4
# Largest number of points for fitting hyperparameters: the cost grows with its cube.
_MOST_FOR_FIT = 300
_LARGEST_FRACTION = 1.0 - 1e-3


@dataclass(frozen=True)
class Scales:
    """The scales on which objectives are modelled.

    The first objective is positive and modelled by its logarithm; the second is a fraction and
    modelled by its logit. A third one is modelled unchanged, or by its logarithm if positive.
    Values are clipped: infinite first objectives, and fractions of exactly 0 or 1. Hypervolumes
    are those of the objectives themselves, or with ``epsilon_scale="log"`` of the first one's
    logarithm and the others.
    """

    reference: tuple[float, ...]
    third_is_positive: bool = False
    epsilon_scale: str = "linear"

    def forward(self, values: FloatArray) -> FloatArray:
        """Return rows of objectives on the scales."""
        scaled = np.array(values, dtype=float)
        worst = self.reference[0]
        scaled[:, 0] = np.log(np.clip(scaled[:, 0], LEAST_SHARE * worst, 100.0 * worst))
        fraction = np.clip(scaled[:, 1], 1.0 - _LARGEST_FRACTION, _LARGEST_FRACTION)
        scaled[:, 1] = np.log(fraction) - np.log1p(-fraction)
        if self.third_is_positive:
            scaled[:, 2:] = np.log(np.maximum(scaled[:, 2:], 1e-9))
        return scaled

    def axes(self, values: FloatArray) -> FloatArray:
        """Return rows of objectives on the axes of the hypervolume."""
        return on_log_scale(values, self.reference) if self.epsilon_scale == "log" else values

    def corner(self) -> FloatArray:
        """Return the reference point on the axes of the hypervolume."""
        corner: FloatArray = self.axes(np.array([self.reference]))[0]
        return corner

    def limit(self) -> FloatArray:
        """Return the reference point on the scales."""
        limit: FloatArray = self.forward(np.array([self.reference]))[0]
        if self.reference[1] >= 1.0:
            limit[1] = np.inf
        return limit

    def backward(self, scaled: FloatArray) -> FloatArray:
        """Return the objectives of values on the scales."""
        values = np.array(scaled, dtype=float)
        values[..., 0] = np.exp(np.minimum(values[..., 0], 700.0))
        values[..., 1] = 1.0 / (1.0 + np.exp(-np.clip(values[..., 1], -700.0, 700.0)))
        if self.third_is_positive:
            values[..., 2:] = np.exp(np.minimum(values[..., 2:], 700.0))
        return values


class Posterior:
    """A Gaussian process of Matern 5/2 covariance, conditioned on points.

    ``theta`` holds the logarithms of the variance, of one length for each group of columns
    (a category's columns share one), and of the noise variance.
    """

    def __init__(
        self,
        features: FloatArray,
        targets: FloatArray,
        groups: NDArray[np.int_],
        theta: FloatArray,
    ) -> None:
        self.features, self.targets, self.groups, self.theta = features, targets, groups, theta
        self._lengths = np.exp(theta[1:-1])[groups]
        self._centre, self._spread = standardisation(targets)
        covariance = _matern(_squares(features, features, self._lengths))
        covariance *= math.exp(theta[0])
        covariance[np.diag_indices_from(covariance)] += math.exp(theta[-1]) + _JITTER
        self._inverse, _ = _inverse(covariance)
        self._weights = self._inverse @ ((targets - self._centre) / self._spread)

    def predict(self, features: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return means and standard deviations of the objective, without its noise."""
        across = _matern(_squares(features, self.features, self._lengths))
        across *= math.exp(self.theta[0])
        mean = across @ self._weights
        explained = np.einsum("ij,ij->i", across @ self._inverse, across)
        variance = np.maximum(math.exp(self.theta[0]) - explained, 1e-12)
        return self._centre + self._spread * mean, self._spread * np.sqrt(variance)

    def with_predicted(self, features: FloatArray) -> Posterior:
        """Return the process conditioned on its own means at further points as well."""
        mean, _ = self.predict(features)
        return Posterior(
            np.vstack([self.features, features]),
            np.append(self.targets, mean),
            self.groups,
            self.theta,
        )


class Surrogate:
    """The Gaussian process of one objective.

    Hyperparameters are fitted at fixed numbers of points, and each fit starts from the previous
    one. They are a function of the points and their order, also in a search that is resumed.

    Parameters
    ----------
    groups : array of int
        The index of the dimension that each column of features belongs to.
    """

    def __init__(self, groups: Sequence[int]) -> None:
        self.groups = np.asarray(groups)
        self._fitted: dict[int, FloatArray] = {}

    def posterior(self, features: FloatArray, targets: FloatArray) -> Posterior:
        """Return the process conditioned on all points, given in the order of evaluation."""
        theta = default_theta(int(self.groups.max()) + 1)
        for count in fit_counts(len(targets)):
            if count not in self._fitted:
                self._fitted[count] = fit_theta(
                    features[:count], targets[:count], self.groups, theta
                )
            theta = self._fitted[count]
        return Posterior(features, targets, self.groups, theta)


def success_probability(
    good: FloatArray, failed: FloatArray, groups: Sequence[int]
) -> Callable[[FloatArray], FloatArray]:
    """Return the probability that an evaluation succeeds, as a function of features.

    A Gaussian process is fitted to ones (successes) and zeros (failures).
    """
    if len(failed) == 0:
        return lambda features: np.ones(len(features))
    columns = np.asarray(groups)
    features = np.vstack([good, failed])
    targets = np.repeat([1.0, 0.0], [len(good), len(failed)])
    fitted = np.linspace(0, len(targets) - 1, min(len(targets), 100)).astype(int)
    start = default_theta(int(columns.max()) + 1)
    theta = fit_theta(features[fitted], targets[fitted], columns, start)
    process = Posterior(features, targets, columns, theta)

    def probability(points: FloatArray) -> FloatArray:
        mean, deviation = process.predict(points)
        # No point is excluded, and the border between success and failure is never sharp.
        found: FloatArray = np.clip(special.ndtr((mean - 0.5) / (deviation + 0.1)), 1e-3, 1.0)
        return found

    return probability


def fit_counts(number: int) -> list[int]:
    """Return the numbers of points at which hyperparameters are fitted, up to ``number``."""
    counts, count = [], _NEEDED_FOR_FIT
    while count <= number:
        counts.append(count)
        count += max(4, count // 7)
    return counts


def default_theta(n_dimensions: int) -> FloatArray:
    """Return the middle of the prior."""
    return np.concatenate([[_VARIANCE[0]], np.full(n_dimensions, _LENGTH[0]), [_NOISE[0]]])


def fit_theta(
    features: FloatArray, targets: FloatArray, groups: NDArray[np.int_], start: FloatArray
) -> FloatArray:
    """Return the hyperparameters of largest posterior density near a start."""
    if len(targets) > _MOST_FOR_FIT:
        kept = np.linspace(0, len(targets) - 1, _MOST_FOR_FIT).astype(int)
        features, targets = features[kept], targets[kept]
    centre, spread = standardisation(targets)
    scaled = (targets - centre) / spread
    along = [features[:, groups == group] for group in range(int(groups.max()) + 1)]
    # The squared distances along each dimension.
    squares = np.array([_squares(columns, columns, np.ones(1)) for columns in along])
    starts = [start]
    if len(targets) < 50:
        starts.append(default_theta(len(squares)))
    fits = [
        optimize.minimize(
            _loss,
            first,
            args=(squares, scaled),
            jac=True,
            method="L-BFGS-B",
            bounds=[(-4.0, 6.0), *[(-4.0, 4.0)] * len(squares), (-14.0, 1.0)],
            options={"maxiter": 25, "ftol": 1e-6},
        )
        for first in starts
    ]
    best = min(fits, key=lambda fit: fit.fun)
    theta: FloatArray = best.x if np.isfinite(best.fun) else start
    return theta


def standardisation(targets: FloatArray) -> tuple[float, float]:
    """Return the mean and the standard deviation, 1 where all targets are equal."""
    spread = float(np.std(targets))
    return float(np.mean(targets)), spread if spread > 1e-9 else 1.0


_JITTER = 1e-7
# Prior means and standard deviations of the logarithms.
_VARIANCE, _LENGTH, _NOISE = (0.5, 1.5), (-0.3, 1.0), (-7.0, 3.0)


def _loss(theta: FloatArray, squares: FloatArray, targets: FloatArray) -> tuple[float, FloatArray]:
    """Return minus the log posterior density of hyperparameters, and its gradient."""
    rates = np.exp(-2.0 * theta[1:-1])
    variance, noise = math.exp(theta[0]), math.exp(theta[-1])
    square = np.tensordot(rates, squares, axes=1)
    distance = _SQRT5 * np.sqrt(square)
    fading = np.exp(-distance)
    signal = variance * (1.0 + distance + (5.0 / 3.0) * square) * fading
    covariance = signal.copy()
    covariance[np.diag_indices_from(covariance)] += noise + _JITTER
    try:
        inverse, log_determinant = _inverse(covariance)
    except linalg.LinAlgError:
        return 1e25, np.zeros_like(theta)
    weights = inverse @ targets
    slope = inverse - np.outer(weights, weights)
    pull = slope * ((5.0 / 3.0) * variance * (1.0 + distance) * fading)
    by_length = np.tensordot(squares, pull, axes=([1, 2], [0, 1])) * rates
    gradient = 0.5 * np.concatenate(
        [[np.vdot(slope, signal)], by_length, [noise * np.trace(slope)]]
    )
    prior = np.array([_VARIANCE, *[_LENGTH] * len(squares), _NOISE])
    means, deviations = prior[:, 0], prior[:, 1]
    offset = (theta - means) / deviations
    loss = 0.5 * float(targets @ weights) + 0.5 * log_determinant + 0.5 * float(offset @ offset)
    return loss, gradient + offset / deviations


def _inverse(covariance: FloatArray) -> tuple[FloatArray, float]:
    """Return the inverse and the logarithm of the determinant of a positive definite matrix."""
    factor = linalg.cholesky(covariance, lower=True, check_finite=False)
    log_determinant = 2.0 * float(np.log(np.diag(factor)).sum())
    lower, _ = lapack.dpotri(factor, lower=1)
    inverse = np.tril(lower) + np.tril(lower, -1).T
    return inverse, log_determinant


def _matern(squares: FloatArray) -> FloatArray:
    distance = _SQRT5 * np.sqrt(squares)
    correlation: FloatArray = (1.0 + distance + (5.0 / 3.0) * squares) * np.exp(-distance)
    return correlation


def _squares(left: FloatArray, right: FloatArray, lengths: FloatArray) -> FloatArray:
    """Return the squared distances in units of the lengths."""
    left, right = left / lengths, right / lengths
    squares = (left**2).sum(axis=1)[:, np.newaxis] + (right**2).sum(axis=1) - 2 * left @ right.T
    clipped: FloatArray = np.maximum(squares, 0.0)
    return clipped
