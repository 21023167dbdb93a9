"""Steps of an optimizer on clipped and noised gradients, made by Opacus and checked.

A `TrainingRun` holds the data of one training, its plan and its source of randomness.
"""

from __future__ import annotations

import functools
import math
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from opacus.grad_sample import GradSampleModule, GradSampleModuleFastGradientClipping
from opacus.optimizers import DPOptimizer, DPOptimizerFastGradientClipping
from opacus.utils.fast_gradient_clipping_utils import DPTensorFastGradientClipping
from scipy import stats
from torch import nn

from skdptune._secure_random import independent_generator
from skdptune.base._shared import Persons, by_halves
from skdptune.mechanisms._shared import Batch, NoisyGradientPlan, NormalNoise


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
        self._deviation = deviation
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
        if self._deviation == 0.0:
            return total.clone()
        if self._device.type == "cpu":
            noisy = self._noise.added_to(total.numpy().astype(np.float64))
            return torch.from_numpy(noisy).to(total.dtype)
        return total + torch.normal(
            0.0,
            self._deviation,
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
# Largest number of rows of persons whose sum may have 32 bits: its roundings are at most 2^-16 of
# the sum of the rows' weights.
ROWS_OF_PERSONS = 256
# Records with larger numbers count as having no gradient if only norms are computed.
_LARGEST_INPUT = 1e9
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
LossPerRecord = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
# The constant with which Opacus clips.
_CLIPPING_FLOOR = 1e-6


class NotPrivateError(RuntimeError):
    """Raised if clipping or noise differs from the plan; the training was stopped."""


def check_step(
    clipped: float, added: float, size: int, norm: float, noise: float, batch: float
) -> None:
    """Raise an error if a step is not as private as planned.

    Parameters
    ----------
    clipped, added : float
        Squared lengths of the sum of clipped gradients, and of the noise added to it.
    size : int
        Number of entries of each of them.
    norm, noise : float
        The clipping norm, and the standard deviation of the noise.
    batch : float
        Number of gradients in the sum, or the sum of their weights.

    Notes
    -----
    Theorem U1.
    """
    if not math.sqrt(clipped) <= norm * batch * (1.0 + _TOLERANCE):
        raise NotPrivateError(
            "the gradients of records must be clipped; got longer ones. The training was stopped."
        )
    if not added >= noise**2 * stats.chi2.ppf(_FALSE_ALARM_RATE, size) * (1.0 - _TOLERANCE):
        raise NotPrivateError(
            "noise must be added to the gradients; got less than planned. The training was "
            "stopped."
        )


class NoisySteps:
    """The steps of one private training, each on a batch that the caller drew.

    Opacus clips, and this package adds the noise.

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
        How Opacus computes gradients, or their norms, per record.
    rng : numpy.random.Generator
        Source of the noise.
    max_physical_batch_size : int or None
        Largest number of records in memory together.

    Attributes
    ----------
    steps_taken : int
        Number of steps so far, as counted by Opacus's hook behind the noise.
    weights : tensor of shape (n_rows,) or None
        Factors in [0, 1] of the clipped gradients of the next batch; None means ones. If gradients
        were weighted before clipping, clipping would mostly undo the weights.

    Notes
    -----
    Theorem U1.

    The work of Opacus is checked in steps 1, 2, 4, 8, ...: the sum of clipped gradients must not
    be longer than clipping permits, and what was added to it must have the size of the noise. In
    all steps every parameter must have a gradient for each record. A record on which the module or
    the losses raise, if tried separately, does not count.
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
        self._noise = noise_multiplier * max_grad_norm
        self._norm = max_grad_norm
        self._divisor = divisor
        self._is_ghost = mode == "ghost"
        self._max_physical_batch_size = max_physical_batch_size
        self._batch_size = 0.0
        self.steps_taken = 0
        self.weights: torch.Tensor | None = None
        # Any: Opacus adds attributes to parameters, and methods to the module.
        self._parameters: list[Any] = [p for p in module.parameters() if p.requires_grad]
        self._plain = module
        self._module: Any = with_gradients_per_record(module, mode, max_grad_norm)
        kind = DPOptimizerFastGradientClipping if self._is_ghost else DPOptimizer
        self._optimizer = kind(
            optimizer,
            noise_multiplier=noise_multiplier,
            max_grad_norm=max_grad_norm,
            expected_batch_size=divisor,
            loss_reduction="mean",
        )
        self._check_parameters()
        self._gradient_noise = GradientNoise(self._noise, rng, self._parameters[0].device)
        self._optimizer.add_noise = self._add_noise
        if self._is_ghost:
            self._optimizer.accumulate = self._accumulate
        else:
            clip = self._optimizer.clip_and_accumulate
            self._optimizer.clip_and_accumulate = functools.partial(self._clip, clip)
        self._optimizer.attach_step_hook(self._check_release)

    @property
    def _is_wide(self) -> bool:
        """Whether sums have 64 bits, as those of persons, who may have any number of rows."""
        return self.weights is not None and self.weights.dtype == torch.float64

    def step(self, inputs: torch.Tensor, targets: torch.Tensor) -> None:
        """Take one step on a batch, which may be empty."""
        before, weights = self.steps_taken, self.weights
        if weights is not None and len(weights) != len(inputs):
            raise NotPrivateError("a batch must have one weight per row; got other numbers.")
        self._batch_size = sum_of_weights(len(inputs), weights)
        self._optimizer.zero_grad()
        chunks = list(self._physical_batches(len(inputs)))
        for chunk in chunks:
            is_last = chunk is chunks[-1]
            self._optimizer.signal_skip_step(do_skip=not is_last)
            own = None if weights is None else weights[chunk]
            self._compute_gradients(inputs[chunk], targets[chunk], own)
            self._optimizer.step()
            if not is_last:
                self._optimizer.zero_grad()
        if self.steps_taken != before + 1:
            raise NotPrivateError(
                f"a batch must be one noisy step; got {self.steps_taken - before}. The training "
                "was stopped."
            )

    def _physical_batches(self, size: int) -> Iterator[slice]:
        """Yield slices of a batch that fit into memory; one empty slice for an empty batch."""
        length = size if self._max_physical_batch_size is None else self._max_physical_batch_size
        if self._is_ghost and self._is_wide:
            length = min(length, ROWS_OF_PERSONS)
        for first in range(0, max(size, 1), max(length, 1)):
            yield slice(first, min(first + max(length, 1), size))

    def _compute_gradients(
        self, inputs: torch.Tensor, targets: torch.Tensor, weights: torch.Tensor | None
    ) -> None:
        try:
            self._compute_all_gradients(inputs, targets, weights)
        except NotPrivateError:
            raise
        except Exception:
            is_valid = self._is_valid(inputs, targets)
            if bool(is_valid.all()):
                raise
            self._forget_activations()
            self._optimizer.zero_grad()
            self._compute_all_gradients(*_chosen(is_valid, inputs, targets, weights))

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

    def _compute_all_gradients(
        self, inputs: torch.Tensor, targets: torch.Tensor, weights: torch.Tensor | None
    ) -> None:
        if self._is_ghost:
            self._compute_clipped_sum(inputs, targets, weights)
        elif len(inputs):
            self._losses(self._module(inputs), targets).sum().backward()
            self._check_gradients(len(inputs))
            self._weigh_gradients(weights)
        else:
            for parameter in self._parameters:
                parameter.grad_sample = parameter.new_zeros((0, *parameter.shape))

    def _check_gradients(self, size: int) -> None:
        for parameter in self._parameters:
            sample = getattr(parameter, "grad_sample", None)
            wanted = (size, *parameter.shape)
            if not isinstance(sample, torch.Tensor) or tuple(sample.shape) != wanted:
                raise NotPrivateError(_MISSING_GRADIENT)

    def _weigh_gradients(self, weights: torch.Tensor | None) -> None:
        """Clip gradients and multiply them by weights, if there are any."""
        if weights is None:
            return
        samples = [parameter.grad_sample.detach() for parameter in self._parameters]
        norms = torch.stack([sample.flatten(1).norm(dim=1) for sample in samples], dim=1)
        factors = self._norm / (norms.norm(dim=1) + _CLIPPING_FLOOR)
        factors = factors.clamp(max=1.0) * weights
        for parameter, sample in zip(self._parameters, samples, strict=True):
            parameter.grad_sample = sample * factors.reshape(-1, *[1] * (sample.ndim - 1))

    def _clip(self, clip: Callable[[], None]) -> None:
        """Clip and add, without records whose gradients are not finite, as these spoil the sum.

        The sum shows whether there are any, and is much faster to check than all gradients.
        """
        clip = clip if self.weights is None else self._add_weighted
        earlier = [parameter.summed_grad for parameter in self._parameters]
        for parameter in self._parameters:
            parameter.summed_grad = None
        clip()
        sums = torch.stack([parameter.summed_grad.sum() for parameter in self._parameters])
        if not bool(sums.isfinite().all()):
            self._drop_invalid_gradients()
            clip()
        for parameter, before in zip(self._parameters, earlier, strict=True):
            if before is not None:
                parameter.summed_grad += before

    def _accumulate(self) -> None:
        """Add the sum of a chunk, of which only norms were computed; in 64 bits for persons."""
        for parameter in self._parameters:
            before, more = parameter.summed_grad, parameter.grad.detach()
            more = more.double() if self._is_wide else more.clone()
            parameter.summed_grad = more if before is None else before + more

    def _add_weighted(self) -> None:
        """Add up gradients that are clipped and weighted already, in 64 bits."""
        for parameter in self._parameters:
            parameter.summed_grad = parameter.grad_sample.sum(dim=0, dtype=torch.float64)

    def _drop_invalid_gradients(self) -> None:
        """Replace a record's gradient by zero if it is not finite, and undo the sum."""
        samples = [parameter.grad_sample for parameter in self._parameters]
        size = len(samples[0])
        finite = [sample.reshape(size, -1).isfinite().all(dim=1) for sample in samples]
        is_valid = torch.stack(finite).all(0)
        for parameter, sample in zip(self._parameters, samples, strict=True):
            replaced = sample.detach().clone()
            replaced[~is_valid] = 0.0
            # A new tensor: Opacus marks those that it has added up.
            parameter.grad_sample = replaced
            parameter.summed_grad = None

    def _compute_clipped_sum(
        self, inputs: torch.Tensor, targets: torch.Tensor, weights: torch.Tensor | None
    ) -> None:
        """Store the sum of clipped gradients in ``grad``, by norms only (Opacus's ghost)."""
        if len(inputs):
            # With numbers as large as these, a slope's square may underflow to zero, and with it
            # the norm.
            is_valid = inputs.flatten(1).abs().amax(dim=1) <= _LARGEST_INPUT
            if not bool(is_valid.all()):
                inputs, targets, weights = _chosen(is_valid, inputs, targets, weights)
        while len(inputs):
            for parameter in self._parameters:
                # Norms of an earlier batch must not be used in place of missing ones.
                parameter._norm_sample = None
            losses = self._losses(self._module(inputs), targets)
            self._backward_twice(losses, weights)
            is_valid = self._module.per_sample_gradient_norms.isfinite()
            if bool(is_valid.all()):
                return
            # A gradient that is not finite spoils the sum, even if multiplied by zero.
            self._optimizer.zero_grad()
            inputs, targets, weights = _chosen(is_valid, inputs, targets, weights)
        for parameter in self._parameters:
            parameter.grad = torch.zeros_like(parameter)

    def _backward_twice(self, losses: torch.Tensor, weights: torch.Tensor | None) -> None:
        """Compute norms, then the gradient of losses that are weighted by clipping."""
        module = self._module if weights is None else _WeightedClipping(self._module, weights)
        try:
            DPTensorFastGradientClipping(
                module, self._optimizer, losses, loss_reduction="sum"
            ).backward()
        except (AttributeError, TypeError):
            if all(parameter._norm_sample is not None for parameter in self._parameters):
                raise
            raise NotPrivateError(_MISSING_GRADIENT) from None

    def _add_noise(self) -> None:
        """Store each sum with its noise in ``grad``, in place of Opacus's own."""
        for parameter in self._parameters:
            noisy = self._gradient_noise.added_to(parameter.summed_grad)
            parameter.grad = noisy.view_as(parameter).to(parameter.dtype)

    def _check_parameters(self) -> None:
        """Refuse an optimizer whose parameters differ from those that Opacus clips."""
        held = {id(p) for group in self._optimizer.param_groups for p in group["params"]}
        trained = {id(p) for p in self._parameters}
        frozen = {id(p) for p in self._plain.parameters()} - trained
        if not trained or held - frozen != trained:
            raise NotPrivateError(
                "the optimizer must hold the parameters of module and no others; got other ones."
            )

    def _check_release(self, optimizer: DPOptimizer) -> None:
        """Count a step, and check what was added to the clipped sum."""
        self.steps_taken += 1
        if self.steps_taken & (self.steps_taken - 1):
            return
        clipped, noise, size = 0.0, 0.0, 0
        for parameter in self._parameters:
            summed = parameter.summed_grad.double()
            added = parameter.grad.double() * self._divisor - summed
            clipped += float(summed.square().sum())
            noise += float(added.square().sum())
            size += parameter.numel()
        check_step(clipped, noise, size, self._norm, self._noise, self._batch_size)

    def _forget_activations(self) -> None:
        """Remove what Opacus keeps of a forward pass; a failed pass leaves it behind."""
        for part in self._plain.modules():
            for name in ("activations", "max_batch_len"):
                vars(part).pop(name, None)
        for parameter in self._parameters:
            vars(parameter).pop("_current_grad_sample", None)
            parameter._forward_counter = 0


class _WeightedClipping:
    """The interface that Opacus expects between its two passes, with factors times weights."""

    def __init__(self, module: Any, weights: torch.Tensor) -> None:
        self._module, self._weights = module, weights
        self.disable_hooks, self.enable_hooks = module.disable_hooks, module.enable_hooks

    def get_clipping_coef(self) -> torch.Tensor:
        """Return the factor of each record's loss."""
        return self._module.get_clipping_coef() * self._weights


def sum_of_weights(size: int, weights: torch.Tensor | None) -> float:
    """Return the number of clipped gradients by which a batch may change a sum."""
    return float(size) if weights is None else float(weights.sum(dtype=torch.float64))


def _chosen(
    is_valid: torch.Tensor,
    inputs: torch.Tensor,
    targets: torch.Tensor,
    weights: torch.Tensor | None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """Return the valid rows of a batch, with their weights if there are any."""
    own = None if weights is None else weights[is_valid]
    return inputs[is_valid], targets[is_valid], own


def with_gradients_per_record(module: nn.Module, mode: str, max_grad_norm: float) -> nn.Module:
    """Return the module wrapped by Opacus, to compute gradients, or their norms, per record."""
    try:
        if mode == "ghost":
            return GradSampleModuleFastGradientClipping(
                module,
                loss_reduction="sum",
                max_grad_norm=max_grad_norm,
                use_ghost_clipping=True,
            )
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


@dataclass(frozen=True)
class TrainingRun:
    """The data of one fit of a net, its number of steps and its random draws.

    Attributes
    ----------
    plan : NoisyGradientPlan
        Sampling, number of steps and noise.
    X, targets : tensor
        Records, and targets in the form for the criterion.
    new_generator : callable
        Returns the source of all randomness of the run, at its start, in every call.
    sizes : dict
        Arguments for the module: ``input_shape`` and ``n_outputs``.
    weights : tensor of shape (n_rows,) or None
        Factor in [0, 1] of the clipped gradient of each row; None means ones.
    persons : Persons or None
        The persons to whom the rows belong, if a record is a person with several rows. The
        weights of a person's rows then sum to at most 1.
    rng : Generator
        The source of randomness of this attempt.
    """

    plan: NoisyGradientPlan
    X: torch.Tensor
    targets: torch.Tensor
    new_generator: Callable[[], np.random.Generator]
    sizes: dict[str, Any]
    weights: torch.Tensor | None = None
    persons: Persons | None = None
    rng: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        """Start again at the beginning of the source of randomness."""
        object.__setattr__(self, "rng", self.new_generator())

    def batches(self) -> Iterator[Batch]:
        """Return the rows of the records that are drawn for each step.

        Notes
        -----
        Theorem P14. Persons are drawn, with all of their rows.
        """
        persons = self.persons
        if persons is None:
            return self.plan.batches(len(self.X), self.rng)
        return map(persons.rows_of, self.plan.batches(persons.size, self.rng))

    def restarted(self) -> TrainingRun:
        """Return the same run at its start, with the same future random draws."""
        return replace(self)


def steps_of_epochs(steps: int, epochs: float) -> Iterator[int]:
    """Yield the number of steps of each epoch; they add up to `steps`."""
    count = max(1, math.ceil(epochs))
    ends = [min(steps, math.ceil(steps * number / epochs)) for number in range(1, count)] + [steps]
    for first, end in zip([0, *ends[:-1]], ends, strict=True):
        yield end - first
