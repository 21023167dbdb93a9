""" """

from skdptune.linear_model._solvers._clipped_gradients import margin_residuals, softmax_residuals
from skdptune.linear_model._solvers._design import Design
from skdptune.linear_model._solvers._initial_weights import initial_weights
from skdptune.linear_model._solvers._margin_losses import LOGISTIC, MarginLoss, huber_hinge
from skdptune.linear_model._solvers._noisy_gradient import (
    OPTIMIZERS,
    SGD_LEARNING_RATE,
    default_learning_rate,
    fit_noisy_gradient,
)
from skdptune.linear_model._solvers._objective import fit_objective, plan_objective
from skdptune.linear_model._solvers._output import fit_output, plan_output
from skdptune.linear_model._solvers._permutation import (
    ASSUMPTION,
    fit_permutation,
    plan_permutation,
)
from skdptune.linear_model._solvers._perturbation import additive_noise, draw_noise, largest_part

__all__ = [
    "ASSUMPTION",
    "Design",
    "LOGISTIC",
    "MarginLoss",
    "OPTIMIZERS",
    "SGD_LEARNING_RATE",
    "additive_noise",
    "default_learning_rate",
    "draw_noise",
    "fit_noisy_gradient",
    "fit_objective",
    "fit_output",
    "fit_permutation",
    "huber_hinge",
    "initial_weights",
    "largest_part",
    "margin_residuals",
    "plan_objective",
    "plan_output",
    "plan_permutation",
    "softmax_residuals",
]
