"""Ridge regression on sums that were released with Gaussian noise."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skdptune._docstrings import with_shared_text
from skdptune.accounting import PrivacyProfile
from skdptune.linear_model._regression._posterior_sampling import release_noisy_eigenvalue
from skdptune.linear_model._regression._private_regressor import (
    REGRESSOR_TEXT,
    PrivateLinearRegressor,
)
from skdptune.linear_model._regression._sufficient_statistics import (
    LARGEST_EPSILON,
    LEAST_RIDGE,
    UNIT,
    Blocks,
    RidgeProblem,
)
from skdptune.mechanisms import gaussian_release, noise_for_budget
from skdptune.mechanisms._shared import nonprivate_profile


@dataclass(frozen=True)
class NoisySumsPlan:
    """The shift of each Gaussian release, in standard deviations, and the joint cost.

    Attributes
    ----------
    shift : float
        Shift of each release.
    n_releases : int
    profile : PrivacyProfile
        Releases of shifts a, b, ... compose to one of ``sqrt(a^2 + b^2 + ...)``.
    """

    shift: float
    n_releases: int
    profile: PrivacyProfile

    @property
    def noise_multiplier(self) -> float:
        """Noise of each release divided by its sensitivity."""
        return 1.0 / self.shift


@functools.lru_cache(maxsize=256)
def noisy_sums_plan(epsilon: float, delta: float, n_releases: int) -> NoisySumsPlan:
    """Return the plan of a number of Gaussian releases within a budget.

    Parameters
    ----------
    epsilon, delta : float
        An infinite epsilon means no noise.
    n_releases : int

    Notes
    -----
    Theorem L8.
    """
    if math.isinf(epsilon):
        return NoisySumsPlan(math.inf, n_releases, nonprivate_profile())
    scale, profile = noise_for_budget(min(epsilon, LARGEST_EPSILON), delta)
    return NoisySumsPlan(1.0 / (scale * math.sqrt(n_releases)), n_releases, profile)


def release_sums(
    problem: RidgeProblem, shift: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Release the rows' products with rows and with targets.

    Parameters
    ----------
    problem : RidgeProblem
    shift : float
        Sensitivity of each of the two releases in standard deviations of its noise.
    rng : numpy.random.Generator
        Source of the noise.

    Notes
    -----
    Theorem L8, Theorem L11.

    A record changes the upper triangle of the first by that of ``zz'``, of norm at most that of
    the whole, ``norm(z)^2``; and the second by ``z y'``, of norm at most ``norm(z) norm(y)``.
    """
    radius = math.sqrt(problem.radius2) * problem.joint_norm
    gram = release_gram(problem, shift, rng)
    return gram, gaussian_release(problem.moment, radius, radius / shift, rng)


def release_gram(problem: RidgeProblem, shift: float, rng: np.random.Generator) -> np.ndarray:
    """Release only the rows' products with rows, as `release_sums` does."""
    radius2 = problem.radius2
    upper = np.triu_indices(problem.gram.shape[0])
    gram = np.zeros_like(problem.gram)
    gram[upper] = gaussian_release(problem.gram[upper], radius2, radius2 / shift, rng)
    return gram + np.triu(gram, 1).T


def solve_noisy(gram: np.ndarray, moment: np.ndarray, ridge: float) -> np.ndarray:
    """Return the weights of a ridge regression on noisy sums.

    Eigenvalues that noise made negative count as 0, since no data have negative ones.
    """
    values, vectors = np.linalg.eigh(gram)
    raised = np.maximum(values, 0.0) + max(ridge, LEAST_RIDGE)
    return vectors @ ((vectors.T @ moment).T / raised).T


# Values that did well; see docs/defaults.md.
N_STEPS = 5
# Share of the squared shift; the rest pays for the rows' products with rows.
STEPS_SHARE = 0.7
# The largest residual, in units of the bound of targets: the first number up to this noise; as
# noise falls it grows up to the last number.
_LEAST_RESIDUAL, _USUAL_NOISE, _LARGEST_RESIDUAL = 1.0 / 3.0, 0.12, 1.0
# Limits of weights, in units of the bounds. A row of norm 2^20 sqrt(1.25) and weights of norm 2^12
# 2^20 have a product, and parts of one, below 2^53, where doubles count exactly in any order.
_LARGEST_WEIGHTS = 2.0**12


def largest_residual(shift: float, n_samples: int, width: int) -> float:
    """Return the largest residual of a step, a whole number in units of 2^-20 of the bound.

    Parameters
    ----------
    shift : float
        Shift of the one Gaussian release that a fit costs.
    n_samples : int
        Number of records, or the public constant for it.
    width : int
        Number of weights.

    Notes
    -----
    Short residuals need less noise, but do not show how far away a target is. The noise is about
    that on an eigenvalue of ``X'X``, if half of the squared shift pays for it, divided by the mean
    eigenvalue for rows of norm 1.
    """
    noise = math.sqrt(2.0) * width**1.5 / (shift * n_samples)
    wanted = _LEAST_RESIDUAL * math.sqrt(_USUAL_NOISE / noise)
    return float(UNIT * min(max(wanted, _LEAST_RESIDUAL), _LARGEST_RESIDUAL) // 1.0)


def refined_weights(
    problem: RidgeProblem, blocks: Blocks, shift: float, limit: float, rng: np.random.Generator
) -> np.ndarray:
    """Return weights after steps towards smaller residuals.

    The rows' products with rows are released once. Each step then releases the rows' products with
    the current residuals of the targets, cut to a limit.

    Parameters
    ----------
    problem : RidgeProblem
    blocks : Blocks
        The records.
    shift : float
        Shift of the one Gaussian release that all releases cost together.
    limit : float
        The largest residual, from `largest_residual`.
    rng : numpy.random.Generator
        Source of the noise.

    Notes
    -----
    Theorem L10, Theorem L11.
    """
    radius = math.sqrt(problem.radius2) * problem.joint_norm
    gram_shift = shift * math.sqrt(1.0 - STEPS_SHARE)
    sensitivity = radius * limit / UNIT
    scale = sensitivity / (shift * math.sqrt(STEPS_SHARE / N_STEPS))
    values, vectors = np.linalg.eigh(release_gram(problem, gram_shift, rng))
    ridge = math.sqrt(values.size) * problem.radius2 / gram_shift
    raised = np.maximum(values, 0.0) + max(ridge, LEAST_RIDGE)
    weights = np.zeros(problem.moment.shape)
    for _ in range(N_STEPS):
        moment = residual_moment(blocks, weights, limit)
        noisy = gaussian_release(moment, sensitivity, scale, rng)
        step = vectors @ ((vectors.T @ noisy).T / raised).T
        weights = whole_weights(weights / UNIT + step)
    return weights / UNIT


def whole_weights(weights: np.ndarray) -> np.ndarray:
    """Return weights as integers, in units of 2^-20, of norm 2^32 at most.

    Parameters
    ----------
    weights : ndarray of shape (width,) or (width, n_targets)
        In units of the bounds. Numbers that are not finite become 0. The norm is that of a column.
    """
    finite = np.where(np.isfinite(weights), weights, 0.0)
    # Squares of the largest numbers would overflow.
    largest = np.maximum(np.abs(finite).max(axis=0, initial=0.0), 1.0)
    length = np.linalg.norm(finite / largest, axis=0)
    shrinkage = np.minimum(1.0, _LARGEST_WEIGHTS / largest / np.maximum(length, 1e-300))
    return np.trunc(finite * shrinkage * UNIT)


def residual_moment(blocks: Blocks, weights: np.ndarray, limit: float) -> np.ndarray:
    """Return the rows' products with cut residuals, in units of the bounds.

    Parameters
    ----------
    blocks : Blocks
        The records.
    weights : ndarray
        From `whole_weights`.
    limit : float
        From `largest_residual`.

    Notes
    -----
    Theorem L10. Theorem P14: weights of rows multiply residuals that are cut already. Theorem R10:
    the sum of whole numbers over parts is that over all rows.
    """
    total = blocks.total(functools.partial(exact_moment, weights=weights, limit=limit))
    return total.astype(np.float64) / (UNIT**2 * blocks.whole)


def exact_moment(blocks: Iterable[np.ndarray], weights: np.ndarray, limit: float) -> np.ndarray:
    """Return the rows' products with cut residuals as Python's integers.

    Parameters
    ----------
    blocks : iterable of ndarray
        Rows and, in the last columns, targets: integers, in units of 2^-20 of the bounds. The
        result is in units of 2^-40 of the bounds.
    weights, limit
        See `residual_moment`.
    """
    total, width = np.zeros(weights.shape, dtype=object), len(weights)
    for block in blocks:
        rows, targets = block[:, :width], block[:, width:]
        # In units of 2^-40, and then of 2^-20.
        residuals = targets.reshape(len(block), *weights.shape[1:]) * UNIT - rows @ weights
        residuals = np.trunc(residuals / UNIT)
        np.clip(residuals, -limit, limit, out=residuals)
        total += (rows.T @ residuals).astype(np.int64).astype(object)
    return total


# Probability that the rule for the ridge errs; it concerns the model, not privacy.
_CHOICE_FAILURE = 0.05


@with_shared_text(REGRESSOR_TEXT)
class DPRidge(PrivateLinearRegressor):
    r"""Differentially private ridge regression on noisy sums of products: the recommended start.

    The sums ``X'X`` are released with Gaussian noise, and then five times the sums of the rows
    with the residuals of the current weights; each of these is a step towards smaller residuals.
    With its default regularization it had the lowest error, or one within its standard errors, on
    all data sets of the benchmark of the regressions. A fit costs exactly one Gaussian release,
    whatever `alpha` is and whether or not steps are taken.

    Parameters
    ----------
    {epsilon}
    {delta}
    alpha : float, optional
        Regularization strength, as in scikit-learn's ``Ridge``. None follows from the noise: the
        root of the number of weights times the standard deviation of the noise on ``X'X``, which
        is half of the distance by which its eigenvalues may be moved. With an `alpha`, one ridge
        regression is solved on noisy sums ``X'X`` and ``X'y``, without steps.
    {bounds_and_intercept}
    {randomness_and_size}

    Attributes
    ----------
    {shared_attributes}
    n_iter_ : int
        Number of steps: 5, or 0 if one ridge regression was solved.

    Notes
    -----
    Theorem L8, Theorem L10, Theorem L11.

    Neighbours differ by adding or removing one record. Analytic Gaussian noise (Balle and Wang
    2018); each number of the sums is exact before the noise is added. Eigenvalues that the noise
    made negative count as 0.

    30 % of the squared shift pays for ``X'X``, and the rest for five releases of ``X'r``. Here r
    are the residuals, clipped to a third of the targets' bound, or to more if there is little
    noise. The ridge that noise requires biases one solution, further steps remove that bias, and
    short residuals need less noise. ``docs/defaults.md`` has the evidence. Steps read the records
    again, part by part if they lie in parts. Steps are not taken with an iterator, which can be
    read only once, without noise, and in `fit_statistics`: half of the squared shift then pays
    for ``X'X`` and half for ``X'y``.

    Several targets are fitted at once, with one release of ``X'X``: `y` has a column for each, and
    `target_bound` is one range for all or a list of ranges. With k targets, noise on ``X'y`` is
    larger by the root of k, at the cost of one target, since a record has k residuals.

    Examples
    --------
    >>> import numpy as np
    >>> from skdptune.linear_model import DPRidge
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(20_000, 2))
    >>> y = X @ [0.5, -0.5]
    >>> model = DPRidge(1.0, data_norm=1.5, target_bound=1.0, random_state=0)
    >>> model.fit(X, y).coef_.round(2)
    array([ 0.5, -0.5])
    """

    _takes_several_targets: ClassVar[bool] = True
    _holds_for_persons: ClassVar[bool] = True

    def _plan(self, n_public: int, n_features: int | None) -> NoisySumsPlan:
        return noisy_sums_plan(*self._checked_budget(), 2)

    def _weights(
        self, plan: NoisySumsPlan, problem: RidgeProblem, rng: np.random.Generator
    ) -> np.ndarray:
        ridge = problem.alpha
        self.n_iter_ = 0
        if self.alpha is None:
            # Shift of the single release to which all of them compose.
            total, blocks = plan.shift * math.sqrt(plan.n_releases), problem.blocks
            if blocks and math.isfinite(total):
                self.n_iter_ = N_STEPS
                n_samples = self._public_size(problem.n_public)
                # Noise of each target.
                shift = total / problem.joint_norm
                limit = largest_residual(shift, n_samples, len(problem.moment))
                return refined_weights(problem, blocks, total, limit, rng)
            # Eigenvalues of symmetric noise are up to twice as large; a smaller ridge has less
            # bias.
            ridge = math.sqrt(len(problem.moment)) * problem.radius2 / plan.shift
        return solve_noisy(*release_sums(problem, plan.shift, rng), ridge)


@with_shared_text(REGRESSOR_TEXT)
class AdaSSPLinearRegression(PrivateLinearRegressor):
    r"""Differentially private ridge regression on noisy sums that adapts to the data.

    The least eigenvalue of ``X'X`` is released, too, and the regularization is what the noise
    needs in addition to it. It exists for comparison with the literature; `DPRidge`
    is as accurate or more so on most data.

    Parameters
    ----------
    {epsilon}
    {delta}
    alpha : float, optional
        Regularization strength, as in scikit-learn's ``Ridge``, which the rule never goes below.
        None has the same effect as 0.
    {bounds_and_intercept}
    {randomness_and_size}

    Attributes
    ----------
    {shared_attributes}

    Notes
    -----
    Theorem L8.

    Neighbours differ by adding or removing one record. Wang (2018, arXiv 1803.02596, Algorithm 2),
    with analytic Gaussian noise and the exact composition of its three releases in place of tail
    bounds.

    Examples
    --------
    >>> import numpy as np
    >>> from skdptune.linear_model import AdaSSPLinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(20_000, 2))
    >>> y = X @ [0.5, -0.5]
    >>> model = AdaSSPLinearRegression(1.0, data_norm=1.5, target_bound=1.0, random_state=0)
    >>> model.fit(X, y).coef_.round(2)
    array([ 0.5, -0.5])
    """

    _least_alpha: ClassVar[float] = 0.0
    _holds_for_persons: ClassVar[bool] = True

    def _plan(self, n_public: int, n_features: int | None) -> NoisySumsPlan:
        return noisy_sums_plan(*self._checked_budget(), 3)

    def _weights(
        self, plan: NoisySumsPlan, problem: RidgeProblem, rng: np.random.Generator
    ) -> np.ndarray:
        least = release_noisy_eigenvalue(
            float(problem.values[0]), problem.radius2, plan.shift, _CHOICE_FAILURE, rng
        )
        gram, moment = release_sums(problem, plan.shift, rng)
        d = moment.size
        # Bound on the norm of a symmetric matrix of noise.
        spread = math.sqrt(d * math.log(2.0 * d * d / _CHOICE_FAILURE))
        ridge = spread * problem.radius2 / plan.shift - least
        return solve_noisy(gram, moment, max(ridge, problem.alpha, 0.0))
