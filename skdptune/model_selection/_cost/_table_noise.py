"""Noise of the runs of a full table, chosen so that the final fit has very little more noise."""

from __future__ import annotations

import functools
import math

from skdptune.accounting import PrivacyProfile, UnreachableBudgetError, calibrate, search_on_split
from skdptune.base._shared import LOSS_OF_DOUBLING
from skdptune.mechanisms import gaussian_profile, laplace_profile, noise_for_budget
from skdptune.model_selection._cost._layout import Layout

# Points of accuracy that the final fit may lose by the table's cost, and limits of its noise.
_LOSS, _LIMITS = 0.1, (1.02, 1.05)
_LEAST, _LARGEST = 0.1, 1e5
_TOLERANCE = 1e-3
# About the largest number of fits on all records in a table; larger tables fit on a part.
_MOST_WORK = 25.0
_PARTS = (0.5, 0.2, 0.1, 0.05, 0.02)
_FEWEST_RECORDS = 200


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
) -> tuple[float, float] | None:
    """Return the least noise of the runs that keeps the noise of the final fit within a limit.

    Noise is divided by that of the final fit, both in units of a record's influence.

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
    tuple of float or None
        Noise of a candidate's fit and of a score; None if no noise is large enough.

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
    return found.value, of_score


def _noise_of_all(n_releases: int, limit: float, delta: float) -> float:
    """Return the noise of `n_releases` releases that, with a fit, cost `limit` times the fit.

    Squared shifts add up if there is a delta, and shifts if there is none.
    """
    if delta > 0.0:
        return math.sqrt(n_releases / (limit**2 - 1.0))
    return n_releases / (limit - 1.0)


def _release(shift: float, delta: float) -> PrivacyProfile:
    return gaussian_profile(shift, 1.0) if delta > 0.0 else laplace_profile(shift, 1.0)


def expected_loss(noise_ratio: float, epsilon: float, n_samples: int) -> float:
    """Return the points of accuracy, at most 100, that a multiple of the noise may lose."""
    doublings = math.log2(max(noise_ratio, 1.0))
    return min(doublings * LOSS_OF_DOUBLING / (epsilon * n_samples), 100.0)
