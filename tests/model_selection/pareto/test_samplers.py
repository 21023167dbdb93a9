"""Samplers of a Pareto search: expectations compared with draws, and the process."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

pytest.importorskip("optuna")
pytest.importorskip("moocore")

from skdptune.model_selection._pareto._samplers import (  # noqa: E402
    expected_improvement,
    hvpoi,
    improvement,
    probability_of_improvement,
    screened_expected_improvement,
)
from skdptune.model_selection._pareto._surrogates import (  # noqa: E402
    Posterior,
    Scales,
    Surrogate,
    hypervolume,
)

POINTS = np.array([[0.5, 0.6], [2.0, 0.3], [np.inf, 0.1], [6.0, 0.05]])


@pytest.mark.parametrize("epsilon_scale", ["linear", "log"])
def test_expectation_is_the_mean_gain_of_draws(epsilon_scale: str) -> None:
    rng, scales = np.random.default_rng(0), Scales((10.0, 1.0), epsilon_scale=epsilon_scale)
    means = np.column_stack([np.log([1.0, 5.0, 8.0]), [-0.3, -2.0, -3.0]])
    deviations = np.column_stack([[0.5, 0.7, 0.1], [0.4, 1.0, 0.05]])
    found = expected_improvement(means, deviations, POINTS, scales)
    for mean, deviation, gain in zip(means, deviations, found, strict=True):
        draws = scales.backward(mean + deviation * rng.normal(size=(100_000, 2)))
        known, corner = scales.axes(POINTS), scales.corner()
        expected = improvement(scales.axes(draws), known, corner).mean()
        assert gain == pytest.approx(expected, rel=0.03, abs=1e-3)


def test_most_promising_candidate_is_not_passed_over() -> None:
    rng, scales = np.random.default_rng(0), Scales((10.0, 1.0))
    for _ in range(20):
        means = rng.normal([1.0, -0.5], [1.5, 1.5], size=(400, 2))
        deviations = rng.uniform(0.02, 0.8, size=(400, 2))
        every = expected_improvement(means, deviations, POINTS, scales)
        some = screened_expected_improvement(means, deviations, POINTS, scales)
        assert some.max() == pytest.approx(every.max(), rel=1e-12)


def improves(draws: np.ndarray, points: np.ndarray, reference: np.ndarray) -> np.ndarray:
    dominated = (points[np.newaxis] <= draws[:, np.newaxis]).all(axis=2).any(axis=1)
    return (draws < reference).all(axis=1) & ~dominated


@pytest.mark.parametrize(("dimensions", "tolerance"), [(2, 0.005), (3, 0.04)])
def test_probability_and_gain_are_those_of_draws(dimensions: int, tolerance: float) -> None:
    rng = np.random.default_rng(0)
    points, reference = rng.random((12, dimensions)), np.full(dimensions, 0.9)
    means, deviations = rng.random((5, dimensions)), rng.uniform(0.05, 0.5, (5, dimensions))
    found = probability_of_improvement(means, deviations, points, reference)
    for mean, deviation, probability in zip(means, deviations, found, strict=True):
        draws = mean + deviation * rng.normal(size=(60_000, dimensions))
        share = improves(draws, points, reference).mean()
        assert probability == pytest.approx(share, abs=tolerance)
    before = hypervolume(points, reference)
    wider = [hypervolume(np.vstack([points, mean]), reference) - before for mean in means]
    assert improvement(means, points, reference) == pytest.approx(wider, abs=1e-12)


def test_hvpoi_is_gain_at_the_mean_times_the_share_of_draws() -> None:
    rng, scales = np.random.default_rng(0), Scales((10.0, 1.0))
    means = np.array([[np.log(1.0), -0.3], [np.log(5.0), -2.0], [np.log(30.0), -5.0]])
    deviations = np.array([[0.5, 0.4], [0.7, 1.0], [1.0, 0.5]])
    found = hvpoi(means, deviations, POINTS, scales)
    for mean, deviation, score in zip(means, deviations, found, strict=True):
        draws = scales.backward(mean + deviation * rng.normal(size=(200_000, 2)))
        share = improves(draws, POINTS, np.array([10.0, 1.0])).mean()
        at_mean = np.vstack([POINTS, scales.backward(mean)])
        gain = hypervolume(at_mean, (10.0, 1.0)) - hypervolume(POINTS, (10.0, 1.0))
        assert score == pytest.approx(gain * share, rel=0.02, abs=1e-6)


GROUPS = np.array([0, 1, 1])


def sample(number: int, seed: int = 0, noise: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    points = rng.random((number, 3))
    truth = np.sin(4.0 * points[:, 0]) + points[:, 1] ** 2 - points[:, 2]
    return points, truth + noise * rng.normal(size=number)


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
    joined = process.with_predicted(new[:1])
    assert joined.predict(new[:1])[0] == pytest.approx(mean[:1], abs=0.02)
    assert joined.predict(new[:1])[1] < deviation[:1]
