"""A claim as the lines that bound which pairs of probabilities it allows."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from skdptune.accounting import PrivacyProfile

FloatArray = NDArray[np.float64]

_N_LINES = 48
# Where no delta is asked for, the curve is read down to here.
_LEAST_DELTA = 1e-9


@dataclass(frozen=True, eq=False)
class ClaimCurve:
    """A claimed profile, as half-planes of the probabilities of an event on two neighbours.

    An event of probability p on one side and q on the other is allowed where
    ``p <= exp(epsilon) * q + delta`` for each of the profile's points.

    Parameters
    ----------
    profile : PrivacyProfile
        What is claimed.
    delta : float
        At which epsilons are compared.

    Attributes
    ----------
    epsilon : float
        Claimed at `delta`.
    epsilons, deltas : ndarray
        Points of the profile, from epsilon 0 to that at `delta`, which is the last.
    """

    profile: PrivacyProfile
    delta: float
    epsilon: float = field(init=False)
    epsilons: FloatArray = field(init=False)
    deltas: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        """Read the points of the profile."""
        epsilon = self.profile.epsilon(self.delta)
        top = epsilon
        if math.isinf(top):
            top = self.profile.epsilon(max(self.delta, _LEAST_DELTA))
        points = np.linspace(0.0, top, _N_LINES) if math.isfinite(top) else np.zeros(1)
        deltas = np.asarray(self.profile.delta(points), dtype=np.float64)
        if math.isfinite(epsilon):
            deltas[-1] = max(deltas[-1], self.delta)
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "epsilons", points)
        object.__setattr__(self, "deltas", deltas)
