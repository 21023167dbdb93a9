"""Checks that the gradients that Opacus computes for records are their own."""

from __future__ import annotations

import copy
from collections.abc import Callable

import torch
from torch import nn

from skdptune.neural_network._module_check import Device, LossPerRecord, same_draws
from skdptune.neural_network._noisy_steps import with_gradients_per_record

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
    """Refuse a module for which Opacus computes something else than each record's gradient.

    Parameters
    ----------
    module : torch.nn.Module
        In training mode, on `device`.
    fresh_losses : callable
        Returns a function of outputs and targets, with one loss per record, which has seen no
        batch yet.
    record_shape : tuple of int
        Shape of one record.
    targets : tensor
        Of which shape and dtype are used, and nothing else.
    device : str or torch.device
        Where the module is.
    mode : {"hooks", "functorch"}
        How Opacus computes gradients.

    Notes
    -----
    Assumption U0.

    Layers may hold records along another axis than the first, or mix them in the backward pass
    alone, or use what earlier batches left. So gradients of synthetic records, in two batches one
    after another, are compared with those that autograd computes for one loss at a time, each
    batch by a fresh module. It is a check and no proof.
    """
    wrapped = with_gradients_per_record(copy.deepcopy(module), mode, 1.0)
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
