r"""Objective perturbation: a random tilt of the objective, then the exact minimum.

With ``J(w) = sum_i loss(s_i z_i . w) + lam / 2 norm(w)**2`` the release is the minimum of
``J(w) + b . w`` for noise b (Chaudhuri, Monteleoni and Sarwate 2011; Kifer, Smith and Thakurta
2012; Redberg, Koskela and Wang 2023). Neighbouring data differ by one record ``(z, s)``, added
or removed; ``norm(z) <= R``; the loss has slopes in ``[-L, 0]`` and curvatures in ``[0, beta]``.

**The density.** ``w -> b = -grad J(w)`` is strongly monotone and Lipschitz, hence one to one onto,
with a Lipschitz inverse, and differentiable almost everywhere (the rounded hinge has a curvature
that jumps). So w has the density ``f(w) = noise(b(w)) * det(H(w))``, ``H`` the Hessian of J,
positive everywhere on every data set. Let b and H belong to the data *without* the
record, b' and H' to those *with* it, at one and the same w, whose margin is m. Then

    b' = b - loss'(m) s z = b - x u,  u = -s z / norm(z),  x = -loss'(m) norm(z) in [0, L R],
    det H' / det H = 1 + loss''(m) (z . H^-1 z)  in  [1, 1 + loss''(m) norm(z)**2 / lam].

The direction u does not depend on w, and x has one sign, because the slope has one.

**Normal noise, remove** (w drawn with the record: b' is normal, and ``t = b' . u / sigma`` is
standard normal). The loss of privacy is ``log(det H'/det H) + (norm(b)**2 - norm(b')**2) /
(2 sigma**2)``, and ``norm(b)**2 = norm(b')**2 + 2 x sigma t + x**2``. x depends on b',
so the law of the loss is unknown, but for every t it is at most

    M(t) = sup_x  log(1 + q(x) / lam) + x t / sigma + x**2 / (2 sigma**2),

q(x) the largest ``loss'' norm(z)**2`` that goes with x. Let k be `curvature_at_slope` and
``a = -loss' / L``. Then ``norm(z) = x / (L a)`` and ``loss'' norm(z)**2 <= (x/L)**2 k(a) / a**2``,
which does not rise in a, and the least a is the one of norm(z) = R: ``q(x) = R**2 k(x / (L R))``.
M rises in t. So ``delta(epsilon) <= E (1 - exp(epsilon - M(t)))_+``.
Coarser, with ``k <= beta``, ``kappa = log(1 + beta R**2 / lam)`` and mu = L R / sigma: a convex
function of x is largest at an end, so ``M(t) <= kappa + max(0, mu t + mu**2 / 2)``, and
``delta(epsilon) <= delta_gauss(epsilon - kappa)`` for ``epsilon >= kappa``. For logistic
regression, where the curvature is ``a (1 - a)`` and vanishes at the steepest slope, the
supremum costs much less than kappa; for the rounded hinge both are the same.

**Normal noise, add** (b is normal): the determinants help, and ``-2 x sigma t + x**2`` is largest
at an end: ``delta(epsilon) <= delta_gauss(epsilon)`` for ``epsilon >= 0``.

**Below kappa.** At epsilon = 0 both directions have one value, the total variation, so the
remove direction is at most ``delta_gauss(0)`` there and, falling, at every epsilon >= 0. The rest
is convexity through (exp(epsilon), delta) = (0, 1), which `PrivacyProfile.from_curve` applies.

**Pure**: b has a density proportional to ``exp(-norm(b) / scale)``, and the norms of b and b'
differ by x at most: the loss is at most ``sup_x log(1 + q(x) / lam) + x / scale``, which is at
most ``kappa + L R / scale`` (remove), and ``L R / scale`` (add).

**The minimum is approximate** (Iyengar et al. 2019). The weights v that are found satisfy
``norm(grad) <= gap``, so they are within ``gap / lam`` of the exact minimum w. The release is
``v + noise`` of the same kind. Release w first: given w, v lies in one and the same ball of
diameter ``2 gap / lam`` on both data sets, whatever b is, so the second release is an additive one
of that sensitivity, and its cost is composed. Its noise is a small share of the budget.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from skdptune.accounting import PrivacyProfile, calibrate
from skdptune.linear_model._solvers._design import Design
from skdptune.linear_model._solvers._margin_losses import MarginLoss
from skdptune.linear_model._solvers._newton import RegularisedSum, minimise
from skdptune.linear_model._solvers._perturbation import (
    LEAST_NOISE_MULTIPLIER,
    Task,
    check_budget,
    draw_noise,
)

# Sensitivity in standard deviations of the second release, per that of the first: normal noises
# add up in squares, so this costs an eighth of a per cent.
_SECOND_SHARE = 0.05
# The second release's share of a pure budget, which adds up linearly.
_SECOND_PURE_SHARE = 0.005
# How much more noise the determinants may cost before the regularization is raised.
_MOST_NOISE = 2.0
_CELLS = 256
_POINTS = 4096
_REACH = 12.0


@dataclass(frozen=True)
class ObjectivePlan:
    """How a problem will be perturbed, and what all of them cost; made by `plan_objective`.

    Attributes
    ----------
    task : Task
        Loss and public sizes, with the regularization that is used.
    regularization_was_raised : bool
        Whether that is more than was asked for.
    noise_scale : float
        Standard deviation of the tilt, or the scale of its norm if `is_pure`.
    is_pure : bool
        Whether the noise gives delta = 0.
    gap : float
        Norm of the gradient at which the minimisation stops.
    release_scale : float
        Scale of the noise, of the same kind, that hides what the minimisation left.
    profile : PrivacyProfile
        Cost of all problems together; add or remove one record.
    max_iter : int
        Newton steps that the minimisation may take.

    Examples
    --------
    >>> from skdptune.linear_model._solvers._margin_losses import LOGISTIC
    >>> plan = plan_objective(LOGISTIC, 1.4, 1.0, 5, 1000, epsilon=1.0, delta=1e-5)
    >>> 0.99 <= plan.profile.epsilon(1e-5) <= 1.0
    True
    """

    task: Task
    regularization_was_raised: bool
    noise_scale: float
    is_pure: bool
    gap: float
    release_scale: float
    profile: PrivacyProfile
    max_iter: int = 300

    @property
    def noise_multiplier(self) -> float:
        """The noise in units of a record's largest gradient."""
        return self.noise_scale / self.task.force

    @property
    def regularization(self) -> float:
        """The regularization that is used."""
        return self.task.regularization


def plan_objective(
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
    tolerance: float = 0.0,
    max_iter: int = 300,
) -> ObjectivePlan:
    """Return the perturbation that meets a budget, or the price of a given one.

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
        Noise in units of a record's largest gradient. Epsilon is then not used, and the
        regularization is never raised.
    n_problems : int, default=1
        Number of problems on the same records.
    tolerance : float, default=0.0
        Norm of the gradient at which to stop, per record's largest gradient and record; never
        less than rounding allows.
    max_iter : int, default=300
        Newton steps that the minimisation may take. Far more than it needs: one that stopped
        short of the gap would be covered by no guarantee.

    Returns
    -------
    ObjectivePlan

    Notes
    -----
    A weak regularization lets the determinants eat the budget. Where they would double the noise
    that a pure release of each problem's epsilon needs, lam is raised to where
    they just do; for the rounded hinge this is where ``log(1 + beta R**2 / lam)`` takes half of
    epsilon. The rule looks at public numbers only.
    """
    task = Task(loss, radius, regularization, width, n_samples, n_problems)
    epsilon, delta = check_budget(epsilon, delta, noise_multiplier, n_problems)
    if epsilon is not None:
        task = task.regularised_at_least(_regularization_floor(task, epsilon / n_problems))
    if delta == 0.0:
        multiplier, profile, second = _pure_noise(task, epsilon, noise_multiplier)
        noise_norm = multiplier * task.force * width
    else:
        multiplier, profile = _normal_noise(task, epsilon, delta, noise_multiplier)
        second = _SECOND_SHARE / multiplier
        noise_norm = multiplier * task.force * math.sqrt(width)
    gap = task.gradient_gap(2.0 * noise_norm, tolerance)
    return ObjectivePlan(
        task=task,
        regularization_was_raised=task.regularization > regularization,
        noise_scale=multiplier * task.force,
        is_pure=delta == 0.0,
        gap=gap,
        release_scale=2.0 * gap / (task.regularization * second),
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
    """
    task = plan.task
    task.check_fits(design, signs)
    tilt = draw_noise(rng, task.width, plan.noise_scale, plan.is_pure)
    function = RegularisedSum(task.loss, design, signs, task.regularization, tilt)
    weights = minimise(function, plan.gap, plan.max_iter)
    return weights + draw_noise(rng, task.width, plan.release_scale, plan.is_pure)


def objective_curves(
    loss: MarginLoss, ratio: float, mu: float, epsilons: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the remove and the add direction's delta for normal noise and an exact minimum.

    Parameters
    ----------
    loss : MarginLoss
    ratio : float
        ``R**2 / lam``.
    mu : float
        ``L R / sigma``.
    epsilons : ndarray
        Not negative.
    """
    gaussian = PrivacyProfile.gaussian(mu)
    # Rounding may lift what is all but certain above 1.
    add = np.minimum(gaussian.delta(epsilons), 1.0)
    kappa = math.log1p(loss.curvature_bound * ratio)
    coarse = gaussian.delta(np.maximum(epsilons - kappa, 0.0))
    return np.minimum(coarse, _remove_curve(loss, ratio, mu, epsilons)), add


def _regularization_floor(task: Task, epsilon: float) -> float:
    """Return the lam with ``sup_a log(1 + k(a) R**2 / lam) + a epsilon / 2 = epsilon``."""
    shares = np.linspace(0.0, 1.0, _CELLS + 1)
    left = np.expm1(np.minimum(epsilon * (1.0 - shares / _MOST_NOISE), 500.0))
    return task.radius**2 * float(np.max(task.loss.curvature_at_slope(shares) / left))


def _determinants(loss: MarginLoss, ratio: float) -> tuple[np.ndarray, np.ndarray]:
    """Return shares a of the slope, and bounds on ``log(1 + k(a) ratio)`` to be used at them.

    A convex function of a plus this concave one, over a cell, is at most the same with a line
    above the concave one, and that is largest at an end. The line is the chord of the cell to the
    left (for the first cell: to the right), which lies above outside its own cell.
    """
    shares = np.linspace(0.0, 1.0, _CELLS + 1)
    exact = np.log1p(np.maximum(loss.curvature_at_slope(shares), 0.0) * ratio)
    bounds = exact.copy()
    bounds[0] = max(exact[0], 2.0 * exact[1] - exact[2])
    bounds[2:] = np.maximum(exact[2:], 2.0 * exact[1:-1] - exact[:-2])
    return shares, np.minimum(bounds, math.log1p(loss.curvature_bound * ratio))


def _remove_curve(loss: MarginLoss, ratio: float, mu: float, epsilons: np.ndarray) -> np.ndarray:
    """Return ``E (1 - exp(epsilon - M(t)))_+``, M rounded up to the end of each cell of t."""
    shares, bounds = _determinants(loss, ratio)
    knots = np.linspace(-_REACH, _REACH, _POINTS // 4)
    suprema = np.max(bounds + mu * np.outer(knots, shares) + 0.5 * (mu * shares) ** 2, axis=1)
    ends = np.linspace(-_REACH, _REACH, 4 * _POINTS)
    # M is a supremum of lines in t, hence convex, hence below its chords.
    losses = np.interp(ends, knots, suprema)
    # Upper tails, so that the mass of a cell far out keeps its accuracy.
    tails = special.ndtr(-ends)
    masses = np.concatenate([[1.0 - tails[0]], -np.diff(tails)])
    above = np.cumsum(masses[::-1])[::-1]
    mirrored = np.cumsum((masses * np.exp(-losses))[::-1])[::-1]
    first = np.searchsorted(losses, epsilons, side="right")
    inside = first < losses.size
    deltas = np.full(epsilons.shape, tails[-1])
    at = first[inside]
    deltas[inside] += np.maximum(above[at] - np.exp(epsilons[inside]) * mirrored[at], 0.0)
    return np.minimum(deltas, 1.0)


def _normal_profile(task: Task, noise_multiplier: float) -> PrivacyProfile:
    """Return the cost of all problems at a multiple of a record's largest gradient."""
    mu = 1.0 / noise_multiplier
    ratio = task.radius**2 / task.regularization
    kappa = math.log1p(task.loss.curvature_bound * ratio)
    top = min(kappa + _normal_reach(mu), 500.0)
    epsilons = np.linspace(0.0, top, _POINTS)
    # One grid for both makes their composition exact and cheap.
    step = min(top / 2**14, 1.0)
    remove, add = objective_curves(task.loss, ratio, mu, epsilons)
    first = PrivacyProfile.from_curve(epsilons, remove, deltas_add=add, discretization=step)
    second_mu = _SECOND_SHARE * mu
    near = np.linspace(0.0, _normal_reach(second_mu), _POINTS // 8)
    tail = PrivacyProfile.gaussian(second_mu).delta(near)
    second = PrivacyProfile.from_curve(near, tail, discretization=step)
    return task.n_problems * (first + second)


def _normal_reach(mu: float) -> float:
    """Return a loss that normal noise exceeds with a probability of 1e-19 at most."""
    return mu * mu / 2.0 + 9.0 * mu


def _normal_noise(
    task: Task, epsilon: float | None, delta: float, noise_multiplier: float | None
) -> tuple[float, PrivacyProfile]:
    if noise_multiplier is not None:
        return noise_multiplier, _normal_profile(task, noise_multiplier)
    guess = math.sqrt(2.0 * task.n_problems * math.log(1.25 / delta)) / epsilon
    found = calibrate(
        lambda multiplier: _normal_profile(task, multiplier),
        epsilon,
        delta,
        lower=LEAST_NOISE_MULTIPLIER,
        upper=1e9,
        guess=min(max(guess, LEAST_NOISE_MULTIPLIER), 1e9),
        tolerance=1e-3,
    )
    return found.value, found.profile


def _pure_noise(
    task: Task, epsilon: float | None, noise_multiplier: float | None
) -> tuple[float, PrivacyProfile, float]:
    """Return the noise multiplier, the cost of all, and the second release's share of epsilon."""
    shares, bounds = _determinants(task.loss, task.radius**2 / task.regularization)

    def cost(multiplier: float) -> float:
        return float(np.max(bounds + shares / multiplier))

    if noise_multiplier is not None:
        first = cost(noise_multiplier)
        second = _SECOND_PURE_SHARE / noise_multiplier
        return noise_multiplier, PrivacyProfile.pure(task.n_problems * (first + second)), second
    each = epsilon / task.n_problems
    target = (1.0 - _SECOND_PURE_SHARE) * each
    # max_a (bound + a / multiplier) <= target says a / multiplier <= target - bound for each a.
    multiplier = (1.0 + 1e-12) * float(np.max(shares[1:] / (target - bounds[1:])))
    return multiplier, PrivacyProfile.pure(epsilon), _SECOND_PURE_SHARE * each
