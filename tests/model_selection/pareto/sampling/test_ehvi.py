"""The expected improvement of the hypervolume, against draws."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

pytest.importorskip("moocore")

from skdptune.model_selection._pareto._samplers import (  # noqa: E402
    expected_improvement,
    improvement,
    logit_normal_shortfall,
    lognormal_shortfall,
    normal_shortfall,
    screened_expected_improvement,
)
from skdptune.model_selection._pareto._surrogates import Scales  # noqa: E402

POINTS = np.array([[0.5, 0.6], [2.0, 0.3], [np.inf, 0.1], [6.0, 0.05]])


@pytest.mark.parametrize("mean", [-2.0, 0.0, 1.5])
@pytest.mark.parametrize("deviation", [0.01, 0.5, 2.0])
def test_shortfalls_are_means_of_draws(mean: float, deviation: float) -> None:
    draws = mean + deviation * np.random.default_rng(0).normal(size=400_000)
    column, width = np.array([[mean]]), np.array([[deviation]])
    ends, ceilings = np.array([0.2, 1.2, 3.6]), np.array([0.05, 0.3, 0.9])
    for found, bounds, drawn in (
        (lognormal_shortfall(column, width, ends), ends, np.exp(draws)),
        (normal_shortfall(column, width, ends), ends, draws),
        (logit_normal_shortfall(column, width, ceilings), ceilings, special.expit(draws)),
    ):
        expected = np.maximum(bounds - drawn[:, np.newaxis], 0.0).mean(axis=0)
        assert found[0] == pytest.approx(expected, rel=0.02, abs=0.01 * min(deviation, 1.0))


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


def test_doubt_makes_a_known_point_worth_another_look() -> None:
    means = np.array([[np.log(2.0), special.logit(0.3)]] * 2)
    deviations = np.array([[1e-3, 1e-3], [1e-3, 0.5]])
    sure, unsure = expected_improvement(means, deviations, POINTS, Scales((10.0, 1.0)))
    assert sure < 0.01 * unsure


def test_most_promising_candidate_is_not_passed_over() -> None:
    rng, scales = np.random.default_rng(0), Scales((10.0, 1.0))
    for _ in range(20):
        means = rng.normal([1.0, -0.5], [1.5, 1.5], size=(400, 2))
        deviations = rng.uniform(0.02, 0.8, size=(400, 2))
        every = expected_improvement(means, deviations, POINTS, scales)
        some = screened_expected_improvement(means, deviations, POINTS, scales)
        assert some.max() == pytest.approx(every.max(), rel=1e-12)
        assert ((some == 0.0) | np.isclose(some, every)).all()
        assert np.count_nonzero(some) <= 67
