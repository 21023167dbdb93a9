"""Comparison of the privacy cost of a private selection under each bound."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from skdptune._validation import FloatArray, check_kind, check_real
from skdptune.accounting._curves import largest_loss
from skdptune.accounting._distributions import TruncatedNegativeBinomial
from skdptune.accounting._lower_bound import selection_lower_bound
from skdptune.accounting._profile import PrivacyProfile, sides_of
from skdptune.accounting._run_counts import RunCountDistribution, check_distribution
from skdptune.accounting._selection_bounds import BoundNotApplicableError

if TYPE_CHECKING:
    import pandas as pd

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
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("to_pandas needs pandas; install it with pip.") from error
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
    return BoundComparison(tuple(_timed(*item) for item in figures.items()), distribution, delta)


def _timed(name: str, figure: Callable[[], float]) -> BoundRow:
    start = time.perf_counter()
    try:
        epsilon, note = figure(), _NOTES[name]
    except BoundNotApplicableError:
        epsilon, note = math.inf, "does not apply"
    return BoundRow(name, epsilon, time.perf_counter() - start, note)


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
    low, high = 0.0, largest_loss(sides_of(profile))
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
