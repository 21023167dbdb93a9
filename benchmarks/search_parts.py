"""On which part of the records a search should try its candidates, and how noisy a score may be.

    python benchmarks/search_parts.py [--data NAME ...] [--epsilons .5 1 4] [--seeds 6]
    python benchmarks/search_parts.py --times       processor seconds of four searches

Test accuracy, in points beyond the untuned model as it comes, of searches on several parts of the
records, for spaces that a user may type in: wide ones around a model that needs no tuning, and
some in which much can be found. Each seed is another split, or other rows, and other noise.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import runpy
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from data_sets import MAKING, Split
from scipy.stats import loguniform
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from skdptune.linear_model import DPLogisticRegression
from skdptune.model_selection import (
    DoublingThresholdSearchCV,
    DPAdaptiveSearchCV,
    DPGridSearchCV,
    DPRandomSearchCV,
    RandomRuns,
)
from skdptune.preprocessing import Schema, make_private_pipeline

EXAMPLE = Path(__file__).parents[1] / "examples" / "tune_logistic_regression.py"
PARTS = ("auto", 0.05, 0.1, 0.2, 0.3, None)
DELTA = 1e-5
RATES = {"learning_rate": loguniform(0.1, 10.0)}
PRECONDITIONED = RATES | {"max_grad_norm": loguniform(0.03, 3.0)}
SGD = RATES | {"max_grad_norm": loguniform(0.1, 5.0)}


class Problem(NamedTuple):
    """Rows by seed, a model, the prefix of its parameters, and a space."""

    split: Callable[[int], Split]
    model: Any
    prefix: str
    space: dict[str, Any]


def hospital(rows: int) -> Problem:
    """Return the visits of the example, whose default encoder is too coarse."""
    with contextlib.redirect_stdout(io.StringIO()):
        example = runpy.run_path(str(EXAMPLE))

    def split(seed: int) -> Split:
        rng = np.random.default_rng(seed)
        (X, y), (X_test, y_test) = example["visits"](rows, rng), example["visits"](5000, rng)
        return X, X_test, y, y_test

    space = {"tableencoder__n_knots": [2, 3, 5, 9, 13, 17, 25]}
    return Problem(split, example["model"], "dplogisticregression__", space)


def linear(name: str, solver: str) -> Problem:
    """Return a data set of the other benchmarks, and a linear model with its usual space."""
    data = MAKING[name]()
    more = {"batch_size": 0.05} if solver == "sgd" else {}
    classes = range(int(data.y.max()) + 1)
    model = DPLogisticRegression(solver=solver, classes=classes, **more)
    return Problem(data.split, model, "", SGD if solver == "sgd" else PRECONDITIONED)


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "visits 2,000": lambda: hospital(2000),
    "visits 4,000": lambda: hospital(4000),
    "visits 15,000": lambda: hospital(15_000),
    "digits": lambda: linear("digits", "auto"),
    "digits, sgd": lambda: linear("digits", "sgd"),
    "cancer": lambda: linear("cancer", "auto"),
    "cancer, sgd": lambda: linear("cancer", "sgd"),
    "parkinsons": lambda: linear("parkinsons", "auto"),
    "bike": lambda: linear("bike", "auto"),
    "bike, sgd": lambda: linear("bike", "sgd"),
}


def gains(problem: Problem, epsilon: float, seed: int) -> dict[Any, float]:
    """Return the points that a search on each part gains over the untuned model."""
    X, X_test, y, y_test = problem.split(seed)
    budget = {"epsilon": epsilon, "delta": DELTA, "random_state": seed}
    own = {problem.prefix + name: value for name, value in budget.items()}
    untuned = clone(problem.model).set_params(**own).fit(X, y).score(X_test, y_test)
    found = {"untuned": 100.0 * untuned}
    for part in PARTS:
        search = DPRandomSearchCV(
            problem.model, problem.space, strategy=RandomRuns(tuning_fraction=part), **budget
        )
        found[part] = 100.0 * (search.fit(X, y).score(X_test, y_test) - untuned)
    return found


def print_gains(name: str, epsilons: list[float], seeds: int) -> None:
    """Print one row for each epsilon."""
    problem = PROBLEMS[name]()
    for epsilon in epsilons:
        rows = [gains(problem, epsilon, seed) for seed in range(seeds)]
        cells = [f"{np.mean([row['untuned'] for row in rows]):.1f}"]
        for part in PARTS:
            values = np.array([row[part] for row in rows])
            cells.append(f"{values.mean():+.1f} ± {values.std(ddof=1) / seeds**0.5:.1f}")
        print(f"| {name} | {epsilon:g} | " + " | ".join(cells) + " |", flush=True)


def print_times() -> None:
    """Print the processor seconds of four searches, in units of a fit without privacy, too."""
    model = DPLogisticRegression(data_norm=5.0)
    schema = Schema({f"x{place}": (-1, 1) for place in range(30)})
    pipeline = make_private_pipeline(DPLogisticRegression(), schema)
    five, ten = ({"C": np.geomspace(1e-3, 1e3, number).tolist()} for number in (5, 10))
    settings: dict[str, Any] = {"epsilon": 1.0, "random_state": 0}
    searches = (
        ("doubling, 5 candidates", 30_000, DoublingThresholdSearchCV(model, five, **settings)),
        ("table, 10", 300_000, DPGridSearchCV(model, ten, strategy="table", **settings)),
        (
            "table, 10, of 30 encoded columns",
            100_000,
            DPGridSearchCV(pipeline, {"dplogisticregression__C": ten["C"]}, **settings),
        ),
        (
            "adaptive, 10",
            300_000,
            DPAdaptiveSearchCV(model, {"C": loguniform(1e-3, 1e3)}, n_trials=10, **settings),
        ),
    )
    print("| search | rows | seconds | LogisticRegression, seconds | ratio |")
    for name, n_samples, search in searches:
        rng = np.random.default_rng(0)
        X = rng.uniform(-1.0, 1.0, size=(n_samples, 50))
        y = X @ rng.normal(size=50) + rng.logistic(size=n_samples) > 0
        if hasattr(search.estimator, "steps"):
            X = pd.DataFrame(X[:, :30]).add_prefix("x")
        seconds = []
        for one in (search, LogisticRegression()):
            start = time.process_time()
            one.fit(X, y)
            seconds.append(time.process_time() - start)
        ours, peer = seconds
        figures = f"{ours:.1f} | {peer:.2f} | {ours / peer:.0f}"
        print(f"| {name} | {n_samples:,} | {figures} |", flush=True)


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", default=list(PROBLEMS), choices=PROBLEMS)
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.5, 1.0, 4.0])
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--times", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.times:
        print_times()
        return
    print("| data | ε | untuned | " + " | ".join(map(str, PARTS)) + " |")
    for name in options.data:
        print_gains(name, options.epsilons, options.seeds)


if __name__ == "__main__":
    main()
