"""Noise of the runs of a full table, chosen so that the final fit has very little more noise."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

from skdptune.accounting import PrivacyProfile, UnreachableBudgetError, calibrate, search_on_split
from skdptune.base._shared import LOSS_OF_DOUBLING
from skdptune.mechanisms import gaussian_profile, laplace_profile, noise_for_budget
from skdptune.model_selection._cost._layout import Layout
from skdptune.model_selection._running import clipped_deviation

# Points of accuracy that the final fit may lose by the table's cost, and limits of its noise.
_LOSS, _LIMITS = 0.1, (1.02, 1.05)
_LEAST, _LARGEST = 0.1, 1e5
_TOLERANCE = 1e-3
# About the largest number of fits on all records in a table; larger tables fit on a part.
_MOST_WORK = 25.0
_PARTS = (0.5, 0.2, 0.1, 0.05, 0.02)
_FEWEST_RECORDS = 200


@dataclass(frozen=True)
class TableNoise:
    """Noise of the runs of a table divided by that of the final fit.

    Attributes
    ----------
    fit, score : float
        Noise of a candidate's fit and of a score, in units of a record's influence.
    """

    fit: float
    score: float


def noise_limit(epsilon: float, n_samples: int) -> float:
    """Return the default of the final fit's noise divided by that of an untuned fit.

    Notes
    -----
    The value that loses a tenth of a point of accuracy, as far as this is known before the data,
    limited to 1.02 and 1.05. On many records a little more noise loses nothing, and this little
    extra cost is what distinguishes the candidates.
    """
    low, high = _LIMITS
    doublings = _LOSS / LOSS_OF_DOUBLING * epsilon * n_samples
    return float(min(max(2.0 ** min(doublings, 1.0), low), high))


def tuning_fraction_of_table(n_candidates: int, n_samples: int) -> float | None:
    """Return the share of the records on which a table's candidates are fitted; None for all.

    Notes
    -----
    The effective noise of a fit decides how well candidates can be compared. At the same cost it
    is lowest on all records, with correspondingly more noise: a part only saves time.
    """
    if n_candidates <= _MOST_WORK:
        return None
    for part in _PARTS:
        if part * n_candidates <= _MOST_WORK or part * n_samples < 2 * _FEWEST_RECORDS:
            return part
    return _PARTS[-1]


@functools.lru_cache(maxsize=256)
def table_noise(
    epsilon: float, delta: float, n_candidates: int, layout: Layout, limit: float
) -> TableNoise | None:
    """Return the least noise of the runs that keeps the noise of the final fit within a limit.

    Parameters
    ----------
    epsilon, delta : float
        The total budget.
    n_candidates : int
        Number of candidates, all released with their scores.
    layout : Layout
        How the records are divided.
    limit : float
        Largest noise of the final fit divided by that of one fit with the whole total.

    Returns
    -------
    TableNoise or None
        None if no noise is large enough.

    Notes
    -----
    Solved for Gaussian fits, which all others resemble. The result is a choice and not a claim: in
    any case the total is computed from the fits' own profiles (Theorem T8).
    """
    unit, _ = noise_for_budget(epsilon, delta)
    final = _release(1.0 / (unit * limit), delta)
    n_fits = n_candidates * max(layout.folds - 1, 1)
    has_others = layout.validation > 0.0
    # With folds the same records are used for training and scoring, and each gets half.
    n_scores = n_candidates if has_others else 2 * n_candidates
    of_score = _noise_of_all(n_scores, limit, delta)
    scores = _release(1.0 / (unit * limit * of_score), delta) * n_candidates

    def total(noise: float) -> PrivacyProfile:
        fits = _release(1.0 / (unit * limit * noise), delta) * n_fits
        return search_on_split(
            fits if has_others or layout.public else fits + scores,
            scores if has_others else None,
            final if layout.final else None,
            validation_fraction=layout.validation,
            tuning_fraction=layout.tuning,
            variant=layout.variant,
            by_rule=layout.by_rule,
        )

    try:
        found = calibrate(
            total,
            epsilon,
            delta,
            lower=_LEAST,
            upper=_LARGEST,
            guess=min(max(_noise_of_all(n_fits, limit, delta), _LEAST), _LARGEST),
            tolerance=_TOLERANCE,
        )
    except UnreachableBudgetError:
        return None
    return TableNoise(found.value, of_score)


def _noise_of_all(n_releases: int, limit: float, delta: float) -> float:
    """Return the noise of `n_releases` releases that, with a fit, cost `limit` times the fit.

    Squared shifts add up if there is a delta, and shifts if there is none.
    """
    if delta > 0.0:
        return math.sqrt(n_releases / (limit**2 - 1.0))
    return n_releases / (limit - 1.0)


def _release(shift: float, delta: float) -> PrivacyProfile:
    return gaussian_profile(shift, 1.0) if delta > 0.0 else laplace_profile(shift, 1.0)


# Decide from public numbers whether a search of suggested values can be expected to help --------

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
            reasons.append(
                f"a score deviates by {100.0 * clipped_deviation(self.deviation):.1f} %"
            )
        return ", and ".join(reasons)
