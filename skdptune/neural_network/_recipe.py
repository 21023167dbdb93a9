"""The training of a net that is left at its defaults: one rule from public numbers.

All records in each step, and Adam with a learning rate that falls to 0. The reasons, which are
measured in docs/defaults.md:

* Adam's step does not depend on the length of the clipped gradients. One rate therefore serves
  many tables, and a larger epsilon gives a better net. With one rate, plain SGD is under-trained.
* A step on all records is one Gaussian release, and many steps share its noise. Of a large table,
  batches of some ten thousand records do as well: drawing them needs little additional noise.
* If the steps share the noise, the rate times the root of the number of steps should be constant.
  More steps then cost time only.
* If there are few records for the noise, large steps follow the noise: the rate falls with the
  root of the records times the shift of the Gaussian release.
* A step of Adam moves each weight of the first layer by about the same. Outputs therefore move
  more with more columns, so this layer has a rate that falls with the root of their number.
* With little noise, few records are fitted too closely. Weights of classifiers therefore decay, in
  proportion to the shift, unless there are many records for each column.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from skorch.callbacks import LRScheduler
from torch import nn

from skdptune.mechanisms._shared import NoisyGradientPlan

STEPS = 300
# The rate for `STEPS` steps, and the number of weights of a unit (columns and intercept) at which
# the first layer has the rate of the others.
_RATE, _WIDTH = 0.05, 12.0
# The records times the shift, of two classes, from which the rate is full.
_ENOUGH = 1000.0
# The same product for each unit of the clipping norm.
_PER_NORM = 2500.0
# The decay for a shift of 1, and the largest one for a column, times records and shift.
_DECAY, _DECAY_OF_COLUMN = 0.1, 10.0
# For the rate "auto" of other optimizers: the standard deviation by which noise may move a weight.
_NOISE_OF_WEIGHTS = 0.18
ADAM = functools.partial(torch.optim.AdamW, weight_decay=0.0)


@dataclass(frozen=True)
class Settings:
    """The settings of a fit, with a value in place of each "auto"; all from public numbers.

    Attributes
    ----------
    plan : NoisyGradientPlan
        Sampling, number of steps and noise.
    epochs : float
        Number of epochs.
    optimizer : callable
        Makes the optimizer.
    lr : float
        Learning rate of the first step.
    max_grad_norm : float
        Norm to which gradients are clipped.
    width : int
        Number of hidden units of the module "auto".
    decay : float
        Decay of weights, in units of the learning rate, by `ADAM`.
    """

    plan: NoisyGradientPlan
    epochs: float
    optimizer: Callable[..., torch.optim.Optimizer]
    lr: float
    max_grad_norm: float
    width: int
    decay: float

    @property
    def is_default(self) -> bool:
        """Whether steps are those of the rule: rates fall, and the first layer has its own."""
        return self.optimizer is ADAM


@dataclass(frozen=True)
class Rule:
    """What "auto" stands for in one kind of net. The measurements are in docs/defaults.md.

    Attributes
    ----------
    batches : tuple of int
        Limits of the expected number of records in a batch, a tenth of all between them.
    least_share : float
        Share of the full rate of Adam below which the rate does not fall.
    norms : tuple of float
        Least and largest clipping norm.
    widths : tuple of int
        Number of hidden units, and that of Adam at the full rate.
    rates_of_sgd : tuple of float
        Least and largest rate of other optimizers.
    is_for_classes : bool
        Whether weights decay, and modules that a user gives are trained by other optimizers.
    """

    batches: tuple[int, int]
    least_share: float
    norms: tuple[float, float]
    widths: tuple[int, int]
    rates_of_sgd: tuple[float, float]
    is_for_classes: bool

    def values(
        self, plan: NoisyGradientPlan, is_default: bool, n_classes: int, n_inputs: int
    ) -> tuple[float, float, int, float]:
        """Return a learning rate, a clipping norm, a width and a decay from public numbers.

        Notes
        -----
        Theorem U6. For steps on all records, `signal` is the number of records times the shift of
        the Gaussian release that all steps are together. For a rate it is divided by the number of
        pairs of classes.
        """
        noise = max(plan.noise_multiplier, 1e-9) / plan.batch_size
        if not is_default:
            low, high = self.rates_of_sgd
            rate = min(max(_NOISE_OF_WEIGHTS / (noise * math.sqrt(plan.steps)), low), high)
            return rate, 1.0, self.widths[0], 0.0
        signal = math.sqrt(plan.steps) / noise
        shift = signal / plan.n_samples
        decay = min(_DECAY * shift, _DECAY_OF_COLUMN * n_inputs / signal)
        signal /= n_classes / 2.0
        share = min(1.0, max(math.sqrt(signal / _ENOUGH), self.least_share))
        least, most = self.norms
        return (
            _RATE * share * math.sqrt(STEPS / plan.steps),
            min(max(signal / _PER_NORM, least), most),
            self.widths[1 if share == 1.0 else 0],
            decay if self.is_for_classes else 0.0,
        )


RULE_FOR_CLASSES = Rule((10_000, 10_000), 0.5, (3.0, 10.0), (120, 32), (0.5, 2.0), True)
RULE_FOR_TARGETS = Rule((10_000, 30_000), 0.0, (1.0, 1.0), (32, 32), (0.5, 0.5), False)


def group_layers(optimizer: torch.optim.Optimizer, module: nn.Module, decay: float) -> None:
    """Slow the first layer, if it is linear or a convolution, and let all but the last bias decay.

    Notes
    -----
    Theorem U6.
    """
    if len(optimizer.param_groups) > 1:
        return
    layers = [part for part in module.modules() if [*part.parameters(recurse=False)]]
    (group,) = optimizer.param_groups
    group["weight_decay"] = decay
    if not layers or not isinstance(layers[0], nn.Linear | nn.Conv2d):
        return
    first, last = layers[0], layers[-1]
    rate = group["lr"] * math.sqrt(_WIDTH / (math.prod(first.weight.shape[1:]) + 1))
    parts: list[tuple[list[Any], dict[str, float]]] = [([*first.parameters()], {"lr": rate})]
    if last is not first:
        # The mean of the targets need not be close to the middle of their range.
        parts.append(([getattr(last, "bias", None)], {"weight_decay": 0.0}))
    for chosen, settings in parts:
        own = {id(parameter) for parameter in chosen}
        held = group["params"]
        group["params"] = [parameter for parameter in held if id(parameter) not in own]
        moved = [parameter for parameter in held if id(parameter) in own]
        optimizer.add_param_group({**group, "params": moved, **settings})


def falling_rate(steps: int) -> LRScheduler:
    """Return a schedule by which learning rates fall linearly to 0 over all steps."""
    policy = torch.optim.lr_scheduler.LinearLR
    settings = {"start_factor": 1.0, "end_factor": 0.0, "total_iters": steps}
    return LRScheduler(policy, step_every="batch", **settings)
