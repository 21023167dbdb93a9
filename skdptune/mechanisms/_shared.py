"""Names of this folder that other folders use, in addition to its public ones."""

from skdptune.mechanisms._batches import Batch
from skdptune.mechanisms._exact_noise import (
    NormalNoise,
    add_gaussian,
    add_spherical,
    draw_images,
    grid_of,
    spherical_spread,
)
from skdptune.mechanisms._noise import UNIT, WHOLE, nonprivate_profile, pure_profile
from skdptune.mechanisms._noisy_gradient_plan import (
    MAX_EPOCHS,
    SAMPLINGS,
    NoisyGradientPlan,
    check_noise_and_budget,
    plan_noisy_gradient,
)
from skdptune.mechanisms._randomness import check_seed, repeatable_generator

__all__ = [
    "Batch",
    "MAX_EPOCHS",
    "NoisyGradientPlan",
    "NormalNoise",
    "SAMPLINGS",
    "UNIT",
    "WHOLE",
    "add_gaussian",
    "add_spherical",
    "check_noise_and_budget",
    "check_seed",
    "draw_images",
    "grid_of",
    "nonprivate_profile",
    "plan_noisy_gradient",
    "pure_profile",
    "repeatable_generator",
    "spherical_spread",
]
