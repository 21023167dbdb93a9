"""The classifiers' solvers by name, and the values of parameters that are not given.

Each solver plans a fit before the data are read, from public numbers only, then finds weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from skdptune.linear_model._preconditioned import (
    DescentTask,
    PreconditionedPlan,
    fit_preconditioned,
    margin_factor,
    plan_preconditioned,
)
from skdptune.linear_model._solvers import (
    OPTIMIZERS,
    Design,
    DesignInParts,
    PublicProblem,
    default_learning_rate,
    fit_noisy_gradient,
    fit_objective,
    fit_output,
    fit_permutation,
    largest_subset_size,
    plan_objective,
    plan_output,
    plan_permutation,
    row_norm,
)
from skdptune.mechanisms import noise_for_budget
from skdptune.mechanisms._shared import MAX_EPOCHS, NoisyGradientPlan, plan_noisy_gradient

if TYPE_CHECKING:
    from skdptune.linear_model._private_classifier import PrivateLinearClassifier


AUTO, PRECONDITIONED = "auto", "preconditioned"
# Strength of the penalty of "preconditioned" for two classes, in coordinates of released moments.
_REGULARIZATION = 1.0 / 3.0
# Solvers that clip the gradient of each record, and therefore need no bound on its row.
CLIPPING_SOLVERS = (PRECONDITIONED, *OPTIMIZERS)
# Passes over the data: of the solver that uses all records in each step, and of the others.
_STEPS, _EPOCHS = 100, 20
_BATCH_SIZE, _MAX_GRAD_NORM, _C = 256, 1.0, 1.0
# Distance by which noise may move a margin, for solvers whose noise the regularization reduces.
_MARGIN_NOISE = {"objective": 3.0, "output": 0.4}
_LARGEST_REGULARIZATION = 1e15


def solver_of(model: Any) -> str:
    """Return the solver of a fit.

    "auto" means "preconditioned". If batches are requested, which that solver does not have, it
    means "sgd". For a pure budget, which neither of these can keep, it means "objective".
    """
    if model.solver != AUTO:
        return model.solver
    if model.delta == 0.0:
        return "objective"
    asks_for_batches = (
        model.batch_size is not None or model.sampling != "poisson" or model.epochs == MAX_EPOCHS
    )
    return "sgd" if asks_for_batches else PRECONDITIONED


def strength_of(model: Any) -> float:
    """Return the inverse of the regularization strength, if it does not follow from the noise."""
    return _C if model.C is None else float(model.C)


def follows_noise(model: Any) -> bool:
    """Return whether the regularization follows from the noise, or there is none."""
    return model.C is None and solver_of(model) in (PRECONDITIONED, *_MARGIN_NOISE)


def regularization_of(model: Any, radius: float, width: int, n_problems: int) -> float:
    """Return the regularization of a perturbed problem, from public numbers only.

    Parameters
    ----------
    model : PrivateLinearClassifier
        A classifier with valid parameters.
    radius : float
        Bound on the norm of a row.
    width : int
        Number of weights of each problem.
    n_problems : int

    Notes
    -----
    Noise of deviation ``N`` in the objective moves a margin by up to ``N radius / lam``, and so
    does noise on the minimum for "output". This is held at a constant, divided by the number of
    problems. The constant did best for each solver on the data sets of ``benchmarks/defaults.py``.
    """
    margin = _MARGIN_NOISE.get(solver_of(model))
    if model.C is not None or margin is None:
        return 1.0 / strength_of(model)
    noise = model.noise_multiplier
    if noise is None:
        multiplier, _ = noise_for_budget(model.epsilon, model.delta)
        noise = multiplier * (n_problems if model.delta == 0.0 else math.sqrt(n_problems))
    if model.delta == 0.0:
        noise *= math.sqrt(width)
    return min(max(noise * radius**2 * n_problems / margin, 1.0 / _C), _LARGEST_REGULARIZATION)


def epochs_of(model: Any) -> float:
    """Return the number of passes over the data, if it is a number."""
    if model.epochs is None:
        return _STEPS if solver_of(model) == PRECONDITIONED else _EPOCHS
    return float(model.epochs)


def batch_size_of(model: Any) -> int | float:
    """Return the number of records of a batch, or, as a float, their share of all."""
    return _BATCH_SIZE if model.batch_size is None else model.batch_size


def max_grad_norm_of(model: Any) -> float:
    """Return the clipping norm of "sgd" and "adam"."""
    return _MAX_GRAD_NORM if model.max_grad_norm is None else model.max_grad_norm


@dataclass(frozen=True)
class Fit:
    """A fit to rows that were read.

    Attributes
    ----------
    model : PrivateLinearClassifier
    plan : object
        The noise of the fit, its constants and its cost.
    rng : numpy.random.Generator
        Source of the noise.
    initial : ndarray of shape (width, n_outputs) or None
        Starting weights.
    """

    model: PrivateLinearClassifier
    plan: Any
    rng: np.random.Generator
    initial: np.ndarray | None


class Perturbation:
    """A solver that adds noise to an objective or to its minimum, one problem for each class.

    Parameters
    ----------
    make_plan, fit : callable
        As `plan_objective` and `fit_objective`.
    settings_of : callable
        From a classifier and the number of records to further arguments of `make_plan`.
    """

    def __init__(
        self,
        make_plan: Callable[..., Any],
        fit: Callable[..., np.ndarray],
        settings_of: Callable[[PrivateLinearClassifier, int], dict[str, Any]],
    ) -> None:
        self._make_plan, self._fit, self._settings_of = make_plan, fit, settings_of

    def plan(
        self,
        model: PrivateLinearClassifier,
        n_samples: int,
        n_features: int | None,
        n_classes: int,
    ) -> Any:
        """Return the noise of a fit, its constants and its cost, from public sizes only."""
        intercept, count = int(model.fit_intercept), 1 if n_classes <= 2 else n_classes
        radius = math.hypot(row_norm(model.data_norm, n_features), intercept)
        width = (1 if n_features is None else n_features) + intercept
        problem = PublicProblem(
            model._loss,
            radius=radius,
            regularization=regularization_of(model, radius, width, count),
            width=width,
            n_samples=n_samples if model.n_public is None else largest_subset_size(n_samples),
            n_problems=count,
        )
        return self._make_plan(problem, **_budget(model), **self._settings_of(model, n_samples))

    def weights(self, fits: Sequence[Fit], design: Design, codes: np.ndarray) -> list[np.ndarray]:
        """Return the private weights of fits of one class with the same labels 0, 1, ...

        Those of each have the shape (width, n_outputs).
        """
        n_classes = fits[0].model.classes_.size
        signs = [
            np.where(codes == label, 1.0, -1.0)
            for label in ([1] if n_classes == 2 else range(n_classes))
        ]
        return [
            np.stack([self._fit(fit.plan, design, own, fit.rng) for own in signs], axis=1)
            for fit in fits
        ]


class Descent:
    """A solver that descends along noisy sums of clipped gradients, for all classes at once.

    Parameters
    ----------
    optimizer : {"sgd", "adam"}
    """

    def __init__(self, optimizer: str) -> None:
        self._optimizer = optimizer

    def plan(
        self,
        model: PrivateLinearClassifier,
        n_samples: int,
        n_features: int | None,
        n_classes: int,
    ) -> NoisyGradientPlan:
        """Return the noise of a fit, its constants and its cost, from public sizes only."""
        return plan_noisy_gradient(
            n_samples,
            epochs=MAX_EPOCHS if model.epochs == MAX_EPOCHS else epochs_of(model),
            batch_size=_batch_records(model, n_samples),
            sampling=model.sampling,
            **_budget(model),
        )

    def weights(
        self, fits: Sequence[Fit], design: Design | DesignInParts, codes: np.ndarray | None
    ) -> list[np.ndarray]:
        """Return the private weights of each fit, as `Perturbation` does."""
        outputs = 1 if fits[0].model.classes_.size == 2 else fits[0].model.classes_.size
        found = []
        for fit in fits:
            model, rate = fit.model, fit.model.learning_rate
            if rate is None:
                rate = default_learning_rate(self._optimizer, fit.plan.steps)
            limit, factor = max_grad_norm_of(model), 1.0
            if hasattr(model, "predict_proba"):
                longest = row_norm(model.data_norm, design.width - int(design.intercept))
                factor = margin_factor(limit / math.hypot(longest, float(design.intercept)))
            weights = fit_noisy_gradient(
                fit.plan,
                design,
                model._residuals_and_targets,
                codes,
                outputs,
                optimizer=self._optimizer,
                learning_rate=rate,
                max_grad_norm=limit,
                regularization=1.0 / strength_of(model),
                rng=fit.rng,
                initial=None if fit.initial is None else fit.initial / factor,
            )
            found.append(factor * weights)
        return found


class Preconditioned:
    """A solver that descends with all records in coordinates of released second moments."""

    def plan(
        self,
        model: PrivateLinearClassifier,
        n_samples: int,
        n_features: int | None,
        n_classes: int,
    ) -> PreconditionedPlan:
        """Return the noise of a fit, its constants and its cost, from public sizes only."""
        # All records are used in each step.
        steps = max(1, math.ceil(epochs_of(model)))
        return plan_preconditioned(n_samples, steps=steps, **_budget(model))

    def weights(
        self, fits: Sequence[Fit], design: Design | DesignInParts, codes: np.ndarray | None
    ) -> list[np.ndarray]:
        """Return the private weights of each fit, as `Perturbation` does, with shared passes."""
        first = fits[0].model
        outputs = 1 if first.classes_.size == 2 else first.classes_.size
        width, initial = design.width, None
        if outputs > 1 and design.intercept and first._first_intercept != 0.0:
            initial = np.zeros((width, outputs))
            initial[-1] = first._first_intercept
        tasks = [
            DescentTask(
                fit.plan,
                row_norm(fit.model.data_norm, width - int(design.intercept)),
                fit.rng,
                initial if fit.initial is None else fit.initial,
                self._regularization(fit.model, fit.plan, width, outputs),
                learning_rate=fit.model.learning_rate,
                max_grad_norm=fit.model.max_grad_norm,
                keeps_steps=fit.model.epochs is not None,
                is_logistic=hasattr(fit.model, "predict_proba"),
            )
            for fit in fits
        ]
        return fit_preconditioned(tasks, design, first._residuals_and_targets, codes, outputs)

    @staticmethod
    def _regularization(
        model: PrivateLinearClassifier, plan: PreconditionedPlan, width: int, outputs: int
    ) -> float:
        """Return the strength of the penalty on weights, from public numbers only."""
        if model.C is not None:
            return 1.0 / model.C
        # With little noise, few records are fitted too closely; more noise hides their details.
        is_fitted_closely = plan.scales(width) and outputs == 1 and hasattr(model, "predict_proba")
        return _REGULARIZATION if is_fitted_closely else 0.0


def _budget(model: PrivateLinearClassifier) -> dict[str, Any]:
    return {name: getattr(model, name) for name in ("epsilon", "delta", "noise_multiplier")}


def _batch_records(model: PrivateLinearClassifier, n_samples: int) -> int:
    """Return the expected number of records of a batch; a float is a share of all of them."""
    size = batch_size_of(model)
    return max(1, round(size * n_samples)) if isinstance(size, float) else min(size, n_samples)


def _minimiser_settings(model: PrivateLinearClassifier, n_samples: int) -> dict[str, Any]:
    return {"tol": model.tol, "max_iter": model.max_iter}


def _objective_settings(model: PrivateLinearClassifier, n_samples: int) -> dict[str, Any]:
    return {**_minimiser_settings(model, n_samples), "persons": model._is_by_persons}


def _permutation_settings(model: PrivateLinearClassifier, n_samples: int) -> dict[str, Any]:
    return {
        "epochs": max(1, round(epochs_of(model))),
        "batch_size": _batch_records(model, n_samples),
        "learning_rate": model.learning_rate,
    }


def active_solver(model: PrivateLinearClassifier) -> Perturbation | Descent | Preconditioned:
    """Return the solver that plans and fits a classifier."""
    return SOLVERS[solver_of(model)]


SOLVERS: dict[str, Perturbation | Descent | Preconditioned] = {
    PRECONDITIONED: Preconditioned(),
    "objective": Perturbation(plan_objective, fit_objective, _objective_settings),
    "output": Perturbation(plan_output, fit_output, _minimiser_settings),
    "psgd": Perturbation(plan_permutation, fit_permutation, _permutation_settings),
    **{optimizer: Descent(optimizer) for optimizer in OPTIMIZERS},
}
