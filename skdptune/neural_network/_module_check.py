"""Checks that a record does not change outputs, losses or gradients of others, now or later."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

import torch
from opacus.validators import ModuleValidator
from torch import nn

from skdptune._compat import cloudpickle
from skdptune.neural_network._noisy_steps import with_gradients_per_record
from skdptune.neural_network._stacked_gradients import (
    LossPerRecord,
    has_only_linear_layers,
    layers_of,
)

Device: TypeAlias = str | torch.device

_N_SYNTHETIC = 3
_MIXING = "module must treat records one by one; got one in which a record"
_REMEMBERING = "must not depend on earlier batches; got one in which a record changes"
_FIX = (
    "Opacus offers a fix, such as GroupNorm for BatchNorm: fix_module=True applies "
    "opacus.validators.ModuleValidator.fix to it."
)


def fixed_module(module: nn.Module) -> nn.Module:
    """Return a copy in which Opacus has replaced layers that mix records, if possible."""
    return ModuleValidator.fix(module)


def check_module(module: nn.Module, record_shape: tuple[int, ...], device: Device) -> None:
    """Refuse a module that has nothing to train, or that is found to mix records.

    Parameters
    ----------
    module : torch.nn.Module
        The module, on `device`.
    record_shape : tuple of int
        Shape of one record.
    device : str or torch.device
        Device of the module.

    Notes
    -----
    Assumption U0.

    Opacus knows layers by their classes. Modules other than plain sequences of known layers are
    tried on a batch of synthetic records.
    Each output's gradient by all other records must be zero, no buffer may change, and outputs may
    not depend on an earlier batch. Nothing that copies of the module share may change. This is a
    check and not a proof: a module can mix records behind operations without gradients.
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
    # Each trial uses a copy, which it may change.
    trial = copy.deepcopy(module)
    before = _state_of(trial)
    records = torch.rand(_N_SYNTHETIC, *record_shape, device=device, requires_grad=True)
    if layers_of(module) is not None:
        # Each of these layers treats records one by one, and keeps nothing.
        _output_of(trial, records)
        return
    with nothing_shared(module, "module"):
        outputs = _output_of(trial, records)
        if len(outputs) != len(records):
            raise ValueError(
                f"module must return one output for each record; got {len(outputs)} for "
                f"{len(records)} records."
            )
        after = _state_of(trial)
        same = [torch.equal(before[name], after[name]) for name in before.keys() & after.keys()]
        if before.keys() != after.keys() or not all(same):
            raise ValueError(f"{_MIXING} changes a buffer or a parameter.")
        if _mixes_by_gradient(records, outputs) or _mixes_by_value(module, records):
            raise ValueError(f"{_MIXING} changes the outputs of others.")
        if any(_remembers(module, records, training) for training in (True, False)):
            raise ValueError(f"module {_REMEMBERING} the outputs for later ones.")


def _state_of(module: nn.Module) -> dict[str, torch.Tensor]:
    named = (*module.named_parameters(), *module.named_buffers())
    return {name: value.detach().clone() for name, value in named}


@contextmanager
def nothing_shared(component: nn.Module, name: str) -> Iterator[None]:
    """Refuse a component if anything that its copies share changes in the block.

    An example is a list in the closure of a hook: records that a copy leaves there would be
    published.

    Notes
    -----
    Assumption U0.
    """
    before = _pickled(component)
    yield
    if _pickled(component) != before:
        raise ValueError(
            f"{name} must not store what it computes outside of itself; got one that changes an "
            "object which its copies share, such as a list of a closure or of a class. Records "
            "would remain there."
        )


def _pickled(component: nn.Module) -> bytes | None:
    """Return all that is published with a component; None if it cannot be pickled at all."""
    try:
        return bytes(cloudpickle.dumps(component))
    except Exception:
        return None


def _remembers(module: nn.Module, records: torch.Tensor, training: bool) -> bool:
    """Return whether a training batch changes the outputs for a later batch."""
    before = _seeded_output(module, records, training)
    used = copy.deepcopy(module)
    with same_draws(records.device):
        _output_of(used, _twice(1.0 - records.detach()))
    with torch.no_grad(), same_draws(records.device):
        return _differ(before, _output_of(used.train(training), records))


def _twice(values: torch.Tensor) -> torch.Tensor:
    return torch.cat([values, values])


def _mixes_by_value(module: nn.Module, records: torch.Tensor) -> bool:
    """Return whether a change of the first record changes the outputs of others."""
    changed = records.detach().clone()
    changed[0] = 1.0 - changed[0]
    found = [_seeded_output(module, values) for values in (records, changed)]
    return _differ(found[0][1:], found[1][1:])


def _seeded_output(
    module: nn.Module, records: torch.Tensor, training: bool = True
) -> torch.Tensor:
    with torch.no_grad(), same_draws(records.device):
        return _output_of(copy.deepcopy(module).train(training), records)


@contextmanager
def same_draws(device: torch.device, seed: int = 0) -> Iterator[None]:
    """Let a module draw the numbers of a seed, then restore torch's generators."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        # The general function also queues a call for every accelerator that is not in use.
        on_cpu = device.type == "cpu"
        (torch.default_generator.manual_seed if on_cpu else torch.manual_seed)(seed)
        yield


def _differ(one: torch.Tensor, other: torch.Tensor) -> bool:
    if one.shape != other.shape:
        return True
    return not torch.allclose(one, other, rtol=1e-4, atol=1e-5, equal_nan=True)


class CriterionError(ValueError):
    """Losses that do not suit the module's outputs, whatever the records are."""


def check_losses(
    module: nn.Module,
    fresh_losses: Callable[[], LossPerRecord],
    record_shape: tuple[int, ...],
    targets: torch.Tensor,
    device: Device,
) -> None:
    """Refuse losses if one of them is found to depend on another record.

    Parameters
    ----------
    module : torch.nn.Module
        The module, on `device`; it has been checked.
    fresh_losses : callable
        Returns a new function of outputs and targets, with one loss per record, that has seen no
        batch yet.
    record_shape : tuple of int
        Shape of one record.
    targets : tensor
        Only their shape and dtype are used.
    device : str or torch.device
        Device of the module.

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
            fresh_losses()(*trial)
            for trial in ((outputs, wanted), (changed, wanted), (outputs, changed_targets))
        ]
    except CriterionError:
        # In a training they would count as refusing all records, and nothing would be learned.
        raise
    except Exception:
        # A loss may refuse synthetic records; then it cannot be checked on them.
        return
    if any(_differ(found[1:], values[1:]) for values in others):
        raise ValueError(
            "criterion must treat records one by one; got one in which a record changes the "
            "losses of others."
        )
    try:
        used = fresh_losses()
        used(_twice(changed).requires_grad_(), _twice(changed_targets))
        later = used(outputs, wanted)
    except Exception:
        return
    if _differ(found, later):
        raise ValueError(f"criterion {_REMEMBERING} the losses of later ones.")


def has_outer_products(module: nn.Module, record_shape: tuple[int, ...], device: Device) -> bool:
    """Return whether each gradient of a module is one outer product per layer and record.

    Parameters
    ----------
    module : torch.nn.Module
        The module, on `device`.
    record_shape : tuple of int
        Shape of one record.
    device : str or torch.device
        Device of the module.

    Notes
    -----
    Theorem U1.

    Clipping by norms only adds up positions (of a sequence, or patches of an image) and records in
    one product. A record with large positions that cancel each other has a gradient of moderate
    norm, is not clipped, and absorbs by rounding what all other records add. With one position per
    record, every added number is at most as large as the clipping norm. Only plain sequences of
    known layers qualify: in other modules a weight may be used where no norm is computed, or the
    backward pass may not be linear.
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
    """Refuse a module whose gradients may not be clipped by norms only."""
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
            f"module must accept records of shape {tuple(records.shape[1:])}; it raised an error: "
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


_SIZES = (3, 4)
_TOLERANCE = 1e-3


def check_gradients(
    module: nn.Module,
    fresh_losses: Callable[[], LossPerRecord],
    record_shape: tuple[int, ...],
    targets: torch.Tensor,
    device: Device,
    mode: str,
) -> None:
    """Refuse a module for which Opacus computes anything other than each record's gradient.

    Parameters
    ----------
    module : torch.nn.Module
        The module, in training mode, on `device`.
    fresh_losses : callable
        Returns a new function of outputs and targets, with one loss per record, that has seen no
        batch yet.
    record_shape : tuple of int
        Shape of one record.
    targets : tensor
        Only their shape and dtype are used.
    device : str or torch.device
        Device of the module.
    mode : {"hooks", "functorch"}
        How Opacus computes gradients.

    Notes
    -----
    Assumption U0.

    Layers may hold records along another axis than the first, or mix them only in the backward
    pass, or use what earlier batches left. Gradients of synthetic records, in two successive
    batches, are therefore compared with those that autograd computes for one loss at a time, each
    batch by a new module. This is a check and not a proof.
    """
    wrapped = with_gradients_per_record(copy.deepcopy(module), mode)
    losses = fresh_losses()
    for size in _SIZES:
        records = torch.rand(size, *record_shape, device=device)
        wanted = torch.zeros(size, *targets.shape[1:], dtype=targets.dtype, device=device)
        try:
            truth = _by_autograd(copy.deepcopy(module), fresh_losses(), records, wanted)
        except Exception:
            # A module or loss that refuses synthetic records cannot be checked on them.
            return
        found = _by_opacus(wrapped, losses, records, wanted)
        tolerance = _TOLERANCE * max(float(values.abs().max()) for values in truth)
        if not all(_are_close(*pair, tolerance) for pair in zip(found, truth, strict=True)):
            raise ValueError(
                "module must treat records one by one, along the first axis of every layer's "
                "inputs; got gradients of records that are not their own, or that depend on "
                "earlier batches."
            )


def _outputs(module: nn.Module, records: torch.Tensor) -> torch.Tensor:
    with same_draws(records.device):
        return module(records)


def _by_autograd(
    module: nn.Module, losses: LossPerRecord, records: torch.Tensor, targets: torch.Tensor
) -> list[torch.Tensor]:
    trained = [p for p in module.parameters() if p.requires_grad]
    values = losses(_outputs(module, records), targets)
    rows = [torch.autograd.grad(value, trained, retain_graph=True) for value in values]
    return [torch.stack(same) for same in zip(*rows, strict=True)]


def _by_opacus(
    wrapped: nn.Module, losses: LossPerRecord, records: torch.Tensor, targets: torch.Tensor
) -> list[torch.Tensor | None]:
    torch.autograd.backward(losses(_outputs(wrapped, records), targets).sum())
    trained = [p for p in wrapped.parameters() if p.requires_grad]
    found = [vars(parameter).pop("grad_sample", None) for parameter in trained]
    for parameter in trained:
        parameter.grad_sample = None
    return found


def _are_close(found: torch.Tensor | None, truth: torch.Tensor, tolerance: float) -> bool:
    if not isinstance(found, torch.Tensor) or found.shape != truth.shape:
        return False
    return torch.allclose(found, truth, rtol=0.0, atol=tolerance)
