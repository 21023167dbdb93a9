"""Regressions on which the rule for the steps of `DPRidge` was only checked.

Few and many columns, targets with long tails, half of them zero, or a column of another data set.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from data_sets import stored
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_wine,
    make_friedman2,
    make_friedman3,
)
from utility_problems import Fold, made_regression, of_numbers

Load = Callable[[], Callable[[int], Fold]]


def tailed(rows: int, columns: int, seed: int, tail: str, signal: float = 1.0) -> Load:
    """Return a way to make a linear regression whose errors have a long tail."""

    def load() -> Callable[[int], Fold]:
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(rows, columns))
        weights = rng.normal(size=columns) / math.sqrt(columns)
        draw: dict[str, Callable[[], Any]] = {
            "exponential": lambda: rng.exponential(size=rows),
            "lognormal": lambda: np.exp(rng.normal(size=rows)) / 2.0,
            "t2": lambda: rng.standard_t(2, size=rows) / 2.0,
        }
        return of_numbers(X, signal * X @ weights + draw[tail]())

    return load


def half_zeros(rows: int, columns: int, seed: int) -> Load:
    """Return a way to make a regression more than half of whose targets are zero."""

    def load() -> Callable[[int], Fold]:
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(rows, columns))
        weights = rng.normal(size=columns) / math.sqrt(columns)
        return of_numbers(X, np.maximum(X @ weights + 0.5 * rng.normal(size=rows) - 0.3, 0.0))

    return load


def column_of(table: np.ndarray, place: int) -> Callable[[int], Fold]:
    """Return the folds of a regression of one column on the others."""
    return of_numbers(np.delete(table, place, axis=1), table[:, place])


def column_of_stored(name: str, place: int, rows: int | None = None) -> Load:
    """Return a way to load a regression of the UCI, with another of its columns as the target."""

    def load() -> Callable[[int], Fold]:
        arrays = stored(f"uci_{name}.npz")
        table = np.column_stack([arrays["X"], arrays["y"].ravel()]).astype(float)
        if rows is not None:
            table = table[np.random.default_rng(0).permutation(len(table))[:rows]]
        return column_of(table, place)

    return load


CHECKS: dict[str, Load] = {
    "one column": made_regression(400, 1, 1, 5),
    "two columns": made_regression(667, 2, 2, 7),
    "made 4,000 x 20": made_regression(5334, 20, 8, 8),
    "made 10,000 x 50": made_regression(13_334, 50, 10, 9),
    "friedman 2": lambda: of_numbers(*make_friedman2(2670, noise=50.0, random_state=3)),
    "friedman 3": lambda: of_numbers(*make_friedman3(2000, noise=0.2, random_state=4)),
    "exponential, 3 columns": tailed(1340, 3, 1, "exponential"),
    "exponential, 10 columns": tailed(5340, 10, 2, "exponential"),
    "exponential, 40 columns": tailed(24_000, 40, 3, "exponential"),
    "exponential, weak": tailed(4000, 8, 4, "exponential", 0.4),
    "lognormal": tailed(2670, 5, 5, "lognormal"),
    "lognormal, weak": tailed(8000, 20, 6, "lognormal", 0.5),
    "t2": tailed(2670, 5, 7, "t2"),
    "half zeros, 8 columns": half_zeros(4000, 8, 8),
    "half zeros, 30 columns": half_zeros(11_000, 30, 9),
    "texture of cells": lambda: column_of(load_breast_cancer().data, 1),
    "concavity of cells": lambda: column_of(load_breast_cancer().data, 6),
    "proline of wine": lambda: column_of(load_wine().data, 12),
    "body mass": lambda: column_of(load_diabetes().data, 2),
    "airfoil, frequency": column_of_stored("airfoil", 0),
    "airfoil, thickness": column_of_stored("airfoil", 4),
    "parkinsons, subject": column_of_stored("parkinsons", 0),
    "parkinsons, jitter": column_of_stored("parkinsons", 5),
    "elevators, climb rate": column_of_stored("elevators", 0, 4000),
    "elevators, diffDiffClb": column_of_stored("elevators", 8, 4000),
    "protein, F4": column_of_stored("protein", 3, 3000),
    "protein, 1,500 rows": column_of_stored("protein", -1, 2000),
    "bike, working day": column_of_stored("bike", 9, 5000),
    "bike, 2,250 rows": column_of_stored("bike", -1, 3000),
}
