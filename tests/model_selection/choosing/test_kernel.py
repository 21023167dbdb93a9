"""Distances and correlations of points."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import Matern

from skdptune.model_selection._choosing import correlations, distances


def test_distances_are_those_of_points() -> None:
    points = np.random.default_rng(0).random((6, 3))
    slow = [[np.linalg.norm(one - other) for other in points] for one in points]
    assert distances(points) == pytest.approx(np.array(slow))


def test_points_without_columns_are_equal() -> None:
    assert (distances(np.empty((3, 0))) == 0.0).all()


@pytest.mark.parametrize("length_scale", [0.05, 0.3, 2.0])
def test_half_is_that_of_scikit_learns_process(length_scale: float) -> None:
    points = np.random.default_rng(1).random((5, 2))
    smooth = Matern(length_scale, nu=2.5)(points)
    expected = 0.5 * smooth + 0.5 * np.eye(5)
    assert correlations(distances(points), length_scale) == pytest.approx(expected)


def test_equal_points_share_all() -> None:
    points = np.array([[0.3], [0.3], [0.4]])
    found = correlations(distances(points), 0.1)
    assert found[0, 1] == 1.0
    assert np.linalg.eigvalsh(found).min() > -1e-12
