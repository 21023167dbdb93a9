"""Which proposal and which evaluation each trial of a study is."""

from __future__ import annotations

from typing import Any

import pytest

optuna = pytest.importorskip("optuna")

from skdptune.model_selection._study import (  # noqa: E402
    EVALUATION,
    NUMBER,
    PROPOSAL,
    REFUSED,
    WITHDRAWN,
    evaluation_numbers,
    failed_by_parameters,
    proposal_numbers,
)


def numbered(*attributes: dict[str, Any]) -> list[Any]:
    study = optuna.create_study(directions=["minimize"] * 2)
    for each in attributes:
        study.add_trial(optuna.trial.create_trial(values=[0.0, 0.0], user_attrs=each))
    return study.trials


def test_repeated_trial_keeps_its_numbers_and_moves_no_other() -> None:
    trials = numbered({}, {}, {}, {PROPOSAL: 1, NUMBER: 1}, {}, {PROPOSAL: 3, NUMBER: 3}, {})
    assert proposal_numbers(trials) == [0, 1, 2, 1, 3, 3, 4]
    assert evaluation_numbers(trials) == [0, 1, 2, 1, 3, 3, 4]


def test_dismissed_proposals_are_no_evaluations() -> None:
    trials = numbered({}, {REFUSED: True}, {}, {WITHDRAWN: True}, {PROPOSAL: 2, NUMBER: 1}, {})
    assert proposal_numbers(trials) == [0, 1, 2, 3, 2, 4]
    assert evaluation_numbers(trials) == [0, 1, 1, 2, 1, 2]


def test_parameters_are_to_blame_where_an_evaluation_or_a_filter_says_so() -> None:
    trials = numbered({}, {EVALUATION: {}}, {REFUSED: True}, {WITHDRAWN: True})
    assert [failed_by_parameters(trial) for trial in trials] == [False, True, True, False]
