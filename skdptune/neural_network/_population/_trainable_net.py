"""What training many nets at once asks of each of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import torch
from torch import nn

from skdptune.mechanisms import NoisyGradientPlan
from skdptune.neural_network._training_run import TrainingRun


class TrainableNet(ABC):
    """A net whose `fit` is given in pieces, so that many nets can take their steps together.

    A class sets ``_can_train_together = True`` in its own body if its nets may be trained
    together. Subclasses do not inherit that, since they may change any piece.

    Attributes
    ----------
    callbacks, device, max_grad_norm, max_physical_batch_size, random_state
        Parameters of the net.
    callbacks_, criterion_, module_, optimizer_
        Made afresh by `_start`.
    notify : callable
        Calls a method of all callbacks, by its name.
    """

    callbacks: Any
    device: str | torch.device
    max_grad_norm: float
    max_physical_batch_size: int | None
    random_state: int | None
    callbacks_: list[tuple[str, Any]]
    criterion_: nn.Module
    module_: nn.Module
    optimizer_: torch.optim.Optimizer
    notify: Callable[..., None]

    @abstractmethod
    def _check_parameters(self) -> None:
        """Raise an error for bad parameters."""

    @abstractmethod
    def _training_run(self, X: Any, y: Any) -> TrainingRun:
        """Return the training run of a fit to the data."""

    @abstractmethod
    def _train_alone(self, run: TrainingRun) -> Any:
        """Carry out a training run by itself, from start to report, and return the net."""

    @abstractmethod
    def _seeded_torch(self, rng: np.random.Generator) -> AbstractContextManager[None]:
        """Seed torch's global generators from `rng`, and restore them at the end."""

    @abstractmethod
    def _start(self, run: TrainingRun) -> None:
        """Make module, criterion, optimizer and callbacks afresh, and check them."""

    @abstractmethod
    def _batches(self, run: TrainingRun) -> Iterator[Any]:
        """Yield the rows of each step; callbacks are notified before and after."""

    @abstractmethod
    def _losses(self, outputs: Any, targets: torch.Tensor) -> torch.Tensor:
        """Return one loss for each record."""

    @abstractmethod
    def _finish(self, plan: NoisyGradientPlan, steps_taken: int) -> Any:
        """Check the trained weights, write the report, and return the net."""

    @abstractmethod
    def _erase_weights(self) -> None:
        """Set all weights to zero, after a step that was not private."""

    @abstractmethod
    def _publish(self) -> None:
        """Replace what was trained by copies that no record has met, with the trained weights."""
