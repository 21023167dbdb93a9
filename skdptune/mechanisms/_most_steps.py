"""The largest number of equal steps that a budget pays for."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy import optimize

from skdptune.accounting import PrivacyProfile, UnreachableBudgetError, gaussian_delta

# Nobody takes more.
LARGEST_COUNT = 10**9
# Digits of a large number of steps, as costs of neighbours differ by rounding alone.
_PRECISION = 1e-4
# Evaluations by interpolation; after that the bracket is halved.
_INTERPOLATIONS = 12
_LEAST_SHIFT, _LARGEST_SHIFT = 1e-6, 30.0


def most_steps(
    profile_of: Callable[[int], PrivacyProfile], epsilon: float, delta: float, guess: float
) -> tuple[int, PrivacyProfile]:
    """Return the largest number of steps whose cost is within a budget, and their profile.

    Parameters
    ----------
    profile_of : callable
        From a number of steps to what they cost together; more steps cost more.
    epsilon, delta : float
        The budget.
    guess : float
        About the number; a good one saves evaluations.

    Returns
    -------
    steps, profile : int, PrivacyProfile
        At least 1 and at most `LARGEST_COUNT` steps; so many cost at most `epsilon` at `delta`,
        and one more would cost more (beyond 10,000 steps, a ten-thousandth of them more).

    Raises
    ------
    UnreachableBudgetError
        If one step costs more than the budget.

    Notes
    -----
    Theorem C1.

    Bisection between a number that fits and one that does not, sped up by the central limit
    theorem: a cost is about that of Gaussian noise whose squared shift grows linearly with
    the steps. Only a number that fits is ever returned.
    """
    target = _squared_shift(epsilon, delta)
    low, high, tried = 0, LARGEST_COUNT + 1, list[tuple[int, float]]()
    best, least = None, math.inf
    trial = _clipped(guess, low, high)
    while high - low > max(1.0, _PRECISION * low):
        profile = profile_of(trial)
        cost = profile.epsilon(delta)
        if cost <= epsilon:
            low, best = trial, profile
        else:
            high, least = trial, cost
        tried.append((trial, _squared_shift(cost, delta)))
        trial = _next(low, high, tried, target)
    if best is None:
        raise UnreachableBudgetError(
            f"epsilon must be at least {least:.4g} at delta={delta:g}, the cost of a single step; "
            f"got {epsilon:g}. Or make noise_multiplier larger, or batches smaller.",
            least,
        )
    return low, best


def gaussian_shift(epsilon: float, delta: float) -> float | None:
    """Return the shift of Gaussian noise that costs a budget, by Theorem P6.

    None if it is out of a wide range, as it is for a delta of 0.
    """
    if delta == 0.0:
        return None
    at = np.asarray(epsilon)

    def excess(log_shift: float) -> float:
        found = float(gaussian_delta(math.exp(log_shift), at))
        return math.log(max(found, 1e-300) / delta)

    ends = math.log(_LEAST_SHIFT), math.log(_LARGEST_SHIFT)
    if excess(ends[0]) >= 0.0 or excess(ends[1]) <= 0.0:
        return None
    return math.exp(optimize.brentq(excess, *ends, xtol=1e-12))


def _squared_shift(epsilon: float, delta: float) -> float:
    """Return the square of `gaussian_shift`; NaN if there is none."""
    shift = gaussian_shift(epsilon, delta) if 0.0 < epsilon < math.inf else None
    return math.nan if shift is None else shift * shift


def _next(low: int, high: int, tried: list[tuple[int, float]], target: float) -> int:
    """Return a number of steps between one that fits and one that does not.

    Where the line through two points, or through 0 and one, meets the target; the two are those
    nearest to it, of either side if both are known.
    """
    known = [point for point in tried if math.isfinite(point[1])]
    if len(tried) > _INTERPOLATIONS or not known or math.isnan(target):
        return _clipped(_middle(low, high), low, high)
    ends = [point for point in known if point[0] in (low, high)]
    first, second = ends if len(ends) == 2 else [(0, 0.0), *known][-2:]
    slope = (second[1] - first[1]) / (second[0] - first[0])
    if slope <= 0.0:
        return _clipped(_middle(low, high), low, high)
    return _clipped(second[0] + (target - second[1]) / slope, low, high)


def _middle(low: int, high: int) -> float:
    """Return the middle of a bracket, by its logarithms where it is wide."""
    return math.sqrt(max(low, 1) * high) if high > 4 * low else (low + high) / 2


def _clipped(value: float, low: int, high: int) -> int:
    """Return the next smaller integer that lies between two, and not at one of them."""
    margin = max(1, math.floor(_PRECISION * low))
    # A guess from tiny noise or a tiny rate may be infinite.
    return int(min(max(math.floor(min(value, high)), low + margin), max(high - margin, low + 1)))
