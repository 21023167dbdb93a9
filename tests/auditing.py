"""Lower bounds on epsilon from fits on neighbouring data, and noise that is too small on purpose.

Every bound holds with probability 1 - `RISK` whatever the mechanism does (`counted`), or whatever
a mechanism does whose statistic is normal with one deviation on both data sets (`measured`, which
sees much more in as many fits). What is chosen by looking at results is chosen on the first half.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import stats

from skdptune.accounting import PrivacyProfile
from skdptune.mechanisms import _doubling, _noise, _noisy_max, _quantiles
from skdptune.mechanisms._exact_noise import _releases

# Of one bound. A table of fewer than a hundred bounds, all of them right, then holds one that is
# above the truth with probability below 1e-3; seeds are fixed, so that it was so once for all.
RISK = 1e-5


def measured(together: np.ndarray, without: np.ndarray, delta: float) -> float:
    """Return a lower bound on epsilon where the statistic is normal.

    The distance of the means in units of the deviation is mu of Gaussian differential privacy.
    With ``d`` the difference of means and ``s`` the pooled deviation of ``m`` degrees, ``d /
    sigma`` is normal around mu, and ``m s^2 / sigma^2`` is chi-squared: each bound takes half of
    the risk.
    """
    sizes = together.size, without.size
    difference = abs(float(together.mean() - without.mean()))
    degrees = sum(sizes) - 2
    squares = sum(float(((side - side.mean()) ** 2).sum()) for side in (together, without))
    deviation = math.sqrt(squares / degrees)
    least = math.sqrt(stats.chi2.ppf(RISK / 2, degrees) / degrees)
    # Half of the risk, on both sides, since the sign was looked at.
    error = stats.norm.isf(RISK / 4) * math.sqrt(1 / sizes[0] + 1 / sizes[1])
    shift = difference / deviation * least - error
    return PrivacyProfile.gaussian(shift).epsilon(delta) if shift > 0.0 else 0.0


def counted(together: np.ndarray, without: np.ndarray, delta: float) -> float:
    """Return a lower bound on epsilon from one event (Clopper-Pearson), whatever the statistic.

    The event, a half-line, and which of the two data sets makes it likelier are chosen on the
    first halves. Where there are two outcomes, all four choices are tested on everything, each
    at a quarter of the risk.
    """
    levels = np.unique(np.concatenate([together, without]))
    if levels.size <= 2:
        sizes = [together.size, without.size]
        numbers = [int((side == levels[0]).sum()) for side in (together, without)]
        pairs = (numbers, [size - number for size, number in zip(sizes, numbers, strict=True)])
        orders = [(pair[::step], sizes[::step]) for pair in pairs for step in (1, -1)]
        return max(0.0, *(_refuted(*order, delta, RISK / 4) for order in orders))
    halves = [(side[::2], side[1::2]) for side in (together, without)]
    levels = np.unique(np.concatenate([first for first, _ in halves]))
    events = [(sign, level) for sign in (1, -1) for level in levels[:: max(levels.size // 200, 1)]]
    tried = []
    for order in (halves, halves[::-1]):
        for sign, level in events:
            hits = [int((sign * first >= sign * level).sum()) for first, _ in order]
            tried.append(_refuted(hits, [first.size for first, _ in order], delta))
    best = int(np.argmax(tried))
    order = halves if best < len(events) else halves[::-1]
    sign, level = events[best % len(events)]
    hits = [int((sign * second >= sign * level).sum()) for _, second in order]
    return max(_refuted(hits, [second.size for _, second in order], delta), 0.0)


def _refuted(hits: list[int], sizes: list[int], delta: float, risk: float = RISK) -> float:
    often = stats.beta.ppf(risk / 2, hits[0], sizes[0] - hits[0] + 1) if hits[0] else 0.0
    rest = sizes[1] - hits[1]
    seldom = stats.beta.isf(risk / 2, hits[1] + 1, rest) if rest else 1.0
    return math.log((often - delta) / seldom) if often > delta else -math.inf


class Release(NamedTuple):
    """A value, what is claimed of its noise, and what came out."""

    value: np.ndarray
    shift: float
    scale: float
    noisy: np.ndarray


@contextlib.contextmanager
def less_noise(share: float) -> Iterator[None]:
    """Multiply all noise that the package draws, where it is drawn."""
    constant, chi = _releases.ConstantFactor, _releases.ChiFactor
    images, laplace = _releases.rounded_images, _doubling.standard_laplace
    scale, drawn = _noisy_max._noise_scale, _quantiles._drawn

    def sharper(utilities: Any, lengths: Any, sharpness: float, generator: Any) -> int:
        return drawn(utilities, lengths, sharpness / share, generator)

    def narrower(centre: Any, matrix: Any, spreads: Any, draws: Any, grid: float) -> Any:
        return images(centre, matrix, share * spreads, draws, grid)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_releases, "ConstantFactor", lambda value: constant(share * value))
        patch.setattr(_releases, "ChiFactor", lambda value, *rest: chi(share * value, *rest))
        patch.setattr(_releases, "rounded_images", narrower)
        patch.setattr(_doubling, "standard_laplace", lambda *args: share * laplace(*args))
        patch.setattr(_noisy_max, "_noise_scale", lambda *args: share * scale(*args))
        patch.setattr(_quantiles, "_drawn", sharper)
        yield


@contextlib.contextmanager
def watched_releases() -> Iterator[list[Release]]:
    """Collect all Gaussian and Laplace releases."""
    seen: list[Release] = []
    released = _noise._released

    def watched(value: Any, sensitivity: float, scale: float, *rest: Any) -> Any:
        made = released(value, sensitivity, scale, *rest)
        seen.append(Release(np.ravel(value), sensitivity / scale, scale, np.ravel(made)))
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_noise, "_released", watched)
        yield seen
