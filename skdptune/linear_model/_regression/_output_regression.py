"""Output perturbation of a ridge regression: the exact solution, then noise on the weights."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from skdptune.accounting import PrivacyProfile
from skdptune.linear_model._regression._ops_regression import residual_bound
from skdptune.linear_model._regression._posterior_plan import LARGEST_EPSILON
from skdptune.linear_model._regression._private_regressor import OptionalRidgeRegressor
from skdptune.linear_model._regression._ridge_problem import Noise, Problem
from skdptune.linear_model._regression._sufficient_statistics import squared_radius
from skdptune.linear_model._solvers import additive_noise, draw_noise
from skdptune.mechanisms import nonprivate_profile

_RIDGES = np.geomspace(1e-2, 1e8, 401)


@dataclass(frozen=True)
class OutputRegressionPlan:
    """A ridge, the noise on its weights, and the price.

    Attributes
    ----------
    ridge : float
        In units of the rows' bound.
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
        Normal noise where delta is positive; an infinite epsilon means none.
    ridge : float or None
        In units of the rows' bound; None balances noise and bias.
    radius2, n_public : float, int
        Bound on a row's squared norm, and on the number of records.
    """
    if math.isinf(epsilon):
        multiplier, profile = 0.0, nonprivate_profile()
    else:
        multiplier, profile = additive_noise(min(epsilon, LARGEST_EPSILON), delta, None, 1)
    if ridge is None:
        # Noise moves each record's prediction by its size, and the bias is at most the ridge.
        noise = multiplier * weights_sensitivity(radius2, _RIDGES, n_public)
        ridge = float(_RIDGES[np.argmin(n_public * radius2 * noise**2 + _RIDGES)])
    scale = multiplier * float(weights_sensitivity(radius2, ridge, n_public))
    return OutputRegressionPlan(ridge, multiplier, scale, delta == 0.0, profile)


def weights_sensitivity(radius2: float, ridge: Any, n_public: int) -> Any:
    """Return how far one record moves the solution of a ridge regression at most.

    In units of the bounds. With r the residual of the record under the smaller set's solution, H
    of the larger set: the move is ``H^-1 z r``, and ``norm(H^-1 z) <= norm(z) / ridge``.

    Notes
    -----
    Theorem L7.
    """
    return math.sqrt(radius2) * residual_bound(radius2, ridge, n_public) / ridge


class OutputPerturbationLinearRegression(OptionalRidgeRegressor):
    r"""Private linear regression: the ridge solution plus noise for the worst data there can be.

    For data sets that differ in one record, added or removed. With ``delta=0`` it is purely
    private.

    Parameters
    ----------
    epsilon, delta : float
        The budget of a fit; an infinite epsilon means no noise. The noise is normal if delta > 0.
    alpha : float, optional
        Ridge, added to the sum of squares. The default balances bounds on the noise and on the
        bias, from public sizes alone.
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
    Chaudhuri, Monteleoni and Sarwate (2011), for the squared loss, whose slope is bounded through
    the norm of a ridge solution: ``sqrt(n) target_bound / (2 sqrt(alpha))`` at most.

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

    # The noise depends on all; its price on the budget alone. Validity rests on these two.
    _fit_costs: ClassVar[frozenset[str]] = frozenset({"epsilon", "delta"})
    _pure: ClassVar[bool] = True

    def _plan(self, n_public: int, n_features: int | None) -> OutputRegressionPlan:
        epsilon, delta = self._checked_budget()
        ridge = None
        if self.alpha is not None:
            # The number of features, through the default norm, changes the noise alone.
            ridge = self._scaled_alpha(1 if n_features is None else n_features)
        radius2 = squared_radius(self.fit_intercept)
        return output_regression_plan(epsilon, delta, ridge, radius2, n_public)

    def _weights(self, plan: OutputRegressionPlan, problem: Problem, noise: Noise) -> np.ndarray:
        weights = problem.vectors @ problem.solution(plan.ridge)
        if plan.noise_scale == 0.0:
            return weights
        return weights + draw_noise(noise.generator, weights.size, plan.noise_scale, plan.is_pure)
