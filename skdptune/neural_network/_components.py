"""The components of a skorch net: module, criterion, callbacks, and batches to predict for."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, Self

import torch
from skorch import NeuralNet

from skdptune.neural_network._module_check import fixed_module
from skdptune.neural_network._modules import SizedModule
from skdptune.neural_network._parameters import named_parameters

_PREDICTION_BATCH = 1024
_NOT_OFFERED = (
    "{name} is not offered: training in pieces would have a privacy cost that nothing counts. "
    "Use fit."
)


def not_offered(name: str) -> AttributeError:
    """Return the error for a method of skorch that a private net must not have."""
    return AttributeError(_NOT_OFFERED.format(name=name))


class NetComponents(NeuralNet):
    """skorch's hooks, so that each fit starts afresh and nothing else trains."""

    fix_module: bool
    module_: torch.nn.Module
    criterion_: Any

    @property
    def _default_callbacks(self) -> list[Any]:
        # skorch's would record losses, scores and times.
        return []

    def initialize_module(self) -> Self:
        """Make a fresh module; one of this package is given the sizes of the data."""
        sizes = getattr(self, "_sizes", {})
        # Layers that are passed as arguments belong to the caller and must not be trained.
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
        if not isinstance(module, torch.nn.Module):
            raise TypeError(
                "module must be a torch.nn.Module, or a class or function that makes one; got "
                f"{type(module).__name__}."
            )
        # A factory, or a class with a layer of its own, may return the same layers again.
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

    def get_iterator(self, dataset: Any, training: bool = False) -> Any:
        """Return batches to predict for; batches to train on are drawn by `fit` alone."""
        if training:
            raise not_offered("get_iterator(training=True)")
        settings = {"batch_size": _PREDICTION_BATCH, **self.get_params_for("iterator_valid")}
        return self.iterator_valid(dataset, **settings)

    def forward_iter(self, X: Any, *arguments: Any, **settings: Any) -> Iterator[Any]:
        """Yield outputs for one batch after another; called by skorch.

        A copy of the module sees the records, and may keep something of them. The module itself is
        published, by a search after it has predicted for private records.

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
        yield from super(NetComponents, net).forward_iter(X, *arguments, **settings)

    @property
    def partial_fit(self) -> Any:
        """Not offered: training in pieces would have a privacy cost that nothing counts."""
        raise not_offered("partial_fit")

    def fit_loop(self, X: Any, y: Any = None, **refused: Any) -> Any:
        """Refuse: training in pieces would have a privacy cost that nothing counts."""
        raise not_offered("fit_loop")

    def train_step_single(self, batch: Any, **refused: Any) -> Any:
        """Refuse: it would compute gradients that are neither clipped nor noised."""
        raise not_offered("train_step_single")
