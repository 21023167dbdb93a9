"""Checks that one record of a batch changes no other record's outputs, losses or buffers."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

import torch
from opacus.validators import ModuleValidator
from torch import nn

from skdptune.neural_network._population import has_only_linear_layers

Device: TypeAlias = str | torch.device

_N_SYNTHETIC = 3
_MIXING = "module must treat records one by one; got one in which a record"
_FIX = (
    "Opacus offers a fix, such as GroupNorm for BatchNorm: fix_module=True applies "
    "opacus.validators.ModuleValidator.fix to it."
)


def fixed_module(module: nn.Module) -> nn.Module:
    """Return a copy in which Opacus has replaced layers that mix records, where it can."""
    return ModuleValidator.fix(module)


def check_module(module: nn.Module, record_shape: tuple[int, ...], device: Device) -> None:
    """Refuse a module that has nothing to train, or that is found to mix records.

    Parameters
    ----------
    module : torch.nn.Module
        On `device`.
    record_shape : tuple of int
        Shape of one record.
    device : str or torch.device
        Where the module is.

    Notes
    -----
    Assumption U0.

    Opacus knows layers by their classes. Other layers are tried on a batch of synthetic records:
    each output's gradient by all other records must be zero, and no buffer may change. It is a
    check and no proof: a module can mix records behind operations without gradients.
    """
    if not any(parameter.requires_grad for parameter in module.parameters()):
        raise ValueError("module must have parameters to train; got none.")
    module.train()
    if any(getattr(part, "max_norm", None) is not None for part in module.modules()):
        raise ValueError(
            "module must have no max_norm; got one. It rescales the rows of the embedding that a "
            "batch looks up, which shows which rows they are."
        )
    errors = ModuleValidator.validate(module, strict=False)
    if errors:
        reasons = " ".join(str(error) for error in errors)
        raise ValueError(
            f"module must treat records one by one; got layers that do not. {reasons} {_FIX}"
        )
    _try_records(module, record_shape, device)


def _try_records(module: nn.Module, record_shape: tuple[int, ...], device: Device) -> None:
    # On a copy, since a trial may change buffers and parameters.
    trial = copy.deepcopy(module)
    before = [value.detach().clone() for value in (*trial.buffers(), *trial.parameters())]
    records = torch.rand(_N_SYNTHETIC, *record_shape, device=device, requires_grad=True)
    outputs = _output_of(trial, records)
    if len(outputs) != len(records):
        raise ValueError(
            f"module must return one output for each record; got {len(outputs)} for "
            f"{len(records)} records."
        )
    after = (*trial.buffers(), *trial.parameters())
    if not all(torch.equal(a, b) for a, b in zip(before, after, strict=True)):
        raise ValueError(f"{_MIXING} changes a buffer or a parameter.")
    if _mixes_by_gradient(records, outputs) or _mixes_by_value(trial, records):
        raise ValueError(f"{_MIXING} changes the outputs of others.")


def _mixes_by_value(module: nn.Module, records: torch.Tensor) -> bool:
    """Return whether a change of the first record changes the outputs of others."""
    changed = records.detach().clone()
    changed[0] = 1.0 - changed[0]
    found = [_seeded_output(module, values) for values in (records, changed)]
    return _differ(found[0][1:], found[1][1:])


def _seeded_output(module: nn.Module, records: torch.Tensor) -> torch.Tensor:
    with torch.no_grad(), same_draws(records.device):
        return _output_of(copy.deepcopy(module), records)


@contextmanager
def same_draws(device: torch.device) -> Iterator[None]:
    """Let a module draw the same numbers at each call, then restore torch's generators."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(0)
        yield


def _differ(one: torch.Tensor, other: torch.Tensor) -> bool:
    return not torch.allclose(one, other, rtol=1e-4, atol=1e-5, equal_nan=True)


class CriterionError(ValueError):
    """Losses that suit no outputs of the module, whatever the records are."""


def check_losses(
    module: nn.Module,
    losses: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    record_shape: tuple[int, ...],
    targets: torch.Tensor,
    device: Device,
) -> None:
    """Refuse losses of which one is found to depend on another record.

    Parameters
    ----------
    module : torch.nn.Module
        On `device`; it has been checked.
    losses : callable
        One loss per record, from outputs and targets.
    record_shape : tuple of int
        Shape of one record.
    targets : tensor
        Of which shape and dtype are used, and nothing else.
    device : str or torch.device
        Where the module is.

    Notes
    -----
    Assumption U0.
    """
    records = torch.rand(_N_SYNTHETIC, *record_shape, device=device)
    wanted = torch.zeros(_N_SYNTHETIC, *targets.shape[1:], dtype=targets.dtype, device=device)
    changed_records, changed_targets = records.clone(), wanted.clone()
    changed_records[0] = 1.0 - records[0]
    changed_targets[0] = 1
    outputs, changed = (_seeded_output(module, values) for values in (records, changed_records))
    try:
        found, *others = [
            losses(*trial)[1:]
            for trial in ((outputs, wanted), (changed, wanted), (outputs, changed_targets))
        ]
    except CriterionError:
        # In a training they would count as refusing all records, and nothing would be learned.
        raise
    except Exception:
        # A loss may refuse synthetic records; then it cannot be checked on them.
        return
    if any(_differ(found, values) for values in others):
        raise ValueError(
            "criterion must treat records one by one; got one in which a record changes the "
            "losses of others."
        )


def has_outer_products(module: nn.Module, record_shape: tuple[int, ...], device: Device) -> bool:
    """Return whether each gradient of a module is one outer product per layer and record.

    Parameters
    ----------
    module : torch.nn.Module
        On `device`.
    record_shape : tuple of int
        Shape of one record.
    device : str or torch.device
        Where the module is.

    Notes
    -----
    Theorem U1.

    Clipping by norms alone adds up positions (of a sequence, or patches of an image) and records
    in one product. A record with large positions that cancel each other has a gradient of
    moderate norm, is not clipped, and absorbs by rounding what all other records add. With one
    position per record every number that is added is no larger than the clipping norm. Only plain
    sequences of known layers qualify: in other modules a weight may be used where no norm is
    computed, or the backward pass may not be linear.
    """
    if not has_only_linear_layers(module):
        return False
    trial = copy.deepcopy(module)
    dimensions: set[int] = set()

    def record_dimensions(layer: nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
        dimensions.add(inputs[0].ndim)

    for layer in trial.modules():
        if isinstance(layer, nn.Linear):
            layer.register_forward_pre_hook(record_dimensions)
    with torch.no_grad():
        _output_of(trial, torch.rand(_N_SYNTHETIC, *record_shape, device=device))
    return dimensions == {2}


def check_outer_products(module: nn.Module, record_shape: tuple[int, ...], device: Device) -> None:
    """Refuse a module whose gradients may not be clipped by norms alone."""
    if not has_outer_products(module, record_shape, device):
        raise ValueError(
            "grad_sample_mode must not be 'ghost' for a module with other trained layers than "
            "linear ones on vectors, each used once; got one. Rounding would give a record more "
            "influence than its privacy cost covers. Use 'hooks', with max_physical_batch_size to "
            "save memory."
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


def _mixes_by_gradient(records: torch.Tensor, outputs: torch.Tensor) -> bool:
    if not outputs.requires_grad:
        return False
    for number in range(len(records)):
        (gradient,) = torch.autograd.grad(
            outputs[number].sum(), records, retain_graph=True, allow_unused=True
        )
        others = [other for other in range(len(records)) if other != number]
        if gradient is not None and bool((gradient[others] != 0).any()):
            return True
    return False
