"""What a module must not do: let one record of a batch change what another one gives."""

from __future__ import annotations

import copy

import torch
from opacus.validators import ModuleValidator
from torch import nn

_FIX = (
    "Opacus offers a fix, such as GroupNorm for BatchNorm: fix_module=True applies "
    "opacus.validators.ModuleValidator.fix to it."
)


def fixed_module(module: nn.Module) -> nn.Module:
    """Return a copy in which Opacus has replaced layers that mix records, where it can."""
    return ModuleValidator.fix(module)


def check_module(module: nn.Module, record_shape: tuple[int, ...], device: str) -> None:
    """Refuse a module that has nothing to train, or that is seen to mix records.

    Parameters
    ----------
    module : torch.nn.Module
        On `device`.
    record_shape : tuple of int
        Shape of one record.
    device : str
        Where the module is.

    Notes
    -----
    Opacus knows layers by their names. What it does not know is tried on a batch of made-up
    records: each output's gradient by all other records must vanish, and no buffer may change. It
    is a check and no proof: a module can mix records behind operations without gradients.
    """
    if not any(parameter.requires_grad for parameter in module.parameters()):
        raise ValueError("module must have parameters to train; got none.")
    module.train()
    errors = ModuleValidator.validate(module, strict=False)
    if errors:
        told = " ".join(str(error) for error in errors)
        raise ValueError(
            f"module must treat records one by one; got layers that do not. {told} {_FIX}"
        )
    _try_made_up_records(module, record_shape, device)


def _try_made_up_records(module: nn.Module, record_shape: tuple[int, ...], device: str) -> None:
    # On a copy: a buffer that has changed stays changed.
    trial = copy.deepcopy(module)
    before = [buffer.clone() for buffer in trial.buffers()]
    records = torch.rand(3, *record_shape, device=device, requires_grad=True)
    outputs = _output_of(trial, records)
    if len(outputs) != len(records):
        raise ValueError(
            f"module must return one output for each record; got {len(outputs)} for "
            f"{len(records)} records."
        )
    after = list(trial.buffers())
    changed = not all(torch.equal(a, b) for a, b in zip(before, after, strict=True))
    if changed or _mixes(records, outputs):
        raise ValueError(
            "module must treat records one by one; got one in which a record changes "
            f"{'a buffer' if changed else 'the outputs of others'}."
        )


def _output_of(module: nn.Module, records: torch.Tensor) -> torch.Tensor:
    try:
        outputs = module(records)
    except Exception as problem:
        raise ValueError(
            f"module must take records of shape {tuple(records.shape[1:])}; got an error from it: "
            f"{problem}"
        ) from problem
    return outputs[0] if isinstance(outputs, tuple) else outputs


def _mixes(records: torch.Tensor, outputs: torch.Tensor) -> bool:
    if not outputs.requires_grad:
        return False
    for number in range(len(records)):
        (slope,) = torch.autograd.grad(
            outputs[number].sum(), records, retain_graph=True, allow_unused=True
        )
        others = [other for other in range(len(records)) if other != number]
        if slope is not None and bool((slope[others] != 0).any()):
            return True
    return False
