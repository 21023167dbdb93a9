"""The parts that skorch makes a net of: module, criterion, callbacks, batches to predict for."""

from __future__ import annotations

import copy
from typing import Any

import torch

from skdptune.neural_network._module_check import fixed_module
from skdptune.neural_network._modules import SizedModule
from skdptune.neural_network._parameters import named_parameters

_PREDICTION_BATCH = 1024
_OWN_TRAINING = (
    "{name} is not offered: training in pieces would cost privacy that nobody counts. Use fit."
)


def no_training(name: str) -> AttributeError:
    """Return the error for what skorch offers and a private net does not."""
    return AttributeError(_OWN_TRAINING.format(name=name))


class NetComponents:
    """skorch's hooks, so that each fit starts afresh and nothing trains beside it."""

    @property
    def _default_callbacks(self) -> list[Any]:
        # skorch's would record losses, scores and times.
        return []

    def initialize_module(self) -> Any:
        """Make a fresh module; a ready one is given the sizes of the data."""
        sizes = getattr(self, "_sizes", {})
        # Parts that are given ready must not be trained in the hands of the caller.
        kwargs = copy.deepcopy(self.get_params_for("module"))
        if isinstance(self.module, torch.nn.Module) and not kwargs:
            module = copy.deepcopy(self.module)
        else:
            kind = type(self.module) if isinstance(self.module, torch.nn.Module) else self.module
            settings = getattr(self.module, "settings", {}) if kind is not self.module else {}
            accepted = {name for name, _ in named_parameters(kind)}
            found = {name: value for name, value in sizes.items() if name in accepted}
            module = kind(**{**found, **settings, **kwargs})
        if isinstance(module, SizedModule) and module.layers is None and sizes:
            module = module.sized(**sizes)
        # A factory, or a class that holds a part of the program's, may give the same one again.
        module = copy.deepcopy(module)
        if sizes and not any(parameter.requires_grad for parameter in module.parameters()):
            raise ValueError("module must have parameters to train; got none.")
        self.module_ = fixed_module(module) if self.fix_module else module
        return self

    def initialize_criterion(self) -> Any:
        """Make the criterion, and have it give one loss per record."""
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

    def get_iterator(self, dataset: Any, training: bool = False) -> Any:
        """Return batches to predict for; those to train on come from `fit` alone."""
        if training:
            raise no_training("get_iterator(training=True)")
        settings = {"batch_size": _PREDICTION_BATCH, **self.get_params_for("iterator_valid")}
        return self.iterator_valid(dataset, **settings)

    @property
    def partial_fit(self) -> Any:
        """Not offered: training in pieces would cost privacy that nobody counts."""
        raise no_training("partial_fit")

    def fit_loop(self, X: Any, y: Any = None, **refused: Any) -> Any:
        """Refuse: training in pieces would cost privacy that nobody counts."""
        raise no_training("fit_loop")

    def train_step_single(self, batch: Any, **refused: Any) -> Any:
        """Refuse: it would compute gradients that are neither clipped nor noised."""
        raise no_training("train_step_single")
