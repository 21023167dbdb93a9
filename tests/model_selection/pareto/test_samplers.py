"""Samplers: designs, acquisition functions against draws, and what each knows of a study."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

optuna = pytest.importorskip("optuna")
pytest.importorskip("moocore")

from skdptune.model_selection._pareto._samplers import (  # noqa: E402
    SamplerSettings,
    best_point,
    expected_improvement,
    grid_points,
    hvpoi,
    improvement,
    initial_point,
    logit_normal_shortfall,
    lognormal_shortfall,
    make_sampler,
    normal_shortfall,
    probability_of_improvement,
    proposal_generator,
    screened_expected_improvement,
)
from skdptune.model_selection._pareto._surrogates import (  # noqa: E402
    Scales,
    hypervolume,
)
from skdptune.model_selection._space import SearchSpace  # noqa: E402
from skdptune.model_selection._study import EVALUATION  # noqa: E402

POINTS = np.array([[0.5, 0.6], [2.0, 0.3], [np.inf, 0.1], [6.0, 0.05]])


@pytest.mark.parametrize(("mean", "deviation"), [(-2.0, 0.5), (0.0, 0.01), (1.5, 2.0)])
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


def cloud(seed: int, dimensions: int, number: int = 12) -> np.ndarray:
    return np.random.default_rng(seed).random((number, dimensions))


def improves(draws: np.ndarray, points: np.ndarray, reference: np.ndarray) -> np.ndarray:
    dominated = (points[np.newaxis] <= draws[:, np.newaxis]).all(axis=2).any(axis=1)
    return (draws < reference).all(axis=1) & ~dominated


@pytest.mark.parametrize(("dimensions", "tolerance"), [(2, 0.005), (3, 0.04)])
@pytest.mark.parametrize("seed", range(2))
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


SPACE = SearchSpace({"noise": stats.expon(0.1, 2.0), "depth": (1, 8), "kind": ["a", None]})
STATES = optuna.trial.TrialState


def settings(**given: Any) -> SamplerSettings:
    chosen = {"entropy": 3, "n_initial": 4, "n_total": 12, **given}
    return SamplerSettings((10.0, 1.0), **chosen)


def study_with(name: Any, **given: Any) -> Any:
    sampler = make_sampler(name, SPACE, settings(**given))
    return optuna.create_study(directions=["minimize"] * 2, sampler=sampler)


def outcome(params: dict[str, Any]) -> list[float]:
    error = 1 / (1 + np.exp(3 - params["noise"] + 0.3 * abs(params["depth"] - 5)))
    return [4.0 / params["noise"], float(error)]


def fill(study: Any, number: int) -> list[dict[str, Any]]:
    found = []
    for _ in range(number):
        trial = study.ask(SPACE.distributions())
        found.append(SPACE.from_optuna(trial.params))
        study.tell(trial, outcome(found[-1]))
    return found


@pytest.mark.parametrize("name", ["auto", "hvpoi", "random", "grid"])
def test_proposals_repeat_themselves_and_lie_in_the_space(name: str) -> None:
    first, second = (fill(study_with(name), 8) for _ in range(2))
    assert first == second
    assert all(1 <= params["depth"] <= 8 and params["noise"] >= 0.1 for params in first)
    assert fill(study_with(name, entropy=4), 8) != first


def test_grid_is_visited_once_before_it_repeats() -> None:
    params = fill(study_with("grid"), 13)
    visited = [tuple(some.values()) for some in params]
    assert len(set(visited[:8])) == 8
    assert visited[8:] == visited[:5]


def test_running_points_are_not_proposed_again() -> None:
    study = study_with("auto")
    fill(study, 10)
    waiting = [SPACE.to_unit(SPACE.from_optuna(study.ask(SPACE.distributions()).params))]
    for _ in range(4):
        unit = SPACE.to_unit(SPACE.from_optuna(study.ask(SPACE.distributions()).params))
        assert min(np.abs(unit - other).max() for other in waiting) > 1e-3
        waiting.append(unit)


def test_failed_evaluations_count_as_first_ones_and_are_avoided() -> None:
    study = study_with("auto")
    for _ in range(40):
        trial = study.ask(SPACE.distributions())
        params = SPACE.from_optuna(trial.params)
        if params["kind"] is None:
            trial.set_user_attr(EVALUATION, {"failure": "no"})
            study.tell(trial, state=STATES.FAIL)
        else:
            study.tell(trial, outcome(params))
    late = [SPACE.from_optuna(trial.params)["kind"] for trial in study.trials[20:]]
    assert late.count("a") > 15


def test_constant_infinite_and_extreme_values_are_survived() -> None:
    study = study_with("auto")
    for values in ([np.inf, 1.0], [0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [np.inf, 0.0]) * 3:
        study.tell(study.ask(SPACE.distributions()), values)
    assert len(study.best_trials) > 0


@pytest.mark.parametrize("name", ["auto", "random", "grid"])
def test_sampler_is_pickled_with_its_study(name: str) -> None:
    study = study_with(name)
    fill(study, 6)
    again = pickle.loads(pickle.dumps(study))
    assert fill(again, 3) == fill(study, 3)
