"""What a module must not do: let one record of a batch change what another one gives."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from opacus.validators import ModuleValidator
from torch import nn

from skdptune.neural_network._population import StackedConv2d, layers_of

_TRIED = 3
_MIXING = "module must treat records one by one; got one in which a record"
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
    if any(getattr(part, "max_norm", None) is not None for part in module.modules()):
        raise ValueError(
            "module must have no max_norm; got one. It shortens the rows that a batch looks up, "
            "which shows whose they are."
        )
    errors = ModuleValidator.validate(module, strict=False)
    if errors:
        told = " ".join(str(error) for error in errors)
        raise ValueError(
            f"module must treat records one by one; got layers that do not. {told} {_FIX}"
        )
    _try_made_up_records(module, record_shape, device)


def _try_made_up_records(module: nn.Module, record_shape: tuple[int, ...], device: str) -> None:
    # On a copy: what has changed stays changed.
    trial = copy.deepcopy(module)
    before = [value.detach().clone() for value in (*trial.buffers(), *trial.parameters())]
    records = torch.rand(_TRIED, *record_shape, device=device, requires_grad=True)
    outputs = _output_of(trial, records)
    if len(outputs) != len(records):
        raise ValueError(
            f"module must return one output for each record; got {len(outputs)} for "
            f"{len(records)} records."
        )
    after = (*trial.buffers(), *trial.parameters())
    if not all(torch.equal(a, b) for a, b in zip(before, after, strict=True)):
        raise ValueError(f"{_MIXING} changes a buffer or a parameter.")
    if _mixes(records, outputs) or _others_move(trial, records):
        raise ValueError(f"{_MIXING} changes the outputs of others.")


def _others_move(module: nn.Module, records: torch.Tensor) -> bool:
    """Say whether another first record changes the outputs for the others."""
    changed = records.detach().clone()
    changed[0] = 1.0 - changed[0]
    found = [_seeded_output(module, values) for values in (records, changed)]
    return _differ(*(values[1:] for values in found))


def _seeded_output(module: nn.Module, records: torch.Tensor) -> torch.Tensor:
    with torch.no_grad(), same_draws(records.device):
        return _output_of(copy.deepcopy(module), records)


@contextmanager
def same_draws(device: torch.device) -> Iterator[None]:
    """Let a module draw the same at each call, as for dropout, and leave torch's state alone."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(0)
        yield


def _differ(one: torch.Tensor, other: torch.Tensor) -> bool:
    return not torch.allclose(one, other, rtol=1e-4, atol=1e-5, equal_nan=True)


def check_losses(
    module: nn.Module,
    losses: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    record_shape: tuple[int, ...],
    targets: torch.Tensor,
    device: str,
) -> None:
    """Refuse losses of which one is seen to hang on another record.

    Parameters
    ----------
    module : torch.nn.Module
        On `device`; it has been checked.
    losses : callable
        One loss per record, from outputs and targets.
    record_shape : tuple of int
        Shape of one record.
    targets : tensor
        Of which the shape and kind are looked at, and nothing else.
    device : str
        Where the module is.
    """
    records = torch.rand(_TRIED, *record_shape, device=device)
    wanted = torch.zeros(_TRIED, *targets.shape[1:], dtype=targets.dtype, device=device)
    changed_records, changed_targets = records.clone(), wanted.clone()
    changed_records[0] = 1.0 - records[0]
    changed_targets[0] = 1
    outputs, changed = (_seeded_output(module, values) for values in (records, changed_records))
    try:
        found, *others = [
            losses(*trial)[1:]
            for trial in ((outputs, wanted), (changed, wanted), (outputs, changed_targets))
        ]
    except Exception:
        # A loss may not like what is made up; what it then does with the data is its affair.
        return
    if any(_differ(found, values) for values in others):
        raise ValueError(
            "criterion must treat records one by one; got one in which a record changes the "
            "losses of others."
        )


def has_outer_products(module: nn.Module, record_shape: tuple[int, ...], device: str) -> bool:
    """Say whether each gradient of a module is one outer product per layer and record.

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
    Clipping by norms alone adds up positions (of a sequence, or patches of an image) and records
    in one product. A record with large positions that cancel each other has a gradient of
    moderate norm, is not shortened, and swallows in rounding what all other records add. With one
    position per record every number that is added is no larger than the clipping norm. Nothing
    but plain sequences of known layers is taken at its word: in other modules a weight may be used
    where no norm is taken, or the way back may not be linear.
    """
    layers = layers_of(module)
    if layers is None or any(isinstance(layer, StackedConv2d) for layer in layers):
        return False
    trial = copy.deepcopy(module)
    shapes: list[int] = []

    def watch(layer: nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
        shapes.append(inputs[0].ndim)

    for layer in trial.modules():
        if isinstance(layer, nn.Linear):
            layer.register_forward_pre_hook(watch)
    with torch.no_grad():
        _output_of(trial, torch.rand(_TRIED, *record_shape, device=device))
    return set(shapes) == {2}


def check_outer_products(module: nn.Module, record_shape: tuple[int, ...], device: str) -> None:
    """Refuse a module whose gradients may not be clipped by norms alone."""
    if not has_outer_products(module, record_shape, device):
        raise ValueError(
            "grad_sample_mode must not be 'ghost' for a module with other trained layers than "
            "linear ones on vectors, each used once; got one. Rounding would let a record weigh "
            "more than it is charged for. Use 'hooks', with max_physical_batch_size to save "
            "memory."
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
