"""What a classifier's parameters stand for where they are not given, from public numbers alone."""

from __future__ import annotations

import math
from typing import Any

from skdptune.linear_model._solvers import OPTIMIZERS
from skdptune.mechanisms import MAX_EPOCHS

AUTO, PRECONDITIONED = "auto", "preconditioned"
# Solvers that clip the gradient of each record, and so need no bound on its row.
CLIPPING_SOLVERS = (PRECONDITIONED, *OPTIMIZERS)
# Passes over the data: of the solver that looks at all records in each step, and of the others.
_STEPS, _EPOCHS = 100, 20
_BATCH_SIZE, _MAX_GRAD_NORM, _C = 256, 1.0, 1.0


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
    """Return the inverse of the regularization strength."""
    return _C if model.C is None else float(model.C)


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
