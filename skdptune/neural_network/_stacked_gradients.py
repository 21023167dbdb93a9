"""Sums of clipped gradients of many nets at once, each net on its own records.

A layer's inputs are stacked over all nets: (nets, records, ...). The gradient of one record's loss
by the weights of a linear layer is the outer product of its slope (the derivative of the loss by
the layer's outputs) and its input. So its norm is a product of two norms. A sum of gradients, each
scaled by its own factor, is one product of matrices: the gradient of a single record is never
computed. For convolutions it is computed, as a sum over patches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from skdptune.neural_network._modules import (
    MLP,
    LogisticHead,
    SizedModule,
    SmallCNN,
    TemperedSigmoid,
    ToImages,
)

# Layers without parameters that treat records independently, whatever their settings.
_PER_RECORD = (
    nn.AvgPool2d,
    nn.ELU,
    nn.GELU,
    nn.Identity,
    nn.LeakyReLU,
    nn.MaxPool2d,
    nn.ReLU,
    nn.SELU,
    nn.SiLU,
    nn.Sigmoid,
    nn.Softplus,
    nn.Tanh,
    TemperedSigmoid,
    ToImages,
)
_OURS = (MLP, LogisticHead, SmallCNN)
# All kinds of modules in which `layers_of` may find layers.
_PLAIN = (*_OURS, *_PER_RECORD, nn.Conv2d, nn.Flatten, nn.Linear, nn.Sequential)
_HOOKS = tuple(name for name in vars(nn.Module()) if name.endswith("_hooks"))
# Largest number of rows of persons whose sum may have 32 bits: its roundings are at most 2^-16 of
# the sum of the rows' weights.
_ROWS_OF_PERSONS = 256
# Largest number of numbers whose norm is computed at once.
_AT_ONCE = 4096
Stack = list[torch.Tensor]


@dataclass(frozen=True)
class PlainLayer:
    """A layer without parameters.

    Attributes
    ----------
    layer : torch.nn.Module
        The layer of one net, applied for all nets.
    """

    layer: nn.Module

    def outputs(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return the layer's outputs for inputs (nets, records, ...)."""
        return self.layer(inputs.flatten(0, 1)).unflatten(0, inputs.shape[:2])


@dataclass(frozen=True)
class StackedLinear:
    """A linear layer on vectors.

    Attributes
    ----------
    weight, bias : int
        Positions of the layer's parameters in a stack; the bias may be missing.
    """

    weight: int
    bias: int | None

    @classmethod
    def of(cls, layer: nn.Module, weight: int, bias: int | None) -> StackedLinear | None:
        """Return the stacked form of a layer; None for other kinds of layers."""
        return cls(weight, bias) if type(layer) is nn.Linear else None

    def features(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return the vectors that the weights multiply: the inputs themselves."""
        if inputs.ndim != 3:
            raise NotImplementedError(
                "a linear layer has a closed form only for vectors; got inputs of more dimensions"
            )
        return inputs

    def outputs(self, features: torch.Tensor, stack: Stack, shape: torch.Size) -> torch.Tensor:
        """Return the outputs; `shape` is that of the layer's inputs."""
        weight = stack[self.weight].transpose(1, 2)
        if self.bias is None:
            return torch.bmm(features, weight)
        return torch.baddbmm(stack[self.bias].unsqueeze(1), features, weight)

    def gradients(self, features: torch.Tensor, slopes: torch.Tensor) -> Stack:
        """Return the two factors of the records' gradients: slopes and inputs."""
        return [slopes, features]

    def squared_norms(self, gradients: Stack) -> torch.Tensor:
        """Return the squared norm of each record's gradient: (nets, records)."""
        slopes, features = gradients
        sizes = _squared_length(features)
        if self.bias is not None:
            sizes = sizes + 1.0
        return _squared_length(slopes) * sizes

    def sums(self, gradients: Stack, factors: torch.Tensor) -> Iterator[tuple[int, torch.Tensor]]:
        """Yield, for each parameter, its position and the sum of gradients times factors."""
        slopes, features = gradients
        scaled = slopes * factors[..., None].to(slopes.dtype)
        yield self.weight, _products(scaled, features, factors.dtype)
        if self.bias is not None:
            yield self.bias, scaled.sum(dim=1, dtype=factors.dtype)


@dataclass(frozen=True)
class StackedConv2d:
    """A convolution of images, as a linear layer on all patches of an image.

    Attributes
    ----------
    weight, bias : int
        Positions of the layer's parameters in a stack; the bias may be missing.
    settings : dict
        Kernel size, stride, padding and dilation.
    """

    weight: int
    bias: int | None
    settings: dict[str, Any]

    @classmethod
    def of(cls, layer: nn.Module, weight: int, bias: int | None) -> StackedConv2d | None:
        """Return the stacked form of a layer; None for other kinds of layers."""
        if type(layer) is not nn.Conv2d or layer.groups != 1 or layer.padding_mode != "zeros":
            return None
        if isinstance(layer.padding, str):
            return None
        names = ("kernel_size", "stride", "padding", "dilation")
        return cls(weight, bias, {name: getattr(layer, name) for name in names})

    def features(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return the patches of each image: (nets, records, numbers in a patch, patches)."""
        patches = functional.unfold(inputs.flatten(0, 1), **self.settings)
        return patches.unflatten(0, inputs.shape[:2])

    def outputs(self, features: torch.Tensor, stack: Stack, shape: torch.Size) -> torch.Tensor:
        """Return the outputs; `shape` is that of the layer's inputs."""
        weight = stack[self.weight].flatten(2)
        found = torch.einsum("koc,kbcp->kbop", weight, features)
        if self.bias is not None:
            found = found + stack[self.bias][:, None, :, None]
        return found.unflatten(-1, self._sides(shape[-2:]))

    def _sides(self, sides: torch.Size) -> tuple[int, ...]:
        parts = zip(sides, *self.settings.values(), strict=True)
        return tuple(
            (side + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
            for side, kernel, stride, padding, dilation in parts
        )

    def gradients(self, features: torch.Tensor, slopes: torch.Tensor) -> Stack:
        """Return the records' gradients.

        The numbers whose norm is computed must be the ones that are clipped and added. In a sum
        over patches and records at once, large patches of one record, which cancel each other in
        its own gradient, would absorb by rounding what other records add.

        Notes
        -----
        Theorem U2.
        """
        slopes = slopes.flatten(3)
        found = [torch.einsum("kbop,kbcp->kboc", slopes, features)]
        return found if self.bias is None else [*found, slopes.sum(dim=3)]

    def squared_norms(self, gradients: Stack) -> torch.Tensor:
        """Return the squared norm of each record's gradient: (nets, records)."""
        lengths = [lengths_of(values.flatten(2)) for values in gradients]
        return torch.stack(lengths).square().sum(dim=0)

    def sums(self, gradients: Stack, factors: torch.Tensor) -> Iterator[tuple[int, torch.Tensor]]:
        """Yield, for each parameter, its position and the sum of gradients times factors."""
        positions = [self.weight] if self.bias is None else [self.weight, self.bias]
        for position, values in zip(positions, gradients, strict=True):
            flat = values.flatten(2).to(factors.dtype)
            yield position, torch.bmm(factors[:, None], flat)[:, 0]


def _products(left: torch.Tensor, right: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return the sum over records of outer products, for each net.

    Notes
    -----
    Theorem U1. In a wider type than that of the vectors, few records at once are added up in
    theirs, which takes a third of the time.
    """
    if dtype == left.dtype:
        return torch.bmm(left.transpose(1, 2), right)
    whole = left.shape[1] // _ROWS_OF_PERSONS * _ROWS_OF_PERSONS
    rest = torch.bmm(left[:, whole:].transpose(1, 2), right[:, whole:]).to(dtype)
    if not whole:
        return rest
    first, second = (
        each[:, :whole].reshape(-1, _ROWS_OF_PERSONS, each.shape[-1]) for each in (left, right)
    )
    parts = torch.bmm(first.transpose(1, 2), second).unflatten(0, (len(left), -1))
    return rest + parts.sum(dim=1, dtype=dtype)


def _squared_length(vectors: torch.Tensor) -> torch.Tensor:
    """Return squared lengths, never below the true ones if small squares underflow to zero.

    A factor of zero would hide the size of the other factor, and thereby a gradient to clip.

    Notes
    -----
    Theorem U2.
    """
    underflow = vectors.shape[-1] * torch.finfo(vectors.dtype).tiny
    return vectors.square().sum(dim=-1) + underflow


TrainedLayer = StackedLinear | StackedConv2d
Layer = PlainLayer | TrainedLayer


def is_simple(module: nn.Module) -> bool:
    """Return whether the parts describe a module fully: no hooks, no shared parameters."""
    for part in module.modules():
        if any(getattr(part, name, None) for name in _HOOKS) or "forward" in vars(part):
            return False
        if nn.utils.parametrize.is_parametrized(part):
            return False
    names = list(module.named_parameters(remove_duplicate=False))
    return len(names) == len(list(module.parameters()))


def layers_of(module: nn.Module) -> list[Layer] | None:
    """Return the layers of a plain sequence of known layers; None for any other module."""
    if not is_simple(module):
        return None
    parameters = list(module.parameters())
    positions = {id(parameter): position for position, parameter in enumerate(parameters)}
    if not all(parameter.requires_grad for parameter in parameters):
        return None
    layers: list[Layer] = []
    for layer in _sequence(module):
        stacked = _layer_of(layer, positions)
        if stacked is None:
            return None
        layers.append(stacked)
    trained = [layer for layer in layers if not isinstance(layer, PlainLayer)]
    used = [p for layer in trained for p in (layer.weight, layer.bias) if p is not None]
    # A parameter that two layers share would need the norm of a sum.
    return layers if sorted(used) == list(range(len(parameters))) else None


def may_have_layers(module: Any) -> bool:
    """Return whether `layers_of` may find layers in the module argument of a net."""
    if isinstance(module, nn.Module) and not isinstance(module, SizedModule):
        return layers_of(module) is not None
    kind = module if isinstance(module, type) else type(module)
    return not issubclass(kind, nn.Module) or kind in _PLAIN


def has_only_linear_layers(module: nn.Module) -> bool:
    """Return whether a module is a plain sequence whose trained layers are all linear."""
    layers = layers_of(module)
    return layers is not None and not any(isinstance(layer, StackedConv2d) for layer in layers)


def _sequence(module: nn.Module) -> Iterator[nn.Module | None]:
    """Yield the layers in the order in which they are applied; None for unknown layers."""
    if type(module) is nn.Sequential:
        for layer in module:
            yield from _sequence(layer)
    elif isinstance(module, SizedModule) and type(module) in _OURS:
        yield from [None] if module.layers is None else _sequence(module.layers)
    else:
        yield module


def _layer_of(layer: nn.Module | None, positions: dict[int, int]) -> Layer | None:
    if layer is None or getattr(layer, "inplace", False):
        return None
    if type(layer) in _PER_RECORD or (type(layer) is nn.Flatten and layer.start_dim == 1):
        return PlainLayer(layer)
    weight, bias = getattr(layer, "weight", None), getattr(layer, "bias", None)
    if id(weight) not in positions:
        return None
    indices = positions[id(weight)], positions.get(id(bias))
    return StackedLinear.of(layer, *indices) or StackedConv2d.of(layer, *indices)


# As in Opacus: keeps the factor of a gradient of length 0 finite.
_CLIPPING_FLOOR = 1e-6
_TOLERANCE = 1e-3

LossPerRecord = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def clipping_factors(lengths: torch.Tensor, norms: torch.Tensor | float) -> torch.Tensor:
    """Return the factors that clip gradients of some lengths to norms; 0 if not finite."""
    factors = (norms / (lengths + _CLIPPING_FLOOR)).clamp(max=1.0)
    return torch.where(lengths.isfinite(), factors, 0.0)


def lengths_of(vectors: torch.Tensor) -> torch.Tensor:
    """Return the lengths of the vectors along the last axis, to about six digits.

    Notes
    -----
    Theorem U2.
    """
    # Squares that are stored take twelve times as long. The norm of many numbers in one call can
    # be 1 % too small, since they are added up one after another in float32.
    parts = [torch.linalg.vector_norm(part, dim=-1) for part in vectors.split(_AT_ONCE, dim=-1)]
    return torch.linalg.vector_norm(torch.stack(parts), dim=0)


class ClosedFormGradients:
    """Gradients of a sequence of known layers.

    Parameters
    ----------
    layers : list
        The result of `layers_of`.
    losses : callable
        One loss per record, from outputs and targets.
    is_separable : bool
        Whether losses certainly treat records independently, so that those of all nets can be
        computed in one call.

    Attributes
    ----------
    numbers_per_record : int
        How many numbers a pass holds for each record.
    """

    def __init__(self, layers: list[Layer], losses: LossPerRecord, is_separable: bool) -> None:
        self._layers = layers
        self._losses = losses
        self._is_separable = is_separable
        self.numbers_per_record = 0

    def clipped_sums(
        self,
        stack: Stack,
        inputs: torch.Tensor,
        targets: torch.Tensor,
        present: torch.Tensor,
        norms: torch.Tensor,
        weights: torch.Tensor | None = None,
    ) -> Stack:
        """Return, for each parameter, the sums (nets, ...) of the records' clipped gradients.

        Parameters
        ----------
        stack : list of tensor
            Parameters: (nets, ...) each.
        inputs, targets : tensor of shape (nets, records, ...)
            Each net's records.
        present : tensor of bool of shape (nets, records)
            False for padding.
        norms : tensor of shape (nets,)
            Norm to which each net's gradients are clipped.
        weights : tensor of shape (nets, records), optional
            Factors in [0, 1] of clipped gradients; ones by default. Sums have their precision.
        """
        outputs, trained = self.outputs(stack, inputs)
        loss = self._total_loss(outputs, targets)
        slopes = torch.autograd.grad(loss, [values for _, _, values in trained])
        pairs = [
            (layer, layer.gradients(features, slope))
            for (layer, features, _), slope in zip(trained, slopes, strict=True)
        ]
        del outputs, loss, trained
        squares = torch.stack([layer.squared_norms(found) for layer, found in pairs]).sum(dim=0)
        factors = torch.where(present, clipping_factors(squares.sqrt(), norms[:, None]), 0.0)
        if weights is not None:
            factors = factors * weights
        invalid = ~squares.isfinite()
        if bool(invalid.any()):
            # Infinities and NaN times zero are NaN.
            pairs = [(layer, [zeroed(v, invalid) for v in found]) for layer, found in pairs]
        sums: Stack = [torch.empty(0)] * len(stack)
        for layer, gradients in pairs:
            for position, total in layer.sums(gradients, factors):
                sums[position] = total.reshape(stack[position].shape)
        return sums

    def _total_loss(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        if self._is_separable:
            return self._losses(outputs.flatten(0, 1), targets.flatten(0, 1)).sum()
        own = zip(outputs, targets, strict=True)
        return torch.stack([self._losses(*pair).sum() for pair in own]).sum()

    def outputs(
        self, stack: Stack, inputs: torch.Tensor
    ) -> tuple[torch.Tensor, list[tuple[TrainedLayer, torch.Tensor, torch.Tensor]]]:
        """Return the outputs, and each trained layer with its features and its own outputs."""
        trained: list[tuple[TrainedLayer, torch.Tensor, torch.Tensor]] = []
        numbers = 0
        values = inputs
        for layer in self._layers:
            if isinstance(layer, PlainLayer):
                values = layer.outputs(values)
            else:
                features = layer.features(values)
                values = layer.outputs(features, stack, values.shape)
                if not values.requires_grad:
                    values.requires_grad_()
                trained.append((layer, features.detach(), values))
                numbers += features[0, :1].numel()
            numbers += 3 * values[0, :1].numel()
        self.numbers_per_record = inputs[0, :1].numel() + numbers
        return values, trained


def zeroed(values: torch.Tensor, invalid: torch.Tensor) -> torch.Tensor:
    """Return values with zeros for invalid records."""
    ones = [1] * (values.ndim - invalid.ndim)
    return values.masked_fill(invalid.reshape(*invalid.shape, *ones), 0.0)


def stacked_gradients(
    modules: Sequence[nn.Module],
    losses: LossPerRecord,
    record: torch.Tensor,
    target: torch.Tensor,
    is_separable: bool = False,
) -> ClosedFormGradients | None:
    """Return an object that computes the gradients of modules of one structure, or None.

    Parameters
    ----------
    modules : sequence of torch.nn.Module
        In training mode, on the device of `record`.
    losses : callable
        One loss per record, from outputs and targets.
    record, target : tensor
        A synthetic record and target, on which gradients are compared.
    is_separable : bool, default=False
        Whether losses certainly treat records independently.

    Notes
    -----
    Theorem U2.

    A returned object reproduced each module's own gradient on the synthetic record. None is
    therefore returned for a module that does more than its layers imply, and for one without a
    closed form.
    """
    layers = layers_of(modules[0])
    if layers is None:
        return None
    parameters = zip(
        *([p.detach() for p in module.parameters()] for module in modules), strict=True
    )
    stack = [torch.stack(same) for same in parameters]
    closed = ClosedFormGradients(layers, losses, is_separable)
    return closed if _agrees(closed, stack, modules, losses, record, target) else None


def _agrees(
    gradients: ClosedFormGradients,
    stack: Stack,
    modules: Sequence[nn.Module],
    losses: LossPerRecord,
    record: torch.Tensor,
    target: torch.Tensor,
) -> bool:
    """Return whether the computed gradients of a record equal each module's own gradient."""
    size = len(modules)
    present = torch.ones(size, 1, dtype=torch.bool, device=record.device)
    try:
        found = gradients.clipped_sums(
            stack,
            record.expand(size, 1, *record.shape),
            target.expand(size, 1, *target.shape),
            present,
            torch.full((size,), torch.finfo(record.dtype).max, device=record.device),
        )
        wanted = [
            torch.autograd.grad(
                losses(module(record[None]), target[None])[0], list(module.parameters())
            )
            for module in modules
        ]
    except Exception:
        return False
    own = [torch.stack(same) for same in zip(*wanted, strict=True)]
    return all(
        sums.shape == truth.shape
        and torch.allclose(
            sums, truth, rtol=_TOLERANCE, atol=_TOLERANCE * float(truth.abs().max())
        )
        for sums, truth in zip(found, own, strict=True)
    )
