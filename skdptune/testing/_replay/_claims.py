"""How far the outputs on neighbouring data may lie apart, by the claimed privacy profile."""

from __future__ import annotations

import math

import numpy as np
from scipy.integrate import trapezoid

from skdptune.accounting import PrivacyProfile

# With the largest of these chances per fit, an output may be any at all.
_FAILURES = (0.0, 1e-6, 1e-5, 1e-4)
_POINTS = 4001
# Beyond this epsilon, the weight e^(-2 epsilon) leaves nothing.
_FARTHEST = 20.0
_LARGEST = 300.0


def allowed_shift(profile: PrivacyProfile) -> float:
    """Return how far the mean of any published number may move, in standard deviations.

    Parameters
    ----------
    profile : PrivacyProfile
        The claim, for one step from neighbour to neighbour.

    Returns
    -------
    float
        Infinite where the claim allows anything.

    Notes
    -----
    Theorem V1. ``2 sinh(epsilon / 2)`` for pure epsilon, ``sqrt(exp(mu**2) - 1)``, which is about
    ``mu``, for Gaussian noise whose mean moves by ``mu`` standard deviations.
    """
    return min(_shift(profile, failure) for failure in _FAILURES)


def agreement_chance(profile: PrivacyProfile, n_repeats: int, steps: int) -> float:
    """Bound the chance that fits agree on one value, and those on neighbouring data on another.

    Parameters
    ----------
    profile : PrivacyProfile
        The claim, for one step from neighbour to neighbour.
    n_repeats : int
        Number of fits to either data set.
    steps : int
        Number of steps from one data set to the other.

    Notes
    -----
    Theorem V2.
    """
    distance = min(1.0, steps * float(profile.delta(0.0)))
    return float((0.5 * (1.0 + distance)) ** (n_repeats - 1))


def _shift(profile: PrivacyProfile, failure: float) -> float:
    """Return the bound for fits of which each may fail with a given probability."""
    # Theorem V1.
    last = profile.epsilon(failure)
    if not last <= _LARGEST:
        return math.inf
    near = np.linspace(0.0, last, _POINTS)
    far = np.union1d(near[near < _FARTHEST], np.linspace(0.0, _FARTHEST, _POINTS))
    ratios, tail = np.exp(near), np.exp(far)
    # Both integrands are convex in the ratio, so that trapezoids lie above them.
    above = trapezoid(profile.delta(near), ratios)
    below = trapezoid(profile.delta(far) / tail**3, tail)
    rest = float(profile.delta(_FARTHEST)) * math.exp(-2.0 * _FARTHEST) / 2.0
    second_moment = (1.0 + 2.0 * (above + below + rest)) / (1.0 - 2.0 * failure) ** 2
    return math.sqrt(max(float(second_moment) - 1.0, 0.0))
