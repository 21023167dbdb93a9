"""Which nets are so alike that one stands for all: they differ in numbers that are trained."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import torch
from torch import nn

_PLAIN = (bool, int, float, str, bytes, type(None), type, torch.dtype, torch.device)


def likeness(net: Any) -> Hashable:
    """Return a key that nets of one shape share: modules, criteria and kinds of losses.

    Parameters
    ----------
    net : PrivateNet
        Initialized.

    Notes
    -----
    Settings of layers are compared by value where they are plain, and else by identity: in doubt
    two nets are unlike, which costs time and nothing more.
    """
    # A subclass may find its losses by what it knows of itself.
    own = type(net).__module__.startswith("skdptune.neural_network.")
    kind = type(net) if own else id(net)
    return kind, str(net.device), _shape(net.module_), _shape(net.criterion_, with_values=True)


def _shape(module: nn.Module, with_values: bool = False) -> Hashable:
    parts: list[Hashable] = []
    for name, part in module.named_modules():
        settings = [
            (key, _key(value))
            for key, value in sorted(vars(part).items())
            if not key.startswith("_")
        ]
        parts.append((name, type(part), tuple(settings)))
        parts.append(bool(part._forward_hooks or part._forward_pre_hooks))
    for name, value in module.named_parameters():
        parts.append((name, tuple(value.shape), value.dtype, value.requires_grad))
    for name, value in module.named_buffers():
        held = tuple(value.flatten().tolist()) if with_values else ()
        parts.append((name, tuple(value.shape), value.dtype, held))
    return tuple(parts)


def _key(value: Any) -> Hashable:
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, list | tuple):
        return type(value), tuple(_key(each) for each in value)
    if isinstance(value, dict):
        return tuple((key, _key(each)) for key, each in value.items())
    return id(value)
