"""Points to evaluate: initial designs, grids, and the maximum of an acquisition function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from skdptune.model_selection._pareto._sampling._spaces import SearchSpace

FloatArray = NDArray[np.float64]
Score = Callable[[FloatArray], FloatArray]

# Candidates all over the cube and near good points; the best of them start local searches.
_N_UNIFORM = 384
_N_NEAR = 192
_N_STARTS = 6
# Lengths of the local searches' steps, and how many are tried of each.
_STEPS = (0.05, 0.02, 0.007, 0.002)
_N_TRIED = 16


@dataclass(frozen=True)
class History:
    """Earlier evaluations as points of the unit cube.

    Attributes
    ----------
    units, values : arrays of shape (n, dimensions) and (n, objectives)
        Evaluations that succeeded, in the order in which they ended, and their objectives.
    pending, failed : arrays of shape (n, dimensions)
        Evaluations that are running, and those that failed.
    """

    units: FloatArray
    values: FloatArray
    pending: FloatArray
    failed: FloatArray


def initial_point(space: SearchSpace, entropy: int, number: int) -> dict[str, Any]:
    """Return a point of a Sobol sequence, which covers the given distributions evenly."""
    seed = np.random.SeedSequence(entropy, spawn_key=(0, 0))
    cube = stats.qmc.Sobol(len(space.names), scramble=True, rng=np.random.default_rng(seed))
    if number:
        cube.fast_forward(number)
    return space.from_unit(cube.random(1)[0])


def grid_points(space: SearchSpace, entropy: int, most: int) -> list[dict[str, Any]]:
    """Return the finest grid of at most ``most`` points, shuffled; at least two levels."""
    levels = 2
    while levels < most and space.grid_size(levels + 1) <= most:
        levels += 1
    points = space.grid(levels)
    seed = np.random.SeedSequence(entropy, spawn_key=(0, 1))
    order = np.random.default_rng(seed).permutation(len(points))
    return [points[index] for index in order]


def proposal_generator(entropy: int, number: int) -> np.random.Generator:
    """Return the random generator of a proposal, the same however often it is made."""
    return np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=(1, number)))


def best_point(
    score: Score,
    space: SearchSpace,
    around: FloatArray,
    known: FloatArray,
    rng: np.random.Generator,
) -> FloatArray:
    """Return the point of the cube with the largest score.

    Of candidates all over the cube and near ``around`` the best start local searches. Points that
    cannot be told from ``known`` ones are passed over.
    """
    known_features = space.features(known)

    def new_score(units: FloatArray) -> FloatArray:
        is_known = _is_known(space.features(units), known_features)
        return np.where(is_known, -np.inf, score(units))

    units = np.vstack([rng.random((_N_UNIFORM, len(space.names))), _near(around, space, rng)])
    scores = new_score(units)
    best = np.argsort(-scores, kind="stable")[:_N_STARTS]
    return _local_search(new_score, units[best], scores[best], rng)


def _near(around: FloatArray, space: SearchSpace, rng: np.random.Generator) -> FloatArray:
    if len(around) == 0:
        return np.empty((0, len(space.names)))
    centres = around[rng.integers(len(around), size=_N_NEAR)]
    return _moved(centres, 10.0 ** rng.uniform(-2.5, -0.5, size=(_N_NEAR, 1)), rng)


def _moved(centres: FloatArray, steps: FloatArray | float, rng: np.random.Generator) -> FloatArray:
    """Return neighbours of points: some coordinates a step away, a few anywhere."""
    moved = centres + steps * rng.normal(size=centres.shape)
    kept = rng.random(centres.shape) < 0.3
    moved = np.where(kept, centres, moved)
    # A small step does not change a category.
    jumps = rng.random(centres.shape) < 0.1
    clipped: FloatArray = np.clip(np.where(jumps, rng.random(centres.shape), moved), 0.0, 1.0)
    return clipped


def _local_search(
    score: Score,
    units: FloatArray,
    scores: FloatArray,
    rng: np.random.Generator,
) -> FloatArray:
    """Return the best point that steps of decreasing length from any of the points reach."""
    for step in _STEPS:
        tried = _moved(np.repeat(units, _N_TRIED, axis=0), step, rng)
        found = score(tried).reshape(len(units), _N_TRIED)
        best = found.argmax(axis=1)
        better = found.max(axis=1) > scores
        tried = tried.reshape(len(units), _N_TRIED, -1)[np.arange(len(units)), best]
        units = np.where(better[:, np.newaxis], tried, units)
        scores = np.where(better, found.max(axis=1), scores)
    winner: FloatArray = units[int(np.argmax(scores))]
    return winner


def _is_known(features: FloatArray, known: FloatArray) -> NDArray[np.bool_]:
    if len(known) == 0:
        return np.zeros(len(features), dtype=np.bool_)
    return np.asarray((_squared_distances(features, known) < 1e-12).any(axis=1), dtype=np.bool_)


def _squared_distances(left: FloatArray, right: FloatArray) -> FloatArray:
    squares: FloatArray = np.zeros((len(left), len(right)))
    for column in range(left.shape[1]):
        squares += np.subtract.outer(left[:, column], right[:, column]) ** 2
    return squares
