"""The public range of a regression's targets, from a bound or a pair."""

from __future__ import annotations

from typing import Any

from skdptune._formatting import shown
from skdptune._validation import check_real

# Largest absolute value of a target; one over it is the shortest range.
_FARTHEST = 1e100


def target_range(bound: Any) -> tuple[float, float]:
    """Return the range of targets that a bound on their absolute value, or a pair, stands for.

    Parameters
    ----------
    bound : float or tuple (lower, upper)

    Notes
    -----
    Theorem L0.

    Examples
    --------
    >>> target_range(2.0), target_range((100, 140))
    ((-2.0, 2.0), (100.0, 140.0))
    """
    if not isinstance(bound, tuple | list):
        end = check_real(bound, name="target_bound", lower=1.0 / _FARTHEST, upper=_FARTHEST)
        return -end, end
    if len(bound) != 2:
        raise ValueError(f"target_bound must be a number or a pair; got {shown(bound)}.")
    low, high = (
        check_real(end, name="each end of target_bound", lower=-_FARTHEST, upper=_FARTHEST)
        for end in bound
    )
    if not high - low >= 1.0 / _FARTHEST:
        raise ValueError(
            f"target_bound must have a lower end below the upper one; got {shown(bound)}."
        )
    return low, high


def middle_and_half(low: float, high: float) -> tuple[float, float]:
    """Return the middle of a range and half of its length; 0 and b for -b and b."""
    return low / 2 + high / 2, high / 2 - low / 2
