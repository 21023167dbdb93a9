"""The steps of many private trainings at once: stacked weights, own batches, own noise."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch

from skdptune.neural_network._noise_source import noise_source
from skdptune.neural_network._noisy_steps import NotPrivateError, check_step
from skdptune.neural_network._population._stacked_gradients import StackedGradients
from skdptune.neural_network._population._training_run import Course


class Member:
    """One net of a crew, and where it is in its course.

    Parameters
    ----------
    net : PrivateNet
        With a fresh module.
    course : Course
        What it trains on.

    Attributes
    ----------
    rows : tensor or slice
        The batch of its present step.
    taken : int
        Number of noisy steps so far.
    """

    def __init__(self, net: Any, course: Course) -> None:
        self.net = net
        self.course = course
        self.rows: Any = None
        self.taken = 0
        self.noise = course.plan.noise_multiplier * net.max_grad_norm
        self.generator = noise_source(course.rng, net.device)
        self.parameters = [p for p in net.module_.parameters() if p.requires_grad]
        self._batches: Iterator[Any] = iter(())
        self._is_over = False

    def begin(self) -> None:
        """Come to the start of the course."""
        self.net.module_.train()
        self.net.notify("on_train_begin", X=None, y=None)
        self._batches = self.net._batches(self.course)

    def goes_on(self) -> bool:
        """Draw the batch of the next step, if there is one."""
        self.rows = next(self._batches, None)
        return self.rows is not None

    def indices(self) -> np.ndarray:
        """Return the rows of the batch by number."""
        if isinstance(self.rows, slice):
            return np.arange(len(self.course.X))
        return self.rows.numpy()

    def end(self) -> None:
        """Let go of the crew's memory."""
        if self._is_over:
            return
        self._is_over = True
        for parameter in self.parameters:
            parameter.data = parameter.data.clone()
            parameter.grad = None
        self.net.module_.eval()
        self.net.notify("on_train_end", X=None, y=None)


class Crew:
    """Members whose modules have one shape, trained step by step together.

    Parameters
    ----------
    members : sequence of Member
        Freshly started.
    X : tensor
        The records of all, on the device where it is best to gather batches.
    gradients : StackedGradients
        What finds the sums of their gradients.
    records_at_once : callable
        From a number of members to how many records of each are looked at together.

    Notes
    -----
    Every member takes exactly the steps that it would take by itself: batches from its own coins,
    gradients clipped to its own norm, noise of its own generator, in the same order, and its own
    optimizer. The members share arithmetic, and nothing else: a member's release is a function
    of its own batches and noise, so that the members are independent given the data.
    """

    def __init__(
        self,
        members: Sequence[Member],
        X: torch.Tensor,
        gradients: StackedGradients,
        records_at_once: Callable[[int], int],
    ) -> None:
        self._live = list(members)
        self._members = list(members)
        self._X = X
        self._device = torch.device(members[0].net.device)
        self._gradients = gradients
        self._records_at_once = records_at_once
        self._stack: list[torch.Tensor] = []

    def run(self) -> None:
        """Take all steps of all members."""
        try:
            for member in self._members:
                member.begin()
            self._form()
            self._run()
        except NotPrivateError:
            for member in self._members:
                member.net._wipe()
            raise
        finally:
            for member in self._members:
                member.end()

    def _run(self) -> None:
        while True:
            still = [member for member in self._live if member.goes_on()]
            if not still:
                return
            if len(still) < len(self._live):
                for member in self._live:
                    if member not in still:
                        member.end()
                self._live = still
                self._form()
            self._step()

    def _form(self) -> None:
        """Stack the weights of those who go on; each module's weights become a view of them."""
        self._gradients = self._gradients.of([member.net.module_ for member in self._live])
        parameters = zip(*(member.parameters for member in self._live), strict=True)
        self._stack = [torch.stack([p.data for p in same]) for same in parameters]
        for number, member in enumerate(self._live):
            for parameter, stacked in zip(member.parameters, self._stack, strict=True):
                parameter.data = stacked[number]

    def _step(self) -> None:
        """Take one noisy step of each member, on the batch that it has drawn."""
        indices = [member.indices() for member in self._live]
        sums = self._clipped_sums(indices)
        noises = [self._noise(member) for member in self._live]
        for number, member in enumerate(self._live):
            clipped = [values[number] for values in sums]
            self._watch(member, clipped, noises[number], len(indices[number]))
            divisor = member.course.plan.batch_size
            pairs = zip(member.parameters, clipped, noises[number], strict=True)
            for parameter, total, noise in pairs:
                # A tensor of its own: an optimizer may keep it.
                parameter.grad = (total + noise).div_(divisor)
            member.net.optimizer_.step()
            member.net.optimizer_.zero_grad(set_to_none=True)
            member.taken += 1
            self._gather(number, member)

    def _gather(self, number: int, member: Member) -> None:
        """Take weights back that an optimizer has put elsewhere."""
        for parameter, stacked in zip(member.parameters, self._stack, strict=True):
            if parameter.data_ptr() != stacked[number].data_ptr():
                stacked[number].copy_(parameter.data)
                parameter.data = stacked[number]

    def _clipped_sums(self, indices: list[np.ndarray]) -> list[torch.Tensor]:
        longest = max(len(rows) for rows in indices)
        padded = np.zeros((len(indices), longest), dtype=np.int64)
        present = np.zeros(padded.shape, dtype=bool)
        for number, rows in enumerate(indices):
            padded[number, : len(rows)] = rows
            present[number, : len(rows)] = True
        length = self._records_at_once(len(indices))
        sums = [torch.zeros_like(values) for values in self._stack]
        for first in range(0, longest, length):
            part = slice(first, first + length)
            found = self._sums_of_part(padded[:, part], present[:, part])
            for total, more in zip(sums, found, strict=True):
                total += more
        return sums

    def _sums_of_part(self, rows: np.ndarray, present: np.ndarray) -> list[torch.Tensor]:
        flat = torch.from_numpy(rows.ravel())
        inputs = _taken(self._X, flat, self._device)
        norms = [member.net.max_grad_norm for member in self._live]
        return self._gradients.clipped_sums(
            self._stack,
            inputs.unflatten(0, rows.shape),
            self._targets(rows, flat),
            torch.from_numpy(present).to(self._device),
            torch.tensor(norms, dtype=inputs.dtype, device=self._device),
        )

    def _targets(self, rows: np.ndarray, flat: torch.Tensor) -> torch.Tensor:
        given = [member.course.targets for member in self._live]
        if all(targets is given[0] for targets in given):
            return _taken(given[0], flat, self._device).unflatten(0, rows.shape)
        own = zip(given, torch.from_numpy(rows), strict=True)
        return torch.stack([_taken(targets, places, self._device) for targets, places in own])

    def _noise(self, member: Member) -> list[torch.Tensor]:
        if member.noise == 0.0:
            return [torch.zeros_like(parameter) for parameter in member.parameters]
        return [
            torch.normal(
                0.0,
                member.noise,
                size=parameter.shape,
                generator=member.generator,
                device=self._device,
                dtype=parameter.dtype,
            )
            for parameter in member.parameters
        ]

    def _watch(
        self,
        member: Member,
        clipped: list[torch.Tensor],
        noise: list[torch.Tensor],
        batch: int,
    ) -> None:
        """Look, in steps 1, 2, 4, ..., at whether what is released is what was priced."""
        if (member.taken + 1) & member.taken:
            return
        size = sum(values.numel() for values in noise)
        length = sum(float(values.double().square().sum()) for values in clipped)
        added = sum(float(values.double().square().sum()) for values in noise)
        check_step(length, added, size, member.net.max_grad_norm, member.noise, batch)


def _taken(values: torch.Tensor, rows: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Return some rows, gathered where they are."""
    return values.index_select(0, rows.to(values.device)).to(device)
