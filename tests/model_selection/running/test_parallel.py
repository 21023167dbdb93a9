"""Tasks in parallel, on workers that may be lost."""

from __future__ import annotations

from typing import Any

import pytest

from skdptune.model_selection._running import _parallel
from skdptune.model_selection._running._parallel import perform_all


class TerminatedWorkerError(Exception):
    """Named as what joblib raises when a worker is gone."""


def test_lost_workers_are_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs: list[Any] = []

    class Losing:
        def __init__(self, n_jobs: Any, pre_dispatch: Any) -> None:
            jobs.append(n_jobs)

        def __call__(self, tasks: Any) -> Any:
            if len(jobs) < 3:
                raise TerminatedWorkerError
            return [function(*args, **kwargs) for function, args, kwargs in tasks]

    monkeypatch.setattr(_parallel, "Parallel", Losing)
    monkeypatch.setattr(_parallel, "delayed", lambda f: lambda *a, **k: (f, a, k))
    assert perform_all(pow, [2, 3], 2, n_jobs=4, pre_dispatch="all") == [4, 9]
    assert jobs == [4, 4, 1]


def test_other_errors_are_not_tried_again() -> None:
    with pytest.raises(ZeroDivisionError):
        perform_all(divmod, [1], 0, n_jobs=1, pre_dispatch="all")
