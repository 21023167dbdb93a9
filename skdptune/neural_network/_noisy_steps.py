"""Steps of an optimizer on clipped and noised gradients, which are checked.

A `TrainingRun` holds the data of one training, its plan and its source of randomness.
"""

from __future__ import annotations

import math
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from opacus.grad_sample import GradSampleModule
from scipy import stats
from torch import nn

from skdptune._secure_random import independent_generator
from skdptune.base._shared import Persons, by_halves
from skdptune.mechanisms._shared import Batch, NoisyGradientPlan, NormalNoise
from skdptune.neural_network._recipe import Settings
from skdptune.neural_network._stacked_gradients import (
    ClosedFormGradients,
    LossPerRecord,
    clipping_factors,
    layers_of,
    lengths_of,
    zeroed,
)


class GradientNoise:
    """Normal noise for successive sums of gradients.

    Parameters
    ----------
    deviation : float
        Standard deviation; 0 for no noise.
    rng : numpy.random.Generator
        A generator; draws made directly from it are independent of the noise.
    device : torch.device or str, default="cpu"
        Device of the sums.

    Notes
    -----
    Theorem E1, for sums on a CPU: the sum plus real noise is rounded to a grid that no data
    choose, and then to the sum's precision. Assumption F6, for sums on another device: there torch
    draws the noise, in the sum's precision, from a generator that keeps all 64 bits of its seed.
    """

    def __init__(
        self, deviation: float, rng: np.random.Generator, device: torch.device | str = "cpu"
    ) -> None:
        self.deviation = deviation
        self._device = torch.device(device)
        source = independent_generator(rng)
        if self._device.type != "cpu":
            self._generator = torch.Generator(device=device)
            self._generator.manual_seed(int(source.integers(0, 2**63 - 1)))
        elif deviation > 0.0:
            self._noise = NormalNoise(deviation, source)

    def added_to(self, total: torch.Tensor) -> torch.Tensor:
        """Return a sum with noise, as a new tensor."""
        total = total.detach()
        if self.deviation == 0.0:
            return total.clone()
        if self._device.type == "cpu":
            noisy = self._noise.added_to(total.numpy().astype(np.float64))
            return torch.from_numpy(noisy).to(total.dtype)
        return total + torch.normal(
            0.0,
            self.deviation,
            size=total.shape,
            generator=self._generator,
            device=self._device,
            dtype=total.dtype,
        )


GRAD_SAMPLE_MODES = ("hooks", "functorch", "ghost")
# Probability that correct noise is considered too small: one correct fit in 10^11 or so is
# refused.
_FALSE_ALARM_RATE = 1e-12
# Rounding of float32 in a sum of clipped gradients.
_TOLERANCE = 1e-3
_MISSING_GRADIENT = (
    "each parameter of module must get one gradient per record; got one that does not. Its "
    "forward must use all parameters, and make them from layers that Opacus knows."
)


class _Arithmetic:
    """Number of trainings that need exact products now, and the setting to restore later."""

    lock = threading.Lock()
    users = 0
    before = "highest"


_ARITHMETIC = _Arithmetic()


class NotPrivateError(RuntimeError):
    """Raised if clipping or noise differs from the plan; the training was stopped."""


def noisy_step(
    optimizer: torch.optim.Optimizer,
    parameters: Sequence[torch.Tensor],
    sums: Sequence[torch.Tensor],
    noise: GradientNoise,
    *,
    norm: float,
    divisor: float,
    batch: float,
    number: int,
) -> None:
    """Take one step of an optimizer on sums of clipped gradients, with noise.

    Parameters
    ----------
    optimizer : torch.optim.Optimizer
    parameters, sums : sequence of tensor
        The parameters, and the sum of the records' clipped gradients for each of them.
    noise : GradientNoise
    norm : float
        The norm to which gradients were clipped.
    divisor : float
        Public constant by which noisy sums are divided.
    batch : float
        Number of gradients in the sums, or the sum of their weights.
    number : int
        Number of the step. Steps 1, 2, 4, 8, ... are checked.

    Notes
    -----
    Theorem U1.
    """
    # One call for all parameters: the draws come in the same order.
    together = noise.added_to(torch.cat([total.reshape(-1) for total in sums]))
    parts = together.split([total.numel() for total in sums])
    noisy = [part.view(total.shape) for part, total in zip(parts, sums, strict=True)]
    if not number & (number - 1):
        _check_release(sums, noisy, norm * batch, noise.deviation)
    for parameter, total in zip(parameters, noisy, strict=True):
        # A separate tensor: an optimizer may keep it.
        parameter.grad = total.div_(divisor).to(parameter.dtype)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


def _check_release(
    sums: Sequence[torch.Tensor], noisy: Sequence[torch.Tensor], longest: float, noise: float
) -> None:
    """Raise an error if sums are longer than clipping permits, or have less noise than planned."""
    pairs = [(one.double(), other.double()) for one, other in zip(sums, noisy, strict=True)]
    length = math.sqrt(sum(float(one.square().sum()) for one, _ in pairs))
    if not length <= longest * (1.0 + _TOLERANCE):
        raise NotPrivateError(
            "the gradients of records must be clipped; got longer ones. The training was stopped."
        )
    added = sum(float((other - one).square().sum()) for one, other in pairs)
    size = sum(one.numel() for one in sums)
    if not added >= noise**2 * stats.chi2.ppf(_FALSE_ALARM_RATE, size) * (1.0 - _TOLERANCE):
        raise NotPrivateError(
            "noise must be added to the gradients; got less than planned. The training was "
            "stopped."
        )


class NoisySteps:
    """The steps of one private training, each on a batch that the caller drew.

    Parameters
    ----------
    module : torch.nn.Module
        The module, which is trained in place.
    optimizer : torch.optim.Optimizer
        Optimizer of the module's parameters.
    losses : callable
        Returns one loss per record, from outputs and targets.
    noise_multiplier : float
        Standard deviation of the noise on a clipped sum, in units of `max_grad_norm`.
    max_grad_norm : float
        Norm to which each record's gradient is clipped.
    divisor : float
        Public constant by which noisy sums are divided.
    mode : {"hooks", "functorch", "ghost"}
        How gradients of records are computed: by Opacus, or only their norms. "ghost" is for plain
        sequences of linear layers.
    rng : numpy.random.Generator
        Source of the noise.
    max_physical_batch_size : int or None
        Largest number of records in memory together.

    Attributes
    ----------
    steps_taken : int
        Number of steps so far.
    weights : tensor of shape (n_rows,) or None
        Factors in [0, 1] of the clipped gradients of the next batch; None means ones. If gradients
        were weighted before clipping, clipping would mostly undo the weights.

    Notes
    -----
    Theorem U1.

    In all steps every parameter must have a gradient for each record. A record on which the module
    or the losses raise, if tried separately, does not count.
    """

    def __init__(
        self,
        module: nn.Module,
        optimizer: torch.optim.Optimizer,
        losses: LossPerRecord,
        *,
        noise_multiplier: float,
        max_grad_norm: float,
        divisor: float,
        mode: str,
        rng: np.random.Generator,
        max_physical_batch_size: int | None = None,
    ) -> None:
        self._losses = losses
        self._norm = max_grad_norm
        self._divisor = divisor
        self._max_physical_batch_size = max_physical_batch_size
        self.steps_taken = 0
        self.weights: torch.Tensor | None = None
        # Any: Opacus adds attributes to parameters.
        self._parameters: list[Any] = [p for p in module.parameters() if p.requires_grad]
        self._plain = module
        self._optimizer = optimizer
        self._check_parameters()
        layers = layers_of(module) if mode == "ghost" else None
        self._closed = None if layers is None else ClosedFormGradients(layers, losses, True)
        self._module = with_gradients_per_record(module, mode) if layers is None else module
        deviation = noise_multiplier * max_grad_norm
        self._noise = GradientNoise(deviation, rng, self._parameters[0].device)

    def step(self, inputs: torch.Tensor, targets: torch.Tensor) -> None:
        """Take one step on a batch, which may be empty."""
        weights = self.weights
        if weights is not None and len(weights) != len(inputs):
            raise NotPrivateError("a batch must have one weight per row; got other numbers.")
        # Theorem P14: sums of persons, who may have any number of rows, have 64 bits.
        is_wide = weights is not None and weights.dtype == torch.float64
        wide = torch.float64 if is_wide else None
        sums = [torch.zeros_like(p, dtype=wide) for p in self._parameters]
        length = self._max_physical_batch_size or max(len(inputs), 1)
        for first in range(0, len(inputs), length):
            rows = slice(first, first + length)
            own = None if weights is None else weights[rows]
            more = self._clipped_sums(inputs[rows], targets[rows], own)
            for total, part in zip(sums, more, strict=True):
                total += part
        noisy_step(
            self._optimizer,
            self._parameters,
            sums,
            self._noise,
            norm=self._norm,
            divisor=self._divisor,
            batch=sum_of_weights(len(inputs), weights),
            number=self.steps_taken + 1,
        )
        self.steps_taken += 1

    def _clipped_sums(
        self, inputs: torch.Tensor, targets: torch.Tensor, weights: torch.Tensor | None
    ) -> list[torch.Tensor]:
        """Return the sums of clipped gradients, without records that are refused."""
        try:
            return self._sums(inputs, targets, weights)
        except NotPrivateError:
            raise
        except Exception:
            is_valid = self._is_valid(inputs, targets)
            if bool(is_valid.all()):
                raise
            self._forget_activations()
            own = None if weights is None else weights[is_valid]
            return self._sums(inputs[is_valid], targets[is_valid], own)

    def _is_valid(self, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Return which records the module and the losses accept, when each is tried separately."""

        def have_losses(places: np.ndarray) -> bool:
            chosen = torch.from_numpy(places).to(inputs.device)
            self._losses(self._plain(inputs[chosen]), targets[chosen])
            return True

        with torch.no_grad():
            parts = by_halves(have_losses, np.arange(len(inputs)), lambda places: False)
        found = [np.full(len(places), is_valid) for places, is_valid in parts]
        return torch.from_numpy(np.concatenate(found)).to(inputs.device)

    def _sums(
        self, inputs: torch.Tensor, targets: torch.Tensor, weights: torch.Tensor | None
    ) -> list[torch.Tensor]:
        if not len(inputs):
            return [torch.zeros_like(parameter) for parameter in self._parameters]
        if self._closed is None:
            return self._sums_per_record(inputs, targets, weights)
        found = self._closed.clipped_sums(
            [parameter.detach()[None] for parameter in self._parameters],
            inputs[None],
            targets[None],
            torch.ones(1, len(inputs), dtype=torch.bool, device=inputs.device),
            torch.tensor([self._norm], dtype=inputs.dtype, device=inputs.device),
            None if weights is None else weights[None],
        )
        return [total[0] for total in found]

    def _sums_per_record(
        self, inputs: torch.Tensor, targets: torch.Tensor, weights: torch.Tensor | None
    ) -> list[torch.Tensor]:
        """Return the sums of gradients that Opacus computes for each record."""
        for parameter in self._parameters:
            # Opacus would add those of this pass to a list.
            parameter.grad_sample = None
        self._losses(self._module(inputs), targets).sum().backward()
        samples = [self._taken_gradients(parameter, len(inputs)) for parameter in self._parameters]
        lengths = torch.stack([lengths_of(one.reshape(len(one), -1)) for one in samples], dim=1)
        lengths = lengths.norm(dim=1)
        factors = clipping_factors(lengths, self._norm)
        if weights is not None:
            factors = factors * weights
        invalid = ~lengths.isfinite()
        if bool(invalid.any()):
            # Infinities and NaN times zero are NaN.
            samples = [zeroed(sample, invalid) for sample in samples]
        return [torch.einsum("i,i...", factors, one.to(factors.dtype)) for one in samples]

    def _taken_gradients(self, parameter: Any, size: int) -> torch.Tensor:
        """Return a parameter's gradient for each record, and take it away from the parameter."""
        sample = getattr(parameter, "grad_sample", None)
        parameter.grad_sample = None
        wanted = (size, *parameter.shape)
        if not isinstance(sample, torch.Tensor) or tuple(sample.shape) != wanted:
            raise NotPrivateError(_MISSING_GRADIENT)
        return sample.detach()

    def _check_parameters(self) -> None:
        """Refuse an optimizer whose parameters differ from those that are clipped."""
        held = {id(p) for group in self._optimizer.param_groups for p in group["params"]}
        trained = {id(p) for p in self._parameters}
        frozen = {id(p) for p in self._plain.parameters()} - trained
        if not trained or held - frozen != trained:
            raise NotPrivateError(
                "the optimizer must hold the parameters of module and no others; got other ones."
            )

    def _forget_activations(self) -> None:
        """Remove what Opacus keeps of a forward pass; a failed pass leaves it behind."""
        for part in self._plain.modules():
            for name in ("activations", "max_batch_len"):
                vars(part).pop(name, None)
        for parameter in self._parameters:
            vars(parameter).pop("_current_grad_sample", None)
            parameter._forward_counter = 0


def sum_of_weights(size: int, weights: torch.Tensor | None) -> float:
    """Return the number of clipped gradients by which a batch may change a sum."""
    return float(size) if weights is None else float(weights.sum(dtype=torch.float64))


def with_gradients_per_record(module: nn.Module, mode: str) -> nn.Module:
    """Return the module wrapped by Opacus, to compute a gradient for each record."""
    try:
        return GradSampleModule(module, loss_reduction="sum", force_functorch=mode == "functorch")
    except NotImplementedError as problem:
        raise ValueError(
            f"module must be of a kind that Opacus supports; got another. {problem}"
        ) from problem


@contextmanager
def quiet_hooks() -> Iterator[None]:
    """Silence torch's warning that inputs need no gradients, as those of every first layer."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Full backward hook is firing")
        yield


@contextmanager
def exact_arithmetic() -> Iterator[None]:
    """Keep torch from rounding products to fewer digits than clipping relies on.

    The setting belongs to the process: the first training saves it, and the last one restores it.
    """
    with _ARITHMETIC.lock:
        if not _ARITHMETIC.users:
            _ARITHMETIC.before = torch.get_float32_matmul_precision()
            torch.set_float32_matmul_precision("highest")
        _ARITHMETIC.users += 1
    try:
        with torch.autocast("cpu", enabled=False), torch.autocast("cuda", enabled=False):
            yield
    finally:
        with _ARITHMETIC.lock:
            _ARITHMETIC.users -= 1
            if not _ARITHMETIC.users:
                torch.set_float32_matmul_precision(_ARITHMETIC.before)


@dataclass
class TrainingRun:
    """The data of one fit of a net, its number of steps and its random draws.

    Attributes
    ----------
    settings : Settings
        The plan of steps and noise, and what else follows from parameters and public numbers.
    X, targets : tensor
        Records, and targets in the form for the criterion. Of rows in parts, those of the batches
        that were drawn last.
    new_generator : callable
        Returns the source of all randomness of the run, at its start, in every call.
    sizes : dict
        Arguments for the module: ``input_shape`` and ``n_outputs``.
    weights : tensor of shape (n_rows,) or None
        Factor in [0, 1] of the clipped gradient of each row; None means ones.
    persons : Persons or None
        The persons to whom the rows belong, if a record is a person with several rows. The
        weights of a person's rows then sum to at most 1.
    of_batches : callable, optional
        For rows in parts. From batches to `X`, `targets` and `weights` as arrays, and the places
        of each batch.
    n_rows : int
        Number of rows in parts.
    rng : Generator
        The source of randomness of this attempt.
    """

    settings: Settings
    X: torch.Tensor
    targets: torch.Tensor
    new_generator: Callable[[], np.random.Generator]
    sizes: dict[str, Any]
    weights: torch.Tensor | None = None
    persons: Persons | None = None
    of_batches: Callable[[list[Batch]], tuple[tuple[Any, ...], list[Batch]]] | None = None
    n_rows: int = 0
    rng: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        """Start again at the beginning of the source of randomness."""
        self.rng = self.new_generator()

    @property
    def plan(self) -> NoisyGradientPlan:
        """Sampling, number of steps and noise."""
        return self.settings.plan

    def batches(self) -> Iterator[Batch]:
        """Return the rows of the records that are drawn for each step.

        Notes
        -----
        Theorem P14. Persons are drawn, with all of their rows.
        """
        persons = self.persons
        if self.of_batches is not None:
            return self._batches_in_parts(self.of_batches)
        if persons is None:
            return self.plan.batches(len(self.X), self.rng)
        return map(persons.rows_of, self.plan.batches(persons.size, self.rng))

    def _batches_in_parts(self, of_batches: Callable[..., Any]) -> Iterator[Batch]:
        """Return the places of the records of each step among those that are in memory.

        Notes
        -----
        Theorem R10. Noise has a generator of its own, so batches may be drawn ahead.
        """
        for drawn in self.plan.batches_ahead(self.n_rows, self.X.shape[1], self.rng):
            # The rows of earlier batches are freed before others are read.
            del self.X, self.targets
            (*arrays, weights), places = of_batches(drawn)
            self.X, self.targets = map(torch.from_numpy, arrays)
            self.weights = None if weights is None else torch.from_numpy(weights)
            yield from places

    def restarted(self) -> TrainingRun:
        """Return the same run at its start, with the same future random draws."""
        return replace(self)


def steps_of_epochs(steps: int, epochs: float) -> Iterator[int]:
    """Yield the number of steps of each epoch; they add up to `steps`."""
    count = max(1, math.ceil(epochs))
    ends = [min(steps, math.ceil(steps * number / epochs)) for number in range(1, count)] + [steps]
    for first, end in zip([0, *ends[:-1]], ends, strict=True):
        yield end - first
