"""Values with noise, ready to be released: every number is on a grid that no data choose."""

from __future__ import annotations

import math

import numpy as np

from skdptune.mechanisms._exact_noise._draws import (
    ChiFactor,
    ConstantFactor,
    Floats,
    LaplaceDraws,
    NormalDraws,
)
from skdptune.mechanisms._exact_noise._rounding import (
    RoundedSums,
    grid_of,
    rounded_images,
    rounded_sums,
)

# Numbers drawn at once: what is made of them on the way stays in a processor's cache.
_AT_ONCE = 1 << 14


class NormalNoise:
    """Normal noise for one array after another, drawn in portions.

    Parameters
    ----------
    scale : float
        Positive standard deviation.
    generator : numpy.random.Generator
        Source of the noise.
    grid : float, optional
        A power of two; by default `grid_of` the scale.
    at_once : int, optional
        Numbers in a portion.

    Notes
    -----
    Theorem E1.
    """

    def __init__(
        self,
        scale: float,
        generator: np.random.Generator,
        grid: float | None = None,
        at_once: int = _AT_ONCE,
    ) -> None:
        self.grid = grid_of(scale) if grid is None else grid
        self._factor = ConstantFactor(scale)
        self._generator = generator
        self._at_once = at_once
        self._sums = self._next_portion()

    def _next_portion(self) -> RoundedSums:
        self._used = 0
        return RoundedSums(self._factor, NormalDraws(self._at_once, self._generator), self.grid)

    def added_to(self, values: Floats) -> Floats:
        """Return values with noise, rounded to the grid.

        Parameters
        ----------
        values : ndarray of float64
            Of any shape. NaN counts as 0, and what is infinite as the largest double.
        """
        flat = values.reshape(-1)
        parts, done = [], 0
        while done < flat.size:
            if self._used == self._at_once:
                self._sums = self._next_portion()
            part = flat[done : done + self._at_once - self._used]
            parts.append(self._sums.of(part, self._used))
            done += part.size
            self._used += part.size
        result = parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0), *parts])
        return result.reshape(values.shape)


def add_gaussian(
    values: Floats, scale: float, generator: np.random.Generator, grid: float | None = None
) -> Floats:
    """Return values plus independent normal noise, rounded to a grid.

    Parameters
    ----------
    values : ndarray of float64
    scale : float
        Positive standard deviation.
    generator : numpy.random.Generator
        Source of the noise.
    grid : float, optional
        A power of two; by default `grid_of` the scale.

    Notes
    -----
    Theorem E1.
    """
    with np.errstate(over="ignore"):
        at_once = min(values.size, _AT_ONCE)
        return NormalNoise(scale, generator, grid, at_once).added_to(values)


def add_laplace(values: Floats, scale: float, generator: np.random.Generator) -> Floats:
    """Return values plus independent noise of density ``exp(-abs(x) / scale) / (2 scale)``.

    Parameters
    ----------
    values, scale, generator
        As for `add_gaussian`.

    Notes
    -----
    Theorem E1.
    """
    factor, grid, result = ConstantFactor(scale), grid_of(scale), np.empty(values.size)
    for start in range(0, values.size, _AT_ONCE):
        part = values.reshape(-1)[start : start + _AT_ONCE]
        draws = LaplaceDraws(part.size, generator)
        result[start : start + part.size] = rounded_sums(part, factor, draws, grid)
    return result.reshape(values.shape)


def add_spherical(
    values: Floats, scale: float, generator: np.random.Generator, grid: float | None = None
) -> Floats:
    """Return a vector plus noise of density proportional to ``exp(-norm / scale)``.

    Parameters
    ----------
    values : ndarray of float64 of shape (n_values,)
    scale, generator
        As for `add_gaussian`.
    grid : float, optional
        A power of two; by default `grid_of` the `spherical_spread`.

    Notes
    -----
    Theorem E1, Theorem E2.
    """
    if grid is None:
        grid = grid_of(spherical_spread(scale, values.size))
    factor, result = ChiFactor(scale, values.size + 1, generator), np.empty(values.size)
    for start in range(0, values.size, _AT_ONCE):
        part = values[start : start + _AT_ONCE]
        draws = NormalDraws(part.size, generator)
        result[start : start + part.size] = rounded_sums(part, factor, draws, grid)
    return result


def spherical_spread(scale: float, n_values: int) -> float:
    """Return the standard deviation of each number of noise of density ``exp(-norm / scale)``.

    Notes
    -----
    Theorem E2.

    Examples
    --------
    >>> spherical_spread(1.0, 1) ** 2
    2.0000000000000004
    """
    return scale * math.sqrt(n_values + 1.0)


def draw_images(
    centre: Floats,
    matrix: Floats,
    spreads: Floats,
    generator: np.random.Generator,
    grid: float,
) -> Floats:
    """Return ``matrix @ (centre + spreads * normal)``, with independent normal numbers.

    Parameters
    ----------
    centre, spreads : ndarray of shape (n_draws,)
    matrix : ndarray of shape (n_values, n_draws)
    generator : numpy.random.Generator
        Source of the numbers.
    grid : float
        A power of two that no data choose, to which the result is rounded.

    Notes
    -----
    Theorem E1.
    """
    return rounded_images(centre, matrix, spreads, NormalDraws(centre.size, generator), grid)
