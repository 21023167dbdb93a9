"""Who trains, who scores, who waits: each record's place, drawn by its own coin.

No record's place depends on another record, so the places of the others have the same law
whether or not one record more is there: what `skdptune.accounting.search_on_split` rests on. How
many records a place got is secret; whatever needs a number takes `expected_size`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class RandomSplit:
    """Places of the records.

    Attributes
    ----------
    tuning : ndarray of int
        Records that the runs train on.
    validation : ndarray of int
        Records that the runs are scored on.
    final : ndarray of int or None
        Records of the final fit; None for all.
    """

    tuning: np.ndarray
    validation: np.ndarray
    final: np.ndarray | None


def random_split(
    n_samples: int,
    validation_fraction: float,
    tuning_fraction: float | None,
    variant: int,
    rng: np.random.Generator,
) -> RandomSplit:
    """Return a deal: each record goes to validation, to tuning or to neither by its own coin.

    Parameters
    ----------
    n_samples : int
        Number of records.
    validation_fraction : float
        Chance of validation.
    tuning_fraction : float or None
        Chance of tuning; None for all that are not in validation.
    variant : {1, 2}
        Whether the final fit leaves out the records of tuning.
    rng : numpy.random.Generator
    """
    coins = rng.random(n_samples)
    in_validation = coins < validation_fraction
    if tuning_fraction is None:
        return RandomSplit(np.flatnonzero(~in_validation), np.flatnonzero(in_validation), None)
    in_tuning = coins >= 1.0 - tuning_fraction
    final = None if variant == 2 else np.flatnonzero(~in_tuning)
    return RandomSplit(np.flatnonzero(in_tuning), np.flatnonzero(in_validation), final)


def parts(records: np.ndarray, n_parts: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Return disjoint parts; each record joins one of them by its own fair draw."""
    places = rng.integers(n_parts, size=records.size)
    order = np.argsort(places, kind="stable")
    bounds = np.searchsorted(places[order], np.arange(1, n_parts))
    return np.split(records[order], bounds)


def expected_size(n_samples: int, fraction: float) -> int:
    """Return the public constant that stands for the number of records of a random part."""
    return max(1, round(n_samples * fraction))
