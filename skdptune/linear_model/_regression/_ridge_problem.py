"""A ridge regression in units of its bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

# In units of the rows' bound; no ridge in use is smaller.
LEAST_RIDGE = 1e-12
# Ridges, for rows of norm 1, among which a rule chooses one.
RIDGES = np.geomspace(1e-2, 1e8, 401)
# Budgets are lowered to this: a larger epsilon hardly differs from no privacy.
LARGEST_EPSILON = 100.0


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
    blocks : callable, optional
        Reads the records again, as `SufficientStatistics.blocks` does; None where they are not in
        memory.
    """

    values: np.ndarray
    vectors: np.ndarray
    moment: np.ndarray
    gram: np.ndarray
    radius2: float
    alpha: float
    n_public: int
    blocks: Callable[[], Iterator[np.ndarray]] | None = None

    def solution(self, ridge: float) -> np.ndarray:
        """Return the weights of a ridge regression, in the basis of the eigenvectors."""
        return (self.vectors.T @ self.moment) / np.maximum(self.values + ridge, LEAST_RIDGE)
