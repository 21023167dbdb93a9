"""One posterior sample at a ridge that is chosen before the fit, for any data there can be."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from skdptune._docstrings import with_shared_text
from skdptune.accounting import PrivacyProfile, calibrate, posterior_sample
from skdptune.linear_model._regression._posterior_sampling import posterior_draw
from skdptune.linear_model._regression._private_regressor import (
    REGRESSOR_TEXT,
    PrivateLinearRegressor,
)
from skdptune.linear_model._regression._sufficient_statistics import (
    LARGEST_EPSILON,
    RIDGES,
    RidgeProblem,
    squared_radius,
)
from skdptune.mechanisms import noise_for_budget
from skdptune.mechanisms._shared import nonprivate_profile

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
    """A ridge, the squared residual that the budget allows with it, and what all costs."""

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
        For rows of norm 1; None balances noise and bias.
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
    ridges = np.maximum(RIDGES, least)
    residuals = residual_bound(radius2, ridges, n_public)
    loss = width * residuals**2 * radius2 / (shift**2 * ridges) + ridges
    return float(ridges[np.argmin(loss)])


@with_shared_text(REGRESSOR_TEXT)
class OPSLinearRegression(PrivateLinearRegressor):
    r"""Differentially private ridge regression by one posterior sample, safe for any data.

    The precision of the sample is set for the worst data that there can be, so that nothing has
    to be released before it. For comparison with the literature; `NoisyStatisticsRidge` is more
    accurate on most data.

    Parameters
    ----------
    {epsilon}
    {delta}
    alpha : float, optional
        Regularization strength, as of scikit-learn's ``Ridge``, raised to what the budget needs.
        None balances bounds on the noise and on the bias, from public sizes alone.
    {bounds_and_intercept}
    {randomness_and_size}

    Attributes
    ----------
    {shared_attributes}

    Notes
    -----
    Neighbours differ by adding or removing one record. "OPS-balanced" of Wang (2018, arXiv
    1803.02596), with the exact profile of the sample.

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

    cost_parameters: ClassVar[frozenset[str]] = frozenset(
        {"epsilon", "delta", "alpha", "data_norm", "fit_intercept", "n_public"}
    )

    def _plan(self, n_public: int, n_features: int | None) -> BalancedPlan:
        epsilon, delta = self._checked_budget()
        ridge = self._scaled_alpha(n_features)
        width = (1 if n_features is None else n_features) + int(self.fit_intercept)
        if n_features is None and ridge is None:
            raise ValueError("n_features must be given where alpha is not; got None.")
        radius2 = squared_radius(self.fit_intercept)
        return balanced_plan(epsilon, delta, ridge, radius2, n_public, width)

    def _weights(
        self, plan: BalancedPlan, problem: RidgeProblem, rng: np.random.Generator
    ) -> np.ndarray:
        bound = residual_bound(problem.radius2, plan.ridge, problem.n_public)
        solution = problem.solution(plan.ridge)
        precision = plan.squared_residual / bound**2
        return posterior_draw(problem, solution, plan.ridge, precision, rng)
