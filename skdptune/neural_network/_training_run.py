"""One training run of a net: its data, its plan and its source of randomness."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from skdptune.mechanisms._shared import NoisyGradientPlan


@dataclass(frozen=True)
class TrainingRun:
    """What one fit of a net trains on, for how long, and with which random draws.

    Attributes
    ----------
    plan : NoisyGradientPlan
        Sampling, number of steps and noise.
    X, targets : tensor
        Records, and targets as the criterion takes them.
    new_generator : callable
        Returns the source of all randomness of the run, at its start, at every call.
    sizes : dict
        Arguments for the module: ``input_shape`` and ``n_outputs``.
    class_weights : tensor of shape (n_classes,) or None
        Factor in [0, 1] of the clipped gradients of each class's records; None stands for ones.
    rng : Generator
        The source of randomness of this attempt.
    """

    plan: NoisyGradientPlan
    X: torch.Tensor
    targets: torch.Tensor
    new_generator: Callable[[], np.random.Generator]
    sizes: dict[str, Any]
    class_weights: torch.Tensor | None = None
    rng: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        """Begin at the start of the source of randomness."""
        object.__setattr__(self, "rng", self.new_generator())

    def weights_of(self, targets: torch.Tensor) -> torch.Tensor | None:
        """Return the factor of each record's clipped gradient, by its target alone."""
        if self.class_weights is None:
            return None
        return self.class_weights.to(targets.device)[targets.long()]

    def restarted(self) -> TrainingRun:
        """Return the same run at its start, with the same random draws to come."""
        return replace(self)


def steps_of_epochs(steps: int, epochs: float) -> Iterator[int]:
    """Yield the number of steps of each epoch; they add up to `steps`."""
    count = max(1, math.ceil(epochs))
    ends = [min(steps, math.ceil(steps * number / epochs)) for number in range(1, count)] + [steps]
    for first, end in zip([0, *ends[:-1]], ends, strict=True):
        yield end - first
