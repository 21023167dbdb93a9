"""The random split of the records: which are used for training, scoring and the final fit.

No record's part depends on another record, so the parts of the others have the same distribution
on neighbouring data sets, as the theorems on tuning require (Theorem T3). The number of records in
a part is secret; code that needs a number uses `expected_size`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skdptune.model_selection._running._data import Records


@dataclass(frozen=True)
class RandomSplit:
    """Parts of the records.

    Attributes
    ----------
    tuning : ndarray of int
        Records on which the runs are trained.
    validation : ndarray of int
        Records on which the runs are scored.
    final : ndarray of int or None
        Records of the final fit; None for all.
    """

    tuning: Records
    validation: Records
    final: Records | None


def random_split(
    n_samples: int,
    validation_fraction: float,
    tuning_fraction: float | None,
    variant: int,
    rng: np.random.Generator,
    held_out: NDArray[np.bool_] | None = None,
) -> RandomSplit:
    """Return a random split: each record independently joins validation, tuning or neither.

    Parameters
    ----------
    n_samples : int
        Number of records.
    validation_fraction : float
        Probability of validation.
    tuning_fraction : float or None
        Probability of tuning; None for all that are not in validation.
    variant : {1, 2}
        Whether the final fit leaves out the records of tuning.
    rng : numpy.random.Generator
    held_out : ndarray of bool, optional
        The records in validation, if a public rule decides this; there is then no probability.
        Each of the others joins tuning with the probability that makes `tuning_fraction` of all,
        if their number is as expected.

    Notes
    -----
    Theorem T3, Theorem T9.
    """
    draws = rng.random(n_samples)
    in_validation = draws < validation_fraction if held_out is None else held_out
    if tuning_fraction is None:
        return RandomSplit(np.flatnonzero(~in_validation), np.flatnonzero(in_validation), None)
    if held_out is not None:
        tuning_fraction /= 1.0 - validation_fraction
    in_tuning = ~in_validation & (draws >= 1.0 - tuning_fraction)
    final = None if variant == 2 else np.flatnonzero(~in_tuning)
    return RandomSplit(np.flatnonzero(in_tuning), np.flatnonzero(in_validation), final)


def disjoint_partitions(
    records: Records, n_partitions: int, rng: np.random.Generator
) -> list[Records]:
    """Return disjoint partitions; each record joins one of them by its own uniform draw."""
    # Theorem D1, Theorem F5: each record draws its partition independently.
    places = rng.integers(n_partitions, size=records.size)
    order = np.argsort(places, kind="stable")
    bounds = np.searchsorted(places[order], np.arange(1, n_partitions))
    return np.split(records[order], bounds)


def disjoint_folds(
    n_samples: int, n_folds: int, rng: np.random.Generator
) -> list[tuple[Records, Records]]:
    """Return for each fold the records for training and scoring, among ``range(n_samples)``."""
    everyone = np.arange(n_samples)
    held = disjoint_partitions(everyone, n_folds, rng)
    return [(np.setdiff1d(everyone, fold), fold) for fold in held]


def expected_size(n_samples: int, fraction: float) -> int:
    """Return the public constant for the number of records of a random part."""
    return max(1, round(n_samples * fraction))
