"""The training of a private net: counted steps on clipped gradients with noise."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np
import torch
from skorch.callbacks import LRScheduler

from skdptune._progress import Progress
from skdptune.neural_network._callbacks import check_callbacks
from skdptune.neural_network._components import NetComponents, not_offered
from skdptune.neural_network._gradient_check import check_gradients
from skdptune.neural_network._module_check import (
    CriterionError,
    LossPerRecord,
    check_losses,
    check_module,
    check_outer_products,
    has_outer_products,
    nothing_shared,
)
from skdptune.neural_network._noisy_steps import (
    NoisySteps,
    NotPrivateError,
    exact_arithmetic,
    quiet_hooks,
)
from skdptune.neural_network._population import TrainableNet
from skdptune.neural_network._training_run import TrainingRun, steps_of_epochs


class TrainingLoop(TrainableNet, NetComponents):
    """The pieces of a net's `fit`, in place of skorch's loop over a data loader.

    Notes
    -----
    Theorem U1.
    """

    grad_sample_mode: str
    max_epochs: float | Literal["auto", "max"]
    # Set only during `fit`: training outside of it would not be charged.
    _engine: NoisySteps | None = None
    # Copies of module and criterion that meet no record, from the start of `fit` to its end.
    _unused: tuple[torch.nn.Module, Any] | None = None

    def _train_alone(self, run: TrainingRun) -> Any:
        try:
            with self._seeded_torch(run.rng), quiet_hooks(), exact_arithmetic():
                self._start(run)
                steps_taken = self._train(run)
            return self._finish(run.plan, steps_taken)
        finally:
            self._publish()

    def _start(self, run: TrainingRun) -> None:
        # If this training fails, the report of an earlier one must not describe its weights.
        for name in ("max_epochs_", "plan_", "privacy_"):
            self.__dict__.pop(name, None)
        self._sizes = run.sizes
        self.initialize()
        self._unused = copy.deepcopy((self.module_, self.criterion_))
        check_callbacks([callback for _, callback in self.callbacks_])
        shape = run.sizes["input_shape"]
        check_module(self.module_, shape, self.device)
        with nothing_shared(self.criterion_, "criterion"), self._trial_losses() as fresh_losses:
            check_losses(self.module_, fresh_losses, shape, run.targets, self.device)

    def _publish(self) -> None:
        """Put copies that no record has met in the place of all that was trained on records.

        They get the trained weights, and nothing else.

        Notes
        -----
        Theorem U3.
        """
        if self._unused is None:
            return
        trained, (module, criterion) = self.module_, self._unused
        weights = dict(trained.named_parameters())
        self.__dict__.update(module_=module, criterion_=criterion)
        self._set_training(False)
        for name in ("_engine", "_unused"):
            self.__dict__.pop(name, None)
        with torch.no_grad():
            for name, parameter in module.named_parameters():
                if parameter.requires_grad:
                    parameter.copy_(weights[name])
        self.initialize_optimizer()
        for _, callback in self.callbacks_:
            if type(callback) is LRScheduler:
                # It holds the optimizer, and with it what was trained.
                callback.initialize()
        # A callback may hold the trained module, where it and Opacus have kept records.
        for parameter in weights.values():
            parameter.grad = None
        for part in {*trained.modules(), *weights.values()} - {*module.modules()}:
            vars(part).clear()

    @contextmanager
    def _trial_losses(self) -> Iterator[Callable[[], LossPerRecord]]:
        """Yield what makes losses, by a copy of the criterion for each time that it is called."""
        criterion = self.criterion_

        def fresh_losses() -> LossPerRecord:
            own = copy.deepcopy(criterion)

            def losses(*arguments: Any) -> torch.Tensor:
                self.__dict__["criterion_"] = own
                return self._losses(*arguments)

            return losses

        try:
            yield fresh_losses
        finally:
            self.__dict__["criterion_"] = criterion

    @contextmanager
    def _seeded_torch(self, rng: np.random.Generator) -> Iterator[None]:
        # Modules draw from torch's global generators by themselves, as for first weights.
        device = torch.device(self.device)
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            torch.manual_seed(int(rng.integers(0, 2**63 - 1)))
            yield

    def _train(self, run: TrainingRun) -> int:
        """Take the planned steps, and return how many were taken."""
        engine = NoisySteps(
            self.module_,
            self.optimizer_,
            self._losses,
            noise_multiplier=run.plan.noise_multiplier,
            max_grad_norm=self.max_grad_norm,
            divisor=run.plan.batch_size,
            mode=self._gradient_mode(run),
            rng=run.rng,
            max_physical_batch_size=self.max_physical_batch_size,
            weights_of=run.weights_of,
        )
        self._engine = engine
        try:
            self.module_.train()
            self._take_steps(run)
            return engine.steps_taken
        except NotPrivateError:
            self._erase_weights()
            raise
        finally:
            self._engine = None

    def _gradient_mode(self, run: TrainingRun) -> str:
        """Return how to compute gradients, after a trial on synthetic records."""
        shape, mode = run.sizes["input_shape"], self.grad_sample_mode
        if mode == "auto":
            mode = "ghost" if has_outer_products(self.module_, shape, self.device) else "hooks"
        elif mode == "ghost":
            check_outer_products(self.module_, shape, self.device)
        if mode != "ghost":
            module = self.module_.train()
            with self._trial_losses() as fresh_losses:
                check_gradients(module, fresh_losses, shape, run.targets, self.device, mode)
        return mode

    def _erase_weights(self) -> None:
        for parameter in self.module_.parameters():
            parameter.data.zero_()

    def _take_steps(self, run: TrainingRun) -> None:
        # Callbacks are notified, but are given no data.
        self.notify("on_train_begin", X=None, y=None)
        try:
            with Progress(type(self).__name__) as progress:
                for done, rows in enumerate(self._batches(run)):
                    progress.count(done, run.plan.steps, "steps")
                    self.train_step((run.X[rows], run.targets[rows]))
        except KeyboardInterrupt:
            # As in skorch, what is trained so far is kept; the cost does not become less.
            pass
        self.notify("on_train_end", X=None, y=None)

    def _batches(self, run: TrainingRun) -> Iterator[Any]:
        plan = run.plan
        batches = plan.batches(len(run.X), run.rng)
        for count in steps_of_epochs(plan.steps, self._epochs_of(plan)):
            self.notify("on_epoch_begin", dataset_train=None, dataset_valid=None)
            for _ in range(count):
                self.notify("on_batch_begin", batch=None, training=True)
                batch = next(batches)
                yield batch if isinstance(batch, slice) else torch.from_numpy(batch)
                self.notify("on_batch_end", batch=None, training=True)
            self.notify("on_epoch_end", dataset_train=None, dataset_valid=None)

    def train_step(self, batch: Any, **fit_params: Any) -> dict[str, Any]:
        """Take one step on clipped and noised gradients; only `fit` may call it."""
        if self._engine is None or fit_params:
            raise not_offered("train_step")
        inputs, targets = batch
        self._engine.step(inputs.to(self.device), targets.to(self.device))
        # A loss is computed from the data and not charged, so none is returned.
        return {}

    def _losses(self, outputs: Any, targets: torch.Tensor) -> torch.Tensor:
        outputs = outputs[0] if isinstance(outputs, tuple) else outputs
        values = self.get_loss(outputs, targets, training=True)
        if values.ndim == 0 or len(values) != len(targets):
            raise CriterionError(
                "criterion must give one loss per record with reduction='none'; got shape "
                f"{tuple(values.shape)}."
            )
        return values.reshape(len(values), -1).mean(dim=1)
