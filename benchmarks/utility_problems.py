"""The data sets of `utility.py`: which there are, how they are split, and who made the rules."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from data_sets import JUDGING, MAKING, Data, images, stored
from sklearn.datasets import load_diabetes, make_friedman1, make_regression
from sklearn.model_selection import train_test_split
from table_encoder import SCHEMA, adult_table

from skdptune.linear_model import DPLogisticRegression
from skdptune.preprocessing import Schema, make_private_pipeline

# Standardised targets are clipped to it for training, and predictions by all models.
TARGET_BOUND = 3.0
TEST_SHARE = 0.25
MOST_TEST_ROWS = 4000


@dataclass(frozen=True)
class Fold:
    """Rows to train on and to test on.

    `norm` is a public bound on the norm of a row, where there is one; `tables` are the rows before
    they were encoded, where the encoding is by a public schema.
    """

    X: np.ndarray
    X_test: np.ndarray
    y: np.ndarray
    y_test: np.ndarray
    norm: float | None = None
    tables: tuple[Any, Any] | None = None

    @functools.cached_property
    def ranges(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper bounds of columns, read off the rows (not a private step)."""
        low, high = self.X.min(axis=0), self.X.max(axis=0)
        return low, np.where(high > low, high, low + 1.0)

    def schema(self, regression: bool) -> Schema:
        """Return a schema of columns by number, with these ranges, and of the target."""
        ends = zip(*self.ranges, strict=True)
        columns = {str(place): (float(low), float(high)) for place, (low, high) in enumerate(ends)}
        labels = {"categories": np.unique(self.y).tolist()}
        return Schema(columns, target=(-TARGET_BOUND, TARGET_BOUND) if regression else labels)


@dataclass(frozen=True)
class Problem:
    """A data set: `load` returns the function from a seed to a fold."""

    load: Callable[[], Callable[[int], Fold]]
    judges: bool
    regression: bool = False
    delta: float = 1e-5
    most_seeds: int | None = None


def of_classes(make: Callable[[], Data], norm: float | None = None) -> Any:
    """Return a way to load a classification of data_sets.py."""
    return lambda: (lambda found: lambda seed: Fold(*found.split(seed), norm=norm))(make())


def whole_a9a() -> Callable[[int], Fold]:
    """Load Adult's 123 binary columns, of which 14 at most are 1, with its own test rows."""
    arrays = stored("a9a.npz")
    width = int(arrays["n_features"])
    train, test = (
        np.unpackbits(arrays[name], axis=1)[:, :width].astype(np.float32)
        for name in ("X_train", "X_test")
    )
    fold = Fold(train, test, arrays["y_train"], arrays["y_test"], norm=math.sqrt(14.0))
    return lambda seed: fold


def raw_adult() -> Callable[[int], Fold]:
    """Load Adult as its table is, encoded by its public schema, with its own test rows."""
    found = adult_table()
    if found is None:
        raise FileNotFoundError("adult.csv.gz")
    table, test, y, y_test = found
    pipeline = make_private_pipeline(DPLogisticRegression(), SCHEMA)
    encoder = pipeline[:-1].fit(table)
    rows, test_rows = (encoder.transform(part).astype(np.float32) for part in (table, test))
    norm = pipeline[-1].data_norm
    fold = Fold(rows, test_rows, y.to_numpy(), y_test.to_numpy(), norm, (table, test))
    return lambda seed: fold


def of_numbers(X: np.ndarray, y: np.ndarray) -> Callable[[int], Fold]:
    """Return the folds of a regression: columns and targets standardised by training rows."""

    def split(seed: int) -> Fold:
        share = min(TEST_SHARE, MOST_TEST_ROWS / len(y))
        parts = train_test_split(X, y, random_state=seed, test_size=share)
        train, test, targets, test_targets = (np.asarray(part, dtype=float) for part in parts)
        mean, spread = train.mean(axis=0), np.maximum(train.std(axis=0), 1e-9)
        centre, scale = targets.mean(), targets.std()
        return Fold(
            (train - mean) / spread,
            (test - mean) / spread,
            np.clip((targets - centre) / scale, -TARGET_BOUND, TARGET_BOUND),
            (test_targets - centre) / scale,
        )

    return split


def stored_regression(name: str) -> Callable[[], Callable[[int], Fold]]:
    """Return a way to load a regression of the UCI, with the target as studies of it have it."""

    def load() -> Callable[[int], Fold]:
        arrays = stored(f"uci_{name}.npz")
        X, y = arrays["X"], arrays["y"].ravel()
        if name == "bike":
            # These two add up to the target.
            X = X[:, ~np.isin(arrays["feature_names"], ["casual", "registered"])]
        logarithms = {"elevators": np.log, "protein": np.log1p, "bike": np.log}
        return of_numbers(X, logarithms.get(name, np.asarray)(y))

    return load


def made_regression(rows: int, columns: int, informative: int, seed: int) -> Any:
    """Return a way to make a linear regression of many useless columns."""
    return lambda: of_numbers(
        *make_regression(rows, columns, n_informative=informative, noise=50.0, random_state=seed)
    )


PROBLEMS: dict[str, Problem] = {
    "breast cancer": Problem(of_classes(MAKING["cancer"]), judges=False),
    "digits": Problem(of_classes(MAKING["digits"]), judges=False),
    "parkinsons, above median": Problem(of_classes(MAKING["parkinsons"]), judges=False),
    "wine": Problem(of_classes(JUDGING["wine"]), judges=True),
    "made 1000": Problem(of_classes(JUDGING["made 1000"]), judges=True),
    "made two clusters": Problem(of_classes(JUDGING["made two clusters"]), judges=True),
    "made redundant": Problem(of_classes(JUDGING["made redundant"]), judges=True),
    "made rare, 4 classes": Problem(of_classes(JUDGING["made rare, 4 classes"]), judges=True),
    "made unscaled, 3 classes": Problem(
        of_classes(JUDGING["made unscaled, 3 classes"]), judges=True
    ),
    "bike": Problem(stored_regression("bike"), judges=False, regression=True),
    "elevators": Problem(stored_regression("elevators"), judges=False, regression=True),
    "protein": Problem(stored_regression("protein"), judges=False, regression=True),
    "airfoil": Problem(stored_regression("airfoil"), judges=True, regression=True),
    "parkinsons": Problem(stored_regression("parkinsons"), judges=True, regression=True),
    "diabetes": Problem(
        lambda: of_numbers(*load_diabetes(return_X_y=True)), judges=True, regression=True
    ),
    "made curved": Problem(
        lambda: of_numbers(*make_friedman1(5000, 10, noise=1.0, random_state=31)),
        judges=True,
        regression=True,
    ),
    "made useless columns": Problem(
        made_regression(8000, 100, 10, 32), judges=True, regression=True
    ),
    "adult raw": Problem(raw_adult, judges=True, most_seeds=10),
    "made useless, 4 classes": Problem(
        of_classes(JUDGING["made useless, 4 classes"]), judges=True
    ),
    "fashion 10k": Problem(of_classes(JUDGING["fashion 10k"]), judges=True, most_seeds=5),
    "made 20k": Problem(of_classes(JUDGING["made 20k"]), judges=True),
    "mnist 56k": Problem(
        of_classes(lambda: images("mnist.npz", 56_000)), judges=True, delta=1e-6, most_seeds=2
    ),
    "a9a": Problem(whole_a9a, judges=False, most_seeds=10),
}
