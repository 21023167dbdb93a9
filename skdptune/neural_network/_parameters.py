"""The parameters of a private net: their names, how they are set, and what they may be."""

from __future__ import annotations

import inspect
import math
from typing import Any

import numpy as np
import torch

from skdptune._validation import check_integer, check_option, check_real
from skdptune.base import PrivateEstimatorMixin
from skdptune.neural_network._callbacks import check_callbacks
from skdptune.neural_network._noisy_steps import GRAD_SAMPLE_MODES

# Of skorch's, what would draw batches or look at data beside `fit`.
_REFUSED_COMPONENTS = ("compile", "dataset", "iterator_train", "train_split")


class NetParameters(PrivateEstimatorMixin):
    """Names and domains of a net's parameters, where skorch takes any keyword."""

    @classmethod
    def _own_names(cls) -> list[str]:
        """Return the named parameters of the class and of those it descends from."""
        kinds = [kind for kind in cls.__mro__ if issubclass(kind, NetParameters)]
        return sorted({name for kind in kinds for name, _ in named_parameters(kind.__init__)})

    def _get_param_names(self) -> list[str]:
        components = [name for name in vars(self) if "__" in name and not name.startswith("_")]
        return [*self._own_names(), *sorted(components)]

    def _get_params_callbacks(self, deep: bool = True) -> dict[str, Any]:
        return {}

    def set_params(self, **params: Any) -> Any:
        """Set parameters; what was fitted stays as it is until the next fit.

        Parameters
        ----------
        **params
            Parameters by name; those of components with a prefix, as in ``module__hidden``.

        Returns
        -------
        self
        """
        components = {*self._own_names(), *self.prefixes_}
        for name, value in params.items():
            prefix, is_nested, _ = name.partition("__")
            if name not in self._own_names() and not (is_nested and prefix in components):
                raise ValueError(
                    f"Invalid parameter {name!r} for estimator {type(self).__name__}. Valid "
                    f"parameters are: {self._own_names()}, and those of components with a prefix, "
                    "such as module__hidden."
                )
            # Past skorch, which takes a module that is set outside of its hooks for a mistake.
            object.__setattr__(self, name, value)
            if is_nested:
                self._params_to_validate.add(name)
        return self

    def _check_parameters(self) -> None:
        """Refuse bad parameters, before any data are read."""
        self._check_sizes()
        self._check_noise()
        check_real(self.max_grad_norm, name="max_grad_norm", lower=0.0, lower_open=True, upper=1e6)
        modes = ("auto", *GRAD_SAMPLE_MODES)
        check_option(self.grad_sample_mode, name="grad_sample_mode", options=modes)
        if self.train_split is not None:
            raise ValueError(
                "train_split must be None; got another. Scores of a part that is split off are "
                "read from the data and would not be charged: use DPRandomSearchCV to compare."
            )
        check_callbacks(self.callbacks)
        for name in self._get_param_names():
            prefix = name.partition("__")[0]
            if prefix in _REFUSED_COMPONENTS and "__" in name:
                raise ValueError(f"{name} must not be given; the net draws its batches itself.")
        _check_device(self.device)

    def _check_noise(self) -> None:
        if self.noise_multiplier is not None:
            self._checked_delta()
            check_real(self.noise_multiplier, name="noise_multiplier", lower=0.0, lower_open=True)
            return
        epsilon, delta = self._checked_budget()
        if delta == 0.0 and math.isfinite(epsilon):
            raise ValueError(
                "delta must be positive, as normal noise is never purely private; got 0."
            )

    def _check_sizes(self) -> None:
        check_real(self.max_epochs, name="max_epochs", lower=0.0, lower_open=True, upper=1e9)
        check_real(self.lr, name="lr", lower=0.0)
        if isinstance(self.batch_size, float):
            check_real(self.batch_size, name="batch_size", lower=0.0, lower_open=True, upper=1.0)
        else:
            check_integer(self.batch_size, name="batch_size", lower=1)
        if self.max_physical_batch_size is not None:
            check_integer(self.max_physical_batch_size, name="max_physical_batch_size", lower=1)
        if not isinstance(self.poisson_sampling, bool | np.bool_):
            raise TypeError(f"poisson_sampling must be a bool; got {self.poisson_sampling!r}.")
        if self._public_size(1) and self.n_public is not None and not self.poisson_sampling:
            raise ValueError(
                "n_public must be None with poisson_sampling=False, whose price depends on the "
                f"share of the records that a batch takes; got {self.n_public!r}."
            )


def named_parameters(function: Any) -> list[tuple[str, inspect.Parameter]]:
    """Return the named parameters of a function or class."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return []
    return [
        (name, p)
        for name, p in parameters.items()
        if name != "self" and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
    ]


def _check_device(device: Any) -> None:
    try:
        kind = torch.device(device)
    except (RuntimeError, TypeError) as problem:
        raise ValueError(
            f"device must be one that torch knows; got {device!r}. {problem}"
        ) from problem
    if kind.type == "cuda" and not torch.cuda.is_available():
        raise ValueError("device must be one that is there; got CUDA without one. Use 'cpu'.")
