"""Runs that no data can make fail, and their noisy scores (Theorem F4)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from skdptune.metrics import accuracy
from skdptune.model_selection._running._data import Data
from skdptune.model_selection._running._runs import (
    ONE_FIT,
    Material,
    Result,
    Run,
    Scoring,
    perform,
    perform_runs,
)
from tests.model_selection.learners import Loud, Scripted, Together, table

SEEDS = np.random.SeedSequence(0).spawn(3)
DATA = Data(*table(500), {}, {})
EXACT = Scoring(accuracy(), 500, accuracy().sensitivity(500), 0.0, "none")


def result(estimator: Any, scoring: Scoring = EXACT, **more: Any) -> Any:
    settings = {"keeps_models": True, "raises": False, **more}
    run = Run(estimator, None, np.random.SeedSequence(1))
    return perform([run], Material(DATA, ONE_FIT, DATA, scoring, **settings))[0]


def test_run_is_scored_and_keeps_its_model_if_asked() -> None:
    found = result(Scripted(0.7))
    assert found.score == pytest.approx(np.mean(DATA.X[:, 1] < 0.7))
    assert found.model.classes_.tolist() == [0, 1]
    assert result(Scripted(0.7), keeps_models=False).model is None


def test_failure_is_the_worst_with_the_same_noise() -> None:
    # Theorem F4.
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
    (found,) = perform([run], Material(DATA, folds, None, EXACT))
    assert found.score == pytest.approx(np.mean(DATA.X[:, 1] < 0.4))


def all_of(runs: list[Run], folds: Any = ONE_FIT, **more: Any) -> list[Result]:
    material = Material(DATA, folds, DATA, EXACT, keeps_models=True, **more)
    return perform_runs(runs, material, n_jobs=1, pre_dispatch="all")


def each_of(runs: list[Run], folds: Any = ONE_FIT) -> list[Result]:
    """Each run by itself, by the plain fit of its class."""
    material = Material(DATA, folds, DATA, EXACT, keeps_models=True)
    return [perform([replace(run, estimator=alone(run.estimator))], material)[0] for run in runs]


def alone(estimator: Together) -> Together:
    """Return a copy whose class is not asked to fit many."""
    return Alone(**estimator.get_params())


class Alone(Together):
    """Fits one at a time."""

    def fit(self, X: Any, y: Any) -> Any:
        return super().fit(X, y)


@pytest.mark.parametrize(
    ("last", "calls"), [(0.6, ["together"]), (0.9, ["together", "alone", "alone", "alone"])]
)
def test_class_that_fits_many_at_once_is_asked_once(last: float, calls: list[str]) -> None:
    seeds = np.random.SeedSequence(0).spawn(3)
    qualities = (0.2, 0.4, last)
    runs = [Run(Together(q), seed, None) for q, seed in zip(qualities, seeds, strict=True)]
    Together.calls.clear()
    together = all_of(runs)
    assert Together.calls == calls
    told = [one.model.was_told_ for one in together]
    alone = each_of(runs)
    assert [one.score for one in together] == [one.score for one in alone]
    assert told == [one.model.was_told_ for one in alone]


@pytest.mark.parametrize("folds", [1, 3])
def test_one_that_fails_among_many_fails_alone(folds: int) -> None:
    runs = [Run(Together(q), seed, None) for q, seed in zip((0.2, 0.8, 0.4), SEEDS, strict=True)]
    everyone = np.arange(500)
    parts = np.array_split(everyone, folds)
    pairs = [(np.setdiff1d(everyone, part), part) for part in parts] if folds > 1 else ONE_FIT
    Together.calls.clear()
    together = all_of(runs, pairs)
    assert Together.calls == ["together"] * folds
    alone = each_of(runs, pairs)
    assert [one.score for one in together][::2] == [one.score for one in alone][::2]
    assert together[1].score == 0.0 and together[1].model is None
    assert "this one cannot" in together[1].error
    with pytest.raises(ValueError, match="this one cannot"):
        all_of(runs, pairs, raises=True)
