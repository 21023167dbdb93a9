"""Values with noise, ready for release: all numbers are on grids that do not depend on data."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from skdptune.mechanisms._exact_noise._draws import (
    ERROR,
    Bounds,
    ChiFactor,
    ConstantFactor,
    Draws,
    Factor,
    Floats,
    LaplaceDraws,
    NormalDraws,
)

# Number of draws at once: intermediate results fit into a processor's cache.
_AT_ONCE = 1 << 14


class NormalNoise:
    """Normal noise for a sequence of arrays, drawn in portions.

    Parameters
    ----------
    scale : float
        Positive standard deviation.
    generator : numpy.random.Generator
        Generator of the noise.
    grid : float, optional
        A power of two; by default, `grid_of` the scale.
    at_once : int, optional
        Number of draws in a portion.

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
        """Return values plus noise, rounded to the grid.

        Parameters
        ----------
        values : ndarray of float64
            Array of any shape. NaN counts as 0, and infinite values as the largest double.
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


class NoiseOfSeveral:
    """Noise of several sources for a sequence of arrays, added at the same time.

    Parameters
    ----------
    sources : sequence of NormalNoise
        They are new, and have portions of one size.

    Notes
    -----
    Theorem E1. The numbers are those of each source, to the last bit.
    """

    def __init__(self, sources: Sequence[NormalNoise]) -> None:
        self._sources = sources
        self._stack()

    def _stack(self) -> None:
        self._sums = [source._sums for source in self._sources]
        self._noise = np.stack([sums._noise for sums in self._sums])
        self._is_sure = not any(sums._draws.doubtful.size for sums in self._sums)
        columns = ("_per_step", "_grid", "_slack", "_largest_easy_square")
        self._per_step, self._grid, self._slack, self._largest = (
            np.array([[getattr(sums, name)] for sums in self._sums]) for name in columns
        )

    def added_to(self, values: Floats) -> Floats:
        """Return values plus noise, rounded to the grid; the first axis is that of the sources."""
        flat, first = values.reshape(len(self._sources), -1), self._sources[0]._used
        last = first + flat.shape[1]
        if self._is_sure and last <= self._noise.shape[1]:
            # As in `RoundedSums.of`.
            steps, distances = _nearest_steps(flat, self._per_step, self._noise[:, first:last])
            is_easy = np.einsum("ij,ij->i", flat, flat)[:, None] <= self._largest
            if (is_easy & (distances < 0.5 - self._slack)).all():
                for source in self._sources:
                    source._used = last
                return (steps * self._grid).reshape(values.shape)
        pairs = zip(self._sources, flat, strict=True)
        result = np.stack([source.added_to(own) for source, own in pairs])
        if self._sums[0] is not self._sources[0]._sums:
            self._stack()
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
        Generator of the noise.
    grid : float, optional
        A power of two; by default, `grid_of` the scale.

    Notes
    -----
    Theorem E1.
    """
    with np.errstate(over="ignore"):
        at_once = min(values.size, _AT_ONCE)
        return NormalNoise(scale, generator, grid, at_once).added_to(values)


def add_laplace(values: Floats, scale: float, generator: np.random.Generator) -> Floats:
    """Return values plus independent noise with density ``exp(-abs(x) / scale) / (2 scale)``.

    Parameters
    ----------
    values, scale, generator
        See `add_gaussian`.

    Notes
    -----
    Theorem E1.
    """
    return _added(values, ConstantFactor(scale), LaplaceDraws, generator, grid_of(scale))


def add_spherical(
    values: Floats, scale: float, generator: np.random.Generator, grid: float | None = None
) -> Floats:
    """Return a vector plus noise with density proportional to ``exp(-norm / scale)``.

    Parameters
    ----------
    values : ndarray of float64 of shape (n_values,)
    scale, generator
        See `add_gaussian`.
    grid : float, optional
        A power of two; by default, `grid_of` the `spherical_spread`.

    Notes
    -----
    Theorem E1, Theorem E2.
    """
    if grid is None:
        grid = grid_of(spherical_spread(scale, values.size))
    factor = ChiFactor(scale, values.size + 1, generator)
    return _added(values, factor, NormalDraws, generator, grid)


def _added(
    values: Floats,
    factor: Factor,
    kind: type[Draws],
    generator: np.random.Generator,
    grid: float,
) -> Floats:
    """Return values plus a factor times draws of a kind, drawn in portions."""
    flat, result = values.reshape(-1), np.empty(values.size)
    for start in range(0, values.size, _AT_ONCE):
        part = flat[start : start + _AT_ONCE]
        draws = kind(part.size, generator)
        result[start : start + part.size] = rounded_sums(part, factor, draws, grid)
    return result.reshape(values.shape)


def spherical_spread(scale: float, n_values: int) -> float:
    """Return the standard deviation of each number for noise with density ``exp(-norm / scale)``.

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
        Generator of the numbers.
    grid : float
        A power of two that does not depend on data; the result is rounded to its multiples.

    Notes
    -----
    Theorem E1.
    """
    return rounded_images(centre, matrix, spreads, NormalDraws(centre.size, generator), grid)


# Sums of values and real noise, rounded to a grid ----------------------------------------

# Doubles are used if they are certain to be on the right side of the middle between two multiples
# of the grid; otherwise, rational numbers decide. At the end, a multiple is rounded to a double,
# which is a function of this multiple only.
#
# Theorem E1: real noise plus the value, rounded to a grid that no data choose.

# Binary digits of the steps of the grid per unit of noise: the grid adds less than 2^-43 to a
# variance of 1.
_GRID_BITS = 20
# Smallest exponent of a normal double.
_LEAST_EXPONENT = -1022
_LARGEST = float(np.finfo(np.float64).max)
# Sums of up to this many steps are accurate to a small part of a step.
_EASY = 2.0**30
_LARGEST_SQUARE = 2.0**1000
# This many steps are exact as 64-bit integers, with room for the noise.
_COUNTABLE = 2.0**62
_ROUNDING = 2.0**-51
_FIRST_PLACES = 56


def grid_of(scale: float, bits: int = _GRID_BITS) -> float:
    """Return the step of the grid on which noise is released, from its scale only.

    Parameters
    ----------
    scale : float
        The size of the noise on one number; positive.
    bits : int, default=20
        The step is a power of two, between ``2**-(bits + 1)`` and ``2**-bits`` of the scale.

    Notes
    -----
    Theorem E1.

    Examples
    --------
    >>> grid_of(1.5) == 2.0**-20
    True
    """
    return 2.0 ** max(math.frexp(scale)[1] - 1 - bits, _LEAST_EXPONENT)


class RoundedSums:
    """Sums of values and a factor times draws, rounded to the nearest multiples of a grid.

    Parameters
    ----------
    factor : Factor
    draws : Draws
    grid : float
        A power of two.

    Notes
    -----
    Theorem E1.
    """

    def __init__(self, factor: Factor, draws: Draws, grid: float) -> None:
        self._factor, self._draws, self._grid = factor, draws, grid
        step = factor.value / grid
        self._noise = draws.values * step
        self._per_step = 1.0 / grid
        self._largest_easy_square = min(_EASY * grid * (_EASY * grid), _LARGEST_SQUARE)
        # Bound on rounding errors of products and sums, and on the effect of the factor's error.
        largest = step * draws.largest
        self._slack = step * ERROR + largest * factor.relative_error
        self._slack += (_EASY + largest) * _ROUNDING

    def of(self, values: Floats, first: int = 0) -> Floats:
        """Return the values plus noise.

        Parameters
        ----------
        values : ndarray of shape (n_values,)
            NaN counts as 0, and infinite values as the largest double.
        first : int, default=0
            Index of the first draw to use.
        """
        # The sum of squares is at least each value's square, and NaN if any value is NaN. `dot`
        # would warn of an overflow, which values decide.
        square = np.einsum("i,i", values, values)
        if not square <= self._largest_easy_square:
            return self._of_large(values, first)
        last = first + values.size
        steps, sums = _nearest_steps(values, self._per_step, self._noise[first:last])
        result = steps * self._grid
        is_sure = np.maximum.reduce(sums, initial=0.0) < 0.5 - self._slack
        if not is_sure or self._draws.doubtful.size:
            self._correct(result, values, first, ~(sums < 0.5 - self._slack))
        return result

    def _of_large(self, values: Floats, first: int) -> Floats:
        """Return the same for values of any size, with the integer steps counted separately."""
        values = np.nan_to_num(values, nan=0.0, posinf=_LARGEST, neginf=-_LARGEST)
        with np.errstate(all="ignore"):
            scaled = values * self._per_step
            whole = np.rint(scaled)
            # The fractional part is exact.
            sums = scaled - whole + self._noise[first : first + values.size]
            steps = np.rint(sums)
            is_sure = np.abs(sums - steps) < 0.5 - self._slack
            is_sure &= (np.abs(whole) < _COUNTABLE) & (np.abs(steps) < _COUNTABLE)
            counts = [np.where(is_sure, part, 0.0).astype(np.int64) for part in (whole, steps)]
            result = (counts[0] + counts[1]).astype(np.float64) * self._grid
        result = np.clip(result, -_LARGEST, _LARGEST)
        self._correct(result, values, first, ~is_sure)
        return result

    def _correct(
        self, result: Floats, values: Floats, first: int, is_unsure: NDArray[np.bool_]
    ) -> None:
        """Replace sums by exact ones where doubles do not decide."""
        doubtful = self._draws.doubtful
        low, high = np.searchsorted(doubtful, [first, first + values.size])
        is_unsure[doubtful[low:high] - first] = True
        for place in np.flatnonzero(is_unsure):
            value = float(values[place])
            steps = _exact_steps(value, self._factor, self._draws, first + int(place), self._grid)
            result[place] = _multiple(steps, self._grid)


def _nearest_steps(values: Floats, per_step: Floats | float, noise: Floats) -> list[Floats]:
    """Return whole numbers of steps next to values plus noise, and the distances from them."""
    sums = values * per_step
    sums += noise
    steps = np.rint(sums)
    sums -= steps
    return [steps, np.abs(sums, out=sums)]


def rounded_sums(values: Floats, factor: Factor, draws: Draws, grid: float) -> Floats:
    """Return values plus the factor times draws, rounded to multiples of the grid.

    Parameters
    ----------
    values : ndarray of shape (n_values,)
    factor, draws, grid
        See `RoundedSums`.

    Notes
    -----
    Theorem E1.
    """
    with np.errstate(over="ignore"):
        return RoundedSums(factor, draws, grid).of(values)


def rounded_images(
    centre: Floats, matrix: Floats, spreads: Floats, draws: Draws, grid: float
) -> Floats:
    """Return ``matrix @ (centre + spreads * draws)``, rounded to multiples of the grid.

    Parameters
    ----------
    centre, spreads : ndarray of shape (n_draws,)
    matrix : ndarray of shape (n_values, n_draws)
    draws : Draws
    grid : float
        A power of two.

    Notes
    -----
    Theorem E1.
    """
    numbers = centre + spreads * draws.values
    sizes = np.abs(matrix)
    reach = sizes @ (np.abs(centre) + np.abs(spreads * draws.values))
    # A matrix product rounds each summand at most as often as there are summands.
    error = (centre.size + 4.0) * _ROUNDING * reach + ERROR * (sizes @ np.abs(spreads))
    with np.errstate(all="ignore"):
        sums = matrix @ numbers / grid
        steps = np.rint(sums)
        is_unsure = ~(np.abs(sums - steps) < 0.5 - error / grid)
        result = np.clip(steps * grid, -_LARGEST, _LARGEST)
    is_unsure |= bool(draws.doubtful.size)
    for place in np.flatnonzero(is_unsure):
        row = matrix[place]
        result[place] = _multiple(_exact_image(row, centre, spreads, draws, grid), grid)
    return result


def _multiple(steps: int, grid: float) -> float:
    """Return a multiple of the grid, rounded to a double."""
    # The number of steps may exceed all doubles.
    exact = Fraction(steps) * Fraction(grid)
    return float(min(max(exact, Fraction(-_LARGEST)), Fraction(_LARGEST)))


def _exact_steps(value: float, factor: Factor, draws: Draws, place: int, grid: float) -> int:
    exact = Fraction(value)

    def bounds(places: int) -> Bounds:
        products = [
            one * other for one in factor.bounds(places) for other in draws.bounds(place, places)
        ]
        return exact + min(products), exact + max(products)

    return _nearest_multiple(bounds, grid)


def _exact_image(row: Floats, centre: Floats, spreads: Floats, draws: Draws, grid: float) -> int:
    middle = sum(
        (Fraction(one) * Fraction(other) for one, other in zip(row, centre, strict=True)),
        Fraction(0),
    )
    weights = [Fraction(one) * Fraction(other) for one, other in zip(row, spreads, strict=True)]

    def bounds(places: int) -> Bounds:
        low = high = middle
        for place, weight in enumerate(weights):
            ends = sorted(weight * end for end in draws.bounds(place, places))
            low, high = low + ends[0], high + ends[1]
        return low, high

    return _nearest_multiple(bounds, grid)


def _nearest_multiple(bounds: Callable[[int], Bounds], grid: float) -> int:
    """Return the number of steps nearest to a real number, using ever tighter bounds."""
    places, unit = _FIRST_PLACES, Fraction(grid)
    while True:
        low, high = (math.floor(bound / unit + Fraction(1, 2)) for bound in bounds(places))
        if low == high:
            return low
        places *= 2
