"""One posterior sample of a ridge regression, at bounds that are released before it.

Each bound holds except with a stated probability. Rows z have squared norm at most *radius2*, and
targets are within [-1, 1]. Neighbours differ in one record; S is the smaller set, L the larger.

**Least eigenvalue.** It has the sensitivity radius2. The released value lies below ``least(S)``,
on either data set, except with the probability `failure`. radius2 is subtracted, since a release
is the same function of its data whether they are S or L.

**Log-norm.** With t the ridge solution and b a bound on the leverage of every z on S,
``R = 1 + radius norm(t)`` bounds every residual ``abs(y - z't)``, and log R has the sensitivity
``log(1 + b)``. The released value lies above it except with the probability `failure`.

Theorem L4.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from skdptune._validation import check_real
from skdptune.accounting import (
    PrivacyProfile,
    UnreachableBudgetError,
    calibrate,
    largest_squared_residual,
    posterior_sample,
    printed_posterior_epsilon,
    with_failure,
)
from skdptune.accounting._shared import covered_squared_residual
from skdptune.base._shared import arguments_of
from skdptune.ledger import PrivacyLedger
from skdptune.linear_model._regression._private_regressor import PrivateLinearRegressor
from skdptune.linear_model._regression._sufficient_statistics import (
    LARGEST_EPSILON,
    LEAST_RIDGE,
    RidgeProblem,
)
from skdptune.mechanisms import gaussian_release, noise_for_budget
from skdptune.mechanisms._shared import draw_images, grid_of, nonprivate_profile

# Shift of the eigenvalue's release, as a share of the shift that one Gaussian release could have.
_EIGENVALUE_SHARE = 0.15
# Default of the largest leverage, as a share of the same shift.
_LEVERAGE_SHARE = 0.03
# Default probability that a released bound does not hold, as a share of delta: a search pays it
# once per expected run.
_FAILURE_SHARE = 1e-3
# At a larger leverage, a sample is not released.
LARGEST_LEVERAGE = 1e3
_LEAST_RESIDUAL, _LARGEST_RESIDUAL = 1e-9, 1e6
# Leverages are rounded up to powers of this ratio, so that results for them are computed once.
_COARSE_RATIO = 1.15
# The curve of a smaller leverage may exceed the box's by this share of the failure probability,
# with which it is charged. Without this, a larger squared residual would never be allowed: a
# sample's loss is bounded in one direction, and a larger residual has a little mass beyond that
# bound.
_SLACK_SHARE = 0.1
_FINE_RATIO = 1.02


@dataclass(frozen=True)
class PosteriorPlan:
    """Limits for the releases of one fit; public constants only.

    Attributes
    ----------
    eigenvalue_shift, norm_shift : float
        Sensitivity of the two released bounds in standard deviations of their noise.
    failure : float
        Probability with which each of the bounds may not hold.
    sample : PrivacyProfile
        Bound on the curve of the posterior sample.
    epsilon, delta : float
        Budget to which the sample is calibrated, if that is a pair.
    leverage, squared_residual : float
        The box to which the sample is calibrated, if that is a box; 0 otherwise.
    profile : PrivacyProfile
        Joint cost of all releases.
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
    def noise_multiplier(self) -> float:
        """Noise of the sample divided by the largest shift by one record."""
        if math.isinf(self.norm_shift):
            return 0.0
        if self.leverage == 0.0:
            return noise_for_budget(self.epsilon, self.delta)[0]
        return 1.0 / math.sqrt(self.leverage * self.squared_residual)

    def largest_residual_at(self, leverage: float) -> float:
        """Return the largest squared residual that is allowed at a leverage; 0 if none is.

        The leverage is rounded up; a smaller one costs no more.
        """
        if math.isinf(self.norm_shift):
            return math.inf
        if leverage > (self.leverage or LARGEST_LEVERAGE):
            return 0.0
        if self.leverage == 0.0:
            rounded = _rounded_up(leverage, _FINE_RATIO)
            return _largest_squared_residual(rounded, self.epsilon, self.delta)
        steps = math.floor(math.log(self.leverage / leverage) / math.log(_COARSE_RATIO) - 1e-9)
        if steps <= 0:
            return self.squared_residual
        return _covered_squared_residual(
            self.leverage,
            self.squared_residual,
            self.leverage * _COARSE_RATIO**-steps,
            _SLACK_SHARE * self.failure,
        )


def noiseless_plan() -> PosteriorPlan:
    """Return the plan without noise, whose profile promises nothing."""
    nothing = nonprivate_profile()
    return PosteriorPlan(math.inf, math.inf, 0.5, nothing, math.inf, 1.0, 0.0, math.inf, nothing)


@functools.lru_cache(maxsize=256)
def adaptive_plan(
    epsilon: float, delta: float, leverage: float | None, failure: float | None, calibration: str
) -> PosteriorPlan:
    """Return the plan whose sample has one curve, fixed in advance: that of a box.

    Parameters
    ----------
    epsilon, delta : float
        Budget of everything; an infinite epsilon means no noise.
    leverage : float or None
        Largest leverage of the box; None for a share of what the budget allows.
    failure : float or None
        Probability with which each bound may not hold; None for delta / 1000.
    calibration : {"exact", "closed-form"}
        Which formula finds the box; its cost is the exact one in both cases.

    Notes
    -----
    Theorem L5.
    """
    if math.isinf(epsilon):
        return noiseless_plan()
    epsilon = min(epsilon, LARGEST_EPSILON)
    failure = _FAILURE_SHARE * delta if failure is None else failure
    single_shift = single_release_shift(epsilon, delta)
    largest = leverage if leverage is not None else _LEVERAGE_SHARE * min(single_shift, 3.0)
    eigenvalue, norm = _shifts(single_shift, largest, failure)
    bounds = PrivacyProfile.gaussian(math.hypot(eigenvalue, norm))
    lost = (2.0 + _SLACK_SHARE) * failure

    def total(residual: float) -> PrivacyProfile:
        return with_failure(bounds + posterior_sample(largest, residual), lost)

    if calibration == "exact":
        residual, profile = _calibrated(total, largest, single_shift, epsilon, delta)
    else:
        residual = _by_printed_form(largest, epsilon, delta)
        profile = total(residual)
    sample = posterior_sample(largest, residual)
    return PosteriorPlan(
        eigenvalue, norm, failure, sample, epsilon, delta, largest, residual, profile
    )


def _calibrated(
    total: Callable[[float], PrivacyProfile],
    largest: float,
    single_shift: float,
    epsilon: float,
    delta: float,
) -> tuple[float, PrivacyProfile]:
    """Return the largest squared residual within the budget, and its cost."""
    if largest >= 1.0:
        # Sums with such samples take long, and most exceed all budgets even without the rest.
        least = posterior_sample(largest, _LEAST_RESIDUAL).epsilon(delta)
        _check_leverage(largest, least, epsilon, delta)
    try:
        found = calibrate(
            total,
            epsilon,
            delta,
            parameter="budget",
            lower=_LEAST_RESIDUAL,
            upper=_LARGEST_RESIDUAL,
            guess=min(
                max(0.5 * single_shift * single_shift / largest, _LEAST_RESIDUAL),
                _LARGEST_RESIDUAL,
            ),
            tolerance=1e-3,
        )
    except UnreachableBudgetError as error:
        _check_leverage(largest, error.least_epsilon, epsilon, delta)
        raise
    return found.value, found.profile


def _check_leverage(largest: float, least_epsilon: float, epsilon: float, delta: float) -> None:
    if least_epsilon > epsilon:
        raise UnreachableBudgetError(
            "max_leverage must be smaller, since it costs at least "
            f"epsilon={least_epsilon:.4g} at delta={delta:g}; got {largest:.4g} with "
            f"epsilon={epsilon:g}. Omit it to use a value that fits the budget.",
            least_epsilon,
        ) from None


@functools.lru_cache(maxsize=256)
def proposal_plan(epsilon: float, delta: float, failure: float | None) -> PosteriorPlan:
    """Return the plan whose sample meets one pair of epsilon and delta, at the released bounds.

    Parameters
    ----------
    epsilon, delta, failure
        See `adaptive_plan`.

    Notes
    -----
    Theorem L5.
    """
    if math.isinf(epsilon):
        return noiseless_plan()
    epsilon = min(epsilon, LARGEST_EPSILON)
    failure = _FAILURE_SHARE * delta if failure is None else failure
    single_shift = single_release_shift(epsilon, delta)
    eigenvalue, norm = _shifts(single_shift, _LEVERAGE_SHARE * min(single_shift, 3.0), failure)
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


def single_release_shift(epsilon: float, delta: float) -> float:
    """Return the shift that one Gaussian release could have for a budget."""
    return 1.0 / noise_for_budget(epsilon, delta)[0]


def _shifts(single_shift: float, leverage: float, failure: float) -> tuple[float, float]:
    """Return the shifts of the two released bounds.

    The remaining squared shift for the sample is about ``1 - share**2`` of the whole; the margin
    of the residuals' bound divides its precision by ``exp(2 margin leverage / shift)``.
    """
    eigenvalue = _EIGENVALUE_SHARE * single_shift
    shares = np.linspace(0.05, 0.9, 86)
    log_precision = np.log(1.0 - _EIGENVALUE_SHARE**2 - shares**2)
    log_precision -= 2.0 * margin(failure) * math.log1p(leverage) / (shares * single_shift)
    return eigenvalue, float(shares[np.argmax(log_precision)]) * single_shift


def _by_printed_form(leverage: float, epsilon: float, delta: float) -> float:
    """Return the squared residual at which the printed closed form gives epsilon."""
    low, high = math.log(_LEAST_RESIDUAL), math.log(_LARGEST_RESIDUAL)
    for _ in range(60):
        middle = 0.5 * (low + high)
        printed = printed_posterior_epsilon(leverage, math.exp(middle), delta)
        low, high = (middle, high) if printed <= epsilon else (low, middle)
    return math.exp(low)


# Smaller leverages ---------------------------------------------------------------------------


def _rounded_up(leverage: float, ratio: float) -> float:
    steps = math.ceil(math.log(leverage) / math.log(ratio) - 1e-6)
    # Rounding of the logarithm must not decrease it.
    return max(ratio**steps, leverage)


# Computed once for all fits of a search.
_largest_squared_residual = functools.lru_cache(maxsize=4096)(largest_squared_residual)
_covered_squared_residual = functools.lru_cache(maxsize=4096)(covered_squared_residual)


class PosteriorSampleRegressor(PrivateLinearRegressor):
    """Base class of regressions by one posterior sample: two released bounds, then the draw."""

    failure_probability: float | None

    def __init__(
        self,
        epsilon: float | None = 1.0,
        delta: float = 1e-5,
        *,
        alpha: float | None = None,
        data_norm: float | None = None,
        target_bound: float | tuple[float, float] | None = None,
        fit_intercept: bool = True,
        failure_probability: float | None = None,
        random_state: Any = None,
        n_public: int | None = None,
        ledger: PrivacyLedger | None = None,
    ) -> None:
        self.__dict__.update(arguments_of(locals()))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.failure_probability is not None:
            check_real(
                self.failure_probability,
                name="failure_probability",
                lower=0.0,
                lower_open=True,
                upper=0.2 * self.delta,
                hint="It is added to delta about twice.",
            )

    def _ridge(self, plan: PosteriorPlan, problem: RidgeProblem, least: float) -> float:
        """Return the ridge, from public constants and the released eigenvalue."""
        raise NotImplementedError

    def _weights(
        self, plan: PosteriorPlan, problem: RidgeProblem, rng: np.random.Generator
    ) -> np.ndarray:
        self.released_ = True
        least = release_least_eigenvalue(
            float(problem.values[0]),
            problem.radius2,
            plan.eigenvalue_shift,
            plan.failure,
            rng,
        )
        ridge = max(self._ridge(plan, problem, least), LEAST_RIDGE)
        leverage = problem.radius2 / (least + ridge)
        allowed = plan.largest_residual_at(leverage)
        solution = problem.solution(ridge)
        bound = release_residual_bound(
            float(np.linalg.norm(solution)),
            problem.radius2,
            leverage,
            plan.norm_shift,
            plan.failure,
            rng,
        )
        if allowed == 0.0:
            self.released_ = False
            return np.zeros_like(solution)
        return posterior_draw(problem, solution, ridge, allowed / bound / bound, rng)


def posterior_draw(
    problem: RidgeProblem,
    solution: np.ndarray,
    ridge: float,
    precision: float,
    rng: np.random.Generator,
) -> np.ndarray:
    """Return one draw of the posterior, in the problem's own basis.

    Parameters
    ----------
    problem : RidgeProblem
    solution : ndarray
        Its mean, in the basis of the eigenvectors.
    ridge : float
    precision : float
        The covariance is the inverse of ``precision * (gram + ridge)``; infinite for no noise.
    rng : numpy.random.Generator
        Source of the noise.

    Returns
    -------
    ndarray
        Multiples of `posterior_grid`.

    Notes
    -----
    Theorem E1.
    """
    if math.isinf(precision):
        return np.asarray(problem.vectors @ solution)
    spreads = 1.0 / np.sqrt(precision * (problem.values + ridge))
    grid = posterior_grid(problem, ridge, precision)
    return draw_images(solution, problem.vectors, spreads, rng, grid)


def posterior_grid(problem: RidgeProblem, ridge: float, precision: float) -> float:
    """Return the power of two to which a draw is rounded, from public or released values.

    Parameters
    ----------
    problem : RidgeProblem
        Only its sizes and bounds are used.
    ridge, precision : float
        As in `posterior_draw`; constants, or functions of previously released values.
    """
    # No eigenvalue of this many records is larger, so no spread is smaller.
    largest = problem.n_public * problem.radius2 + ridge
    return grid_of(1.0 / math.sqrt(precision * largest))


# With a tiny budget the noise is huge; its exponential must stay finite, even when squared.
_LARGEST_LOGARITHM = 300.0


def margin(failure: float) -> float:
    """Return the number of standard deviations that a normal variable exceeds with a probability.

    Parameters
    ----------
    failure : float
        Probability in (0, 1/2).
    """
    return float(-special.ndtri(failure))


def release_noisy_eigenvalue(
    least: float, radius2: float, shift: float, failure: float, random_state: Any = None
) -> float:
    """Release a lower bound on the least eigenvalue of the given data.

    Parameters
    ----------
    least : float
        Least eigenvalue of ``Z'Z``.
    radius2 : float
        Bound on the squared norm of a row: the sensitivity.
    shift : float
        The sensitivity in standard deviations of the noise; the release costs as much as a
        Gaussian one of that ``mu``. Infinite for no noise.
    failure : float
        Probability with which the bound may not hold.
    random_state : None, Generator
        Source of the noise; see `skdptune.mechanisms.gaussian_release`.
    """
    scale = radius2 / shift
    noisy = gaussian_release(least, radius2, scale, random_state)
    return float(max(0.0, noisy - margin(failure) * scale))


def release_least_eigenvalue(
    least: float, radius2: float, shift: float, failure: float, random_state: Any = None
) -> float:
    """Release a lower bound on the least eigenvalue of the smaller of any two neighbours.

    Parameters
    ----------
    least, radius2, shift, failure, random_state
        See `release_noisy_eigenvalue`.

    Notes
    -----
    Theorem L4.
    """
    bound = release_noisy_eigenvalue(least, radius2, shift, failure, random_state)
    return max(0.0, bound - radius2)


def release_residual_bound(
    norm: float, radius2: float, leverage: float, shift: float, failure: float, random: Any = None
) -> float:
    """Release an upper bound on every residual of the smaller of any two neighbours.

    Parameters
    ----------
    norm : float
        Norm of the ridge solution.
    radius2 : float
        Bound on the squared norm of a row.
    leverage : float
        Bound on ``radius2 / (least eigenvalue + ridge)``, on the smaller data set; it must be
        known or released.
    shift, failure, random
        See `release_least_eigenvalue`.

    Notes
    -----
    Theorem L4.
    """
    sensitivity = math.log1p(leverage)
    scale = sensitivity / shift
    noisy = gaussian_release(math.log1p(math.sqrt(radius2) * norm), sensitivity, scale, random)
    # If the data are the larger set, the smaller set's bound may be larger by the factor in front.
    return (1.0 + leverage) * math.exp(min(noisy + margin(failure) * scale, _LARGEST_LOGARITHM))
