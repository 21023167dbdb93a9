"""A ridge regression in units of its bounds, and the randomness of one fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skdptune.linear_model._solvers import noise_generator

# In units of the rows' bound; no ridge in use is smaller.
LEAST_RIDGE = 1e-12
# Ridges, for rows of norm 1, among which a rule chooses one.
RIDGES = np.geomspace(1e-2, 1e8, 401)
# Budgets are lowered to this: a larger epsilon hardly differs from no privacy.
LARGEST_EPSILON = 100.0


@dataclass(frozen=True)
class Noise:
    """Sources of randomness of one fit.

    Attributes
    ----------
    generator : numpy.random.Generator
        For vectors of weights.
    scalars : None or numpy.random.Generator
        For released numbers; None for samplers that are safe in floating point.
    """

    generator: np.random.Generator
    scalars: np.random.Generator | None

    @classmethod
    def of(cls, random_state: Any) -> Noise:
        """Return the sources for a ``random_state``."""
        generator = noise_generator(random_state)
        return cls(generator, None if random_state is None else generator)


@dataclass(frozen=True)
class RidgeProblem:
    """A ridge regression in units of its bounds.

    Attributes
    ----------
    values, vectors : ndarray
        Spectrum of the rows' products with rows; the values are sorted and not negative.
    moment : ndarray
        Products of rows with targets.
    gram : ndarray
        Products of rows with rows.
    radius2 : float
        Bound on the squared norm of a row, the constant of the intercept included.
    alpha : float
        Ridge in these units.
    n_public : int
        A public number that bounds the number of records.
    """

    values: np.ndarray
    vectors: np.ndarray
    moment: np.ndarray
    gram: np.ndarray
    radius2: float
    alpha: float
    n_public: int

    def solution(self, ridge: float) -> np.ndarray:
        """Return the weights of a ridge regression, in the basis of the eigenvectors."""
        return (self.vectors.T @ self.moment) / np.maximum(self.values + ridge, LEAST_RIDGE)
