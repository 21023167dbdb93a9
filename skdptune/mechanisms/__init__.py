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
