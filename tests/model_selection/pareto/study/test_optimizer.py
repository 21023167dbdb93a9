"""The optimiser: numbers and seeds of evaluations, resumed and shared studies, arguments."""

from __future__ import annotations

import math
import sys
import threading
from pathlib import Path
from typing import Any

import cloudpickle
import joblib
import numpy as np
import pytest

optuna = pytest.importorskip("optuna")
pytest.importorskip("moocore")

from skdptune._progress import Progress  # noqa: E402
from skdptune.model_selection._pareto._optimizer import Evaluation, Record  # noqa: E402
from tests.model_selection.pareto.study.searches import (  # noqa: E402
    evaluate,
    optimizer,
    ran,
    results,
)

# Another package may be named tests where workers look for it.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


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


def test_same_seed_same_search() -> None:
    assert results(ran()) == results(ran())
    assert results(ran()) != results(ran(random_state=1))


def test_resumed_study_is_the_one_that_was_not_stopped(tmp_path: Path) -> None:
    for n_iter in (0, 4, 10, 10):
        made = ran(n_iter=n_iter, storage=tmp_path / "study.db", random_state=0)
        assert len(made.records()) == 5 + n_iter
    assert results(made) == results(ran(random_state=0))


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


def test_several_optimizers_share_one_study(tmp_path: Path) -> None:
    made = [optimizer(storage=tmp_path / "study.db", n_iter=15) for _ in range(3)]
    threads = [threading.Thread(target=each.run) for each in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    found = made[0].records()
    assert sorted(record.number for record in found) == list(range(20))
    assert all(len(each.records()) == 20 for each in made)


def test_third_objective_is_the_studys_third() -> None:
    def costly(params: dict[str, Any], number: int, seed: Any) -> Evaluation:
        return Evaluation(1.0 / params["noise"], (0.5,), third=params["noise"])

    made = ran(costly, third="cost", reference_point=(10.0, 1.0, 5.0))
    assert [len(trial.values) for trial in made.study.trials] == [3] * 15
    assert made.records()[3].evaluation.third == made.records()[3].params["noise"]


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


def test_batch_runs_in_threads_where_joblib_is_set_to_threads() -> None:
    with joblib.parallel_config(backend="threading", n_jobs=2):
        made = ran(batch_size=2)
    assert len(made.records()) == 15


@pytest.mark.parametrize(
    ("given", "kind", "words"),
    [
        ({"n_initial": 0}, ValueError, "n_initial must be an integer of at least 1; got 0"),
        ({"n_iter": -1}, ValueError, "n_iter must be"),
        ({"batch_size": 0}, ValueError, "batch_size must be"),
        ({"n_iter": 2.5}, TypeError, "n_iter must be"),
        ({"reference_point": (10.0,)}, ValueError, "reference_point must be 2 numbers"),
        ({"reference_point": (0.0, 1.0)}, ValueError, "epsilon above 0"),
        ({"reference_point": (math.inf, 1.0)}, ValueError, "finite"),
        ({"reference_point": (10.0, 2.0)}, ValueError, r"an error in \(0, 1\]"),
        ({"third": "cost"}, ValueError, "reference_point must be 3 numbers"),
    ],
)
def test_bad_argument_is_named(given: dict[str, Any], kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        optimizer(**given)
