"""Sums of products with Gaussian noise, their cost, and the ridge regression on them."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np

from skdptune.accounting import PrivacyProfile
from skdptune.linear_model._regression._ridge_problem import (
    LARGEST_EPSILON,
    LEAST_RIDGE,
    RidgeProblem,
)
from skdptune.mechanisms import gaussian_release, noise_for_budget, nonprivate_profile


@dataclass(frozen=True)
class NoisySumsPlan:
    """The shift of each Gaussian release, in standard deviations, and the cost of all.

    Attributes
    ----------
    shift : float
        Of each release.
    n_releases : int
    profile : PrivacyProfile
        Releases of shifts a, b, ... compose to one of ``sqrt(a^2 + b^2 + ...)``.
    """

    shift: float
    n_releases: int
    profile: PrivacyProfile

    @property
    def total_shift(self) -> float:
        """Shift of the one release that all of them compose to."""
        return self.shift * math.sqrt(self.n_releases)

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
        Sensitivity of each of the two in standard deviations of its noise.
    rng : numpy.random.Generator
        Source of the noise.

    Notes
    -----
    Theorem L8.

    A record changes the upper triangle of the first by that of ``zz'``, of norm at most that of
    the whole, ``norm(z)^2``; and the second by ``z y``, of norm at most ``norm(z)``.
    """
    radius = math.sqrt(problem.radius2)
    gram = release_gram(problem, shift, rng)
    return gram, gaussian_release(problem.moment, radius, radius / shift, rng)


def release_gram(problem: RidgeProblem, shift: float, rng: np.random.Generator) -> np.ndarray:
    """Release the rows' products with rows alone, as `release_sums` does."""
    radius2 = problem.radius2
    upper = np.triu_indices(problem.gram.shape[0])
    gram = np.zeros_like(problem.gram)
    gram[upper] = gaussian_release(problem.gram[upper], radius2, radius2 / shift, rng)
    return gram + np.triu(gram, 1).T


def solve_noisy(gram: np.ndarray, moment: np.ndarray, ridge: float) -> np.ndarray:
    """Return the weights of a ridge regression on noisy sums.

    Eigenvalues that noise made negative count as 0, since those of no data are negative.
    """
    values, vectors = np.linalg.eigh(gram)
    return vectors @ (vectors.T @ moment / (np.maximum(values, 0.0) + max(ridge, LEAST_RIDGE)))
