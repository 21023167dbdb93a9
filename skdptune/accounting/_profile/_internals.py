"""What the rest of the accounting reads from a profile, and how it makes profiles of its own."""

from __future__ import annotations

from collections.abc import Callable

from skdptune._validation import FloatArray
from skdptune.accounting._losses import Halves, RenyiCurve, Sides, halves_of_bound
from skdptune.accounting._profile._profile import PrivacyProfile


def sides_of(profile: PrivacyProfile) -> Sides:
    """Return a profile's loss distributions, of the remove and the add direction."""
    return profile._bounded


def renyi_of(profile: PrivacyProfile) -> RenyiCurve:
    """Return a profile's Rényi curve, which is infinite where no bound is known."""
    return profile._renyi


def profile_from_halves(halves: Halves, renyi: RenyiCurve | None = None) -> PrivacyProfile:
    """Return the profile of bounds on ``delta(0), delta(step), ...`` in each direction."""
    return PrivacyProfile._from_halves(halves, renyi)


def profile_from_bound(
    delta: Callable[[FloatArray], FloatArray], renyi: RenyiCurve | None = None
) -> PrivacyProfile:
    """Return the profile of a bound on delta in both directions, known at any epsilon >= 0."""
    return PrivacyProfile._from_halves(halves_of_bound(delta), renyi)


def profile_from_renyi(renyi: RenyiCurve) -> PrivacyProfile:
    """Return the profile that a Rényi curve proves, in both directions."""
    return profile_from_bound(renyi.delta, renyi)
