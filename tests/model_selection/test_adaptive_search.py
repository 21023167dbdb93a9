"""DPAdaptiveSearchCV: what it tries, shows, pays for, how it is resumed, and who may drive it."""

from __future__ import annotations

import copy
import math
import os
import pickle
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from skdptune.accounting import BudgetExceededError, PrivacyProfile
from skdptune.linear_model import DPLogisticRegression
from skdptune.mechanisms import noise_for_budget
from skdptune.model_selection import (
    AdaptiveTrials,
    DPAdaptiveSearchCV,
    DPRandomSearchCV,
    RandomRuns,
)
from tests.flat import changed, flat
from tests.forked import Forked
from tests.model_selection.learners import Scripted, table
from tests.model_selection.test_audit import (
    DELTA,
    MIDDLE,
    N_PUBLIC,
    PUBLIC,
    CutOnly,
    NoisySum,
    lower_bound,
    published,
)

optuna = pytest.importorskip("optuna")
X, Y = table(600)
SPACE = {"quality": (0.1, 0.9)}


def made(space: Any = None, estimator: Any = None, **more: Any) -> DPAdaptiveSearchCV:
    settings = {"epsilon": 50.0, "delta": 1e-5, "n_trials": 6, "random_state": 0}
    settings |= {"sampler": "tpe", **more}
    return flat(DPAdaptiveSearchCV, estimator or Scripted(), space or SPACE, **settings)


@pytest.fixture(scope="module")
def noisy() -> DPAdaptiveSearchCV:
    return made(epsilon=0.5, n_trials=8).fit(X, Y)


class Shifts(Scripted):
    """Notes the shift of the Gaussian release that each fit costs, and its number of records."""

    made: list[tuple[float, int]] = []

    def fit(self, X: Any, y: Any) -> Any:
        Shifts.made.append((1.0 / noise_for_budget(self.epsilon, self.delta)[0], len(y)))
        return super().fit(X, y)


@pytest.mark.parametrize("batch_size", [1, 4])
def test_fits_that_are_made_are_paid_for(batch_size: int) -> None:
    # Theorem G6: candidates chosen by noisy scores, and a search that is resumed.
    search = made(estimator=Shifts(delta=1e-6), batch_size=batch_size, epsilon=2.0)
    plan = search._make_plan(600, 3)
    Shifts.made.clear()
    search.fit(X, Y)
    # Fits of made-up data are of few records, and the last one is on all.
    fits = [shift for shift, size in Shifts.made if 400 < size < 600]
    assert len(fits) == len(search.study_.trials) == search._strategy().public_count(plan) == 6
    paid = PrivacyProfile.gaussian(math.sqrt(math.fsum(shift**2 for shift in fits)))
    assert paid.epsilon(1e-5) <= plan.cost.trained.epsilon(1e-5) * (1.0 + 1e-6)
    assert search.privacy_.epsilon_spent <= 2.0
    assert search.privacy_.profile == search.privacy_profile(600, 3)


def test_own_values_come_first_where_the_space_does_not_hold_them() -> None:
    # Theorem N5: what is best of all is found, and what a table of noise falls back to.
    search = made({"quality": (0.1, 0.5)}, Scripted(quality=0.77)).fit(X, Y)
    assert search.cv_results_["params"][0] == {"quality": 0.77}
    assert search.best_params_ == {"quality": 0.77}
    assert search.best_estimator_.quality == 0.77
    trials = list(search.study_.trials)
    # It leaves optuna all parameters to sample from and to analyse.
    assert set(optuna.search_space.intersection_search_space(trials)) == {"quality"}
    own = trials.pop(0)
    assert (own.params, own.state.name) == ({}, "PRUNED")
    assert own.value == search.cv_results_["mean_test_score"][0]
    assert all(0.1 <= trial.params["quality"] <= 0.5 for trial in trials)


def test_a_resumed_search_does_not_sample_from_own_values_outside_its_space(
    tmp_path: Path,
) -> None:
    settings = {"space": {"quality": (0.1, 0.5)}, "storage": str(tmp_path / "a.db")}
    first = made(estimator=Scripted(quality=0.77), **settings).start(X, Y)
    for _ in range(2):
        first.tell(first.ask())
    again = made(estimator=Scripted(quality=0.77), **settings).start(X, Y)
    assert [trial.params == {} for trial in again.study.trials] == [True, False]
    assert 0.1 <= again.ask().params["quality"] <= 0.5


def test_own_values_are_costed_with_the_space() -> None:
    # Theorem F2: own epochs cost something else than those of the space.
    estimator = DPLogisticRegression(solver="sgd", epochs=30, batch_size=0.05)
    space = {"epochs": (2, 6), "learning_rate": (0.1, 1.0, "log")}
    plan = made(space, estimator, epsilon=2.0, n_trials=2)._make_plan(2000, 3)
    assert {"epochs": 30, "learning_rate": None} in [
        {name: values[0] for name, values in one.items()}
        for one in plan.candidates.spaces
        if all(isinstance(values, list) for values in one.values())
    ]
    assert plan.total.epsilon(1e-5) <= 2.0
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(2000, 3))
    search = made(space, estimator, epsilon=2.0, n_trials=2).fit(rows, rows[:, 0] > 0)
    assert search.cv_results_["params"][0] == {"epochs": 30, "learning_rate": None}
    assert search.privacy_.epsilon_spent <= 2.0


def test_each_dict_of_a_list_is_costed_and_tried(tmp_path: Path) -> None:
    # Theorem F2: candidates of both dicts cost what the plan says, resumed or not.
    estimator = DPLogisticRegression(solver="sgd", batch_size=0.05)
    space = [
        {"epochs": (1, 3), "max_grad_norm": [0.5, 1.0]},
        {"epochs": (2, 4), "learning_rate": (0.1, 1.0, "log")},
    ]
    rows = np.random.default_rng(0).normal(size=(2000, 3))
    for storage in (None, str(tmp_path / "a.db")):
        settings = {"epsilon": 20.0, "n_trials": 8, "sampler": "auto", "storage": storage}
        search = made(space, estimator, try_own_values=False, **settings)
        if storage is not None:
            first = search.start(rows, rows[:, 0] > 0)
            begun = [first.ask({"learning_rate": 0.3}), *(first.ask() for _ in range(3))]
            assert (
                begun[0].params["learning_rate"] == 0.3 and "max_grad_norm" not in begun[0].params
            )
            for trial in begun:
                first.tell(trial)
        search.fit(rows, rows[:, 0] > 0)
        params = search.cv_results_["params"]
        assert len(params) == 8
        assert {tuple(sorted(each)) for each in params} == {
            ("epochs", "max_grad_norm"),
            ("epochs", "learning_rate"),
        }
        masked = search.cv_results_["param_max_grad_norm"].mask
        assert list(masked) == ["max_grad_norm" not in each for each in params]
        assert search.privacy_.epsilon_spent <= 20.0


# The default is a Gaussian process where torch is there.
@pytest.mark.parametrize("sampler", ["auto", optuna.samplers.RandomSampler(seed=3)], ids=str)
def test_samplers_find_what_is_better(sampler: Any) -> None:
    search = made(sampler=sampler, n_trials=12).fit(X, Y)
    assert search.best_params_["quality"] > 0.7
    scores = search.cv_results_["mean_test_score"]
    assert scores.shape == (12,)
    np.testing.assert_array_equal(scores, [trial.value for trial in search.study_.trials])


def test_bad_parameters_before_data() -> None:
    for more, message in (
        ({"n_trials": 0}, "n_trials must be"),
        ({"batch_size": 0}, "batch_size must be"),
        ({"sampler": "best"}, "sampler must be one of"),
        ({"callbacks": 3}, "callbacks must be a list of functions"),
        ({"storage": "x", "tuning_fraction": 0.3}, "tuning_fraction must be None with a storage"),
        ({"space": {"quality": "x"}}, "param_space"),
        ({"space": {"other": (0.1, 1.0)}}, "param_space must name parameters"),
        ({"space": {"epsilon": [1.0]}}, "param_space must leave 'epsilon' to the search"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            made(**more).fit(X, Y)


def test_without_optuna_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(ModuleNotFoundError, match=r"adaptive.*pip install 'skdptune\[pareto\]'"):
        made().fit(X, Y)
    assert made(epsilon=1.0).plan(600, 3, compare=False).epsilon <= 1.0


def test_without_a_space_the_estimator_suggests_one() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(2000, 3))
    search = DPAdaptiveSearchCV(DPLogisticRegression(), epsilon=1.0, delta=1e-5, n_trials=3)
    with pytest.raises(ValueError, match="param_space must be given for a session"):
        search.start(rows, rows[:, 0] > 0)
    with pytest.raises(ValueError, match="param_space must be given with a storage"):
        changed(search, storage="x").fit(rows, rows[:, 0] > 0)
    plan = changed(search, storage=None).plan(2000, 3)
    assert "Suggested: " in str(plan)
    search.fit(rows, rows[:, 0] > 0)
    assert search.privacy_.epsilon_spent <= 1.0


def test_trials_are_released_clipped_and_at_one_time(noisy: Any) -> None:
    trials = noisy.study_.trials
    values = [trial.value for trial in trials]
    assert 0.0 == min(values) < max(values) <= 1.0
    assert (
        len({date for one in trials for date in (one.datetime_start, one.datetime_complete)}) == 1
    )
    assert {trial.state.name for trial in trials} == {"COMPLETE"}
    assert all(trial.intermediate_values == {} for trial in trials)


def test_callbacks_see_what_is_released_and_may_stop() -> None:
    seen = []

    def callback(study: Any, trial: Any) -> None:
        seen.append((len(study.trials), trial.number, trial.value))
        if trial.number == 2:
            study.stop()

    search = made(callbacks=[callback]).fit(X, Y)
    assert [one[:2] for one in seen] == [(1, 0), (2, 1), (3, 2)]
    assert [one[2] for one in seen] == [trial.value for trial in search.study_.trials]
    # What was not used is paid for.
    assert search.privacy_.profile == made().privacy_profile(600, 3)


@pytest.mark.filterwarnings("ignore")
def test_the_study_is_drawn_and_analysed(noisy: Any) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    from optuna.visualization import matplotlib as drawn

    study = noisy.study_
    assert drawn.plot_optimization_history(study) is not None
    assert study.best_value == max(trial.value for trial in study.trials)
    again = pickle.loads(pickle.dumps(noisy)).study_.trials
    assert [trial.value for trial in again] == [trial.value for trial in study.trials]


def test_a_seed_repeats_and_progress_is_shown(
    noisy: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    other = made(epsilon=0.5, n_trials=8, batch_size=1, verbose=2).fit(X, Y)
    assert noisy.cv_results_["params"] == other.cv_results_["params"]
    assert noisy.best_score_ == other.best_score_
    shown = capsys.readouterr().err
    assert "[1/8] quality=0." in shown and "[8/8] quality=0." in shown


# Storage -------------------------------------------------------------------------------------


class Killing(Scripted):
    """Counts its fits to the data, and kills its process in one of them."""

    made, last = 0, 0

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        # Fits of made-up records are of few.
        if len(y) > 400:
            Killing.made += 1
            if Killing.made == Killing.last:
                os.kill(os.getpid(), signal.SIGKILL)
        return super().fit(X, y)


def killed(tmp_path: Path, at: int) -> Path:
    path = tmp_path / "search.db"
    Killing.last = at
    assert Forked(lambda: resumed(path)).exit() == -signal.SIGKILL
    Killing.last = 0
    return path


def resumed(path: Path, **more: Any) -> DPAdaptiveSearchCV:
    Killing.made = 0
    return made(estimator=Killing(), n_trials=5, storage=str(path), **more).fit(X, Y)


def test_killed_search_is_resumed_without_repeating_a_fit(tmp_path: Path) -> None:
    # Theorem G6: in the midst of the fourth fit, which is spent.
    path = killed(tmp_path, 4)
    search = resumed(path)
    # 3 were told and 1 was lost, 1 is left, and the final fit.
    assert Killing.made == 2
    states = [trial.state.name for trial in search.study_.trials]
    assert states == ["COMPLETE"] * 3 + ["FAIL", "COMPLETE"]
    assert search.privacy_.epsilon_spent <= 50.0
    assert len(search.cv_results_["params"]) == 4
    assert sum(name.startswith("begun:") for name in search.study_.user_attrs) == 5
    with pytest.raises(ValueError, match="Its final fit is paid for"):
        resumed(path)


def test_a_resumed_search_has_the_same_plan(tmp_path: Path) -> None:
    path = tmp_path / "search.db"
    made(estimator=Killing(), n_trials=5, storage=str(path)).start(X, Y)
    for more, name in (
        ({"epsilon": 40.0}, "epsilon"),
        ({"cv": 0.3}, "cv"),
        ({"space": {"quality": (0.2, 0.9)}}, "param_space"),
    ):
        with pytest.raises(ValueError, match=f"with the same .*{name}.*; got 'adaptive_search'"):
            made(**{"estimator": Killing(), "n_trials": 5, "storage": str(path), **more}).fit(X, Y)


@pytest.mark.slow
def test_seeded_trials_of_a_resumed_search_have_noise_of_their_own(tmp_path: Path) -> None:
    # Theorem F9: no published object holds a seed or a generator of its noise.
    path = killed(tmp_path, 3)
    search = resumed(path)
    exact = {round(one, 6) for one in search.cv_results_["mean_test_score"]}
    assert len(exact) == len(search.cv_results_["params"])
    numbers = [v["number"] for k, v in search.study_.user_attrs.items() if k.startswith("begun:")]
    assert sorted(numbers) == list(range(5))


def test_files_of_earlier_versions_go_on_unless_they_pruned(tmp_path: Path) -> None:
    # Theorem G6: their notes count as they were paid for.
    path = str(tmp_path / "search.db")
    session = made(storage=path).start(X, Y)
    score = session.tell(session.ask())
    study = optuna.load_study(study_name=None, storage=f"sqlite:///{path}")
    (note,) = (name for name in study.user_attrs if name.startswith("begun:"))
    study.set_user_attr(note, {**study.user_attrs[note], "shares": ["1"]})
    again = made(storage=path).start(X, Y)
    assert again.n_left == 5
    again.tell(again.ask())
    assert again.finish().cv_results_["mean_test_score"][0] == score
    path = str(tmp_path / "pruned.db")
    study = made(storage=path).start(X, Y).study
    study.set_user_attr("plan", {**study.user_attrs["plan"], "pruner": "'halving'"})
    with pytest.raises(ValueError, match="with the same pruner; got 'adaptive_search'"):
        made(storage=path).start(X, Y)


def test_storages_of_optuna_are_taken(tmp_path: Path) -> None:
    journal = optuna.storages.journal.JournalFileBackend(str(tmp_path / "journal"))
    for storage in (
        optuna.storages.JournalStorage(journal),
        optuna.storages.RDBStorage(f"sqlite:///{tmp_path}/b.db"),
    ):
        session = made(storage=storage, study_name="mine").start(X, Y)
        session.tell(session.ask())
        again = made(storage=storage, study_name="mine").start(X, Y)
        assert again.n_left == 5
        with pytest.raises(RuntimeError, match="storage must be used by one process at a time"):
            session.tell(session.ask())
        search = again.finish()
        assert search.study_.study_name == "mine"


def test_a_storage_holds_no_times(tmp_path: Path) -> None:
    search = made(storage=str(tmp_path / "a.db")).fit(X, Y)
    stored = optuna.load_study(study_name=None, storage=f"sqlite:///{tmp_path}/a.db")
    dates = [(trial.datetime_start, trial.datetime_complete) for trial in stored.trials]
    assert len({date for pair in dates for date in pair}) == 1
    assert [t.value for t in stored.trials] == list(search.cv_results_["mean_test_score"])


# Audits --------------------------------------------------------------------------------------


def audited(estimator: Any, **more: Any) -> DPAdaptiveSearchCV:
    settings = {
        "delta": DELTA,
        "n_public": N_PUBLIC,
        "n_trials": 2,
        "sampler": "random",
        "tuning_fraction": None,
        "choose_by": "max",
        **more,
    }
    return flat(DPAdaptiveSearchCV, estimator, {"cut": [10.0]}, **settings)


def best_noisy(search: Any) -> float:
    """Return the sum of the exact statistics that the noisy scores are of."""
    return float(np.sum(search.cv_results_["mean_test_score"]))


@pytest.mark.slow
def test_scores_of_whole_searches_stay_below_the_report() -> None:
    # Theorem G6: the scores, of models that tell nothing.
    search = DPAdaptiveSearchCV(
        CutOnly(noise=50.0),
        {"cut": [0.5]},
        scoring=MIDDLE,
        delta=DELTA,
        n_public=N_PUBLIC,
        n_trials=2,
        cv=2,
        strategy=AdaptiveTrials(sampler="random", score_epsilon=2.0, choose_by="max"),
    )
    seen = published(search, best_noisy, 1000)
    assert lower_bound(*seen[:2]) <= seen[2]


@pytest.mark.slow
def test_models_of_whole_searches_stay_below_the_report() -> None:
    # Theorem G6: the final fit, and public scores of fits that a sum tells of.
    search = audited(NoisySum(noise=1.0))
    seen = published(
        search, lambda one: best_noisy(one) + 0.2 * one.best_estimator_.sum_, 1000, **PUBLIC
    )
    assert lower_bound(*seen[:2]) <= seen[2]


@pytest.mark.slow
def test_audit_catches_a_fit_with_too_little_noise() -> None:
    search = audited(NoisySum(noise=4.0, true_noise=0.05))
    seen = published(search, lambda one: one.best_estimator_.sum_, 1000, **PUBLIC)
    assert lower_bound(*seen[:2]) > seen[2]


def test_callbacks_of_a_search_within_a_search_hear_nothing() -> None:
    # How often they were called would show the secret number of runs.
    heard: list[Any] = []
    strategy = AdaptiveTrials(sampler="random", callbacks=[lambda *told: heard.append(told)])
    inner = made(epsilon=None, n_trials=2, estimator=Scripted(epsilon=1.0, delta=1e-6))
    inner.set_params(strategy=strategy)
    outer = DPRandomSearchCV(
        inner,
        {"estimator__mark": ["a", "b"]},
        epsilon=None,
        delta=DELTA,
        random_state=0,
        strategy=RandomRuns(tuning_fraction=None),
    )
    outer.fit(X, Y)
    assert heard == []
    inner.fit(X, Y)
    assert len(heard) > 0


# Sessions ----------------------------------------------------------------------------------------


def started(**more: Any) -> Any:
    return made(**{"n_trials": 3, **more}).start(X, Y)


def test_own_optimiser_drives_the_search() -> None:
    # Theorem G6: candidates chosen by noisy scores, and a search that is resumed.
    session = started()
    for quality in (0.3, 0.85, 0.6):
        trial = session.ask({"quality": quality})
        assert trial.params == {"quality": quality}
        score = session.tell(trial)
        assert (trial.score, trial.is_told) == (score, True)
        assert abs(score - quality) < 0.2
    assert session.n_left == 0
    search = session.finish()
    assert search.best_params_ == {"quality": 0.85}
    assert search.privacy_ == session.privacy
    assert [one["quality"] for one in search.cv_results_["params"]] == [0.3, 0.85, 0.6]
    assert len(search.study_.trials) == len(session.study.trials) == 3
    assert search.predict(X).shape == (600,)


def test_more_than_is_paid_for_is_refused() -> None:
    session = started()
    trials = [session.ask() for _ in range(3)]
    with pytest.raises(BudgetExceededError, match="got a call after 3 trials. Give more n_trials"):
        session.ask()
    session.tell(trials[1])
    with pytest.raises(ValueError, match="trial must belong to this session and be reported once"):
        session.tell(trials[1])
    for other in (started().ask(), copy.copy(trials[0]), copy.deepcopy(trials[0])):
        with pytest.raises(
            ValueError, match="trial must belong to this session and be reported once"
        ):
            session.tell(other)
    with pytest.raises(TypeError, match="trial must be one that ask has returned; got 3"):
        session.tell(3)


def test_a_session_ends_once() -> None:
    session = started()
    with pytest.raises(RuntimeError, match="tell must be called before finish"):
        session.finish()
    session.tell(session.ask())
    search = session.finish()
    assert len(search.cv_results_["params"]) == 1
    for use in (session.ask, session.finish, lambda: session.tell(None)):
        with pytest.raises(RuntimeError, match="session must be used before finish"):
            use()
    assert repr(session) == "AdaptiveSearchSession(n_told=1, n_left=2)"


def test_threads_spend_no_more_than_is_paid_for() -> None:
    # Theorem G6: candidates chosen by noisy scores, and a search that is resumed.
    from concurrent.futures import ThreadPoolExecutor

    session = started()
    most = session.n_left

    def drive(_: int) -> int:
        try:
            trial = session.ask()
        except BudgetExceededError:
            return 0
        session.tell(trial)
        return 1

    with ThreadPoolExecutor(8) as pool:
        made = sum(pool.map(drive, range(most + 4)))
    assert made == most == 3
    with ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(session.finish) for _ in range(4)]
    problems = [future.exception() for future in futures]
    assert sum(problem is None for problem in problems) == 1
    (search,) = [future.result() for future in futures if future.exception() is None]
    assert len(search.cv_results_["params"]) == most
    assert len({trial.number for trial in search.study_.trials}) == most
    # What is kept holds no lock.
    assert pickle.loads(pickle.dumps(search)).best_params_ == search.best_params_
    assert copy.deepcopy(search).best_params_ == search.best_params_


def test_parameters_of_the_space_alone() -> None:
    session = started()
    with pytest.raises(ValueError, match=r"params\['quality'\] must be in param_space"):
        session.ask({"quality": 2.0})
    with pytest.raises(ValueError, match="params must be of param_space"):
        session.ask({"epsilon": 2.0})
    assert session.n_left == 3
