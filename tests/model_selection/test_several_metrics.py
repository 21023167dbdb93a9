"""Several metrics of each candidate: their names, their cost, and the effect of each record."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from skdptune.accounting import BudgetExceededError
from skdptune.linear_model import DPLogisticRegression
from skdptune.mechanisms import gaussian_profile
from skdptune.metrics import (
    accuracy,
    make_bounded_scorer,
    neg_brier_score,
    neg_log_loss,
)
from skdptune.model_selection import (
    DoublingThresholdSearchCV,
    DPAdaptiveSearchCV,
    DParetoSearchCV,
    DPGridSearchCV,
    DPRandomSearchCV,
    FullTable,
)
from skdptune.testing import replay_neighbours
from tests import auditing
from tests.flat import flat
from tests.model_selection.learners import Scripted, Stopped, table
from tests.model_selection.ways import HAS_OPTUNA

DELTA = 1e-5
X, Y = table(600)
GRID = {"quality": [0.1, 0.5, 0.9]}
needs_optuna = pytest.mark.skipif(not HAS_OPTUNA, reason="an adaptive search needs optuna")


def share_wrong(y: Any, prediction: Any) -> Any:
    """Return what is lost by each record: 4 where it is predicted wrong."""
    return 4.0 * (y != prediction)


# One record changes it by four times as much as an accuracy.
LOST = make_bounded_scorer(share_wrong, 0.0, 4.0, name="lost")
BOTH = {"right": accuracy(), "lost": LOST}


def grid_search(estimator: Any = None, **more: Any) -> Any:
    usual = {"random_state": 0, "epsilon": 50.0, "delta": DELTA, "strategy": "table"}
    usual |= {"scoring": BOTH, "refit": "right"}
    if more.get("strategy") != "compose":
        usual["try_own_values"] = False
    return flat(DPGridSearchCV, estimator or Scripted(), GRID, **usual | more)


def adaptive_search(**more: Any) -> Any:
    usual = {"random_state": 0, "epsilon": 50.0, "delta": DELTA, "n_trials": 6, "sampler": "tpe"}
    usual |= {"scoring": BOTH, "refit": "right", "batch_size": 1}
    return flat(DPAdaptiveSearchCV, Scripted(), {"quality": (0.1, 0.9)}, **usual | more)


# What is shown -----------------------------------------------------------------------------------


@pytest.mark.parametrize("cv", [3])
def test_each_metric_has_the_columns_of_scikit_learn(cv: Any) -> None:
    found = grid_search(cv=cv, epsilon=400.0, choose_by="max").fit(X, Y)
    results, n_splits = found.cv_results_, 3 if cv == 3 else 1
    names = {
        f"{kind}_test_{name}"
        for kind in ("mean", "std", "rank", *(f"split{place}" for place in range(n_splits)))
        for name in BOTH
    }
    assert set(results) == {"params", "param_quality", *names}
    np.testing.assert_allclose(results["mean_test_right"], [0.1, 0.5, 0.9], atol=0.15)
    np.testing.assert_allclose(results["mean_test_lost"], [-3.6, -2.0, -0.4], atol=0.5)
    for name in BOTH:
        assert results[f"rank_test_{name}"].tolist() == [3, 2, 1]
        splits = [results[f"split{place}_test_{name}"] for place in range(n_splits)]
        np.testing.assert_allclose(np.mean(splits, axis=0), results[f"mean_test_{name}"], atol=0.1)
    assert found.multimetric_
    assert found.scorer_ == BOTH
    assert found.best_params_ == {"quality": 0.9}
    assert found.best_index_ == 2
    assert found.best_score_ == results["mean_test_right"][2]
    assert found.score(X, Y) == accuracy()(found.best_estimator_, X, Y)
    other = grid_search(cv=cv, epsilon=400.0, refit="lost").fit(X, Y)
    assert other.score(X, Y) == LOST(other.best_estimator_, X, Y)


# What it costs -----------------------------------------------------------------------------------


@pytest.mark.parametrize("more", [{"cv": 3}, {"strategy": "compose"}, {"delta": 0.0}])
def test_another_metric_adds_noise_to_scores_and_to_nothing_else(more: dict[str, Any]) -> None:
    # Theorem T8: full tables of noisy scores, and one fit after them.
    model = DPLogisticRegression(solver="objective", delta=more.get("delta", DELTA))
    usual = {"epsilon": 4.0, "strategy": "table"}

    def planned(*names: str) -> Any:
        known = {"a": accuracy(), "b": neg_brier_score(), "c": neg_log_loss(bound=3.0)}
        search = grid_search(
            model, **usual | more, scoring={name: known[name] for name in names}, refit="a"
        )
        search.param_grid = {"C": [0.1, 1.0]}
        return search.plan(3000, 4, compare=False)

    one, three = planned("a"), planned("a", "b", "c")
    growth = 3.0 if more.get("delta") == 0.0 else math.sqrt(3.0)
    assert three.row.noise == one.row.noise
    assert three.epsilon == one.epsilon <= 4.0
    assert three.score_noise == pytest.approx(growth * one.score_noise, rel=1e-9)
    assert one.metrics == {}
    assert list(three.metrics) == ["a", "b", "c"]
    noise, alone = three.metrics["a"]
    assert (noise, alone) == (three.score_noise, pytest.approx(one.score_noise, rel=1e-9))
    assert three.metrics["c"][0] == pytest.approx(3.0 * noise)
    assert "3 metrics share the cost of a score; noise: a " in str(three)
    assert "metrics" not in str(one)


def test_the_report_has_a_part_for_each_metric() -> None:
    report = grid_search(epsilon=2.0).fit(X, Y).privacy_
    (run,) = report.parts[0].parts
    scores = run.parts[1]
    assert (scores.name, scores.note) == ("scores", "by 2 metrics")
    assert [part.name for part in scores.parts] == ["right", "lost"]
    # Each for a random record, which is held out for all scores or for none.
    one, other = (part.profile.epsilon(DELTA) for part in scores.parts)
    assert one == other and 0.6 < one / scores.profile.epsilon(DELTA) < 0.8
    assert scores.profile.epsilon(DELTA) <= run.profile.epsilon(DELTA)
    assert report.epsilon_spent <= 2.0


def released_scores(search: Any) -> list[float]:
    """Return the shifts of all noisy scores that a search draws, and check what it reports."""
    with auditing.watched_releases() as seen:
        search.fit(X, Y)
    return [one.shift for one in seen]


@pytest.mark.parametrize("cv", [0.2, 4])
def test_all_that_is_drawn_is_paid_for(cv: Any) -> None:
    # Theorem T8: squared shifts of the scores that were drawn, against those of the plan.
    search = grid_search(cv=cv)
    drawn = released_scores(search)
    noise = search._make_plan(600, 3).cost.score_noise
    folds = 4 if cv == 4 else 1
    assert len(drawn) == 3 * 2 * folds
    # With folds a record is in one of them.
    paid = 3.0 * 2.0 / noise.ratio**2
    assert math.fsum(shift**2 for shift in drawn) == pytest.approx(folds * paid)
    assert noise.profile.epsilon(DELTA) >= gaussian_profile(
        math.sqrt(2.0) / noise.ratio, 1.0
    ).epsilon(DELTA) * (1.0 - 1e-9)


@needs_optuna
@pytest.mark.parametrize("is_stored", [False, True])
def test_all_that_trials_draw_is_paid_for(is_stored: bool, tmp_path: Path) -> None:
    # Theorem T8, Theorem G6.
    search = adaptive_search(**({"storage": str(tmp_path / "study.db")} if is_stored else {}))
    drawn = released_scores(search)
    plan = search._make_plan(600, 3)
    paid = 6.0 * 2.0 / plan.cost.score_noise.ratio**2
    assert len(drawn) == 12
    assert math.fsum(shift**2 for shift in drawn) == pytest.approx(paid)
    # What is paid for is in the total; records that are split anew pay for fits as well.
    profile = gaussian_profile(math.sqrt(paid), 1.0)
    profile = profile + plan.cost.fit * 6 if is_stored else profile
    assert plan.cost.scored.epsilon(DELTA) >= profile.epsilon(DELTA) * (1.0 - 1e-6)


class PaysForOne(FullTable):
    """Says nothing of several metrics."""

    def cost(self, request: Any, layout: Any) -> Any:
        model, _ = super().cost(request, layout)
        model = replace(model, metrics=("score",))
        return model, model.within(request.epsilon)


def test_no_strategy_shows_more_metrics_than_it_pays_for() -> None:
    # Theorem T8: full tables of noisy scores, and one fit after them.
    search = grid_search(strategy=PaysForOne())
    with pytest.raises(BudgetExceededError, match="the 1 metrics that are paid for"):
        search.fit(X, Y)
    search.set_params(scoring=["accuracy"], refit="accuracy").fit(X, Y)


# What one record changes -------------------------------------------------------------------------


def test_a_candidate_that_fails_is_the_worst_by_all_metrics() -> None:
    # Theorem F4: a run that fails is a run that scores the worst.
    class Fails(Scripted):
        def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
            if self.quality > 0.8 and len(y) > 100:
                raise ValueError("failed")
            return super().fit(X, y)

    results = grid_search(Fails(), epsilon=400.0).fit(X, Y).cv_results_
    assert results["mean_test_right"][2] < 0.1
    assert results["mean_test_lost"][2] < -3.6


@pytest.mark.parametrize("record", [([np.nan, np.inf, 0.0], 0), ([5.0, -5.0, 5.0], 1)])
@pytest.mark.slow
def test_searches_pass_on_neighbouring_data(record: Any) -> None:
    search = grid_search(DPLogisticRegression(solver="output", classes=[0, 1]), epsilon=1.0)
    search.set_params(
        param_grid={"C": [0.1, 1.0]}, scoring=["accuracy", "neg_brier_score"], refit="accuracy"
    )
    replay_neighbours(search, X[:200], Y[:200], record, n_repeats=6).assert_passes()


# What goes on ------------------------------------------------------------------------------------


class Interrupted(Scripted):
    """Is stopped at one of its fits to a search's records."""

    left = 100

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        Interrupted.left -= len(y) > 300
        if Interrupted.left == 0:
            raise Stopped
        return super().fit(X, y)


@pytest.mark.parametrize("more", [{}, {"cv": 3}])
def test_a_file_keeps_the_scores_of_all_metrics(more: dict[str, Any], tmp_path: Path) -> None:
    # Theorem F13: a random or grid search that was killed resumes, at no cost.
    whole = grid_search(Interrupted(), **more).fit(X, Y).cv_results_
    path = tmp_path / "runs"
    search = grid_search(Interrupted(), storage=str(path), **more)
    Interrupted.left = 5 if more.get("cv") else 3
    with pytest.raises(Stopped):
        search.fit(X, Y)
    Interrupted.left = 100
    # By another metric it is another search.
    with pytest.raises(ValueError, match="which belongs to another"):
        clone(search).set_params(refit="lost").fit(X, Y)
    found = search.fit(X, Y).cv_results_
    for name in BOTH:
        np.testing.assert_array_equal(found[f"mean_test_{name}"], whole[f"mean_test_{name}"])


@needs_optuna
def test_a_session_tells_all_scores_and_its_storage_keeps_them(tmp_path: Path) -> None:
    # Theorem G6: candidates chosen by noisy scores, and a search that is resumed.
    settings = {"storage": str(tmp_path / "study.db")}
    session = adaptive_search(**settings).start(X, Y)
    trials = [session.ask() for _ in range(3)]
    scores = [session.tell(trial) for trial in trials]
    assert [trial.metrics["right"] for trial in trials] == scores
    assert all(list(trial.metrics) == ["right", "lost"] for trial in trials)
    # The sampler sees the deciding metric.
    assert [trial.score for trial in trials] == scores
    again = adaptive_search(**settings).start(X, Y)
    assert [result.score for _, result in again._told] == pytest.approx(scores)
    lost = [result.further[0][0] for _, result in again._told]
    assert lost == pytest.approx([trial.metrics["lost"] for trial in trials])
    while again.n_left:
        again.tell(again.ask())
    results = again.finish().cv_results_
    assert results["mean_test_lost"][:3] == pytest.approx(np.clip(lost, -4.0, 0.0))
    with pytest.raises(ValueError, match="with the same .*scoring"):
        adaptive_search(**settings | {"refit": "lost"}).start(X, Y)


# What is refused ---------------------------------------------------------------------------------

ONE_ALONE = "Several are paid for by DPAdaptiveSearchCV, and by DPGridSearchCV with FullTable or"


def test_bad_metrics_are_refused_before_data() -> None:
    for more, message in (
        ({"scoring": []}, "must hold at least one metric; got list of length 0"),
        ({"scoring": {}}, "must hold at least one metric"),
        ({"scoring": ["accuracy", "accuracy"]}, "name each metric once; got 'accuracy'"),
        ({"scoring": [accuracy(), "accuracy"]}, "Use a dict to name them yourself"),
        ({"scoring": ["accuracy", "precise"]}, "got a name that is not a metric"),
        ({"scoring": {"right": "accuracy", "area": "roc_auc"}}, "got 'roc_auc'"),
        ({"scoring": {"right": "accuracy", "own": max}}, "BoundedScorer; got builtin"),
        ({"scoring": {"right": "accuracy", "none": None}}, "BoundedScorer; got None"),
        ({"scoring": {1: "accuracy"}}, "must name each metric by a str; got 1"),
        ({"scoring": {"accuracy", "neg_brier_score"}}, "got set"),
        ({"refit": True}, "refit must be 'right', 'lost', a callable or False .* True"),
        ({"refit": "winner"}, "the parameter refit must be set to a scorer key"),
        ({"refit": "score"}, "got 'score'"),
        ({"scoring": {"proba": neg_brier_score()}, "refit": "proba"}, "predict_proba"),
        ({"strategy": "noisy_max"}, ONE_ALONE),
    ):
        usual = {"scoring": BOTH, "refit": "right", "epsilon": 1.0}
        search = DPGridSearchCV(Scripted(), GRID, **usual | more)
        for act in (search.plan, search.privacy_profile):
            with pytest.raises((TypeError, ValueError), match=message):
                act(600, 3)


@pytest.mark.parametrize("kind", [DPRandomSearchCV, DoublingThresholdSearchCV, DParetoSearchCV])
def test_searches_that_do_not_pay_for_all_scores_say_which_do(kind: Any) -> None:
    search = kind(Scripted(), GRID, scoring=["accuracy", LOST])
    with pytest.raises(ValueError, match=ONE_ALONE):
        search.privacy_profile(600, 3)
