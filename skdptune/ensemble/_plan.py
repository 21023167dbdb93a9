"""How the noise of a fit is shared between counts and steps of boosting, and what it costs."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import NamedTuple

from skdptune.accounting import PrivacyProfile
from skdptune.mechanisms import gaussian_profile, noise_for_budget
from skdptune.mechanisms._shared import nonprivate_profile

# Beyond it the noise hardly gets less, and the accounting counts losses as infinite.
_LARGEST_EPSILON = 100.0
# Noise of a prediction, at a rate of 1, from which on it counts as drowned.
_DROWNING = 8.0
# Roots and quotients of the scales are rounded: their relative errors are some 1e-16.
_ROUNDED = 1.0 + 1e-12


class RateRule(NamedTuple):
    """How the learning rate follows from public numbers.

    Attributes
    ----------
    noise : float
        Standard deviation of the noise of a prediction.
    largest : float
        Rate where there is little noise.
    growth : float
        Power by which the noise may grow where a rate of 1 would drown in it.
    """

    noise: float
    largest: float
    growth: float = 0.0


@dataclass(frozen=True)
class BoostingPlan:
    """The noise of a fit in all, and of its parts.

    Attributes
    ----------
    noise_multiplier : float
        A fit costs as one Gaussian release with so many standard deviations to a sensitivity of 1.
    profile : PrivacyProfile
    """

    noise_multiplier: float
    profile: PrivacyProfile

    def count_scale(self, n_terms: int, bin_share: float) -> float:
        """Return the standard deviation of the noise of each count.

        Notes
        -----
        Theorem B1.
        """
        return self.noise_multiplier * math.sqrt(n_terms / bin_share) * _ROUNDED

    def step_scale(self, n_terms: int, n_rounds: int, bin_share: float) -> float:
        """Return the standard deviation of a step's noise, over the norm of a record's residuals.

        Notes
        -----
        Theorem B1.
        """
        n_steps = n_terms * n_rounds
        return self.noise_multiplier * math.sqrt(n_steps / (1.0 - bin_share)) * _ROUNDED

    def learning_rate(
        self, n_samples: int, n_columns: int, n_rounds: int, n_leaves: int, rule: RateRule
    ) -> float:
        """Return the rate at which all noise moves a prediction by about what a rule wants.

        A leaf has some ``n_samples / n_leaves`` records. So the noise of a round moves a score by
        the rate times the noise of a step over these, and that of all rounds and columns by the
        root of their number times as much.
        """
        size = float(min(n_samples, 2**53))
        influence = self.noise_multiplier * n_rounds * n_columns * n_leaves / size
        if influence == 0.0:
            return rule.largest
        noise = rule.noise * max(1.0, influence / _DROWNING) ** rule.growth
        return min(noise / influence, rule.largest)


def plan_of_noise(noise_multiplier: float) -> BoostingPlan:
    """Return the plan of a fit with a given noise."""
    return BoostingPlan(noise_multiplier, gaussian_profile(1.0, noise_multiplier))


@functools.lru_cache(maxsize=256)
def plan_of_budget(epsilon: float, delta: float) -> BoostingPlan:
    """Return the plan with the least noise that meets a budget; none for an infinite epsilon."""
    if math.isinf(epsilon):
        return BoostingPlan(0.0, nonprivate_profile())
    return BoostingPlan(*noise_for_budget(min(epsilon, _LARGEST_EPSILON), delta))
