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
    called once for each task, with its number and its result, as soon as it and those before it
    are known: what was reported is not done again, since another result would have noise of its
    own, which nothing pays for.
    """
    # Theorem T8.
    results: list[Result] = []
    for attempt in range(_ATTEMPTS):
        last = attempt == _ATTEMPTS - 1
        left = tasks[len(results) :]
        try:
            with Quiet():
                found: Iterable[Result]
                client = None if last or n_jobs == 1 else active_client()
                if client is not None:
                    found = perform_on_cluster(client, function, left, common)
                else:
                    parallel = _parallel(1 if last else n_jobs, pre_dispatch)
                    found = parallel(delayed(function)(task, *common) for task in left)
                for result in found:
                    results.append(result)
                    if on_result is not None:
                        on_result(len(results) - 1, result)
                return results
        except Exception as problem:
            if last or not _is_loss_of_workers(problem):
                raise
    raise RuntimeError("no attempt was made")


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
