"""Runs that no data can crash, here and on workers that are lost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from skdptune.metrics import accuracy
from skdptune.model_selection._running import _runs
from skdptune.model_selection._running._runs import (
    Data,
    Run,
    Scoring,
    can_be_together,
    perform,
    perform_all,
    perform_together,
)
from tests.model_selection.learners import Loud, Scripted, Together, table

SEEDS = np.random.SeedSequence(0).spawn(3)
DATA = Data(*table(500), {}, {})
EXACT = Scoring(accuracy(), 500, accuracy().sensitivity(500), 0.0, "none")


def result(estimator: Any, scoring: Scoring = EXACT, **more: Any) -> Any:
    settings = {"keep_model": True, "raises": False, **more}
    run = Run(estimator, None, np.random.SeedSequence(1))
    return perform(run, DATA, [(None, None)], DATA, scoring, **settings)


def test_run_is_scored_and_keeps_its_model_if_asked() -> None:
    found = result(Scripted(0.7))
    assert found.score == pytest.approx(np.mean(DATA.X[:, 1] < 0.7))
    assert found.model.classes_.tolist() == [0, 1]
    assert result(Scripted(0.7), keep_model=False).model is None


def test_failure_is_the_worst_with_the_same_noise() -> None:
    noisy = Scoring(accuracy(), 500, accuracy().sensitivity(500), 3.0, "gaussian")
    failed, zero = result(Loud(0.1), noisy), result(Scripted(0.0), noisy)
    assert failed.model is None
    assert failed.score == zero.score != 0.0
    assert "exception of" in failed.error and zero.error is None
    with pytest.raises(ValueError, match="exception of"):
        result(Loud(0.1), raises=True)


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_noise_has_the_scale_of_one_record(kind: str) -> None:
    scoring = Scoring(accuracy(), 500, accuracy().sensitivity(500), 4.0, kind)
    rng = np.random.default_rng(0)
    found = np.array([scoring.released(np.full(500, 0.5), rng) for _ in range(2000)])
    scale = 4.0 / 1000.0 * (1.0 if kind == "gaussian" else np.sqrt(2.0))
    assert abs(found.mean() - 0.5) < 5 * scale / np.sqrt(2000)
    assert found.std() == pytest.approx(scale, rel=0.1)


def test_score_divides_by_the_public_number() -> None:
    scoring = Scoring(accuracy(), 1000, accuracy().sensitivity(1000), 0.0, "none")
    # From the middle of the bounds: 500 right records of an expected 1,000 are worth 0.75.
    assert scoring.released(np.ones(500), None) == 0.75


def test_folds_are_pooled() -> None:
    halves = np.array_split(np.arange(500), 2)
    run = Run(Scripted(0.4), None, None)
    folds = [(halves[0], halves[1]), (halves[1], halves[0])]
    found = perform(run, DATA, folds, None, EXACT, keep_model=False, raises=False)
    assert found.score == pytest.approx(np.mean(DATA.X[:, 1] < 0.4))


def test_data_take_what_belongs_to_the_records() -> None:
    data = Data(DATA.X, DATA.y, {"weight": np.arange(500)}, {"same": 3})
    some = data.take(np.array([5, 7]))
    assert some.per_record["weight"].tolist() == [5, 7]
    assert some.constant == {"same": 3}
    assert data.take(None) is data


class TerminatedWorkerError(Exception):
    """Named as what joblib raises when a worker is gone."""


def test_lost_workers_are_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs: list[Any] = []

    class Losing:
        def __init__(self, n_jobs: Any, pre_dispatch: Any) -> None:
            jobs.append(n_jobs)

        def __call__(self, tasks: Any) -> Any:
            if len(jobs) < 3:
                raise TerminatedWorkerError
            return [function(*args, **kwargs) for function, args, kwargs in tasks]

    monkeypatch.setattr(_runs, "Parallel", Losing)
    monkeypatch.setattr(_runs, "delayed", lambda f: lambda *a, **k: (f, a, k))
    assert perform_all(pow, [2, 3], 2, n_jobs=4, pre_dispatch="all") == [4, 9]
    assert jobs == [4, 4, 1]


def test_other_errors_are_not_tried_again() -> None:
    with pytest.raises(ZeroDivisionError):
        perform_all(divmod, [1], 0, n_jobs=1, pre_dispatch="all")


@pytest.mark.parametrize(
    ("last", "calls"), [(0.6, ["together"]), (0.9, ["together", "alone", "alone", "alone"])]
)
def test_class_that_fits_many_at_once_is_asked_once(last: float, calls: list[str]) -> None:
    seeds = np.random.SeedSequence(0).spawn(3)
    qualities = (0.2, 0.4, last)
    runs = [Run(Together(q), seed, None) for q, seed in zip(qualities, seeds, strict=True)]
    assert can_be_together([run.estimator for run in runs], DATA)
    Together.calls.clear()
    together = perform_together(runs, DATA, [(None, None)], DATA, EXACT, True, False)
    assert Together.calls == calls
    told = [one.model.was_told_ for one in together]
    alone = [perform(run, DATA, [(None, None)], DATA, EXACT, True, False) for run in runs]
    assert [one.score for one in together] == [one.score for one in alone]
    assert told == [one.model.was_told_ for one in alone]
    assert not can_be_together([runs[0].estimator, Scripted(0.1)], DATA)
    assert not can_be_together([], DATA)


@pytest.mark.parametrize("folds", [1, 3])
def test_one_that_fails_among_many_fails_alone(folds: int) -> None:
    runs = [Run(Together(q), seed, None) for q, seed in zip((0.2, 0.8, 0.4), SEEDS, strict=True)]
    everyone = np.arange(500)
    parts = np.array_split(everyone, folds)
    folds = [(None, None)] if folds == 1 else [(np.setdiff1d(everyone, p), p) for p in parts]
    Together.calls.clear()
    together = perform_together(runs, DATA, folds, DATA, EXACT, True, False)
    assert Together.calls == ["together"] * folds
    alone = [perform(run, DATA, folds, DATA, EXACT, True, False) for run in runs]
    assert [one.score for one in together][::2] == [one.score for one in alone][::2]
    assert together[1].score == 0.0 and together[1].model is None
    assert "this one cannot" in together[1].error
    with pytest.raises(ValueError, match="this one cannot"):
        perform_together(runs, DATA, folds, DATA, EXACT, True, True)
