"""What a classifier's parameters stand for where they are not given, from public numbers alone."""

from __future__ import annotations

import math
from typing import Any

from skdptune.linear_model._solvers import OPTIMIZERS
from skdptune.mechanisms import MAX_EPOCHS, noise_for_budget

AUTO, PRECONDITIONED = "auto", "preconditioned"
# Solvers that clip the gradient of each record, and so need no bound on its row.
CLIPPING_SOLVERS = (PRECONDITIONED, *OPTIMIZERS)
# Passes over the data: of the solver that looks at all records in each step, and of the others.
_STEPS, _EPOCHS = 100, 20
_BATCH_SIZE, _MAX_GRAD_NORM, _C = 256, 1.0, 1.0
# What noise may move a margin by, of the solvers whose noise the regularization can reduce.
_MARGIN_NOISE = {"objective": 3.0, "output": 0.4}
_LARGEST_REGULARIZATION = 1e15


def solver_of(model: Any) -> str:
    """Return the solver of a fit.

    "auto" stands for "preconditioned"; where batches are asked for, which that one does not have,
    for "sgd"; and for a pure budget, which neither can keep, for "objective".
    """
    if model.solver != AUTO:
        return model.solver
    if model.delta == 0.0:
        return "objective"
    return "sgd" if _asks_for_batches(model) else PRECONDITIONED


def _asks_for_batches(model: Any) -> bool:
    return (
        model.batch_size is not None or model.sampling != "poisson" or model.epochs == MAX_EPOCHS
    )


def strength_of(model: Any) -> float:
    """Return the inverse of the regularization strength, where it does not follow the noise."""
    return _C if model.C is None else float(model.C)


def follows_noise(model: Any) -> bool:
    """Return whether the regularization is chosen by the noise, or there is none."""
    return model.C is None and solver_of(model) in (PRECONDITIONED, *_MARGIN_NOISE)


def regularization_of(model: Any, radius: float, width: int, n_problems: int) -> float:
    """Return the regularization of a perturbed problem, from public numbers alone.

    Parameters
    ----------
    model : PrivateLinearClassifier
        With valid parameters.
    radius : float
        Bound on the norm of a row.
    width : int
        Number of weights of each problem.
    n_problems : int

    Notes
    -----
    Noise of deviation ``N`` in the objective moves a margin by up to ``N radius / lam``, and the
    minimum of "output" likewise. This is held at a constant that did best for each on the data
    sets of ``benchmarks/defaults.py``, over the number of problems.
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
    """Return the number of passes over the data, where it is a number."""
    if model.epochs is None:
        return _STEPS if solver_of(model) == PRECONDITIONED else _EPOCHS
    return float(model.epochs)


def steps_of(model: Any) -> int:
    """Return the number of steps of a solver that looks at all records in each."""
    return max(1, math.ceil(epochs_of(model)))


def batch_size_of(model: Any) -> int | float:
    """Return the number of records of a batch, or, as a float, their share of all."""
    return _BATCH_SIZE if model.batch_size is None else model.batch_size


def max_grad_norm_of(model: Any) -> float:
    """Return the clipping norm of "sgd" and "adam"."""
    return _MAX_GRAD_NORM if model.max_grad_norm is None else model.max_grad_norm
