"""Evaluations: their domains, and what a study keeps of them."""

from __future__ import annotations

import math

import numpy as np
import pytest

optuna = pytest.importorskip("optuna")

from skdptune.model_selection._pareto._optimizer import (  # noqa: E402
    Evaluation,
    Record,
    checked_evaluation,
    failed_evaluation,
    is_evaluated,
    perform,
    read_evaluation,
    records_of,
    write_evaluation,
)
from skdptune.model_selection._space import SearchSpace  # noqa: E402


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (Evaluation(math.nan, (0.5,)), r"epsilon must be a number in \[0, inf\]; got nan"),
        (Evaluation(-1.0, (0.5,)), "epsilon.*got -1.0"),
        (Evaluation("1", (0.5,)), "epsilon must be a number; got str"),
        (Evaluation(1.0, (0.5, math.nan)), r"utility must be a number in \[0, 1\]; got nan"),
        (Evaluation(1.0, (1.5,)), "utility.*got 1.5"),
        (Evaluation(1.0, (-0.1,)), "utility.*got -0.1"),
        (Evaluation(1.0, (math.inf,)), "utility.*got inf"),
        (Evaluation(1.0, (None,)), "utility must be a number; got NoneType"),
        (Evaluation(1.0, ()), "at least one"),
        (Evaluation(1.0, (0.5,), math.inf), "third objective must be a finite number; got inf"),
    ],
)
def test_objective_out_of_its_domain_is_named(found: Evaluation, words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        checked_evaluation(found)
    assert perform(lambda *_: found, {}, 0, np.random.SeedSequence(0)).failure is not None


def test_numbers_become_plain() -> None:
    found = checked_evaluation(
        Evaluation(np.float32(np.inf), (np.float64(0.5), 1), np.float32(2.0))
    )
    assert found == Evaluation(math.inf, (0.5, 1.0), 2.0)
    assert all(type(value) is float for value in (found.epsilon, *found.utilities, found.third))


def test_error_is_what_the_mean_utility_lacks() -> None:
    assert Evaluation(1.0, (0.5, 1.0)).error == 0.25
    assert Evaluation(1.0, (1.0, 1.0 + 1e-17)).error == 0.0


def test_study_keeps_evaluations_as_they_are() -> None:
    space = SearchSpace({"kind": ["a", "b"]})
    study = optuna.create_study(directions=["minimize"] * 2)
    good, bad = Evaluation(2.0, (0.5, 0.75), 1.0, seconds=3.0), failed_evaluation(KeyError("x"))
    for found in (bad, good):
        trial = study.ask(space.distributions())
        assert read_evaluation(trial) is None and not is_evaluated(study.trials[-1])
        write_evaluation(trial, found)
        assert not is_evaluated(study.trials[-1])
        if found is good:
            study.tell(trial, [2.0, found.error])
        else:
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
        assert is_evaluated(study.trials[-1])
    first, second = records_of(study, space)
    assert first.evaluation.failure == "KeyError: 'x'" and math.isnan(first.evaluation.epsilon)
    params = space.from_optuna(study.trials[1].params)
    assert second == Record(1, params, good)
