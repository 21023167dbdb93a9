"""What the scores of a table can be expected to show, from public numbers alone."""

from __future__ import annotations

import math
from dataclasses import dataclass

from skdptune.model_selection._cost import expected_loss

# What runs deviate by from what a final fit would do, in units of what their noise loses.
_DEVIATION_OF_LOSS = 0.4
# Points lost by the noise of runs from which on no choice by their scores has gained anything.
_LARGEST_LOSS = 4.5
# And from which on candidates that seem much better are so by standing noise: beyond, runs count
# for so much less that the default is kept.
_LARGEST_OF_RULE, _POWER = 3.0, 8
# Deviation of a difference of two scores by the records that they are made of, times the root of
# their number: models disagree on few.
_DEVIATION_OF_RECORDS = 0.25
# Gains below this many deviations of a score are mostly not found.
_FOUND = 3.0


@dataclass(frozen=True)
class TableOutlook:
    """What decides whether a table of noisy scores can be expected to help.

    Parameters
    ----------
    n_samples : int
        Number of records; public.
    epsilon : float
        The total of the search.
    noise_ratio : float
        Noise of a run beside its records, over that of one untuned fit on all records.
    n_score : int
        Number of records that a score averages.
    score_noise : float, default=0.0
        Deviation of the noise on a score, in units of its range.

    Notes
    -----
    Theorem N5: all of this follows from public numbers.

    Runs have many times the noise of the final fit, and twice the noise lost up to
    ``10000 / (epsilon n)`` points of accuracy wherever it was measured. Where runs lose 4.5 points
    by this or more, they prefer what stands the noise best, and choosing by them lost accuracy
    on most data. Below 3 points, their ranking deviates from that of final fits by about 0.4 of
    the loss; above, the deviation grows with the ninth power of it, so that the default is kept:
    from 3 to 4.5 points the rule found a tenth of what could be gained and lost up to 5 points.

    Examples
    --------
    >>> large = TableOutlook(30_000, 2.0, 20.0, 6000, 0.005)
    >>> round(large.loss, 1), round(large.deviation, 3), large.reason_against
    (0.7, 0.007, '')
    >>> TableOutlook(1000, 1.0, 20.0, 200, 0.3).reason_against
    'runs with 20 times the noise may lose 43 points of accuracy'
    """

    n_samples: int
    epsilon: float
    noise_ratio: float
    n_score: int
    score_noise: float = 0.0

    @property
    def loss(self) -> float:
        """Points of accuracy that a run is expected to lose by its noise."""
        return expected_loss(self.noise_ratio, self.epsilon, self.n_samples)

    @property
    def run_deviation(self) -> float:
        """What a score deviates by beside its noise, in units of its range."""
        # Limited, so that a score says little, and not nothing at all.
        loss = min(self.loss, 1e4)
        growth = max(loss / _LARGEST_OF_RULE, 1.0) ** _POWER
        of_runs = _DEVIATION_OF_LOSS * loss * growth / 100.0
        return math.hypot(of_runs, _DEVIATION_OF_RECORDS / math.sqrt(max(self.n_score, 1)))

    @property
    def deviation(self) -> float:
        """Standard deviation of a score, in units of its range."""
        return math.hypot(self.run_deviation, self.score_noise)

    @property
    def smallest_gain(self) -> float:
        """Gain over the default that is mostly found, in units of the range of a score."""
        return _FOUND * self.deviation

    @property
    def reason_against(self) -> str:
        """Why a table cannot be expected to help; empty if it can."""
        return "" if self.loss < _LARGEST_LOSS else self._reason

    @property
    def reason_to_keep(self) -> str:
        """Why the default is kept whatever the table says; empty if it is not."""
        return "" if self.loss < _LARGEST_OF_RULE else self._reason

    @property
    def _reason(self) -> str:
        return (
            f"runs with {self.noise_ratio:.3g} times the noise may lose {self.loss:.0f} points of "
            "accuracy"
        )
