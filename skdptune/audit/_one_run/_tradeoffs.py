"""How many of so many guesses can be right under a whole privacy profile.

**Guarantee** (Theorem A5). Where the events of neighbours lie below a power curve, a guesser's
chance of v right guesses or more out of r is below a risk that `is_possible` refuses.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from skdptune.accounting import PrivacyProfile

FloatArray = NDArray[np.float64]

# Rounding may not refute; probabilities are added up some thousand times.
_SLACK = 1e-9
# Powers at which a curve is read, as normal quantiles, and points of a profile.
_FARTHEST, _N_POINTS, _N_EPSILONS = 7.5, 601, 800
_LEAST_DELTA, _LARGEST_EPSILON = 1e-15, 600.0


@dataclass(frozen=True)
class LeastError:
    """A convex function: how likely an event must be on a neighbour, by its probability on one.

    It is the largest of 0 and some lines.

    Attributes
    ----------
    starts : list of float
        Where each line begins to be the largest; the first is 0.
    slopes, offsets : list of float
        Of the lines, with slopes in ascending order.
    """

    starts: list[float]
    slopes: list[float]
    offsets: list[float]

    def __call__(self, probability: float) -> float:
        """Return the least probability of the event on the neighbour."""
        place = bisect_right(self.starts, probability) - 1
        return max(self.offsets[place] + self.slopes[place] * probability, 0.0)

    @classmethod
    def of_lines(cls, slopes: FloatArray, offsets: FloatArray) -> LeastError:
        """Return the largest of some lines and 0."""
        slopes = np.append(slopes, 0.0)
        offsets = np.append(offsets, 0.0)
        starts: list[float] = []
        kept: list[int] = []
        for place in np.lexsort((offsets, slopes)).tolist():
            start = 0.0
            while kept:
                rise = slopes[place] - slopes[kept[-1]]
                drop = offsets[kept[-1]] - offsets[place]
                start = 0.0 if drop <= 0.0 else (drop / rise if rise > 0.0 else np.inf)
                if start > starts[-1]:
                    break
                starts.pop()
                kept.pop()
                start = 0.0
            if start < 1.0:
                starts.append(float(start))
                kept.append(place)
        return cls(starts, slopes[kept].tolist(), offsets[kept].tolist())

    @classmethod
    def of_profile(cls, profile: PrivacyProfile) -> LeastError:
        """Return the function of a claim, from points of its profile.

        Notes
        -----
        Theorem A5: events of probability p and q obey ``p <= exp(e) q + delta(e)``, and so do
        their complements. Fewer points only make the function smaller.
        """
        # Beyond the largest finite loss nothing but its delta is left.
        left = float(profile.delta(_LARGEST_EPSILON)) * (1.0 + 1e-6)
        top = min(profile.epsilon(min(max(left, _LEAST_DELTA), 1.0)), _LARGEST_EPSILON)
        epsilons = np.linspace(0.0, top, _N_EPSILONS)
        deltas = np.asarray(profile.delta(epsilons), dtype=np.float64)
        growth = np.exp(epsilons)
        slopes = np.concatenate([1.0 / growth, growth])
        offsets = np.concatenate([-deltas / growth, 1.0 - deltas - growth])
        return cls.of_lines(slopes, offsets)


@dataclass(frozen=True, eq=False)
class ScaledClaim:
    """Curves of a claim's kind, with its noise by a factor.

    At each type I error the normal quantile of the claim's power is moved away from that of the
    error, or towards it. A claim of Gaussian noise becomes one of more or less Gaussian noise.

    Attributes
    ----------
    quantiles : ndarray
        Normal quantiles of type I errors, ascending.
    shifts : ndarray
        By how much the claim's power lies above each.
    at_zero : float
        Power without any type I error.
    """

    quantiles: FloatArray
    shifts: FloatArray
    at_zero: float

    @classmethod
    def of(cls, profile: PrivacyProfile) -> ScaledClaim:
        """Return the curves of a claim."""
        reached = np.linspace(-_FARTHEST, _FARTHEST, _N_POINTS)
        least = LeastError.of_profile(profile)
        powers = special.ndtr(reached)
        errors = np.array([least(power) for power in powers.tolist()])
        certain = errors <= 0.0
        quantiles = special.ndtri(errors[~certain])
        reached = reached[~certain]
        # The other half mirrors the one with small errors, whose complements would be rounded.
        half = quantiles + reached <= 0.0
        quantiles = np.concatenate([quantiles[half], -reached[half][::-1]])
        reached = np.concatenate([reached[half], -quantiles[: half.sum()][::-1]])
        return cls(
            quantiles,
            np.clip(reached - quantiles, 0.0, None),
            float(powers[certain].max(initial=0.0)),
        )

    def least_error(self, factor: float) -> LeastError:
        """Return the function of the least concave curve above the powers of a factor.

        Notes
        -----
        Theorem A5. The inverse of a concave function of straight pieces is convex, and the largest
        of its pieces' lines.
        """
        x, y = _concave(*self._dots(factor))
        keep = np.diff(y) > 0.0
        slopes = np.diff(x)[keep] / np.diff(y)[keep]
        return LeastError.of_lines(slopes, x[:-1][keep] - slopes * y[:-1][keep])

    def epsilon(self, factor: float, delta: float) -> float:
        """Return the epsilon of that curve at a delta."""
        x, y = self._dots(factor)
        found = (y > delta) & (y > x)
        if factor == 0.0 or not found.any():
            return 0.0
        with np.errstate(divide="ignore"):
            return max(float(np.log((y[found] - delta) / x[found]).max()), 0.0)

    def _dots(self, factor: float) -> tuple[FloatArray, FloatArray]:
        powers = special.ndtr(self.quantiles + factor * self.shifts)
        x = np.concatenate([[0.0], special.ndtr(self.quantiles), [1.0]])
        y = np.concatenate([[self.at_zero if factor > 0.0 else 0.0], powers, [1.0]])
        return x, np.maximum.accumulate(y)


def _concave(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the dots of the least concave function above some dots."""
    kept: list[int] = []
    for place in range(x.size):
        while len(kept) > 1:
            first, last = kept[-2], kept[-1]
            turn = (x[last] - x[first]) * (y[place] - y[first]) - (y[last] - y[first]) * (
                x[place] - x[first]
            )
            if turn < 0.0:
                break
            kept.pop()
        kept.append(place)
    return x[kept], y[kept]


def is_possible(
    least_error: LeastError, n_right: int, n_guesses: int, n_slots: float, chance: float
) -> bool:
    """Return whether so many right guesses, or more, may have the given chance.

    Parameters
    ----------
    least_error : LeastError
        What the claim demands.
    n_right, n_guesses : int
        Of canaries and of both kinds of guesses; fixed before anything is seen.
    n_slots : float
        Canaries, or half of them where all guesses are of one kind.
    chance : float

    Notes
    -----
    Theorem A5: the least probability of all outcomes together, given this one's, is at most 1.
    """
    total = chance
    right = n_right * chance / n_slots
    wrong = (n_guesses - n_right) * chance / n_slots
    for number in range(n_right - 1, -1, -1):
        more = least_error(right) - wrong
        if more > 0.0:
            wrong += more
            right += number / (n_guesses - number) * more
            total += n_slots / (n_guesses - number) * more
            if total > 1.0 + _SLACK:
                return False
    return True


def largest_refuted_factor(
    claim: ScaledClaim, guesses: Sequence[tuple[int, int, float]], risk: float, largest: float
) -> float:
    """Return the largest factor of a claim's noise that some guesses refute, 0 if none does.

    Parameters
    ----------
    claim : ScaledClaim
    guesses : sequence of (n_right, n_guesses, n_slots)
        Each is tested at the whole of `risk`.
    risk, largest : float
    """

    def refutes(factor: float) -> bool:
        least = claim.least_error(factor)
        return not all(is_possible(least, *each, risk) for each in guesses)

    low, high = 0.0, largest
    if refutes(high):
        return high
    for _ in range(24):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if refutes(middle) else (low, middle)
    return low
