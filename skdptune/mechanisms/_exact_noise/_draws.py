"""Standard random numbers as doubles, close to real numbers whose further digits are available."""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from skdptune._secure_random import independent_generator

# Digits ----------------------------------------------------------------------------------

# A draw is known as an interval: the digits drawn so far do not determine its exact position, and
# no digit is ever drawn again. Functions of draws are bounded by rational numbers. Logarithms and
# roots of `decimal` are correctly rounded, so these bounds are proved and not estimated.
#
# Theorem E1: real noise plus the value, rounded to a grid that no data choose.

# Maps a number of binary digits to a uniform integer with this many digits.
Digits = Callable[[int], int]
Bounds = tuple[Fraction, Fraction]

_MORE_DIGITS = 128
_SPARE_DECIMALS, _MORE_DECIMALS = 8, 40
_FEW_ROUNDINGS = Fraction(100)


class LazyUniforms:
    """Independent uniform numbers in (0, 1), all known to the same number of digits.

    Parameters
    ----------
    numerators : list of int
        Each number lies between ``k / 2**n_digits`` and the next multiple.
    n_digits : int
        Number of binary digits of each that were drawn.
    draw : callable
        Source of further digits.
    """

    def __init__(self, numerators: list[int], n_digits: int, draw: Digits) -> None:
        self._numerators = numerators
        self._n_digits = n_digits
        self._draw = draw

    def minus_log_product(self, places: int) -> Bounds:
        """Return bounds on minus the logarithm of their product, within ``2**-places``."""
        return _narrowed(self._minus_log_product, self._extend, places)

    def _minus_log_product(self, decimals: int) -> Bounds | None:
        decimals += len(str(len(self._numerators)))
        down, up = _contexts(decimals)
        unit = Decimal(1 << self._n_digits)
        low = high = Decimal(1)
        for number in self._numerators:
            low = down.multiply(low, down.divide(Decimal(number), unit))
            high = up.multiply(high, up.divide(Decimal(number + 1), unit))
        if low == 0:
            return None
        return _lower(down.ln(high).copy_negate(), decimals), _upper(
            down.ln(low).copy_negate(), decimals
        )

    def _extend(self) -> None:
        self._numerators = _extended(self._numerators, self._draw)
        self._n_digits += _MORE_DIGITS


class LazyPoint:
    """A uniform point in the square from -1 to 1, and the normal numbers computed from it.

    For a point inside the unit circle with squared distance w from the centre, its coordinates
    times ``sqrt(-2 log(w) / w)`` are two independent standard normal numbers (Marsaglia's polar
    method).

    Parameters
    ----------
    first, second : int
        Each coordinate lies between ``k / 2**n_digits`` and the next multiple.
    n_digits : int
        Number of binary digits of each that were drawn, not counting the sign.
    draw : callable
        Source of further digits.
    """

    def __init__(self, first: int, second: int, n_digits: int, draw: Digits) -> None:
        self._point = [first, second]
        self._n_digits = n_digits
        self._draw = draw

    def is_inside(self) -> bool:
        """Return whether the point lies inside the unit circle."""
        while True:
            low, high = self._squared_distance()
            if high <= 1 or low >= 1:
                return high <= 1
            self._extend()

    def normal(self, axis: int, places: int) -> Bounds:
        """Return bounds on one of the two normal numbers, within ``2**-places``."""
        return _narrowed(lambda decimals: self._normal(axis, decimals), self._extend, places)

    def _normal(self, axis: int, decimals: int) -> Bounds | None:
        near, far = self._squared_distance()
        if near == 0 or far > 1:
            return None
        factors = _polar_factor(far, decimals)[0], _polar_factor(near, decimals)[1]
        unit = 1 << self._n_digits
        ends = Fraction(self._point[axis], unit), Fraction(self._point[axis] + 1, unit)
        products = [end * factor for end in ends for factor in factors]
        return min(products), max(products)

    def _squared_distance(self) -> Bounds:
        squares = [sorted((k * k, (k + 1) * (k + 1))) for k in self._point]
        unit = 1 << 2 * self._n_digits
        low, high = (one + other for one, other in zip(*squares, strict=True))
        return Fraction(low, unit), Fraction(high, unit)

    def _extend(self) -> None:
        self._point = _extended(self._point, self._draw)
        self._n_digits += _MORE_DIGITS


def root(bounds: Bounds, places: int) -> Bounds:
    """Return bounds on the square root of a positive number, within ``2**-places`` of itself."""
    decimals = _decimals(places)
    down, up = _contexts(decimals)
    low, high = (
        context.divide(Decimal(one.numerator), Decimal(one.denominator))
        for context, one in zip((down, up), bounds, strict=True)
    )
    return _lower(down.sqrt(low), decimals), _upper(up.sqrt(high), decimals)


def _polar_factor(square: Fraction, decimals: int) -> Bounds:
    """Return bounds on ``sqrt(-2 log(w) / w)``, which decreases in w, for w in (0, 1]."""
    down, up = _contexts(decimals)
    top, bottom = Decimal(square.numerator), Decimal(square.denominator)
    near, far = down.divide(top, bottom), up.divide(top, bottom)
    low = down.multiply(2, down.divide(down.ln(far).copy_negate(), far))
    high = up.multiply(2, up.divide(down.ln(near).copy_negate(), near))
    return _lower(down.sqrt(max(low, Decimal(0))), decimals), _upper(up.sqrt(high), decimals)


def _narrowed(
    bounds: Callable[[int], Bounds | None], extend: Callable[[], None], places: int
) -> Bounds:
    """Return bounds at most ``2**-places`` apart, using the necessary digits and decimals."""
    decimals = _decimals(places)
    while True:
        found = bounds(decimals)
        if found is not None and found[1] - found[0] <= Fraction(1, 1 << places):
            return found
        extend()
        decimals += _MORE_DECIMALS


def _extended(numbers: list[int], draw: Digits) -> list[int]:
    n_bytes = _MORE_DIGITS // 8
    drawn = draw(_MORE_DIGITS * len(numbers)).to_bytes(n_bytes * len(numbers), "little")
    return [
        (number << _MORE_DIGITS) | int.from_bytes(drawn[k * n_bytes : (k + 1) * n_bytes], "little")
        for k, number in enumerate(numbers)
    ]


def _decimals(places: int) -> int:
    """Return a number of decimals that is sufficient for a number of binary places."""
    return math.ceil(0.302 * places) + _SPARE_DECIMALS


def _contexts(decimals: int) -> tuple[decimal.Context, decimal.Context]:
    """Return decimal arithmetic of a given precision, rounding down and rounding up."""
    down, up = (
        decimal.Context(
            prec=decimals,
            rounding=rounding,
            Emin=decimal.MIN_EMIN,
            Emax=decimal.MAX_EMAX,
            traps=[decimal.InvalidOperation, decimal.DivisionByZero, decimal.Overflow],
        )
        for rounding in (decimal.ROUND_FLOOR, decimal.ROUND_CEILING)
    )
    return down, up


def _lower(rounded: Decimal, decimals: int) -> Fraction:
    """Return a lower bound on a number, given the result of a few roundings.

    The error of one rounding is below ``10**(1 - decimals)`` of the number.
    """
    return Fraction(rounded) * (1 - _FEW_ROUNDINGS / 10**decimals)


def _upper(rounded: Decimal, decimals: int) -> Fraction:
    return Fraction(rounded) * (1 + _FEW_ROUNDINGS / 10**decimals)


# Doubles near them -----------------------------------------------------------------------

# A double is within `ERROR` of the real number that it represents, except at a few listed places.
# The bound assumes basic operations and roots as defined by IEEE 754, and logarithms with a
# relative error below 2^-46, 64 times the error for which NumPy's are tested (Assumption E0).
#
# Theorem E1: real noise plus the value, rounded to a grid that no data choose.

Floats = NDArray[np.float64]

ERROR = 2.0**-40
_LOG_ERROR = 2.0**-46
# Outside of these squared distances from the centre, doubles are not accurate enough.
_NEAREST, _FARTHEST = 2.0**-26, 1.0 - 2.0**-18
# Closer to the circle than this, doubles do not determine on which side of it a point is.
_BORDER = 2.0**-50
_INSIDE = math.pi / 4.0
_SIGNED_DIGITS, _DIGITS = 63, 64
# Uniform numbers below this, in units of their last digit, have too few digits.
_LEAST = 1 << 44
# A factor with a larger relative error is computed again, with more digits.
_LARGEST_RELATIVE_ERROR, _SHARP_PLACES, _ROUNDING = 2.0**-36, 60, 2.0**-50


class NormalDraws:
    """Independent standard normal numbers.

    Parameters
    ----------
    count : int
    generator : numpy.random.Generator
        Source of all digits. The number of draws requested from it depends only on its own output.

    Notes
    -----
    Theorem E1.

    Let ``u`` be a coordinate and w the squared distance of a uniform point in the unit disc. The
    number is ``u sqrt(2 L / w)``, with ``L = -log(w)``. As doubles, u has an error of ``2^-53
    abs(u) + 2^-63``, and w a relative error of ``2^-51 + 2^-61 / sqrt(w)``. The latter changes L,
    in addition to a relative error of its logarithm of 2^-46. The size of the number is at most
    ``sqrt(2 L)``. So all errors together change it by ``2^-50.9 sqrt(2 / L)`` for w near 1 (at
    most 2^-41.3 up to ``1 - 2^-18``), by ``2^-46.9 sqrt(2 L)`` (at most 2^-44), and by about 2^-47
    for w near ``2^-26``: 2^-41 in total.
    """

    # sqrt(-2 log(2^-26)), slightly rounded up.
    largest = 6.1

    def __init__(self, count: int, generator: np.random.Generator) -> None:
        self._digits = further_digits(generator)
        self._n_pairs = (count + 1) // 2
        self._lazy: dict[int, LazyPoint] = {}
        # Origins of the pairs' digits: the first pair, random integers, and which of these are
        # pairs.
        self._origins: list[tuple[int, NDArray[np.int64], NDArray[np.intp]]] = []
        points, squares = self._points_inside(generator)
        factors = np.log(squares)
        factors *= -2.0
        factors /= squares
        np.sqrt(factors, out=factors)
        points *= factors
        self.values: Floats = points.ravel()[:count]
        pairs = np.flatnonzero((squares < _NEAREST) | (squares > _FARTHEST))
        places = np.concatenate([pairs, pairs + self._n_pairs])
        self.doubtful: NDArray[np.intp] = places[places < count]

    def _points_inside(self, generator: np.random.Generator) -> tuple[Floats, Floats]:
        """Return points in the unit disc, one for each pair, and their squared distances."""
        points, squares, done = np.empty((2, self._n_pairs)), np.empty(self._n_pairs), 0
        while done < self._n_pairs:
            missing = self._n_pairs - done
            size = math.ceil((missing + 3.0 * math.sqrt(missing)) / _INSIDE)
            words = generator.integers(0, 2**64, size=(2, size), dtype=np.uint64).view(np.int64)
            coordinates = words.astype(np.float64)
            coordinates *= 2.0**-_SIGNED_DIGITS
            distances = _squared_distances(coordinates)
            kept = self._inside(words, distances, done)[:missing]
            part = slice(done, done + kept.size)
            for axis in (0, 1):
                coordinates[axis].take(kept, out=points[axis, part], mode="clip")
            distances.take(kept, out=squares[part], mode="clip")
            self._origins.append((done, words, kept))
            done += kept.size
        return points, squares

    def _inside(self, words: NDArray[np.int64], squares: Floats, first: int) -> NDArray[np.intp]:
        """Return the indices of points inside; `first` is the number of the first pair."""
        sure = squares < 1.0 - _BORDER
        kept = np.flatnonzero(sure)
        if np.count_nonzero(squares <= 1.0 + _BORDER) == kept.size:
            return kept
        unsure = np.flatnonzero(~sure & (squares <= 1.0 + _BORDER))
        points = {int(place): self._point(words[:, place]) for place in unsure}
        for place, point in points.items():
            sure[place] = point.is_inside()
        kept = np.flatnonzero(sure)
        for place, point in points.items():
            # Further digits that were drawn to decide this belong to the point from now on.
            if sure[place]:
                self._lazy[first + int(np.searchsorted(kept, place))] = point
        return kept

    def _point(self, words: NDArray[np.int64]) -> LazyPoint:
        return LazyPoint(int(words[0]), int(words[1]), _SIGNED_DIGITS, self._digits)

    def bounds(self, place: int, places: int) -> Bounds:
        """Return rational bounds on the real number, at most ``2**-places`` apart."""
        axis, pair = divmod(place, self._n_pairs)
        if pair not in self._lazy:
            first, words, kept = next(one for one in reversed(self._origins) if one[0] <= pair)
            self._lazy[pair] = self._point(words[:, kept[pair - first]])
        return self._lazy[pair].normal(axis, places)


class LaplaceDraws:
    """Independent numbers with density ``exp(-abs(x)) / 2``.

    Parameters
    ----------
    count : int
    generator : numpy.random.Generator
        Source of all digits.

    Notes
    -----
    Theorem E1.

    The number is minus the logarithm of a uniform number U, with a random sign. As a double, U has
    an error of ``2^-53 U + 2^-64``, which is below 2^-43 of itself from 2^-20 on. The logarithm,
    of size at most 14, has an additional relative error of 2^-46.
    """

    # -log(2^-20), slightly rounded up.
    largest = 14.0

    def __init__(self, count: int, generator: np.random.Generator) -> None:
        self._digits = further_digits(generator)
        self._words = generator.integers(0, 2**64, size=count, dtype=np.uint64)
        self._is_negative = (
            np.unpackbits(
                generator.integers(0, 256, size=(count + 7) // 8, dtype=np.uint8), count=count
            )
            > 0
        )
        self._lazy: dict[int, LazyUniforms] = {}
        sizes = -np.log((self._words + 0.5) * 2.0**-_DIGITS)
        self.values: Floats = np.where(self._is_negative, -sizes, sizes)
        self.doubtful: NDArray[np.intp] = np.flatnonzero(self._words < _LEAST)

    def bounds(self, place: int, places: int) -> Bounds:
        """Return rational bounds on the real number, at most ``2**-places`` apart."""
        if place not in self._lazy:
            self._lazy[place] = LazyUniforms([int(self._words[place])], _DIGITS, self._digits)
        low, high = self._lazy[place].minus_log_product(places)
        return (-high, -low) if self._is_negative[place] else (low, high)


class ConstantFactor:
    """A number that is known exactly."""

    def __init__(self, value: float) -> None:
        self.value = value
        self.relative_error = 0.0

    def bounds(self, places: int) -> Bounds:
        """Return the number itself as both bounds."""
        exact = Fraction(self.value)
        return exact, exact


class ChiFactor:
    """A constant times the square root of a chi-squared number, as a real number like the draws.

    Parameters
    ----------
    scale : float
        The constant.
    degrees : int
        Degrees of freedom.
    generator : numpy.random.Generator
        Source of all digits.

    Attributes
    ----------
    value : float
    relative_error : float
        Bound on the relative error of the value; may be infinite.

    Notes
    -----
    Theorem E2.

    The sum of the squares of a pair of normal numbers is minus twice the logarithm of a uniform
    number. For an odd number of degrees, one square remains.
    """

    def __init__(self, scale: float, degrees: int, generator: np.random.Generator) -> None:
        self._scale = scale
        words = generator.integers(0, 2**64, size=degrees // 2, dtype=np.uint64)
        self._single = NormalDraws(1, generator) if degrees % 2 else None
        self._uniforms = LazyUniforms(words.tolist(), _DIGITS, further_digits(generator))
        logs = np.log((words + 0.5) * 2.0**-_DIGITS)
        square, error = -2.0 * math.fsum(logs), _error_of_logs(words, logs)
        if self._single is not None:
            number = float(self._single.values[0])
            square += number * number
            error += 4.0 * ERROR * (abs(number) + ERROR)
            error = math.inf if self._single.doubtful.size else error
        self._bounds: dict[int, Bounds] = {}
        self.value = scale * math.sqrt(square)
        # The root halves the relative error; the other half covers its own rounding and the
        # product's.
        self.relative_error = error / square + _ROUNDING if 2.0 * error < square else math.inf
        if self.relative_error > _LARGEST_RELATIVE_ERROR:
            self.value = float(self.bounds(_SHARP_PLACES)[0])
            self.relative_error = _ROUNDING

    def bounds(self, places: int) -> Bounds:
        """Return rational bounds on the real number, about ``2**-places`` of it apart."""
        if places not in self._bounds:
            self._bounds[places] = self._root(places)
        return self._bounds[places]

    def _root(self, places: int) -> Bounds:
        low, high = (2 * bound for bound in self._uniforms.minus_log_product(2 * places))
        if self._single is not None:
            ends = self._single.bounds(0, 2 * places)
            squares = sorted(end * end for end in ends)
            low += Fraction(0) if ends[0] <= 0 <= ends[1] else squares[0]
            high += squares[1]
        scale = Fraction(self._scale)
        roots = root((low, high), places)
        return scale * roots[0], scale * roots[1]


# Random real numbers: `values` are within `ERROR` of them, except at the increasing indices in
# `doubtful`, and `largest` bounds all others.
Draws = NormalDraws | LaplaceDraws
# A positive real number that multiplies draws: its `value`, with a bound on the relative error.
Factor = ConstantFactor | ChiFactor


def further_digits(generator: np.random.Generator) -> Digits:
    """Return a source of further digits that is independent of the generator's later draws.

    The number of requested digits depends on the values to which noise is added. If the digits
    came from the generator itself, its later draws would differ between neighbouring data sets.
    """
    source = independent_generator(generator)

    def digits(count: int) -> int:
        n_bytes = (count + 7) // 8
        return int.from_bytes(source.bytes(n_bytes), "little") >> (8 * n_bytes - count)

    return digits


def _squared_distances(points: NDArray[np.floating]) -> Floats:
    squares: Floats = np.float64(1.0) * points[0] * points[0]
    squares += points[1] * points[1]
    return squares


def _error_of_logs(words: NDArray[np.uint64], logs: Floats) -> float:
    """Return a bound on the error of minus twice the sum of logarithms."""
    if words.size == 0:
        return 0.0
    if int(words.min()) == 0:
        return math.inf
    # A uniform number has a relative error of 2^-52 and half a unit of its last digit.
    of_numbers = math.fsum(2.0**-51 + 1.0 / words.astype(np.float64))
    return 2.0 * of_numbers - 4.0 * _LOG_ERROR * math.fsum(logs)
