"""What draws noise: mechanisms that take a value and its sensitivity, and return a release.

Without a seed they draw from the operating system's entropy, through samplers that are safe in
floating point; with a seed or a generator they repeat, for research.
Every release has a function that returns what it costs, as a profile from `skdptune.accounting`.
"""

from skdptune.mechanisms._doubling import DoublingThreshold, doubling_walk_release
from skdptune.mechanisms._doubling_staircase import WalkRound
from skdptune.mechanisms._noise import (
    gaussian_profile,
    gaussian_release,
    laplace_profile,
    laplace_release,
    noise_for_budget,
)
from skdptune.mechanisms._noisy_max import permute_and_flip_release
from skdptune.mechanisms._quantiles import private_quantile, quantile_profile
from skdptune.mechanisms._randomness import as_generator
from skdptune.mechanisms._sums import unit_sum

__all__ = [
    "DoublingThreshold",
    "WalkRound",
    "as_generator",
    "doubling_walk_release",
    "gaussian_profile",
    "gaussian_release",
    "laplace_profile",
    "laplace_release",
    "noise_for_budget",
    "permute_and_flip_release",
    "private_quantile",
    "quantile_profile",
    "unit_sum",
]
