"""Evaluations: exact utilities, and noisy ones that no data can stop."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from skdptune.accounting import PrivacyProfile
from skdptune.metrics import accuracy, neg_brier_score
from skdptune.model_selection._cost import ScoreNoise, make_layout
from skdptune.model_selection._pareto._families import Families, ThirdObjective
from skdptune.model_selection._pareto._run import (
    ExactEvaluator,
    NoisyEvaluator,
    ParameterCosts,
    score_of_all,
    unit_utility,
)
from skdptune.model_selection._running import ONE_FIT, Data, Material, Scoring
from tests.model_selection.learners import Loud, Scripted, Told, table

DELTA = 1e-5
X, Y = table(400)
SPACE = {"quality": (0.0, 1.0), "epsilon": (0.1, 5.0)}
SEED = np.random.SeedSequence(0)
EXACT = Scoring(accuracy(), None, 0.0, 0.0, "none")


def layout(**more: Any) -> Any:
    settings = {"cv": 0.25, "public": False, "is_random": False, **more}
    return make_layout(400, 3, tuning_fraction=None, variant=1, refit=True, **settings)


def costs(estimator: Any = None, **more: Any) -> ParameterCosts:
    return ParameterCosts(Families(estimator or Scripted(), SPACE), layout(**more), DELTA)


def exact(estimator: Any = None, n_repeats: int = 2, **more: Any) -> ExactEvaluator:
    data = Data(X, Y)
    train, scored = data.take(np.arange(300)), data.take(np.arange(300, 400))
    material = Material(train, ONE_FIT, scored, EXACT, raises=True)
    settings = {"is_seeded": True, "third": None, **more}
    return ExactEvaluator(costs(estimator), material, n_repeats, **settings)


def noisy(of: ExactEvaluator, ratio: float = 0.0) -> NoisyEvaluator:
    noise = ScoreNoise(ratio, "gaussian" if ratio else "none", PrivacyProfile.pure(0.0))
    scoring = score_of_all(of.costs.layout, of.scorer, of.n_repeats, noise)
    return NoisyEvaluator(
        replace(of, material=replace(of.material, scoring=scoring, raises=False))
    )


def test_each_fit_has_a_seed_of_its_own() -> None:
    seeds: list[Any] = []

    def note(model: Any, X: Any, y: Any) -> float:
        seeds.append(model.was_told_)
        return 1.0

    params = {"quality": 0.7, "epsilon": 1.0}
    for _ in range(2):
        assert exact(third=ThirdObjective("note", note))(params, 0, SEED).third == 1.0
    assert len(set(seeds)) == 2 and seeds[:2] == seeds[2:]
    seeds.clear()
    exact(third=ThirdObjective("note", note), is_seeded=False)(params, 0, SEED)
    assert seeds == [None, None]


# Noisy evaluations ----------


def test_score_without_noise_is_the_mean_of_the_repeats() -> None:
    found = noisy(exact())({"quality": 0.7, "epsilon": 1.0}, 0, SEED)
    # 100 records are expected to score, and are there.
    assert found.utilities == (pytest.approx(np.mean(X[300:, 1] < 0.7)),)
    assert found.third is None and found.failure is None


@pytest.mark.parametrize("n_repeats", [1, 4])
def test_one_record_moves_the_score_by_no_more_than_its_sensitivity(n_repeats: int) -> None:
    of = exact(n_repeats=n_repeats)
    scoring = noisy(of).exact.material.scoring
    assert scoring.sensitivity == accuracy().sensitivity(100)
    values = np.tile(np.ones(100), n_repeats)
    fewer = np.tile(np.ones(99), n_repeats)
    moved = abs(scoring.released(values, None) - scoring.released(fewer, None))
    assert moved == pytest.approx(scoring.sensitivity)


def test_noise_has_the_planned_scale_and_follows_the_seed() -> None:
    of = noisy(exact(), ratio=10.0)
    params = {"quality": 0.5, "epsilon": 1.0}
    seeds = np.random.SeedSequence(1).spawn(150)
    found = np.array([of(params, 0, seed).utilities[0] for seed in seeds])
    scale = 10.0 * accuracy().sensitivity(100)
    assert np.std(found) == pytest.approx(scale, rel=0.2)
    assert of(params, 0, seeds[0]).utilities == of(params, 1, seeds[0]).utilities
    free = noisy(exact(is_seeded=False), ratio=10.0)
    assert free(params, 0, SEED).utilities != free(params, 0, SEED).utilities


def test_failing_fit_scores_the_worst_of_every_record() -> None:
    found = noisy(exact(Loud()))({"quality": 0.1, "epsilon": 1.0}, 0, SEED)
    assert found.utilities == (0.0,) and found.failure is None


def test_lost_workers_score_the_worst(monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(*_: Any, **__: Any) -> Any:
        raise RuntimeError("secret")

    monkeypatch.setattr("skdptune.model_selection._pareto._run.perform_all", lost)
    found = noisy(exact(), ratio=4.0)({"quality": 0.9, "epsilon": 1.0}, 0, SEED)
    assert found.failure is None and found.utilities[0] < 0.2


def test_record_that_cannot_be_scored_fails_alone() -> None:
    class Brittle(Scripted):
        def predict(self, X: Any) -> np.ndarray:
            if (np.asarray(X)[:, 1] > 0.99).any():
                raise ValueError("a record")
            return super().predict(X)

    of = exact(Brittle())
    bad = int((X[300:, 1] > 0.99).sum())
    found = noisy(of)({"quality": 1.0, "epsilon": 1.0}, 0, SEED)
    assert bad >= 1 and found.utilities[0] == pytest.approx(1.0 - bad / 100)


def test_folds_score_every_record_once_per_repeat() -> None:
    parts = np.array_split(np.arange(400), 4)
    folds = [(np.setdiff1d(np.arange(400), part), part) for part in parts]
    material = Material(Data(X, Y), folds, None, EXACT)
    of = ExactEvaluator(costs(cv=4), material, n_repeats=2, is_seeded=True)
    params = {"quality": 0.7, "epsilon": 1.0}
    expected = np.mean(X[:, 1] < 0.7)
    assert of(params, 0, SEED).utilities == pytest.approx((expected, expected))
    assert noisy(of)(params, 0, SEED).utilities == pytest.approx((expected,))


def test_fits_get_public_sizes() -> None:
    Told.heard.clear()
    noisy(exact(Told()))({"quality": 0.7, "epsilon": 1.0}, 0, SEED)
    assert {size for size, _ in Told.heard} == {300}


@pytest.mark.parametrize(
    ("score", "utility"), [(-1.0, 0.0), (-0.25, 0.75), (0.0, 1.0), (0.4, 1.0), (-3.0, 0.0)]
)
def test_utility_lies_between_the_worst_and_the_best_score(score: float, utility: float) -> None:
    assert unit_utility(score, neg_brier_score()) == utility
