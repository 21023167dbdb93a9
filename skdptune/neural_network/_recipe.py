"""The training of a net that is left at its defaults: one rule from public numbers.

All records in each step, and Adam with a learning rate that falls to 0. The reasons, which are
measured in docs/defaults.md:

* Adam's step does not depend on the length of the clipped gradients. One rate therefore serves
  many tables, and a larger epsilon gives a better net. With one rate, plain SGD is under-trained.
* A step on all records is one Gaussian release, and many steps share its noise. Of a large table,
  batches do as well: drawing them needs little additional noise.
* If the steps share the noise, the rate times the root of the number of steps should be constant.
  More steps then cost time only.
* If there are few records for the noise, large steps follow the noise: the rate falls with the
  root of the records times the shift of the Gaussian release.
* A step of Adam moves each weight of the first layer by about the same. Outputs therefore move
  more with more columns, so this layer has a rate that falls with the root of their number.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from skorch.callbacks import LRScheduler
from torch import nn

from skdptune.mechanisms._shared import NoisyGradientPlan

HIDDEN = (32,)
STEPS = 300
# The limits of a batch, which is a tenth of the records between them.
LEAST_BATCH, LARGEST_BATCH = 10_000, 30_000
# The rate for `STEPS` steps, the records times the shift up to which it is smaller, and the number
# of weights of a unit (columns and intercept) at which the first layer has the rate of the others.
_RATE, _ENOUGH, _WIDTH = 0.05, 1000.0, 12.0


def default_batch(n_samples: int) -> int:
    """Return the number of records in a batch, from the public number of records.

    Notes
    -----
    Theorem U6.
    """
    return min(n_samples, max(LEAST_BATCH, min(n_samples // 10, LARGEST_BATCH)))


def rate_of_adam(plan: NoisyGradientPlan) -> float:
    """Return the learning rate of the first step, from a plan and therefore from public numbers.

    For steps on all records, `signal` is the number of records times the shift of the Gaussian
    release that all steps are together.

    Notes
    -----
    Theorem U6.
    """
    signal = plan.batch_size * math.sqrt(plan.steps) / max(plan.noise_multiplier, 1e-9)
    return _RATE * min(1.0, math.sqrt(signal / _ENOUGH)) * math.sqrt(STEPS / plan.steps)


def group_layers(optimizer: torch.optim.Optimizer, module: nn.Module) -> None:
    """Slow the first layer, if it is linear or a convolution, and keep the last bias from decay.

    Notes
    -----
    Theorem U6.
    """
    if len(optimizer.param_groups) > 1:
        return
    layers = [part for part in module.modules() if [*part.parameters(recurse=False)]]
    (group,) = optimizer.param_groups
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
