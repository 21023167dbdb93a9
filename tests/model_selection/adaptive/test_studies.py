"""Samplers and pruners by name; studies that hold what is released, and no times."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

optuna = pytest.importorskip("optuna")

from skdptune.model_selection._adaptive import _studies  # noqa: E402
from skdptune.model_selection._adaptive._studies import (  # noqa: E402
    PRUNERS,
    SAMPLERS,
    AdaptiveTrial,
    Studies,
    check_pruner,
    check_sampler,
    make_pruner,
    make_sampler,
)
from skdptune.model_selection._space import AdaptiveSpace  # noqa: E402


def test_names_are_samplers_and_pruners() -> None:
    for sampler in SAMPLERS:
        check_sampler(sampler)
        assert isinstance(make_sampler(sampler, 20, 0, 2), optuna.samplers.BaseSampler)
    for pruner in (None, *PRUNERS):
        check_pruner(pruner)
        assert isinstance(make_pruner(pruner), optuna.pruners.BasePruner)


@pytest.mark.parametrize("has_torch", [False, True])
def test_default_needs_no_torch(has_torch: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    found = "torch" if has_torch else None
    monkeypatch.setattr(_studies, "find_spec", lambda name: found)
    expected = optuna.samplers.GPSampler if has_torch else optuna.samplers.TPESampler
    assert type(make_sampler("auto", 20, 0, 1)) is expected
    # A process passes over trials that were pruned.
    assert type(make_sampler("auto", 20, 0, 1, prunes=True)) is optuna.samplers.TPESampler


def test_given_ones_are_copied() -> None:
    sampler, pruner = optuna.samplers.RandomSampler(seed=0), optuna.pruners.MedianPruner()
    check_sampler(sampler)
    check_pruner(pruner)
    assert type(make_sampler(sampler, 20, 0, 1)) is type(sampler)
    assert make_sampler(sampler, 20, 0, 1) is not sampler
    assert make_pruner(pruner) is not pruner


def test_others_are_refused() -> None:
    for given in ("best", 3, optuna.samplers.TPESampler, None):
        with pytest.raises(ValueError, match="sampler must be one of 'auto', 'tpe', 'gp', 'ran"):
            check_sampler(given)
    for given in ("best", 3, optuna.pruners.MedianPruner):
        with pytest.raises(ValueError, match="pruner must be one of 'halving', 'hyperband' or an"):
            check_pruner(given)


States = optuna.trial.TrialState
SPACE = AdaptiveSpace({"rate": (0.1, 1.0), "kind": ["a", "b"]})


def made(
    storage: Any = None,
    pruner: Any = None,
    steps: tuple[int, ...] = (1,),
    own: dict[str, Any] | None = None,
) -> Studies:
    studies = Studies(SPACE, own or {}, pruner, steps, storage, None, (0.0, 1.0))
    studies.choose_by(optuna.samplers.RandomSampler(seed=0))
    return studies


def told(studies: Studies, number: int, *scores: float, pruned: bool = False) -> AdaptiveTrial:
    trial = studies.ask(number)
    for place, score in enumerate(scores):
        trial.scores += (score,)
        studies.report(trial, score, place)
    trial.is_pruned = pruned
    studies.tell(trial, scores[-1:])
    return trial


def test_trials_are_released_clipped_and_at_one_time() -> None:
    studies = made()
    trials = [told(studies, number, score) for number, score in enumerate((0.5, 1.2))]
    first, second = studies.released.trials
    assert first.params == trials[0].params
    assert (first.value, second.value) == (0.5, 1.0)
    # As it was, for what knows the noise.
    assert [one.score for one in studies.told()] == [0.5, 1.2]
    times = {one.datetime_start for one in (first, second)}
    assert times == {one.datetime_complete for one in (first, second)}
    assert len(times) == 1


def test_only_finished_trials_are_released() -> None:
    studies = made()
    studies.ask(0)
    assert studies.released.trials == []


def test_pruned_trials_keep_their_last_score() -> None:
    studies = made(pruner="halving", steps=(1, 3, 9))
    told(studies, 0, 0.5, 0.6, 0.7)
    told(studies, 1, 0.3, 0.4, pruned=True)
    first, second = studies.released.trials
    assert (first.state, second.state) == (States.COMPLETE, States.PRUNED)
    assert first.intermediate_values == {1: 0.5, 3: 0.6, 9: 0.7}
    assert second.value == 0.4
    assert [(one.place, one.is_pruned) for one in studies.told()] == [(2, False), (1, True)]


def test_given_parameters_are_taken_as_they_are() -> None:
    studies = made()
    assert studies.ask(0, {"rate": 0.25}).params["rate"] == 0.25


def test_own_values_outside_the_space_are_told_and_not_sampled_from(tmp_path: Path) -> None:
    own, path = {"rate": None, "kind": "a"}, tmp_path / "study.db"
    studies = made(path, own=own)
    trial = studies.ask_own(0)
    assert trial.params == own
    trial.scores += (0.9,)
    studies.tell(trial, [0.9])
    told(studies, 1, 0.5)
    first, second = studies.released.trials
    assert (first.state, first.params, first.value) == (States.PRUNED, {}, 0.9)
    assert second.state == States.COMPLETE
    # It leaves optuna all parameters to sample from and to analyse.
    for one in (studies, made(path, own=own)):
        assert set(optuna.search_space.intersection_search_space(one.released.trials)) == {
            *("rate", "kind")
        }
        assert one._choosing.trials[0].state == States.FAIL
        assert [(each.params, each.is_pruned) for each in one.told()][0] == (own, False)
    lost = studies.ask_own(2)
    studies.lose(studies.begun(lost, [Fraction(1)]))
    assert studies.released.trials[-1].state == States.FAIL


def test_own_values_of_the_space_are_a_point_in_it() -> None:
    studies = made(own={"rate": 0.25, "kind": "b"})
    trial = studies.ask_own(0)
    assert trial._chosen.params == trial.params == {"rate": 0.25, "kind": "b"}


def test_a_stored_study_is_taught_to_a_new_process(tmp_path: Path) -> None:
    path = tmp_path / "study.db"
    first = made(path)
    told(first, 0, 0.5)
    lost = first.ask(1)
    begun = first.begun(lost, [Fraction(1)])
    again = made(path)
    again.lose(begun)
    assert [trial.state for trial in again.released.trials] == [States.COMPLETE, States.FAIL]
    assert again.runs() == {begun.run} | first.runs()
    assert len(again.told()) == 1
    assert again.ask(2)._chosen.number == 2
    # Whoever may read the file reads what is released, and no time.
    assert path.stat().st_mode & 0o077 == 0
    dates = {trial.datetime_start for trial in again.released.trials[:1]}
    assert all(date.year == 2000 for date in dates)


def test_a_callback_may_stop() -> None:
    studies = made()
    told(studies, 0, 0.5)
    seen = []

    def stopping(study: Any, trial: Any) -> None:
        seen.append(trial.number)
        study.stop()

    assert not studies.call(lambda study, trial: None, studies.released.trials[0])
    assert studies.call(stopping, studies.released.trials[0])
    assert seen == [0]
    assert "stop" not in vars(studies.released)
