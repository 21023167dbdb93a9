"""The state of a doubling threshold search, a function of its hits and misses alone."""

from __future__ import annotations

import math
from typing import NamedTuple

from skdptune._validation import check_real

_FINEST = 1e-9
# Counts a level that is whole up to rounding as whole: (1 - 0.7) / 0.1 is 3 levels.
_ROUNDING = 1.0 - 1e-12


class ThresholdRound(NamedTuple):
    """One round of a doubling threshold search, as it may be published.

    Attributes
    ----------
    utility : float
        What had been reached before the round.
    step : int
        Levels that the round tried to gain at once.
    hit : bool
        Whether a candidate passed the noisy threshold.

    Examples
    --------
    >>> from skdptune.mechanisms import ThresholdRound
    >>> utility, step, hit = ThresholdRound(0.25, 4, True)
    >>> step
    4
    """

    utility: float
    step: int
    hit: bool


class ThresholdState:
    """The utility reached and the step, moved by hits and misses.

    Parameters
    ----------
    granularity, initial_utility : float
        As for `DoublingThreshold`.

    Attributes
    ----------
    levels : int
        Levels from the start to utility 1.
    hits : int
        Number of hits so far.
    trace : tuple of ThresholdRound
        The rounds so far.

    Examples
    --------
    >>> state = ThresholdState(granularity=0.125, initial_utility=0.0)
    >>> for hit in (True, True, False):
    ...     state.record(hit)
    >>> state.utility, state.step, state.threshold
    (0.375, 2, 0.625)
    """

    def __init__(self, granularity: float, initial_utility: float) -> None:
        self._height = check_real(granularity, name="granularity", lower=_FINEST, upper=1.0)
        self._start = check_real(
            initial_utility, name="initial_utility", lower=0.0, upper=1.0, upper_open=True
        )
        self.levels = max(1, math.ceil((1.0 - self._start) / self._height * _ROUNDING))
        self._level = 0
        self.step = 1
        self.hits = 0
        self.trace: tuple[ThresholdRound, ...] = ()

    def record(self, hit: bool) -> None:
        """Move by the outcome of one round."""
        self.trace = (*self.trace, ThresholdRound(self.utility, self.step, hit))
        if hit:
            self.hits += 1
            self._level += self.step
            self.step *= 2
        else:
            self.step //= 2

    @property
    def is_at_end(self) -> bool:
        """Whether there is nothing to gain: the step is 0, or the utility has reached 1."""
        return self.step == 0 or self._level >= self.levels

    @property
    def utility(self) -> float:
        """What has been reached, at most 1."""
        # One product of a whole number: levels do not add up their roundings.
        return min(self._start + self._level * self._height, 1.0)

    @property
    def threshold(self) -> float:
        """What the next round asks for, without its noise."""
        return self._start + (self._level + self.step) * self._height
