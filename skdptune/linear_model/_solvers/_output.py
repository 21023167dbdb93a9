"""Noise on weights: on the exact minimum, or after steps over one permutation of the records.

**Output perturbation.** Chaudhuri, Monteleoni and Sarwate (2011), Theorem 6, for the relation "add
or remove one record". One record moves the minimum of
``sum_i loss(s_i z_i . w) + lam / 2 norm(w)**2`` by at most ``L R / lam``. Minima found up to a
gradient norm `gap` are each within ``gap / lam`` of the exact ones, which makes the sensitivity
``(L R + 2 gap) / lam``. It holds for every number of records. Theorem M3.

**Steps over a permutation.** Wu, Li, Kumar, Chaudhuri, Jha and Naughton (2017), for the strongly
convex objective ``mean of losses + gamma / 2 norm(w)**2``, ``gamma = lam / n``. The n records are
cut, in one random order, into m batches whose sizes differ by one at most; every pass takes each:

    w <- w - eta_t ((m / n) * sum of the batch's gradients + gamma w).

**Neighbours.** Two data sets share their n places and differ in one, where one of them holds a
record and the other nothing (a gradient of zero). See `PERMUTATION_ASSUMPTION`.

**Sensitivity.** Let c be the largest batch over n / m. Steps ``eta_t <= 1 / (c beta R**2 +
gamma)`` are contractions, and for a record of batch j the distance obeys

    D_t <= (1 - eta_t gamma) D_{t-1} + [t is at place j] eta_t (m / n) L R,   D_0 = 0.

Its solution is summed exactly, and the largest over j is the sensitivity, for every order.

Theorem M4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from skdptune._validation import check_integer, check_real
from skdptune.accounting import PrivacyProfile
from skdptune.linear_model._solvers._design import (
    Design,
    add_noise,
    additive_noise,
    check_budget,
    noise_grid,
)
from skdptune.linear_model._solvers._public_problem import PublicProblem, RegularisedSum, minimise


@dataclass(frozen=True)
class OutputPlan:
    """The perturbation of weights, and the cost of all problems; made by `plan_output`.

    Attributes
    ----------
    problem : PublicProblem
        Loss and public sizes.
    sensitivity : float
        Bound on the distance by which one record moves the computed weights.
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
    >>> from skdptune.linear_model._solvers._public_problem import LOGISTIC
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
        The problem to minimise.
    epsilon, delta : float
        Budget of all problems together. The noise is normal if delta > 0.
    noise_multiplier : float, optional
        Noise in units of the sensitivity; epsilon is then not used.
    tol : float, default=0.0
        Norm of the gradient at which to stop; see `PublicProblem.gradient_gap`.
    max_iter : int, default=300
        Newton steps that the minimisation may take. This is far more than it needs, since the
        guarantee would not cover a minimisation that stopped before the gap was reached.

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


PERMUTATION_ASSUMPTION = (
    "a record's contribution is added or removed at its place, "
    "the public number of records unchanged"
)
# Allows for rounding in the steps.
_ROUNDING = 1.0 + 1e-9


@dataclass(frozen=True)
class PermutationPlan:
    """Steps over a permutation, their noise and their cost; made by `plan_permutation`.

    Attributes
    ----------
    problem : PublicProblem
        Loss and public sizes.
    epochs : int
        Number of passes over the records.
    n_batches : int
        Number of batches of a pass.
    learning_rates : ndarray of shape (epochs, n_batches)
        Length of each step.
    sensitivity : float
        Bound on the distance by which one record moves the last weights.
    noise_scale : float
        Standard deviation of the noise, or the scale of its norm if `is_pure`.
    is_pure : bool
        Whether the noise gives delta = 0.
    profile : PrivacyProfile
        Cost of all problems together, for the relation that `PERMUTATION_ASSUMPTION` states.

    Examples
    --------
    >>> from skdptune.linear_model._solvers._public_problem import LOGISTIC
    >>> problem = PublicProblem(LOGISTIC, 1.4, 1.0, 5, 1000)
    >>> plan = plan_permutation(problem, epsilon=1.0, delta=1e-5)
    >>> plan.n_batches, plan.profile.epsilon(1e-5) <= 1.0
    (20, True)
    """

    problem: PublicProblem
    epochs: int
    n_batches: int
    learning_rates: np.ndarray
    sensitivity: float
    noise_scale: float
    is_pure: bool
    profile: PrivacyProfile

    @property
    def noise_multiplier(self) -> float:
        """The noise in units of the sensitivity."""
        return self.noise_scale / self.sensitivity

    @property
    def grid(self) -> float:
        """Power of two of which all released weights are multiples."""
        return noise_grid(self.noise_scale, self.problem.width, self.is_pure)


def plan_permutation(
    problem: PublicProblem,
    *,
    epsilon: float | None = None,
    delta: float,
    noise_multiplier: float | None = None,
    epochs: int = 10,
    batch_size: int = 50,
    learning_rate: float | None = None,
) -> PermutationPlan:
    """Return the descent that meets a budget, or the cost of a given noise.

    Parameters
    ----------
    problem : PublicProblem
        The problem to minimise.
    epsilon, delta : float
        Budget of all problems together. The noise is normal if delta > 0.
    noise_multiplier : float, optional
        Noise in units of the sensitivity; epsilon is then not used.
    epochs : int, default=10
        Number of passes over the records.
    batch_size : int, default=50
        Largest size of a batch.
    learning_rate : float, optional
        Length of each step. By default the largest that is a contraction.

    Returns
    -------
    PermutationPlan

    Notes
    -----
    Theorem M4.
    """
    count, n_samples = problem.n_problems, problem.n_samples
    epsilon, delta = check_budget(epsilon, delta, noise_multiplier, count)
    epochs = check_integer(epochs, name="epochs", lower=1)
    batch_size = check_integer(batch_size, name="batch_size", lower=1)
    n_batches = math.ceil(n_samples / batch_size)
    steps = np.full((epochs, n_batches), _checked_step(problem, n_batches, learning_rate))
    sensitivity = path_sensitivity(problem, steps)
    multiplier, profile = additive_noise(epsilon, delta, noise_multiplier, count)
    scale = multiplier * sensitivity
    return PermutationPlan(
        problem, epochs, n_batches, steps, sensitivity, scale, delta == 0.0, profile
    )


def path_sensitivity(problem: PublicProblem, learning_rates: np.ndarray) -> float:
    """Return how far one record moves the last weights, at its worst position.

    Parameters
    ----------
    problem : PublicProblem
    learning_rates : ndarray of shape (epochs, n_batches)
        Lengths of steps, short enough to be contractions.
    """
    # Factor by which a step shrinks a distance; 0 for a step so long that it forgets its start.
    keeps = 1.0 - learning_rates.ravel() * (problem.regularization / problem.n_samples)
    after = np.append(np.cumprod(np.maximum(keeps, 0.0)[:0:-1])[::-1], 1.0)
    moves = learning_rates * after.reshape(learning_rates.shape)
    share = learning_rates.shape[1] / problem.n_samples
    return _ROUNDING * share * problem.gradient_bound * float(moves.sum(axis=0).max())


def fit_permutation(
    plan: PermutationPlan, design: Design, signs: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Return the private weights of one problem.

    Parameters
    ----------
    plan : PermutationPlan
    design : Design
        Rows of norm at most the plan's radius; at most the plan's number of records. Unused
        positions stay empty.
    signs : ndarray of shape (n_samples,)
        -1 or 1.
    rng : numpy.random.Generator
        Source of the order and of all noise.

    Returns
    -------
    ndarray of shape (width,)

    Notes
    -----
    Theorem E1.
    """
    plan.problem.check_fits(design, signs)
    order = rng.permutation(plan.problem.n_samples)
    weights = last_weights(plan, design, signs, order)
    return add_noise(weights, plan.noise_scale, plan.is_pure, rng)


def last_weights(
    plan: PermutationPlan, design: Design, signs: np.ndarray, order: np.ndarray
) -> np.ndarray:
    """Return the weights after the last step, without noise: they are not private.

    Parameters
    ----------
    plan : PermutationPlan
    design : Design
    signs : ndarray of shape (n_samples,)
        -1 or 1; 0 empties a place.
    order : ndarray
        Permutation of the plan's places.
    """
    problem = plan.problem
    size = design.n_records
    if size > problem.n_samples:
        raise ValueError(f"design must be of at most {problem.n_samples} rows; got {size}.")
    groups = [group[group < size] for group in np.array_split(order, plan.n_batches)]
    places = [design.rows_of(group) for group in groups]
    batches = [(design.take(place), signs[place]) for place in places]
    weights = np.zeros(problem.width)
    gamma = problem.regularization / problem.n_samples
    share = plan.n_batches / problem.n_samples
    for steps in plan.learning_rates:
        for step, (rows, sides) in zip(steps, batches, strict=True):
            slopes = problem.loss.derivative(sides * rows.decision(weights))
            residuals = rows.times_weights(sides * slopes)
            weights = weights - step * (share * rows.gradient(residuals) + gamma * weights)
    return weights


def _checked_step(problem: PublicProblem, n_batches: int, learning_rate: float | None) -> float:
    n_samples = problem.n_samples
    fullness = math.ceil(n_samples / n_batches) * n_batches / n_samples
    steepest = fullness * problem.curvature_bound + problem.regularization / n_samples
    largest = 1.0 / steepest
    if learning_rate is None:
        return largest
    return check_real(
        learning_rate,
        name="learning_rate",
        lower=0.0,
        lower_open=True,
        upper=largest,
        hint="Longer steps are not contractions, so their sensitivity is unbounded.",
    )
