"""A session: any driver, as many trials as are paid for."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from skdptune.accounting import BudgetExceededError
from skdptune.model_selection import DPAdaptiveSearchCV
from tests.flat import flat
from tests.model_selection.learners import Scripted, table

pytest.importorskip("optuna")

X, Y = table(600)
DELTA = 1e-5


def started(**more: Any) -> Any:
    settings = {"epsilon": 50.0, "delta": DELTA, "n_trials": 3, "random_state": 0}
    settings |= {"sampler": "tpe", **more}
    return flat(DPAdaptiveSearchCV, Scripted(), {"quality": (0.1, 0.9)}, **settings).start(X, Y)


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
    with pytest.raises(ValueError, match="trial must be one of this session, told once"):
        session.tell(trials[1])
    for other in (started().ask(), copy.copy(trials[0]), copy.deepcopy(trials[0])):
        with pytest.raises(ValueError, match="trial must be one of this session, told once"):
            session.tell(other)
    with pytest.raises(TypeError, match="trial must be one that ask has returned; got 3"):
        session.tell(3)


def test_what_pruned_trials_leave_is_given_to_others() -> None:
    class Never:
        def prune(self, study: Any, trial: Any) -> bool:
            return True

    optuna = pytest.importorskip("optuna")
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
    from fractions import Fraction

    session = started(n_trials=2, pruner=pruner)
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
    assert made == most
    assert session._allowance.spent <= 2 and session._allowance.reserved == Fraction(0)
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


def test_a_race_that_is_left_goes_on_at_the_end() -> None:
    session = started(n_trials=3, pruner="hyperband")
    trials = [session.ask() for _ in range(4)]
    for trial in trials[1:]:
        session.tell(trial)
    # One was never told: the others race without it.
    search = session.finish()
    assert len(search.cv_results_["params"]) == 3
    assert max(search.cv_results_["resource"]) == 1.0
    assert search.best_params_ in [trial.params for trial in trials[1:]]


def test_parameters_of_the_space_alone() -> None:
    session = started()
    with pytest.raises(ValueError, match=r"params\['quality'\] must be in param_space"):
        session.ask({"quality": 2.0})
    with pytest.raises(ValueError, match="params must be of param_space"):
        session.ask({"epsilon": 2.0})
    assert session.n_left == 3


def test_a_fit_that_fails_scores_the_worst() -> None:
    # Theorem F4.
    from tests.model_selection.learners import Loud

    session = DPAdaptiveSearchCV(
        Loud(), {"quality": (0.1, 0.9)}, epsilon=50.0, delta=DELTA, n_trials=2, random_state=0
    ).start(X, Y)
    assert abs(session.tell(session.ask({"quality": 0.1}))) < 0.2
