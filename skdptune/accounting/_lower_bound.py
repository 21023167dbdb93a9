"""A lower bound on private selection, from scores that an adversary could choose.

**Guarantee.** For a run whose output distributions are exactly the discretised pair of a profile,
there is a score, a function of the run's output, for which the search has at least the returned
epsilon. Any valid upper bound that is computed from the same pair is at least as large.

Let a score sort the outcomes, and let ``A``, ``B`` be the cumulated masses of lower scores under
the two distributions. Then an outcome with masses ``(p, q)`` is returned with probability ``phi(A
+ p) - phi(A)``, or ``phi(B + q) - phi(B)`` (ties are broken by a uniform mark). This is exact. In
the orders that are tried, the mass of large, but not the largest, losses is lowest, which makes
``B`` small compared to ``A``. Then come the largest losses, which the test uses, and then the
rest.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import numpy.typing as npt

from skdptune._validation import FloatArray, check_kind, check_real
from skdptune.accounting._curves import pair_masses
from skdptune.accounting._loss_distribution import LARGEST_LOSS, LossDistribution
from skdptune.accounting._profile import PrivacyProfile, sides_of
from skdptune.accounting._run_counts import RunCountDistribution, check_distribution

_ATOMS = 2500
_TINY_MASS = 1e-7
# At first, only every eighth end of the largest losses is tried.
_STRIDE = 8
# Relative to the other direction's best epsilon.
_NEARLY = 0.97


def selection_lower_bound(
    profile: PrivacyProfile, distribution: RunCountDistribution, delta: float
) -> float:
    """Return an epsilon below which no bound on the selection can be true.

    Parameters
    ----------
    profile : PrivacyProfile
        Profile of one run.
    distribution : RunCountDistribution
        Distribution of the number of runs.
    delta : float
        The delta at which epsilon is stated, in (0, 1).

    Returns
    -------
    float
        The largest epsilon that was found for an actual selection from the profile's discretised
        pair.

    Notes
    -----
    Theorem S4.

    Examples
    --------
    >>> from skdptune.accounting import Geometric
    >>> run = PrivacyProfile.gaussian(0.5)
    >>> round(selection_lower_bound(run, Geometric(0.1), 1e-6), 2)
    3.25
    """
    check_kind(profile, name="profile", kind=PrivacyProfile, domain="a PrivacyProfile")
    check_distribution(distribution)
    delta = check_real(delta, name="delta", lower=0.0, upper=1.0, lower_open=True, upper_open=True)
    remove, add = sides_of(profile)
    best = 0.0
    for own, other in ((remove, add), (add, remove)):
        best = _worst_order(*_atoms(own, other), distribution, delta, best)
    return best


def _atoms(own: LossDistribution, other: LossDistribution) -> tuple[FloatArray, FloatArray]:
    """Return masses of both distributions, largest loss first, merged to a few thousand."""
    _, p, q = pair_masses(own, other)
    starts = np.arange(0, p.size, math.ceil(p.size / _ATOMS))
    merged = [np.add.reduceat(masses, starts) for masses in (p, q)]
    p = np.concatenate([[own.infinity], merged[0], [0.0]])
    q = np.concatenate([[0.0], merged[1], [other.infinity]])
    used = (p > 0.0) | (q > 0.0)
    return p[used] / p.sum(), q[used] / q.sum()


def _worst_order(
    p: FloatArray, q: FloatArray, distribution: RunCountDistribution, delta: float, best: float
) -> float:
    """Return the largest epsilon over the family of orders, or ``best`` if that is larger.

    How much mass should be lowest depends strongly on where the largest losses end. So all masses
    are tried with every eighth end, and then all values of either parameter with the best of the
    other.
    """
    cumulated = np.cumsum(p)
    tails, lows = _parameters(cumulated, distribution, delta)
    # In the second direction, the best order may be found from one that is slightly worse.
    found, place = _NEARLY * best, None
    tried = list(itertools.product(range(0, tails.size, _STRIDE), range(lows.size)))
    while tried:
        previous = place
        for row, column in tried:
            for order in _orders(cumulated, int(tails[row]), float(lows[column])):
                epsilon = _epsilon_of_order(p[order], q[order], distribution, delta, found)
                if epsilon > found:
                    found, place = epsilon, (row, column)
        tried = [] if place is None or place == previous else _lines(place, tails.size, lows.size)
    return max(found, best)


def _parameters(
    cumulated: FloatArray, distribution: RunCountDistribution, delta: float
) -> tuple[npt.NDArray[np.int64], FloatArray]:
    """Return the places where the largest losses may end, and the masses below them."""
    tails = np.searchsorted(cumulated, np.geomspace(delta / distribution.mean / 10.0, 0.9, 40))
    remaining = np.geomspace(1e-4 / distribution.mean, 1.0, 40)
    return np.unique(tails), np.unique(np.append(1.0 - remaining, np.linspace(0.0, 1.0, 20)))


def _orders(cumulated: FloatArray, tail: int, low: float) -> list[npt.NDArray[np.int64]]:
    """Return outcomes by increasing score: large losses, the largest ones, the rest."""
    index = np.arange(cumulated.size)
    stop = int(np.searchsorted(cumulated, low + cumulated[tail], side="right"))
    middle, top, rest = index[tail + 1 : stop], index[: tail + 1], index[stop:]
    return [
        np.concatenate([middle, top, rest]),
        np.concatenate([middle[::-1], top[::-1], rest]),
    ]


def _lines(place: tuple[int, int], rows: int, columns: int) -> list[tuple[int, int]]:
    """Return all places in the same row or column as one place."""
    row, column = place
    return [(row, each) for each in range(columns)] + [(each, column) for each in range(rows)]


def _epsilon_of_order(
    p: FloatArray, q: FloatArray, distribution: RunCountDistribution, delta: float, best: float
) -> float:
    """Return the epsilon of a selection with scores in this order, if it exceeds ``best``."""
    if math.isinf(best):
        return best
    chosen_p = np.diff(distribution.pgf(_lower_mass(p)))
    passed = _lower_mass(q)
    # A difference of two numbers of order 1 cannot resolve a tiny mass. For such masses, the
    # largest slope of the convex function gives an upper bound.
    chosen_q = np.where(
        q < _TINY_MASS,
        q * distribution.pgf_derivative(passed[1:]),
        np.diff(distribution.pgf(passed)),
    )

    # A mass that underflowed is small, not zero: it must not look like an infinite loss.
    chosen_p = np.where((chosen_q == 0.0) & (q > 0.0), 0.0, chosen_p)
    # Effect that rounding of the ranks may have on the selected masses.
    rounding = 64.0 * float(np.finfo(np.float64).eps) * distribution.mean

    def excess(epsilon: float) -> float:
        gained = float(np.maximum(chosen_p - math.exp(epsilon) * chosen_q, 0.0).sum())
        return gained - rounding - delta

    if excess(best) <= 0.0:
        return best
    low, high = best, best + 1e-3
    while excess(high) > 0.0:
        if high >= LARGEST_LOSS:
            return math.inf
        low, high = high, min(2.0 * high, LARGEST_LOSS)
    while high - low > 1e-7 * high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if excess(middle) > 0.0 else (low, middle)
    return low


def _lower_mass(masses: FloatArray) -> FloatArray:
    return np.minimum(np.concatenate([[0.0], np.cumsum(masses)]), 1.0)
