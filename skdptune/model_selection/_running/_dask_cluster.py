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
    """Return the client of the cluster that joblib is set to use, None if there is none."""
    backend, _ = get_active_backend()
    is_dask = type(backend).__module__.rpartition(".")[2] == "_dask"
    return getattr(backend, "client", None) if is_dask else None


def perform_on_cluster(
    client: Any, function: Callable[..., Any], tasks: Sequence[Any], common: tuple[Any, ...]
) -> list[Any]:
    """Return ``function(task, *common)`` of all tasks, in order.

    What is common is sent to each worker once. Everything travels as joblib's own workers get it,
    so that classes of a notebook need not be known there.
    """
    import cloudpickle

    if not len(tasks):
        return []
    whole = cloudpickle.dumps((function, common, get_config()))
    (shared,) = client.scatter([whole], broadcast=True, hash=False)
    packed = [cloudpickle.dumps(task) for task in tasks]
    futures = client.map(_call, packed, shared=shared, pure=False, retries=_RETRIES)
    return [cloudpickle.loads(found) for found in client.gather(futures)]


def _call(task: bytes, shared: bytes) -> bytes:
    import cloudpickle

    function, common, settings = cloudpickle.loads(shared)
    with config_context(**settings):
        found = function(cloudpickle.loads(task), *common)
    return bytes(cloudpickle.dumps(found))
