"""The two worked examples of Avent et al. (2020), figures 1 to 4, for `papers_avent.py`.

Both functions are exact expectations, so that a dense grid has the true front, up to its spacing:
logistic regression on Adult with noise on its weights, and the sparse vector technique.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pareto_problems import a1a
from scipy import special
from sklearn.linear_model import LogisticRegression

from skdptune.model_selection._pareto._samplers import hvpoi, predictions
from skdptune.model_selection._pareto._surrogates import (
    Scales,
    Surrogate,
    front,
    hypervolume_history,
)
from skdptune.model_selection._space import SearchSpace

# Their functions are also the ground truth of tests, which is where they live.
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "model_selection"))
import pareto_examples as known  # noqa: E402

REFERENCE = (10.0, 1.0)
Oracle = Callable[[dict[str, Any]], float]


@dataclass(frozen=True)
class Example:
    """Two oracles over two parameters, the points of each in a map, and epsilons to be shown."""

    title: str
    privacy: Oracle
    utility: Oracle
    space: dict[str, Any]
    levels: int
    shown: tuple[float, float]

    @property
    def names(self) -> list[str]:
        """Return the parameters' names."""
        return list(self.space)

    def grid(self) -> tuple[list[dict[str, Any]], np.ndarray]:
        """Return a grid of parameters, and their epsilons and errors."""
        grid = SearchSpace(self.space).grid(self.levels)
        return grid, np.array([(self.privacy(p), 1.0 - self.utility(p)) for p in grid])

    def sampled(self, number: int) -> tuple[list[dict[str, Any]], np.ndarray]:
        """Return random parameters, and their epsilons and errors."""
        space, rng = SearchSpace(self.space), np.random.default_rng(0)
        params = [space.sample(rng) for _ in range(number)]
        return params, np.array([(self.privacy(p), 1.0 - self.utility(p)) for p in params])


def proposals(
    example: Example, params: list[dict[str, Any]], points: np.ndarray, number: int
) -> list[dict[str, Any]]:
    """Return where a search on its grid would evaluate next, by the paper's acquisition."""
    grid = SearchSpace(example.space).grid(example.levels)
    found: list[dict[str, Any]] = []
    for _ in range(number):
        means, deviations, scales = predicted(example, params + found, points, grid)
        place = int(np.argmax(hvpoi(means, deviations, points, scales)))
        found.append(grid[place])
        added = (example.privacy(grid[place]), 1.0 - example.utility(grid[place]))
        points = np.vstack([points, added])
    return found


def predicted(
    example: Example, params: list[dict[str, Any]], points: np.ndarray, grid: list[dict[str, Any]]
) -> tuple[np.ndarray, np.ndarray, Scales]:
    """Return means and deviations of the Gaussian processes of log epsilon and logit error."""
    space = SearchSpace(example.space)
    scales = Scales(REFERENCE)
    features = space.features(np.array([space.to_unit(one) for one in params]))
    wanted = space.features(np.array([space.to_unit(one) for one in grid]))
    processes = [
        Surrogate(space.groups).posterior(features, target) for target in scales.forward(points).T
    ]
    means, deviations = predictions(processes, wanted)
    return means, deviations, scales


def volume(points: np.ndarray, axis: str = "linear") -> float:
    """Return the hypervolume of points below (10, 1)."""
    return float(hypervolume_history(points, REFERENCE, axis)[-1])


def front_of(points: np.ndarray) -> np.ndarray:
    """Return the front's points, by rising epsilon."""
    return front(points[np.isfinite(points).all(axis=1)])


def regression(quick: bool) -> Example:
    """Return logistic regression on Adult with Gaussian noise on its weights.

    Rows are scaled into the unit ball, so that the loss has a Lipschitz constant of 1 and the
    sensitivity is 2 / (gamma n) (Wu et al., 2017, algorithm 2); delta is 1e-6. The weights are the
    minimiser's, where the paper's are those of ten epochs; the accuracy is its expectation over
    the noise, where the paper's is a mean of 50 runs.
    """
    X, X_test, y, y_test = a1a(2_000 if quick else None)
    X, X_test = (rows / np.sqrt(14.0) for rows in (X, X_test))
    norms = np.linalg.norm(X_test, axis=1)

    @functools.cache
    def margins(log_gamma: float) -> np.ndarray:
        penalty = 1.0 / (np.exp(log_gamma) * len(X))
        model = LogisticRegression(C=penalty, fit_intercept=False, tol=1e-4, max_iter=200)
        return np.asarray(y_test * (X_test @ model.fit(X, y).coef_[0]))

    def privacy(params: dict[str, Any]) -> float:
        return known.gaussian_epsilon(params["sigma"] * params["gamma"] * len(X) / 2.0)

    def utility(params: dict[str, Any]) -> float:
        # Rounded, so that a fit serves all noises and near penalties.
        found = margins(round(float(np.log(params["gamma"])), 1))
        return float(special.ndtr(found / (params["sigma"] * norms)).mean())

    title = "Logistic regression on Adult"
    return Example(
        title, privacy, utility, known.REGRESSION_SPACE, 8 if quick else 60, (1e-3, 1e2)
    )


def vector(quick: bool) -> Example:
    """Return the sparse vector technique: 100 queries of which 10 are 1."""
    functions = known.vector_privacy, known.vector_utility
    return Example(
        "Sparse vector", *functions, known.VECTOR_SPACE, 8 if quick else 60, (3e-2, 3e3)
    )
