"""The samplers: what each proposes, and what they know of a study."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from scipy import stats

optuna = pytest.importorskip("optuna")
pytest.importorskip("moocore")

from skdptune.model_selection._pareto._samplers import (  # noqa: E402
    SamplerSettings,
    make_sampler,
)
from skdptune.model_selection._space import SearchSpace  # noqa: E402
from skdptune.model_selection._study import EVALUATION  # noqa: E402

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


def test_random_draws_follow_the_given_distribution() -> None:
    drawn = [params["noise"] for params in fill(study_with("random"), 300)]
    assert stats.kstest(drawn, stats.expon(0.1, 2.0).cdf).pvalue > 1e-3


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


def test_optuna_sampler_is_used_as_it_is() -> None:
    own = optuna.samplers.RandomSampler(seed=0)
    assert make_sampler(own, SPACE, settings()) is own


@pytest.mark.parametrize("name", ["auto", "random", "grid"])
def test_sampler_is_pickled_with_its_study(name: str) -> None:
    study = study_with(name)
    fill(study, 6)
    again = pickle.loads(pickle.dumps(study))
    assert fill(again, 3) == fill(study, 3)


def test_unknown_sampler_is_named() -> None:
    with pytest.raises(ValueError, match="sampler must be one of 'auto'.*got 'best'"):
        make_sampler("best", SPACE, settings())


def test_columns_of_one_category_share_a_group() -> None:
    assert SPACE.groups == [0, 1, 2, 2]
