"""Real random numbers, of which as many binary digits are drawn as somebody asks for.

A draw is known as an interval: the digits so far leave it open where in there it lies, and none
is ever drawn again. Functions of draws are bounded by rational numbers. Logarithms and roots of
`decimal` are correctly rounded, so that these bounds are proved and not estimated.

Theorem E1.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

# From a number of binary digits to a uniform integer of so many.
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
        A number lies between ``k / 2**n_digits`` and the next multiple.
    n_digits : int
        How many binary digits of each were drawn.
    draw : callable
        Source of more.
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
    """A uniform point of the square from -1 to 1, and the normal numbers that it stands for.

    Inside the unit circle, at squared distance w from its centre, its coordinates times
    ``sqrt(-2 log(w) / w)`` are two independent standard normal numbers (Marsaglia's polar
    method).

    Parameters
    ----------
    first, second : int
        A coordinate lies between ``k / 2**n_digits`` and the next multiple.
    n_digits : int
        How many binary digits of each were drawn, not counting the sign.
    draw : callable
        Source of more.
    """

    def __init__(self, first: int, second: int, n_digits: int, draw: Digits) -> None:
        self._point = [first, second]
        self._n_digits = n_digits
        self._draw = draw

    def is_inside(self) -> bool:
        """Return whether the point lies in the unit circle."""
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
    """Return bounds on the root of a positive number, known to ``2**-places`` of itself."""
    decimals = _decimals(places)
    down, up = _contexts(decimals)
    low, high = (
        context.divide(Decimal(one.numerator), Decimal(one.denominator))
        for context, one in zip((down, up), bounds, strict=True)
    )
    return _lower(down.sqrt(low), decimals), _upper(up.sqrt(high), decimals)


def _polar_factor(square: Fraction, decimals: int) -> Bounds:
    """Return bounds on ``sqrt(-2 log(w) / w)``, which falls in w, for w in (0, 1]."""
    down, up = _contexts(decimals)
    top, bottom = Decimal(square.numerator), Decimal(square.denominator)
    near, far = down.divide(top, bottom), up.divide(top, bottom)
    low = down.multiply(2, down.divide(down.ln(far).copy_negate(), far))
    high = up.multiply(2, up.divide(down.ln(near).copy_negate(), near))
    return _lower(down.sqrt(max(low, Decimal(0))), decimals), _upper(up.sqrt(high), decimals)


def _narrowed(
    bounds: Callable[[int], Bounds | None], extend: Callable[[], None], places: int
) -> Bounds:
    """Return bounds at most ``2**-places`` apart, from more and more digits and decimals."""
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
    """Return how many decimals stand for binary places, with some to spare."""
    return math.ceil(0.302 * places) + _SPARE_DECIMALS


def _contexts(decimals: int) -> tuple[decimal.Context, decimal.Context]:
    """Return arithmetic of so many decimals that rounds down, and one that rounds up."""
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
    """Return a bound from below, of what was rounded a few times in so many decimals.

    One rounding is off by less than ``10**(1 - decimals)`` of the number.
    """
    return Fraction(rounded) * (1 - _FEW_ROUNDINGS / 10**decimals)


def _upper(rounded: Decimal, decimals: int) -> Fraction:
    return Fraction(rounded) * (1 + _FEW_ROUNDINGS / 10**decimals)
