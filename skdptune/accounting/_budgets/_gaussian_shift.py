"""The shift of a Gaussian release that lies above a release's curve."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np
from dp_accounting import dp_event
from scipy import special

from skdptune._validation import FloatArray
from skdptune.accounting._losses import (
    LossDistribution,
    RenyiCurve,
    RenyiMultiple,
    RenyiOfEvent,
    RenyiOfPure,
    RenyiSum,
    gaussian_delta,
)
from skdptune.accounting._profile import PrivacyProfile, renyi_of, sides_of

LARGEST_SHIFT = 30.0
_LEAST_SHIFT = 1e-6
_TOLERANCE = 1e-5
# Values of a curve at which a shift is looked for; it is then confirmed everywhere.
_VALUES = 400
# Points per shift at which it is confirmed, and the epsilon, in shifts, at which a Gaussian
# curve is below every float.
_DENSITY, _REACH = 64, 38.0
# By how much more a confirmation tries each time.
_GROWTH = (1e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3)
# Relative rounding errors of sums of masses, and of a Gaussian curve of the least shift.
_ROUNDING, _ROUNDING_OF_CURVE = 1e-11, 1e-9


def charge_of(profile: PrivacyProfile, failure: float, whole: float) -> tuple[float, float]:
    """Return the shift and the failure of a Gaussian release that costs more than a profile.

    Parameters
    ----------
    profile : PrivacyProfile
    failure, whole : float
        A shift s may leave a share ``(s / whole)^2`` of `failure` above its curve, in addition to
        what the release reveals everything with. Releases whose squares sum to that of
        ``whole`` then use the failure up as well.

    Returns
    -------
    shift, failure : float
        Infinite if none is large enough. The failure is 0 for releases that are Gaussian.

    Notes
    -----
    Theorem G5.
    """
    exact = _exact_shift(renyi_of(profile))
    if exact is not None:
        return exact, 0.0
    return _covering(profile, failure, whole)


def _exact_shift(renyi: RenyiCurve) -> float | None:
    """Return the shift of a composition of Gaussian releases; None of anything else."""
    if isinstance(renyi, RenyiOfPure) and renyi.epsilon == 0.0:
        return 0.0
    if isinstance(renyi, RenyiOfEvent) and isinstance(renyi.event, dp_event.GaussianDpEvent):
        return 1.0 / float(renyi.event.noise_multiplier)
    if isinstance(renyi, RenyiMultiple):
        one = _exact_shift(renyi.part)
        return None if one is None else math.sqrt(renyi.count) * one
    if isinstance(renyi, RenyiSum):
        shifts = [_exact_shift(part) for part in renyi.parts]
        return None if None in shifts else math.hypot(*(shift or 0.0 for shift in shifts))
    return None


@functools.lru_cache(maxsize=256)
def _covering(profile: PrivacyProfile, failure: float, whole: float) -> tuple[float, float]:
    """Return about the least shift that covers a profile, and the failure it leaves."""
    remove, add = sides_of(profile)
    sides = [remove] if remove.equals(add) else [remove, add]
    infinity = max(side.infinity for side in sides)

    def left_by(shift: float) -> float:
        share = min((shift / whole) ** 2, 1.0)
        return (infinity + failure * share) * (1.0 + _ROUNDING)

    rough = _rough_shift([_selected_points(side) for side in sides], left_by)
    for growth in (0.0, *_GROWTH):
        shift = rough * (1.0 + growth)
        if shift > LARGEST_SHIFT:
            break
        if all(is_below(side, shift, left_by(shift)) for side in sides):
            return shift, left_by(shift)
    return math.inf, infinity


def _selected_points(side: LossDistribution) -> tuple[FloatArray, FloatArray]:
    """Return where a curve falls to each of some values, and its values there."""
    left = side.curve - side.infinity
    wanted = np.geomspace(1.0, 1e-15, _VALUES) * left[0]
    places = np.unique(np.minimum(np.searchsorted(-left, -wanted), left.size - 1))
    return side.step * places, side.curve[places]


def _rough_shift(
    selected: list[tuple[FloatArray, FloatArray]], left_by: Callable[[float], float]
) -> float:
    """Return the least shift whose curve is above the selected points."""

    def is_above(shift: float) -> bool:
        failure = left_by(shift)
        return all(
            bool(np.all(values <= gaussian_delta(shift, points) + failure))
            for points, values in selected
        )

    low, high = _LEAST_SHIFT, LARGEST_SHIFT
    if is_above(low):
        return low
    while high > low * (1.0 + _TOLERANCE):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if is_above(middle) else (middle, high)
    return high


def is_below(side: LossDistribution, shift: float, failure: float) -> bool:
    """Return whether a curve is below a Gaussian one plus a failure, at every epsilon >= 0.

    Notes
    -----
    Theorem G5.

    Both curves are convex in ``a = exp(epsilon)``. On an interval of length d, the Gaussian
    curve, with slopes ``u < v`` at the ends, is at most ``(v - u) d / 4`` below its chord. Where
    the other curve is that much lower at both ends, so is its chord, and with it the curve.
    """
    end = side.epsilon(failure)
    # Beyond, a Gaussian curve is zero, and within, there are few enough points.
    if end > shift * (_REACH + shift / 2.0):
        return False
    points = np.linspace(0.0, end, math.ceil(end / shift * _DENSITY) + 2)
    # exp(epsilon) times the slope, downwards.
    slopes = np.exp(points + special.log_ndtr(-points / shift - shift / 2.0))
    step = points[1] - points[0]
    sagittas = 0.25 * math.expm1(step) * (slopes[:-1] - math.exp(-step) * slopes[1:])
    around = np.maximum(np.append(sagittas, 0.0), np.append(0.0, sagittas))
    excess = side.delta(points) * (1.0 + _ROUNDING) - failure
    below = gaussian_delta(shift, points) * (1.0 - _ROUNDING_OF_CURVE)
    return bool(np.all(excess + around <= below))
