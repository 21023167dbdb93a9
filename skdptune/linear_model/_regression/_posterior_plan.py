"""How a budget is spent on two released bounds and one posterior sample.

All is in units of the bounds: rows have squared norm at most *radius2*, targets are in [-1, 1].
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np

from skdptune.accounting import (
    PrivacyProfile,
    UnreachableBudgetError,
    calibrate,
    largest_squared_residual,
    posterior_sample,
    posterior_sample_deltas,
    printed_posterior_epsilon,
    with_failure,
)
from skdptune.linear_model._regression._released_bounds import margin
from skdptune.mechanisms import noise_for_budget, nonprivate_profile

# Shift of the eigenvalue's release as a share of what one Gaussian release could spend.
_EIGENVALUE_SHARE = 0.15
# Default of the largest leverage, in units of the same.
_LEVERAGE_SHARE = 0.03
# Default probability that a released bound does not hold, as a share of delta: a search pays it
# once per expected run.
_FAILURE_SHARE = 1e-3
_LEAST_RESIDUAL, _LARGEST_RESIDUAL = 1e-9, 1e6
# Leverages are rounded up to powers of this ratio, so that what holds for them is found once.
_RUNG = 1.15
# By which a smaller leverage's curve may exceed the box's, as a share of the failure probability;
# it is charged with that. A sample's loss is bounded in one direction, by a bound that no
# larger squared residual keeps, however small the mass beyond it.
_SLACK_SHARE = 0.1
_FINE_RUNG = 1.02
# Largest epsilon worth telling apart from no privacy.
LARGEST_EPSILON = 100.0


@dataclass(frozen=True)
class PosteriorPlan:
    """What each release of one fit may show; public constants alone.

    Attributes
    ----------
    eigenvalue_shift, norm_shift : float
        Sensitivity of the two released bounds in standard deviations of their noise.
    failure : float
        Probability with which each of the bounds may not hold.
    sample : PrivacyProfile
        Bound on the curve of the posterior sample.
    epsilon, delta : float
        What the sample is calibrated to, where that is a pair.
    leverage, squared_residual : float
        The box of the sample, where that is what it is calibrated to; 0 otherwise.
    profile : PrivacyProfile
        Cost of all together.
    """

    eigenvalue_shift: float
    norm_shift: float
    failure: float
    sample: PrivacyProfile
    epsilon: float
    delta: float
    leverage: float
    squared_residual: float
    profile: PrivacyProfile

    @property
    def margin(self) -> float:
        """Standard deviations by which the released bounds err on the safe side."""
        return margin(self.failure)

    @property
    def noise_multiplier(self) -> float:
        """Noise of the sample, over the most by which one record shifts it."""
        if math.isinf(self.norm_shift):
            return 0.0
        if self.leverage == 0.0:
            return noise_for_budget(self.epsilon, self.delta)[0]
        return 1.0 / math.sqrt(self.leverage * self.squared_residual)

    def largest_residual_at(self, leverage: float) -> float:
        """Return the largest squared residual that a leverage leaves room for; 0 if none.

        The leverage is rounded up; a smaller one costs no more.
        """
        if math.isinf(self.norm_shift):
            return math.inf
        if self.leverage == 0.0:
            return _meeting(_rounded_up(leverage, _FINE_RUNG), self.epsilon, self.delta)
        if leverage > self.leverage:
            return 0.0
        rung = math.floor(math.log(self.leverage / leverage) / math.log(_RUNG) - 1e-9)
        if rung <= 0:
            return self.squared_residual
        return _dominated(self.leverage, self.squared_residual, rung, _SLACK_SHARE * self.failure)


def free_plan() -> PosteriorPlan:
    """Return the plan without noise, whose profile promises nothing."""
    nothing = nonprivate_profile()
    return PosteriorPlan(math.inf, math.inf, 0.5, nothing, math.inf, 1.0, 0.0, math.inf, nothing)


@functools.lru_cache(maxsize=256)
def adaptive_plan(
    epsilon: float, delta: float, leverage: float | None, failure: float | None, calibration: str
) -> PosteriorPlan:
    """Return the plan whose sample has one curve, fixed beforehand: that of a box.

    Parameters
    ----------
    epsilon, delta : float
        Budget of everything; an infinite epsilon means no noise.
    leverage : float or None
        Largest leverage of the box; None for a share of what the budget allows.
    failure : float or None
        Probability with which each bound may not hold; None for delta / 1000.
    calibration : {"exact", "closed-form"}
        By what the box is found; its price is the exact one in both cases.

    Notes
    -----
    Theorem L5.
    """
    if math.isinf(epsilon):
        return free_plan()
    epsilon = min(epsilon, LARGEST_EPSILON)
    failure = _failure(failure, delta)
    whole = _whole_shift(epsilon, delta)
    largest = leverage if leverage is not None else _LEVERAGE_SHARE * min(whole, 3.0)
    eigenvalue, norm = _shifts(whole, largest, failure)
    bounds = PrivacyProfile.gaussian(math.hypot(eigenvalue, norm))
    lost = (2.0 + _SLACK_SHARE) * failure

    def total(residual: float) -> PrivacyProfile:
        return with_failure(bounds + posterior_sample(largest, residual), lost)

    if calibration == "exact":
        residual, profile = _calibrated(total, largest, whole, epsilon, delta)
    else:
        residual = _by_printed_form(largest, epsilon, delta)
        profile = total(residual)
    sample = posterior_sample(largest, residual)
    return PosteriorPlan(
        eigenvalue, norm, failure, sample, epsilon, delta, largest, residual, profile
    )


def _calibrated(
    total: functools.partial, largest: float, whole: float, epsilon: float, delta: float
) -> tuple[float, PrivacyProfile]:
    """Return the largest squared residual within the budget, and what it costs."""
    try:
        found = calibrate(
            total,
            epsilon,
            delta,
            parameter="budget",
            lower=_LEAST_RESIDUAL,
            upper=_LARGEST_RESIDUAL,
            guess=min(max(0.5 * whole * whole / largest, _LEAST_RESIDUAL), _LARGEST_RESIDUAL),
            tolerance=1e-3,
        )
    except UnreachableBudgetError as error:
        raise UnreachableBudgetError(
            f"leverage must be smaller, as it costs at least epsilon={error.least_epsilon:.4g} "
            f"at delta={delta:g} alone; got {largest:.4g} with epsilon={epsilon:g}. Leave it out "
            "for one that fits.",
            error.least_epsilon,
        ) from None
    return found.value, found.profile


@functools.lru_cache(maxsize=256)
def proposal_plan(epsilon: float, delta: float, failure: float | None) -> PosteriorPlan:
    """Return the plan whose sample meets one pair of epsilon and delta, at the released bounds.

    Parameters
    ----------
    epsilon, delta, failure
        As for `adaptive_plan`.

    Notes
    -----
    Theorem L5.
    """
    if math.isinf(epsilon):
        return free_plan()
    epsilon = min(epsilon, LARGEST_EPSILON)
    failure = _failure(failure, delta)
    whole = _whole_shift(epsilon, delta)
    eigenvalue, norm = _shifts(whole, _LEVERAGE_SHARE * min(whole, 3.0), failure)
    bounds = PrivacyProfile.gaussian(math.hypot(eigenvalue, norm))
    own_delta = 0.5 * delta

    def total(own: float) -> PrivacyProfile:
        return with_failure(bounds + PrivacyProfile.approximate(own, own_delta), 2.0 * failure)

    found = calibrate(
        total,
        epsilon,
        delta,
        parameter="budget",
        lower=1e-9,
        upper=LARGEST_EPSILON,
        guess=min(max(0.7 * epsilon, 1e-9), LARGEST_EPSILON),
        tolerance=1e-3,
    )
    sample = PrivacyProfile.approximate(found.value, own_delta)
    return PosteriorPlan(
        eigenvalue, norm, failure, sample, found.value, own_delta, 0.0, 0.0, found.profile
    )


def _failure(failure: float | None, delta: float) -> float:
    return _FAILURE_SHARE * delta if failure is None else failure


def _whole_shift(epsilon: float, delta: float) -> float:
    """Return the shift that one Gaussian release could have for the whole budget."""
    return 1.0 / noise_for_budget(epsilon, delta)[0]


def _shifts(whole: float, leverage: float, failure: float) -> tuple[float, float]:
    """Return the shifts of the two released bounds.

    What is left for the sample is about ``1 - share**2`` of the squared shift; the margin of the
    residuals' bound divides its precision by ``exp(2 margin leverage / shift)``.
    """
    eigenvalue = _EIGENVALUE_SHARE * whole
    shares = np.linspace(0.05, 0.9, 86)
    worth = np.log(1.0 - _EIGENVALUE_SHARE**2 - shares**2)
    worth -= 2.0 * margin(failure) * math.log1p(leverage) / (shares * whole)
    return eigenvalue, float(shares[np.argmax(worth)]) * whole


def _by_printed_form(leverage: float, epsilon: float, delta: float) -> float:
    """Return the squared residual at which the printed closed form says epsilon."""
    low, high = math.log(_LEAST_RESIDUAL), math.log(_LARGEST_RESIDUAL)
    for _ in range(60):
        middle = 0.5 * (low + high)
        said = printed_posterior_epsilon(leverage, math.exp(middle), delta)
        low, high = (middle, high) if said <= epsilon else (low, middle)
    return math.exp(low)


# Smaller leverages ---------------------------------------------------------------------------


def _rounded_up(leverage: float, ratio: float) -> float:
    steps = math.ceil(math.log(leverage) / math.log(ratio) - 1e-6)
    # Rounding of the logarithm must not make it smaller than it is.
    return max(ratio**steps, leverage)


@functools.lru_cache(maxsize=4096)
def _meeting(leverage: float, epsilon: float, delta: float) -> float:
    return largest_squared_residual(leverage, epsilon, delta)


@functools.lru_cache(maxsize=4096)
def _dominated(largest: float, residual: float, rung: int, slack: float) -> float:
    """Return a squared residual for a smaller leverage, whose curve the box's covers.

    Up to the slack. The box's profile joins points of its curve by chords. A curve that lies below
    at these points lies below the chords as well, for it is convex in ``exp(epsilon)``; beyond
    the last point it falls, and the profile does not.

    Notes
    -----
    Theorem L5.
    """
    leverage = largest * _RUNG**-rung
    profile = posterior_sample(largest, residual)
    points = [side.step * np.arange(side.highest + 1) for side in profile._both]
    limits = [side.curve + slack for side in profile._both]

    def is_below(squared: float) -> bool:
        for index, (epsilons, limit) in enumerate(zip(points, limits, strict=True)):
            if (posterior_sample_deltas(epsilons, leverage, squared)[index] > limit).any():
                return False
        return True

    low, high = residual, 1.5 * residual * _RUNG**rung
    for _ in range(10):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if is_below(middle) else (low, middle)
    return low
