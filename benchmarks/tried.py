"""Methods of the literature that the package lacks, and its alternatives.

    python benchmarks/tried.py newton  [--data NAME ...] [--seeds 5] [--epsilons .5 1 4]
    python benchmarks/tried.py mixing  [--data NAME ...]
    python benchmarks/tried.py scaling [--data NAME ...]
    python benchmarks/tried.py steps   [--data NAME ...]

"newton": private Newton steps (Ganesh, Haghifam, Steinke and Thakurta 2023) and the default of
`DPLogisticRegression`. "mixing": iterative Hessian mixing (Lev and others 2026) and
`DPRidge`, its one solution of the sums, and AdaSSP. "scaling": the linear scaling
rule (Panda and others 2022) and the default search, for "sgd". Ours are as they come; theirs
are at their best of many settings, chosen on the test rows, which nobody could choose without
paying. "steps": those of `DPRidge` and its one
solution of the sums.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from data_sets import MAKING, Data, Split, a9a
from scipy.stats import loguniform
from sklearn.datasets import load_breast_cancer, load_digits, load_wine, make_friedman1
from tried_mixing import DELTA, mixing_settings, mixing_weights
from tried_newton import newton_settings, newton_weights, unit_rows
from tried_scaling import FINAL_STEPS, descent, scaled_accuracy, scaling_settings
from tried_steps import CHECKS
from utility_methods import Task, own_model
from utility_problems import PROBLEMS, TARGET_BOUND, Fold, made_regression, of_numbers

from skdptune.linear_model import (
    AdaSSPLinearRegression,
    DPLogisticRegression,
    DPRidge,
    SufficientStatistics,
)
from skdptune.mechanisms import noise_for_budget
from skdptune.model_selection import DPRandomSearchCV

NEWTON_DATA = ("cancer", "a9a 8k", "bike", "protein", "parkinsons", "made unscaled", "made rare")
REGRESSIONS: dict[str, Callable[[], Callable[[int], Fold]]] = {
    name: problem.load for name, problem in PROBLEMS.items() if problem.regression
}
# Those on which the rule for the steps of DPRidge was not made.
JUDGES: dict[str, Callable[[], Callable[[int], Fold]]] = {
    "digits as numbers": lambda: of_numbers(
        load_digits().data[:, load_digits().data.std(axis=0) > 1.0], load_digits().target
    ),
    "radius of cells": lambda: of_numbers(*first_column(load_breast_cancer().data)),
    "alcohol of wine": lambda: of_numbers(*first_column(load_wine().data)),
    "made 500 x 10": made_regression(670, 10, 5, 41),
    "made 2,000 x 40": made_regression(2700, 40, 10, 42),
    "made 20,000 x 100": made_regression(24_000, 100, 20, 43),
    "made curved, 3,000 x 50": lambda: of_numbers(
        *make_friedman1(4000, 50, noise=1.0, random_state=44)
    ),
}
SCALING_DATA = ("digits", "a9a 8k")
CLASSIFICATIONS: Mapping[str, Callable[[], Data]] = MAKING | {"a9a 8k": lambda: a9a(8000)}
# As the searches of benchmarks/search.py have it.
SPACE = {"learning_rate": loguniform(0.05, 50.0), "max_grad_norm": loguniform(0.05, 5.0)}


Scores = dict[Any, list[float]]
Found = tuple[list[float], dict[str, Scores]]


def print_row(label: str, own: list[float], others: Scores) -> None:
    """Print the mean of our scores, and the best of others with what it gains over the seeds."""
    best = max(others, key=lambda setting: float(np.mean(others[setting])))
    gains = np.subtract(others[best], own)
    error = gains.std(ddof=1) / math.sqrt(len(gains))
    print(
        f"{label:42} ours {np.mean(own):6.2f}  theirs {np.mean(others[best]):6.2f}"
        f"  gain {gains.mean():+6.2f} +- {error:.2f}  {best}",
        flush=True,
    )


def first_column(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the other columns, and the first as a target."""
    return table[:, 1:], table[:, 0]


def accuracies(splits: list[Split], make: Callable[[int, list[int]], Any]) -> list[float]:
    """Return the test accuracies, in %, of what a seed and the labels make."""
    return [
        100.0 * make(seed, np.unique(y).tolist()).fit(X, y).score(X_test, y_test)
        for seed, (X, X_test, y, y_test) in enumerate(splits)
    ]


def newton(splits: list[Split], epsilon: float) -> Found:
    """Return accuracies in %: ours, and those of Newton steps."""
    own = accuracies(
        splits,
        lambda seed, classes: DPLogisticRegression(
            epsilon, DELTA, classes=classes, random_state=seed
        ),
    )
    width = math.sqrt(splits[0][0].shape[1])
    longest = max(float(np.linalg.norm(X, axis=1).max()) for X, *_ in splits) / width
    # A bound on rows that are all much shorter only adds noise.
    settings = [setting for setting in newton_settings() if setting.norm <= 3.0 * longest]
    found: Scores = {setting: [] for setting in settings}
    for seed, (X, X_test, y, y_test) in enumerate(splits):
        norms = {setting.norm for setting in settings}
        rows = {norm: (unit_rows(X, norm), unit_rows(X_test, norm)) for norm in norms}
        for setting, scores in found.items():
            train, test = rows[setting.norm]
            rng = np.random.default_rng([seed, 1])
            decisions = test @ newton_weights(train, y, (epsilon, DELTA), setting, rng)
            scores.append(100.0 * float(np.mean((decisions > 0.0) == y_test)))
    return own, {
        kind: {setting: scores for setting, scores in found.items() if setting.kind == kind}
        for kind in ("noisy", "add", "clip")
    }


def r2(fold: Fold, weights: np.ndarray) -> float:
    """Return the coefficient of determination on the test rows, in %."""
    errors = fold.y_test - fold.X_test @ weights
    return 100.0 * (1.0 - float(np.mean(errors**2) / np.var(fold.y_test)))


def mixing(folds: list[Fold], epsilon: float) -> Found:
    """Return R^2 in %: ours, and those of its one solution, of AdaSSP, and of Hessian mixing."""

    def fitted(kind: Any, bound: float = TARGET_BOUND) -> list[float]:
        shared = {"target_bound": bound, "fit_intercept": False}
        return [
            r2(fold, kind(epsilon, DELTA, random_state=seed, **shared).fit(fold.X, fold.y).coef_)
            for seed, fold in enumerate(folds)
        ]

    found: Scores = {setting: [] for setting in mixing_settings()}
    for seed, fold in enumerate(folds):
        norm = math.sqrt(fold.X.shape[1])
        rows = fold.X / np.maximum(np.linalg.norm(fold.X, axis=1, keepdims=True), norm)
        for setting, scores in found.items():
            rng = np.random.default_rng([seed, 2])
            weights = mixing_weights(rows, fold.y / TARGET_BOUND, epsilon, setting, rng)
            scores.append(r2(fold, weights * TARGET_BOUND / norm))
    solved = []
    for seed, fold in enumerate(folds):
        norm = math.sqrt(fold.X.shape[1])
        sums = SufficientStatistics(norm, TARGET_BOUND, fit_intercept=False)
        ridge = DPRidge(
            epsilon,
            DELTA,
            random_state=seed,
            data_norm=norm,
            target_bound=TARGET_BOUND,
            fit_intercept=False,
        )
        solved.append(r2(fold, ridge.fit_statistics(sums.update(fold.X, fold.y)).coef_))
    return fitted(DPRidge), {
        "one solution": {"": solved},
        "AdaSSP": {"": fitted(AdaSSPLinearRegression)},
        "ours, shorter target_bound": {b: fitted(DPRidge, b) for b in (1.0, 2.0)},
        "mixing": found,
    }


def steps(folds: list[Fold], epsilon: float) -> Found:
    """Return R^2 in %: of one solution on noisy sums, and of steps, as they come."""
    rows, columns = folds[0].X.shape
    noise = math.sqrt(2.0) * noise_for_budget(epsilon, DELTA)[0] * (columns + 1) ** 1.5 / rows
    print(f"{rows} x {columns}, noise {noise:.3f}:")
    one, taken = [], []
    for seed, fold in enumerate(folds):
        task = Task(fold, True, epsilon, DELTA, seed)
        ridge = own_model(task, epsilon, data_norm=task.norm)
        taken.append(task.score(ridge))
        sums = SufficientStatistics(task.norm, TARGET_BOUND).update(fold.X, fold.y)
        one.append(task.score_of(ridge.fit_statistics(sums).predict(fold.X_test)))
    return one, {"steps": {"": taken}}


def scaling(splits: list[Split], epsilon: float) -> Found:
    """Return accuracies in %: our search, and the rule, no search, and searches not paid for."""

    def untuned(seed: int, classes: list[int]) -> Any:
        return DPLogisticRegression(
            epsilon, DELTA, solver="sgd", classes=classes, random_state=seed
        )

    def search(space: Any) -> list[float]:
        return accuracies(
            splits,
            lambda seed, classes: DPRandomSearchCV(
                untuned(seed, classes), space, epsilon=epsilon, delta=DELTA, random_state=seed
            ),
        )

    own, noise = search(None), noise_for_budget(epsilon, DELTA)[0]
    rules = {
        setting: [scaled_accuracy(split, epsilon, setting, k) for k, split in enumerate(splits)]
        for setting in scaling_settings()
    }
    unpaid = {
        product: accuracies(
            splits, lambda seed, classes, r=product: descent(r, FINAL_STEPS, noise, classes, seed)
        )
        for product in np.geomspace(10.0, 10_000.0, 13)
    }
    return own, {
        "untuned": {"": accuracies(splits, untuned)},
        "search of a wide space": {"": search(SPACE)},
        "scaling rule": rules,
        "best product, not paid for": unpaid,
    }


def print_summary(gains: dict[str, dict[Any, list[float]]]) -> None:
    """Print what the best single setting for all data sets and budgets gains over ours."""
    for family, every in gains.items():
        cells = max(map(len, every.values()))
        found = {setting: values for setting, values in every.items() if len(values) == cells}
        best = max(found, key=lambda setting: float(np.mean(found[setting])))
        mean, worst, most = (how(found[best]) for how in (np.mean, np.min, np.max))
        print(f"one for all: {family:32} {mean:+6.2f}, from {worst:+.2f} to {most:+.2f}  {best}")


def main() -> None:
    """Print what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ways = {
        "newton": (NEWTON_DATA, newton, [0.5, 1.0, 4.0]),
        "mixing": ((*REGRESSIONS, *JUDGES), mixing, [0.5, 1.0, 4.0]),
        "scaling": (SCALING_DATA, scaling, [1.0, 4.0]),
        "steps": ((*REGRESSIONS, *JUDGES, *CHECKS), steps, [0.5, 1.0, 2.0, 4.0]),
    }
    parser.add_argument("what", choices=ways)
    parser.add_argument("--data", nargs="+", metavar="NAME")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epsilons", type=float, nargs="+")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    names, compare, epsilons = ways[options.what]
    gains: dict[str, dict[Any, list[float]]] = {}
    for name in options.data or names:
        if options.what in ("mixing", "steps"):
            split = (REGRESSIONS | JUDGES | CHECKS)[name]()
        else:
            split = CLASSIFICATIONS[name]().split
        parts = [split(seed) for seed in range(options.seeds)]
        for epsilon in options.epsilons or epsilons:
            own, others = compare(parts, epsilon)
            for family, found in others.items():
                print_row(f"{name}, epsilon {epsilon:g}, {family}", own, found)
                for setting, scores in found.items():
                    gain = float(np.mean(scores) - np.mean(own))
                    gains.setdefault(family, {}).setdefault(setting, []).append(gain)
    print_summary(gains)


if __name__ == "__main__":
    main()
