"""Noise of perturbed problems: its size for a budget, its cost, and draws of it."""

from __future__ import annotations

import functools
import math

import numpy as np

from skdptune._secure_random import secure_generator
from skdptune._validation import check_real
from skdptune.accounting import PrivacyProfile, calibrate
from skdptune.accounting._shared import LARGEST_LOSS
from skdptune.mechanisms._shared import (
    add_gaussian,
    add_spherical,
    check_seed,
    grid_of,
    spherical_spread,
)

# With less noise than this, a privacy figure would mean nothing.
LEAST_NOISE_MULTIPLIER = 0.05
LARGEST_NOISE_MULTIPLIER = 1e9
# Steps per unit of the noise in an objective. Further noise hides what this rounding changes, so
# fewer steps would need more of that noise; with more steps, doubles would often be too coarse to
# round.
_FINE_BITS = 33


def check_budget(
    epsilon: float | None, delta: float, noise_multiplier: float | None, n_problems: int
) -> tuple[float, float]:
    """Return epsilon and delta as floats, or raise.

    Epsilon is NaN if the noise is given instead, so that any use of it by mistake would fail. A
    larger epsilon than a profile can express is lowered to that.
    """
    delta = check_real(delta, name="delta", lower=0.0, upper=1.0, upper_open=True)
    if noise_multiplier is None:
        epsilon = check_real(epsilon, name="epsilon", lower=0.0, lower_open=True)
        return min(epsilon, LARGEST_LOSS), delta
    least = LEAST_NOISE_MULTIPLIER * math.sqrt(n_problems)
    check_real(
        noise_multiplier, name="noise_multiplier", lower=least, upper=LARGEST_NOISE_MULTIPLIER
    )
    return math.nan, delta


def additive_noise(
    epsilon: float, delta: float, noise_multiplier: float | None, n_releases: int
) -> tuple[float, PrivacyProfile]:
    """Return the noise of additive releases, in units of their sensitivity, and their cost.

    Parameters
    ----------
    epsilon, delta : float
        Budget of all releases together, as `check_budget` returns it. The noise is normal if
        delta > 0.
    noise_multiplier : float, optional
        The noise, if it is given.
    n_releases : int
        Number of releases about the same records.
    """
    if delta == 0.0:
        if noise_multiplier is None:
            least = n_releases / LARGEST_NOISE_MULTIPLIER
            if epsilon < least:
                raise ValueError(f"epsilon must be at least {least:g}; got {epsilon:g}.")
            return n_releases / epsilon, PrivacyProfile.pure(epsilon)
        return noise_multiplier, PrivacyProfile.pure(n_releases / noise_multiplier)
    # Normal releases compose to one of the root of their number times the sensitivity.
    root = math.sqrt(n_releases)
    if noise_multiplier is not None:
        return noise_multiplier, PrivacyProfile.gaussian(root / noise_multiplier)
    multiplier, profile = _calibrated_normal_noise(epsilon, delta)
    return root * multiplier, profile


@functools.lru_cache(maxsize=64)
def _calibrated_normal_noise(epsilon: float, delta: float) -> tuple[float, PrivacyProfile]:
    found = calibrate(
        lambda multiplier: PrivacyProfile.gaussian(1.0 / multiplier),
        epsilon,
        delta,
        lower=LEAST_NOISE_MULTIPLIER,
        upper=LARGEST_NOISE_MULTIPLIER,
        guess=normal_noise_guess(epsilon, delta),
    )
    return found.value, found.profile


def normal_noise_guess(epsilon: float, delta: float, n_releases: int = 1) -> float:
    """Return approximately the noise multiplier of normal releases that meet a budget."""
    guess = math.sqrt(2.0 * n_releases * math.log(1.25 / delta)) / epsilon
    return min(max(guess, LEAST_NOISE_MULTIPLIER), LARGEST_NOISE_MULTIPLIER)


def noise_generator(random_state: int | None) -> np.random.Generator:
    """Return the generator of a fit's noise.

    Parameters
    ----------
    random_state : int or None
        None uses a cryptographic source with a key of the operating system.

    Notes
    -----
    Assumption E0.
    """
    seed = check_seed(random_state)
    if seed is None:
        return secure_generator()
    legacy = np.random.RandomState(seed)
    return np.random.default_rng(legacy.randint(0, 2**31 - 1, size=8))


def add_noise(
    values: np.ndarray, scale: float, is_pure: bool, rng: np.random.Generator
) -> np.ndarray:
    """Return a vector plus normal noise, or (`is_pure`) noise of density ``exp(-norm / scale)``.

    Notes
    -----
    Theorem E1, Theorem E2. Shifting the second by a vector v changes its log density by at most
    ``norm(v) / scale``. All numbers are multiples of `noise_grid`.
    """
    add = add_spherical if is_pure else add_gaussian
    return add(values, scale, rng)


def noise_grid(scale: float, width: int, is_pure: bool) -> float:
    """Return the power of two of which all noisy numbers are multiples."""
    return grid_of(spherical_spread(scale, width) if is_pure else scale)


def draw_linear_term(
    width: int, scale: float, is_pure: bool, rng: np.random.Generator
) -> np.ndarray:
    """Return noise for an objective, within `linear_term_error` of noise in real numbers.

    Notes
    -----
    Theorem E1, Theorem M2.
    """
    add = add_spherical if is_pure else add_gaussian
    return add(np.zeros(width), scale, rng, _fine_grid(width, scale, is_pure))


def linear_term_error(width: int, scale: float, is_pure: bool) -> float:
    """Return a bound on the distance of a linear term from noise in real numbers.

    Notes
    -----
    Theorem M2. Each number is rounded to the nearest multiple of a grid.
    """
    return 0.5 * math.sqrt(width) * _fine_grid(width, scale, is_pure)


def _fine_grid(width: int, scale: float, is_pure: bool) -> float:
    return grid_of(spherical_spread(scale, width) if is_pure else scale, _FINE_BITS)
