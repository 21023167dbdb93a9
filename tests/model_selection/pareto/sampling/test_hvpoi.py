"""What an evaluation promises, against draws and against hypervolumes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("moocore")

from skdptune.model_selection._pareto._samplers import (
    hvpoi,
    improvement,
    probability_of_improvement,
)
from skdptune.model_selection._pareto._surrogates import (
    Scales,  # noqa: E402
    hypervolume,  # noqa: E402
)


def cloud(seed: int, dimensions: int, number: int = 12) -> np.ndarray:
    return np.random.default_rng(seed).random((number, dimensions))


def improves(draws: np.ndarray, points: np.ndarray, reference: np.ndarray) -> np.ndarray:
    dominated = (points[np.newaxis] <= draws[:, np.newaxis]).all(axis=2).any(axis=1)
    return (draws < reference).all(axis=1) & ~dominated


@pytest.mark.parametrize(("dimensions", "tolerance"), [(2, 0.005), (3, 0.04)])
@pytest.mark.parametrize("seed", range(4))
def test_probability_is_the_share_of_draws(dimensions: int, tolerance: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    points, reference = cloud(seed, dimensions), np.full(dimensions, 0.9)
    means, deviations = rng.random((5, dimensions)), rng.uniform(0.05, 0.5, (5, dimensions))
    found = probability_of_improvement(means, deviations, points, reference)
    for mean, deviation, probability in zip(means, deviations, found, strict=True):
        draws = mean + deviation * rng.normal(size=(60_000, dimensions))
        share = improves(draws, points, reference).mean()
        assert probability == pytest.approx(share, abs=tolerance)


@pytest.mark.parametrize("dimensions", [2, 3])
def test_improvement_is_a_difference_of_hypervolumes(dimensions: int) -> None:
    @given(st.integers(0, 10_000), st.integers(0, 15))
    def check(seed: int, number: int) -> None:
        points, reference = cloud(seed, dimensions, number), np.full(dimensions, 0.8)
        candidates = cloud(seed + 1, dimensions, 6)
        before = hypervolume(points, reference)
        expected = [hypervolume(np.vstack([points, c]), reference) - before for c in candidates]
        assert improvement(candidates, points, reference) == pytest.approx(expected, abs=1e-12)

    check()


def test_known_points_improve_nothing() -> None:
    points = cloud(0, 2)
    assert improvement(points, points, (1.0, 1.0)) == pytest.approx(0.0)


def test_hvpoi_is_gain_at_the_mean_times_the_share_of_draws() -> None:
    rng, scales = np.random.default_rng(0), Scales((10.0, 1.0))
    points = np.array([[0.5, 0.6], [2.0, 0.3], [np.inf, 0.1], [20.0, 0.05]])
    means = np.array([[np.log(1.0), -0.3], [np.log(5.0), -2.0], [np.log(30.0), -5.0]])
    deviations = np.array([[0.5, 0.4], [0.7, 1.0], [1.0, 0.5]])
    found = hvpoi(means, deviations, points, scales)
    for mean, deviation, score in zip(means, deviations, found, strict=True):
        draws = scales.backward(mean + deviation * rng.normal(size=(200_000, 2)))
        share = improves(draws, points, np.array([10.0, 1.0])).mean()
        at_mean = np.vstack([points, scales.backward(mean)])
        gain = hypervolume(at_mean, (10.0, 1.0)) - hypervolume(points, (10.0, 1.0))
        assert score == pytest.approx(gain * share, rel=0.02, abs=1e-6)


def test_where_no_mean_gains_the_likelier_point_is_better() -> None:
    means, deviations = np.array([[3.0, 3.0], [3.0, 3.0]]), np.array([[0.5, 0.5], [3.0, 3.0]])
    near, far = hvpoi(means, deviations, np.array([[1.0, 0.1]]), Scales((10.0, 1.0)))
    assert 0.0 < near < far
