"""The direction in which published numbers differ between two sides, learnt from some fits."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
# From standardised rows of both sides to weights.
Kind = Callable[[FloatArray, FloatArray], FloatArray]

# Of more numbers the covariance would take too long.
_MOST_CORRELATED = 256
# In standard deviations; what has no noise is farther than any.
_FARTHEST = 100.0
_LEAST_SPREAD = 1e-9
_FEWEST = 4


class Fold(NamedTuple):
    """Distances from what is usual on the side that varies less, in its standard deviations.

    Attributes
    ----------
    centre, spread : ndarray of shape (n_numbers,)
    """

    centre: FloatArray
    spread: FloatArray

    def of(self, numbers: FloatArray) -> FloatArray:
        """Return how far each number is; those that are missing stay so."""
        with np.errstate(all="ignore"):
            return np.minimum(np.abs((numbers - self.centre) / self.spread), _FARTHEST)


class Direction(NamedTuple):
    """A weighted sum of standardised numbers, or of standardised distances.

    Attributes
    ----------
    centre, spread, weights : ndarray of shape (n_numbers,)
    fold : Fold or None
        What makes distances of numbers.
    """

    centre: FloatArray
    spread: FloatArray
    weights: FloatArray
    fold: Fold | None = None

    def of(self, numbers: FloatArray) -> FloatArray:
        """Return the sum for each row; numbers that are missing count as the centre."""
        if self.fold is not None:
            numbers = self.fold.of(numbers)
        return _standardised(numbers, self.centre, self.spread) @ self.weights


def learnt_direction(
    together: FloatArray, without: FloatArray, n_first: int | None = None
) -> Direction:
    """Return the direction that tells two sides apart, by rows of numbers of both.

    It is the difference of means of all numbers, of those alone where it is clear, or weighted by
    the shrunk covariance of all or of the first ones (Ledoit and Wolf 2004), or the clear
    difference of distances: that which separates one half of the rows best when it is learnt from
    the other half. Distances show a record that moves a number up or down by chance, as it does
    an exact score that counts it as right or as wrong.

    Parameters
    ----------
    together, without : ndarray of shape (n_fits, n_numbers)
    n_first : int, optional
        How many of the numbers are likely to tell most.
    """
    width = together.shape[1]
    rows = min(len(together), len(without)) // 2
    kinds: list[Kind] = [_difference, _clear_difference]
    if n_first is not None and n_first < width:
        kinds.insert(0, functools.partial(_of_first, n_first))
    if width <= _MOST_CORRELATED:
        kinds.append(_decorrelated)
    if rows < _FEWEST:
        return _learnt(kinds[0], together, without)
    ways = [functools.partial(_learnt, kind) for kind in kinds] + [_learnt_of_distances]

    def separation(learn: Callable[[FloatArray, FloatArray], Direction]) -> float:
        found = learn(together[:rows], without[:rows])
        sides = found.of(together[rows:]), found.of(without[rows:])
        spread = math.sqrt(sides[0].var() + sides[1].var())
        return float(sides[0].mean() - sides[1].mean()) / max(spread, _LEAST_SPREAD)

    return max(ways, key=separation)(together, without)


def _learnt(kind: Kind, together: FloatArray, without: FloatArray) -> Direction:
    sides = together, without
    means, squares = _moments(sides)
    difference = means[0] - means[1]
    centre = 0.5 * (means[0] + means[1])
    least = _LEAST_SPREAD * (np.abs(difference) + np.abs(centre))
    spread = np.maximum(np.sqrt(0.5 * (squares[0] + squares[1])), least)
    spread = np.where(spread > 0.0, spread, 1.0)
    weights = kind(*(_standardised(side, centre, spread) for side in sides))
    return Direction(centre, spread, weights)


def _learnt_of_distances(together: FloatArray, without: FloatArray) -> Direction:
    means, squares = _moments((together, without))
    is_first = squares[0] < squares[1]
    centre = np.where(is_first, means[0], means[1])
    usual, other = (np.sqrt(pick(squares[0], squares[1])) for pick in (np.minimum, np.maximum))
    spread = np.maximum(usual, _LEAST_SPREAD * (np.abs(centre) + other))
    fold = Fold(centre, np.where(spread > 0.0, spread, 1.0))
    found = _learnt(_clear_difference, fold.of(together), fold.of(without))
    return found._replace(fold=fold)


def _moments(
    sides: tuple[FloatArray, FloatArray],
) -> tuple[list[FloatArray], list[FloatArray]]:
    """Return means and variances of all numbers, of both sides."""
    with np.errstate(all="ignore"):
        means = [_column_means(side) for side in sides]
        squares = [_column_means((side - m) ** 2) for side, m in zip(sides, means, strict=True)]
    return means, squares


def _column_means(rows: FloatArray) -> FloatArray:
    """Return means over numbers that are there, 0 where none is."""
    known = np.isfinite(rows)
    return np.where(known, rows, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)


def _standardised(numbers: FloatArray, centre: FloatArray, spread: FloatArray) -> FloatArray:
    with np.errstate(all="ignore"):
        found = np.clip((numbers - centre) / spread, -_FARTHEST, _FARTHEST)
    return np.where(np.isnan(found), 0.0, found)


def _difference(together: FloatArray, without: FloatArray) -> FloatArray:
    return together.mean(axis=0) - without.mean(axis=0)


def _clear_difference(together: FloatArray, without: FloatArray) -> FloatArray:
    """Return differences that are farther from 0 than the farthest of as many without any."""
    difference = _difference(together, without)
    clear = math.sqrt(2.0 * math.log(2.0 * difference.size))
    error = math.sqrt(1.0 / len(together) + 1.0 / len(without))
    size = np.abs(difference)
    return np.where(size >= min(clear * error, size.max()), difference, 0.0)


def _of_first(number: int, together: FloatArray, without: FloatArray) -> FloatArray:
    weights = np.zeros(together.shape[1])
    weights[:number] = _decorrelated(together[:, :number], without[:, :number])
    return weights


def _decorrelated(together: FloatArray, without: FloatArray) -> FloatArray:
    from sklearn.covariance import ledoit_wolf

    residuals = [side - side.mean(axis=0) for side in (together, without)]
    covariance = ledoit_wolf(np.concatenate(residuals), assume_centered=True)[0]
    # Numbers without any noise leave a singular matrix.
    covariance = covariance + 1e-9 * np.eye(len(covariance))
    return np.linalg.solve(covariance, _difference(together, without))
