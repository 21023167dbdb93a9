"""Tasks in parallel, by joblib's backends or on a dask cluster, tried again if one is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from joblib import effective_n_jobs
from joblib.parallel import get_active_backend

from skdptune._compat import Parallel, delayed
from skdptune.model_selection._running._dask_cluster import active_client, perform_on_cluster
from skdptune.model_selection._running._private_folder import private_folder
from skdptune.model_selection._running._quiet import Quiet

Result = TypeVar("Result")
_ATTEMPTS = 3
# How joblib, dask and ray say that a worker is gone.
_LOSSES = {
    "BrokenProcessPool",
    "CancelledError",
    "KilledWorker",
    "RayActorError",
    "TerminatedWorkerError",
    "WorkerCrashedError",
}
# Bytes from which an array is shared through a file. Workers of the same settings are used again,
# with the folder that they were started with: no other caller of joblib may have these settings.
_LEAST_SHARED = 1_000_003


def perform_all(
    function: Callable[..., Result],
    tasks: Sequence[Any],
    *common: Any,
    n_jobs: int | None,
    pre_dispatch: Any,
    on_result: Callable[[int, Result], None] | None = None,
) -> list[Result]:
    """Return ``function(task, *common)`` of all tasks, in order; if workers are lost, try again.

    The seeds belong to the tasks, so that a seeded repetition gives the same. `on_result` is
    called with the number of a task and its result as soon as it and those before it are known.
    """
    for attempt in range(_ATTEMPTS):
        last = attempt == _ATTEMPTS - 1
        try:
            with Quiet():
                client = None if last or n_jobs == 1 else active_client()
                if client is not None:
                    return _listed(perform_on_cluster(client, function, tasks, common), on_result)
                parallel = _parallel(1 if last else n_jobs, pre_dispatch)
                found = parallel(delayed(function)(task, *common) for task in tasks)
                return _listed(found, on_result)
        except Exception as problem:
            if last or not _is_loss_of_workers(problem):
                raise
    raise RuntimeError("no attempt was made")


def _listed(
    found: Iterable[Result], on_result: Callable[[int, Result], None] | None
) -> list[Result]:
    """Return all results, each reported when it comes."""
    results = []
    for place, result in enumerate(found):
        if on_result is not None:
            on_result(place, result)
        results.append(result)
    return results


def _parallel(n_jobs: int | None, pre_dispatch: Any) -> Any:
    """Return joblib's parallel loop, whose workers share records in a private folder alone."""
    # Theorem F10.
    backend, _ = get_active_backend()
    # Ray's backend cannot give results one by one.
    return_as = "generator" if backend.supports_return_generator else "list"
    if effective_n_jobs(n_jobs) == 1:
        return Parallel(n_jobs=n_jobs, pre_dispatch=pre_dispatch, return_as=return_as)
    return Parallel(
        n_jobs=n_jobs,
        pre_dispatch=pre_dispatch,
        return_as=return_as,
        temp_folder=private_folder(),
        max_nbytes=_LEAST_SHARED,
    )


def _is_loss_of_workers(problem: BaseException) -> bool:
    names = {kind.__name__ for kind in type(problem).__mro__}
    return bool(names & _LOSSES)
