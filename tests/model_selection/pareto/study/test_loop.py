"""The loop of proposals and evaluations: batches, failures, refusals, and what a crash leaves."""

from __future__ import annotations

import math
import sys
import threading
import time
from typing import Any

import cloudpickle
import numpy as np
import pytest

optuna = pytest.importorskip("optuna")
pytest.importorskip("moocore")

from skdptune.model_selection._pareto import _optimizer as _loop  # noqa: E402
from skdptune.model_selection._pareto._optimizer import Evaluation, write_evaluation  # noqa: E402
from skdptune.model_selection._study import Heartbeat  # noqa: E402
from tests.model_selection.pareto.study.searches import (  # noqa: E402
    SPACE,
    evaluate,
    optimizer,
    ran,
    results,
)

# Another package may be named tests where workers look for it.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


@pytest.mark.parametrize("moment", ["proposed", "evaluated", "failed", "half proposed"])
def test_what_a_crash_cut_off_is_repeated(moment: str) -> None:
    """A process that died with the sixth evaluation in hand, as the storage would show it."""
    storage = optuna.storages.InMemoryStorage()
    made = ran(n_iter=1, storage=storage)
    trial = made.study.ask(SPACE.distributions() if moment != "half proposed" else {})
    trial.set_user_attr("process", "elsewhere:1:gone")
    if moment in ("evaluated", "failed"):
        failure = "ValueError: bad" if moment == "failed" else None
        write_evaluation(trial, Evaluation(3.0, (0.25,), failure=failure))
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
        monkeypatch.setattr(_loop, "_LONGEST_PROPOSAL", 0.5)
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
        write_evaluation(trial, Evaluation(1.0, (0.5,)))
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


def test_failures_are_named_and_count() -> None:
    def partly(params: dict[str, Any], number: int, seed: Any) -> Evaluation:
        if params["kind"] == "b":
            raise RuntimeError("b is broken")
        return evaluate(params, number, seed)

    records = ran(partly, n_iter=20).records()
    failed = [record for record in records if record.evaluation.failure is not None]
    assert len(records) == 25 and failed
    assert all(record.params["kind"] == "b" for record in failed)
    assert {record.evaluation.failure for record in failed} == {"RuntimeError: b is broken"}
    assert all(math.isnan(record.evaluation.epsilon) for record in failed)


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
