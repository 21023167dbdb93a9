"""Tasks in parallel, on workers that may be lost."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest

from skdptune.model_selection._running import _parallel
from skdptune.model_selection._running._parallel import perform_all, private_folder


class TerminatedWorkerError(Exception):
    """Named as what joblib raises when a worker is gone."""


def test_lost_workers_are_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs: list[Any] = []

    class Losing:
        def __init__(self, n_jobs: Any, **settings: Any) -> None:
            jobs.append(n_jobs)

        def __call__(self, tasks: Any) -> Any:
            if len(jobs) < 3:
                raise TerminatedWorkerError
            return [function(*args, **kwargs) for function, args, kwargs in tasks]

    monkeypatch.setattr(_parallel, "Parallel", Losing)
    monkeypatch.setattr(_parallel, "delayed", lambda f: lambda *a, **k: (f, a, k))
    assert perform_all(pow, [2, 3], 2, n_jobs=4, pre_dispatch="all") == [4, 9]
    assert jobs == [4, 4, 1]


def test_no_result_is_reported_twice_where_workers_are_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Theorem T8: a noisy score is paid for once, and is shown when it is reported.
    attempts: list[Any] = []

    class Losing:
        def __init__(self, n_jobs: Any, **settings: Any) -> None:
            attempts.append(n_jobs)

        def __call__(self, tasks: Any) -> Any:
            listed = list(tasks)
            yield from (function(*args) for function, args, _ in listed[:2])
            if len(attempts) < 3:
                raise TerminatedWorkerError
            yield from (function(*args) for function, args, _ in listed[2:])

    monkeypatch.setattr(_parallel, "Parallel", Losing)
    monkeypatch.setattr(_parallel, "delayed", lambda f: lambda *a, **k: (f, a, k))
    made: list[int] = []
    shown: list[tuple[int, tuple[int, int]]] = []

    def noisy(task: int, shared: int) -> tuple[int, int]:
        made.append(task)
        return task, len(made)

    def show(place: int, result: tuple[int, int]) -> None:
        shown.append((place, result))

    tasks = list(range(10, 17))
    found = perform_all(noisy, tasks, 0, n_jobs=4, pre_dispatch="all", on_result=show)
    assert len(attempts) == 3
    assert shown == list(enumerate(found))
    assert [task for task, _ in found] == made == tasks


@pytest.mark.skipif(os.name != "posix", reason="modes of files")
def test_records_are_shared_in_a_private_folder() -> None:
    # Theorem F10.
    def file_of(task: int, shared: np.ndarray) -> tuple[str, int]:
        # Sent by content, since workers do not find this module.
        return str(shared.filename), int(shared[task])

    shared = np.arange(200_000)
    # Workers that somebody else has started have another folder.
    joblib.Parallel(n_jobs=2)(joblib.delayed(np.sum)(shared) for _ in range(2))
    found = perform_all(file_of, [3, 4], shared, n_jobs=2, pre_dispatch="all")
    assert [value for _, value in found] == [3, 4]
    folder = private_folder()
    assert [file for file, _ in found if not file.startswith(folder)] == []
    assert stat.S_IMODE(Path(folder).stat().st_mode) == 0o700


def test_other_errors_are_not_tried_again() -> None:
    with pytest.raises(ZeroDivisionError):
        perform_all(divmod, [1], 0, n_jobs=1, pre_dispatch="all")
