"""Convolution of loss distributions by tilted Fourier transforms, with bounds on rounding."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from skdptune._validation import FloatArray
from skdptune.accounting._curves import step_at_most
from skdptune.accounting._loss_distribution import LARGEST_LOSS, LossDistribution

# Exponential tilting: to resolve rare sums of independent losses -------------------------

# Masses ``p(x)`` become ``p(x) exp(slope x) / M(slope)``, which commutes with convolution (the
# Esscher transform of risk theory). It moves the bulk of the sum to losses that were rare before.

# Distributions on one grid, each with its number of independent copies.
Parts = Sequence[tuple[LossDistribution, int]]

UNIT = 2.0**-53
# Number of points that represent a distribution when a good slope is searched.
_POINTS = 1024
# Relative precision that suffices for a slope.
_CLOSE = 0.02
# Larger arguments of an exponential do not matter.
_LARGEST_EXPONENT = 750.0


@dataclass(frozen=True)
class Tilted:
    """Tilted masses of each part, with total 1, and the factors to undo the tilting.

    Attributes
    ----------
    slope : float
        Slope per step of the grid.
    weights : list of ndarray
        Tilted masses of one copy of each part.
    log_scale : float
        Logarithm of ``M(slope)`` for the sum of all copies.
    error : float
        Bound on the relative error in the sum's masses that is caused by rounding.
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
        """Return Chernoff's bound on the mass at and beyond a grid number."""
        log_bound = self.log_scale - self.slope * place + self.error
        return math.exp(min(log_bound, 0.0))

    def place_of_tail(self, mass: float) -> float:
        """Return the grid number from which on Chernoff's bound is at most ``mass``."""
        return (self.log_scale + self.error - math.log(mass)) / self.slope


def tilted(parts: Parts, slope: float) -> Tilted:
    """Return the parts tilted by ``exp(slope * loss / step)``."""
    weights, log_scale, error = [], 0.0, 0.0
    for part, count in parts:
        size = part.masses.size
        exponents = slope * np.arange(part.lowest, part.lowest + size)
        # The exponents are linear, so that one of the ends is the largest.
        ends = float(exponents[0]), float(exponents[-1])
        top = max(ends)
        raw = part.masses * np.exp(exponents - top) if slope else part.masses
        total = float(raw.sum())
        weights.append(raw / total)
        log_scale += count * (math.log(total) + top)
        # Roundings of the exponents, of their exponentials, of the sum and of its logarithm.
        error += count * UNIT * (4.0 * max(map(abs, ends)) + math.log2(size) + 8.0)
    return Tilted(slope, weights, log_scale, error + 4.0 * UNIT * abs(log_scale))


class Cumulant:
    """Approximate logarithm of ``E exp(slope * loss)`` for a sum of independent losses.

    Neighbouring losses are grouped, so that slopes are found fast. The claims about a slope
    (`Tilted`) are computed from all losses.
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
        # Never zero, since the groups have a width.
        self.deviation = math.sqrt(variance) + 0.3

    def largest_exponent(self, sign: float = 1.0) -> float:
        """Return the smallest logarithm that an upper (lower) tail can have, negated."""
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

        # With a long tail, one end of the bracket may be much better than the other.
        ends = self._bracket(excess, sign * math.sqrt(2.0 * exponent) / self.deviation)
        return min(ends, key=lambda slope: (self._at(slope)[0] + exponent) / abs(slope))

    def slope_of_mean(self, place: float) -> float:
        """Return the slope that moves the sum's mean up to a grid number."""

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
        """Return slopes close to each other between which a function crosses 0 upwards.

        Newton's method starts from ``start``; bisection is used if it fails.
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
            # Overshoot the crossing by nearly half of the precision, so that the bracket closes.
            step *= 1.0 + math.copysign(0.4 * _CLOSE, -value)
            if not low < step < high:
                step = 2.0 * slope if math.isinf(high) else 0.5 * (low + high)
            slope = step
        return sign * (low or high), sign * min(high, slope if math.isinf(high) else high)


def _lumped(part: LossDistribution) -> tuple[FloatArray, FloatArray]:
    """Return masses of a few groups of neighbouring losses, and their mean grid numbers.

    The largest masses and those at the ends are not grouped.
    """
    masses = part.masses
    places = part.lowest + np.arange(masses.size, dtype=np.float64)
    moments = masses * places
    if masses.size > 2 * _POINTS:
        largest = np.argpartition(masses, -_POINTS // 4)[-_POINTS // 4 :]
        alone = np.concatenate([largest, np.arange(16), np.arange(-16, 0) + masses.size])
        even = np.arange(0, masses.size, -(-masses.size // _POINTS))
        starts = np.unique(np.concatenate([even, alone, np.minimum(alone + 1, masses.size - 1)]))
        masses, moments = (np.add.reduceat(values, starts) for values in (masses, moments))
    some = masses > 0.0
    return masses[some], moments[some] / masses[some]


# Convolution -----------------------------------------------------------------------------

# The error of a Fourier transform is about the same at every loss, however small its mass. With
# tilting, the error is relative to the tilted masses. So slope 0 serves the bulk of a composition,
# and another slope its upper tail. Each of them bounds every mass from above, and the smaller
# bound counts.
#
# Large losses that a composition rarely meets form a tail that cannot be resolved by any slope.
# They have separate transforms (`convolved_with_rare`), whose errors are relative to their mass.

ComplexArray = NDArray[np.complex128]
# Bounds on masses, and the part of each that is an allowance for rounding.
Bounds = tuple[FloatArray, FloatArray]

# Mass that a composition of many releases may move to infinity.
TAIL = 1e-17
# Number of roundings of a value per stage of a transform, and outside of the transform.
_PER_STAGE, _OUTSIDE = 8.0, 32.0
# Supports up to this size are convolved directly, using only positive numbers. So are larger ones
# if they need at most this many products, which takes less time than a search for slopes.
_DIRECT, _PRODUCTS = 1500, 2**25
# Smaller tails, in multiples of the tail that is cut off, are ignored. In larger tails, at most
# this share may be an allowance.
_FLOOR, _SHARE = 100.0, 1e-5
_MOST_SLOPES = 6
# The second slope is best for a tail of exp(-22).
_USUAL_EXPONENT = 22.0
# Slope 0 resolves larger tails well.
_LEAST_EXPONENT = 3.0
# More than this many rare losses count as infinite.
_MOST_RARE = 4
# Sums of so many losses with a spread of so many steps are composed in stages; steps per spread
# of a group.
_MANY, _LONG, _PER_GROUP = 2**18, 4000.0, 40.0
# exp(-60) is negligible compared with a unit of rounding.
_INVISIBLE = -60.0


def convolved(parts: Parts, tail: float) -> LossDistribution:
    """Return upper bounds on the masses of a sum of independent losses.

    Parameters
    ----------
    parts : sequence of (LossDistribution, count)
        Distributions on one grid, none of them with all its mass at infinity.
    tail : float
        Mass that may be moved upwards from either end of the sum. If 0, every finite loss stays
        finite.

    Notes
    -----
    Theorem P4, Theorem P12.
    """
    infinity = _infinity_of(parts)
    parts = [(without_ends(part, tail / count), count) for part, count in parts]
    infinity += tail * len(parts)
    low = sum(count * part.lowest for part, count in parts)
    size = 1 + sum(count * (part.masses.size - 1) for part, count in parts)
    step = parts[0][0].step
    is_short = size <= _DIRECT or _n_products(parts) <= _PRODUCTS
    if is_short or not all(part.masses.any() for part, _ in parts):
        return LossDistribution(step, low, _directly(parts, size), min(infinity, 1.0))
    cumulant = Cumulant(parts)
    low, size, beyond = _window(parts, cumulant, (low, size), tail)
    exponent = min(_USUAL_EXPONENT, 0.8 * cumulant.largest_exponent())
    first = cumulant.slope_of_tail(exponent) if exponent > _LEAST_EXPONENT else None
    floor = _FLOOR * (tail or TAIL)
    masses = _least(parts, (low, size), floor, first, cumulant.slope_of_mean)
    masses[0] += tail
    # The largest loss is kept, however improbable.
    masses[-1] = max(masses[-1], np.finfo(float).tiny)
    return LossDistribution(step, low, masses, min(infinity + beyond, 1.0))


def convolved_in_stages(losses: LossDistribution, count: int, tail: float) -> LossDistribution:
    """Return upper bounds on the masses of a sum of equal losses, on a coarser grid if it is long.

    Groups of losses have a larger spread than one, so that a coarser grid suits their sum.

    Notes
    -----
    Theorem P1, Theorem P4, Theorem P12.
    """
    group = math.isqrt(count)
    if count < _MANY or math.sqrt(count) * losses.deviation < _LONG * losses.step:
        return convolved([(losses, count)], tail)
    sums = convolved([(losses, group)], tail / count)
    step = max(step_at_most(sums.deviation / _PER_GROUP), losses.step)
    rest = [(losses.on_grid(step), count % group)] if count % group else []
    return convolved([(sums.on_grid(step), count // group), *rest], tail)


def convolved_with_rare(
    common: LossDistribution, losses: LossDistribution, first: int, count: int, tail: float
) -> LossDistribution:
    """Return upper bounds on the masses of a sum of losses, some of which are rare and large.

    Parameters
    ----------
    common : LossDistribution
        The common losses of one copy on their own grid, with all mass at infinity.
    losses : LossDistribution
        All losses of one copy, on the same or a coarser grid.
    first : int
        Number in the coarser grid from which on losses are rare, so that all copies together
        seldom meet one.
    count : int
        Number of copies.
    tail : float
        Positive mass that may be moved upwards from either end, a few times.

    Notes
    -----
    Theorem P12.

    The binomial theorem is applied for up to four rare losses among as many copies. The other
    losses of these copies are on the coarser grid; the losses of all other copies are on the finer
    one.
    """
    many = min(count, _MOST_RARE)
    usual, rare = _split(losses, first)
    others = None
    if count > many:
        others = _finite(convolved_in_stages(_finite(common), count - many, tail))
        others = others.on_grid(losses.step)
    # Mass at infinity, mass cut off from the others, and the case of more rare losses.
    infinity = 4.0 * tail + _infinity_of([(common, count)])
    infinity += math.comb(count, many + 1) * float(rare.masses.sum()) ** (many + 1)
    total = LossDistribution(losses.step, 0, np.zeros(1), infinity)
    for number in range(many + 1):
        ways = math.comb(count, number)
        parts = [(part, n) for part, n in ((usual, many - number), (rare, number)) if n]
        term = convolved(parts, tail / ways)
        term = LossDistribution(term.step, term.lowest, term.masses * ways, term.infinity * ways)
        if float(term.masses.sum()) <= tail:
            term = LossDistribution(term.step, 0, np.zeros(1), term.infinity + tail)
        elif others is not None:
            term = added(
                convolved([(others, 1), (_finite(term), 1)], tail),
                LossDistribution(term.step, 0, np.zeros(1), term.infinity),
            )
        total = added(total, term)
    return total


def _infinity_of(parts: Parts) -> float:
    """Return the mass at infinity of the sum of all copies."""
    if any(part.infinity >= 1.0 for part, _ in parts):
        return 1.0
    return -math.expm1(sum(count * math.log1p(-part.infinity) for part, count in parts))


def is_lost(parts: Parts, tail: float) -> bool:
    """Return whether the mass of a sum's finite losses is small enough to move to infinity."""
    totals = [(float(part.masses.sum()), count) for part, count in parts]
    if not all(total > 0.0 for total, _ in totals):
        return True
    return tail > 0.0 and sum(n * math.log(total) for total, n in totals) <= math.log(tail)


def _split(losses: LossDistribution, first: int) -> tuple[LossDistribution, LossDistribution]:
    """Return the losses below a grid number, and those from it on."""
    below, above = np.split(losses.masses, [first - losses.lowest])
    return (
        LossDistribution(losses.step, losses.lowest, below, 0.0),
        LossDistribution(losses.step, first, above if above.size else np.zeros(1), 0.0),
    )


def _finite(losses: LossDistribution) -> LossDistribution:
    """Return the distribution without its mass at infinity."""
    return LossDistribution(losses.step, losses.lowest, losses.masses, 0.0)


def added(first: LossDistribution, second: LossDistribution) -> LossDistribution:
    """Return the sum of two sets of masses on one grid."""
    low = min(first.lowest, second.lowest)
    top = max(each.lowest + each.masses.size for each in (first, second))
    masses = np.zeros(top - low)
    for each in (first, second):
        masses[each.lowest - low : each.lowest - low + each.masses.size] += each.masses
    infinity = min(first.infinity + second.infinity, 1.0)
    return LossDistribution(first.step, low, masses, infinity)


def without_ends(part: LossDistribution, tail: float) -> LossDistribution:
    """Return a distribution without empty ends, and without an upper end below ``tail``."""
    masses = part.masses
    keep = int(np.searchsorted(-np.cumsum(masses[::-1])[::-1], -tail, side="left"))
    some = np.flatnonzero(masses[: max(keep, 1)])
    first, last = (int(some[0]), int(some[-1])) if some.size else (0, 0)
    return LossDistribution(
        part.step, part.lowest + first, masses[first : last + 1], part.infinity
    )


def _window(
    parts: Parts, cumulant: Cumulant, ends: tuple[int, int], tail: float
) -> tuple[int, int, float]:
    """Return the relevant range of the sum (lowest number, size), and the mass above it."""
    low, top = ends[0], ends[0] + ends[1] - 1
    if tail == 0.0:
        return *ends, 0.0
    exponent = -math.log(tail)
    first, last, beyond = low, min(top, math.floor(LARGEST_LOSS / parts[0][0].step)), 0.0
    if cumulant.largest_exponent(-1.0) > 1.1 * exponent:
        down = tilted(parts, cumulant.slope_of_tail(exponent, -1.0))
        first = max(low, min(math.floor(down.place_of_tail(tail)), last))
    if cumulant.largest_exponent() > 1.1 * exponent or last < top:
        up = tilted(parts, cumulant.slope_of_tail(exponent))
        last = max(first, min(last, math.ceil(up.place_of_tail(tail))))
        beyond = up.tail(last + 1) if last < top else 0.0
    return first, last - first + 1, beyond


# Direct convolution ----------------------------------------------------------------------


def _directly(parts: Parts, size: int) -> FloatArray:
    """Return the convolution by sums of positive products."""
    result = np.ones(1)
    copies = 0
    for part, count in parts:
        result = np.convolve(result, _direct_power(part.masses, count))
        copies += count
    # The error of a product of size numbers is smaller, and so is that of sums of products.
    return result * (1.0 + 2.0 * UNIT * size * (math.log2(copies) + 2.0))


def _n_products(parts: Parts) -> float:
    """Return roughly how many products a direct convolution computes."""
    total, length = 0.0, 1.0
    for part, count in parts:
        own = float(count * (part.masses.size - 1) + 1)
        total += (own * own / 3.0 if count > 1 else 0.0) + length * own
        length += own - 1.0
    return total


def _direct_power(masses: FloatArray, count: int) -> FloatArray:
    if count == 1:
        return masses
    half = _direct_power(masses, count // 2)
    square = np.convolve(half, half)
    return np.convolve(square, masses) if count % 2 else square


# Convolution by transforms ----------------------------------------------------------------


def _least(
    parts: Parts,
    window: tuple[int, int],
    floor: float,
    slope: float | None,
    next_slope: Callable[[int], float],
) -> FloatArray:
    """Return the smallest bounds over a few slopes, as many as needed to resolve all tails."""
    masses, allowance = bounds(parts, 0.0, *window)
    slopes = [0.0]
    while len(slopes) < _MOST_SLOPES:
        if slope is None:
            share, place = _worst_share(masses, allowance, floor)
            slope = next_slope(window[0] + place)
            if share <= _SHARE or any(abs(slope - each) <= 0.01 * slope for each in slopes):
                break
        other, other_allowance = bounds(parts, slope, *window)
        smaller = other < masses
        np.copyto(masses, other, where=smaller)
        np.copyto(allowance, other_allowance, where=smaller)
        slopes.append(slope)
        slope = None
    return masses


def _worst_share(masses: FloatArray, allowance: FloatArray, floor: float) -> tuple[float, int]:
    """Return the largest share of allowances in a tail, and where that tail starts."""
    tails = np.cumsum(masses[::-1])
    first = int(np.searchsorted(tails, floor))
    if first >= tails.size:
        return 0.0, 0
    shares = np.cumsum(allowance[::-1])[first:] / tails[first:]
    worst = int(np.argmax(shares))
    return float(shares[worst]), tails.size - 1 - first - worst


def bounds(parts: Parts, slope: float, low: int, size: int) -> Bounds:
    """Return upper bounds on the masses of a sum in a range, and the allowances in them.

    Parameters
    ----------
    parts : sequence of (LossDistribution, count)
    slope : float
        Slope of the tilting.
    low, size : int
        The range of grid numbers.
    """
    length = _length(size, max(part.masses.size for part, _ in parts))
    # A bound on the error of a transform at any frequency, and of its power per copy. Each output
    # is a sum of the masses, here with total 1, times factors of size 1. A mass undergoes no more
    # roundings than these.
    error = UNIT * (_PER_STAGE * math.log2(length) + _OUTSIDE)
    tilt = tilted(parts, slope)
    spectra = [_spectrum(weights, length) for weights in tilt.weights]
    counts = [count for _, count in parts]
    sizes = [np.abs(spectrum) + error for spectrum in spectra]
    logs = np.sum([n * np.log(each) for n, each in zip(counts, sizes, strict=True)], axis=0)
    used = np.flatnonzero(logs > _INVISIBLE)
    # All but the first and the last frequency of a real transform represent two.
    is_alone = (used == 0) | (2 * used == length)
    largest = np.exp(logs[used]) * np.where(is_alone, 1.0, 2.0)
    # The mean over all frequencies bounds each mass, and likewise each error of one.
    allowance = sum(
        n * float(np.sum(largest / each[used])) for n, each in zip(counts, sizes, strict=True)
    )
    allowance = (allowance + float(largest.sum())) * error / length + math.exp(_INVISIBLE)
    product = np.zeros(length // 2 + 1, dtype=np.complex128)
    product[used] = 1.0
    for spectrum, count in zip(spectra, counts, strict=True):
        product[used] *= spectrum[used] if count == 1 else _power(spectrum[used], count)
    start = low - sum(count * part.lowest for part, count in parts)
    found: FloatArray = fft.irfft(product, length)
    # Negative masses are noise of the transform.
    masses = np.maximum(np.roll(found, -(start % length))[:size], 0.0) + allowance
    if not slope:
        # Masses that were rounded up, of many copies, may exceed all doubles. A smaller bound
        # holds as well if it is above 1, and the allowance makes it so.
        scale = math.exp(min(tilt.log_scale, 600.0)) * (1.0 + 2.0 * tilt.error)
        return masses * scale, np.full(size, allowance * scale)
    back = tilt.back(low, size) * (1.0 + 2.0 * tilt.error)
    return masses * back, allowance * back


def _length(size: int, longest: int) -> int:
    """Return a transform length with small factors, so that each part wraps only a few times."""
    return int(fft.next_fast_len(max(size, longest // 8), real=True))


def _spectrum(weights: FloatArray, length: int) -> ComplexArray:
    """Return the transform of masses, wrapped if too many."""
    if weights.size > length:
        padded = np.append(weights, np.zeros(-weights.size % length))
        weights = padded.reshape(-1, length).sum(axis=0)
    spectrum: ComplexArray = fft.rfft(weights, length)
    return spectrum


def _power(spectrum: ComplexArray, count: int) -> ComplexArray:
    """Return an integer power by logarithm and angle, whose errors are only multiplied by it."""
    size = np.exp(count * np.log(np.maximum(np.abs(spectrum), 1e-300)))
    angle = count * np.angle(spectrum)
    return size * (np.cos(angle) + 1j * np.sin(angle))
