r"""The exact privacy cost of one posterior sample of a ridge regression.

With ``H = X'X + ridge I`` and the ridge solution ``t = H^-1 X'y``, the release is one draw of
``Normal(t, (precision H)^-1)``. Let the larger data set have one additional row ``(x, y)``. With H
and t of the *smaller* data set, write

* ``leverage = x' H^-1 x``, and
* ``squared_residual = precision (y - x't)^2``.

**The pair** is equivalent to

    smaller: Normal(0, 1);   larger: Normal(sqrt(leverage squared_residual) / a, 1 / a)

with ``a = 1 + leverage``. The sign of the shift does not matter.

**Its curve.** With ``D = squared_residual / a + log a - 2 e``, the loss of the larger over the
smaller exceeds e between ``(sqrt(squared_residual) -+ sqrt(D)) / sqrt(leverage)``, and nowhere if
``D <= 0``. The remove direction is evaluated at ``e = epsilon``. The add direction is evaluated on
the complement of the interval, at ``e = -epsilon``.

**Over a box** of leverages and squared residuals up to given bounds, the curve increases with the
squared residual. It does not always increase with the leverage h. In both directions, its
derivative by h has the sign of

    sqrt(D) - b tanh(sqrt(D) sqrt(squared_residual) / h),   b = sqrt(squared_residual) h / a.

If ``squared_residual <= a``, it is positive. Otherwise, let ``c = squared_residual / a > 1``, and
let y(c) > 0 be the root of ``y = b tanh(c y / b)``. The sign is that of ``F(c) = c - log c + const
- y(c)^2``, where only the constant depends on epsilon. F decreases and then increases on ``(1,
squared_residual)``. So as h grows, the curve increases, may decrease, and may increase again. The
supremum is at the first crossing or at the end of the box.

Theorem L1.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from skdptune._validation import FloatArray, check_real
from skdptune.accounting._curves import Halves, step_at_most
from skdptune.accounting._loss_distribution import LARGEST_LOSS
from skdptune.accounting._profile import Numbers, PrivacyProfile

# Number of points of a curve, up to a small factor: chords between them are within 1e-3 of it.
_POINTS = 2**12
# The value of the add direction at the end of its grid becomes mass at infinity.
_TAIL = 1e-18
# Rounding error of the two masses whose difference is the curve, relative to the first.
_ROUNDING = 1e-12
_HALVINGS = 60
_COARSE_HALVINGS = 10
_LARGEST = 1e6
# The cost of a smaller box differs from that of this one only by rounding.
_LEAST = 1e-12

BoolArray = NDArray[np.bool_]


def posterior_sample(leverage: float, squared_residual: float) -> PrivacyProfile:
    """Return the profile of one posterior sample of a ridge regression, over a box.

    The profile holds for data sets that differ in one record, added or removed, if the quantities
    below stay in the box for every such pair. They are computed on the smaller data set.

    Parameters
    ----------
    leverage : float
        Bound on the leverage ``x' H^-1 x`` of the additional record of the larger data set;
        positive.
    squared_residual : float
        Bound on ``precision * (y - x't)**2`` of this record; not negative.

    Returns
    -------
    PrivacyProfile

    See Also
    --------
    largest_squared_residual : Returns the bound for a given epsilon and delta.

    Notes
    -----
    Theorem L1.

    The pair consists of two Gaussians on a line with different variances, whose divergence has a
    closed form. The profile is its supremum over the box, for each epsilon and each direction. The
    closed form printed for this mechanism by Koskela, Redberg and Wang (2024, arXiv 2402.06701,
    section 6.1) is `printed_posterior_epsilon`; it is not a bound.

    Examples
    --------
    >>> from skdptune.accounting import posterior_sample
    >>> round(posterior_sample(leverage=0.01, squared_residual=4.0).epsilon(1e-6), 3)
    0.922
    """
    return PrivacyProfile._of(_of_box, *_checked_box(leverage, squared_residual))


def _of_box(largest: float, bound: float) -> Numbers:
    tops = [_end(largest, bound, sign) for sign in (1.0, -1.0)]
    # With a large leverage, the add direction extends much further than the other one.
    spacing = max(min(max(tops), 2.0 * min(tops)) / _POINTS, max(tops) / (8 * _POINTS))
    step = step_at_most(spacing)
    remove, add = (
        _supremum(step * np.arange(math.ceil(top / step) + 2), largest, bound, sign)
        for top, sign in zip(tops, (1.0, -1.0), strict=True)
    )
    return Halves(step, remove, add), None


def posterior_sample_deltas(
    epsilons: FloatArray, leverage: float, squared_residual: float
) -> tuple[FloatArray, FloatArray]:
    """Return the remove and add curves of `posterior_sample` at each epsilon >= 0."""
    largest, bound = _checked_box(leverage, squared_residual)
    return (
        _supremum(epsilons, largest, bound, 1.0),
        _supremum(epsilons, largest, bound, -1.0),
    )


def largest_squared_residual(leverage: float, epsilon: float, delta: float) -> float:
    """Return the largest bound for which a posterior sample is (epsilon, delta)-private.

    Parameters
    ----------
    leverage : float
        Bound on the leverage; see `posterior_sample`.
    epsilon, delta : float
        The guarantee to be met, in both directions.

    Returns
    -------
    float
        The bound, rounded down; 0 if the change of the variance already costs more.

    Examples
    --------
    >>> from skdptune.accounting import largest_squared_residual
    >>> round(largest_squared_residual(leverage=0.001, epsilon=1.0, delta=1e-6), 1)
    55.1
    >>> largest_squared_residual(leverage=0.5, epsilon=1.0, delta=1e-6)
    0.0
    """
    largest, _ = _checked_box(leverage, 0.0)
    point = np.array([check_real(epsilon, name="epsilon", lower=0.0, upper=LARGEST_LOSS)])
    delta = check_real(delta, name="delta", lower=0.0, upper=1.0)

    def is_met(bound: float) -> bool:
        return max(float(c[0]) for c in posterior_sample_deltas(point, largest, bound)) <= delta

    if not is_met(_LEAST):
        return 0.0
    low, high = math.log(_LEAST), math.log(_LARGEST)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if is_met(math.exp(middle)) else (low, middle)
    return math.exp(low)


def covered_squared_residual(
    leverage: float, squared_residual: float, smaller_leverage: float, slack: float
) -> float:
    """Return a larger squared residual for a smaller leverage, covered by the profile of a box.

    Parameters
    ----------
    leverage, squared_residual : float
        The box; see `posterior_sample`.
    smaller_leverage : float
        Bound on the leverage that became known later.
    slack : float
        Amount by which its curve may exceed the box's profile, at every epsilon.

    Notes
    -----
    Theorem L5. The box's profile connects points of its curve by chords. A curve that lies below
    these points also lies below the chords, since it is convex in ``exp(epsilon)``. Beyond the
    last point it decreases, and the profile does not.
    """
    sides = posterior_sample(leverage, squared_residual)._finite_sides
    points = [side.step * np.arange(side.highest + 1) for side in sides]
    limits = [side.curve + slack for side in sides]

    def is_covered(bound: float) -> bool:
        for index, (epsilons, limit) in enumerate(zip(points, limits, strict=True)):
            if (posterior_sample_deltas(epsilons, smaller_leverage, bound)[index] > limit).any():
                return False
        return True

    low, high = squared_residual, 1.5 * squared_residual * leverage / smaller_leverage
    for _ in range(_COARSE_HALVINGS):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if is_covered(middle) else (low, middle)
    return low


def printed_posterior_epsilon(leverage: float, squared_residual: float, delta: float) -> float:
    """Return the closed form printed for this mechanism. It is *not* a bound; do not rely on it.

    Let b be the norm bound of rows and L the largest gradient, so that ``leverage = b^2 / lambda``
    and ``squared_residual = precision L^2 / b^2``. The closed form is ``sqrt(precision L^2
    log(2/delta) / lambda) + precision L^2 / (2 (lambda + b^2)) + (1 + log(2/delta)) b^2 / (2
    lambda)`` (arXiv 2402.06701, section 6.1). It is provided for comparison.

    Notes
    -----
    Theorem L2.

    Examples
    --------
    >>> from skdptune.accounting import posterior_sample, printed_posterior_epsilon
    >>> round(printed_posterior_epsilon(0.001, 63.6, delta=1e-6), 2)
    1.0
    >>> posterior_sample(0.001, 63.6).delta(1.0) > 3.8e-6
    True
    """
    largest, bound = _checked_box(leverage, squared_residual)
    delta = check_real(delta, name="delta", lower=0.0, upper=1.0, lower_open=True)
    tail = math.log(2.0 / delta)
    shift = largest * bound
    return math.sqrt(shift * tail) + shift / (2.0 * (1.0 + largest)) + (1.0 + tail) * largest / 2.0


def _checked_box(leverage: float, squared_residual: float) -> tuple[float, float]:
    largest = check_real(leverage, name="leverage", lower=0.0, lower_open=True, upper=_LARGEST)
    bound = check_real(squared_residual, name="squared_residual", lower=0.0, upper=_LARGEST)
    return max(largest, _LEAST), max(bound, _LEAST)


# The curve at one leverage ------------------------------------------------------------------


def _discriminant(signed: FloatArray, leverage: FloatArray, bound: float) -> FloatArray:
    """Return D; `signed` is epsilon for the remove direction and minus epsilon for add."""
    return bound / (1.0 + leverage) + np.log1p(leverage) - 2.0 * signed


def hockey_stick(
    epsilons: FloatArray, leverage: FloatArray, bound: float, sign: float
) -> FloatArray:
    """Return the exact curve at one leverage for each epsilon; sign 1 is remove, -1 is add."""
    square = np.maximum(_discriminant(sign * epsilons, leverage, bound), 0.0)
    half, center, root = np.sqrt(square), math.sqrt(bound), np.sqrt(leverage)
    precision = np.sqrt(1.0 + leverage)
    ends = [(center + side * half) / root for side in (-1.0, 1.0)]
    larger = [(center / precision + side * precision * half) / root for side in (-1.0, 1.0)]
    if sign > 0.0:
        first, second = _inside(larger[0], larger[1]), _inside(ends[0], ends[1])
    else:
        first, second = _outside(ends[0], ends[1]), _outside(larger[0], larger[1])
    value = first - np.exp(epsilons) * second + _ROUNDING * first
    return np.where(square > 0.0, np.clip(value, 0.0, 1.0), 0.0)


def _inside(lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Return the normal mass of intervals, computed from the tail on their side."""
    flip = lower > 0.0
    low, high = np.where(flip, -upper, lower), np.where(flip, -lower, upper)
    mass: FloatArray = special.ndtr(high) - special.ndtr(low)
    return mass


def _outside(lower: FloatArray, upper: FloatArray) -> FloatArray:
    mass: FloatArray = special.ndtr(lower) + special.ndtr(-upper)
    return mass


# The supremum over the box -------------------------------------------------------------------


def _supremum(epsilons: FloatArray, largest: float, bound: float, sign: float) -> FloatArray:
    """Return the curve of the worst leverage in ``(0, largest]``, separately for each epsilon."""
    # Theorem L1: as the leverage grows, the curve rises, may fall, and may rise again.
    corner = np.full(epsilons.shape, largest)
    value = hockey_stick(epsilons, corner, bound, sign)
    turn = min(_turning_leverage(bound), largest)
    if turn <= 0.0:
        return value
    falls = ~_is_rising(sign * epsilons, np.full(epsilons.shape, turn), bound)
    if falls.any():
        crossing = _first_crossing(sign * epsilons[falls], turn, bound)
        inner = hockey_stick(epsilons[falls], crossing, bound, sign)
        value[falls] = np.maximum(value[falls], inner)
    return value


def _is_rising(signed: FloatArray, leverage: FloatArray, bound: float) -> BoolArray:
    """Return where the curve increases with the leverage; False where it is 0."""
    square = _discriminant(signed, leverage, bound)
    half = np.sqrt(np.maximum(square, 0.0))
    root = math.sqrt(bound)
    rising: BoolArray = (square > 0.0) & (
        half >= root * leverage / (1.0 + leverage) * np.tanh(half * root / leverage)
    )
    return rising


def _first_crossing(signed: FloatArray, turn: float, bound: float) -> FloatArray:
    """Return where a curve that decreases at `turn` stops increasing: once, below `turn`."""
    # On a logarithmic scale, since the worst leverage may be a small part of the box.
    low = np.full(signed.shape, math.log(turn * 1e-9))
    high = np.full(signed.shape, math.log(turn))
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        rising = _is_rising(signed, np.exp(middle), bound)
        low, high = np.where(rising, middle, low), np.where(rising, high, middle)
    return np.exp(low)


def _turning_leverage(bound: float) -> float:
    """Return the leverage that minimises F of the module's docstring; 0 if F only increases.

    With ``z = c y / b``, the root satisfies ``c = z / tanh z``, so everything is explicit in z.
    """
    if bound <= 1.0:
        return 0.0
    low = 1e-4
    # The z > 0 with z / tanh z = bound.
    high = float(optimize.brentq(lambda z: z - bound * math.tanh(z), 1e-9, bound + 1.0))
    if high <= low or turning_slope(low, bound) >= 0.0:
        return bound - 1.0
    z = optimize.brentq(turning_slope, low, high, args=(bound,), xtol=1e-12)
    return max(bound * math.tanh(z) / z - 1.0, 0.0)


def turning_slope(z: float, bound: float) -> float:
    """Return the derivative of F with respect to c at ``c = z / tanh z``."""
    t = math.tanh(z)
    c = z / t
    rest = 1.0 - t * t
    t_slope = t * rest / (1.0 - c * rest)
    gap = bound - c
    return 1.0 - 1.0 / c + 2.0 * gap * t * t / bound - 2.0 * gap * gap * t * t_slope / bound


def _end(largest: float, bound: float, sign: float) -> float:
    """Return an epsilon above which a direction's curve is zero or nearly zero."""
    limit = LARGEST_LOSS
    if sign > 0.0:
        # D decreases and then increases in the leverage, so it is largest at an end of the box.
        highest = max(bound, bound / (1.0 + largest) + math.log1p(largest))
        limit = min(max(highest / 2.0, 1e-9), limit)
    top = min(1e-3 * math.sqrt(min(largest * (1.0 + bound), 1.0)), limit)
    while top < limit and _supremum(np.array([top]), largest, bound, sign)[0] > _TAIL:
        top *= 1.5
    return min(top, limit)
