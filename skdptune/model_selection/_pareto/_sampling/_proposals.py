"""Where to evaluate next: designs that are fixed beforehand, and the best point of a score."""

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

_N_SPREAD = 384
_N_AROUND = 192
_N_CLIMBERS = 6
# The steps of the climb, in units of the cube's edge, and how many are tried of each.
_STEPS = (0.05, 0.02, 0.007, 0.002)
_N_STEPS = 16


@dataclass(frozen=True)
class History:
    """What a study knows when a proposal is made, as points of the unit cube.

    Attributes
    ----------
    units, values : arrays of shape (n, dimensions) and (n, objectives)
        The evaluations that succeeded, in the order in which they ended.
    pending, failed : arrays of shape (n, dimensions)
        Evaluations that are being made, and those that failed.
    """

    units: FloatArray
    values: FloatArray
    pending: FloatArray
    failed: FloatArray


def initial_point(space: SearchSpace, entropy: int, number: int) -> dict[str, Any]:
    """Return one of the first points: even in the cube, thus by the given distributions."""
    seed = np.random.SeedSequence(entropy, spawn_key=(0, 0))
    cube = stats.qmc.Sobol(len(space.names), scramble=True, rng=np.random.default_rng(seed))
    if number:
        cube.fast_forward(number)
    return space.from_unit(cube.random(1)[0])


def grid_points(space: SearchSpace, entropy: int, most: int) -> list[dict[str, Any]]:
    """Return the finest grid of at most so many points, shuffled; two levels at least."""
    levels = 2
    while levels < most and space.grid_size(levels + 1) <= most:
        levels += 1
    points = space.grid(levels)
    seed = np.random.SeedSequence(entropy, spawn_key=(0, 1))
    order = np.random.default_rng(seed).permutation(len(points))
    return [points[place] for place in order]


def proposal_generator(entropy: int, number: int) -> np.random.Generator:
    """Return the random numbers of one proposal, whoever makes it and however often."""
    return np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=(1, number)))


def best_point(
    score: Score,
    space: SearchSpace,
    around: FloatArray,
    known: FloatArray,
    rng: np.random.Generator,
) -> FloatArray:
    """Return the point of the cube with the largest score.

    Candidates are spread over the cube and dealt around good points, then the best of them
    climb. Points whose values are those of known ones score nothing.
    """
    old = space.features(known)

    def fresh(units: FloatArray) -> FloatArray:
        return np.where(_is_known(space.features(units), old), -np.inf, score(units))

    units = np.vstack([rng.random((_N_SPREAD, len(space.names))), _neighbours(around, space, rng)])
    scores = fresh(units)
    best = np.argsort(-scores, kind="stable")[:_N_CLIMBERS]
    return _climb(fresh, units[best], scores[best], space, rng)


def _neighbours(around: FloatArray, space: SearchSpace, rng: np.random.Generator) -> FloatArray:
    if len(around) == 0:
        return np.empty((0, len(space.names)))
    centres = around[rng.integers(len(around), size=_N_AROUND)]
    return _moved(centres, 10.0 ** rng.uniform(-2.5, -0.5, size=(_N_AROUND, 1)), rng)


def _moved(centres: FloatArray, steps: FloatArray | float, rng: np.random.Generator) -> FloatArray:
    """Return neighbours of points: some coordinates a step away, now and then one anywhere."""
    moved = centres + steps * rng.normal(size=centres.shape)
    kept = rng.random(centres.shape) < 0.3
    moved = np.where(kept, centres, moved)
    # A step does not leave a category: a jump does.
    jumps = rng.random(centres.shape) < 0.1
    return np.clip(np.where(jumps, rng.random(centres.shape), moved), 0.0, 1.0)


def _climb(
    score: Score,
    units: FloatArray,
    scores: FloatArray,
    space: SearchSpace,
    rng: np.random.Generator,
) -> FloatArray:
    for step in _STEPS:
        tried = _moved(np.repeat(units, _N_STEPS, axis=0), step, rng)
        found = score(tried).reshape(len(units), _N_STEPS)
        best = found.argmax(axis=1)
        better = found.max(axis=1) > scores
        tried = tried.reshape(len(units), _N_STEPS, -1)[np.arange(len(units)), best]
        units = np.where(better[:, np.newaxis], tried, units)
        scores = np.where(better, found.max(axis=1), scores)
    winner: FloatArray = units[int(np.argmax(scores))]
    return winner


def _is_known(features: FloatArray, old: FloatArray) -> NDArray[np.bool_]:
    if len(old) == 0:
        return np.zeros(len(features), dtype=bool)
    known: NDArray[np.bool_] = (_squared_distances(features, old) < 1e-12).any(axis=1)
    return known


def _squared_distances(left: FloatArray, right: FloatArray) -> FloatArray:
    squares: FloatArray = np.zeros((len(left), len(right)))
    for column in range(left.shape[1]):
        squares += np.subtract.outer(left[:, column], right[:, column]) ** 2
    return squares
