"""Which skorch callbacks a private training allows: those that read no data."""

from __future__ import annotations

from typing import Any

from skorch.callbacks import LRScheduler

_HINT = (
    "What it measures on data has no privacy cost charged. A schedule of the learning rate "
    "(LRScheduler) is allowed; vouch for a callback of your own that reads no data by its class "
    "attribute data_independent = True."
)


def check_callbacks(callbacks: Any) -> None:
    """Refuse callbacks that read losses, scores, gradients or data.

    Parameters
    ----------
    callbacks : None, "disable" or list
        As in skorch: callbacks, their classes, or pairs of a name and one of these.
    """
    if callbacks is None or (isinstance(callbacks, str) and callbacks == "disable"):
        return
    if not isinstance(callbacks, list | tuple):
        raise TypeError(f"callbacks must be a list, or None; got {type(callbacks).__name__}.")
    for entry in callbacks:
        callback = entry[1] if isinstance(entry, tuple) else entry
        kind = callback if isinstance(callback, type) else type(callback)
        if callback is None or getattr(callback, "data_independent", False) is True:
            continue
        if kind is not LRScheduler:
            raise ValueError(
                f"callbacks must not depend on the data; got {kind.__name__}. {_HINT}"
            )
        if "plateau" in _policy_name(callback).lower():
            raise ValueError(
                "callbacks must not depend on the data; got LRScheduler with ReduceLROnPlateau, "
                f"which reads a loss. {_HINT}"
            )


def _policy_name(callback: Any) -> str:
    policy = getattr(callback, "policy", "")
    return policy if isinstance(policy, str) else getattr(policy, "__name__", str(policy))
