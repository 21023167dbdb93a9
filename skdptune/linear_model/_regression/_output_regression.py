"""Output perturbation of a ridge regression: the exact solution, then noise on the weights."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from skdptune._docstrings import with_shared_text
from skdptune.accounting import PrivacyProfile
from skdptune.linear_model._regression._posterior_regressions import residual_bound
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
from skdptune.linear_model._solvers import add_noise, additive_noise
from skdptune.mechanisms._shared import nonprivate_profile


@dataclass(frozen=True)
class OutputRegressionPlan:
    """A ridge, the noise on its weights, and its cost.

    Attributes
    ----------
    ridge : float
        For rows of norm 1.
    noise_multiplier : float
        Noise over sensitivity.
    noise_scale : float
        Standard deviation of the noise, or the scale of its norm if `is_pure`.
    is_pure : bool
        Whether the noise gives delta = 0.
    profile : PrivacyProfile
        Cost of the fit.
    """

    ridge: float
    noise_multiplier: float
    noise_scale: float
    is_pure: bool
    profile: PrivacyProfile


@functools.lru_cache(maxsize=256)
def output_regression_plan(
    epsilon: float, delta: float, ridge: float | None, radius2: float, n_public: int
) -> OutputRegressionPlan:
    """Return the noise that meets a budget.

    Parameters
    ----------
    epsilon, delta : float
        Normal noise if delta is positive; an infinite epsilon means no noise.
    ridge : float or None
        For rows of norm 1; None balances noise and bias.
    radius2, n_public : float, int
        Bound on a row's squared norm, and on the number of records.
    """
    if math.isinf(epsilon):
        multiplier, profile = 0.0, nonprivate_profile()
    else:
        multiplier, profile = additive_noise(min(epsilon, LARGEST_EPSILON), delta, None, 1)
    if ridge is None:
        # Noise moves each record's prediction by its size, and the bias is at most the ridge.
        noise = multiplier * weights_sensitivity(radius2, RIDGES, n_public)
        ridge = float(RIDGES[np.argmin(n_public * radius2 * noise**2 + RIDGES)])
    scale = multiplier * float(weights_sensitivity(radius2, ridge, n_public))
    return OutputRegressionPlan(ridge, multiplier, scale, delta == 0.0, profile)


def weights_sensitivity(radius2: float, ridge: Any, n_public: int) -> Any:
    """Return the largest distance by which one record moves the solution of a ridge regression.

    In units of the bounds. Let r be the residual of the record under the smaller set's solution,
    and H the matrix of the larger set. The solution moves by ``H^-1 z r``, and
    ``norm(H^-1 z) <= norm(z) / ridge``.

    Notes
    -----
    Theorem L7.
    """
    return math.sqrt(radius2) * residual_bound(radius2, ridge, n_public) / ridge


@with_shared_text(REGRESSOR_TEXT)
class OutputPerturbationLinearRegression(PrivateLinearRegressor):
    r"""Differentially private ridge regression that adds noise to the weights.

    The noise is calibrated to the worst possible data. It is the only one of these regressions for
    ``delta=0``; with a positive `delta`, `DPRidge` is more accurate on most data.

    Parameters
    ----------
    {epsilon}
    delta : float, default=1e-5
        Delta of the budget, far below 1 over the number of records. The noise is normal if it is
        positive; 0 gives pure differential privacy.
    alpha : float, optional
        Regularization strength, as in scikit-learn's ``Ridge``. None balances bounds on the noise
        and on the bias, from public sizes only.
    {bounds_and_intercept}
    {randomness_and_size}

    Attributes
    ----------
    {shared_attributes}

    Notes
    -----
    Neighbours differ by adding or removing one record. Chaudhuri, Monteleoni and Sarwate (2011),
    for the squared loss, whose slope is bounded through the norm of a ridge solution:
    ``sqrt(n) target_bound / (2 sqrt(alpha))`` at most, with half of the range of a pair.

    Examples
    --------
    >>> import numpy as np
    >>> from skdptune.linear_model import OutputPerturbationLinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(2000, 2))
    >>> model = OutputPerturbationLinearRegression(1.0, 0.0, target_bound=1.0, random_state=0)
    >>> model.fit(X, X @ [0.5, -0.5]).privacy_.delta
    0.0
    """

    _can_be_pure: ClassVar[bool] = True

    def _plan(self, n_public: int, n_features: int | None) -> OutputRegressionPlan:
        epsilon, delta = self._checked_budget()
        # The number of features, through the default norm, changes only the noise.
        ridge = self._scaled_alpha(1 if n_features is None else n_features)
        radius2 = squared_radius(self.fit_intercept)
        return output_regression_plan(epsilon, delta, ridge, radius2, n_public)

    def _weights(
        self, plan: OutputRegressionPlan, problem: RidgeProblem, rng: np.random.Generator
    ) -> np.ndarray:
        weights = problem.vectors @ problem.solution(plan.ridge)
        if plan.noise_scale == 0.0:
            return weights
        # Theorem E1: real noise plus the value, rounded to a public grid.
        return add_noise(weights, plan.noise_scale, plan.is_pure, rng)
