"""Which nets are so alike that one stands for all: they differ in numbers that are trained."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

import torch
from skorch.callbacks import LRScheduler
from torch import nn

from skdptune.neural_network._population._stacked_layers import is_simple

_PLAIN = (bool, int, float, str, bytes, type(None), type, torch.dtype, torch.device)
# What torch itself keeps of a module.
_OF_TORCH = frozenset(vars(nn.Module()))


def is_common(net: Any) -> bool:
    """Say whether a net is of a kind that may be trained with others, before it is started.

    A subclass may do otherwise in any step, and a callback of the user's may keep what it learns
    of one training, so that it must not be told of two at once.
    """
    if not vars(type(net)).get("_trains_with_others", False):
        return False
    callbacks = net.callbacks if isinstance(net.callbacks, list | tuple) else []
    named = [entry[1] if isinstance(entry, tuple) else entry for entry in callbacks]
    return all(LRScheduler in (type(one), one) or one is None for one in named)


def likeness(net: Any) -> Hashable | None:
    """Return a key that nets of one shape share: modules, criteria and kinds of losses.

    None for a net that must be trained by itself: one with hooks, with parameters that layers
    share, or whose optimizer holds other ones than its module.

    Parameters
    ----------
    net : PrivateNet
        Started.

    Notes
    -----
    Settings of layers are compared by value where they are plain, and else by identity: in doubt
    two nets are unlike, which costs time and nothing more.
    """
    if not (is_simple(net.module_) and is_simple(net.criterion_)):
        return None
    held = [id(p) for group in net.optimizer_.param_groups for p in group["params"]]
    trained = {id(p) for p in net.module_.parameters() if p.requires_grad}
    frozen = {id(p) for p in net.module_.parameters()} - trained
    if set(held) - frozen != trained or any(True for _ in net.criterion_.parameters()):
        return None
    return type(net), str(net.device), _shape(net.module_), _shape(net.criterion_, True)


def settings_of(module: nn.Module) -> Hashable:
    """Return what a module and its parts keep beside parameters, buffers and parts."""
    return tuple(
        (name, type(part), tuple(_settings(part))) for name, part in module.named_modules()
    )


def _settings(part: nn.Module) -> Iterator[tuple[str, Hashable]]:
    for key in sorted(set(vars(part)) - _OF_TORCH):
        yield key, _key(vars(part)[key])


def _shape(module: nn.Module, with_values: bool = False) -> Hashable:
    parts: list[Hashable] = [settings_of(module)]
    # The same part in several places is another shape than several parts.
    places: dict[int, int] = {}
    for name, part in module.named_modules(remove_duplicate=False):
        parts.append((name, places.setdefault(id(part), len(places))))
    for name, value in module.named_parameters():
        parts.append((name, tuple(value.shape), value.dtype, value.requires_grad))
    for name, value in module.named_buffers():
        held = tuple(value.flatten().tolist()) if with_values else ()
        parts.append((name, tuple(value.shape), value.dtype, held))
    return tuple(parts)


def _key(value: Any) -> Hashable:
    if isinstance(value, float):
        # By digits: 0.0 is not -0.0, and what is no number is like itself.
        return float, value.hex()
    if isinstance(value, _PLAIN):
        return type(value), value
    if isinstance(value, list | tuple):
        return type(value), tuple(_key(each) for each in value)
    if type(value) is dict:
        return dict, tuple((_key(key), _key(each)) for key, each in value.items())
    return id(value)
