"""A running budget has one owner: no copy, no pickle and no fork spends it again."""

from __future__ import annotations

import copy
import functools
import json
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from skdptune._running_budget import RunningBudget, one_at_a_time
from skdptune.accounting import BudgetFilter, GaussianFilter, PrivacyProfile, RenyiFilter
from skdptune.ledger import LedgerError, PrivacyLedger
from skdptune.linear_model import DPLogisticRegression
from skdptune.mechanisms import DoublingThreshold
from skdptune.model_selection import DoublingThresholdSearchCV, DPAdaptiveSearchCV, ThresholdRounds
from tests.flat import flat
from tests.model_selection.learners import Scripted, table

X, Y = table(600)
PART = PrivacyProfile.gaussian(0.1)


class Purse(RunningBudget):
    """Counts slowly, from a value that was read before."""

    def __init__(self) -> None:
        super().__init__()
        self.spent = 0

    @one_at_a_time
    def spend(self, some: int = 1, times: int = 1) -> int:
        """Spend in a way that fails if two threads do it at once."""
        known = self.spent
        time.sleep(1e-4)
        self.spent = known + some
        return self.spent if times == 1 else self.spend(some, times - 1)


def adaptive_session() -> Any:
    pytest.importorskip("optuna")
    settings = {"epsilon": 50.0, "delta": 1e-5, "n_trials": 3, "random_state": 0}
    search = flat(
        DPAdaptiveSearchCV, Scripted(), {"quality": (0.1, 0.9)}, sampler="random", **settings
    )
    return search.start(X, Y)


def doubling_session() -> Any:
    return DoublingThresholdSearchCV(
        DPLogisticRegression(solver="sgd", epochs=2),
        {"C": [0.1]},
        epsilon=2.0,
        delta=1e-5,
        random_state=0,
        strategy=ThresholdRounds(granularity=0.1),
    ).start(X, Y)


# For each class: its construction, and the calls that spend.
HOLDERS: dict[str, tuple[Callable[[], Any], list[Callable[[Any], Any]]]] = {
    "Purse": (Purse, [Purse.spend]),
    "BudgetFilter": (functools.partial(BudgetFilter, 0.1, 1.0), [lambda one: one.record(True)]),
    "GaussianFilter": (
        functools.partial(GaussianFilter, 1.0, 1e-5),
        [lambda one: one.record(PART)],
    ),
    "RenyiFilter": (
        functools.partial(RenyiFilter, 1.0, 1e-5, 16.0),
        [lambda one: one.record(PART)],
    ),
    "DoublingThreshold": (
        functools.partial(DoublingThreshold, sensitivity=0.1, epsilon=1.0),
        [lambda one: one.propose([0.9])],
    ),
    "DoublingThresholdSession": (
        doubling_session,
        [lambda one: one.propose([{"C": 0.1}]), lambda one: one.finish()],
    ),
    "AdaptiveSearchSession": (
        adaptive_session,
        [
            lambda one: one.ask(),
            lambda one: one.tell(None),
            lambda one: one.finish(),
            lambda one: one.run_all(),
            lambda one: one.n_left,
        ],
    ),
}


@pytest.fixture(params=HOLDERS)
def holder(request: pytest.FixtureRequest) -> tuple[Any, list[Callable[[Any], Any]]]:
    make, calls = HOLDERS[request.param]
    return make(), calls


def test_every_class_is_listed_here() -> None:
    found, waiting = set(), [RunningBudget]
    while waiting:
        kinds = waiting.pop().__subclasses__()
        waiting += kinds
        found |= {kind.__name__ for kind in kinds if not kind.__subclasses__()}
    assert found == set(HOLDERS)


@pytest.mark.parametrize(
    "duplicate",
    [copy.copy, copy.deepcopy, pickle.dumps, functools.partial(pickle.dumps, protocol=1)],
)
def test_no_copy_and_no_pickle(holder: Any, duplicate: Callable[[Any], Any]) -> None:
    # Theorem D3: candidates may be proposed by any optimiser.
    held, _ = holder
    name = type(held).__name__
    with pytest.raises(TypeError, match=f"{name} must be used where it was made; got a request"):
        duplicate(held)


def test_no_forked_process(holder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # Theorem D3: candidates may be proposed by any optimiser.
    held, calls = holder
    before, here = repr(held), os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: here + 1)
    for call in calls:
        with pytest.raises(RuntimeError, match="got a call in a forked one, which would spend"):
            call(held)
    monkeypatch.undo()
    assert repr(held) == before
    calls[0](held)
    assert repr(held) != before or type(held).__name__ in ("Purse", "AdaptiveSearchSession")


FORKS = """
import json, os, sys, warnings
warnings.simplefilter("ignore")
import numpy as np
from skdptune.linear_model import DPLogisticRegression
from skdptune.model_selection import *

kind, place = sys.argv[1:]
X = np.random.default_rng(0).normal(size=(600, 2))
estimator = DPLogisticRegression(solver="sgd", epochs=2)
settings = {"epsilon": 20.0, "delta": 1e-5, "random_state": 0}
if kind == "adaptive":
    settings |= {"n_trials": 3, "strategy": AdaptiveTrials(sampler="random")}
    search = DPAdaptiveSearchCV(estimator, {"C": (0.1, 1.0)}, **settings)
else:
    settings |= {"strategy": ThresholdRounds(granularity=0.1)}
    search = DoublingThresholdSearchCV(estimator, {"C": [0.1]}, **settings)
session = search.start(X, X[:, 0] > 0)
if kind == "adaptive":
    session.tell(session.ask())
children = []
for _ in range(3):
    child = os.fork()
    if not child:
        break
    children.append(child)
shown = []
try:
    if kind == "adaptive":
        while session.n_left:
            shown.append(session.tell(session.ask()))
    else:
        session.propose([{"C": 0.1}])
        shown.append("a round")
except RuntimeError:
    pass
try:
    session.finish()
    shown.append("a model")
except RuntimeError:
    pass
with open(place, "a") as file:
    file.write(json.dumps(shown) + "\\n")
if not children:
    os._exit(0)
for child in children:
    os.waitpid(child, 0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be forked")
@pytest.mark.parametrize(("kind", "n_shown"), [("adaptive", 3), ("doubling", 2)])
def test_four_forks_of_a_session_show_what_one_is_paid(
    tmp_path: Any, kind: str, n_shown: int
) -> None:
    # Theorem G6 and Theorem D3.
    if kind == "adaptive":
        pytest.importorskip("optuna")
    place = tmp_path / "shown"
    root = os.path.dirname(os.path.dirname(__file__))
    command = [sys.executable, "-c", FORKS, kind, str(place)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=root, timeout=300)
    assert done.returncode == 0, done.stderr
    shown = [json.loads(line) for line in place.read_text().splitlines()]
    assert sorted(map(len, shown)) == [0, 0, 0, n_shown]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be forked")
def test_a_fork_does_not_wait_for_a_thread_that_it_has_not() -> None:
    purse = Purse()
    with purse._turn, ThreadPoolExecutor(1) as pool:
        here = os.getpid()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "getpid", lambda: here + 1)
            problem = pool.submit(purse.spend).exception(timeout=60)
    assert isinstance(problem, RuntimeError)


def test_no_thread_sees_what_another_has_half_done() -> None:
    purse = Purse()
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: purse.spend(), range(40)))
    assert sorted(found) == list(range(1, 41))


class TestReservations:
    """Copies of a reservation refer to the same one, and none allows a second release."""

    @pytest.fixture(params=[copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
    def pair(self, request: pytest.FixtureRequest, tmp_path: Any) -> tuple[Any, Any]:
        place = tmp_path / "budget.ledger"
        ledger = PrivacyLedger.create(place, "patients", epsilon=1.0, delta=0.0)
        reservation = ledger.reserve(PrivacyProfile.pure(0.5), name="a mean")
        return reservation, request.param(reservation)

    def test_one_release_alone_is_made(self, pair: tuple[Any, Any]) -> None:
        first, second = pair
        with first:
            pass
        with pytest.raises(LedgerError, match="must be for a single release"):
            second.__enter__()
        assert first.ledger.remaining(0.0) == pytest.approx(0.5)

    def test_what_a_copy_has_read_is_not_given_back(self, pair: tuple[Any, Any]) -> None:
        first, second = pair
        second.mark_read()
        with pytest.raises(LedgerError, match="cannot be cancelled after it was marked as read"):
            first.cancel("a mistake")
