"""Solving for a parameter, such as the noise, that meets a total epsilon, or a common curve."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from skdptune._validation import FloatArray, check_kind, check_option, check_real
from skdptune.accounting._closed_forms import ROUNDING, gaussian_delta
from skdptune.accounting._profile import PrivacyProfile, with_failure

_STEPS = 60


class UnreachableBudgetError(ValueError):
    """No value of the parameter within its range meets the budget.

    Attributes
    ----------
    least_epsilon : float
        The smallest epsilon that the range can reach at the given delta.
    """

    def __init__(self, message: str, least_epsilon: float) -> None:
        super().__init__(message)
        self.least_epsilon = least_epsilon

    def __reduce__(self) -> tuple[type[UnreachableBudgetError], tuple[str, float]]:
        """Pickle with both arguments."""
        return type(self), (str(self), self.least_epsilon)


@dataclass(frozen=True)
class Calibration:
    """A parameter that meets a budget, and its privacy cost.

    Attributes
    ----------
    value : float
        The parameter.
    profile : PrivacyProfile
        The cost with this parameter; its epsilon at the given delta is at most the target.

    Examples
    --------
    >>> from skdptune.accounting import PrivacyProfile, calibrate
    >>> found = calibrate(lambda noise: PrivacyProfile.pure(1 / noise), 0.5, 0.0)
    >>> round(float(found), 2)
    2.0
    """

    value: float
    profile: PrivacyProfile

    def __float__(self) -> float:
        """Return the parameter."""
        return self.value


def calibrate(
    make_profile: Callable[[float], PrivacyProfile],
    epsilon: float,
    delta: float,
    *,
    parameter: str = "noise",
    lower: float = 1e-6,
    upper: float = 1e6,
    guess: float | None = None,
    tolerance: float = 1e-4,
    stride: float = 0.7,
) -> Calibration:
    """Return the smallest noise, or the largest budget parameter, for a total budget.

    Parameters
    ----------
    make_profile : callable
        Maps the parameter to the profile of everything that depends on it.
    epsilon, delta : float
        The budget. The result's epsilon at delta never exceeds `epsilon`.
    parameter : {"noise", "budget"}, default="noise"
        A larger "noise" costs less, a larger "budget" costs more.
    lower, upper : float
        Range of the parameter; positive.
    guess : float, optional
        Start of the search; a good guess saves evaluations.
    tolerance : float, default=1e-4
        Share of epsilon that may remain unspent.
    stride : float, default=0.7
        First step from the guess, in the parameter's logarithm; smaller for a better guess.

    Returns
    -------
    Calibration
        The parameter as ``value``, and its ``profile``.

    Raises
    ------
    UnreachableBudgetError
        If even the safest end of the range costs more; the message and ``least_epsilon`` state how
        much.

    Notes
    -----
    Theorem C1.

    Bisection in the parameter's logarithm, accelerated by secants in log epsilon. The bracket is
    extended from the guess. Only the safe end of the last bracket is ever returned.

    Examples
    --------
    >>> from skdptune.accounting import PrivacyProfile, calibrate
    >>> found = calibrate(lambda sigma: PrivacyProfile.gaussian(1 / sigma), 1.0, delta=1e-5)
    >>> round(found.value, 3)
    3.731
    >>> found.profile.epsilon(1e-5) <= 1.0
    True
    """
    epsilon = check_real(epsilon, name="epsilon", lower=0.0, lower_open=True, upper_open=True)
    delta = check_real(delta, name="delta", lower=0.0, upper=1.0)
    lower, upper = check_range(parameter, lower, upper)
    tolerance = check_real(tolerance, name="tolerance", lower=1e-12, upper=0.5)
    start = 1.0 if guess is None else check_real(guess, name="guess", lower=lower, upper=upper)
    sign = 1.0 if parameter == "noise" else -1.0
    stride = check_real(stride, name="stride", lower=1e-6, upper=2.0)
    return _Solver(make_profile, epsilon, delta, sign, (lower, upper), tolerance, stride).solve(
        min(max(start, lower), upper)
    )


def check_range(parameter: Any, lower: Any, upper: Any) -> tuple[float, float]:
    """Return the ends of a parameter's range, or raise."""
    check_option(parameter, name="parameter", options=("noise", "budget"))
    lower = check_real(lower, name="lower", lower=0.0, lower_open=True, upper_open=True)
    return lower, check_real(upper, name="upper", lower=lower, upper_open=True)


@dataclass
class _Point:
    """A parameter value that was tried: its safety (larger costs less) and its cost."""

    safety: float
    excess: float
    profile: PrivacyProfile


@dataclass
class _Solver:
    """The search for the smallest safety whose cost fits the budget."""

    make_profile: Callable[[float], PrivacyProfile]
    epsilon: float
    delta: float
    # 1 if a larger parameter costs less, as noise does, and -1 if it costs more.
    sign: float
    limits: tuple[float, float]
    tolerance: float
    stride: float
    # Safety of each cost that was tried, by its excess.
    tried: dict[float, float] = field(default_factory=dict)

    def solve(self, start: float) -> Calibration:
        first = self._try(self.sign * math.log(start))
        if -self.tolerance <= first.excess <= 0.0:
            return Calibration(self._value(first.safety), first.profile)
        safe, risky = self._bracket(first)
        halve = False
        for _ in range(_STEPS):
            if risky is None or -safe.excess <= self.tolerance:
                break
            width = safe.safety - risky.safety
            if width <= 1e-3 * self.tolerance:
                break
            point = self._try(risky.safety + width * self._share(safe, risky, halve))
            nearest = min(-safe.excess, risky.excess)
            safe, risky = (point, risky) if point.excess <= 0.0 else (safe, point)
            # If a secant step leaves more than half of the bracket, and is not much closer, the
            # next step is a bisection.
            is_slow = abs(point.excess) > 0.25 * nearest
            halve = not halve and is_slow and safe.safety - risky.safety > 0.5 * width
        return Calibration(self._value(safe.safety), safe.profile)

    def _value(self, safety: float) -> float:
        lower, upper = self.limits
        return min(max(math.exp(self.sign * safety), lower), upper)

    def _try(self, safety: float) -> _Point:
        profile = self.make_profile(self._value(safety))
        check_kind(profile, name="make_profile", kind=PrivacyProfile, domain="a PrivacyProfile")
        cost = profile.epsilon(self.delta)
        excess = math.log(cost / self.epsilon) if cost > 0.0 else -math.inf
        if math.isfinite(excess):
            self.tried[excess] = safety
        return _Point(safety, excess, profile)

    def _bracket(self, point: _Point) -> tuple[_Point, _Point | None]:
        """Return a point that fits the budget and one that does not (None if all fit)."""
        riskiest, safest = sorted(self.sign * math.log(limit) for limit in self.limits)
        stride = self.stride
        safe: _Point | None = point if point.excess <= 0.0 else None
        risky: _Point | None = None if safe else point
        while safe is None or risky is None:
            known, step = point.safety, stride
            if len(self.tried) > 1 and point.excess in self.tried:
                # A little beyond the crossing of the line through the closest two trials.
                away = abs(self._crossing(sorted(self.tried, key=abs)[:2]) - known)
                step = min(step, max(1.1 * away, 0.02 * step))
            wanted = known + step if safe is None else known - step
            safety = min(max(wanted, riskiest), safest)
            if safety == known:
                break
            point = self._try(safety)
            safe, risky = (point, risky) if point.excess <= 0.0 else (safe, point)
            stride *= 1.6
        if safe is None:
            raise self._unreachable(point)
        return safe, risky

    def _unreachable(self, point: _Point) -> UnreachableBudgetError:
        least = math.exp(point.excess) * self.epsilon
        if math.isinf(least):
            return UnreachableBudgetError(
                f"delta must be larger; got {self.delta:g}, at which epsilon is infinite "
                "throughout the range of the parameter.",
                least,
            )
        return UnreachableBudgetError(
            f"epsilon must be at least {least:.4g} at delta={self.delta:g}, the least that the "
            f"range of the parameter can reach; got {self.epsilon:g}.",
            least,
        )

    def _share(self, safe: _Point, risky: _Point, halve: bool) -> float:
        """Return the next relative position: where a curve through the closest trials crosses."""
        if halve or not (math.isfinite(safe.excess) and math.isfinite(risky.excess)):
            return 0.5
        for crossing in (self._crossing(), self._crossing([safe.excess, risky.excess])):
            share = (crossing - risky.safety) / (safe.safety - risky.safety)
            if 0.0 < share < 1.0:
                break
        return min(max(share, 0.01), 0.99)

    def _crossing(self, known: list[float] | None = None) -> float:
        """Return where the polynomial through trials, by default the closest, meets the aim."""
        # The aim is half the tolerance below the budget, so that the result is on the safe side.
        aim = -0.5 * self.tolerance
        known = known or sorted(self.tried, key=abs)[:3]
        return sum(
            self.tried[one] * math.prod((aim - two) / (one - two) for two in known if two != one)
            for one in known
        )


# A common curve for candidates that differ in cost ------------------------------------------

_DIRECTIONS = ("remove", "add")
_CURVE_STEPS = 40
_POINTS = 2000
# Tails that were cut off a grid.
_NEGLIGIBLE = 1e-12
# Relative distance to the curve, and of two values of a parameter, at which a calibration ends.
_TOLERANCE, _CLOSE = 2e-3, 1e-3
_LEAST_SHIFT, _LARGEST_SHIFT = 1e-9, 60.0
# Limit for a curve, beyond which a profile has no significant digits.
_LARGEST_CURVE = 30.0


@dataclass(frozen=True)
class SharedCurve:
    """A curve for candidates that differ in cost: that of a Gaussian release, or any other.

    Parameters
    ----------
    shift : float
        Distance between two normal distributions, in standard deviations; at most 30.
    failure : float
        Mass at infinity, which allows other kinds of curves to lie below this one.
    shape : PrivacyProfile, optional
        The curve, before the failure is added; the default is that of a Gaussian release. With
        a shape, `shift` states a Gaussian release below the curve; see `of`.

    Notes
    -----
    Theorem T4. A release whose curve is at most the shared curve at every epsilon >= 0, in both
    directions, costs no more in any bound that uses profiles as upper bounds: selection,
    mixtures, composition, and sampling. So a search over candidates that differ in cost parameters
    costs at most as much as a search over releases with this one curve, however the candidates are
    chosen.

    Examples
    --------
    >>> from skdptune.accounting import PrivacyProfile, SharedCurve
    >>> curve = SharedCurve(shift=0.5, failure=1e-7)
    >>> curve.covers(PrivacyProfile.gaussian(0.5)), curve.covers(PrivacyProfile.gaussian(0.51))
    (True, False)
    >>> SharedCurve.of(PrivacyProfile.pure(0.1), 1e-7).covers(PrivacyProfile.pure(0.1))
    True
    """

    shift: float
    failure: float
    shape: PrivacyProfile | None = None

    def __post_init__(self) -> None:
        """Validate the parameters."""
        check_real(self.shift, name="shift", lower=0.0, lower_open=True, upper=_LARGEST_CURVE)
        check_real(self.failure, name="failure", lower=0.0, upper=1.0, upper_open=True)
        if self.shape is not None:
            check_kind(self.shape, name="shape", kind=PrivacyProfile, domain="a PrivacyProfile")

    @classmethod
    def of(cls, shape: PrivacyProfile, failure: float) -> SharedCurve:
        """Return the curve of a profile and a failure.

        Its shift is that of the largest Gaussian release below it which fails half as often.
        """
        curve = cls(_LEAST_SHIFT, failure, shape)
        half = 0.5 * failure
        low, high = math.log(_LEAST_SHIFT), math.log(_LARGEST_CURVE)
        while high - low > 1e-5:
            middle = 0.5 * (low + high)
            is_below = all(
                bool(np.all(gaussian_delta(math.exp(middle), points) + half <= values))
                for points, values in curve._dots.values()
            )
            low, high = (middle, high) if is_below else (low, middle)
        return cls(math.exp(low), failure, shape)

    @cached_property
    def profile(self) -> PrivacyProfile:
        """The cost of any release whose curve lies below this one."""
        return with_failure(self.shape or PrivacyProfile.gaussian(self.shift), self.failure)

    @cached_property
    def _dots(self) -> dict[str, tuple[FloatArray, FloatArray]]:
        """The points between which `profile` is linear in exp(epsilon), for each direction."""
        dots = {}
        for direction, own in zip(_DIRECTIONS, self.profile._sides, strict=True):
            dots[direction] = (own.step * np.arange(own.highest + 1), own.curve)
        return dots

    def covers(self, profile: PrivacyProfile) -> bool:
        """Return whether a profile lies below the curve at every epsilon >= 0, in both directions.

        Notes
        -----
        A profile is convex in exp(epsilon), and `self.profile` is linear between its dots. If the
        former is at most the latter at all dots, then so it is everywhere between them. At the
        last dot only the failure remains, and a profile does not increase.
        """
        check_kind(profile, name="profile", kind=PrivacyProfile, domain="a PrivacyProfile")
        return self._is_above_gaussian(profile._shift) or self._compared(profile)[0]

    def _is_above_gaussian(self, shift: float) -> bool:
        """Return whether a Gaussian release lies below the curve, from its closed form."""
        return 0.0 < shift <= _LARGEST_CURVE and all(
            bool(np.all(gaussian_delta(shift, points) * (1.0 + ROUNDING) <= values))
            for points, values in self._dots.values()
        )

    def excess(self, profile: PrivacyProfile) -> float:
        """Return the logarithm of the largest ratio of a profile to the curve, at any epsilon."""
        return float(self._compared(profile)[1].max())

    def _compared(self, profile: PrivacyProfile) -> tuple[bool, FloatArray]:
        """Return whether a profile is covered, and the logarithm of its ratio at each dot."""
        is_covered, ratios = True, []
        for direction, (points, values) in self._dots.items():
            found = profile.delta(points, direction)
            is_covered = is_covered and bool(np.all(found <= values))
            with np.errstate(divide="ignore"):
                ratios.append(np.divide(found, values, where=found > 0.0, out=0.0 * found))
        with np.errstate(divide="ignore"):
            return is_covered, np.log(np.concatenate(ratios))

    def divided(self, share: float, failures: int) -> SharedCurve:
        """Return the curve of a component that has a share of the squared shift.

        Gaussian releases compose by the squares of their shifts. So components whose shares sum to
        1 compose to at most the whole. With a shape, the Gaussian release below it is divided.
        """
        failure = self.failure if self.shape is None else 0.5 * self.failure
        return SharedCurve(self.shift * math.sqrt(share), failure / failures)

    def least_shift(self, profile: PrivacyProfile) -> float:
        """Return roughly the smallest shift whose curve, with this failure, covers a profile.

        It is infinite if no shift does, because more than the failure remains at large epsilon.
        """
        needed = []
        for direction, own in zip(_DIRECTIONS, profile._sides, strict=True):
            if own.infinity > self.failure + _NEGLIGIBLE:
                return math.inf
            points = np.linspace(0.0, own.highest * own.step, _POINTS)
            left = profile.delta(points, direction) - self.failure
            counts = left > _NEGLIGIBLE
            needed.append((points[counts], left[counts]))
        low, high = math.log(_LEAST_SHIFT), math.log(_LARGEST_SHIFT)
        if not _lies_above(math.exp(high), needed):
            return math.inf
        while high - low > 1e-5:
            middle = 0.5 * (low + high)
            low, high = (low, middle) if _lies_above(math.exp(middle), needed) else (middle, high)
        return math.exp(high)


def _lies_above(shift: float, needed: list[tuple[FloatArray, FloatArray]]) -> bool:
    return all(
        bool(np.all(np.asarray(gaussian_delta(shift, points)) >= left)) for points, left in needed
    )


def calibrate_to_curve(
    make_profile: Callable[[float], PrivacyProfile],
    curve: SharedCurve,
    *,
    parameter: str = "noise",
    lower: float = 1e-6,
    upper: float = 1e6,
    guess: float = 1.0,
    tolerance: float = _TOLERANCE,
) -> Calibration:
    """Return nearly the smallest noise, or the largest budget, whose profile a curve covers.

    Parameters
    ----------
    make_profile : callable
        Maps the parameter to a profile.
    curve : SharedCurve
    parameter : {"noise", "budget"}, default="noise"
        A larger "noise" costs less, a larger "budget" costs more.
    lower, upper : float
        Range of the parameter; positive.
    guess : float, default=1.0
        Start of the search.
    tolerance : float, default=2e-3
        Relative distance to the curve that is small enough. If it is infinite, any covered profile
        is returned, which decides whether there is one.

    Returns
    -------
    Calibration
        The parameter as ``value``, and its ``profile``, which is covered by the curve.

    Raises
    ------
    UnreachableBudgetError
        If the safest end of the range is not covered.

    Notes
    -----
    Theorem T4.

    At each epsilon, the logarithm of a profile's delta is a smooth function of that of the noise.
    The secants of all of them, through the two closest trials, give the next noise: the largest at
    which one of them meets the curve. Only a parameter whose profile was verified to be covered is
    returned (Theorem C1).

    Examples
    --------
    >>> from skdptune.accounting import PrivacyProfile, SharedCurve, calibrate_to_curve
    >>> curve = SharedCurve(shift=0.5, failure=0.0)
    >>> found = calibrate_to_curve(lambda noise: PrivacyProfile.gaussian(1 / noise), curve)
    >>> round(found.value, 1)
    2.0
    """
    check_kind(curve, name="curve", kind=SharedCurve, domain="a SharedCurve")
    lower, upper = check_range(parameter, lower, upper)
    guess = check_real(guess, name="guess", lower=0.0, lower_open=True)
    tolerance = check_real(tolerance, name="tolerance", lower=0.0)
    sign = 1.0 if parameter == "noise" else -1.0
    # Larger safety costs less.
    riskiest, safest = sorted((sign * math.log(lower), sign * math.log(upper)))
    safe: tuple[float, PrivacyProfile] | None = None
    risky: float | None = None
    tried: list[_Trial] = []

    def made(value: float) -> PrivacyProfile:
        profile = make_profile(value)
        check_kind(profile, name="make_profile", kind=PrivacyProfile, domain="a PrivacyProfile")
        return profile

    safety = min(max(sign * math.log(guess), riskiest), safest)
    if math.isinf(tolerance) and parameter == "noise":
        # Noise that suffices without sampling is verified by its closed form alone (Theorem P7).
        value = min(max(guess, lower), upper)
        profile = made(value)
        factor = 1.001 * profile._shift / curve.shift
        if 1.0 < factor < upper / value:
            value *= factor
            profile = made(value)
        if curve.covers(profile):
            return Calibration(value, profile)
    for _ in range(_CURVE_STEPS):
        value = min(max(math.exp(sign * safety), lower), upper)
        profile = made(value)
        is_covered, ratios = curve._compared(profile)
        tried.append(_Trial(safety, ratios, float(ratios.max())))
        if is_covered:
            safe = (safety, profile)
            if tried[-1].excess >= -tolerance or safety == riskiest:
                break
        else:
            risky = safety
            if safety == safest:
                break
        if safe is not None and risky is not None and safe[0] - risky < _CLOSE:
            break
        known = riskiest if risky is None else risky, safest if safe is None else safe[0]
        safety = _next_safety(tried, known, (risky is not None, safe is not None))
    if safe is None:
        raise UnreachableBudgetError(
            "estimator must stay below the curve that all candidates share if it adds enough "
            "noise; got one whose cost does not fall far enough.",
            curve.profile.epsilon(max(curve.failure, 1e-300)),
        )
    return Calibration(min(max(math.exp(sign * safe[0]), lower), upper), safe[1])


@dataclass(frozen=True)
class _Trial:
    """A profile's logarithmic ratios to the curve, and the largest of them."""

    safety: float
    ratios: FloatArray
    excess: float


def _next_safety(
    tried: list[_Trial], ends: tuple[float, float], is_known: tuple[bool, bool]
) -> float:
    """Return where the secants of the two closest trials meet the curve, within a bracket.

    An end that is not known is that of the range.
    """
    last, (low, high) = tried[-1], ends
    # If nothing else is known, a step in the right direction.
    found = last.safety + (0.5 if last.excess > 0.0 else -0.5)
    if len(tried) > 1:
        first, second = sorted(tried, key=lambda trial: abs(trial.excess))[:2]
        with np.errstate(all="ignore"):
            slopes = (second.ratios - first.ratios) / (second.safety - first.safety)
            roots = first.safety - (first.ratios + 0.5 * _TOLERANCE) / slopes
        falls = np.isfinite(roots) & (slopes < 0.0)
        if falls.any():
            found = float(roots[falls].max())
        elif not all(is_known):
            found = last.safety + 4.0 * (found - last.safety)
    if all(is_known):
        is_inside = low < found < high and len(tried) < _CURVE_STEPS // 2
        return found if is_inside else 0.5 * (low + high)
    # An end of the bracket is not known: a small step at least, and one that does not go far.
    least, most = (0.02, 2.3) if is_known[0] else (-2.3, -0.02)
    return min(max(min(max(found - last.safety, least), most) + last.safety, low), high)
