"""Output perturbation: the exact minimum, then noise on the weights.

Chaudhuri, Monteleoni and Sarwate (2011), Theorem 6, for the relation "add or remove one record".
One record moves the minimum of ``sum_i loss(s_i z_i . w) + lam / 2 norm(w)**2`` by at most
``L R / lam``. Minima found up to a gradient norm `gap` are each within ``gap / lam`` of the exact
ones, which makes the sensitivity ``(L R + 2 gap) / lam``. It holds for every number of records.

Theorem M3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skdptune.accounting import PrivacyProfile
from skdptune.linear_model._solvers._design import Design
from skdptune.linear_model._solvers._newton import RegularisedSum, minimise
from skdptune.linear_model._solvers._noise import (
    add_noise,
    additive_noise,
    check_budget,
    noise_grid,
)
from skdptune.linear_model._solvers._public_problem import PublicProblem


@dataclass(frozen=True)
class OutputPlan:
    """How weights will be perturbed, and what all problems cost; made by `plan_output`.

    Attributes
    ----------
    problem : PublicProblem
        Loss and public sizes.
    sensitivity : float
        Bound on how far one record moves the weights that are found.
    noise_scale : float
        Standard deviation of the noise, or the scale of its norm if `is_pure`.
    is_pure : bool
        Whether the noise gives delta = 0.
    gap : float
        Norm of the gradient at which the minimisation stops.
    profile : PrivacyProfile
        Cost of all problems together; add or remove one record.
    max_iter : int
        Newton steps that the minimisation may take.

    Examples
    --------
    >>> from skdptune.linear_model._solvers._margin_losses import LOGISTIC
    >>> problem = PublicProblem(LOGISTIC, 1.4, 2.0, 5, 1000)
    >>> plan = plan_output(problem, epsilon=1.0, delta=0.0)
    >>> round(plan.sensitivity, 6), round(plan.noise_scale, 6), plan.profile.epsilon(0.0)
    (0.7, 0.7, 1.0)
    """

    problem: PublicProblem
    sensitivity: float
    noise_scale: float
    is_pure: bool
    gap: float
    profile: PrivacyProfile
    max_iter: int = 300

    @property
    def noise_multiplier(self) -> float:
        """The noise in units of the sensitivity."""
        return self.noise_scale / self.sensitivity

    @property
    def grid(self) -> float:
        """Power of two of which all released weights are multiples."""
        return noise_grid(self.noise_scale, self.problem.width, self.is_pure)


def plan_output(
    problem: PublicProblem,
    *,
    epsilon: float | None = None,
    delta: float,
    noise_multiplier: float | None = None,
    tol: float = 0.0,
    max_iter: int = 300,
) -> OutputPlan:
    """Return the perturbation that meets a budget, or the cost of a given one.

    Parameters
    ----------
    problem : PublicProblem
        What is minimised.
    epsilon, delta : float
        Budget of all problems together. The noise is normal if delta > 0.
    noise_multiplier : float, optional
        Noise in units of the sensitivity; epsilon is then not used.
    tol : float, default=0.0
        Norm of the gradient at which to stop; see `PublicProblem.gradient_gap`.
    max_iter : int, default=300
        Newton steps that the minimisation may take. Far more than it needs: one that stopped
        short of the gap would be covered by no guarantee.

    Returns
    -------
    OutputPlan

    Notes
    -----
    Theorem M3.
    """
    count = problem.n_problems
    epsilon, delta = check_budget(epsilon, delta, noise_multiplier, count)
    multiplier, profile = additive_noise(epsilon, delta, noise_multiplier, count)
    gap = problem.gradient_gap(tol=tol)
    sensitivity = (problem.gradient_bound + 2.0 * gap) / problem.regularization
    scale = multiplier * sensitivity
    return OutputPlan(problem, sensitivity, scale, delta == 0.0, gap, profile, max_iter)


def fit_output(
    plan: OutputPlan, design: Design, signs: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Return the private weights of one problem.

    Parameters
    ----------
    plan : OutputPlan
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
    Theorem E1.
    """
    problem = plan.problem
    problem.check_fits(design, signs)
    no_term = np.zeros(problem.width)
    function = RegularisedSum(problem.loss, design, signs, problem.regularization, no_term)
    weights = minimise(function, plan.gap, plan.max_iter)
    return add_noise(weights, plan.noise_scale, plan.is_pure, rng)
