"""DPAdaptiveSearchCV: what it tries, shows, pays for, how it is resumed, and who may drive it."""

from __future__ import annotations

import copy
import math
import pickle
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

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
LEARNERS = Path(__file__).with_name("learners.py")
X, Y = table(600)
SPACE = {"quality": (0.1, 0.9)}
# A total for which planning takes long is that of many tests: it is planned once.
RACES = {"epsilon": 0.5, "n_trials": 8, "pruner": "halving"}


def made(space: Any = None, estimator: Any = None, **more: Any) -> DPAdaptiveSearchCV:
    settings = {"epsilon": 50.0, "delta": 1e-5, "n_trials": 6, "random_state": 0}
    settings |= {"sampler": "tpe", **more}
    return flat(DPAdaptiveSearchCV, estimator or Scripted(), space or SPACE, **settings)


@pytest.fixture(scope="module")
def raced() -> DPAdaptiveSearchCV:
    return made(**RACES).fit(X, Y)


class Shifts(Scripted):
    """Notes the shift of the Gaussian release that each fit costs, and its number of records."""

    made: list[tuple[float, int]] = []

    def fit(self, X: Any, y: Any) -> Any:
        Shifts.made.append((1.0 / noise_for_budget(self.epsilon, self.delta)[0], len(y)))
        return super().fit(X, y)


@pytest.mark.parametrize(
    ("pruner", "batch_size"),
    [
        pytest.param(None, 1, id="none"),
        pytest.param("hyperband", 3, id="hyperband"),
        pytest.param("halving", 1, id="halving", marks=pytest.mark.slow),
        pytest.param(optuna.pruners.MedianPruner(), 1, id="optuna's", marks=pytest.mark.slow),
    ],
)
def test_fits_that_are_made_are_paid_for(pruner: Any, batch_size: int) -> None:
    # Theorem G6.
    more = {"pruner": pruner, "batch_size": batch_size, "epsilon": 2.0, "cv": 0.2}
    search = made(estimator=Shifts(delta=1e-6), **more)
    plan = search._make_plan(600, 3)
    Shifts.made.clear()
    search.fit(X, Y)
    # Fits of made-up data are of few records, and the last one is on all.
    fits = [shift for shift, size in Shifts.made if 400 < size < 600]
    if pruner is None:
        assert len(fits) == len(search.study_.trials) == 6
        most = 6 * fits[0] ** 2
    else:
        most = 6 * plan.cost.run_setting.curve.shift**2
        assert 6 <= len(search.study_.trials) <= search._strategy().public_count(plan) <= 26
    assert math.fsum(shift**2 for shift in fits) <= most * (1.0 + 1e-9)
    assert search.privacy_.epsilon_spent <= 2.0
    assert search.privacy_.profile == search.privacy_profile(600, 3)


@pytest.mark.parametrize("pruner", [None, "halving"])
def test_own_values_come_first_where_the_space_does_not_hold_them(pruner: Any) -> None:
    # Theorem N5: what is best of all is found, and what a table of noise falls back to.
    search = made({"quality": (0.1, 0.5)}, Scripted(quality=0.77), pruner=pruner).fit(X, Y)
    row = search.cv_results_["params"].index({"quality": 0.77})
    assert search.best_params_ == {"quality": 0.77}
    assert search.best_estimator_.quality == 0.77
    trials = list(search.study_.trials)
    # It leaves optuna all parameters to sample from and to analyse.
    assert set(optuna.search_space.intersection_search_space(trials)) == {"quality"}
    own = trials.pop(row)
    assert (own.params, own.state.name) == ({}, "PRUNED")
    assert own.value == search.cv_results_["mean_test_score"][row]
    assert all(0.1 <= trial.params["quality"] <= 0.5 for trial in trials)
    if pruner is None:
        assert row == 0
    else:
        # Races never end them.
        assert search.cv_results_["resource"][row] == 1.0


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


@pytest.mark.parametrize(
    "values",
    [[0.2, 0.5, 0.9], stats.beta(2, 2), optuna.distributions.FloatDistribution(0.1, 0.9)],
    ids=["list", "beta", "optuna"],
)
def test_all_forms_of_a_space(values: Any) -> None:
    search = made({"quality": values, "mark": ["a", ("b",), None]}).fit(X, Y)
    assert len(search.cv_results_["params"]) == 6
    chosen = search.cv_results_["params"][search.best_index_]
    assert chosen == search.best_params_
    assert search.best_estimator_.quality == chosen["quality"]
    assert {type(one["mark"]) for one in search.cv_results_["params"]} <= {str, tuple, type(None)}


# The default is a Gaussian process where torch is there.
@pytest.mark.parametrize("sampler", ["auto", optuna.samplers.RandomSampler(seed=3)], ids=str)
def test_samplers_find_what_is_better(sampler: Any) -> None:
    search = made(sampler=sampler, n_trials=12).fit(X, Y)
    assert search.best_params_["quality"] > 0.7
    scores = search.cv_results_["mean_test_score"]
    assert scores.shape == (12,)
    np.testing.assert_array_equal(scores, [trial.value for trial in search.study_.trials])


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"n_trials": 0}, "n_trials must be"),
        ({"batch_size": 0}, "batch_size must be"),
        ({"sampler": "best"}, "sampler must be one of"),
        ({"pruner": "best"}, "pruner must be one of"),
        ({"pruner": "halving", "epsilon": None}, "pruner must be None without an epsilon"),
        (
            {"pruner": "halving", "delta": 0.0},
            "pruner must be None without an epsilon and a delta",
        ),
        ({"callbacks": 3}, "callbacks must be a list of functions"),
        ({"storage": "x", "tuning_fraction": 0.3}, "tuning_fraction must be None with a storage"),
        ({"space": {"quality": "x"}}, "param_space"),
        ({"space": {"other": (0.1, 1.0)}}, "param_space must name parameters"),
        ({"space": {"epsilon": [1.0]}}, "param_space must leave 'epsilon' to the search"),
    ],
    ids=str,
)
def test_bad_parameters_before_data(more: Any, message: str) -> None:
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


def test_trials_are_released_clipped_and_at_one_time(raced: Any) -> None:
    trials = raced.study_.trials
    values = [trial.value for trial in trials]
    assert 0.0 == min(values) < max(values) <= 1.0
    assert (
        len({date for one in trials for date in (one.datetime_start, one.datetime_complete)}) == 1
    )
    for trial in trials:
        assert list(trial.intermediate_values) == [1, 3, 9][: len(trial.intermediate_values)]
        assert trial.value == list(trial.intermediate_values.values())[-1]
        assert (trial.state.name == "COMPLETE") == (len(trial.intermediate_values) == 3)


def test_callable_refit_sees_what_is_released() -> None:
    seen: list[Any] = []

    def last(results: dict[str, Any]) -> int:
        seen.append(results)
        return len(results["params"]) - 1

    search = made(refit=last).fit(X, Y)
    assert search.best_index_ == 5
    assert set(seen[0]) <= {
        *("params", "param_quality", "mean_test_score", "std_test_score"),
        *("rank_test_score", "split0_test_score"),
    }
    pruned = made(refit=last, **RACES).fit(X, Y)
    assert pruned.cv_results_["resource"][pruned.best_index_] == 1.0


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
def test_the_study_is_drawn_and_analysed(raced: Any) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    from optuna.visualization import matplotlib as drawn

    study = raced.study_
    assert drawn.plot_optimization_history(study) is not None
    assert drawn.plot_intermediate_values(study) is not None
    assert study.best_value == max(trial.value for trial in study.trials if trial.value)
    again = pickle.loads(pickle.dumps(raced)).study_.trials
    assert [trial.value for trial in again] == [trial.value for trial in study.trials]


def test_a_seed_repeats_and_progress_counts_what_was_pruned(
    raced: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    other = made(batch_size=1, verbose=2, **RACES).fit(X, Y)
    assert raced.cv_results_["params"] == other.cv_results_["params"]
    assert raced.best_score_ == other.best_score_
    shown = capsys.readouterr().err
    assert "[1] quality=0." in shown
    assert ", pruned" in shown
    assert "0 left" in shown


def test_a_pruner_needs_a_curve() -> None:
    class OneDelta(Scripted):
        def privacy_profile(self, n_samples: int, n_features: int | None = None) -> Any:
            return PrivacyProfile.approximate(self.epsilon, self.delta)

    with pytest.raises(
        ValueError, match="pruner must be None for an estimator whose cost exceeds"
    ):
        made(estimator=OneDelta(), pruner="halving").plan(600, 3)


# Storage -------------------------------------------------------------------------------------

KILLED = """
import importlib.util, os, signal, sys
from skdptune.model_selection import AdaptiveTrials, DPAdaptiveSearchCV

# By its path: another package named tests may be the one that is found.
spec = importlib.util.spec_from_file_location("learners", {learners!r})
learners = sys.modules["learners"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(learners)
Scripted, table = learners.Scripted, learners.table

class Killing(Scripted):
    def fit(self, X, y, sample_weight=None):
        if len(y) > 400:
            with open({log!r}, "a") as log:
                log.write("fit\\n")
            if len(open({log!r}).readlines()) == {at}:
                os.kill(os.getpid(), signal.SIGKILL)
        return super().fit(X, y)

X, y = table(600)
DPAdaptiveSearchCV(
    Killing(), {{"quality": (0.1, 0.9)}}, epsilon=50.0, delta=1e-5, n_trials=5,
    random_state=0, strategy=AdaptiveTrials(storage={path!r}, pruner={pruner!r}),
).fit(X, y)
"""


class Killing(Scripted):
    """Stands for the class of the same name in the process that is killed."""

    made = 0

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        Killing.made += len(y) > 400
        return super().fit(X, y)


def killed(tmp_path: Path, at: int, pruner: Any = None) -> Path:
    path, log = tmp_path / "search.db", tmp_path / "log"
    script = KILLED.format(
        learners=str(LEARNERS), log=str(log), at=at, path=str(path), pruner=pruner
    )
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    return path


def resumed(path: Path, **more: Any) -> DPAdaptiveSearchCV:
    Killing.made = 0
    return made(estimator=Killing(), n_trials=5, storage=str(path), **more).fit(X, Y)


@pytest.mark.parametrize("pruner", [None, pytest.param("halving", marks=pytest.mark.slow)])
def test_killed_search_is_resumed_without_repeating_a_fit(tmp_path: Path, pruner: Any) -> None:
    # Theorem G6: in the midst of the fourth fit, which is spent.
    path = killed(tmp_path, 4, pruner)
    search = resumed(path, pruner=pruner)
    states = [trial.state.name for trial in search.study_.trials]
    assert states.count("FAIL") == 1
    assert search.privacy_.epsilon_spent <= 50.0
    if pruner is None:
        # 3 were told and 1 was lost, 1 is left, and the final fit.
        assert Killing.made == 2
        assert states == ["COMPLETE"] * 3 + ["FAIL", "COMPLETE"]
        assert len(search.cv_results_["params"]) == 4
    notes = [v["shares"] for k, v in search.study_.user_attrs.items() if k.startswith("begun:")]
    from fractions import Fraction

    assert sum(Fraction(share) for shares in notes for share in shares) <= 5
    assert len(notes) == len(search.study_.trials)
    with pytest.raises(ValueError, match="Its final fit is paid for"):
        resumed(path, pruner=pruner)


@pytest.mark.slow
def test_killed_in_the_final_fit_there_is_no_other(tmp_path: Path) -> None:
    # Theorem G6.
    path = killed(tmp_path, 6)
    with pytest.raises(ValueError, match="Its final fit is paid for, even if it did not"):
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
    # Theorem F9.
    path = killed(tmp_path, 3)
    search = resumed(path)
    exact = {round(one, 6) for one in search.cv_results_["mean_test_score"]}
    assert len(exact) == len(search.cv_results_["params"])
    numbers = [v["number"] for k, v in search.study_.user_attrs.items() if k.startswith("begun:")]
    assert sorted(numbers) == list(range(5))


def test_scores_of_a_race_outlast_a_crash(tmp_path: Path) -> None:
    # Theorem G6: what was paid for and shown is neither lost nor made again.
    path = str(tmp_path / "search.db")
    session = made(storage=path, pruner="halving").start(X, Y)
    told = [session.ask() for _ in range(3)]
    scores = [session.tell(trial) for trial in told]
    assert session.study.trials == []
    again = made(storage=path, pruner="halving").start(X, Y)
    assert [trial.state.name for trial in again.study.trials] == ["PRUNED"] * 3
    np.testing.assert_allclose([one.score for one in again._told], scores)
    assert again._allowance.spent == pytest.approx(3 / 13)
    # The estimator's own values have not come to their end, and are tried again.
    assert again.ask().params == told[0].params == {"quality": 0.5}


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
    # Theorem G6.
    session = started()
    for quality in (0.3, 0.85, 0.6):
        trial = session.ask({"quality": quality})
        assert trial.params == {"quality": quality}
        score = session.tell(trial)
        assert (trial.scores, trial.is_told) == ((score,), True)
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


def test_what_pruned_trials_leave_is_given_to_others() -> None:
    class Never:
        def prune(self, study: Any, trial: Any) -> bool:
            return True

    kind = type("Always", (Never, optuna.pruners.BasePruner), {})
    session = started(pruner=kind())
    told = []
    while session.n_left:
        told.append(session.ask())
        session.tell(told[-1])
    # The first has the estimator's own values, and comes to its end.
    assert [trial.is_pruned for trial in told] == [False] + [True] * 11
    assert [len(trial.scores) for trial in told] == [3] + [1] * 11
    search = session.finish()
    assert search.best_params_ == {"quality": 0.5}
    assert search.best_index_ == 0
    np.testing.assert_allclose(search.cv_results_["resource"], [1.0] + [1.0 / 9.0] * 11)
    deviations = search.cv_results_["std_test_score"]
    np.testing.assert_allclose(deviations[1:], 3.0 * deviations[0])


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


@pytest.mark.parametrize("pruner", [None, "halving"])
def test_threads_spend_no_more_than_is_paid_for(pruner: Any) -> None:
    # Theorem G6.
    from concurrent.futures import ThreadPoolExecutor

    session = started(pruner=pruner)
    most = session.n_left

    told: list[Any] = []

    def drive(_: int) -> int:
        try:
            trial = session.ask()
        except BudgetExceededError:
            return 0
        session.tell(trial)
        told.append(trial)
        return 1

    with ThreadPoolExecutor(8) as pool:
        made = sum(pool.map(drive, range(most + 4)))
    assert made == most
    # Of each trial the shares of the rungs that it has climbed.
    shares = [1] if pruner is None else [1 / 13, 4 / 13, 1]
    assert sum(shares[len(trial.scores) - 1] for trial in told) <= 3 + 1e-9
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


def test_a_race_waits_for_all_of_its_trials_or_for_the_end() -> None:
    session = started(n_trials=3, pruner="halving", try_own_values=False)
    assert session.n_left == 15
    trials = [session.ask({"quality": 0.1 + 0.05 * place}) for place in range(15)]
    for trial in trials[:-1]:
        assert session.tell(trial) == trial.scores[-1]
        assert len(trial.scores) == 1
    assert len(session.study.trials) == 0
    session.tell(trials[-1])
    assert [len(trial.scores) for trial in trials].count(1) == 10
    assert [len(trial.scores) for trial in trials].count(3) == 1
    assert [trial.is_pruned for trial in trials].count(False) == 1
    assert session.n_left == 0
    # The best third by noisy scores, and of these again.
    first = sorted(trials, key=lambda trial: -trial.scores[0])[:5]
    assert {trial.number for trial in first} == {
        trial.number for trial in trials if len(trial.scores) > 1
    }
    search = session.finish()
    states = [trial.state.name for trial in search.study_.trials]
    assert (states.count("PRUNED"), states.count("COMPLETE")) == (14, 1)
    assert sorted(set(search.cv_results_["resource"].round(3))) == [0.111, 0.333, 1.0]


def test_parameters_of_the_space_alone() -> None:
    session = started()
    with pytest.raises(ValueError, match=r"params\['quality'\] must be in param_space"):
        session.ask({"quality": 2.0})
    with pytest.raises(ValueError, match="params must be of param_space"):
        session.ask({"epsilon": 2.0})
    assert session.n_left == 3
