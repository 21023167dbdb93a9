"""Noisy bounds on the data: each holds but for a stated probability.

Rows z have squared norm at most *radius2*, targets are within [-1, 1]; data sets are neighbours
when they differ in one record, S the smaller, L the larger.

**Least eigenvalue.** It has the sensitivity radius2. What is released lies below ``least(S)``, on
either data set, but for the probability `failure`: radius2 is taken off, since a release is the
same function of its data whether they are S or L.

**Log-norm.** With t the ridge solution and b a bound on the leverage of every z on S,
``R = 1 + radius norm(t)`` bounds every residual ``abs(y - z't)``, and log R has the sensitivity
``log(1 + b)``. What is released lies above it but for the probability `failure`.

Theorem L4.
"""

from __future__ import annotations

import math
from typing import Any

from scipy import special

from skdptune.mechanisms import gaussian_release

# With a tiny budget the noise is huge; its exponential must stay a float, even when squared.
_LARGEST_LOGARITHM = 300.0


def margin(failure: float) -> float:
    """Return how many standard deviations a normal variable exceeds with that probability.

    Parameters
    ----------
    failure : float
        In (0, 1/2).
    """
    return float(-special.ndtri(failure))


def release_noisy_eigenvalue(
    least: float, radius2: float, shift: float, failure: float, random_state: Any = None
) -> float:
    """Release a lower bound on the least eigenvalue of the data at hand.

    Parameters
    ----------
    least : float
        Least eigenvalue of ``Z'Z``.
    radius2 : float
        Bound on the squared norm of a row: the sensitivity.
    shift : float
        The sensitivity in standard deviations of the noise; the release costs as much as a
        Gaussian one of that ``mu``. Infinite for no noise.
    failure : float
        Probability with which the bound may not hold.
    random_state : None, Generator
        Source of the noise; see `skdptune.mechanisms.gaussian_release`.
    """
    scale = radius2 / shift
    noisy = gaussian_release(least, radius2, scale, random_state)
    return float(max(0.0, noisy - margin(failure) * scale))


def release_least_eigenvalue(
    least: float, radius2: float, shift: float, failure: float, random_state: Any = None
) -> float:
    """Release a lower bound on the least eigenvalue of the smaller of any two neighbours.

    Parameters
    ----------
    least, radius2, shift, failure, random_state
        As for `release_noisy_eigenvalue`.

    Notes
    -----
    Theorem L4.
    """
    bound = release_noisy_eigenvalue(least, radius2, shift, failure, random_state)
    return max(0.0, bound - radius2)


def release_residual_bound(
    norm: float, radius2: float, leverage: float, shift: float, failure: float, random: Any = None
) -> float:
    """Release an upper bound on every residual of the smaller of any two neighbours.

    Parameters
    ----------
    norm : float
        Norm of the ridge solution.
    radius2 : float
        Bound on the squared norm of a row.
    leverage : float
        Bound on ``radius2 / (least eigenvalue + ridge)``, on the smaller data set; it must be
        known or released.
    shift, failure, random
        As for `release_least_eigenvalue`.

    Notes
    -----
    Theorem L4.
    """
    sensitivity = math.log1p(leverage)
    scale = sensitivity / shift
    noisy = gaussian_release(math.log1p(math.sqrt(radius2) * norm), sensitivity, scale, random)
    # If the data were the larger set, the smaller's bound may be larger by the factor in front.
    return (1.0 + leverage) * math.exp(min(noisy + margin(failure) * scale, _LARGEST_LOGARITHM))
