"""Whether guesses contradict a claim, and what they say of epsilon."""

from __future__ import annotations

import math

import numpy as np

from skdptune.accounting import PrivacyProfile
from skdptune.audit._one_run._counting import chance_of_right_guesses, counted_epsilon
from skdptune.audit._one_run._guesses import Guesses
from skdptune.audit._one_run._tradeoffs import (
    LeastError,
    ScaledClaim,
    is_possible,
    largest_refuted_factor,
)

# Noise so many times too small is as good as none.
_LARGEST_FACTOR = 16.0
_N_HALVINGS = 30


def epsilon_verdict(
    found: list[Guesses], n_canaries: int, profile: PrivacyProfile, delta: float, risk: float
) -> tuple[float, float, Guesses]:
    """Return a bound on epsilon at a delta, the chance under the claim, and the best guesses.

    Parameters
    ----------
    found : list of Guesses
        Each is tested at the same risk.
    n_canaries : int
    profile : PrivacyProfile
        The claim.
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
    """Return the same for a whole profile, and curves of its kind.

    Parameters
    ----------
    found : list of Guesses
        Each is tested at the same risk.
    n_canaries : int
    profile : PrivacyProfile
        The claim.
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
    factors = [largest_refuted_factor(claim, [case], risk, _LARGEST_FACTOR) for case in cases]
    bound, claimed = claim.epsilon(max(factors), delta), profile.epsilon(delta)
    if p_value > risk * len(found):
        # Curves are made of dots, and the claim itself is read at others.
        bound = min(bound, claimed)
    return bound, p_value, found[int(np.argmax(factors))]


def _largest_chance(least: LeastError, case: tuple[int, int, float]) -> float:
    """Return the largest chance that a claim lets such guesses have."""
    low, high = 0.0, 1.0
    if is_possible(least, *case, high):
        return high
    # In logarithms, since the chance may be of any size.
    low, high = -50.0, 0.0
    for _ in range(_N_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (
            (middle, high) if is_possible(least, *case, math.exp(middle)) else (low, middle)
        )
    return math.exp(high)
