"""A filter by Gaussian curves for adaptively chosen releases."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np
from dp_accounting import dp_event
from scipy import special

from skdptune._validation import FloatArray
from skdptune.accounting._budget_filter import SLACK, SummingFilter, check_total
from skdptune.accounting._calibration import Calibration, calibrate
from skdptune.accounting._closed_forms import gaussian_delta
from skdptune.accounting._loss_distribution import LossDistribution
from skdptune.accounting._profile import PrivacyProfile, with_failure
from skdptune.accounting._renyi import (
    RenyiCurve,
    RenyiMultiple,
    RenyiOfEvent,
    RenyiOfParts,
    RenyiOfPure,
)

# Chords of the total profile are this close to it.
_TOLERANCE = 1e-5
_LEAST_SHIFT = 1e-9


class GaussianFilter(SummingFilter):
    r"""Keeps adaptively chosen releases within a total (epsilon, delta), by Gaussian curves.

    Check `fits` and call `record` before each release. The choice of the next release, its cost
    and the time to stop may depend on everything that was released before. For all
    choices, the total cost is at most `profile`, which is known beforehand. Each release is
    charged the squared shift of a Gaussian release whose cost is not smaller.

    Use it for releases that are Gaussian or similar, such as noisy gradient descent; for these, it
    admits more than a `RenyiFilter`. Use a `RenyiFilter` for pure guarantees, and if no delta
    shall be set aside.

    Parameters
    ----------
    epsilon, delta : float
        The total for everything that is released. Delta must be greater than 0.
    failure : float, default=0.0
        Part of `delta` that is set aside for the amount by which releases exceed a Gaussian curve.
        If it is 0, only Gaussian releases and those with bounded losses fit. A tenth of delta is a
        good choice; use more for releases with a guarantee at a single (epsilon, delta).

    Attributes
    ----------
    failure : float
        The given value.
    budget : float
        Limit on the sum of squared shifts.
    profile : PrivacyProfile
        The cost of all releases together.
    spent, spent_failure : float
        Parts of `budget` and `failure` used by the releases so far. They depend on the choices
        made, and are not a guarantee; `profile` is.
    n_parts : int
        Number of releases so far.

    Raises
    ------
    BudgetExceededError
        By `record`, for a release that does not fit. The filter is not changed.

    See Also
    --------
    RenyiFilter : Does the same by Rényi divergences of one order.
    SharedCurve : One Gaussian curve for candidates that can all be calibrated to it.

    Notes
    -----
    Theorem G4.

    *Statement* (Smith and Thakurta 2022; Koskela, Tobaben and Honkela 2023, for Gaussian pairs;
    here with failures). Fix numbers ``B, D >= 0``. Release ``t`` of at most T is chosen as a
    function of the releases before it, the same function for both data sets. Given these, its
    curve is at most ``g(s_t) + d_t`` at every epsilon >= 0, in both directions, where ``g(s)`` is
    the curve of a Gaussian release with shift s. The interaction stops before ``sum s_t^2 > B^2``
    or ``sum d_t > D``. Then the curve of the whole is at most ``g(B) + D``, in both directions.

    *Proof.* Write ``H(a; P, Q) = integral of (dP - a dQ)_+``, also for measures P with a mass
    below 1, and ``g(a; s)`` for a Gaussian pair. The proof is by induction over the number of
    remaining rounds. For all earlier releases, the rest, which may still use ``b^2`` and ``d``,
    satisfies ``H(a) <= g(a; b) + d`` for all ``a > 0``. If no round remains, or at a stop, ``H(a)
    = (1 - a)_+ <= g(a; b)``.

    Let the next release be y, from p or q, and let it be charged s and f. So the rest after it
    satisfies ``H(a) <= g(a; b') + d - f`` with ``b'^2 = b^2 - s^2``, for **every** y. This
    includes a rest that will use less, since g grows with the shift. For ``a >= 1``, ``h(a) = H(a;
    p, q)`` is at most ``g(a; s) + f`` by assumption. For ``a < 1``, it is ``1 - a + a H(1/a; q, p)
    <= g(a; s) + a f`` by the other direction. As g vanishes at infinity, there is a c, possibly
    infinite, with ``h(c) = f``. Let ``p' = min(p, c q)``. It lacks a mass of f, and ``H(a; p', q)
    = (h(a) - f)_+ <= g(a; s)`` for all ``a > 0``. The lacking mass adds at most f to H of the
    whole, so that

        H(a) <= f + integral of p'(y) H(a q(y) / p'(y); the rest after y)
             <= f + d - f + integral of p'(y) g(a q(y) / p'(y); b').

    With a Gaussian pair G, G' of shift b', the last integral is that of ``(p'(y) G(z) - a q(y)
    G'(z))_+`` over y and z. Integrating over y first gives the integral of ``G(z) H(a G'(z) /
    G(z); p', q) <= G(z) g(a G'(z) / G(z); s)`` over z. This is the curve of the composition of two
    Gaussian pairs, with shifts b' and s, which is ``g(a; b)``. ∎

    *Charges* (Theorem G5). Gaussian releases, and compositions of them, are charged exactly the
    square of their shift. For any other release, the smallest shift s is searched whose curve lies
    above the release's curve. It is charged the square of this shift. As failure, it is charged
    its probability of revealing everything plus the share ``s^2 / budget`` of `failure`. So both
    totals run out together. The smallest shift depends only on public numbers.

    Examples
    --------
    >>> from skdptune.accounting import GaussianFilter, PrivacyProfile
    >>> total = GaussianFilter(epsilon=2.0, delta=1e-6)
    >>> part = PrivacyProfile.gaussian(0.1)
    >>> while total.fits(part):
    ...     total.record(part)
    >>> total.n_parts
    20
    >>> round(total.profile.epsilon(1e-6), 3)
    2.0
    """

    __slots__ = ()

    _unit = "squared shifts"

    def __init__(self, epsilon: float, delta: float, *, failure: float = 0.0) -> None:
        epsilon, delta, failure = check_total(epsilon, delta, failure)
        found = _solved(epsilon, delta, failure)
        super().__init__(found.value**2, failure, found.profile)

    def _charge(self, part: PrivacyProfile) -> tuple[float, float]:
        shift, failure = charge_of(part, self._failure, math.sqrt(self._budget))
        return shift * shift, failure

    def __repr__(self) -> str:
        """Return the parameters and the state as text."""
        return self._shown("")


def _solved(epsilon: float, delta: float, failure: float) -> Calibration:
    """Return the largest shift that a total allows, and the profile of all releases."""

    def make_profile(shift: float) -> PrivacyProfile:
        # Rounding may make the sums exceed their totals.
        gaussian = PrivacyProfile.gaussian(min(shift * (1.0 + SLACK), LARGEST_SHIFT))
        return with_failure(gaussian, failure * (1.0 + 2.0 * SLACK))

    guess = _largest_shift(epsilon, delta - failure)
    return calibrate(
        make_profile,
        epsilon,
        delta,
        parameter="budget",
        lower=guess * 1e-3,
        upper=min(guess * 1.1, LARGEST_SHIFT * (1.0 - 2.0 * SLACK)),
        guess=guess * (1.0 - 0.5 * _TOLERANCE),
        tolerance=_TOLERANCE,
    )


def _largest_shift(epsilon: float, delta: float) -> float:
    """Return the shift of the Gaussian release that is (epsilon, delta)-private."""
    low, high = math.log(_LEAST_SHIFT), math.log(LARGEST_SHIFT)
    while high - low > 1e-9:
        middle = 0.5 * (low + high)
        is_larger = float(gaussian_delta(math.exp(middle), np.array([epsilon]))[0]) > delta
        low, high = (low, middle) if is_larger else (middle, high)
    return math.exp(low)


# The shift of a Gaussian release that lies above a release's curve -----------------------

LARGEST_SHIFT = 30.0
_LEAST_COVERING = 1e-6
_SHIFT_TOLERANCE = 1e-5
# Number of values of a curve by which a shift is estimated; it is then verified everywhere.
_VALUES = 400
# Number of points per shift for the verification, and the epsilon, in units of shifts, at which a
# Gaussian curve is below every float.
_DENSITY, _REACH = 64, 38.0
# Relative increases of the shift that a verification tries.
_GROWTH = (1e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3)
# Relative rounding errors of sums of masses, and of a Gaussian curve with the smallest shift.
_ROUNDING, _ROUNDING_OF_CURVE = 1e-11, 1e-9


def charge_of(profile: PrivacyProfile, failure: float, whole: float) -> tuple[float, float]:
    """Return shift and failure of a Gaussian release that costs at least as much as a profile.

    Parameters
    ----------
    profile : PrivacyProfile
    failure, whole : float
        A shift s may leave a share ``(s / whole)^2`` of `failure` above its curve, in addition to
        the probability that the release reveals everything. If the squares of several releases sum
        to that of ``whole``, they use up the failure as well.

    Returns
    -------
    shift, failure : float
        Infinite if no shift is large enough. The failure is 0 for Gaussian releases.

    Notes
    -----
    Theorem G5.
    """
    exact = _exact_shift(profile._renyi)
    return _covering(profile, failure, whole) if exact is None else (exact, 0.0)


def _exact_shift(renyi: RenyiCurve) -> float | None:
    """Return the shift of a composition of Gaussian releases; None for other releases."""
    if isinstance(renyi, RenyiOfPure) and renyi.epsilon == 0.0:
        return 0.0
    if isinstance(renyi, RenyiOfEvent) and isinstance(renyi.event, dp_event.GaussianDpEvent):
        return 1.0 / float(renyi.event.noise_multiplier)
    if isinstance(renyi, RenyiMultiple):
        one = _exact_shift(renyi.part)
        return None if one is None else math.sqrt(renyi.count) * one
    if isinstance(renyi, RenyiOfParts) and renyi.combine is np.sum:
        shifts = [_exact_shift(part) for part in renyi.parts]
        return None if None in shifts else math.hypot(*(shift or 0.0 for shift in shifts))
    return None


@functools.lru_cache(maxsize=256)
def _covering(profile: PrivacyProfile, failure: float, whole: float) -> tuple[float, float]:
    """Return nearly the smallest shift that covers a profile, and the failure it leaves."""
    remove, add = profile._finite_sides
    sides = [remove] if remove.equals(add) else [remove, add]
    infinity = max(side.infinity for side in sides)

    def left_by(shift: float) -> float:
        share = min((shift / whole) ** 2, 1.0)
        return (infinity + failure * share) * (1.0 + _ROUNDING)

    # The points where a curve falls to some values, and its values there.
    selected: list[tuple[FloatArray, FloatArray]] = []
    for side in sides:
        left = side.curve - side.infinity
        wanted = np.geomspace(1.0, 1e-15, _VALUES) * left[0]
        places = np.unique(np.minimum(np.searchsorted(-left, -wanted), left.size - 1))
        selected.append((side.step * places, side.curve[places]))
    rough = _rough_shift(selected, left_by)
    for growth in (0.0, *_GROWTH):
        shift = rough * (1.0 + growth)
        if shift > LARGEST_SHIFT:
            break
        if all(is_below(side, shift, left_by(shift)) for side in sides):
            return shift, left_by(shift)
    return math.inf, infinity


def _rough_shift(
    selected: list[tuple[FloatArray, FloatArray]], left_by: Callable[[float], float]
) -> float:
    """Return the smallest shift whose curve is above the selected points."""

    def is_above(shift: float) -> bool:
        failure = left_by(shift)
        return all(
            bool(np.all(values <= gaussian_delta(shift, points) + failure))
            for points, values in selected
        )

    low, high = _LEAST_COVERING, LARGEST_SHIFT
    if is_above(low):
        return low
    while high > low * (1.0 + _SHIFT_TOLERANCE):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if is_above(middle) else (middle, high)
    return high


def is_below(side: LossDistribution, shift: float, failure: float) -> bool:
    """Return whether a curve is below a Gaussian one plus a failure, at every epsilon >= 0.

    Notes
    -----
    Theorem G5.

    Both curves are convex in ``a = exp(epsilon)``. On an interval of length d, the Gaussian curve,
    with slopes ``u < v`` at the ends, is at most ``(v - u) d / 4`` below its chord. If the other
    curve is lower by this amount at both ends, then so is its chord, and therefore the curve.
    """
    end = side.epsilon(failure)
    # Beyond this end, a Gaussian curve is zero. Before it, the number of points is small.
    if end > shift * (_REACH + shift / 2.0):
        return False
    points = np.linspace(0.0, end, math.ceil(end / shift * _DENSITY) + 2)
    # exp(epsilon) times the slope, as a positive number.
    slopes = np.exp(points + special.log_ndtr(-points / shift - shift / 2.0))
    step = points[1] - points[0]
    sagittas = 0.25 * math.expm1(step) * (slopes[:-1] - math.exp(-step) * slopes[1:])
    around = np.maximum(np.append(sagittas, 0.0), np.append(0.0, sagittas))
    excess = side.delta(points) * (1.0 + _ROUNDING) - failure
    below = gaussian_delta(shift, points) * (1.0 - _ROUNDING_OF_CURVE)
    return bool(np.all(excess + around <= below))
