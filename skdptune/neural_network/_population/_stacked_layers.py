"""Layers of many nets at once, and what their records' gradients are, in closed form.

A layer's inputs are held for all nets together: (nets, records, ...). The gradient of a record by
the weights of a linear layer is the outer product of its slope (the derivative of its loss by its
outputs) and its input. So its norm is a product of two norms, and a sum of gradients, each scaled
by its own factor, is one product of matrices: no gradient of a single record is ever made. Those
of convolutions are made, as sums over patches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from skdptune.neural_network._modules import MLP, LogisticHead, SmallCNN, TemperedSigmoid, ToImages

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
        That of one net, which stands for all.
    """

    layer: nn.Module

    def outputs(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return what the layer makes of inputs (nets, records, ...)."""
        return self.layer(inputs.flatten(0, 1)).unflatten(0, inputs.shape[:2])


@dataclass(frozen=True)
class StackedLinear:
    """A linear layer on vectors.

    Attributes
    ----------
    weight, bias : int
        Where the layer's parameters are in a stack; the bias may be missing.
    """

    weight: int
    bias: int | None

    @classmethod
    def of(cls, layer: nn.Module, weight: int, bias: int | None) -> StackedLinear | None:
        """Return the rule of a layer, if it is such a one."""
        return cls(weight, bias) if type(layer) is nn.Linear else None

    def plan(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return the inputs as the closed forms need them."""
        if inputs.ndim != 3:
            raise NotImplementedError(
                "a linear layer on more than vectors has no closed form here"
            )
        return inputs

    def outputs(self, plan: torch.Tensor, stack: Stack, shape: torch.Size) -> torch.Tensor:
        """Return the outputs; `shape` is that of the layer's inputs."""
        weight = stack[self.weight].transpose(1, 2)
        if self.bias is None:
            return torch.bmm(plan, weight)
        return torch.baddbmm(stack[self.bias].unsqueeze(1), plan, weight)

    def gradients(self, plan: torch.Tensor, slopes: torch.Tensor) -> Stack:
        """Return what the records' gradients are made of: slopes, and what they multiply."""
        return [slopes, plan]

    def squared_norms(self, gradients: Stack) -> torch.Tensor:
        """Return the squared norm of each record's gradient: (nets, records)."""
        slopes, plan = gradients
        sizes = _squared_length(plan)
        if self.bias is not None:
            sizes = sizes + 1.0
        return _squared_length(slopes) * sizes

    def sums(self, gradients: Stack, factors: torch.Tensor) -> Iterator[tuple[int, torch.Tensor]]:
        """Yield, for each parameter, its place and the sum of gradients times factors."""
        slopes, plan = gradients
        scaled = slopes * factors[..., None]
        yield self.weight, torch.bmm(scaled.transpose(1, 2), plan)
        if self.bias is not None:
            yield self.bias, scaled.sum(dim=1)


@dataclass(frozen=True)
class StackedConv2d:
    """A convolution of images, as a linear layer on all patches of an image.

    Attributes
    ----------
    weight, bias : int
        Where the layer's parameters are in a stack; the bias may be missing.
    settings : dict
        Kernel size, stride, padding and dilation.
    """

    weight: int
    bias: int | None
    settings: dict[str, Any]

    @classmethod
    def of(cls, layer: nn.Module, weight: int, bias: int | None) -> StackedConv2d | None:
        """Return the rule of a layer, if it is such a one."""
        if type(layer) is not nn.Conv2d or layer.groups != 1 or layer.padding_mode != "zeros":
            return None
        if isinstance(layer.padding, str):
            return None
        names = ("kernel_size", "stride", "padding", "dilation")
        return cls(weight, bias, {name: getattr(layer, name) for name in names})

    def plan(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return the patches of each image: (nets, records, numbers in a patch, patches)."""
        patches = functional.unfold(inputs.flatten(0, 1), **self.settings)
        return patches.unflatten(0, inputs.shape[:2])

    def outputs(self, plan: torch.Tensor, stack: Stack, shape: torch.Size) -> torch.Tensor:
        """Return the outputs; `shape` is that of the layer's inputs."""
        weight = stack[self.weight].flatten(2)
        found = torch.einsum("koc,kbcp->kbop", weight, plan)
        if self.bias is not None:
            found = found + stack[self.bias][:, None, :, None]
        return found.unflatten(-1, self._sides(shape[-2:]))

    def _sides(self, sides: torch.Size) -> tuple[int, ...]:
        parts = zip(sides, *self.settings.values(), strict=True)
        return tuple(
            (side + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
            for side, kernel, stride, padding, dilation in parts
        )

    def gradients(self, plan: torch.Tensor, slopes: torch.Tensor) -> Stack:
        """Return the records' gradients.

        What is clipped and added must be the very numbers whose norm is taken. A sum over
        patches and records at once would let a record's large patches, which cancel each other
        in its own gradient, swallow in rounding what other records add.
        """
        slopes = slopes.flatten(3)
        found = [torch.einsum("kbop,kbcp->kboc", slopes, plan)]
        return found if self.bias is None else [*found, slopes.sum(dim=3)]

    def squared_norms(self, gradients: Stack) -> torch.Tensor:
        """Return the squared norm of each record's gradient: (nets, records)."""
        return sum(values.flatten(2).square().sum(dim=2) for values in gradients)

    def sums(self, gradients: Stack, factors: torch.Tensor) -> Iterator[tuple[int, torch.Tensor]]:
        """Yield, for each parameter, its place and the sum of gradients times factors."""
        places = [self.weight] if self.bias is None else [self.weight, self.bias]
        for place, values in zip(places, gradients, strict=True):
            yield place, torch.bmm(factors[:, None], values.flatten(2))[:, 0]


def _squared_length(vectors: torch.Tensor) -> torch.Tensor:
    """Return squared lengths, not below the true ones where small squares vanish in rounding.

    A vanished factor would hide the size of the other one, and so of a gradient to be clipped.
    """
    vanished = vectors.shape[-1] * torch.finfo(vectors.dtype).tiny
    return vectors.square().sum(dim=-1) + vanished


Layer = PlainLayer | StackedLinear | StackedConv2d


def is_simple(module: nn.Module) -> bool:
    """Say whether a module is no more than its parts: without hooks or shared parameters."""
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
    places = {id(parameter): place for place, parameter in enumerate(parameters)}
    if not all(parameter.requires_grad for parameter in parameters):
        return None
    found = [_layer_of(layer, places) for layer in _sequence(module)]
    if None in found:
        return None
    trained = [layer for layer in found if not isinstance(layer, PlainLayer)]
    used = [place for layer in trained for place in (layer.weight, layer.bias)]
    # A parameter that two layers share would need the norm of a sum.
    once = sorted(place for place in used if place is not None) == list(range(len(parameters)))
    return found if once else None


def _sequence(module: nn.Module) -> Iterator[nn.Module | None]:
    """Yield the layers in the order in which they are applied; None for what is not known."""
    if type(module) is nn.Sequential:
        for layer in module:
            yield from _sequence(layer)
    elif type(module) in (MLP, LogisticHead, SmallCNN):
        yield from _sequence(module.layers)
    else:
        yield module


def _layer_of(layer: nn.Module | None, places: dict[int, int]) -> Layer | None:
    if layer is None or getattr(layer, "inplace", False):
        return None
    if type(layer) in _PER_RECORD or (type(layer) is nn.Flatten and layer.start_dim == 1):
        return PlainLayer(layer)
    weight, bias = getattr(layer, "weight", None), getattr(layer, "bias", None)
    if id(weight) not in places:
        return None
    for kind in (StackedLinear, StackedConv2d):
        found = kind.of(layer, places[id(weight)], places.get(id(bias)))
        if found is not None:
            return found
    return None
