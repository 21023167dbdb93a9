"""What one fit of a net trains on, and how long."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from skdptune.mechanisms._noisy_gradient_plan import NoisyGradientPlan


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


class BatchTrainable(ABC):
    """A net that can be trained by itself or in a batch of nets.

    A class whose nets may share a batch says so by ``_trains_with_others = True`` in its own body;
    its subclasses do not inherit that, since they may do otherwise in any step.
    """

    @abstractmethod
    def _check_parameters(self) -> None:
        """Raise for bad parameters."""

    @abstractmethod
    def _course(self, X: Any, y: Any) -> Course:
        """Return what a fit to the data trains on, and how long."""

    @abstractmethod
    def _fit_course(self, course: Course) -> Any:
        """Train by itself."""
