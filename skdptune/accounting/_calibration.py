"""Solving for a parameter, such as the noise, that meets a total epsilon."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from skdptune._validation import check_kind, check_option, check_real
from skdptune.accounting._profile import PrivacyProfile

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
