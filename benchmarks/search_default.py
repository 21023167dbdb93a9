"""What a search without a space gains over the estimator as it comes, or loses.

    python benchmarks/search_default.py [--data NAME ...] [--epsilons .5 1 2 4] [--seeds 6]
        [--searches random table]

Points of test accuracy of `DPRandomSearchCV(estimator, epsilon=...)` and of `DPGridSearchCV`
beyond `DPLogisticRegression(epsilon)`, on the same splits with noise of their own, with standard
errors; in brackets how many of the searches were made, where others fit once; and what free tuning
would gain: the best of the suggested candidates on the test rows, on average over the seeds.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
from data_sets import JUDGING, MAKING, Data
from search_parts import hospital
from sklearn.base import clone

from skdptune.linear_model import DPLogisticRegression
from skdptune.model_selection import DPGridSearchCV, DPRandomSearchCV

DELTA = 1e-5
SEARCHES = {
    "random": DPRandomSearchCV,
    "table": DPGridSearchCV,
}
TABLES = {"visits 4,000": 4000, "visits 10,000": 10_000, "visits 30,000": 30_000}
DATA = MAKING | JUDGING
USUAL = ["cancer", "digits", "parkinsons", "a9a 10k", "bike", "protein", "elevators", "made rare"]
USUAL += ["made unscaled", "hastie", "made two clusters", "made redundant", *TABLES]


def problem(name: str) -> tuple[Any, Any, str]:
    """Return splits by seed, a model, and the prefix of its parameters."""
    if name in TABLES:
        found = hospital(TABLES[name])
        return found.split, found.model, found.prefix
    data: Data = DATA[name]()
    return data.split, DPLogisticRegression(classes=range(int(data.y.max()) + 1)), ""


def candidates(model: Any, n_samples: int, n_features: int, prefix: str) -> list[dict[str, Any]]:
    """Return the suggested candidates, which differ from the model in one parameter."""
    steps = model.named_steps if prefix else {"": model}
    found: list[dict[str, Any]] = [{}]
    for name, step in steps.items():
        if hasattr(step, "suggested_space"):
            start = f"{name}__" if prefix else ""
            for key, values in step.suggested_space(n_samples, n_features).items():
                found += [{start + key: value} for value in values[1:]]
    return found


def print_gains(name: str, epsilon: float, seeds: int, searches: list[str]) -> None:
    """Print a row: untuned, the gain of each search, how many were made, and the free gain."""
    split, model, prefix = problem(name)
    untuned, free = [], []
    gains: dict[str, list[float]] = {each: [] for each in searches}
    made = dict.fromkeys(searches, 0)
    for seed in range(seeds):
        X, X_test, y, y_test = split(seed)
        budget = {"epsilon": epsilon, "delta": DELTA, "random_state": seed}
        own = {prefix + key: value for key, value in budget.items()}
        tried = candidates(model, *X.shape, prefix)
        free.append(
            [
                clone(model).set_params(**own, **changes).fit(X, y).score(X_test, y_test)
                for changes in tried
            ]
        )
        untuned.append(free[-1][0])
        for each in searches:
            search = SEARCHES[each](model, **budget | {"random_state": seed + 100})
            made[each] += search.plan(*X.shape, compare=False).advice == ""
            gains[each].append(search.fit(X, y).score(X_test, y_test) - untuned[-1])
    best = 100.0 * (np.mean(free, axis=0).max() - np.mean(untuned))
    cells = []
    for each, found in gains.items():
        error = 100.0 * np.std(found, ddof=1) / seeds**0.5
        cells.append(f"{100.0 * np.mean(found):+.2f} ± {error:.2f} ({made[each]})")
    untuned_mean = f"{100.0 * np.mean(untuned):.1f}"
    print(
        "| " + " | ".join([name, str(len(y)), f"{epsilon:g}", untuned_mean, *cells]),
        f"| {best:+.2f} |",
        flush=True,
    )


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", default=USUAL, choices=[*DATA, *TABLES])
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.5, 1.0, 2.0, 4.0])
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--searches", nargs="+", default=list(SEARCHES), choices=SEARCHES)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| data | rows | ε | untuned | " + " | ".join(options.searches) + " | free gain |")
    for name in options.data:
        for epsilon in options.epsilons:
            print_gains(name, epsilon, options.seeds, options.searches)


if __name__ == "__main__":
    main()
