"""Ridge regression on sums that were released with Gaussian noise."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skdptune._docstrings import with_shared_text
from skdptune.accounting import PrivacyProfile
from skdptune.linear_model._docstrings import REGRESSOR_TEXT
from skdptune.linear_model._regression._private_regressor import PrivateLinearRegressor
from skdptune.linear_model._regression._released_bounds import release_noisy_eigenvalue
from skdptune.linear_model._regression._ridge_problem import (
    LARGEST_EPSILON,
    LEAST_RIDGE,
    RidgeProblem,
)
from skdptune.mechanisms import gaussian_release, noise_for_budget, nonprivate_profile

# Probability with which the rule for the ridge errs; it concerns the model, not privacy.
_CHOICE_FAILURE = 0.05


@dataclass(frozen=True)
class NoisySumsPlan:
    """The shift of each Gaussian release, in standard deviations, and the cost of all.

    Attributes
    ----------
    shift : float
        Of each of `n_releases` releases.
    profile : PrivacyProfile
        Releases of shifts a, b, ... compose to one of ``sqrt(a^2 + b^2 + ...)``.
    """

    shift: float
    profile: PrivacyProfile

    @property
    def noise_multiplier(self) -> float:
        """Noise of each release over its sensitivity."""
        return 1.0 / self.shift


@functools.lru_cache(maxsize=256)
def noisy_sums_plan(epsilon: float, delta: float, n_releases: int) -> NoisySumsPlan:
    """Return the plan of so many Gaussian releases within a budget.

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
        return NoisySumsPlan(math.inf, nonprivate_profile())
    scale, profile = noise_for_budget(min(epsilon, LARGEST_EPSILON), delta)
    return NoisySumsPlan(1.0 / (scale * math.sqrt(n_releases)), profile)


def release_sums(
    problem: RidgeProblem, shift: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Release the rows' products with rows and with targets.

    Parameters
    ----------
    problem : RidgeProblem
    shift : float
        Sensitivity of each of the two in standard deviations of its noise.
    rng : numpy.random.Generator
        Source of the noise.

    Notes
    -----
    Theorem L8.

    A record changes the upper triangle of the first by that of ``zz'``, of norm at most that of
    the whole, ``norm(z)^2``; and the second by ``z y``, of norm at most ``norm(z)``.
    """
    radius2, radius = problem.radius2, math.sqrt(problem.radius2)
    upper = np.triu_indices(problem.gram.shape[0])
    entries = gaussian_release(problem.gram[upper], radius2, radius2 / shift, rng)
    gram = np.zeros_like(problem.gram)
    gram[upper] = entries
    gram = gram + np.triu(gram, 1).T
    return gram, gaussian_release(problem.moment, radius, radius / shift, rng)


def solve_noisy(gram: np.ndarray, moment: np.ndarray, ridge: float) -> np.ndarray:
    """Return the weights of a ridge regression on noisy sums.

    Eigenvalues that noise made negative count as 0, since those of no data are negative.
    """
    values, vectors = np.linalg.eigh(gram)
    return vectors @ (vectors.T @ moment / (np.maximum(values, 0.0) + max(ridge, LEAST_RIDGE)))


@with_shared_text(REGRESSOR_TEXT)
class NoisyStatisticsRidge(PrivateLinearRegressor):
    r"""Differentially private ridge regression on noisy sums of products; the one to start with.

    The sums ``X'X`` and ``X'y`` are released with Gaussian noise, and a ridge regression is solved
    on them. With its default regularization it had the lowest error, or one within the standard
    errors of it, on all data sets of the benchmark of the regressions. A fit costs exactly one
    Gaussian release, whatever `alpha` is.

    Parameters
    ----------
    {epsilon}
    {delta}
    alpha : float, optional
        Regularization strength, as of scikit-learn's ``Ridge``. None follows the noise: the root
        of the number of weights times the standard deviation of the noise on ``X'X``, half of
        what its eigenvalues may be moved by.
    {bounds_and_intercept}
    {randomness_and_size}

    Attributes
    ----------
    {shared_attributes}

    Notes
    -----
    Theorem L8.

    Neighbours differ by adding or removing one record. Analytic Gaussian noise (Balle and Wang
    2018), half of the squared shift on ``X'X``, half on ``X'y``; each number of the sums is exact
    before the noise is added. Eigenvalues that the noise made negative count as 0.

    Examples
    --------
    >>> import numpy as np
    >>> from skdptune.linear_model import NoisyStatisticsRidge
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(20_000, 2))
    >>> y = X @ [0.5, -0.5]
    >>> model = NoisyStatisticsRidge(1.0, data_norm=1.5, target_bound=1.0, random_state=0)
    >>> model.fit(X, y).coef_.round(2)
    array([ 0.5, -0.5])
    """

    def _plan(self, n_public: int, n_features: int | None) -> NoisySumsPlan:
        return noisy_sums_plan(*self._checked_budget(), 2)

    def _weights(
        self, plan: NoisySumsPlan, problem: RidgeProblem, rng: np.random.Generator
    ) -> np.ndarray:
        ridge = problem.alpha
        if self.alpha is None:
            # Eigenvalues of symmetric noise are up to twice as large; less ridge has less bias.
            ridge = math.sqrt(problem.moment.size) * problem.radius2 / plan.shift
        return solve_noisy(*release_sums(problem, plan.shift, rng), ridge)


@with_shared_text(REGRESSOR_TEXT)
class AdaSSPLinearRegression(PrivateLinearRegressor):
    r"""Differentially private ridge regression on noisy sums that adapts to the data.

    The least eigenvalue of ``X'X`` is released, too, and the regularization is what the noise
    needs beyond it. For comparison with the literature; `NoisyStatisticsRidge` is as accurate or
    more so on most data.

    Parameters
    ----------
    {epsilon}
    {delta}
    alpha : float, optional
        Regularization strength, as of scikit-learn's ``Ridge``, below which the rule never goes.
        None leaves the rule alone, like 0.
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
