"""The composition of a search with a fit, on a grid no finer than that of either result needs."""

from __future__ import annotations

from skdptune.accounting._losses import Halves, largest_loss, step_at_most, upper_half
from skdptune.accounting._profile import (
    PrivacyProfile,
    profile_from_halves,
    renyi_of,
    sides_of,
)

# Grid points up to the sum of the largest losses.
_POINTS = 2**12


def composed(first: PrivacyProfile, second: PrivacyProfile) -> PrivacyProfile:
    """Return the composition, hardly above and never below that on the grids of its parts.

    Notes
    -----
    Theorem T6.

    A curve read at every so many points and joined by chords lies above. Beside the spread of the
    sum the grid is fine: epsilon grows by a share of some 1e-6.
    """
    extent = sum(largest_loss(sides_of(part)) for part in (first, second))
    if not extent > 0.0:
        return first + second
    step = step_at_most(extent / _POINTS)
    return _on_grid(first, step) + _on_grid(second, step)


def _on_grid(profile: PrivacyProfile, step: float) -> PrivacyProfile:
    """Return the profile on a coarser grid, itself if it is none of smooth curves."""
    sides = sides_of(profile)
    # The losses of a pure guarantee are figures of their own.
    is_pure = not any(side.infinity for side in sides)
    if is_pure or any(side.step >= step for side in sides):
        return profile
    halves = Halves(step, *(upper_half(side, step) for side in sides))
    return profile_from_halves(halves, renyi_of(profile))
