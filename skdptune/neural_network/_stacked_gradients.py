"""Sums of clipped gradients of many nets at once, each net on records of its own."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch
from torch import nn
from torch.func import functional_call, grad, stack_module_state, vmap

from skdptune.neural_network._stacked_layers import Layer, PlainLayer, Stack, layers_of

# As Opacus has it, so that nets come out as they do one by one.
_CLIPPING_FLOOR = 1e-6
_AGREEMENT = 1e-3

LossPerRecord = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


class StackedGradients(Protocol):
    """What finds the sums; nets of one shape, whose parameters are stacked along a first axis."""

    numbers_per_record: int

    def of(self, modules: Sequence[nn.Module]) -> StackedGradients:
        """Return what finds the gradients of some of the modules."""
        ...

    def clipped_sums(
        self,
        stack: Stack,
        inputs: torch.Tensor,
        targets: torch.Tensor,
        present: torch.Tensor,
        norms: torch.Tensor,
    ) -> Stack:
        """Return, for each parameter, the sums (nets, ...) of the records' clipped gradients.

        Parameters
        ----------
        stack : list of tensor
            Parameters: (nets, ...) each.
        inputs, targets : tensor of shape (nets, records, ...)
            Each net's records.
        present : tensor of bool of shape (nets, records)
            False for what only fills up the shape.
        norms : tensor of shape (nets,)
            Norm to which each net's gradients are shortened.
        """
        ...


def clipping_factors(
    squared_norms: torch.Tensor, present: torch.Tensor, norms: torch.Tensor
) -> torch.Tensor:
    """Return what to multiply gradients by: 0 where one is not finite, or stands for no record."""
    factors = (norms[:, None] / (squared_norms.sqrt() + _CLIPPING_FLOOR)).clamp(max=1.0)
    return torch.where(present & squared_norms.isfinite(), factors, 0.0)


class ClosedFormGradients:
    """Gradients of a sequence of known layers.

    Parameters
    ----------
    layers : list
        What `layers_of` returns.
    losses : callable
        One loss per record, from outputs and targets.
    """

    def __init__(self, layers: list[Layer], losses: LossPerRecord) -> None:
        self._layers = layers
        self._losses = losses
        self.numbers_per_record = 0

    def of(self, modules: Sequence[nn.Module]) -> ClosedFormGradients:
        """Return what finds the gradients of some of the modules."""
        return self

    def clipped_sums(
        self,
        stack: Stack,
        inputs: torch.Tensor,
        targets: torch.Tensor,
        present: torch.Tensor,
        norms: torch.Tensor,
    ) -> Stack:
        """Return the sums; see `StackedGradients`."""
        outputs, trained = self.outputs(stack, inputs)
        losses = self._losses(outputs.flatten(0, 1), targets.flatten(0, 1))
        slopes = torch.autograd.grad(losses.sum(), [made for _, _, made in trained])
        parts = [(layer, prepared) for layer, prepared, _ in trained]
        del outputs, losses, trained
        squares = sum(
            layer.squared_norms(prepared, slope)
            for (layer, prepared), slope in zip(parts, slopes, strict=True)
        )
        factors = clipping_factors(squares, present, norms)
        # What is not finite stays so when multiplied by zero.
        poisoned = ~squares.isfinite()
        has_poison = bool(poisoned.any())
        sums: Stack = [torch.empty(0)] * len(stack)
        for (layer, prepared), slope in zip(parts, slopes, strict=True):
            scaled = slope * factors.reshape(*factors.shape, *[1] * (slope.ndim - 2))
            if has_poison:
                scaled[poisoned] = 0.0
                prepared = prepared.clone()
                prepared[poisoned] = 0.0
            for place, found in layer.sums(prepared, scaled):
                sums[place] = found.reshape(stack[place].shape)
        return sums

    def outputs(
        self, stack: Stack, inputs: torch.Tensor
    ) -> tuple[torch.Tensor, list[tuple[Any, torch.Tensor, torch.Tensor]]]:
        """Return the outputs, and each trained layer with its inputs and what it made of them."""
        trained = []
        numbers = 0
        values = inputs
        for layer in self._layers:
            if isinstance(layer, PlainLayer):
                values = layer.outputs(values)
            else:
                prepared = layer.prepared(values)
                values = layer.outputs(prepared, stack, values.shape)
                if not values.requires_grad:
                    values.requires_grad_()
                trained.append((layer, prepared.detach(), values))
                numbers += prepared[0, :1].numel()
            numbers += 3 * values[0, :1].numel()
        self.numbers_per_record = inputs[0, :1].numel() + numbers
        return values, trained


class TracedGradients:
    """Gradients of any module that torch.func can follow, one per record.

    Parameters
    ----------
    modules : sequence of torch.nn.Module
        One for each net; what is not trained in them is read from here.
    losses : callable
        One loss per record, from outputs and targets.
    """

    def __init__(self, modules: Sequence[nn.Module], losses: LossPerRecord) -> None:
        self._module = copy.deepcopy(modules[0]).to("meta")
        self._names = [name for name, p in modules[0].named_parameters() if p.requires_grad]
        trained, buffers = stack_module_state(list(modules))
        trained = {name: value.detach() for name, value in trained.items()}
        size = sum(trained[name][0].numel() for name in self._names)
        self._fixed = {n: v for n, v in trained.items() if n not in self._names} | buffers
        self._losses = losses
        self.numbers_per_record = 4 * size

    def of(self, modules: Sequence[nn.Module]) -> TracedGradients:
        """Return what finds the gradients of some of the modules."""
        return TracedGradients(modules, self._losses)

    def clipped_sums(
        self,
        stack: Stack,
        inputs: torch.Tensor,
        targets: torch.Tensor,
        present: torch.Tensor,
        norms: torch.Tensor,
    ) -> Stack:
        """Return the sums; see `StackedGradients`."""
        trained = dict(zip(self._names, stack, strict=True))
        if not inputs.shape[1]:
            return [torch.zeros_like(values) for values in stack]
        per_record = vmap(grad(self._loss), in_dims=(None, None, 0, 0), randomness="different")
        per_net = vmap(per_record, in_dims=(0, 0, 0, 0), randomness="different")
        found = per_net(trained, self._fixed, inputs, targets)
        gradients = [found[name].flatten(2) for name in self._names]
        squares = sum(values.square().sum(dim=2) for values in gradients)
        factors = clipping_factors(squares, present, norms)
        poisoned = ~squares.isfinite()
        if bool(poisoned.any()):
            for values in gradients:
                values[poisoned] = 0.0
        sums = [torch.bmm(factors[:, None], values) for values in gradients]
        return [s.reshape(like.shape) for s, like in zip(sums, stack, strict=True)]

    def _loss(
        self,
        trained: dict[str, torch.Tensor],
        fixed: dict[str, torch.Tensor],
        record: torch.Tensor,
        target: torch.Tensor,
    ) -> torch.Tensor:
        outputs = functional_call(self._module, {**trained, **fixed}, (record[None],))
        return self._losses(outputs, target[None])[0]


def stacked_gradients(
    modules: Sequence[nn.Module],
    losses: LossPerRecord,
    record: torch.Tensor,
    target: torch.Tensor,
) -> StackedGradients | None:
    """Return what finds the gradients of modules of one shape; None if nothing can.

    Parameters
    ----------
    modules : sequence of torch.nn.Module
        In training mode, on the device of `record`.
    losses : callable
        One loss per record, from outputs and targets.
    record, target : tensor
        A made-up record and target, to try.
    """
    stack = [
        torch.stack(values)
        for values in zip(
            *([p.detach() for p in m.parameters() if p.requires_grad] for m in modules),
            strict=True,
        )
    ]
    layers = layers_of(modules[0])
    if layers is not None:
        closed = ClosedFormGradients(layers, losses)
        if _works(closed, stack, record, target) and _agrees(closed, stack, modules, record):
            return closed
    traced = TracedGradients(modules, losses)
    return traced if _works(traced, stack, record, target) else None


def _works(
    gradients: StackedGradients, stack: Stack, record: torch.Tensor, target: torch.Tensor
) -> bool:
    size = len(stack[0])
    try:
        found = gradients.clipped_sums(
            stack,
            record.expand(size, 2, *record.shape),
            target.expand(size, 2, *target.shape),
            torch.ones(size, 2, dtype=torch.bool, device=record.device),
            torch.ones(size, device=record.device),
        )
    except Exception:
        return False
    return all(sums.shape == like.shape for sums, like in zip(found, stack, strict=True))


def _agrees(
    closed: ClosedFormGradients, stack: Stack, modules: Sequence[nn.Module], record: torch.Tensor
) -> bool:
    """Say whether the layers, applied in turn, give what the modules give."""
    found, _ = closed.outputs(stack, record.expand(len(modules), 1, *record.shape))
    for values, module in zip(found.detach(), modules, strict=True):
        with torch.no_grad():
            wanted = module(record[None])
        if not torch.allclose(values, wanted, rtol=_AGREEMENT, atol=_AGREEMENT):
            return False
    return True
