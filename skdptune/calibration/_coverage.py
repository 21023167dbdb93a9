"""The level at which a private quantile of held-out scores gives a stated coverage.

**Guarantee.** Given the model, the held-out scores and that of a new record are exchangeable. So
the new score is at most a quantile of level ``q`` of ``m`` scores with a probability of at least
``(q m - L) / (m + 1)``, where ``L`` bounds the ranks that the noise may lose (Theorem I2).
"""

from __future__ import annotations

import functools
import math

import numpy as np
from scipy.optimize import brentq

# Number of held-out records with which coverage exceeds the claim by less than 1 %, if epsilon is
# 1 or more.
_ENOUGH_HELD_OUT = 2000.0
_LEAST_FRACTION, _LARGEST_FRACTION = 0.1, 0.5
# Steps of the grid of scores.
_FEWEST_STEPS, _MOST_STEPS = 64, 4096
# Increase of the sensitivity of a rank by rounding (Theorem R1).
_ROUNDING = 2.0**-24
_SLACK = 1e-9
# Settings at which the bound on lost ranks is computed.
_POINTS = 2000


def expected_loss(level: float, epsilon: float, steps: int) -> float:
    """Return the largest number of ranks that a private quantile may lose, in terms of coverage.

    Parameters
    ----------
    level : float
        Level of the quantile, in [0, 1].
    epsilon : float
        Budget of the quantile.
    steps : int
        Number of steps of its grid.

    Notes
    -----
    Theorem I2. A point that is x ranks too low is drawn with a weight of ``exp(-k x)`` relative to
    that of the right one, where ``k`` is the sharpness. The bound is a maximum over the sum of the
    weights of all points that are too low.
    """
    sharpness = epsilon / (2.0 * (max(level, 1.0 - level) + _ROUNDING))
    if math.isinf(sharpness):
        return 0.0
    rest, log_steps = -math.expm1(-sharpness), math.log(steps)
    log_mass = np.linspace(-20.0, log_steps, _POINTS)
    mass = np.exp(log_mass)
    others = 1.0 + (1.0 - rest) * mass
    growth = np.log1p(rest * mass / others)
    # Distance at which all points may lie, and the gain if some of them lie farther.
    reach = np.maximum(log_steps + np.log(others) - log_mass - np.log1p(mass), 0.0)
    loss = reach * mass / (1.0 + mass) + 2.0 * (growth + np.expm1(-growth)) / rest
    # Between two points the function exceeds both by less than a share of 1e-4.
    return min(1.0001 * float(loss.max()), math.log1p(steps)) / sharpness


@functools.lru_cache(maxsize=256)
def quantile_level(
    coverage: float, n_samples: int, fraction: float, epsilon: float, steps: int
) -> float | None:
    """Return the level of a private quantile with which the stated coverage holds.

    Parameters
    ----------
    coverage : float
        In (0, 1).
    n_samples : int
        Number of records; public.
    fraction : float
        Probability that a record is held out.
    epsilon, steps : float, int
        Budget and number of steps of the quantile.

    Returns
    -------
    float or None
        None if no level suffices.

    Notes
    -----
    Theorem I2.
    """
    # The mean of 1 / (m + 1), for the secret number m of records that are held out.
    share = -math.expm1((n_samples + 1) * math.log1p(-fraction)) / ((n_samples + 1) * fraction)

    def excess(level: float) -> float:
        lost = (level + expected_loss(level, epsilon, steps)) * share
        return level - lost - coverage

    if excess(1.0) < 0.0:
        return None
    return min(float(brentq(excess, coverage, 1.0)) + _SLACK, 1.0)


def records_needed(coverage: float, epsilon: float, fraction: float) -> int:
    """Return approximately the least number of records for which a coverage can be stated."""
    lost = expected_loss(1.0, epsilon, _FEWEST_STEPS)
    return math.ceil((1.0 + lost) / (1.0 - coverage) / fraction)


def held_out_fraction(n_samples: int, epsilon: float) -> float:
    """Return the probability that a record is held out, by a rule from public numbers."""
    wanted = _ENOUGH_HELD_OUT / (n_samples * min(epsilon, 1.0))
    return min(max(wanted, _LEAST_FRACTION), _LARGEST_FRACTION)


def grid_steps(n_held_out: float, epsilon: float) -> int:
    """Return the number of steps at which the grid costs about as much as the noise."""
    return int(min(max(n_held_out * epsilon, _FEWEST_STEPS), _MOST_STEPS))
