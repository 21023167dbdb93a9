"""Solvers of private linear classification: their minimisation or descent, and their noise."""

from skdptune.linear_model._solvers._design import (
    Design,
    DesignInParts,
    add_noise,
    additive_noise,
    noise_generator,
    row_norm,
)
from skdptune.linear_model._solvers._exact_gradient import ExactGradients, cut_basis
from skdptune.linear_model._solvers._noisy_gradient import (
    OPTIMIZERS,
    SGD_LEARNING_RATE,
    Coordinates,
    Residuals,
    default_learning_rate,
    descend,
    descend_together,
    fit_noisy_gradient,
    initial_weights,
    margin_residuals,
    noise_of_steps,
    softmax_residuals,
)
from skdptune.linear_model._solvers._objective import fit_objective, plan_objective
from skdptune.linear_model._solvers._output import (
    PERMUTATION_ASSUMPTION,
    fit_output,
    fit_permutation,
    plan_output,
    plan_permutation,
)
from skdptune.linear_model._solvers._public_problem import (
    LOGISTIC,
    MarginLoss,
    PublicProblem,
    huber_hinge,
    largest_subset_size,
)
