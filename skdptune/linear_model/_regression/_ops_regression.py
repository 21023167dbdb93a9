"""One posterior sample at a ridge that is chosen before the fit, or from a released eigenvalue."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from skdptune.accounting import PrivacyProfile, calibrate, posterior_sample
from skdptune.linear_model._regression._posterior_plan import (
    LARGEST_EPSILON,
    PosteriorPlan,
    proposal_plan,
)
from skdptune.linear_model._regression._private_regressor import OptionalRidgeRegressor
from skdptune.linear_model._regression._ptr_regression import (
    PosteriorSampleRegressor,
    check_failure,
    posterior_draw,
)
from skdptune.linear_model._regression._ridge_problem import Noise, Problem
from skdptune.linear_model._regression._sufficient_statistics import squared_radius
from skdptune.mechanisms import noise_for_budget, nonprivate_profile

# Ridges, in units of the rows' bound, among which one is chosen.
_RIDGES = np.geomspace(1e-2, 1e8, 401)
# Above this share of one Gaussian release's shift, the leverage alone would cost too much.
_LEVERAGE_SHARE = 0.08


def residual_bound(radius2: float, ridge: Any, n_public: int) -> Any:
    """Return a bound on every residual that holds for any data of that many records.

    With targets in [-1, 1], each eigenvalue's part of the solution is at most
    ``sqrt(value) / (value + ridge) <= 1 / (2 sqrt(ridge))`` of the targets' norm.

    Notes
    -----
    Theorem L6.
    """
    return 1.0 + math.sqrt(radius2 * n_public) / (2.0 * np.sqrt(ridge))


@dataclass(frozen=True)
class BalancedPlan:
    """A ridge, the squared residual that it leaves room for, and the price."""

    ridge: float
    squared_residual: float
    profile: PrivacyProfile
    noise_multiplier: float


@functools.lru_cache(maxsize=256)
def balanced_plan(
    epsilon: float, delta: float, ridge: float | None, radius2: float, n_public: int, width: int
) -> BalancedPlan:
    """Return the plan of a posterior sample whose bounds need no data.

    Parameters
    ----------
    epsilon, delta : float
        The budget; an infinite epsilon means no noise.
    ridge : float or None
        In units of the rows' bound; None balances noise and bias.
    radius2, n_public, width : float, int, int
        Bound on a row's squared norm; number of records and of weights.
    """
    if math.isinf(epsilon):
        least = 1e-2 if ridge is None else ridge
        return BalancedPlan(least, math.inf, nonprivate_profile(), 0.0)
    epsilon = min(epsilon, LARGEST_EPSILON)
    shift = 1.0 / noise_for_budget(epsilon, delta)[0]
    least = radius2 / (_LEVERAGE_SHARE * min(shift, 3.0))
    if ridge is None:
        chosen = _balanced(shift, least, radius2, n_public, width)
    else:
        chosen = max(ridge, least)
    leverage = radius2 / chosen
    found = calibrate(
        lambda residual: posterior_sample(leverage, residual),
        epsilon,
        delta,
        parameter="budget",
        lower=1e-9,
        upper=1e6,
        guess=min(max(shift**2 / leverage, 1e-9), 1e6),
        tolerance=1e-3,
    )
    influence = math.sqrt(leverage * found.value)
    return BalancedPlan(chosen, found.value, found.profile, 1.0 / influence)


def _balanced(shift: float, least: float, radius2: float, n_public: int, width: int) -> float:
    """Return the ridge, from `least` up, at which bounds on noise and bias have the least sum.

    The sample's squared error in the training loss is about its number of weights over the
    precision; the bias is at most the ridge times the squared norm of the best weights,
    which is taken to be that of targets over rows.
    """
    ridges = np.maximum(_RIDGES, least)
    residuals = residual_bound(radius2, ridges, n_public)
    loss = width * residuals**2 * radius2 / (shift**2 * ridges) + ridges
    return float(ridges[np.argmin(loss)])


class OPSLinearRegression(OptionalRidgeRegressor):
    r"""Private linear regression: one posterior sample, with bounds that hold for any data.

    The precision of the draw is set for the worst data that there can be, so that nothing needs to
    be released before it. For neighbours by one record, added or removed.

    Parameters
    ----------
    epsilon, delta : float
        The budget of a fit; an infinite epsilon means no noise. `delta` is positive.
    alpha : float, optional
        Ridge, added to the sum of squares; raised to what the budget needs. The default balances
        bounds on the noise and on the bias, from public sizes alone.
    data_norm, target_bound, fit_intercept, random_state, n_public
        As for `PTRLinearRegression`.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    intercept_ : float
    privacy_ : PrivacyReport
        What the fit costs.
    n_features_in_ : int

    Notes
    -----
    "OPS-balanced" of Wang (2018, arXiv 1803.02596), with the exact profile of the sample.

    Examples
    --------
    >>> import numpy as np
    >>> from skdptune.linear_model import OPSLinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(50_000, 2))
    >>> y = X @ [0.5, -0.5]
    >>> model = OPSLinearRegression(2.0, data_norm=1.5, target_bound=1.0, random_state=0)
    >>> model.fit(X, y).privacy_.epsilon
    2.0
    """

    _fit_costs: ClassVar[frozenset[str]] = frozenset(
        {"epsilon", "delta", "alpha", "data_norm", "fit_intercept", "n_public"}
    )

    def _plan(self, n_public: int, n_features: int | None) -> BalancedPlan:
        epsilon, delta = self._checked_budget()
        ridge = None if self.alpha is None else self._scaled_alpha(n_features)
        width = (1 if n_features is None else n_features) + int(self.fit_intercept)
        if n_features is None and ridge is None:
            raise ValueError("n_features must be given where alpha is not; got None.")
        radius2 = squared_radius(self.fit_intercept)
        return balanced_plan(epsilon, delta, ridge, radius2, n_public, width)

    def _weights(self, plan: BalancedPlan, problem: Problem, noise: Noise) -> np.ndarray:
        bound = residual_bound(problem.radius2, plan.ridge, problem.n_public)
        solution = problem.solution(plan.ridge)
        precision = plan.squared_residual / bound**2
        return posterior_draw(problem, solution, plan.ridge, precision, noise)


class AdaOPSLinearRegression(PosteriorSampleRegressor):
    r"""Private linear regression: one posterior sample, its ridge chosen from the data, privately.

    A bound on the least eigenvalue of the rows' products is released; the ridge that balances
    noise and bias there is a function of it; then comes a bound on residuals, and the sample. For
    neighbours by one record, added or removed.

    Parameters
    ----------
    epsilon, delta : float
        The budget of a fit; an infinite epsilon means no noise. `delta` is positive.
    alpha : float, default=0.0
        Least ridge.
    data_norm, target_bound, fit_intercept, failure_probability, random_state, n_public
        As for `PTRLinearRegression`.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    intercept_ : float
    released_ : bool
        Whether some precision was safe; where none was, the model is zero.
    privacy_ : PrivacyReport
        What the fit costs.
    n_features_in_ : int

    Notes
    -----
    Theorem L5.

    "AdaOPS" of Wang (2018, arXiv 1803.02596, Algorithm 3), with exact Gaussian prices and the
    exact one of the sample in place of tail bounds, and the bound on residuals of the smaller set.

    Examples
    --------
    >>> import numpy as np
    >>> from skdptune.linear_model import AdaOPSLinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(20_000, 2))
    >>> y = X @ [0.5, -0.5]
    >>> model = AdaOPSLinearRegression(1.0, data_norm=1.5, target_bound=1.0, random_state=0)
    >>> model.fit(X, y).privacy_.epsilon
    1.0
    """

    _fit_costs: ClassVar[frozenset[str]] = frozenset({"epsilon", "delta", "failure_probability"})
    _least_alpha: ClassVar[float] = 0.0

    def __init__(
        self,
        epsilon: float | None = 1.0,
        delta: float = 1e-6,
        *,
        alpha: float = 0.0,
        data_norm: float | None = None,
        target_bound: float | None = None,
        fit_intercept: bool = True,
        failure_probability: float | None = None,
        random_state: Any = None,
        n_public: int | None = None,
    ) -> None:
        super().__init__(
            epsilon,
            delta,
            alpha=alpha,
            data_norm=data_norm,
            target_bound=target_bound,
            fit_intercept=fit_intercept,
            random_state=random_state,
            n_public=n_public,
        )
        self.failure_probability = failure_probability

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_failure(self.failure_probability, self.delta)

    def _plan(self, n_public: int, n_features: int | None) -> PosteriorPlan:
        return proposal_plan(*self._checked_budget(), self.failure_probability)

    def _ridge(self, plan: PosteriorPlan, problem: Problem, least: float) -> float:
        """Return the ridge of least noise plus bias, given the released eigenvalue."""
        if math.isinf(plan.norm_shift):
            return problem.alpha
        shift = 1.0 / noise_for_budget(plan.epsilon, plan.delta)[0]
        needed = problem.radius2 / (_LEVERAGE_SHARE * min(shift, 3.0))
        ridges = np.maximum(np.maximum(_RIDGES, needed) - least, problem.alpha)
        leverage = problem.radius2 / (ridges + least)
        # Of the margin of the residuals' bound, which is released with this much noise.
        exponent = 2.0 * plan.margin * np.log1p(leverage) / plan.norm_shift
        squared = (1.0 + leverage) ** 2 * np.exp(np.minimum(exponent, 600.0))
        loss = problem.moment.size * squared * leverage / shift**2 + ridges
        return float(ridges[np.argmin(loss)])
