"""Guarantees that rest on a premise which holds with high probability."""

from __future__ import annotations

import numpy as np

from skdptune._validation import check_kind, check_real
from skdptune.accounting._losses import Halves, upper_half
from skdptune.accounting._profile._profile import PrivacyProfile


def with_failure(profile: PrivacyProfile, probability: float) -> PrivacyProfile:
    """Return the profile of a release whose guarantee holds except with some probability.

    Parameters
    ----------
    profile : PrivacyProfile
        What the release costs where the premise holds.
    probability : float
        Bound, on every data set, on the probability that it does not.

    Returns
    -------
    PrivacyProfile
        With the probability added to delta at every epsilon, in each direction.

    Notes
    -----
    Theorem L3.

    Split P into its part G where the premise holds and the rest, of mass at most `probability`.
    For every set S, ``P(S) - alpha Q(S) <= (G(S) - alpha Q(S)) + probability``, and the premise
    bounds the first term. It is enough that the premise holds under P, the first distribution of
    each direction. It may be a statement about the pair of data sets and what was released before.

    Examples
    --------
    >>> from skdptune.accounting import PrivacyProfile, with_failure
    >>> round(with_failure(PrivacyProfile.pure(1.0), 1e-6).delta(1.0), 12)
    1e-06
    """
    check_kind(profile, name="profile", kind=PrivacyProfile, domain="a PrivacyProfile")
    probability = check_real(probability, name="probability", lower=0.0, upper=1.0)
    if probability == 0.0:
        return profile
    sides = profile._bounded
    step = sides[0].step
    # A premise that fails does so at epsilon = 0, too, where both directions meet.
    halves = [np.minimum(upper_half(side, step) + probability, 1.0) for side in sides]
    return PrivacyProfile._from_halves(Halves(step, *halves))
