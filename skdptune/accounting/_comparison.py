"""Comparison of the privacy cost of a private selection under each bound, from below as well."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from skdptune._validation import FloatArray, check_kind, check_real, installed
from skdptune.accounting._curves import largest_loss
from skdptune.accounting._distributions import TruncatedNegativeBinomial
from skdptune.accounting._profile import PrivacyProfile
from skdptune.accounting._run_counts import RunCountDistribution, check_distribution
from skdptune.accounting._selection_bounds import BoundNotApplicableError

if TYPE_CHECKING:
    import pandas as pd


import itertools

import numpy.typing as npt

from skdptune.accounting._curves import pair_masses
from skdptune.accounting._loss_distribution import LARGEST_LOSS, LossDistribution

_NOTES = {
    "one run": "a single run, without a search",
    "composition": "all runs published (the mean number, rounded up)",
    "rdp": "Papernot and Steinke 2022",
    "profile": "Koskela, Redberg and Wang 2024",
    "two thresholds": "the same, from only two points (ε, δ) of the run",
    "envelope": "the default",
    "lower bound": "no valid bound is smaller",
}


@dataclass(frozen=True)
class BoundRow:
    """The result of one bound.

    Attributes
    ----------
    name : str
        Name of the bound.
    epsilon : float
        Its epsilon; infinity if the bound does not apply, never NaN.
    seconds : float
        Computation time.
    note : str
        Source of the bound.
    """

    name: str
    epsilon: float
    seconds: float
    note: str


@dataclass(frozen=True)
class BoundComparison:
    """The table returned by `compare_bounds`: print it, or use ``rows`` or `to_pandas`.

    Attributes
    ----------
    rows : tuple of BoundRow
    distribution : RunCountDistribution
    delta : float

    Examples
    --------
    >>> from skdptune.accounting import Geometric, PrivacyProfile, compare_bounds
    >>> table = compare_bounds(PrivacyProfile.pure(0.1), Geometric(0.1), delta=1e-6)
    >>> print(str(table).splitlines()[0])
    Best of K runs, K ~ Geometric(gamma=0.1) (mean 10), at δ = 1e-06
    """

    rows: tuple[BoundRow, ...]
    distribution: RunCountDistribution
    delta: float

    def __str__(self) -> str:
        """Return the table as plain text."""
        counts = f"{self.distribution} (mean {self.distribution.mean:.4g})"
        head = f"Best of K runs, K ~ {counts}, at δ = {self.delta:g}"
        lines = [head, f"{'bound':<14} {'ε':>9} {'seconds':>9}"]
        for row in self.rows:
            lines.append(f"{row.name:<14} {row.epsilon:>9.4f} {row.seconds:>9.3f}  {row.note}")
        return "\n".join(lines)

    def to_pandas(self) -> pd.DataFrame:
        """Return the table as a DataFrame indexed by the bound's name."""
        # pandas is optional, so it is imported only here.
        with installed("to_pandas needs"):
            import pandas as pd
        columns = ("name", "epsilon", "seconds", "note")
        table = [{column: getattr(row, column) for column in columns} for row in self.rows]
        return pd.DataFrame(table, columns=list(columns)).set_index("name")


def compare_bounds(
    profile: PrivacyProfile, distribution: RunCountDistribution, delta: float
) -> BoundComparison:
    """Return the cost of the best of a random number of runs, by each bound.

    Parameters
    ----------
    profile : PrivacyProfile
        Profile of one run.
    distribution : RunCountDistribution
        Distribution of the number of runs.
    delta : float
        The delta at which costs are stated, in (0, 1).

    Returns
    -------
    BoundComparison
        It prints as a table; ``rows`` and ``to_pandas()`` return the numbers.

    Notes
    -----
    Theorem T7. "two thresholds" is for candidates that differ, and for which only two guarantees
    (epsilon, delta) are known. It is the cost of candidates that meet the two points of
    ``profile`` that it uses. If whole curves are known, as for all estimators of this package,
    calibrate the candidates to a `SharedCurve` and use the envelope, which is smaller.

    Examples
    --------
    >>> from skdptune.accounting import Geometric, PrivacyProfile, compare_bounds
    >>> table = compare_bounds(PrivacyProfile.gaussian(0.25), Geometric(0.01), delta=1e-6)
    >>> {row.name: round(row.epsilon, 2) for row in table.rows[1:6]}
    {'composition': 14.45, 'rdp': 2.82, 'profile': 2.57, 'two thresholds': 2.57, 'envelope': 2.03}
    """
    check_kind(profile, name="profile", kind=PrivacyProfile, domain="a PrivacyProfile")
    check_distribution(distribution)
    delta = check_real(delta, name="delta", lower=0.0, upper=1.0, lower_open=True, upper_open=True)
    given = profile, distribution, delta
    figures: dict[str, Callable[[], float]] = {
        "one run": lambda: profile.epsilon(delta),
        "composition": lambda: (math.ceil(distribution.mean) * profile).epsilon(delta),
        "rdp": lambda: profile.selected(distribution, "rdp").epsilon(delta),
        "profile": lambda: profile.selected(distribution, "profile").epsilon(delta),
        "two thresholds": lambda: two_thresholds(*given).selected(distribution)[0],
        "envelope": lambda: profile.selected(distribution, "envelope").epsilon(delta),
        "lower bound": lambda: selection_lower_bound(profile, distribution, delta),
    }
    rows = []
    for name, figure in figures.items():
        start = time.perf_counter()
        try:
            epsilon, note = figure(), _NOTES[name]
        except BoundNotApplicableError:
            epsilon, note = math.inf, "does not apply"
        rows.append(BoundRow(name, epsilon, time.perf_counter() - start, note))
    return BoundComparison(tuple(rows), distribution, delta)


# Selection among candidates of which only two points are known ---------------------------

_POINTS = 1000
# Number of times that the range of the helper's epsilon is narrowed around the best point.
_ROUNDS = 3


@dataclass(frozen=True)
class TwoThresholds:
    """Two guarantees that every candidate meets, whatever the rest of its curve is.

    Attributes
    ----------
    epsilon, delta : float
        The first guarantee, from which that of the selection is derived.
    helper_epsilon, helper_delta : float
        The second guarantee, which determines how much larger the selection's epsilon is.
    """

    epsilon: float
    delta: float
    helper_epsilon: float
    helper_delta: float

    def selected(self, distribution: RunCountDistribution) -> tuple[float, float]:
        """Return the (epsilon, delta) of a selection among such candidates.

        Notes
        -----
        Theorem T7.
        """
        eta, odds = _shape_and_odds(distribution)
        helper = np.array([self.helper_epsilon]), odds, np.array([self.helper_delta])
        shift = (eta + 1.0) * float(_log_sum(*helper)[0])
        return self.epsilon + shift, distribution.mean * self.delta


def two_thresholds(
    profile: PrivacyProfile, distribution: RunCountDistribution, delta: float
) -> TwoThresholds:
    """Return the two points of a profile that minimise the cost of a selection at ``delta``.

    Parameters
    ----------
    profile : PrivacyProfile
        Profile of a release with which all candidates compare; usually Gaussian.
    distribution : RunCountDistribution
        Distribution of the number of runs; truncated negative binomial.
    delta : float
        The delta of the selection.

    Raises
    ------
    BoundNotApplicableError
        If the distribution is another one.

    Notes
    -----
    Theorem T7.
    """
    _, odds = _shape_and_odds(distribution)
    share = delta / distribution.mean
    # The sum that contains the helper's point is convex in exp(epsilon): it has one minimum.
    low, high = 0.0, largest_loss(profile._finite_sides)
    for _ in range(_ROUNDS):
        points = np.linspace(low, high, _POINTS)
        best = int(np.argmin(_log_sum(points, odds, profile.delta(points))))
        low, high = points[max(best - 1, 0)], points[min(best + 1, _POINTS - 1)]
    helper = float(points[best])
    return TwoThresholds(profile.epsilon(share), share, helper, profile.delta(helper))


def _shape_and_odds(distribution: RunCountDistribution) -> tuple[float, float]:
    if not isinstance(distribution, TruncatedNegativeBinomial):
        raise BoundNotApplicableError(
            "distribution must be truncated negative binomial for two thresholds; got "
            f"{distribution}. The envelope covers all."
        )
    return distribution.eta, (1.0 - distribution.gamma) / distribution.gamma


def _log_sum(epsilons: FloatArray, odds: float, deltas: FloatArray) -> FloatArray:
    """Return ``log(exp(epsilon) + odds * delta)``, even if the argument exceeds all floats."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.logaddexp(epsilons, math.log(odds) + np.log(deltas)))


# A lower bound, from scores that an adversary could choose -----------------------------------

# **Guarantee.** For a run whose output distributions are exactly the discretised pair of a
# profile, there is a score, a function of the run's output, for which the search has at least the
# returned epsilon. Any valid upper bound that is computed from the same pair is at least as large.
#
# Let a score sort the outcomes, and let ``A``, ``B`` be the cumulated masses of lower scores under
# the two distributions. Then an outcome with masses ``(p, q)`` is returned with probability
# ``phi(A + p) - phi(A)``, or ``phi(B + q) - phi(B)`` (ties are broken by a uniform mark). This is
# exact. In the orders that are tried, the mass of large, but not the largest, losses is lowest,
# which makes ``B`` small compared to ``A``. Then come the largest losses, which the test uses, and
# then the rest.

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
    remove, add = profile._finite_sides
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
