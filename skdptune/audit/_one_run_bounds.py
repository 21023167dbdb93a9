"""Lower bounds on epsilon from guesses about which canaries were included in one fit."""

from __future__ import annotations

import functools
import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats
from scipy.integrate import trapezoid

from skdptune._formatting import shown
from skdptune._validation import check_integer
from skdptune.accounting import PrivacyProfile
from skdptune.audit._bounds import bisected, least_distance, normality
from skdptune.audit._result import GaussianBound

_LARGEST_EPSILON = 1e3
_HALVINGS_OF_COUNTS = 60


def chance_of_right_guesses(
    n_right: int, n_guesses: int, n_canaries: int, epsilon: float, delta: float
) -> float:
    """Return a bound on the probability that at least `n_right` guesses are right.

    Parameters
    ----------
    n_right, n_guesses, n_canaries : int
        Numbers v, r and m; r is fixed before anything is observed, and v <= r <= m.
    epsilon, delta : float
        The guarantee for one coin.

    Returns
    -------
    float

    Notes
    -----
    Theorem A4: ``f(v) + m delta / (1 + exp(epsilon)) * peaks(r)``, where f is the upper tail of a
    binomial distribution with r trials and the success probability q of randomised response.
    """
    rate = float(special.expit(epsilon))
    tail = float(stats.binom.sf(n_right - 1, n_guesses, rate))
    if delta > 0.0 and n_guesses > 0:
        tail += n_canaries * delta * (1.0 - rate) * mean_peak(n_guesses, rate)
    return min(tail, 1.0)


@functools.lru_cache(maxsize=256)
def mean_peak(n_guesses: int, rate: float) -> float:
    """Return the mean of the largest probabilities of binomials with 0 to n - 1 trials."""
    trials = np.arange(n_guesses)
    modes = np.floor((trials + 1) * rate)
    return float(stats.binom.pmf(np.minimum(modes, trials), trials, rate).mean())


def counted_epsilon(
    n_right: int, n_guesses: int, n_canaries: int, delta: float, risk: float
) -> float:
    """Return an epsilon that exceeds the true one at `delta` with probability at most `risk`.

    Notes
    -----
    Theorem A4. A guarantee also holds for all larger epsilons. Therefore refuting an epsilon
    refutes all smaller ones, and the bound is an epsilon that is refuted.
    """

    def is_refuted(epsilon: float) -> bool:
        chance = chance_of_right_guesses(n_right, n_guesses, n_canaries, epsilon, delta)
        return chance <= risk

    if not is_refuted(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while is_refuted(high):
        low, high = high, 2.0 * high
        if high > _LARGEST_EPSILON:
            return low
    return bisected(is_refuted, low, high, _HALVINGS_OF_COUNTS)[0]


FloatArray = NDArray[np.float64]

# Rounding errors must not refute; some thousand probabilities are added up.
_SLACK = 1e-9
# Range and number of points of a curve, as normal quantiles, and points of a profile.
_FARTHEST, _N_POINTS, _N_EPSILONS = 7.5, 601, 800
_LEAST_DELTA, _LARGEST_READ = 1e-15, 600.0
# Relative error of an integral over these points.
_COARSENESS = 1e-3


@dataclass(frozen=True)
class LeastError:
    """A convex function: the least probability of an event on a neighbour, given its probability.

    It is the maximum of 0 and some lines.

    Attributes
    ----------
    starts : list of float
        Where each line becomes the largest one; the first is 0.
    slopes, offsets : list of float
        Slopes, in ascending order, and offsets of the lines.
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
        """Return the maximum of some lines and 0."""
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
        Theorem A5: events with probabilities p and q satisfy ``p <= exp(e) q + delta(e)``, and so
        do their complements. Fewer points only make the function smaller.
        """
        # Beyond the largest finite loss, the profile is constant.
        left = float(profile.delta(_LARGEST_READ)) * (1.0 + 1e-6)
        top = min(profile.epsilon(min(max(left, _LEAST_DELTA), 1.0)), _LARGEST_READ)
        epsilons = np.linspace(0.0, top, _N_EPSILONS)
        deltas = np.asarray(profile.delta(epsilons), dtype=np.float64)
        growth = np.exp(epsilons)
        slopes = np.concatenate([1.0 / growth, growth])
        offsets = np.concatenate([-deltas / growth, 1.0 - deltas - growth])
        return cls.of_lines(slopes, offsets)


@dataclass(frozen=True, eq=False)
class ScaledClaim:
    """Curves of a claim's kind, with its noise scaled by a factor.

    At each type I error, the normal quantile of the claim's power is moved away from that of the
    error, or towards it. A claim of Gaussian noise becomes one of more or less Gaussian noise.

    Attributes
    ----------
    quantiles : ndarray
        Normal quantiles of type I errors, ascending.
    shifts : ndarray
        Distance of the claim's power above each of them.
    at_zero : float
        Power at a type I error of 0.
    """

    quantiles: FloatArray
    shifts: FloatArray
    at_zero: float

    @classmethod
    def of(cls, profile: PrivacyProfile) -> ScaledClaim:
        """Create the curves of a claim."""
        reached = np.linspace(-_FARTHEST, _FARTHEST, _N_POINTS)
        least = LeastError.of_profile(profile)
        powers = special.ndtr(reached)
        errors = np.array([least(power) for power in powers.tolist()])
        certain = errors <= 0.0
        quantiles = special.ndtri(errors[~certain])
        reached = reached[~certain]
        # The other half mirrors the half with small errors, whose complements would be rounded.
        half = quantiles + reached <= 0.0
        quantiles = np.concatenate([quantiles[half], -reached[half][::-1]])
        reached = np.concatenate([reached[half], -quantiles[: half.sum()][::-1]])
        return cls(
            quantiles,
            np.clip(reached - quantiles, 0.0, None),
            float(powers[certain].max(initial=0.0)),
        )

    def least_error(self, factor: float) -> LeastError:
        """Return the function of the least concave curve above the powers for a factor.

        Notes
        -----
        Theorem A5. The inverse of a concave, piecewise linear function is convex, and the maximum
        of the lines of its pieces.
        """
        x, y = _concave(*self._dots(factor))
        keep = np.diff(y) > 0.0
        slopes = np.diff(x)[keep] / np.diff(y)[keep]
        return LeastError.of_lines(slopes, x[:-1][keep] - slopes * y[:-1][keep])

    def epsilon(self, factor: float, delta: float) -> float:
        """Return the epsilon of this curve at a delta."""
        x, y = self._dots(factor)
        found = (y > delta) & (y > x)
        if factor == 0.0 or not found.any():
            return 0.0
        with np.errstate(divide="ignore"):
            return max(float(np.log((y[found] - delta) / x[found]).max()), 0.0)

    def mean_shift(self, factor: float) -> float:
        """Return how far a claim lets the mean of a number rise, if the number was normal before.

        The unit is the standard deviation. Numbers are cut off at the farthest quantile.

        Notes
        -----
        Theorem A8.
        """
        rise = special.ndtr(self.quantiles + factor * self.shifts) - special.ndtr(self.quantiles)
        beyond = self.at_zero * max(_FARTHEST + self.quantiles[0], 0.0)
        return float(trapezoid(rise, self.quantiles) + beyond) * (1.0 + _COARSENESS)

    def _dots(self, factor: float) -> tuple[FloatArray, FloatArray]:
        powers = special.ndtr(self.quantiles + factor * self.shifts)
        x = np.concatenate([[0.0], special.ndtr(self.quantiles), [1.0]])
        y = np.concatenate([[self.at_zero if factor > 0.0 else 0.0], powers, [1.0]])
        return x, np.maximum.accumulate(y)


def _concave(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the points of the least concave function above given points."""
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
    """Return whether at least this many right guesses may have the given probability.

    Parameters
    ----------
    least_error : LeastError
        Lower bound on probabilities required by the claim.
    n_right, n_guesses : int
        Numbers over all canaries and both kinds of guesses; fixed before anything is observed.
    n_slots : float
        Number of canaries, or half of it if all guesses are of one kind.
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


def largest_refuted_factor(refutes: Callable[[float], bool], largest: float) -> float:
    """Return the largest noise factor of a claim that is refuted, or 0.

    Parameters
    ----------
    refutes : callable
        Function from a factor to whether it is refuted; if so, all smaller ones are.
    largest : float
    """
    return largest if refutes(largest) else bisected(refutes, 0.0, largest, 24)[0]


# Shares of the canaries that are guessed, half of them "in" and half "out". With Gaussian noise, a
# few sure guesses are more informative than all. Without it all are sure, and more of them show
# more. Every further share leaves less risk for each. Fewer guesses than the minimum show almost
# nothing.
_SHARES = (0.5, 0.25)
_FEWEST = 12


class Guesses(NamedTuple):
    """The numbers of guesses of each kind, and the number of right ones.

    Attributes
    ----------
    n_in, n_out : int
        Number of canaries guessed to be in the data, and not to be in them.
    n_right : int
    """

    n_in: int
    n_out: int
    n_right: int

    @property
    def n_guesses(self) -> int:
        """Number of guesses of both kinds."""
        return self.n_in + self.n_out

    @property
    def share_of_slots(self) -> float:
        """Share of the possible pairs of a canary and a kind of guess: half for one kind."""
        return 1.0 if self.n_in and self.n_out else 0.5


def numbers_of_guesses(n_canaries: int, given: Any = None) -> list[tuple[int, int]]:
    """Return numbers of canaries guessed to be in and out: several pairs to try.

    Parameters
    ----------
    n_canaries : int
    given : None, int, or pair of int
        A total number of guesses, or a number for each kind. None for several numbers, which
        depend only on the number of canaries.

    Notes
    -----
    Theorem A6.
    """
    if given is None:
        sizes = [int(n_canaries * share / 2) for share in _SHARES]
        kept = [size for size in sizes if 2 * size >= _FEWEST]
        return [(size, size) for size in kept] or [(n_canaries // 2, n_canaries // 2)]
    if isinstance(given, tuple):
        if len(given) != 2:
            raise ValueError(f"n_guesses must be a number or a pair of them; got {shown(given)}.")
        pair = tuple(check_integer(one, name="each of n_guesses", lower=0) for one in given)
    else:
        total = check_integer(given, name="n_guesses", lower=1)
        pair = (total - total // 2, total // 2)
    if not 1 <= sum(pair) <= n_canaries:
        raise ValueError(
            f"n_guesses must be between 1 and the number of canaries, {n_canaries}; got "
            f"{shown(given)}."
        )
    return [(pair[0], pair[1])]


def guessed(
    scores: FloatArray, is_in: NDArray[np.bool_], sizes: Sequence[tuple[int, int]]
) -> list[Guesses]:
    """Return how many guesses are right: highest scores are guessed "in", lowest "out".

    Parameters
    ----------
    scores : ndarray of shape (n_canaries,)
        Ties are broken by the order of the canaries, which does not depend on coins.
    is_in : ndarray of bool
        Mask of the canaries that were included.
    sizes : sequence of (n_in, n_out)
    """
    order = np.argsort(-np.nan_to_num(scores), kind="stable")
    found = is_in[order]
    size = found.size
    return [
        Guesses(high, low, int(found[:high].sum() + low - found[size - low :].sum()))
        for high, low in sizes
    ]


# Noise that is too small by this factor is as good as none.
_LARGEST_FACTOR = 16.0
_N_HALVINGS = 30


def epsilon_verdict(
    found: list[Guesses], n_canaries: int, profile: PrivacyProfile, delta: float, risk: float
) -> tuple[float, float, Guesses]:
    """Return a bound on epsilon at a delta, the probability under the claim, and the best guesses.

    Parameters
    ----------
    found : list of Guesses
        Each is tested with the same risk.
    n_canaries : int
    profile : PrivacyProfile
        The claimed profile.
    delta, risk : float

    Notes
    -----
    Theorem A4, Theorem A6.
    """
    bounds = [counted_epsilon(g.n_right, g.n_guesses, n_canaries, delta, risk) for g in found]
    claimed = profile.epsilon(delta)
    chances = [
        chance_of_right_guesses(g.n_right, g.n_guesses, n_canaries, claimed, delta) for g in found
    ]
    p_value = min(min(chances) * len(found), 1.0)
    return max(bounds), p_value, found[int(np.argmax(bounds))]


def profile_verdict(
    found: list[Guesses], n_canaries: int, profile: PrivacyProfile, delta: float, risk: float
) -> tuple[float, float, Guesses]:
    """Return the same for a whole profile, with the bound for curves of its kind.

    Parameters
    ----------
    found : list of Guesses
        Each is tested with the same risk.
    n_canaries : int
    profile : PrivacyProfile
        The claimed profile.
    delta, risk : float

    Notes
    -----
    Theorem A5, Theorem A6.
    """
    least = LeastError.of_profile(profile)
    cases = [(g.n_right, g.n_guesses, g.share_of_slots * n_canaries) for g in found]
    chances = [_largest_chance(least, case) for case in cases]
    p_value = min(min(chances) * len(found), 1.0)
    claim = ScaledClaim.of(profile)

    def refutes(case: tuple[int, int, float], factor: float) -> bool:
        return not is_possible(claim.least_error(factor), *case, risk)

    factors = [
        largest_refuted_factor(functools.partial(refutes, case), _LARGEST_FACTOR) for case in cases
    ]
    bound, claimed = claim.epsilon(max(factors), delta), profile.epsilon(delta)
    if p_value > risk * len(found):
        # Curves are interpolated between points, and the claim itself is evaluated at others.
        bound = min(bound, claimed)
    return bound, p_value, found[int(np.argmax(factors))]


def _largest_chance(least: LeastError, case: tuple[int, int, float]) -> float:
    """Return the largest probability that a claim allows for such guesses."""
    if is_possible(least, *case, 1.0):
        return 1.0
    # In logarithms, since probabilities differ by orders of magnitude.
    allows = functools.partial(is_possible, least, *case)
    return math.exp(bisected(lambda log: allows(math.exp(log)), -50.0, 0.0, _N_HALVINGS)[1])


# Fewer scores of either kind do not show whether their means are nearly normal.
_FEWEST_SCORES = 20


def score_shift(included: FloatArray, excluded: FloatArray, risk: float) -> float:
    """Return a lower bound on the rise of the mean of scores, in deviations of excluded ones.

    Notes
    -----
    Theorem A8.
    """
    centre, deviation = excluded.mean(), excluded.std(ddof=1)
    if deviation == 0.0:
        return 0.0
    raised = np.minimum((included - centre) / deviation, _FARTHEST)
    return least_distance(
        max(float(raised.mean()), 0.0),
        excluded.size - 1,
        1.0 / excluded.size,
        risk,
        more_variance=float(raised.var(ddof=1)) / included.size,
    )


def mean_verdict(
    included: FloatArray,
    excluded: FloatArray,
    profile: PrivacyProfile,
    delta: float,
    risk: float,
) -> GaussianBound | None:
    """Return the findings if scores of excluded canaries are normal, or None without a bound.

    Parameters
    ----------
    included, excluded : ndarray
        Scores of canaries that were in the data, and of those that were not.
    profile : PrivacyProfile
        The claimed profile.
    delta, risk : float

    Notes
    -----
    Theorem A8.
    """
    if min(included.size, excluded.size) < _FEWEST_SCORES:
        return None
    if not np.isfinite([*included, *excluded]).all():
        return None
    shift = score_shift(included, excluded, risk)
    claim = ScaledClaim.of(profile)
    factor = largest_refuted_factor(lambda f: claim.mean_shift(f) < shift, _LARGEST_FACTOR)
    looks = normality(excluded)
    return GaussianBound(claim.epsilon(factor, delta), shift, looks, factor >= 1.0)
