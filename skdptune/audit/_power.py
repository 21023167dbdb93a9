"""What an audit would have found: noise that is smaller by a factor, replayed on its own fits."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from skdptune.accounting import PrivacyProfile
from skdptune.audit._bounds import LARGEST_SHIFT
from skdptune.audit._claims import ClaimCurve

FloatArray = NDArray[np.float64]
# From numbers with and without the record to whether they refute the claim.
Verdict = Callable[[FloatArray, FloatArray], bool]

PROBABILITY = 0.9
_N_REPEATS = 20
_N_HALVINGS = 5
_LEAST_FACTOR = 0.02
# Of more values a statistic is taken for continuous.
_MOST_VALUES = 10


class AuditPower(NamedTuple):
    """The least fault that an audit would have found.

    Attributes
    ----------
    noise_factor : float or None
        Noise of at most this factor of what there was would have been found; None where none
        would.
    epsilon : float or None
        What the claim would be with its noise multiplied by this factor.
    probability : float
        Of finding it.
    """

    noise_factor: float | None
    epsilon: float | None
    probability: float = PROBABILITY


def power_of(
    together: FloatArray,
    without: FloatArray,
    n_pairs: int,
    claim: ClaimCurve,
    refutes: Verdict,
) -> AuditPower:
    """Return by how much smaller noise an audit would have refuted a claim in nine of ten cases.

    Audits of as many fits are drawn from the distributions that the fits show: means, nearer by
    their standard error, and distances from them, smoothed and multiplied by the factor; of a
    statistic of few values, log-odds between the two sides divided by it.

    Parameters
    ----------
    together, without : ndarray
        One number per fit.
    n_pairs : int
        Fits of the audit on each side.
    claim : ClaimCurve
    refutes : callable
        The audit.
    """
    draw = _sampler(together, without)

    def is_found(factor: float) -> bool:
        found = 0
        for repeat in range(_N_REPEATS):
            sides = draw(factor, n_pairs, np.random.default_rng(repeat))
            found += refutes(*sides)
            if found + _N_REPEATS - repeat - 1 < PROBABILITY * _N_REPEATS:
                return False
        return True

    low, high = math.log(_LEAST_FACTOR), 0.0
    if not is_found(_LEAST_FACTOR):
        return AuditPower(None, None)
    if is_found(1.0):
        return AuditPower(1.0, claim.epsilon)
    for _ in range(_N_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if is_found(math.exp(middle)) else (low, middle)
    factor = math.exp(low)
    return AuditPower(factor, epsilon_with_less_noise(claim, factor))


def epsilon_with_less_noise(claim: ClaimCurve, factor: float) -> float:
    """Return the epsilon of Laplace noise, or of the Gaussian curve of a claim, times a factor."""
    if claim.delta == 0.0 or math.isinf(claim.epsilon):
        return claim.epsilon / factor
    low, high = 0.0, LARGEST_SHIFT
    while high - low > 1e-9 * high:
        middle = 0.5 * (low + high)
        is_less = PrivacyProfile.gaussian(middle).epsilon(claim.delta) < claim.epsilon
        low, high = (middle, high) if is_less else (low, middle)
    shift = high / factor
    return (
        PrivacyProfile.gaussian(shift).epsilon(claim.delta) if shift < LARGEST_SHIFT else math.inf
    )


Sampler = Callable[[float, int, np.random.Generator], tuple[FloatArray, FloatArray]]


def _sampler(together: FloatArray, without: FloatArray) -> Sampler:
    values = np.unique(np.concatenate([together, without]))
    if values.size <= _MOST_VALUES or not np.isfinite(values).all():
        return _few_values(together, without, values)
    return _many_values(together, without)


def _many_values(together: FloatArray, without: FloatArray) -> Sampler:
    sides = together, without
    means = [float(side.mean()) for side in sides]
    residuals = [side - mean for side, mean in zip(sides, means, strict=True)]
    spreads = [float(side.std()) for side in residuals]
    # Silverman's width, after which the spread is as before.
    widths = [0.9 * s * r.size**-0.2 for s, r in zip(spreads, residuals, strict=True)]
    error = math.hypot(*(s / math.sqrt(r.size) for s, r in zip(spreads, residuals, strict=True)))
    middle, half = sum(means) / 2.0, (means[0] - means[1]) / 2.0
    half = math.copysign(max(abs(half) - error / 2.0, 0.0), half)

    def draw(factor: float, size: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        drawn = []
        for sign, rest, spread, width in zip((1.0, -1.0), residuals, spreads, widths, strict=True):
            noise = rng.choice(rest, size) + width * rng.normal(size=size)
            if spread > 0.0:
                noise *= spread / math.hypot(spread, width)
            drawn.append(middle + sign * half + factor * noise)
        return drawn[0], drawn[1]

    return draw


def _few_values(together: FloatArray, without: FloatArray, values: FloatArray) -> Sampler:
    chances = [
        (np.array([(side == value).sum() for value in values]) + 0.5)
        / (side.size + 0.5 * values.size)
        for side in (together, without)
    ]
    odds = [logit(chance) for chance in chances]
    errors = [
        1.0 / np.sqrt(side.size * chance * (1.0 - chance))
        for side, chance in zip((together, without), chances, strict=True)
    ]
    half = 0.5 * (odds[0] - odds[1])
    half = np.copysign(np.maximum(np.abs(half) - 0.5 * np.hypot(*errors), 0.0), half)

    def draw(factor: float, size: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        middle, drawn = 0.5 * (odds[0] + odds[1]), []
        for sign in (1.0, -1.0):
            chance = expit(middle + sign * half / factor)
            drawn.append(rng.choice(values, size, p=chance / chance.sum()))
        return drawn[0], drawn[1]

    return draw
