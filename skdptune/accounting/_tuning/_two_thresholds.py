"""Selection among candidates of which no more is known than two points (epsilon, delta)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from skdptune._validation import FloatArray
from skdptune.accounting._losses import largest_loss
from skdptune.accounting._profile import PrivacyProfile, sides_of
from skdptune.accounting._run_counts import RunCountDistribution, TruncatedNegativeBinomial
from skdptune.accounting._selection import BoundNotApplicableError

_POINTS = 1000
# How often the range of the helper's epsilon is narrowed to the neighbours of the best point.
_ROUNDS = 3


@dataclass(frozen=True)
class TwoThresholds:
    """Two guarantees that every candidate meets, whatever else its curve does.

    Attributes
    ----------
    epsilon, delta : float
        The first one, from which the selection's own is made.
    helper_epsilon, helper_delta : float
        The second one, which says by how much the selection's epsilon is larger.
    """

    epsilon: float
    delta: float
    helper_epsilon: float
    helper_delta: float

    def are_met_by(self, profile: PrivacyProfile) -> bool:
        """Return whether a candidate keeps within both."""
        points = profile.delta([self.epsilon, self.helper_epsilon])
        return bool(np.all(points <= [self.delta, self.helper_delta]))

    def selected(self, distribution: RunCountDistribution) -> tuple[float, float]:
        """Return the (epsilon, delta) that a selection among such candidates has.

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
    """Return the two points of a profile that make a selection at ``delta`` cost least.

    Parameters
    ----------
    profile : PrivacyProfile
        Of a release with which all candidates are to compare; usually a Gaussian one.
    distribution : RunCountDistribution
        Distribution of the number of runs; truncated negative binomial.
    delta : float
        Of the selection.

    Raises
    ------
    BoundNotApplicableError
        For any other distribution.

    Notes
    -----
    Theorem T7.
    """
    _, odds = _shape_and_odds(distribution)
    share = delta / distribution.mean
    # The sum that the helper's point enters is convex in exp(epsilon): it has one minimum.
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
    """Return ``log(exp(epsilon) + odds * delta)``, where that may be larger than any float."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.logaddexp(epsilons, math.log(odds) + np.log(deltas)))
