"""Which nets can be trained together: those that differ only in numbers that are trained."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

import torch
from skorch.callbacks import LRScheduler
from torch import nn

from skdptune.neural_network._population._stacked_layers import is_simple
from skdptune.neural_network._population._trainable_net import TrainableNet

_COMPARED_BY_VALUE = (bool, int, float, str, bytes, type(None), type, torch.dtype, torch.device)
# What torch itself keeps of a module.
_TORCH_ATTRIBUTES = frozenset(vars(nn.Module()))


def can_train_together(net: TrainableNet) -> bool:
    """Return whether a net is of a kind that may be trained with others, before it is started.

    A subclass may do otherwise in any step, and a user's own callback may keep what it learns
    from one training, so that it must not be notified of two at once.
    """
    if not vars(type(net)).get("_can_train_together", False):
        return False
    callbacks = net.callbacks if isinstance(net.callbacks, list | tuple) else []
    unnamed = [entry[1] if isinstance(entry, tuple) else entry for entry in callbacks]
    return all(LRScheduler in (type(one), one) or one is None for one in unnamed)


def grouping_key(net: TrainableNet) -> Hashable | None:
    """Return a key that is equal for nets of the same structure: modules, criteria and losses.

    None for a net that must be trained by itself: one with hooks, with parameters that layers
    share, or whose optimizer holds other parameters than its module.

    Parameters
    ----------
    net : TrainableNet
        Started.

    Notes
    -----
    Theorem U2.

    Settings of layers are compared by value where they are plain, and else by identity: in doubt
    two nets are not trained together, which costs time and nothing more.
    """
    if not (is_simple(net.module_) and is_simple(net.criterion_)):
        return None
    held = {id(p) for group in net.optimizer_.param_groups for p in group["params"]}
    trained = {id(p) for p in net.module_.parameters() if p.requires_grad}
    frozen = {id(p) for p in net.module_.parameters()} - trained
    if held - frozen != trained or any(True for _ in net.criterion_.parameters()):
        return None
    criterion = _structure_of(net.criterion_, with_values=True)
    return type(net), str(net.device), _structure_of(net.module_), criterion


def _settings(part: nn.Module) -> Iterator[tuple[str, Hashable]]:
    for key in sorted(set(vars(part)) - _TORCH_ATTRIBUTES):
        yield key, _key_of(vars(part)[key])


def _structure_of(module: nn.Module, with_values: bool = False) -> Hashable:
    entries: list[Hashable] = [
        (name, type(part), tuple(_settings(part))) for name, part in module.named_modules()
    ]
    # The same part in several places is another structure than several equal parts.
    places: dict[int, int] = {}
    for name, part in module.named_modules(remove_duplicate=False):
        entries.append((name, places.setdefault(id(part), len(places))))
    for name, parameter in module.named_parameters():
        entries.append((name, tuple(parameter.shape), parameter.dtype, parameter.requires_grad))
    for name, buffer in module.named_buffers():
        values = tuple(buffer.flatten().tolist()) if with_values else ()
        entries.append((name, tuple(buffer.shape), buffer.dtype, values))
    return tuple(entries)


def _key_of(value: Any) -> Hashable:
    if isinstance(value, float):
        # By its digits: 0.0 differs from -0.0, and NaN is equal to itself.
        return float, value.hex()
    if isinstance(value, _COMPARED_BY_VALUE):
        return type(value), value
    if isinstance(value, list | tuple):
        return type(value), tuple(_key_of(each) for each in value)
    if type(value) is dict:
        return dict, tuple((_key_of(key), _key_of(each)) for key, each in value.items())
    return id(value)
