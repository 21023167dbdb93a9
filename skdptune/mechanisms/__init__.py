"""Mechanisms that draw noise: each takes a value and its sensitivity, and returns a release.

Without a seed they draw from a cryptographic source with a key of the operating system; with a
seed or a generator they repeat, for research. Numbers are released as sums with real noise that
are rounded to a grid which no data choose.
Every release has a function that returns what it costs, as a profile from `skdptune.accounting`.
"""

from skdptune.mechanisms._doubling import (
    DoublingThreshold,
    ThresholdRound,
    doubling_threshold_release,
)
from skdptune.mechanisms._noise import (
    gaussian_profile,
    gaussian_release,
    laplace_profile,
    laplace_release,
    noise_for_budget,
    unit_sum,
)
from skdptune.mechanisms._noisy_gradient_plan import steps_for_budget
from skdptune.mechanisms._noisy_max import permute_and_flip_release
from skdptune.mechanisms._quantiles import private_quantile, quantile_profile
from skdptune.mechanisms._randomness import as_generator, fit_generator

# isort: split
# For the other folders of this package.
from skdptune.mechanisms._batches import Batch as Batch
from skdptune.mechanisms._batches import poisson_batches as poisson_batches
from skdptune.mechanisms._exact_noise import NormalNoise as NormalNoise
from skdptune.mechanisms._exact_noise import add_gaussian as add_gaussian
from skdptune.mechanisms._exact_noise import add_spherical as add_spherical
from skdptune.mechanisms._exact_noise import draw_images as draw_images
from skdptune.mechanisms._exact_noise import grid_of as grid_of
from skdptune.mechanisms._exact_noise import spherical_spread as spherical_spread
from skdptune.mechanisms._noise import UNIT as UNIT
from skdptune.mechanisms._noise import nonprivate_profile as nonprivate_profile
from skdptune.mechanisms._noise import pure_profile as pure_profile
from skdptune.mechanisms._noisy_gradient_plan import MAX_EPOCHS as MAX_EPOCHS
from skdptune.mechanisms._noisy_gradient_plan import SAMPLINGS as SAMPLINGS
from skdptune.mechanisms._noisy_gradient_plan import NoisyGradientPlan as NoisyGradientPlan
from skdptune.mechanisms._noisy_gradient_plan import (
    check_noise_and_budget as check_noise_and_budget,
)
from skdptune.mechanisms._noisy_gradient_plan import plan_noisy_gradient as plan_noisy_gradient
from skdptune.mechanisms._randomness import check_seed as check_seed
from skdptune.mechanisms._randomness import repeatable_generator as repeatable_generator

__all__ = [
    "DoublingThreshold",
    "ThresholdRound",
    "as_generator",
    "doubling_threshold_release",
    "fit_generator",
    "gaussian_profile",
    "gaussian_release",
    "laplace_profile",
    "laplace_release",
    "noise_for_budget",
    "permute_and_flip_release",
    "private_quantile",
    "quantile_profile",
    "steps_for_budget",
    "unit_sum",
]
