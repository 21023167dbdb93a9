"""Exponential tilting: where to look closely at a sum of independent losses.

Masses ``p(x)`` become ``p(x) exp(slope x) / M(slope)``, which commutes with convolution (the
Esscher transform of risk theory) and moves the bulk of the sum to losses that were rare before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from skdptune._validation import FloatArray
from skdptune.accounting._losses._distribution import LossDistribution

# Distributions on one grid, each with its number of independent copies.
Parts = Sequence[tuple[LossDistribution, int]]

UNIT = 2.0**-53
# Points by which a distribution is represented where only a good slope is sought.
_POINTS = 1024
# Share of a slope by which it need not be known.
_CLOSE = 0.02
# Arguments of an exponential that still matter.
_LARGEST_EXPONENT = 750.0


@dataclass(frozen=True)
class Tilted:
    """Tilted masses of each part, of total 1, and what takes the result back.

    Attributes
    ----------
    slope : float
        Slope per step of the grid.
    weights : list of ndarray
        Tilted masses of one copy of each part.
    log_scale : float
        Logarithm of ``M(slope)`` of the sum of all copies.
    error : float
        Bound on the relative error that the rounding of all this makes in the sum's masses.
    """

    slope: float
    weights: list[FloatArray]
    log_scale: float
    error: float

    def back(self, lowest: int, size: int) -> FloatArray:
        """Return the factors that undo the tilting of the sum at ``lowest, lowest + 1, ...``."""
        places = np.arange(lowest, lowest + size)
        return np.exp(np.minimum(self.log_scale - self.slope * places, _LARGEST_EXPONENT / 1.1))

    def tail(self, place: float) -> float:
        """Return Chernoff's bound on the mass at and beyond a place of the grid."""
        log_bound = self.log_scale - self.slope * place + self.error
        return math.exp(min(log_bound, 0.0))

    def place_of_tail(self, mass: float) -> float:
        """Return from where on Chernoff's bound is at most ``mass``."""
        return (self.log_scale + self.error - math.log(mass)) / self.slope


def tilted(parts: Parts, slope: float) -> Tilted:
    """Return the parts tilted by ``exp(slope * loss / step)``."""
    weights, log_scale, error = [], 0.0, 0.0
    for part, count in parts:
        size = part.masses.size
        exponents = slope * np.arange(part.lowest, part.lowest + size)
        # Both ends of a line: one of them is the largest.
        ends = float(exponents[0]), float(exponents[-1])
        top = max(ends)
        raw = part.masses * np.exp(exponents - top) if slope else part.masses
        total = float(raw.sum())
        weights.append(raw / total)
        log_scale += count * (math.log(total) + top)
        # Roundings of the exponents, of their exponentials, of the sum and its logarithm.
        error += count * UNIT * (4.0 * max(map(abs, ends)) + math.log2(size) + 8.0)
    return Tilted(slope, weights, log_scale, error + 4.0 * UNIT * abs(log_scale))


class Cumulant:
    """About the logarithm of ``E exp(slope * loss)`` of a sum of independent losses.

    Neighbouring losses are lumped together, so that slopes are found in no time. What is claimed
    of a slope (`Tilted`) is computed from all losses.
    """

    def __init__(self, parts: Parts) -> None:
        self._groups = [(*_lumped(part), count) for part, count in parts]
        mean, variance = 0.0, 0.0
        for masses, places, count in self._groups:
            shares = masses / masses.sum()
            centre = float(shares @ places)
            mean += count * centre
            variance += count * float(shares @ (places - centre) ** 2)
        self.mean = mean
        # Never zero: the lumps have a width.
        self.deviation = math.sqrt(variance) + 0.3

    def largest_exponent(self, sign: float = 1.0) -> float:
        """Return how small the logarithm of an upper (lower) tail can become, negated."""
        end = -1 if sign > 0.0 else 0
        return -sum(
            count * math.log(masses[end] / masses.sum()) for masses, _, count in self._groups
        )

    def slope_of_tail(self, exponent: float, sign: float = 1.0) -> float:
        """Return the slope that suits an upper (lower) tail of about ``exp(-exponent)``.

        The exponent must be smaller than the largest one.
        """

        def excess(slope: float) -> tuple[float, float]:
            value, first, second = self._at(slope)
            return slope * first - value - exponent, slope * second

        # A long tail may make the better end of the bracket much better than the other.
        ends = self._bracket(excess, sign * math.sqrt(2.0 * exponent) / self.deviation)
        return min(ends, key=lambda slope: (self._at(slope)[0] + exponent) / abs(slope))

    def slope_of_mean(self, place: float) -> float:
        """Return the slope that moves the sum's mean up to a place."""

        def excess(slope: float) -> tuple[float, float]:
            _, first, second = self._at(slope)
            return first - place, second

        start = max(place - self.mean, self.deviation) / self.deviation**2
        return self._bracket(excess, start)[1]

    def _at(self, slope: float) -> tuple[float, float, float]:
        """Return the cumulant and its first two derivatives."""
        value = first = second = 0.0
        for masses, places, count in self._groups:
            exponents = slope * places
            top = float(max(exponents[0], exponents[-1]))
            weights = masses * np.exp(exponents - top)
            total = float(weights.sum())
            moments = weights * places
            mean = float(moments.sum()) / total
            value += count * (top + math.log(total))
            first += count * mean
            second += count * max(float(moments @ places) / total - mean * mean, 0.0)
        return value, first, second

    def _bracket(
        self, excess: Callable[[float], tuple[float, float]], start: float
    ) -> tuple[float, float]:
        """Return slopes close to each other between which a function crosses 0 to rise.

        By Newton's steps from ``start``, and where these go wrong by halving.
        """
        sign = math.copysign(1.0, start)
        low, high, slope = 0.0, math.inf, abs(start)
        for _ in range(60):
            value, rise = excess(sign * slope)
            low, high = (low, slope) if value >= 0.0 else (slope, high)
            if high - low <= _CLOSE * high or slope * self.deviation > 1e6:
                break
            rise *= sign
            step = slope - value / rise if rise > 0.0 else math.inf
            # Beyond the crossing by half of what is close enough: then the bracket closes.
            step *= 1.0 + math.copysign(0.4 * _CLOSE, -value)
            if not low < step < high:
                step = 2.0 * slope if math.isinf(high) else 0.5 * (low + high)
            slope = step
        return sign * (low or high), sign * min(high, slope if math.isinf(high) else high)


def _lumped(part: LossDistribution) -> tuple[FloatArray, FloatArray]:
    """Return masses of few groups of neighbouring losses, and their mean places.

    The largest masses and those at the ends stay by themselves.
    """
    masses = part.masses
    places = part.lowest + np.arange(masses.size, dtype=np.float64)
    moments = masses * places
    if masses.size > 16 * _POINTS:
        largest = np.argpartition(masses, -_POINTS // 4)[-_POINTS // 4 :]
        alone = np.concatenate([largest, np.arange(16), np.arange(-16, 0) + masses.size])
        even = np.arange(0, masses.size, -(-masses.size // _POINTS))
        starts = np.unique(np.concatenate([even, alone, np.minimum(alone + 1, masses.size - 1)]))
        masses, moments = (np.add.reduceat(values, starts) for values in (masses, moments))
    some = masses > 0.0
    return masses[some], moments[some] / masses[some]
