"""The optimiser of a Pareto search: evaluations, workers, failures, and what a crash leaves."""

from __future__ import annotations

import math
import os
import sys
import threading
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import cloudpickle
import joblib
import numpy as np
import pytest

optuna = pytest.importorskip("optuna")
pytest.importorskip("moocore")

from skdptune._progress import Progress  # noqa: E402
from skdptune.model_selection._pareto import _optimizer  # noqa: E402
from skdptune.model_selection._pareto._optimizer import (  # noqa: E402
    Evaluation,
    ParetoOptimizer,
    Record,
    Workers,
    checked_evaluation,
    perform,
)
from skdptune.model_selection._space import SearchSpace  # noqa: E402
from skdptune.model_selection._study import Heartbeat  # noqa: E402

# Another package may be named tests where workers look for it.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

SPACE = SearchSpace({"noise": (0.1, 10.0, "log"), "kind": ["a", "b"]})


def evaluate(params: dict[str, Any], number: int, seed: np.random.SeedSequence) -> Evaluation:
    coin = np.random.default_rng(seed).random()
    utility = 1.0 / (1.0 + params["noise"]) * (1.0 if params["kind"] == "a" else 0.8)
    return Evaluation(3.0 / params["noise"], (utility, utility * coin))


def optimizer(function: Any = evaluate, **given: Any) -> ParetoOptimizer:
    chosen = {"n_initial": 5, "n_iter": 10, "random_state": 0, **given}
    return ParetoOptimizer(function, SPACE, **chosen)


def ran(function: Any = evaluate, **given: Any) -> ParetoOptimizer:
    made = optimizer(function, **given)
    made.run()
    return made


def results(made: ParetoOptimizer) -> list[tuple[Any, ...]]:
    return [
        (record.number, record.params, record.evaluation.epsilon, record.evaluation.utilities)
        for record in made.records()
    ]


@pytest.mark.parametrize("moment", ["proposed", "evaluated", "failed", "half proposed"])
def test_what_a_crash_cut_off_is_repeated(moment: str) -> None:
    """A process that died with the sixth evaluation in hand, as the storage would show it."""
    storage = optuna.storages.InMemoryStorage()
    made = ran(n_iter=1, storage=storage)
    trial = made.study.ask(SPACE.distributions() if moment != "half proposed" else {})
    trial.set_user_attr("process", "elsewhere:1:gone")
    if moment in ("evaluated", "failed"):
        failure = "ValueError: bad" if moment == "failed" else None
        trial.set_user_attr("evaluation", asdict(Evaluation(3.0, (0.25,), failure=failure)))
    again = ran(storage=storage)
    assert [record.number for record in again.records()] == list(range(15))
    if moment in ("proposed", "half proposed"):
        assert results(again) == results(ran())
    else:
        assert again.records()[6].evaluation.utilities == (0.25,)
        assert (again.records()[6].evaluation.failure is None) == (moment == "evaluated")


def test_crash_while_a_crash_is_repaired_does_the_work_once() -> None:
    storage = optuna.storages.InMemoryStorage()
    made = ran(n_iter=1, storage=storage)
    lost = made.study.ask(SPACE.distributions())
    lost.set_user_attr("process", "elsewhere:1:gone")
    made.study.enqueue_trial(lost.params, user_attrs={"number": 6, "proposal": 6})
    assert results(ran(storage=storage)) == results(ran())


def test_old_proposal_without_a_process_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    storage = optuna.storages.InMemoryStorage()
    made = ran(n_iter=1, storage=storage)
    made.study.ask(SPACE.distributions())
    with Heartbeat(made.study):
        monkeypatch.setattr(_optimizer, "_LONGEST_PROPOSAL", 0.5)
        again = ran(storage=storage)
    assert sorted(record.number for record in again.records()) == list(range(15))
    assert {(n, str(p)) for n, p, *_ in results(again)} >= {
        (n, str(p)) for n, p, *_ in results(ran())[:7]
    }


def test_result_of_a_process_that_was_taken_for_dead_is_not_written_twice() -> None:
    storage = optuna.storages.InMemoryStorage()

    def outrun(params: dict[str, Any], number: int, seed: Any) -> Evaluation:
        if number == 7:
            study = optuna.load_study(study_name="pareto_search", storage=storage)
            study.tell(study.trials[-1].number, state=optuna.trial.TrialState.FAIL)
        return evaluate(params, number, seed)

    made = ran(outrun, storage=storage)
    assert 7 not in [record.number for record in made.records()]
    assert len(made.records()) == 15


def test_work_of_living_processes_is_left_to_them() -> None:
    storage = optuna.storages.InMemoryStorage()
    made = ran(n_iter=1, storage=storage)
    with Heartbeat(made.study) as other:
        trial = made.study.ask(SPACE.distributions())
        trial.set_user_attr("process", other.process)
        again = optimizer(n_iter=2, storage=storage)
        worker = threading.Thread(target=again.run)
        worker.start()
        time.sleep(0.5)
        assert worker.is_alive()
        trial.set_user_attr("evaluation", asdict(Evaluation(1.0, (0.5,))))
        made.study.tell(trial, [1.0, 0.5])
        worker.join(timeout=20)
        assert not worker.is_alive()
    assert len(again.records()) == 7


def test_interrupted_search_leaves_its_work_to_the_next() -> None:
    storage = optuna.storages.InMemoryStorage()

    def interrupted(params: dict[str, Any], number: int, seed: Any) -> Evaluation:
        if number == 7:
            raise KeyboardInterrupt
        return evaluate(params, number, seed)

    with pytest.raises(KeyboardInterrupt):
        optimizer(interrupted, storage=storage).run()
    assert results(ran(storage=storage)) == results(ran())


def test_batch_size_is_the_number_of_evaluations_that_run_together() -> None:
    together, most, lock = 0, 0, threading.Lock()

    def slow(params: dict[str, Any], number: int, seed: np.random.SeedSequence) -> Evaluation:
        nonlocal together, most
        with lock:
            together += 1
            most = max(most, together)
        time.sleep(0.02)
        with lock:
            together -= 1
        return evaluate(params, number, seed)

    made = optimizer(slow, batch_size=3, n_jobs=3)
    made.run()
    assert most == 3
    assert sorted(record.number for record in made.records()) == list(range(15))
    by_number = {record.number: record for record in made.records()}
    for record in ran().records()[:5]:
        assert by_number[record.number].params == record.params
        assert by_number[record.number].evaluation.utilities == record.evaluation.utilities


def test_search_of_failures_alone_ends_with_the_first_of_them() -> None:
    calls = []

    def broken(params: dict[str, Any], number: int, seed: Any) -> Evaluation:
        calls.append(number)
        raise RuntimeError("no data")

    with pytest.raises(ValueError, match=r"All 5 evaluations failed.*Error: no data"):
        ran(broken)
    assert calls == list(range(5))


def test_refused_proposals_are_not_evaluated() -> None:
    asked: list[dict[str, Any]] = []

    def noting(params: dict[str, Any], number: int, seed: Any) -> Evaluation:
        asked.append(params)
        return evaluate(params, number, seed)

    made = ran(noting, proposal_filter=lambda params: params["noise"] >= 1.0)
    assert len(asked) == 15 and min(params["noise"] for params in asked) >= 1.0
    assert [record.number for record in made.records()] == list(range(15))
    assert len(made.study.trials) > 15


def test_search_stops_after_too_many_refusals() -> None:
    left = [8]

    def within(params: dict[str, Any]) -> bool:
        left[0] -= 1
        return left[0] >= 0

    made = ran(proposal_filter=within, max_refusals=3)
    assert len(made.records()) == 8
    assert len(made.study.trials) == 8 + 4
    assert ran(proposal_filter=lambda params: False, max_refusals=3).records() == []


def test_every_evaluation_has_its_number_and_its_seed() -> None:
    asked: list[tuple[int, tuple[int, ...]]] = []

    def noting(params: dict[str, Any], number: int, seed: np.random.SeedSequence) -> Evaluation:
        asked.append((number, tuple(seed.generate_state(4))))
        return evaluate(params, number, seed)

    made = ran(noting)
    assert [number for number, _ in asked] == list(range(15))
    assert len({state for _, state in asked}) == 15
    assert [record.number for record in made.records()] == list(range(15))
    first = made.records()[0]
    assert isinstance(first, Record)
    assert made.study.trials[0].values == [
        first.evaluation.epsilon,
        pytest.approx(1.0 - np.mean(first.evaluation.utilities)),
    ]


def test_a_study_without_a_seed_is_resumed_with_fresh_ones(tmp_path: Path) -> None:
    # Theorem F10.
    given: dict[int, int] = {}

    def noting(params: dict[str, Any], number: int, seed: np.random.SeedSequence) -> Evaluation:
        assert number not in given
        given[number] = int(str(seed.entropy))
        return evaluate(params, number, seed)

    for n_iter in (0, 10):
        made = ran(noting, n_iter=n_iter, storage=tmp_path / "study.db", random_state=None)
    assert sorted(given) == list(range(15))
    assert len({given[number] for number in range(5)}) == 1
    assert len({given[number] for number in range(5, 15)}) == 1
    assert given[0] != given[5]
    content = (tmp_path / "study.db").read_bytes()
    assert not any(str(entropy).encode() in content for entropy in given.values())
    # Proposals go on where they were.
    assert len({str(record.params) for record in made.records()}) == 15


def test_evaluations_are_counted_for_whoever_watches(capfd: pytest.CaptureFixture[str]) -> None:
    ran(n_iter=0)
    assert capfd.readouterr().err == ""
    with Progress("search", 1):
        ran(n_iter=0)
    assert "search: 5 of 5 evaluations" in capfd.readouterr().err


def test_workers_without_a_batch_are_named() -> None:
    with pytest.warns(UserWarning, match="batch_size must be above 1 .* n_jobs=2"):
        ran(n_initial=1, n_iter=0, n_jobs=2)
    with joblib.parallel_config(n_jobs=2):
        ran(n_initial=1, n_iter=0)


@pytest.mark.parametrize(
    ("given", "kind", "words"),
    [
        ({"n_initial": 0}, ValueError, "n_initial must be an integer of at least 1; got 0"),
        ({"n_iter": 2.5}, TypeError, "n_iter must be"),
        ({"reference_point": (0.0, 1.0)}, ValueError, "epsilon above 0"),
        ({"reference_point": (math.inf, 1.0)}, ValueError, "finite"),
        ({"reference_point": (10.0, 2.0)}, ValueError, r"an error in \(0, 1\]"),
        ({"third": "cost"}, ValueError, "reference_point must be 3 numbers"),
    ],
)
def test_bad_argument_is_named(given: dict[str, Any], kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        optimizer(**given)


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


SEED = np.random.SeedSequence(5)


def in_a_worker(params: dict[str, Any], number: int, seed: np.random.SeedSequence) -> Evaluation:
    if params.get("deadly"):
        os._exit(1)
    if params.get("bad"):
        raise KeyError("no such thing")
    return Evaluation(params["x"], (0.25, np.float32(0.75)), third=float(os.getpid()))


def run(workers: Workers, *params: dict[str, Any]) -> list[Evaluation]:
    futures = [workers.submit(some, n, SEED) for n, some in enumerate(params)]
    waiting, found = list(futures), {}
    while waiting:
        for future in workers.first(waiting):
            found[future] = workers.result(future)
            waiting.remove(future)
    workers.close()
    return [found[future] for future in futures]


def test_one_worker_is_this_thread() -> None:
    found = run(Workers(in_a_worker, 1, 4), {"x": 1.0}, {"x": 2.0}, {"bad": True})
    assert [each.epsilon for each in found[:2]] == [1.0, 2.0]
    assert found[0].third == os.getpid()
    assert found[2].failure is not None


def test_what_cannot_be_pickled_runs_in_threads() -> None:
    lock = threading.Lock()

    def locked(params: dict[str, Any], number: int, seed: Any) -> Evaluation:
        with lock:
            return in_a_worker(params, number, seed)

    found = run(Workers(locked, 2, 2), {"x": 1.0}, {"x": 2.0})
    assert {each.third for each in found} == {os.getpid()}


def test_evaluation_that_kills_its_worker_has_failed_and_the_next_goes_on() -> None:
    workers = Workers(in_a_worker, 2, 2)
    future = workers.submit({"x": 1.0, "deadly": True}, 0, SEED)
    (done,) = workers.first([future])
    assert "Terminated" in str(workers.result(done).failure)
    found = run(workers, *({"x": float(n)} for n in range(4)))
    assert [each.epsilon for each in found] == [0.0, 1.0, 2.0, 3.0]
    assert os.getpid() not in {each.third for each in found}
