"""Fronts against brute force, and Gaussian processes against differences and the textbook."""

from __future__ import annotations

import itertools
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize
from scipy.spatial.distance import cdist

pytest.importorskip("moocore")

from skdptune.model_selection._pareto import _surrogates
from skdptune.model_selection._pareto._surrogates import (
    LEAST_SHARE,
    Posterior,
    Scales,
    Surrogate,
    front,
    hypervolume,
    hypervolume_history,
    non_dominated,
    on_log_scale,
    success_probability,
)

SIDE = 6


def clouds(dimensions: int) -> st.SearchStrategy[list[tuple[int, ...]]]:
    """Small integers: many ties, and a volume that can be counted."""
    point = st.tuples(*[st.integers(0, SIDE + 1)] * dimensions)
    return st.lists(point, max_size=12)


def dominates(left: tuple[int, ...], right: tuple[int, ...]) -> bool:
    return all(a <= b for a, b in zip(left, right, strict=True)) and left != right


def cells_below(points: list[tuple[int, ...]], dimensions: int) -> int:
    """Count the unit cells of the cube whose lower corner some point dominates."""
    corners = itertools.product(range(SIDE), repeat=dimensions)
    return sum(any(p == c or dominates(p, c) for p in points) for c in corners)


def as_array(points: list[tuple[int, ...]], dimensions: int) -> np.ndarray:
    return np.array(points, dtype=float).reshape(len(points), dimensions)


@pytest.mark.parametrize("dimensions", [2, 3])
def test_dominance_is_brute_force(dimensions: int) -> None:
    @given(clouds(dimensions))
    def check(points: list[tuple[int, ...]]) -> None:
        expected = [
            not any(dominates(other, point) for other in points) and point not in points[:place]
            for place, point in enumerate(points)
        ]
        assert non_dominated(as_array(points, dimensions)).tolist() == expected

    check()


@pytest.mark.parametrize("dimensions", [2, 3])
def test_hypervolume_is_a_count_of_cells(dimensions: int) -> None:
    @given(clouds(dimensions))
    def check(points: list[tuple[int, ...]]) -> None:
        volume = hypervolume(as_array(points, dimensions), (SIDE,) * dimensions)
        assert volume == pytest.approx(cells_below(points, dimensions))

    check()


@given(clouds(2))
def test_history_is_the_hypervolume_of_each_beginning(points: list[tuple[int, ...]]) -> None:
    array = as_array(points, 2)
    expected = [hypervolume(array[: n + 1], (SIDE, SIDE)) for n in range(len(array))]
    assert hypervolume_history(array, (SIDE, SIDE)) == pytest.approx(expected)


def test_failed_and_infinite_points_add_nothing() -> None:
    points = [[np.inf, 0.1], [np.nan, np.nan], [4.0, 0.5], [np.inf, 0.0]]
    assert hypervolume_history(points, (10.0, 1.0)) == pytest.approx([0.0, 0.0, 3.0, 3.0])


@given(clouds(2))
def test_history_on_the_log_scale_is_an_area_of_strips(points: list[tuple[int, ...]]) -> None:
    array = as_array(points, 2) + 1.0
    found = hypervolume_history(array, (SIDE, SIDE), "log")
    for place, volume in enumerate(found):
        inside = array[: place + 1]
        inside = inside[(inside < SIDE).all(axis=1)]
        # Left to right: of each strip the width in log epsilon times the height above the best.
        ends = np.append(np.unique(inside[:, 0]), SIDE)
        heights = [SIDE - inside[inside[:, 0] <= end, 1].min() for end in ends[:-1]]
        assert volume == pytest.approx((np.diff(np.log(ends)) * heights).sum())


def test_log_scale_keeps_volumes_finite() -> None:
    history = hypervolume_history([[np.nan, np.nan], [0.0, 0.5], [1e-9, 0.5]], (10.0, 1.0), "log")
    assert history == pytest.approx([0.0, -0.5 * np.log(LEAST_SHARE), -0.5 * np.log(LEAST_SHARE)])
    points = np.array([[np.inf, 0.1], [np.nan, 0.2]])
    assert np.isinf(on_log_scale(points, (10.0, 1.0))[0, 0])
    assert points[0, 0] == np.inf


def test_front_rises_in_its_first_coordinate() -> None:
    points = [[3.0, 1.0], [1.0, 3.0], [2.0, 2.0], [2.0, 2.5], [1.0, 3.0]]
    assert front(points).tolist() == [[1.0, 3.0], [2.0, 2.0], [3.0, 1.0]]


def test_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "moocore", None)
    with pytest.raises(ModuleNotFoundError, match=r"moocore.*pip install 'skdptune\[pareto\]'"):
        hypervolume([[1.0, 1.0]], (2.0, 2.0))


GROUPS = np.array([0, 1, 1])


def smooth(points: np.ndarray) -> np.ndarray:
    return np.sin(4.0 * points[:, 0]) + points[:, 1] ** 2 - points[:, 2]


def sample(number: int, seed: int = 0, noise: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    points = rng.random((number, 3))
    return points, smooth(points) + noise * rng.normal(size=number)


def test_gradient_of_the_loss_is_that_of_differences() -> None:
    points, targets = sample(15, noise=0.1)
    squares = _surrogates._group_squares(points, GROUPS)
    theta = np.array([0.3, -0.5, 0.2, -3.0])
    exact = _surrogates._loss(theta, squares, targets)[1]
    numeric = optimize.approx_fprime(theta, lambda t: _surrogates._loss(t, squares, targets)[0])
    assert exact == pytest.approx(numeric, rel=1e-4, abs=1e-4)


def test_posterior_is_the_textbooks() -> None:
    points, targets = sample(12, noise=0.1)
    theta = np.array([0.3, -0.5, 0.2, -3.0])
    lengths = np.exp([-0.5, 0.2, 0.2])

    def kernel(left: np.ndarray, right: np.ndarray) -> np.ndarray:
        distance = np.sqrt(5.0) * cdist(left / lengths, right / lengths)
        return np.exp(0.3) * (1 + distance + distance**2 / 3) * np.exp(-distance)

    centre, spread = targets.mean(), targets.std()
    noisy = kernel(points, points) + np.exp(-3.0) * np.eye(12)
    new, _ = sample(5, seed=1)
    across = kernel(new, points)
    mean = centre + across @ np.linalg.solve(noisy, targets - centre)
    covariance = kernel(new, new) - across @ np.linalg.solve(noisy, across.T)
    found = Posterior(points, targets, GROUPS, theta).predict(new)
    assert found[0] == pytest.approx(mean, abs=1e-5)
    assert found[1] == pytest.approx(spread * np.sqrt(np.diag(covariance)), abs=1e-5)


def test_fitted_process_predicts_and_knows_how_well() -> None:
    points, targets = sample(60, noise=0.05)
    process = Surrogate(GROUPS).posterior(points, targets)
    new, truth = sample(200, seed=1)
    mean, deviation = process.predict(new)
    assert np.sqrt(np.mean((mean - truth) ** 2)) < 0.06
    assert 0.5 < np.std((mean - truth) / deviation) < 2.0


def test_fits_are_the_same_whether_points_came_one_by_one_or_at_once() -> None:
    points, targets = sample(40, noise=0.1)
    steadily, at_once = Surrogate(GROUPS), Surrogate(GROUPS)
    for number in range(4, 40):
        steadily.posterior(points[:number], targets[:number])
    first, second = (some.posterior(points, targets) for some in (steadily, at_once))
    assert np.array_equal(first.theta, second.theta)


def test_predicted_points_leave_the_mean_and_lower_the_deviation() -> None:
    points, targets = sample(12)
    process = Surrogate(GROUPS).posterior(points, targets)
    new, _ = sample(1, seed=5)
    joined = process.with_predicted(new)
    mean, before = process.predict(new)
    assert joined.predict(new)[0] == pytest.approx(mean, abs=0.02)
    assert joined.predict(new)[1] < 0.5 * before


@pytest.mark.parametrize(
    "targets", [np.zeros(10), np.full(10, 3.5), np.r_[np.zeros(9), 1e6], np.arange(10.0)]
)
def test_repeated_points_and_constant_targets_are_survived(targets: np.ndarray) -> None:
    points = np.tile([[0.5, 0.5, 0.5], [0.1, 0.2, 0.3]], (5, 1))
    mean, deviation = Surrogate(GROUPS).posterior(points, targets).predict(points)
    assert np.isfinite(mean).all() and np.isfinite(deviation).all()
    assert (deviation > 0).all()


def test_scales_clip_what_has_no_logarithm() -> None:
    scales = Scales((10.0, 1.0, 60.0), third_is_positive=True)
    values = np.array([[0.0, 0.0, 0.0], [np.inf, 1.0, 5.0], [2.0, 0.25, 8.0]])
    scaled = scales.forward(values)
    assert np.isfinite(scaled).all()
    assert scaled[2] == pytest.approx([np.log(2.0), np.log(1 / 3), np.log(8.0)])
    assert scales.backward(scaled)[2] == pytest.approx(values[2])
    assert scales.backward(scaled)[1, 0] == pytest.approx(1000.0)
    assert scales.backward(scaled)[:2, 1] == pytest.approx([1e-3, 1 - 1e-3])


def test_reference_on_the_scales_is_a_bound_that_errors_cannot_pass() -> None:
    assert Scales((10.0, 1.0)).limit() == pytest.approx([np.log(10.0), np.inf])
    assert Scales((10.0, 0.5)).limit() == pytest.approx([np.log(10.0), 0.0])


def test_success_is_expected_where_there_was_some() -> None:
    points, _ = sample(60)
    is_good = points[:, 0] > 0.5
    probability = success_probability(points[is_good], points[~is_good], GROUPS)
    new, _ = sample(200, seed=1)
    assert probability(new[new[:, 0] > 0.7]).min() > 0.8
    assert probability(new[new[:, 0] < 0.3]).max() < 0.2
    assert probability(new).min() > 0.0
    assert (success_probability(points, points[:0], GROUPS)(new) == 1.0).all()
