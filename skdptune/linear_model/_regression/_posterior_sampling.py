"""One posterior sample of a ridge regression, at bounds that are released before it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from skdptune._validation import check_real
from skdptune.ledger import PrivacyLedger
from skdptune.linear_model._regression._posterior_plan import PosteriorPlan
from skdptune.linear_model._regression._private_regressor import PrivateLinearRegressor
from skdptune.linear_model._regression._released_bounds import (
    release_least_eigenvalue,
    release_residual_bound,
)
from skdptune.linear_model._regression._ridge_problem import LEAST_RIDGE, RidgeProblem
from skdptune.mechanisms import draw_images, grid_of


class PosteriorSampleRegressor(PrivateLinearRegressor):
    """What the regressions by one posterior sample share: two released bounds, then the draw."""

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
        super().__init__(
            epsilon,
            delta,
            alpha=alpha,
            data_norm=data_norm,
            target_bound=target_bound,
            fit_intercept=fit_intercept,
            random_state=random_state,
            n_public=n_public,
            ledger=ledger,
        )
        self.failure_probability = failure_probability

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
        The covariance is the inverse of ``precision * (gram + ridge)``; infinite for none.
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
    """Return the power of two to which a draw is rounded, from what is public or released.

    Parameters
    ----------
    problem : RidgeProblem
        Of which sizes and bounds alone are used.
    ridge, precision : float
        As for `posterior_draw`; constants, or functions of what was released before.
    """
    # No eigenvalue of so many records is larger, so no spread is smaller.
    largest = problem.n_public * problem.radius2 + ridge
    return grid_of(1.0 / math.sqrt(precision * largest))
