"""Layers of many nets at once, with per-record gradients in closed form.

A layer's inputs are stacked over all nets: (nets, records, ...). The gradient of one record's loss
by the weights of a linear layer is the outer product of its slope (the derivative of the loss by
the layer's outputs) and its input. So its norm is a product of two norms, and a sum of gradients,
each scaled by its own factor, is one product of matrices: the gradient of a single record is never
computed. For convolutions it is computed, as a sum over patches.
"""

from __future__ import annotations

from collections.abc import Iterator
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

# Layers without parameters that treat records one by one, whatever their settings.
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
_HOOKS = tuple(name for name in vars(nn.Module()) if name.endswith("_hooks"))
Stack = list[torch.Tensor]


@dataclass(frozen=True)
class PlainLayer:
    """A layer without parameters.

    Attributes
    ----------
    layer : torch.nn.Module
        Taken from one net, applied for all.
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
        """Return the stacked form of a layer; None if it is of another kind."""
        return cls(weight, bias) if type(layer) is nn.Linear else None

    def features(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return the vectors that the weights multiply: the inputs themselves."""
        if inputs.ndim != 3:
            raise NotImplementedError(
                "a linear layer has a closed form for vectors alone; got inputs of more dimensions"
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
        scaled = slopes * factors[..., None]
        yield self.weight, torch.bmm(scaled.transpose(1, 2), features)
        if self.bias is not None:
            yield self.bias, scaled.sum(dim=1)


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
        """Return the stacked form of a layer; None if it is of another kind."""
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

        The numbers that are clipped and added must be the ones whose norm is taken. In a sum over
        patches and records at once, large patches of one record, which cancel each other in its
        own gradient, would absorb what other records add, by rounding.

        Notes
        -----
        Theorem U2.
        """
        slopes = slopes.flatten(3)
        found = [torch.einsum("kbop,kbcp->kboc", slopes, features)]
        return found if self.bias is None else [*found, slopes.sum(dim=3)]

    def squared_norms(self, gradients: Stack) -> torch.Tensor:
        """Return the squared norm of each record's gradient: (nets, records)."""
        squares = [values.flatten(2).square().sum(dim=2) for values in gradients]
        return torch.stack(squares).sum(dim=0)

    def sums(self, gradients: Stack, factors: torch.Tensor) -> Iterator[tuple[int, torch.Tensor]]:
        """Yield, for each parameter, its position and the sum of gradients times factors."""
        positions = [self.weight] if self.bias is None else [self.weight, self.bias]
        for position, values in zip(positions, gradients, strict=True):
            yield position, torch.bmm(factors[:, None], values.flatten(2))[:, 0]


def _squared_length(vectors: torch.Tensor) -> torch.Tensor:
    """Return squared lengths, not below the true ones where small squares underflow to zero.

    A factor of zero would hide the size of the other factor, and so a gradient to be clipped.

    Notes
    -----
    Theorem U2.
    """
    underflow = vectors.shape[-1] * torch.finfo(vectors.dtype).tiny
    return vectors.square().sum(dim=-1) + underflow


TrainedLayer = StackedLinear | StackedConv2d
Layer = PlainLayer | TrainedLayer


def is_simple(module: nn.Module) -> bool:
    """Return whether a module is fully described by its parts: no hooks, no shared parameters."""
    for part in module.modules():
        if any(getattr(part, name, None) for name in _HOOKS) or "forward" in vars(part):
            return False
        if nn.utils.parametrize.is_parametrized(part):
            return False
    names = list(module.named_parameters(remove_duplicate=False))
    return len(names) == len(list(module.parameters()))


def layers_of(module: nn.Module) -> list[Layer] | None:
    """Return the layers of a plain sequence of known ones; None for any other module."""
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


def has_only_linear_layers(module: nn.Module) -> bool:
    """Return whether a module is a plain sequence whose trained layers are all linear."""
    layers = layers_of(module)
    return layers is not None and not any(isinstance(layer, StackedConv2d) for layer in layers)


def _sequence(module: nn.Module) -> Iterator[nn.Module | None]:
    """Yield the layers in the order in which they are applied; None in place of unknown ones."""
    if type(module) is nn.Sequential:
        for layer in module:
            yield from _sequence(layer)
    elif isinstance(module, SizedModule) and type(module) in (MLP, LogisticHead, SmallCNN):
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
