"""The random split of the records: who trains, who scores, who joins the final fit.

No record's place depends on another record, so the places of the others have the same distribution
on neighbouring data sets, as the theorems on tuning ask (Theorem T3). How many records a place got
is secret; whatever needs a number takes `expected_size`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skdptune.model_selection._running._data import Records


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
    """Return a random split: each record goes to validation, to tuning or to neither by itself.

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
    held_out : ndarray of bool, optional
        The records in validation, where a public rule of each says so: no chance then decides. Of
        the others, each goes to tuning with the chance that makes `tuning_fraction` of all if
        there are as many as expected.

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
    # Theorem D1, Theorem F5: each record draws its partition by itself.
    places = rng.integers(n_partitions, size=records.size)
    order = np.argsort(places, kind="stable")
    bounds = np.searchsorted(places[order], np.arange(1, n_partitions))
    return np.split(records[order], bounds)


def disjoint_folds(
    n_samples: int, n_folds: int, rng: np.random.Generator
) -> list[tuple[Records, Records]]:
    """Return for each fold the records to train and to score on, among ``range(n_samples)``."""
    everyone = np.arange(n_samples)
    held = disjoint_partitions(everyone, n_folds, rng)
    return [(np.setdiff1d(everyone, fold), fold) for fold in held]


def expected_size(n_samples: int, fraction: float) -> int:
    """Return the public constant for the number of records of a random part."""
    return max(1, round(n_samples * fraction))
