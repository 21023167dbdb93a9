"""Objective perturbation: a random linear term in the objective, then its exact minimum.

What it costs is in `_objective_cost`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from skdptune.accounting import PrivacyProfile
from skdptune.linear_model._solvers._design import Design
from skdptune.linear_model._solvers._newton import RegularisedSum, minimise
from skdptune.linear_model._solvers._noise import (
    add_noise,
    check_budget,
    draw_linear_term,
    linear_term_error,
    noise_grid,
)
from skdptune.linear_model._solvers._objective_cost import (
    normal_noise,
    pure_noise,
    regularization_floor,
)
from skdptune.linear_model._solvers._public_problem import PublicProblem


@dataclass(frozen=True)
class ObjectivePlan:
    """How a problem will be perturbed, and what all of them cost; made by `plan_objective`.

    Attributes
    ----------
    problem : PublicProblem
        Loss and public sizes, with the regularization that is used.
    regularization_was_raised : bool
        Whether that is more than was asked for.
    noise_scale : float
        Standard deviation of the linear term, or the scale of its norm if `is_pure`.
    is_pure : bool
        Whether the noise gives delta = 0.
    gap : float
        Norm of the gradient at which the minimisation stops.
    distance : float
        Bound on the distance of what is found from the exact minimum for noise in real numbers.
    release_scale : float
        Scale of the noise, of the same kind, that hides this distance.
    profile : PrivacyProfile
        Cost of all problems together; add or remove one record.
    max_iter : int
        Newton steps that the minimisation may take.

    Examples
    --------
    >>> from skdptune.linear_model._solvers._margin_losses import LOGISTIC
    >>> problem = PublicProblem(LOGISTIC, 1.4, 1.0, 5, 1000)
    >>> plan = plan_objective(problem, epsilon=1.0, delta=1e-5)
    >>> 0.99 <= plan.profile.epsilon(1e-5) <= 1.0
    True
    """

    problem: PublicProblem
    regularization_was_raised: bool
    noise_scale: float
    is_pure: bool
    gap: float
    distance: float
    release_scale: float
    profile: PrivacyProfile
    max_iter: int = 300

    @property
    def noise_multiplier(self) -> float:
        """The noise in units of a record's largest gradient."""
        return self.noise_scale / self.problem.gradient_bound

    @property
    def grid(self) -> float:
        """Power of two of which all released weights are multiples."""
        return noise_grid(self.release_scale, self.problem.width, self.is_pure)

    @property
    def regularization(self) -> float:
        """The regularization that is used."""
        return self.problem.regularization


def plan_objective(
    problem: PublicProblem,
    *,
    epsilon: float | None = None,
    delta: float,
    noise_multiplier: float | None = None,
    tol: float = 0.0,
    max_iter: int = 300,
) -> ObjectivePlan:
    """Return the perturbation that meets a budget, or the cost of a given one.

    Parameters
    ----------
    problem : PublicProblem
        What is minimised.
    epsilon, delta : float
        Budget of all problems together. The noise is normal if delta > 0.
    noise_multiplier : float, optional
        Noise in units of a record's largest gradient. Epsilon is then not used, and the
        regularization is never raised.
    tol : float, default=0.0
        Norm of the gradient at which to stop; see `PublicProblem.gradient_gap`.
    max_iter : int, default=300
        Newton steps that the minimisation may take. Far more than it needs: one that stopped
        short of the gap would be covered by no guarantee.

    Returns
    -------
    ObjectivePlan

    Notes
    -----
    Under a weak regularization the determinants use up the budget. Where they would double the
    noise that a pure release of each problem's epsilon needs, lam is raised to where they just
    do; for the rounded hinge this is where ``log(1 + beta R**2 / lam)`` takes half of epsilon.
    The rule looks at public numbers only.
    """
    count, asked = problem.n_problems, problem.regularization
    epsilon, delta = check_budget(epsilon, delta, noise_multiplier, count)
    if noise_multiplier is None:
        floor = regularization_floor(problem.loss, problem.radius, epsilon / count)
        problem = problem.regularised_at_least(floor)
    loss, ratio = problem.loss, problem.radius**2 / problem.regularization
    if delta == 0.0:
        noise = pure_noise(loss, ratio, count, epsilon, noise_multiplier)
    else:
        noise = normal_noise(loss, ratio, count, epsilon, delta, noise_multiplier)
    multiplier, profile, second_share = noise
    scale = multiplier * problem.gradient_bound
    usual_norm = scale * (problem.width if delta == 0.0 else math.sqrt(problem.width))
    gap = problem.gradient_gap(2.0 * usual_norm, tol)
    distance = gap + linear_term_error(problem.width, scale, delta == 0.0)
    distance /= problem.regularization
    return ObjectivePlan(
        problem=problem,
        regularization_was_raised=problem.regularization > asked,
        noise_scale=scale,
        is_pure=delta == 0.0,
        gap=gap,
        distance=distance,
        release_scale=2.0 * distance / second_share,
        profile=profile,
        max_iter=max_iter,
    )


def fit_objective(
    plan: ObjectivePlan, design: Design, signs: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Return the private weights of one problem.

    Parameters
    ----------
    plan : ObjectivePlan
    design : Design
        Rows of norm at most the plan's radius.
    signs : ndarray of shape (n_samples,)
        -1 or 1.
    rng : numpy.random.Generator
        Source of all noise.

    Returns
    -------
    ndarray of shape (width,)

    Notes
    -----
    Theorem M2, Theorem E1.
    """
    problem = plan.problem
    problem.check_fits(design, signs)
    term = draw_linear_term(problem.width, plan.noise_scale, plan.is_pure, rng)
    function = RegularisedSum(problem.loss, design, signs, problem.regularization, term)
    weights = minimise(function, plan.gap, plan.max_iter)
    return add_noise(weights, plan.release_scale, plan.is_pure, rng)
