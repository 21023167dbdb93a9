"""What is claimed: as given or stated, and as lines that bound probabilities of events."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdptune._validation import check_real
from skdptune.accounting import PrivacyProfile
from skdptune.base import DEFAULT_DELTA, privacy_of

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


def read_claim(
    fitted: Sequence[Any], n_samples: int, claim: Any, delta: Any, *, can_be_zero: bool = True
) -> tuple[PrivacyProfile, float]:
    """Return what is claimed, and the delta at which epsilons are compared.

    Parameters
    ----------
    fitted : sequence of estimators
        Fits to both of two neighbouring data sets, or one fit.
    n_samples : int
        Records that they saw, where their statements depend on it.
    claim : PrivacyProfile, float or None
        As given to an audit; None for what the fits state, the larger of the two.
    delta : float or None
        As given to an audit.
    can_be_zero : bool, default=True
        Whether a number may be 0.
    """
    if delta is not None:
        delta = check_real(delta, name="delta", lower=0.0, upper=1.0, upper_open=True)
    if claim is None:
        reports = [privacy_of(one, n_samples=n_samples) for one in fitted]
        profile, stated = reports[0].profile, float(reports[0].delta)
        if reports[-1].profile != profile:
            profile = profile | reports[-1].profile
    elif isinstance(claim, PrivacyProfile):
        profile, stated = claim, 0.0 if math.isfinite(claim.epsilon(0.0)) else DEFAULT_DELTA
    else:
        hint = "A PrivacyProfile is taken as well."
        epsilon = check_real(
            claim, name="claim", lower=0.0, lower_open=not can_be_zero, upper_open=True, hint=hint
        )
        stated = float(getattr(getattr(fitted[0], "privacy_", None), "delta", 0.0))
        profile = PrivacyProfile.approximate(epsilon, stated if delta is None else delta)
    where = stated if delta is None else delta
    if math.isinf(profile.epsilon(where)):
        raise ValueError(
            f"claim must be finite at delta={where:g}; got one that allows everything there."
        )
    return profile, where
