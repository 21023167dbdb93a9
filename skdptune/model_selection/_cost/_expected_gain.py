"""Decide from public numbers whether a search of suggested values can be expected to help."""

from __future__ import annotations

import math
from dataclasses import dataclass

from skdptune.base._shared import LOSS_OF_DOUBLING

# Points that a search may be expected to lose by the noise of its cost, and the largest deviation
# of a score, in units of its range.
_LARGEST_LOSS, _LARGEST_DEVIATION = 0.3, 0.01
# The same for classifications of few columns, for which more was measured.
_LARGEST_LOSS_OF_FEW, _LARGEST_DEVIATION_OF_FEW = 0.6, 0.02
FEW_COLUMNS = 150


def expected_loss(noise_ratio: float, epsilon: float, n_samples: int) -> float:
    """Return the points of accuracy, at most 100, that a multiple of the noise may lose."""
    doublings = math.log2(max(noise_ratio, 1.0))
    return min(doublings * LOSS_OF_DOUBLING / (epsilon * n_samples), 100.0)


@dataclass(frozen=True)
class ExpectedGain:
    """Public numbers that decide whether a search can be expected to help.

    Parameters
    ----------
    n_samples : int
        Number of records; public.
    epsilon : float
        The total of the search.
    noise_ratio : float
        Effective noise of the returned model's fit divided by that of a fit without tuning.
    n_score : int
        Number of records that a score averages.
    score_noise : float
        Standard deviation of the noise on a score, in units of its range.
    is_narrow : bool, default=False
        Whether this is a classification of at most 150 columns.

    Notes
    -----
    There are two conditions, both from public numbers.

    Theorem F12: quantities that follow only from public numbers may decide what is done.

    *The noise of the final fit.* The cost of a search leaves more noise for the fit. Doubling the
    noise lost 4 points of accuracy on digits, 1 on breast_cancer and 0.1 on 8,000 rows of a9a
    between epsilon 1 and 4. This is at most ``10000 / (epsilon n)`` points each time. A search
    that is expected to lose more than 0.3 points by this is not worth it. The limit is 0.6 in
    narrow classifications, which lost half of that at most. With hundreds of columns noise loses
    more, and in regressions a search with these limits lost up to 17 points of R^2.

    *The resolution of a score.* A score over n records deviates by up to half its range over the
    root of n, and by its noise. Suggested values gain some points on some data, and nothing on
    most. Scores which deviate by more than 1 % of their range (2 % in narrow classifications)
    therefore choose at random or worse: runs on few records prefer values that suit few records.

    Examples
    --------
    >>> ExpectedGain(30_000, 1.0, 1.1, 6000, 0.003).reason_against
    ''
    >>> ExpectedGain(1000, 1.0, 1.1, 200, 0.003).reason_against
    'the noise of its costs may lose 1.4 points of accuracy, and a score deviates by 3.5 %'
    """

    n_samples: int
    epsilon: float
    noise_ratio: float
    n_score: int
    score_noise: float
    is_narrow: bool = False

    @property
    def loss(self) -> float:
        """Points of accuracy that the search is expected to lose by the noise of its cost."""
        return expected_loss(self.noise_ratio, self.epsilon, self.n_samples)

    @property
    def deviation(self) -> float:
        """Largest standard deviation of a score, in units of its range."""
        return math.hypot(0.5 / math.sqrt(self.n_score), self.score_noise)

    @property
    def noise_reason(self) -> str:
        """Why the noise of the search's cost speaks against it; empty if it does not."""
        if self.loss <= (_LARGEST_LOSS_OF_FEW if self.is_narrow else _LARGEST_LOSS):
            return ""
        return f"the noise of its costs may lose {self.loss:.1f} points of accuracy"

    @property
    def reason_against(self) -> str:
        """Why the search cannot be expected to help; empty if it can."""
        reasons = [self.noise_reason] if self.noise_reason else []
        limit = _LARGEST_DEVIATION_OF_FEW if self.is_narrow else _LARGEST_DEVIATION
        if not self.deviation <= limit:
            reasons.append(f"a score deviates by {100.0 * self.deviation:.1f} %")
        return ", and ".join(reasons)
