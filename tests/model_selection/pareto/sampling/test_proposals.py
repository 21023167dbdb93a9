"""Designs, and the search for a score's largest value."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from skdptune.model_selection._pareto._samplers import (
    best_point,
    grid_points,
    initial_point,
    proposal_generator,
)
from skdptune.model_selection._space import SearchSpace

NONE = np.empty((0, 2))


def test_first_points_are_even_and_the_same_for_whoever_asks() -> None:
    space = SearchSpace({"noise": stats.expon(0.1, 2.0), "rate": (0.0, 1.0)})
    points = [initial_point(space, 7, number) for number in range(32)]
    assert initial_point(space, 7, 20) == points[20]
    assert initial_point(space, 8, 20) != points[20]
    levels = stats.expon(0.1, 2.0).cdf([point["noise"] for point in points])
    # Of 32 points of a Sobol sequence, each 32nd part of the line has one.
    assert sorted((levels * 32).astype(int)) == list(range(32))


def test_grid_is_the_finest_that_fits() -> None:
    space = SearchSpace({"rate": (0.0, 1.0), "depth": (1, 3), "kind": ["a", "b"]})
    points = grid_points(space, 0, 40)
    # Six rates, three depths and two kinds are 36; seven rates would be 42.
    assert len(points) == 36
    assert len({tuple(point.values()) for point in points}) == 36
    assert points != grid_points(space, 1, 40)
    assert len(grid_points(space, 0, 1)) == 8


def test_local_search_finds_the_maximum() -> None:
    space = SearchSpace({"rate": (0.0, 1.0), "kind": ["a", "b", "c"]})

    def score(units: np.ndarray) -> np.ndarray:
        return (units[:, 1] > 2 / 3) - (units[:, 0] - 0.3141) ** 2

    found = best_point(score, space, NONE, NONE, proposal_generator(0, 1))
    assert space.from_unit(found)["kind"] == "c"
    assert found[0] == pytest.approx(0.3141, abs=5e-3)


def test_best_point_looks_around_good_points() -> None:
    space = SearchSpace({name: (0.0, 1.0) for name in "abcdef"})
    peak = np.full(6, 0.62)

    def score(units: np.ndarray) -> np.ndarray:
        return -np.abs(units - peak).max(axis=1)

    rng, none = proposal_generator(0, 1), np.empty((0, 6))
    near = best_point(score, space, peak[np.newaxis] + 0.05, none, rng)
    assert np.abs(near - peak).max() < 0.05


def test_known_values_are_not_proposed_again() -> None:
    space = SearchSpace({"depth": (1, 3), "kind": ["a", "b"]})
    all_points = space.grid(3)
    known = np.array([space.to_unit(point) for point in all_points[:-1]])
    found = best_point(lambda u: -u.sum(axis=1), space, known, known, proposal_generator(0, 1))
    assert space.from_unit(found) == all_points[-1]


def test_exhausted_space_still_gets_a_proposal() -> None:
    space = SearchSpace({"kind": ["a", "b"]})
    known = np.array([[0.25], [0.75]])
    found = best_point(lambda u: u[:, 0], space, known, known, proposal_generator(0, 1))
    assert space.from_unit(found)["kind"] in {"a", "b"}
