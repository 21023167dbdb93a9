"""Objective perturbation: a random linear term in the objective, then its exact minimum.

With ``J(w) = sum_i loss(s_i z_i . w) + lam / 2 norm(w)**2`` the release is the minimum of
``J(w) + b . w`` for noise b (Chaudhuri, Monteleoni and Sarwate 2011; Kifer, Smith and Thakurta
2012; Redberg, Koskela and Wang 2023). Neighbouring data differ by one record ``(z, s)``, added
or removed; ``norm(z) <= R``; the loss has slopes in ``[-L, 0]`` and curvatures in ``[0, beta]``.

A record's gradient has one direction and one sign, so that noise in it and the determinants of
the Hessians bound the privacy loss. With k the loss's `curvature_at_slope` and t standard normal:

* Normal noise of standard deviation sigma, remove: at most

      M(t) = sup_a  log(1 + k(a) R**2 / lam) + a L R t / sigma + (a L R)**2 / (2 sigma**2),

  and ``delta(epsilon) <= delta_gauss(epsilon - kappa)``, ``kappa = log(1 + beta R**2 / lam)``. For
  logistic regression, where the curvature is ``a (1 - a)`` and vanishes at the steepest slope,
  M costs much less than kappa; for the rounded hinge both are the same. Add:
  ``delta_gauss(epsilon)``.
* Pure: b has a density proportional to ``exp(-norm(b) / scale)``. Remove: at most
  ``sup_a log(1 + k(a) R**2 / lam) + a L R / scale``; add: ``L R / scale``.

The minimum is approximate (Iyengar et al. 2019): what the minimiser leaves is hidden by a second
release of noise (Theorem M2), a small share of the budget.

If neighbours differ by one person with all rows, the loss of a person is a mean of row losses and
has no single direction. Then Theorem M8 bounds the cost: ``k(a) R**2 / lam`` replaces its
``log(1 + ...)``, and the powers of tests follow a flow.

Theorem M1, Theorem M8.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from skdptune.accounting import PrivacyProfile, calibrate
from skdptune.accounting._shared import gaussian_delta, persons_minimum_curves
from skdptune.linear_model._solvers._design import (
    LARGEST_NOISE_MULTIPLIER,
    LEAST_NOISE_MULTIPLIER,
    Design,
    add_noise,
    check_budget,
    draw_linear_term,
    linear_term_error,
    noise_grid,
    normal_noise_guess,
)
from skdptune.linear_model._solvers._public_problem import (
    MarginLoss,
    PublicProblem,
    RegularisedSum,
    minimise,
)


@dataclass(frozen=True)
class ObjectivePlan:
    """The perturbation of a problem, and the cost of all problems; made by `plan_objective`.

    Attributes
    ----------
    problem : PublicProblem
        Loss and public sizes, with the regularization that is used.
    regularization_was_raised : bool
        Whether that is more than was requested.
    noise_scale : float
        Standard deviation of the linear term, or the scale of its norm if `is_pure`.
    is_pure : bool
        Whether the noise gives delta = 0.
    gap : float
        Norm of the gradient at which the minimisation stops.
    distance : float
        Bound on the distance between the result and the exact minimum for noise in real numbers.
    release_scale : float
        Scale of the noise, of the same kind, that hides this distance.
    profile : PrivacyProfile
        Cost of all problems together; add or remove one record.
    max_iter : int
        Newton steps that the minimisation may take.

    Examples
    --------
    >>> from skdptune.linear_model._solvers._public_problem import LOGISTIC
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
    persons: bool = False,
) -> ObjectivePlan:
    """Return the perturbation that meets a budget, or the cost of a given one.

    Parameters
    ----------
    problem : PublicProblem
        The problem to minimise.
    epsilon, delta : float
        Budget of all problems together. The noise is normal if delta > 0.
    noise_multiplier : float, optional
        Noise in units of a record's largest gradient. Epsilon is then not used, and the
        regularization is never raised.
    tol : float, default=0.0
        Norm of the gradient at which to stop; see `PublicProblem.gradient_gap`.
    max_iter : int, default=300
        Newton steps that the minimisation may take. This is far more than it needs, since the
        guarantee would not cover a minimisation that stopped before the gap was reached.
    persons : bool, default=False
        Whether neighbours differ by one person, whose loss is a mean of row losses.

    Returns
    -------
    ObjectivePlan

    Notes
    -----
    Under a weak regularization the determinants use up the budget. If they would double the noise
    that a pure release of each problem's epsilon needs, lam is raised until they just do. For the
    rounded hinge, ``log(1 + beta R**2 / lam)`` then uses half of epsilon. For persons,
    ``k(a) R**2 / lam`` replaces the logarithm. The rule depends on public numbers only.
    """
    count, asked = problem.n_problems, problem.regularization
    epsilon, delta = check_budget(epsilon, delta, noise_multiplier, count)
    if noise_multiplier is None:
        floor = regularization_floor(problem.loss, problem.radius, epsilon / count, persons)
        problem = replace(problem, regularization=max(asked, floor))
    loss, ratio = problem.loss, problem.radius**2 / problem.regularization
    if delta == 0.0:
        noise = pure_noise(loss, ratio, count, epsilon, noise_multiplier, persons)
    else:
        noise = normal_noise(loss, ratio, count, epsilon, delta, noise_multiplier, persons)
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


# Sensitivity in standard deviations of the second release, per that of the first: normal noises
# add up in squares, so this costs an eighth of a per cent.
_SECOND_SHARE = 0.05
# The second release's share of a pure budget, which adds up linearly.
_SECOND_PURE_SHARE = 0.005
# Factor of noise that the determinants may cost before the regularization is raised.
_MOST_NOISE = 2.0
_CELLS = 256
_POINTS = 2**10
# Range and number of cells in which normal noise is evaluated.
_REACH, _KNOTS = 12.0, 512
# Allowance for rounding, per probability: logarithms of tails are accurate to 1e-16 of their size.
_ROUNDING = 1e-13


def regularization_floor(
    loss: MarginLoss, radius: float, epsilon: float, persons: bool = False
) -> float:
    """Return the lam with ``sup_a log(1 + k(a) R**2 / lam) + a epsilon / 2 = epsilon``.

    With less regularization the determinants would double the noise of each problem. For persons
    (Theorem M8), ``k(a) R**2 / lam`` replaces the logarithm.
    """
    shares = np.linspace(0.0, 1.0, _CELLS + 1)
    left = np.minimum(epsilon * (1.0 - shares / _MOST_NOISE), 500.0)
    left = left if persons else np.expm1(left)
    return radius**2 * float(np.max(loss.curvature_at_slope(shares) / left))


# The same problem is planned before the data are read, by a search, and in the fit.
@functools.lru_cache(maxsize=64)
def normal_noise(
    loss: MarginLoss,
    ratio: float,
    n_problems: int,
    epsilon: float,
    delta: float,
    noise_multiplier: float | None,
    persons: bool = False,
) -> tuple[float, PrivacyProfile, float]:
    """Return the normal noise of each problem and the cost of all of them.

    Parameters
    ----------
    loss : MarginLoss
    ratio : float
        ``R**2 / lam``.
    n_problems : int
    epsilon, delta : float
        Budget of all problems together.
    noise_multiplier : float or None
        Noise in units of a record's largest gradient, in place of epsilon.
    persons : bool, default=False
        Whether neighbours differ by one person.

    Returns
    -------
    noise_multiplier, profile, second_share
        The last is the sensitivity of the second release, in standard deviations of its noise.
    """

    def profile(multiplier: float) -> PrivacyProfile:
        return _normal_profile(loss, ratio, n_problems, multiplier, persons)

    if noise_multiplier is not None:
        return noise_multiplier, profile(noise_multiplier), _SECOND_SHARE / noise_multiplier
    found = calibrate(
        profile,
        epsilon,
        delta,
        lower=LEAST_NOISE_MULTIPLIER,
        upper=LARGEST_NOISE_MULTIPLIER,
        guess=normal_noise_guess(epsilon, delta, n_problems),
        tolerance=1e-3,
    )
    return found.value, found.profile, _SECOND_SHARE / found.value


def pure_noise(
    loss: MarginLoss,
    ratio: float,
    n_problems: int,
    epsilon: float,
    noise_multiplier: float | None,
    persons: bool = False,
) -> tuple[float, PrivacyProfile, float]:
    """Return the same as `normal_noise` for delta = 0; the last is the second release's epsilon.

    Parameters
    ----------
    loss, ratio, n_problems, epsilon, noise_multiplier, persons
        See `normal_noise`.

    Notes
    -----
    Theorem M1, Theorem M8.
    """
    shares, bounds = _determinants(loss, ratio, persons)
    if noise_multiplier is not None:
        first = float(np.max(bounds + shares / noise_multiplier))
        second = _SECOND_PURE_SHARE / noise_multiplier
        return noise_multiplier, PrivacyProfile.pure(n_problems * (first + second)), second
    each = epsilon / n_problems
    target = (1.0 - _SECOND_PURE_SHARE) * each
    # max_a (bound + a / multiplier) <= target says a / multiplier <= target - bound for each a.
    multiplier = (1.0 + 1e-12) * float(np.max(shares[1:] / (target - bounds[1:])))
    return multiplier, PrivacyProfile.pure(epsilon), _SECOND_PURE_SHARE * each


def objective_curves(
    loss: MarginLoss, ratio: float, mu: float, epsilons: np.ndarray, persons: bool = False
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
    persons : bool, default=False
        Whether neighbours differ by one person.

    Notes
    -----
    Theorem M1, Theorem M8.
    """
    if persons:
        shares, bounds = _determinants(loss, ratio, persons)
        return persons_minimum_curves(shares, bounds, mu, epsilons)
    add = gaussian_delta(mu, epsilons)
    kappa = _largest_determinant(loss, ratio, persons)
    coarse = gaussian_delta(mu, np.maximum(epsilons - kappa, 0.0))
    return np.minimum(coarse, _remove_curve(loss, ratio, mu, epsilons)), add


def _determinants(
    loss: MarginLoss, ratio: float, persons: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Return shares a of the slope, and bounds on ``log(1 + k(a) ratio)`` to be used at them.

    For persons they are bounds on ``k(a) ratio``, which is concave too.

    On a cell, a convex function of a plus this concave one is at most the convex function plus a
    line above the concave one, and that sum is largest at an end. The line is the chord of the
    cell to the left (for the first cell: to the right), which lies above the concave function
    outside its own cell.
    """
    shares = np.linspace(0.0, 1.0, _CELLS + 1)
    exact = np.maximum(loss.curvature_at_slope(shares), 0.0) * ratio
    exact = exact if persons else np.log1p(exact)
    bounds = exact.copy()
    bounds[0] = max(exact[0], 2.0 * exact[1] - exact[2])
    bounds[2:] = np.maximum(exact[2:], 2.0 * exact[1:-1] - exact[:-2])
    return shares, np.minimum(bounds, _largest_determinant(loss, ratio, persons))


def _largest_determinant(loss: MarginLoss, ratio: float, persons: bool) -> float:
    """Return the bound for the largest curvature at any slope."""
    largest = loss.curvature_bound * ratio
    return largest if persons else math.log1p(largest)


def _remove_curve(loss: MarginLoss, ratio: float, mu: float, epsilons: np.ndarray) -> np.ndarray:
    """Return ``E (1 - exp(epsilon - M(t)))_+``, with M replaced by its chords.

    On a cell of t, where the chord is ``m + s (t - t0)``, the integral of ``exp(-chord)`` against
    the normal density is ``exp(-m + s t0 + s**2 / 2) (F(-t0 - s) - F(-t1 - s))``.
    """
    shares, bounds = _determinants(loss, ratio)
    knots = np.linspace(-_REACH, _REACH, _KNOTS)
    # M is a supremum of lines in t, hence convex, hence below its chords.
    heights = np.max(bounds + mu * np.outer(knots, shares) + 0.5 * (mu * shares) ** 2, axis=1)
    slopes = np.maximum(np.diff(heights) / np.diff(knots), 0.0)
    cells = _chord_integrals(slopes, knots[:-1], knots[1:]) * np.exp(-heights[:-1])
    right_of = np.append(np.cumsum(cells[::-1])[::-1], 0.0)
    # The region beyond the knots counts in full.
    deltas = np.full(epsilons.shape, special.ndtr(-_REACH))
    first = np.searchsorted(heights, epsilons, side="right")
    below = first == 0
    mass = (1.0 + _ROUNDING) * special.ndtr(_REACH)
    deltas[below] += mass - np.exp(epsilons[below]) * right_of[0]
    inside = (first > 0) & (first < knots.size)
    cell, levels = first[inside] - 1, epsilons[inside]
    start = knots[cell] + (levels - heights[cell]) / slopes[cell]
    partial = _chord_integrals(slopes[cell], start, knots[cell + 1])
    upper = special.ndtr(-start)
    deltas[inside] += (
        np.maximum(upper - partial - np.exp(levels) * right_of[cell + 1], 0.0) + _ROUNDING * upper
    )
    return np.minimum(deltas, 1.0)


def _chord_integrals(slopes: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Return the integral of ``exp(-slope (t - start))`` against the normal density."""
    exponents = slopes * starts + 0.5 * slopes**2
    left, right = (special.log_ndtr(-points - slopes) for points in (starts, ends))
    return np.exp(exponents + left) - np.exp(exponents + right)


def _normal_profile(
    loss: MarginLoss, ratio: float, n_problems: int, noise_multiplier: float, persons: bool
) -> PrivacyProfile:
    """Return the cost of all problems at a multiple of a record's largest gradient."""
    mu = 1.0 / noise_multiplier
    kappa = _largest_determinant(loss, ratio, persons)
    top = min(kappa + _normal_reach(mu), 500.0)
    # One grid for both makes their composition exact and cheap.
    step = top / _POINTS
    epsilons = step * np.arange(_POINTS + 1)
    remove, add = objective_curves(loss, ratio, mu, epsilons, persons)
    first = PrivacyProfile.from_curve(epsilons, remove, deltas_add=add, discretization=step)
    second_mu = _SECOND_SHARE * mu
    near = step * np.arange(math.ceil(_normal_reach(second_mu) / step) + 2)
    tail = gaussian_delta(second_mu, near)
    second = PrivacyProfile.from_curve(near, tail, discretization=step)
    return n_problems * (first + second)


def _normal_reach(mu: float) -> float:
    """Return a loss that normal noise exceeds with a probability of 1e-19 at most."""
    return mu * mu / 2.0 + 9.0 * mu
