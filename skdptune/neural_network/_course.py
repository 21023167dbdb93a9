"""What one fit of a net trains on, and how long."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from skdptune.linear_model._noisy_gradient_plan import NoisyGradientPlan


@dataclass(frozen=True)
class Course:
    """What one fit trains on, and how long.

    Attributes
    ----------
    plan : NoisyGradientPlan
        Sampling, number of steps and noise.
    X, targets : tensor
        Records, and targets as the criterion takes them.
    rng : Generator
        Source of all randomness of the fit.
    sizes : dict
        What the module is told: ``input_shape`` and ``n_outputs``.
    """

    plan: NoisyGradientPlan
    X: torch.Tensor
    targets: torch.Tensor
    rng: np.random.Generator
    sizes: dict[str, Any]


def steps_of_epochs(steps: int, epochs: float) -> Iterator[int]:
    """Yield the number of steps of each epoch; they add up to `steps`."""
    count = max(1, math.ceil(epochs))
    ends = [min(steps, math.ceil(steps * number / epochs)) for number in range(1, count)] + [steps]
    for first, end in zip([0, *ends[:-1]], ends, strict=True):
        yield end - first
