"""Runs on a dask cluster, which may lose workers on the way.

joblib's own dask backend can wait for ever for a result that was lost with its worker. Here the
scheduler keeps what each result is made of, and makes it again elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from joblib.parallel import get_active_backend
from sklearn import config_context, get_config

_RETRIES = 3


def active_client() -> Any:
    """Return the client of the cluster that joblib was told to use, None if there is none."""
    backend, _ = get_active_backend()
    is_dask = type(backend).__module__.rpartition(".")[2] == "_dask"
    return getattr(backend, "client", None) if is_dask else None


def perform_on_cluster(
    client: Any, function: Callable[..., Any], tasks: Sequence[Any], common: tuple[Any, ...]
) -> list[Any]:
    """Return ``function(task, *common)`` of all tasks, in order.

    What is common is sent to each worker once.
    """
    if not len(tasks):
        return []
    (shared,) = client.scatter([(function, common, get_config())], broadcast=True, hash=False)
    futures = client.map(_call, list(tasks), shared=shared, pure=False, retries=_RETRIES)
    return list(client.gather(futures))


def _call(task: Any, shared: tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]) -> Any:
    function, common, settings = shared
    with config_context(**settings):
        return function(task, *common)
