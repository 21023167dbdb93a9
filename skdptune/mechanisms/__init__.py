"""Mechanisms that add noise: each has a value and its sensitivity as input, and returns a release.

Without a seed, noise comes from a cryptographic source with a key from the operating system. With
a seed or a generator, it is reproducible, for research. Releases are the exact sum of the value
and real-valued noise, rounded to a grid that does not depend on data. For every release, there is
a function that returns its privacy cost as a profile from `skdptune.accounting`.
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
