"""The engine that fits and scores candidates: no data can make it fail (Theorem F4)."""

from __future__ import annotations

import logging
import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from skdptune._secure_random import SecureGenerator
from skdptune.linear_model import DPLogisticRegression
from skdptune.metrics import (
    accuracy,
    make_bounded_scorer,
    neg_absolute_error,
    neg_brier_score,
)
from skdptune.model_selection import DPGridSearchCV
from skdptune.model_selection._running._data import Data, Door
from skdptune.model_selection._running._engine import (
    Outcome,
    fit_and_score,
    values_of,
)
from skdptune.model_selection._running._quiet import Quiet, generator_of, spawned
from skdptune.model_selection._running._runs import (
    ONE_FIT,
    Material,
    Result,
    Run,
    Scoring,
    choice_noise,
    partition_utilities,
    perform,
    perform_runs,
)
from tests.model_selection.learners import Loud, Scripted, Together, table

X, Y = table(400)
DATA = Data(X, Y)


def outcomes(models: list[Any], **more: Any) -> list[Outcome]:
    return fit_and_score(models, [None] * len(models), DATA, DATA, accuracy(), **more)


class Touchy(Scripted):
    """Cannot predict a table with a given record in it."""

    def predict(self, X: Any) -> Any:
        if (np.asarray(X)[:, 2] == self.poison).any():
            raise ValueError("a record that I do not like")
        return super().predict(X)


@pytest.mark.parametrize("place", [7, 399])
def test_a_record_that_cannot_be_scored_changes_its_own_value_alone(place: int) -> None:
    model = Touchy(0.7)
    model.poison = X[place, 2]
    (outcome,) = outcomes([model])
    wanted = (X[:, 1] < 0.7).astype(float)
    wanted[place] = 0.0
    np.testing.assert_array_equal(values_of(accuracy(), outcome.model, DATA), wanted)
    assert outcome.sums == (accuracy().sum_of(wanted),)
    with pytest.raises(ValueError, match="a record that I do not like"):
        outcomes([model], raises=True)


# Runs and their noisy scores ---------------------------------------------------------------------


SEEDS = np.random.SeedSequence(0).spawn(3)
MORE = Data(*table(500), {}, {})
EXACT = Scoring(accuracy(), 500, accuracy().sensitivity(500), 0.0, "none")


def result(estimator: Any, scoring: Scoring = EXACT, **more: Any) -> Any:
    settings = {"keeps_models": True, "raises": False, **more}
    run = Run(estimator, None, np.random.SeedSequence(1))
    return perform([run], Material(MORE, ONE_FIT, MORE, scoring, **settings))[0]


def test_failure_is_the_worst_with_the_same_noise() -> None:
    # Theorem F4: a run that fails is a run that scores the worst.
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


def all_of(runs: list[Run], folds: Any = ONE_FIT, **more: Any) -> list[Result]:
    material = Material(MORE, folds, MORE, EXACT, keeps_models=True, **more)
    return perform_runs(runs, material, n_jobs=1, pre_dispatch="all")


def each_of(runs: list[Run], folds: Any = ONE_FIT) -> list[Result]:
    """Each run separately, by the usual fit of its class."""
    material = Material(MORE, folds, MORE, EXACT, keeps_models=True)
    return [
        perform([replace(run, estimator=by_itself(run.estimator))], material)[0] for run in runs
    ]


def by_itself(estimator: Together) -> Together:
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
    by_itself = each_of(runs)
    assert [one.score for one in together] == [one.score for one in by_itself]
    assert told == [one.model.was_told_ for one in by_itself]


@pytest.mark.parametrize("folds", [1, 3])
def test_one_that_fails_among_many_fails_alone(folds: int) -> None:
    runs = [Run(Together(q), seed, None) for q, seed in zip((0.2, 0.8, 0.4), SEEDS, strict=True)]
    everyone = np.arange(500)
    parts = np.array_split(everyone, folds)
    pairs = [(np.setdiff1d(everyone, part), part) for part in parts] if folds > 1 else ONE_FIT
    Together.calls.clear()
    together = all_of(runs, pairs)
    assert Together.calls == ["together"] * folds
    by_itself = each_of(runs, pairs)
    assert [one.score for one in together][::2] == [one.score for one in by_itself][::2]
    assert together[1].score == 0.0 and together[1].model is None
    assert "this one cannot" in together[1].error
    with pytest.raises(ValueError, match="this one cannot"):
        all_of(runs, pairs, raises=True)


# Utilities on disjoint partitions ----------------------------------------------------------------


def utilities(estimators: list[object], parts: list[np.ndarray], raises: bool = False) -> object:
    return partition_utilities(
        estimators,
        [None] * len(estimators),
        DATA,
        parts,
        DATA,
        accuracy(),
        400,
        n_jobs=1,
        pre_dispatch="2*n_jobs",
        raises=raises,
    )


@pytest.mark.parametrize(("parts", "scores"), [(10, 1000), (10, 3), (50, 25), (10, None)])
def test_neither_kind_of_record_costs_more_than_the_choice(parts: int, scores: int | None) -> None:
    # Theorem F5: an index chosen from mean scores over partitions.
    noise = choice_noise(0.5, parts, scores)
    assert max(noise.epsilon, noise.of_score) == pytest.approx(0.5)
    # One record's change over the noise's scale.
    assert noise.epsilon == pytest.approx(0.5 / (parts * noise.sensitivity))
    assert noise.of_score == pytest.approx(
        0.0 if scores is None else 0.5 / (2.0 * scores * noise.sensitivity)
    )


@pytest.mark.parametrize(("parts", "scores"), [(10, 1000), (10, 3), (50, 25)])
def test_a_replaced_record_costs_no_more_than_the_choice(parts: int, scores: int) -> None:
    # Theorem F8: it moves utilities in any direction, so twice the change counts.
    noise = choice_noise(0.5, parts, scores, monotone=False)
    assert max(noise.epsilon, noise.of_score) == pytest.approx(0.5)
    scale = 2.0 * noise.sensitivity / 0.5
    assert noise.of_score == pytest.approx(2.0 / scores / scale)


def test_empty_partition_and_failing_candidate_count_as_the_worst() -> None:
    parts = [np.arange(400), np.arange(0)]
    found = utilities([Scripted(1.0), Loud(0.1)], parts)
    np.testing.assert_allclose(found, [0.5, 0.0], atol=1e-12)
    with pytest.raises(ValueError, match="exception of"):
        utilities([Loud(0.1)], parts, raises=True)


# Silence, however often it is entered ------------------------------------------------------------


def test_last_to_leave_restores_what_the_first_found(capsys: pytest.CaptureFixture[str]) -> None:
    entered, leave = threading.Event(), threading.Event()

    def other() -> None:
        with Quiet():
            entered.set()
            leave.wait(10.0)

    thread = threading.Thread(target=other)
    with Quiet():
        thread.start()
        assert entered.wait(10.0)
    print("still silent")
    leave.set()
    thread.join()
    print("heard")
    assert capsys.readouterr().out == "heard\n"
    assert logging.root.manager.disable == logging.NOTSET


# Streams of randomness ---------------------------------------------------------------------------


def test_runs_have_streams_of_their_own():
    # Assumption S0: runs are independent, their number is secret, ties are fair.
    seeds = np.random.SeedSequence(0)
    draws = {generator_of(one).random() for one in spawned(seeds, 3)}
    assert len(draws) == 3
    assert spawned(None, 3) == [None, None, None]
    assert generator_of(None).random() != generator_of(None).random()


def test_what_is_not_seeded_is_cryptographic():
    # Assumption E0: the source of randomness, and the precision of logarithms.
    assert isinstance(generator_of(None), SecureGenerator)
    assert not isinstance(generator_of(np.random.SeedSequence(0)), SecureGenerator)


def test_one_record_changes_the_score_of_its_own_fold() -> None:
    """Theorem T8: noise for the size of a fold hides a record of that fold."""
    grid = {"quality": [0.1, 0.5, 0.9]}
    search = DPGridSearchCV(Scripted(), grid, cv=3, epsilon=5.0, delta=1e-5, strategy="table")
    X, y = table(600)
    layout, scorer = search._make_plan(600, 3).layout, accuracy()
    assert layout.n_score_of_fold == 200
    assert layout.sensitivity(scorer, layout.n_score_of_fold) == scorer.sensitivity(200)
    one = Scoring(scorer, 200, 1 / 200, 0.0, "none")
    folds = [(np.arange(600), np.arange(place, 600, 3)) for place in range(3)]

    def splits(labels: np.ndarray) -> np.ndarray:
        # A model that does not learn: only what is scored on changes.
        runs = [Run(Scripted(quality=0.7, epsilon=np.inf), np.random.SeedSequence(0), None)]
        data = Data(X, labels)
        material = Material(data, folds, None, one, splits_scores=True)
        return np.array(perform_runs(runs, material, n_jobs=1, pre_dispatch=1)[0].splits)

    other = y.copy()
    other[4] = not other[4]
    moved = np.abs(splits(other) - splits(y))
    assert moved[1] <= 1 / 200 + 1e-12
    assert moved[[0, 2]].max() == 0.0


class Choosy(Scripted):
    """Is always right, cannot predict for some rows, and needs at least one."""

    def predict(self, X: Any) -> Any:
        if not len(X) or (np.asarray(X)[:, 2] > 1.0).any():
            raise ValueError("no prediction")
        return super().predict(X)


@pytest.mark.parametrize("value", [0.5, 7.0], ids=["the only one of a fold", "unpredictable"])
def test_one_record_moves_a_score_by_no_more_than_its_sensitivity(value: float) -> None:
    # The last fold is empty except for the record that is added or removed.
    x, y = X[:13].copy(), Y[:13]
    x[-1, 2] = value
    folds = [np.arange(6), np.arange(6, 12), np.arange(12, 13)]
    scoring = Scoring(accuracy(), 64, 0.0, 0.0, "none")
    scores = []
    for size in (12, 13):
        held = [fold[fold < size] for fold in folds]
        pairs = [(np.setdiff1d(np.arange(size), fold), fold) for fold in held]
        material = Material(Data(x[:size], y[:size]), pairs, None, scoring)
        (found,) = perform([Run(Choosy(1.1), None, None)], material)
        scores.append(found.score)
    assert scores[0] != scores[1]
    assert abs(scores[1] - scores[0]) <= accuracy().sensitivity(64) + 1e-12


def test_an_improper_record_has_the_worst_value_and_an_empty_row() -> None:
    rows, labels = X.copy(), Y.astype(object)
    rows[7, 1], labels[9] = np.nan, "neither"
    door = Door.of([DPLogisticRegression()], X, [0, 1], varies=False)
    data = door.open(rows, labels)
    assert np.flatnonzero(~np.asarray(data.X).any(axis=1)).tolist() == [7, 9]
    (outcome,) = fit_and_score([Scripted(1.1)], [None], data, data, accuracy())
    values = values_of(accuracy(), outcome.model, data)
    assert np.flatnonzero(values == 0.0).tolist() == [7, 9]
    assert outcome.sums == (accuracy().sum_of(values),)
    assert values.sum() == 398


# Scores by several metrics -----------------------------------------------------------------------


class Unsure(Scripted):
    """Has no probabilities for some records, and predicts them all."""

    def predict_proba(self, X: Any) -> Any:
        if (np.asarray(X)[:, 2] > 1.0).any():
            raise ValueError("no probability")
        truth = (np.asarray(X)[:, 0] > 0.0).astype(float)
        return np.column_stack([1.0 - truth, truth])


def test_a_record_that_a_metric_cannot_score_is_the_worst_by_this_metric_alone() -> None:
    # Theorem T8, Theorem D2.
    rows = X[:40].copy()
    rows[7, 2] = 5.0
    brier = neg_brier_score()
    scoring = Scoring(accuracy(), 40, 0.0, 0.0, "none", ((brier, 0.0),))
    found = {}
    for name, records in (("known", X[:40]), ("unsure", rows)):
        data = Data(records, Y[:40])
        material = Material(data, ONE_FIT, data, scoring)
        (found[name],) = perform([Run(Unsure(1.1), None, None)], material)
    assert found["unsure"].score == found["known"].score == 1.0
    assert found["known"].further == ((0.0,),)
    assert found["unsure"].further == ((pytest.approx(-1.0 / 40.0),),)


def test_one_record_moves_each_score_by_no_more_than_its_own_sensitivity() -> None:
    # Theorem T8: full tables of noisy scores, and one fit after them.
    error = neg_absolute_error(bound=3.0)
    lost = make_bounded_scorer(lambda y, guess: 4.0 * (y != guess), 0.0, 4.0, name="lost")
    scorers = (accuracy(), lost, error)
    sensitivities = [scorer.sensitivity(50) for scorer in scorers]
    pairs = tuple(zip(scorers[1:], sensitivities[1:], strict=True))
    scoring = Scoring(scorers[0], 50, sensitivities[0], 0.0, "none", pairs)

    def scores(size: int) -> np.ndarray:
        data = Data(X[:size], Y[:size])
        material = Material(Data(X, Y), ONE_FIT, data, scoring)
        (found,) = perform([Run(Scripted(quality=0.6), None, None)], material)
        return np.array(found.by_metric)[:, 0]

    moved = np.abs([scores(size + 1) - scores(size) for size in range(30, 70)]).max(axis=0)
    assert (moved <= np.array(sensitivities) + 1e-12).all()
    np.testing.assert_allclose(moved[:2], sensitivities[:2])
