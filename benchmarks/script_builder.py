"""Make the table of expected losses behind the page "Script builder" (docs/script_builder.md).

    python benchmarks/script_builder.py table [--quick]   simulate, and write the table
    python benchmarks/script_builder.py show              print the stored table

The stored table has classifiers only (`--tasks classifier`): regressions take hours.

**What is simulated.** Made-up tables, half of whose columns are numbers and half categories.
Five columns or fewer have an effect on the target, of which half is curved. The best possible
classifier is right for about 80 % of the records, and the best regression explains about 60 % of
the variance. `make_private_pipeline("classifier", schema)` or `"regressor"` is fitted at each
number of records and columns and each epsilon, with delta = 1/(10 n), rounded down to a power of
ten. The reference is scikit-learn without privacy: the better one of a linear model on the encoded
table and boosted trees.

The page shows the mean difference in points (of accuracy, or of R2), at the nearest simulated
setting with no more records and no larger epsilon. Real tables differ: the figures say what order
of loss to expect, and no guarantee follows from them.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.pipeline import make_pipeline

import skdptune
from skdptune import Schema, make_private_pipeline
from skdptune.model_selection._table_model import RULES
from skdptune.preprocessing import TableEncoder

TABLE = Path(__file__).parents[1] / "docs" / "_static" / "builder-table.js"
# Read by the browser as a script, as a page opened from a disk cannot fetch data.
OPENING = "globalThis.builderTable = "
SAMPLES = (300, 1000, 3000, 10_000)
COLUMNS = (4, 12, 40)
EPSILONS = (0.5, 1.0, 2.0, 4.0)
LEVELS = ("a", "b", "c", "d")
N_TEST = 20_000


def delta_for(n_samples: int) -> float:
    """Return the page's delta: the power of ten at or below 1/(10 n)."""
    return float(f"1e{math.floor(-math.log10(10 * n_samples) + 1e-9)}")


def made_up(task: str, n_samples: int, n_columns: int, seed: int) -> tuple[Schema, Any, Any]:
    """Return a schema, a table and its targets; the effects follow from the seed."""
    effects = np.random.default_rng(seed).normal(size=(n_columns, 4))
    rng = np.random.default_rng([seed, n_samples])
    columns: dict[str, Any] = {}
    described: dict[str, Any] = {}
    score = np.zeros(n_samples)
    for place in range(n_columns):
        name, first = f"column {place}", effects[place]
        if place % 2:
            codes = rng.integers(len(LEVELS), size=n_samples)
            columns[name], described[name] = np.array(LEVELS)[codes], list(LEVELS)
            effect = first[codes] - first.mean()
        else:
            value = rng.uniform(-1.0, 1.0, n_samples)
            columns[name], described[name] = value, (-1.0, 1.0)
            effect = first[0] * value * 1.7 + first[1] * (3 * value**2 - 1)
        if place < 5:
            score += effect
    score = (score - score.mean()) / score.std()
    if task == "classifier":
        y = np.where(rng.random(n_samples) < 1 / (1 + np.exp(-2.2 * score)), "yes", "no")
        target: Any = ["no", "yes"]
    else:
        y = np.clip(score + 0.8 * rng.normal(size=n_samples), -4, 4)
        target = (-4, 4)
    return Schema(described, target=target), pd.DataFrame(columns), y


def scores(task: str, n_samples: int, n_columns: int, seed: int) -> list[float]:
    """Return the score at each epsilon, and the one without privacy at the end."""
    schema, X, y = made_up(task, n_samples + N_TEST, n_columns, seed)
    train, test = slice(0, n_samples), slice(n_samples, None)
    found = []
    for epsilon in EPSILONS:
        model = make_private_pipeline(
            task,
            schema,
            epsilon=epsilon,
            delta=delta_for(n_samples),
            random_state=seed,
        )
        # Made-up records have no owner whose losses add up.
        with skdptune.config_context(ledger=False):
            model.fit(X[train], y[train])
        found.append(float(model.score(X[test], y[test])))
    encoder = TableEncoder(schema)
    references = {
        "classifier": (LogisticRegression(max_iter=1000), HistGradientBoostingClassifier()),
        "regressor": (RidgeCV(np.logspace(-2, 3, 11)), HistGradientBoostingRegressor()),
    }
    without = [
        make_pipeline(encoder, one).fit(X[train], y[train]).score(X[test], y[test])
        for one in references[task]
    ]
    return [*found, float(max(without))]


def simulate(
    tasks: list[str], n_seeds: int, samples: tuple[int, ...], columns: tuple[int, ...]
) -> dict[str, Any]:
    """Return the table as the page reads it."""
    lost: dict[str, Any] = {}
    for task in tasks:
        lost[task] = []
        for n_samples in samples:
            lost[task].append([])
            for n_columns in columns:
                began = time.perf_counter()
                runs = np.array(
                    [scores(task, n_samples, n_columns, seed) for seed in range(n_seeds)]
                )
                points = 100 * np.maximum(runs[:, -1:] - runs[:, :-1], 0.0).mean(axis=0)
                lost[task][-1].append([round(float(one), 1) for one in points])
                took = time.perf_counter() - began
                print(f"{task:10} n {n_samples:6} columns {n_columns:2} ({took:4.0f} s):", end=" ")
                print(*(f"{one:5.1f}" for one in points), f"of {100 * runs[:, -1].mean():.1f}")
    return {
        "samples": samples,
        "columns": columns,
        "epsilons": EPSILONS,
        "seeds": n_seeds,
        "lost": lost,
        "rules": {task: rule._asdict() for task, rule in RULES.items()},
    }


def main() -> None:
    """Run a command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=["table", "show"])
    parser.add_argument("--quick", action="store_true", help="a tiny table, which is not kept")
    parser.add_argument("--tasks", nargs="+", default=list(RULES), choices=list(RULES))
    parser.add_argument("--seeds", type=int, default=2)
    asked = parser.parse_args()
    if asked.command == "show":
        print(json.dumps(json.loads(TABLE.read_text().removeprefix(OPENING).rstrip(";\n"))))
    elif asked.quick:
        simulate(["classifier"], 1, SAMPLES[:1], COLUMNS[:1])
    else:
        table = json.dumps(
            simulate(asked.tasks, asked.seeds, SAMPLES, COLUMNS), separators=(",", ":")
        )
        TABLE.write_text(f"{OPENING}{table};\n")


if __name__ == "__main__":
    main()
