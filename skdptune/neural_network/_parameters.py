"""The parameters of a private net: names, domains and defaults, and the resulting plan."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, Self, TypeAlias, cast

import torch
from skorch.callbacks import LRScheduler
from torch import nn

from skdptune._formatting import shown
from skdptune._validation import check_flag, check_integer, check_option, check_real
from skdptune.base import PrivateEstimatorMixin
from skdptune.mechanisms._shared import (
    MAX_EPOCHS,
    SAMPLINGS,
    check_noise_and_budget,
    plan_noisy_gradient,
)
from skdptune.neural_network._noisy_steps import GRAD_SAMPLE_MODES
from skdptune.neural_network._recipe import (
    RULE_FOR_CLASSES,
    STEPS,
    Rule,
    Settings,
    defaults_of,
)

AUTO = "auto"
# Default numbers of epochs, by the least number of records, in increasing order: they lose nothing
# at small budgets, for which noise decides. Noise changes a decision between two classes least,
# numbers more, and one class among many most. They do not depend on epsilon, which is not known
# while a search solves for the noise. The measurements are in docs/defaults.md.
EPOCHS_FOR_TWO_CLASSES = {0: 20, 4_000: 30}
EPOCHS_FOR_TARGETS = {0: 10, 16_000: 20}
EPOCHS_FOR_CLASSES = {0: 10}
_BATCH_OF_SGD = 256
ADAM = functools.partial(torch.optim.AdamW, weight_decay=0.0)

_HINT = (
    "No privacy cost is charged for its measurements. A schedule of the learning rate "
    "(LRScheduler) is allowed. If your own callback reads no data, declare this by the class "
    "attribute data_independent = True."
)


def check_callbacks(callbacks: Any) -> None:
    """Refuse callbacks that read losses, scores, gradients or data.

    Parameters
    ----------
    callbacks : None, "disable" or list
        As in skorch: callbacks, their classes, or pairs of a name and one of these.
    """
    if callbacks is None or (isinstance(callbacks, str) and callbacks == "disable"):
        return
    if not isinstance(callbacks, list | tuple):
        raise TypeError(f"callbacks must be a list, or None; got {type(callbacks).__name__}.")
    for entry in callbacks:
        callback = entry[1] if isinstance(entry, tuple) else entry
        kind = callback if isinstance(callback, type) else type(callback)
        if callback is None or getattr(callback, "data_independent", False) is True:
            continue
        if kind is not LRScheduler:
            raise ValueError(
                f"callbacks must not depend on the data; got {kind.__name__}. {_HINT}"
            )
        policy = getattr(callback, "policy", "")
        if "plateau" in str(getattr(policy, "__name__", policy)).lower():
            raise ValueError(
                "callbacks must not depend on the data; got LRScheduler with ReduceLROnPlateau, "
                f"which reads a loss. {_HINT}"
            )


# Instances, or classes and factories that are called with the arguments of the component.
ModuleLike: TypeAlias = nn.Module | Callable[..., nn.Module]
OptimizerFactory = Callable[..., torch.optim.Optimizer] | Literal["auto"]
Callbacks = Sequence[Any] | Literal["disable"] | None
GradSampleMode = Literal["auto", "hooks", "functorch", "ghost"]
PredictNonlinearity = Callable[[torch.Tensor], torch.Tensor] | Literal["auto"] | None

# Limit of the noise in units of the clipping norm.
_LEAST_NOISE = 1e-6
# Components of skorch that would draw batches or read data outside of `fit`.
_REFUSED_COMPONENTS = ("compile", "dataset", "iterator_train", "train_split")


class NetParameters(PrivateEstimatorMixin):
    """Names and domains of a net's parameters; skorch itself accepts any keyword."""

    module: ModuleLike | Literal["auto"]
    criterion: ModuleLike
    optimizer: OptimizerFactory
    lr: float | Literal["auto"]
    max_epochs: float | Literal["auto", "max"]
    batch_size: int | float | Literal["auto"]
    max_grad_norm: float | Literal["auto"]
    noise_multiplier: float | None
    grad_sample_mode: str
    sampling: str
    max_physical_batch_size: int | None
    fix_module: bool
    callbacks: Any
    train_split: None
    device: str | torch.device
    # Meaning of "auto" epochs, by the number of records.
    _epochs_by_size: dict[int, int]
    _rule: Rule = RULE_FOR_CLASSES
    # Parameters of skorch.
    prefixes_: Sequence[str]
    _params_to_validate: set[str]

    @classmethod
    def _own_names(cls) -> list[str]:
        """Return the named parameters of the class and of its base classes."""
        kinds = [kind for kind in cls.__mro__ if issubclass(kind, NetParameters)]
        kinds = [kind for kind in kinds if "__init__" in vars(kind)]
        return sorted({name for kind in kinds for name, _ in named_parameters(kind.__init__)})

    def _get_param_names(self) -> list[str]:
        components = [name for name in vars(self) if "__" in name and not name.startswith("_")]
        return [*self._own_names(), *sorted(components)]

    def _get_params_callbacks(self, deep: bool = True) -> dict[str, Any]:
        return {}

    def set_params(self, **params: Any) -> Self:
        """Set parameters; fitted attributes stay unchanged until the next fit.

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
                    f"Invalid parameter {shown(name)} for estimator {type(self).__name__}. Valid "
                    f"parameters are: {self._own_names()}, and those of components with a prefix, "
                    "such as module__hidden."
                )
            # Bypass skorch, which treats a module that is set outside of its hooks as a mistake.
            object.__setattr__(self, name, value)
            if is_nested:
                self._params_to_validate.add(name)
        return self

    def _check_parameters(self) -> None:
        """Validate the parameters, before any data are read."""
        self._check_sizes()
        self._check_noise()
        if not self._has("max_grad_norm"):
            check_real(
                self.max_grad_norm,
                name="max_grad_norm",
                lower=0.0,
                lower_open=True,
                upper=1e6,
                hint=f"Or {AUTO!r}.",
            )
        modes = ("auto", *GRAD_SAMPLE_MODES)
        check_option(self.grad_sample_mode, name="grad_sample_mode", options=modes)
        check_flag(self.fix_module, name="fix_module")
        if self.train_split is not None:
            raise ValueError(
                "train_split must be None; got a value. Scores of validation data that are split "
                "off would not be paid for: use DPRandomSearchCV to compare settings."
            )
        check_callbacks(self.callbacks)
        for name in self._get_param_names():
            prefix = name.partition("__")[0]
            if prefix in _REFUSED_COMPONENTS and "__" in name:
                raise ValueError(f"{name} must not be given: the net draws its batches itself.")
        _check_device(self.device)

    def _has(self, name: str, word: str = AUTO) -> bool:
        """Return whether the value of a parameter is a word: "auto" leaves it to a rule."""
        value = getattr(self, name)
        return isinstance(value, str) and value == word

    @property
    def _optimizer(self) -> Callable[..., torch.optim.Optimizer]:
        """What makes the optimizer; `ADAM` for the rule of steps on all records."""
        if not isinstance(self.optimizer, str):
            return self.optimizer
        # For classes, the rule was judged for its own module: images would take long.
        return ADAM if self._rule.takes_any_module or self._has("module") else torch.optim.SGD

    def _takes_most_steps(self) -> bool:
        """Return whether a fit takes all steps of a given noise that its budget pays for."""
        return self._has("max_epochs", MAX_EPOCHS)

    def _check_noise(self) -> None:
        if self._takes_most_steps():
            check_noise_and_budget(self.noise_multiplier, self.epsilon, self.delta)
            return
        if self.noise_multiplier is not None:
            self._checked_delta()
            # With less than this, a gradient's digits would be lost.
            check_real(self.noise_multiplier, name="noise_multiplier", lower=_LEAST_NOISE)
            return
        epsilon, delta = self._checked_budget()
        if delta == 0.0 and math.isfinite(epsilon):
            raise ValueError(
                "delta must be positive, as Gaussian noise is never purely private; got 0."
            )

    def _check_sizes(self) -> None:
        if not (self._takes_most_steps() or self._has("max_epochs")):
            hint = f"Or {MAX_EPOCHS!r}, with a noise_multiplier and a budget; or {AUTO!r}."
            ends: dict[str, Any] = {"lower": 0.0, "lower_open": True, "upper": 1e9}
            check_real(self.max_epochs, name="max_epochs", hint=hint, **ends)
        # Larger numbers do not fit in single precision.
        if not self._has("lr"):
            check_real(self.lr, name="lr", lower=0.0, upper=3e38, hint=f"Or {AUTO!r}.")
        for name in ("optimizer", "module", "batch_size"):
            if isinstance(getattr(self, name), str):
                hint = "Others are given as a class, a module or a number, without quotes."
                check_option(getattr(self, name), name=name, options=(AUTO,), hint=hint)
        if isinstance(self.batch_size, float):
            check_real(self.batch_size, name="batch_size", lower=0.0, lower_open=True, upper=1.0)
        elif not isinstance(self.batch_size, str):
            check_integer(self.batch_size, name="batch_size", lower=1)
        if self.max_physical_batch_size is not None:
            check_integer(self.max_physical_batch_size, name="max_physical_batch_size", lower=1)
        check_option(self.sampling, name="sampling", options=SAMPLINGS)
        if self._public_size(1) and self.n_public is not None and self.sampling == "fixed":
            raise ValueError(
                "n_public must be None with sampling='fixed', whose cost depends on the number "
                f"of records itself; got {shown(self.n_public)}. Use sampling='poisson' or "
                "'allocation'."
            )

    def _batches_for(self, n_samples: int) -> tuple[int, float | Literal["max"]]:
        """Return the expected number of records in a batch, and the number of epochs."""
        size, epochs, is_default = self.batch_size, self.max_epochs, self._optimizer is ADAM
        if isinstance(size, str):
            least, most = self._rule.batches if is_default else (_BATCH_OF_SGD,) * 2
            count = min(n_samples, max(least, min(n_samples // 10, most)))
        else:
            given = max(1, round(size * n_samples)) if isinstance(size, float) else size
            count = min(given, n_samples)
        if self._has("max_epochs"):
            if is_default and isinstance(size, str):
                return count, STEPS * count / n_samples
            rule = self._epochs_by_size.items()
            return count, [value for least, value in rule if n_samples >= least][-1]
        return count, cast(float | Literal["max"], epochs)

    def _settings_before_data(self, n_samples: int) -> Settings:
        """Return the settings of a fit to a number of records, from public numbers only."""
        self._check_parameters()
        size = check_integer(n_samples, name="n_samples", lower=1)
        classes = getattr(self, "classes", None)
        return self._settings_for(self._public_size(size), 2 if classes is None else len(classes))

    def _settings_for(self, n_samples: int, n_classes: int) -> Settings:
        """Return the settings of a fit, with a value in place of each "auto"."""
        count, epochs = self._batches_for(n_samples)
        plan = plan_noisy_gradient(
            n_samples,
            epochs=epochs,
            batch_size=count,
            epsilon=self.epsilon,
            delta=self.delta,
            noise_multiplier=self.noise_multiplier,
            sampling=self.sampling,
        )
        optimizer = self._optimizer
        is_default = optimizer is ADAM
        rate, norm, width = defaults_of(self._rule, plan, is_default, n_classes)
        return Settings(
            plan,
            epochs=plan.epochs if isinstance(epochs, str) else float(epochs),
            optimizer=optimizer,
            is_default=is_default,
            lr=rate if isinstance(self.lr, str) else float(self.lr),
            max_grad_norm=norm if isinstance(self.max_grad_norm, str) else self.max_grad_norm,
            width=width,
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
    except (RuntimeError, TypeError):
        raise ValueError(
            f"device must be one that torch knows, such as 'cpu'; got {shown(device)}."
        ) from None
    if kind.type == "cuda" and not torch.cuda.is_available():
        raise ValueError("device must be one that is there; got CUDA without one. Use 'cpu'.")
