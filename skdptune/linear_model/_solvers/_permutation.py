"""Stochastic gradient steps over one permutation of the records, then noise on the weights.

Wu, Li, Kumar, Chaudhuri, Jha and Naughton (2017), for the strongly convex objective
``mean of losses + gamma / 2 norm(w)**2``, ``gamma = lam / n``. The n records are cut, in one
random order, into m batches whose sizes differ by one at most; every pass takes each in turn:

    w <- w - eta_t ((m / n) * sum of the batch's gradients + gamma w).

**Neighbours.** Two data sets share their n places and differ in one, where one of them holds a
record and the other nothing (a gradient of zero). See `ASSUMPTION`.

**Sensitivity.** Fix the order; both runs share it. Let c be the largest batch over n / m. A step
with ``eta_t <= 1 / (c beta R**2 + gamma)`` is a contraction by ``1 - eta_t gamma``: the
averaged Hessian of a batch lies between gamma and ``c beta R**2 + gamma``. Once per pass, at one
and the same place j of the pass, the batches differ by one gradient of norm at most ``L R``. With
the contraction of the shared map, the distance obeys

    D_t <= (1 - eta_t gamma) D_{t-1} + [t is at place j] eta_t (m / n) L R,   D_0 = 0.

Its solution is summed exactly, and the largest over j is the sensitivity. The slope of a loss is
bounded everywhere and the regulariser's step is exact, so no projection is needed. The laws are
mixtures over the order with equal weights, so the cost for a fixed order is the cost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from skdptune._validation import check_integer, check_option, check_real
from skdptune.accounting import PrivacyProfile
from skdptune.linear_model._solvers._design import Design
from skdptune.linear_model._solvers._margin_losses import MarginLoss
from skdptune.linear_model._solvers._perturbation import (
    Task,
    additive_noise,
    check_budget,
    draw_noise,
)

ASSUMPTION = (
    "a record's contribution is added or removed at its place, "
    "the public number of records unchanged"
)
SCHEDULES = ("constant", "decreasing")
# Room for rounding in the steps.
_ROUNDING = 1.0 + 1e-9


@dataclass(frozen=True)
class PermutationPlan:
    """Steps over a permutation, their noise and their cost; made by `plan_permutation`.

    Attributes
    ----------
    task : Task
        Loss and public sizes.
    n_passes : int
        Number of passes over the records.
    n_batches : int
        Number of batches of a pass.
    step_sizes : ndarray of shape (n_passes, n_batches)
        Length of each step.
    sensitivity : float
        Bound on how far one record moves the last weights.
    noise_scale : float
        Standard deviation of the noise, or the scale of its norm if `is_pure`.
    is_pure : bool
        Whether the noise gives delta = 0.
    profile : PrivacyProfile
        Cost of all problems together, for the relation that `ASSUMPTION` states.

    Examples
    --------
    >>> from skdptune.linear_model._solvers._margin_losses import LOGISTIC
    >>> plan = plan_permutation(LOGISTIC, 1.4, 1.0, 5, 1000, epsilon=1.0, delta=1e-5)
    >>> plan.n_batches, plan.profile.epsilon(1e-5) <= 1.0
    (20, True)
    """

    task: Task
    n_passes: int
    n_batches: int
    step_sizes: np.ndarray
    sensitivity: float
    noise_scale: float
    is_pure: bool
    profile: PrivacyProfile

    @property
    def noise_multiplier(self) -> float:
        """The noise in units of the sensitivity."""
        return self.noise_scale / self.sensitivity


def plan_permutation(
    loss: MarginLoss,
    radius: float,
    regularization: float,
    width: int,
    n_samples: int,
    *,
    epsilon: float | None = None,
    delta: float,
    noise_multiplier: float | None = None,
    n_problems: int = 1,
    n_passes: int = 10,
    batch_size: int = 50,
    schedule: str = "constant",
    step_size: float | None = None,
) -> PermutationPlan:
    """Return the run that meets a budget, or the price of a given noise.

    Parameters
    ----------
    loss : MarginLoss
        Loss of each record's margin.
    radius : float
        Bound on the norm of a clipped row, the intercept's 1 included.
    regularization : float
        Strength for the sum of the losses (scikit-learn's ``1 / C``); the intercept is included.
    width, n_samples : int
        Number of weights, and the public number of records.
    epsilon, delta : float
        Budget of all problems together. The noise is normal if delta > 0.
    noise_multiplier : float, optional
        Noise in units of the sensitivity; epsilon is then not used.
    n_problems : int, default=1
        Number of problems on the same records.
    n_passes : int, default=10
        Number of passes over the records.
    batch_size : int, default=50
        Largest size of a batch.
    schedule : {"constant", "decreasing"}, default="constant"
        Decreasing steps are ``min(step_size, 1 / (gamma t))``.
    step_size : float, optional
        Length of the first step. By default the largest that is a contraction.

    Returns
    -------
    PermutationPlan
    """
    task = Task(loss, radius, regularization, width, n_samples, n_problems)
    epsilon, delta = check_budget(epsilon, delta, noise_multiplier, n_problems)
    n_passes = check_integer(n_passes, name="n_passes", lower=1)
    batch_size = check_integer(batch_size, name="batch_size", lower=1)
    check_option(schedule, name="schedule", options=SCHEDULES)
    n_batches = math.ceil(n_samples / batch_size)
    first = _first_step(task, n_batches, step_size)
    steps = np.full(n_passes * n_batches, first)
    if schedule == "decreasing":
        # gamma t = lam t / n.
        steps = np.minimum(steps, n_samples / (regularization * np.arange(1.0, steps.size + 1.0)))
    steps = steps.reshape(n_passes, n_batches)
    sensitivity = path_sensitivity(task, steps)
    multiplier, profile = additive_noise(epsilon, delta, noise_multiplier, n_problems)
    scale = multiplier * sensitivity
    return PermutationPlan(
        task, n_passes, n_batches, steps, sensitivity, scale, delta == 0.0, profile
    )


def path_sensitivity(task: Task, step_sizes: np.ndarray) -> float:
    """Return how far one record moves the last weights, at its worst place.

    Parameters
    ----------
    task : Task
    step_sizes : ndarray of shape (n_passes, n_batches)
        Steps short enough to be contractions.
    """
    keeps = np.log1p(-step_sizes.ravel() * task.regularization / task.n_samples)
    after = np.cumsum(keeps[::-1])[::-1] - keeps
    kicks = step_sizes * np.exp(after.reshape(step_sizes.shape))
    share = step_sizes.shape[1] / task.n_samples
    return _ROUNDING * share * task.force * float(kicks.sum(axis=0).max())


def fit_permutation(
    plan: PermutationPlan, design: Design, signs: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Return the private weights of one problem.

    Parameters
    ----------
    plan : PermutationPlan
    design : Design
        Rows of norm at most the plan's radius; no more than the plan's number of records. Places
        that are left over stay empty.
    signs : ndarray of shape (n_samples,)
        -1 or 1.
    rng : numpy.random.Generator
        Source of the order and of all noise.

    Returns
    -------
    ndarray of shape (width,)
    """
    plan.task.check_fits(design, signs)
    order = rng.permutation(plan.task.n_samples)
    noise = draw_noise(rng, plan.task.width, plan.noise_scale, plan.is_pure)
    return last_weights(plan, design, signs, order) + noise


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
    task = plan.task
    if design.n_samples > task.n_samples:
        raise ValueError(
            f"design must be of at most {task.n_samples} rows; got {design.n_samples}."
        )
    parts = [part[part < design.n_samples] for part in np.array_split(order, plan.n_batches)]
    batches = [(design.take(part), signs[part]) for part in parts]
    weights = np.zeros(task.width)
    gamma = task.regularization / task.n_samples
    share = plan.n_batches / task.n_samples
    for steps in plan.step_sizes:
        for step, (rows, sides) in zip(steps, batches, strict=True):
            residuals = sides * task.loss.derivative(sides * rows.decision(weights))
            weights = weights - step * (share * rows.gradient(residuals) + gamma * weights)
    return weights


def _first_step(task: Task, n_batches: int, step_size: float | None) -> float:
    fullness = math.ceil(task.n_samples / n_batches) * n_batches / task.n_samples
    largest = 1.0 / (fullness * task.stiffness + task.regularization / task.n_samples)
    if step_size is None:
        return largest
    hint = "Longer steps are no contractions, and their sensitivity has no bound."
    return check_real(
        step_size, name="step_size", lower=0.0, lower_open=True, upper=largest, hint=hint
    )
