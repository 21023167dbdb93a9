"""Validation of a classifier's parameters, before any data are read."""

from __future__ import annotations

from typing import Any

from skdptune._formatting import shown
from skdptune._validation import check_flag, check_integer, check_option, check_real
from skdptune.base import check_class_weight, check_classes
from skdptune.linear_model._defaults import AUTO, solver_of
from skdptune.linear_model._solver_choice import SOLVERS
from skdptune.linear_model._solvers import OPTIMIZERS
from skdptune.mechanisms import MAX_EPOCHS, SAMPLINGS, check_noise_and_budget

# Bounds on C within which no regularization overflows.
LEAST_C, LARGEST_C = 1e-15, 1e15


def check_parameters(model: Any) -> None:
    """Refuse bad parameters of a classifier; no data are needed.

    Parameters
    ----------
    model : PrivateLinearClassifier
    """
    check_option(model.solver, name="solver", options=(AUTO, *SOLVERS))
    check_option(model.sampling, name="sampling", options=SAMPLINGS)
    _check_public_size(model)
    if model.noise_multiplier is not None:
        check_real(model.noise_multiplier, name="noise_multiplier", lower=0.0, lower_open=True)
    if takes_most_steps(model):
        _check_most_steps(model)
    elif model.noise_multiplier is None:
        model._checked_budget()
    else:
        model._checked_delta()
    _check_problem(model)
    _check_iteration(model)


def takes_most_steps(model: Any) -> bool:
    """Return whether a classifier takes as many steps of a given noise as its budget pays for."""
    return isinstance(model.epochs, str) and model.epochs == MAX_EPOCHS


def _check_most_steps(model: Any) -> None:
    """Refuse to find the number of steps without steps, noise or budget."""
    if solver_of(model) not in OPTIMIZERS:
        raise ValueError(
            f"epochs must be a number with solver={shown(model.solver)}; got "
            f"{MAX_EPOCHS!r}. Use solver='sgd' or 'adam', whose steps are paid for one by "
            "one."
        )
    check_noise_and_budget(model.noise_multiplier, model.epsilon, model.delta)


def _check_problem(model: Any) -> None:
    """Refuse bad parameters of what is minimised."""
    if model.C is not None:
        check_real(model.C, name="C", lower=LEAST_C, upper=LARGEST_C)
    # 0.5 would fit an intercept for which no noise is added.
    check_flag(model.fit_intercept, name="fit_intercept")
    if model.data_norm is not None:
        check_real(model.data_norm, name="data_norm", lower=1e-100, upper=1e7)
    check_classes(model.classes)
    check_class_weight(model.class_weight, model.classes)


def _check_iteration(model: Any) -> None:
    """Refuse bad parameters of how it is minimised."""
    if model.max_grad_norm is not None:
        check_real(
            model.max_grad_norm, name="max_grad_norm", lower=0.0, lower_open=True, upper=1e100
        )
    if model.epochs is not None and not takes_most_steps(model):
        hint = f"Or {MAX_EPOCHS!r}, beside noise_multiplier and a budget."
        check_real(model.epochs, name="epochs", lower=0.0, lower_open=True, upper=1e9, hint=hint)
    check_real(model.tol, name="tol", lower=0.0, upper=1e-2)
    check_integer(
        model.max_iter,
        name="max_iter",
        lower=100,
        hint="The guarantee needs the minimum, so the iteration is never cut short.",
    )
    if model.learning_rate is not None:
        check_real(model.learning_rate, name="learning_rate", lower=0.0, lower_open=True)
    if isinstance(model.batch_size, float):
        check_real(model.batch_size, name="batch_size", lower=0.0, lower_open=True, upper=1.0)
    elif model.batch_size is not None:
        check_integer(model.batch_size, name="batch_size", lower=1)


def _check_public_size(model: Any) -> None:
    """Refuse to hide the number of records where a proof needs it."""
    if model.n_public is None:
        return
    check_integer(model.n_public, name="n_public", lower=1)
    if model.solver == "psgd":
        raise ValueError(
            "n_public must be None with solver='psgd', whose guarantee needs the number of "
            f"records; got {shown(model.n_public)}. Use another solver."
        )
    if solver_of(model) in OPTIMIZERS and model.sampling == "fixed":
        raise ValueError(
            "n_public must be None with sampling='fixed', whose cost depends on the share of "
            f"all records that a batch has; got {shown(model.n_public)}. Use sampling='poisson' "
            "or 'allocation'."
        )
