"""Samplers, pruners and readers of a storage learn nothing of how long fits took."""

from __future__ import annotations

from typing import Any

import pytest

from skdptune.model_selection._adaptive._studies import NO_TIME, timeless_storage

optuna = pytest.importorskip("optuna")


def dates(trial: Any) -> set[Any]:
    return {trial.datetime_start, trial.datetime_complete} - {None}


def test_no_trial_has_a_time() -> None:
    # Theorem G6.
    seen = []

    class Watching(optuna.pruners.BasePruner):
        def prune(self, study: Any, trial: Any) -> bool:
            seen.append(dates(trial) | {one for t in study.trials for one in dates(t)})
            return False

    study = optuna.create_study(storage=timeless_storage(), pruner=Watching())
    study.enqueue_trial({"x": 0.5})
    for value in (0.1, 0.2):
        trial = study.ask({"x": optuna.distributions.FloatDistribution(0.0, 1.0)})
        trial.report(value, 1)
        assert not trial.should_prune()
        study.tell(trial, value)
    study.add_trial(optuna.trial.create_trial(value=0.3))
    assert seen == [{NO_TIME}] * 2
    assert [dates(trial) for trial in study.trials] == [{NO_TIME}] * 3
    assert [trial.value for trial in study.trials] == [0.1, 0.2, 0.3]
    assert all(trial.duration.total_seconds() == 0.0 for trial in study.trials)
