"""Steps of many private training runs at once: stacked weights, but separate batches and noise."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from skdptune._progress import current_progress
from skdptune.neural_network._noisy_steps import (
    GradientNoise,
    NotPrivateError,
    TrainingRun,
    noisy_step,
    sum_of_weights,
)
from skdptune.neural_network._stacked_gradients import ClosedFormGradients

if TYPE_CHECKING:
    from skdptune.neural_network._private_net import PrivateNet


class Replica:
    """One net of a batch of nets, with the state of its training run.

    Parameters
    ----------
    net : PrivateNet
        The net, with a new module.
    run : TrainingRun
        Its training run.

    Attributes
    ----------
    rows : tensor or slice
        The records of its current step.
    steps_taken : int
        Number of noisy steps so far.
    norm : float
        The norm to which its gradients are clipped.
    noise : GradientNoise
        The noise of its clipped sums.
    """

    def __init__(self, net: PrivateNet, run: TrainingRun) -> None:
        self.net = net
        self.run = run
        self.rows: Any = None
        self.steps_taken = 0
        self.norm = run.settings.max_grad_norm
        deviation = run.plan.noise_multiplier * self.norm
        self.noise = GradientNoise(deviation, run.rng, net.device)
        self.parameters = [p for p in net.module_.parameters() if p.requires_grad]
        self._batches: Iterator[Any] = iter(())
        self._has_ended = False

    def begin(self) -> None:
        """Return to the start of the training run."""
        self.net.module_.train()
        self.net.notify("on_train_begin", X=None, y=None)
        self._batches = self.net._batches(self.run)

    def draw_batch(self) -> bool:
        """Draw the records of the next step; return whether there is one."""
        self.rows = next(self._batches, None)
        return self.rows is not None

    def row_numbers(self) -> np.ndarray:
        """Return the numbers of the records of the current step."""
        if isinstance(self.rows, slice):
            return np.arange(len(self.run.X))
        return self.rows.numpy()

    def sum_of_weights(self, rows: Any) -> float:
        """Return the number of clipped gradients by which these rows may change a sum."""
        weights = self.run.weights
        size = len(self.run.X) if isinstance(rows, slice) else len(rows)
        return sum_of_weights(size, None if weights is None else weights[rows])

    def end(self) -> None:
        """Move the weights out of the stack that the nets share."""
        if self._has_ended:
            return
        self._has_ended = True
        for parameter in self.parameters:
            parameter.data = parameter.data.clone()
        self.net.notify("on_train_end", X=None, y=None)


class NetBatch:
    """Nets of one structure that are trained together step by step.

    Parameters
    ----------
    replicas : sequence of Replica
        Replicas that have just been started. All have the same records; if rows lie in parts,
        there is only one replica.
    gradients : ClosedFormGradients
        Computes the sums of their clipped gradients.
    records_at_once : callable
        From a number of replicas to the number of records per replica that fit into memory.

    Notes
    -----
    Theorem U2.

    Every replica takes exactly the steps that it would take in a separate training: batches from
    its own random draws, gradients clipped to its own norm, noise from its own generator, in the
    same order, and its own optimizer. Replicas share only arithmetic. The released
    result of each is a function of its batches and noise, so replicas are independent given the
    data.
    """

    def __init__(
        self,
        replicas: Sequence[Replica],
        gradients: ClosedFormGradients,
        records_at_once: Callable[[int], int],
    ) -> None:
        self._replicas = list(replicas)
        self._active = list(replicas)
        self._device = torch.device(replicas[0].net.device)
        self._gradients = gradients
        self._records_at_once = records_at_once
        self._stack: list[torch.Tensor] = []

    @property
    def _X(self) -> torch.Tensor:
        """The records of all replicas."""
        return self._active[0].run.X

    def train(self) -> None:
        """Take all steps of all replicas."""
        try:
            for replica in self._replicas:
                replica.begin()
            self._stack_weights()
            self._take_steps()
        except KeyboardInterrupt:
            # As in skorch, the weights trained so far are kept; the cost stays the same.
            if len(self._replicas) > 1:
                raise
        except NotPrivateError:
            for replica in self._replicas:
                replica.net._erase_weights()
            raise
        finally:
            for replica in self._replicas:
                replica.end()

    def _take_steps(self) -> None:
        most = max((replica.run.plan.steps for replica in self._active), default=0)
        for done in itertools.count():
            current_progress().count(done, most, "steps of nets together")
            remaining = [replica for replica in self._active if replica.draw_batch()]
            if not remaining:
                return
            if len(remaining) < len(self._active):
                for replica in self._active:
                    if replica not in remaining:
                        replica.end()
                self._active = remaining
                self._stack_weights()
            self._step()

    def _stack_weights(self) -> None:
        """Stack the weights of active replicas; each module's weights become a view of them."""
        parameters = zip(*(replica.parameters for replica in self._active), strict=True)
        self._stack = [torch.stack([p.data for p in same]) for same in parameters]
        for number, replica in enumerate(self._active):
            for parameter, stacked in zip(replica.parameters, self._stack, strict=True):
                parameter.data = stacked[number]

    def _step(self) -> None:
        """Take one noisy step of each active replica, on the batch that it has drawn."""
        if all(isinstance(replica.rows, slice) for replica in self._active):
            batches: list[Any] = [slice(None)] * len(self._active)
            sums = self._clipped_sums_of_all()
        else:
            batches = [replica.row_numbers() for replica in self._active]
            sums = self._clipped_sums(batches)
        for number, replica in enumerate(self._active):
            noisy_step(
                replica.net.optimizer_,
                replica.parameters,
                [values[number] for values in sums],
                replica.noise,
                norm=replica.norm,
                divisor=replica.run.plan.batch_size,
                batch=replica.sum_of_weights(batches[number]),
                number=replica.steps_taken + 1,
            )
            replica.steps_taken += 1
            self._restack(number, replica)

    def _restack(self, number: int, replica: Replica) -> None:
        """Copy weights back into the stack if an optimizer has replaced them."""
        for parameter, stacked in zip(replica.parameters, self._stack, strict=True):
            if parameter.data_ptr() != stacked[number].data_ptr():
                stacked[number].copy_(parameter.data)
                parameter.data = stacked[number]

    def _clipped_sums_of_all(self) -> list[torch.Tensor]:
        """Return the sums over all records, which need no gathering."""

        def sums_of(chunk: slice) -> list[torch.Tensor]:
            targets = torch.stack([replica.run.targets[chunk] for replica in self._active])
            weights = self._weights([chunk] * len(self._active))
            inputs = self._X[chunk].to(self._device)
            shape = len(self._active), len(inputs)
            present = torch.ones(shape, dtype=torch.bool, device=self._device)
            every = inputs.expand(shape[0], *inputs.shape)
            return self._sums(every, targets.to(self._device), present, weights)

        return self._added_up(len(self._X), sums_of)

    def _clipped_sums(self, batches: list[np.ndarray]) -> list[torch.Tensor]:
        longest = max(len(rows) for rows in batches)
        padded = np.zeros((len(batches), longest), dtype=np.int64)
        present = np.zeros(padded.shape, dtype=bool)
        for number, rows in enumerate(batches):
            padded[number, : len(rows)] = rows
            present[number, : len(rows)] = True
        return self._added_up(
            longest, lambda chunk: self._sums_of_chunk(padded[:, chunk], present[:, chunk])
        )

    def _added_up(
        self, size: int, sums_of: Callable[[slice], list[torch.Tensor]]
    ) -> list[torch.Tensor]:
        """Return sums over records, computed in chunks that fit into memory."""
        length = self._records_at_once(len(self._active))
        # Theorem U1: the sums over chunks have the precision of the weights, too.
        given = [one.run.weights for one in self._active if one.run.weights is not None]
        wide = torch.float64 if any(one.dtype == torch.float64 for one in given) else None
        sums = [torch.zeros_like(values, dtype=wide) for values in self._stack]
        for first in range(0, size, length):
            for total, more in zip(sums, sums_of(slice(first, first + length)), strict=True):
                total += more
        return sums

    def _sums_of_chunk(self, rows: np.ndarray, present: np.ndarray) -> list[torch.Tensor]:
        flat = torch.from_numpy(rows.ravel())
        inputs = _rows_of(self._X, flat, self._device)
        return self._sums(
            inputs.reshape(*rows.shape, *inputs.shape[1:]),
            self._targets(rows, flat),
            torch.from_numpy(present).to(self._device),
            self._weights(list(torch.from_numpy(rows))),
        )

    def _sums(
        self,
        inputs: torch.Tensor,
        targets: torch.Tensor,
        present: torch.Tensor,
        weights: torch.Tensor | None,
    ) -> list[torch.Tensor]:
        norms = [replica.norm for replica in self._active]
        return self._gradients.clipped_sums(
            self._stack,
            inputs,
            targets,
            present,
            torch.tensor(norms, dtype=inputs.dtype, device=self._device),
            weights,
        )

    def _weights(self, rows: Sequence[Any]) -> torch.Tensor | None:
        """Return the factor of each row's clipped gradient, for each net; None without any."""
        given = [replica.run.weights for replica in self._active]
        if all(weights is None for weights in given):
            return None
        ones = torch.ones(len(self._X))
        pairs = zip((ones if one is None else one for one in given), rows, strict=True)
        return torch.stack([weights[own] for weights, own in pairs]).to(self._device)

    def _targets(self, rows: np.ndarray, flat: torch.Tensor) -> torch.Tensor:
        given = [replica.run.targets for replica in self._active]
        if all(targets is given[0] for targets in given):
            found = _rows_of(given[0], flat, self._device)
            return found.reshape(*rows.shape, *found.shape[1:])
        own = zip(given, torch.from_numpy(rows), strict=True)
        return torch.stack([_rows_of(targets, numbers, self._device) for targets, numbers in own])


def _rows_of(values: torch.Tensor, rows: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Return some rows, gathered on the device that holds the values."""
    return values.index_select(0, rows.to(values.device)).to(device)
