"""Training of a private net: its components, and counted steps on clipped, noisy gradients."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
import torch
from skorch import NeuralNet
from skorch.callbacks import LRScheduler

from skdptune._progress import Progress
from skdptune.neural_network._module_check import (
    CriterionError,
    check_gradients,
    check_losses,
    check_module,
    check_outer_products,
    fixed_module,
    has_outer_products,
    nothing_shared,
    same_draws,
)
from skdptune.neural_network._modules import MLP, SizedModule
from skdptune.neural_network._noisy_steps import (
    NoisySteps,
    NotPrivateError,
    TrainingRun,
    exact_arithmetic,
    quiet_hooks,
    steps_of_epochs,
)
from skdptune.neural_network._parameters import NetParameters, check_callbacks, named_parameters
from skdptune.neural_network._recipe import Settings, falling_rate, group_layers
from skdptune.neural_network._stacked_gradients import LossPerRecord

_PREDICTION_BATCH = 1024
_NOT_OFFERED = (
    "{name} is not offered: training in pieces would have a privacy cost that nothing counts. "
    "Use fit."
)


def not_offered(name: str) -> AttributeError:
    """Return the error for a skorch method that a private net must not have."""
    return AttributeError(_NOT_OFFERED.format(name=name))


class TrainingLoop(NetParameters, NeuralNet):
    """The parts of a net's `fit`, which replace skorch's loop over a data loader.

    skorch's hooks are changed so that each fit starts anew and no other method trains.

    Notes
    -----
    Theorem U1.
    """

    # Those of the current or last fit.
    _settings: Settings | None = None
    module_: torch.nn.Module
    criterion_: Any
    # Set only during `fit`: training outside of it would not be charged.
    _engine: NoisySteps | None = None
    # Copies of module and criterion that see no record, from the start of `fit` to its end.
    _unused: tuple[torch.nn.Module, Any] | None = None

    @property
    def _default_callbacks(self) -> list[Any]:
        # skorch's history would record losses, scores and times.
        settings = self._used_settings
        if not settings.is_default or self.callbacks:
            return []
        return [("falling_rate", falling_rate(settings.plan.steps))]

    @property
    def _used_settings(self) -> Settings:
        # skorch's own methods may be called before a fit.
        return self._settings or self._settings_before_data(1)

    def initialize_module(self) -> Self:
        """Make a new module; one of this package gets the sizes of the data."""
        sizes = getattr(self, "_sizes", {})
        # Layers that are passed as arguments belong to the caller and must not be trained.
        kwargs = copy.deepcopy(self.get_params_for("module"))
        given = self.module
        if isinstance(given, str):
            given = MLP(hidden=(self._used_settings.width,))
        if isinstance(given, torch.nn.Module) and not kwargs:
            module = copy.deepcopy(given)
        else:
            kind = type(given) if isinstance(given, torch.nn.Module) else given
            settings = getattr(given, "settings", {}) if kind is not given else {}
            accepted = {name for name, _ in named_parameters(kind)}
            found = {name: value for name, value in sizes.items() if name in accepted}
            module = kind(**{**found, **settings, **kwargs})
        if isinstance(module, SizedModule) and module.layers is None and sizes:
            module = module.sized(**sizes)
        if not isinstance(module, torch.nn.Module):
            raise TypeError(
                "module must be a torch.nn.Module, or a class or function that makes one; got "
                f"{type(module).__name__}."
            )
        # A factory, or a class with a shared layer, may return the same layers again.
        module = copy.deepcopy(module)
        if sizes and not any(parameter.requires_grad for parameter in module.parameters()):
            raise ValueError("module must have parameters to train; got none.")
        self.module_ = fixed_module(module) if self.fix_module else module
        return self

    def initialize_criterion(self) -> Self:
        """Make the criterion, set to return one loss per record."""
        super().initialize_criterion()
        criterion = copy.deepcopy(self.criterion_)
        if not hasattr(criterion, "reduction"):
            raise ValueError(
                "criterion must have an attribute reduction, to be set to 'none' for one loss per "
                f"record; got {type(criterion).__name__}."
            )
        criterion.reduction = "none"
        self.criterion_ = criterion
        return self

    def initialize_optimizer(self, triggered_directly: bool | None = None) -> Self:
        """Make the optimizer of the fit, with its learning rate."""
        given = {"lr": self.lr, "optimizer": self.optimizer}
        settings = self._used_settings
        # Bypass skorch, which treats a set parameter as a change by the user.
        self.__dict__.update(lr=settings.lr, optimizer=settings.optimizer)
        try:
            super().initialize_optimizer(triggered_directly)
        except TypeError as error:
            if not settings.is_default:
                raise
            raise TypeError(
                f"{error}: optimizer='auto' is Adam. Give the optimizer to which the argument "
                "belongs, such as optimizer=torch.optim.SGD for optimizer__momentum."
            ) from None
        finally:
            self.__dict__.update(given)
        if settings.is_default:
            group_layers(self.optimizer_, self.module_, settings.decay)
        return self

    def get_iterator(self, dataset: Any, training: bool = False) -> Any:
        """Return batches for prediction; only `fit` draws batches for training."""
        if training:
            raise not_offered("get_iterator(training=True)")
        settings = {"batch_size": _PREDICTION_BATCH, **self.get_params_for("iterator_valid")}
        return self.iterator_valid(dataset, **settings)

    def forward_iter(self, X: Any, *arguments: Any, **settings: Any) -> Iterator[Any]:
        """Yield outputs for one batch after another; called by skorch.

        A copy of the module sees the records, and may keep information about them. The module
        itself is published; a search publishes it after predictions for private records.

        Parameters
        ----------
        X : array-like or tensor of shape (n_samples, ...)
        *arguments, **settings
            As in skorch.

        Yields
        ------
        tensor

        Notes
        -----
        Theorem U3.
        """
        self.check_is_fitted()
        net = object.__new__(type(self))
        net.__dict__.update(self.__dict__, module_=copy.deepcopy(self.module_))
        yield from super(TrainingLoop, net).forward_iter(X, *arguments, **settings)

    @property
    def partial_fit(self) -> Any:
        """Not offered: training in pieces would have a privacy cost that is not counted."""
        raise not_offered("partial_fit")

    def fit_loop(self, X: Any, y: Any = None, **refused: Any) -> Any:
        """Raise an error: training in pieces would have a privacy cost that is not counted."""
        raise not_offered("fit_loop")

    def train_step_single(self, batch: Any, **refused: Any) -> Any:
        """Raise an error: it would compute gradients that are neither clipped nor noised."""
        raise not_offered("train_step_single")

    # Training -------------------------------------------------------------------------------

    def _train_alone(self, run: TrainingRun) -> Any:
        try:
            with self._seeded_torch(run.rng), quiet_hooks(), exact_arithmetic():
                self._start(run)
                steps_taken = self._train(run)
            return self._finish(run, steps_taken)
        finally:
            self._publish()

    def _start(self, run: TrainingRun) -> None:
        # If this training fails, the report of an earlier one must not describe its weights.
        for name in ("max_epochs_", "plan_", "privacy_"):
            self.__dict__.pop(name, None)
        self._sizes, self._settings = run.sizes, run.settings
        self.lr_, self.max_grad_norm_ = run.settings.lr, run.settings.max_grad_norm
        self.initialize()
        self._unused = copy.deepcopy((self.module_, self.criterion_))
        check_callbacks([callback for _, callback in self.callbacks_])
        shape = run.sizes["input_shape"]
        check_module(self.module_, shape, self.device)
        with nothing_shared(self.criterion_, "criterion"), self._trial_losses() as fresh_losses:
            check_losses(self.module_, fresh_losses, shape, run.targets, self.device)

    def _publish(self) -> None:
        """Replace everything that was trained on records by copies that have seen no record.

        The copies get the trained weights, and nothing else.

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
                # The optimizer refers to the trained objects.
                callback.initialize()
        # A callback may hold the trained module, where it and Opacus have kept records.
        for parameter in weights.values():
            parameter.grad = None
        for part in {*trained.modules(), *weights.values()} - {*module.modules()}:
            vars(part).clear()

    @contextmanager
    def _trial_losses(self) -> Iterator[Callable[[], LossPerRecord]]:
        """Yield a function that makes losses, with a new copy of the criterion for each call."""
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
        # Modules draw from torch's global generators, for example for initial weights.
        with same_draws(torch.device(self.device), int(rng.integers(0, 2**63 - 1))):
            yield

    def _train(self, run: TrainingRun) -> int:
        """Take the planned steps, and return the number taken."""
        engine = NoisySteps(
            self.module_,
            self.optimizer_,
            self._losses,
            noise_multiplier=run.plan.noise_multiplier,
            max_grad_norm=run.settings.max_grad_norm,
            divisor=run.plan.batch_size,
            mode=self._gradient_mode(run),
            rng=run.rng,
            max_physical_batch_size=self.max_physical_batch_size,
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
            is_plain = has_outer_products(self.module_, shape, self.device)
            mode = "ghost" if is_plain else "hooks"
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
        # Callbacks are notified, but get no data.
        self.notify("on_train_begin", X=None, y=None)
        try:
            with Progress(type(self).__name__) as progress:
                for done, rows in enumerate(self._batches(run)):
                    progress.count(done, run.plan.steps, "steps")
                    if self._engine is not None and run.weights is not None:
                        self._engine.weights = run.weights[rows].to(self.device)
                    self.train_step((run.X[rows], run.targets[rows]))
        except KeyboardInterrupt:
            # As in skorch, the weights trained so far are kept; the cost stays the same.
            pass
        self.notify("on_train_end", X=None, y=None)

    def _batches(self, run: TrainingRun) -> Iterator[Any]:
        plan = run.plan
        batches = run.batches()
        for count in steps_of_epochs(plan.steps, run.settings.epochs):
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
