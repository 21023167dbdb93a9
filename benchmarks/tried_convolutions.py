"""Tried: norms of the gradients of convolutions by Gram matrices, and steps by torch.compile.

    python benchmarks/tried_convolutions.py          clipped sums of a batch of `SmallCNN`
    python benchmarks/tried_convolutions.py compile  clipped sums of 32 `MLP`, compiled

"smaller" takes Gram matrices where they need fewer products than the gradient, "always" takes them
for all convolutions. All ways are run in turn; the figures are medians of processor time.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from neural_peers import attached, loader_of
from torch import nn
from torch.nn import functional

from skdptune.neural_network import MLP, SmallCNN
from skdptune.neural_network._stacked_gradients import (
    ClosedFormGradients,
    StackedConv2d,
    layers_of,
)

Ways = dict[str, Callable[[], Any]]
SETTINGS = {"lr": 0.0, "noise_multiplier": 1.0, "max_grad_norm": 1.0}


class ByGram(StackedConv2d):
    """A convolution whose records' norms follow from the products of all pairs of patches."""

    is_always = False

    def gradients(self, features: torch.Tensor, slopes: torch.Tensor) -> list[torch.Tensor]:
        """Return the two factors of the records' gradients."""
        return [slopes.flatten(3), features]

    def squared_norms(self, gradients: list[torch.Tensor]) -> torch.Tensor:
        """Return the squared norm of each record's gradient."""
        slopes, patches = gradients
        filters, numbers, count = slopes.shape[2], patches.shape[2], slopes.shape[3]
        if self.is_always or count * (filters + numbers) < filters * numbers:
            one, other = (each.transpose(2, 3) @ each for each in gradients)
            squares = (one * other).sum(dim=(2, 3))
        else:
            squares = (slopes @ patches.transpose(2, 3)).square().sum(dim=(2, 3))
        return squares + slopes.sum(dim=3).square().sum(dim=2)

    def sums(
        self, gradients: list[torch.Tensor], factors: torch.Tensor
    ) -> Iterator[tuple[int, torch.Tensor]]:
        """Yield the sums over all records and patches, by one product."""
        slopes, patches = gradients
        scaled = slopes * factors[..., None, None]
        left, right = scaled.transpose(1, 2).flatten(2), patches.transpose(2, 3).flatten(1, 2)
        yield self.weight, left @ right
        if self.bias is not None:
            yield self.bias, scaled.sum(dim=(1, 3))


class AlwaysByGram(ByGram):
    """The same, also where the gradient itself needs fewer products."""

    is_always = True


def losses(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Return one loss per record."""
    return functional.cross_entropy(outputs, targets, reduction="none")


def sums_of(layers: list[Any], module: nn.Module, X: torch.Tensor, y: torch.Tensor) -> Any:
    """Return a function that computes the clipped sums of nets with their own records."""
    closed = ClosedFormGradients(layers, losses, True)
    stack = [p.detach()[None].repeat(len(X), *[1] * p.ndim) for p in module.parameters()]
    present, norms = torch.ones(X.shape[:2], dtype=torch.bool), torch.ones(len(X))
    return lambda: closed.clipped_sums(stack, X, y, present, norms)


def of_opacus(X: torch.Tensor, y: torch.Tensor, mode: str) -> Callable[[], None]:
    """Return a function that computes the clipped gradients of one batch as Opacus does."""
    module = SmallCNN(input_shape=784, n_outputs=10)
    settings = {**SETTINGS, "grad_sample_mode": mode}
    loader = loader_of(X.numpy(), y.numpy(), len(X))
    module, optimizer, criterion, _ = attached(module, loader, settings)

    def step() -> None:
        optimizer.zero_grad()
        criterion(module(X), y).backward()
        if mode == "hooks":
            optimizer.clip_and_accumulate()

    return step


def convolutions(n_nets: int, n_records: int) -> Ways:
    """Return the ways to compute clipped sums of `SmallCNN`."""
    X, y = torch.rand(n_nets, n_records, 784), torch.randint(10, (n_nets, n_records))
    module = SmallCNN(input_shape=784, n_outputs=10)
    layers: list[Any] = layers_of(module) or []
    ways: Ways = {"package": sums_of(layers, module, X, y)}
    for name, kind in (("smaller", ByGram), ("always", AlwaysByGram)):
        tried = [
            kind(one.weight, one.bias, one.settings) if isinstance(one, StackedConv2d) else one
            for one in layers
        ]
        ways[name] = sums_of(tried, module, X, y)
        for found, wanted in zip(ways[name](), ways["package"](), strict=True):
            torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-4)
    if n_nets == 1:
        ways |= {f"Opacus, {mode}": of_opacus(X[0], y[0], mode) for mode in ("hooks", "ghost")}
    return ways


def explicit(stack: list[torch.Tensor], X: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
    """Return clipped sums of nets with two hidden layers of tanh units, without autograd."""
    values, weights = [X], stack[::2]
    for weight, bias in zip(weights, stack[1::2], strict=True):
        found = torch.baddbmm(bias[:, None], values[-1], weight.transpose(1, 2))
        values.append(torch.tanh(found))
    slopes = [torch.softmax(found, dim=-1) - functional.one_hot(y, 10)]
    for weight, value in zip(weights[:0:-1], values[2:0:-1], strict=True):
        slopes.insert(0, torch.bmm(slopes[0], weight) * (1.0 - value.square()))
    pairs = list(zip(slopes, values[:-1], strict=True))
    sizes = [(s.square().sum(-1), a.square().sum(-1) + 1.0) for s, a in pairs]
    lengths = torch.stack([one * other for one, other in sizes]).sum(dim=0).sqrt()
    factors = (1.0 / (lengths + 1e-6)).clamp(max=1.0)[..., None]
    return [torch.bmm((s * factors).transpose(1, 2), a) for s, a in pairs]


def compiled(n_nets: int, n_records: int) -> Ways:
    """Return the ways to compute clipped sums of nets of linear layers."""
    module = MLP(hidden=(120, 120), input_shape=784, n_outputs=10)
    X, y = torch.rand(n_nets, n_records, 784), torch.randint(10, (n_nets, n_records))
    stack = [p.detach()[None].repeat(n_nets, *[1] * p.ndim) for p in module.parameters()]
    started = time.process_time()
    fast = torch.compile(explicit)
    fast(stack, X, y)
    print(f"to compile: {time.process_time() - started:.0f} s, without processes of the compiler")
    return {
        "package": sums_of(layers_of(module) or [], module, X, y),
        "explicit": lambda: explicit(stack, X, y),
        "compiled": lambda: fast(stack, X, y),
    }


def main() -> None:
    """Print the time of each way."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="?", default="gram", choices=("gram", "compile"))
    parser.add_argument("--nets", type=int, default=1)
    parser.add_argument("--records", type=int, default=250)
    parser.add_argument("--turns", type=int, default=7)
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    made = convolutions if arguments.what == "gram" else compiled
    ways = made(arguments.nets, arguments.records)
    times: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(arguments.turns + 1):
        for name, way in ways.items():
            started = time.process_time()
            way()
            if turn:
                times[name].append(time.process_time() - started)
    for name, found in times.items():
        print(f"{name:14s} {1e3 * statistics.median(found):7.1f} ms")


if __name__ == "__main__":
    main()
