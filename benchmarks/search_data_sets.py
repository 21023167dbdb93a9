"""Accuracy of the ways to tune on ten data sets, at the same total.

    python benchmarks/search_data_sets.py [--save FILE.json] [--data NAME ...] [--epsilons 1]
        [--seeds 4] [--models sgd default] [--ways NAME ...]
    python benchmarks/search_data_sets.py --save FILE.json --show

"sgd" is DP-SGD over a typed-in space of learning rates and clipping norms, "default" the library's
own model without a space. Every search is written to FILE.json, a line each, and what is there is
not run again. Each seed is another split and other noise. Printed are means of test accuracy in %,
what is gained over the untuned model, paired by seed, with its standard error, and where that is
below the aim.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from data_sets import JUDGING, MAKING, Split
from search import DELTA, MEAN_RUNS, SPACE, adaptive, in_grid, model_of, ours
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV

from skdptune.linear_model import DPLogisticRegression
from skdptune.model_selection import (
    AdaptiveTrials,
    DPAdaptiveSearchCV,
    DPGridSearchCV,
    DPRandomSearchCV,
    FullTable,
)

DATA = MAKING | JUDGING
TEN = ["cancer", "digits", "parkinsons", "a9a 10k", "bike", "elevators", "made two clusters"]
TEN += ["made rare, 4 classes", "made unscaled, 3 classes", "made 20k"]
# Points below the untuned model that a search may lose.
AIM = 0.3
Way = Callable[[Any, float, int], Any]


def uncharged(model: Any, epsilon: float, seed: int) -> RandomizedSearchCV:
    """Return tuning that is not charged for."""
    model.set_params(random_state=seed)
    return RandomizedSearchCV(model, SPACE, n_iter=MEAN_RUNS, cv=3, random_state=seed)


SGD: dict[str, Way] = {
    "untuned": lambda model, epsilon, seed: model.set_params(random_state=seed),
    "random": lambda m, e, s: ours(m, e, s, n_iter_distribution="auto"),
    "table": in_grid,
    "table, max": lambda m, e, s: in_grid(m, e, s, FullTable(choose_by="max")),
    "adaptive": adaptive,
    "adaptive, max": lambda m, e, s: adaptive(m, e, s, choose_by="max"),
    "adaptive, tpe": lambda m, e, s: adaptive(m, e, s, sampler="tpe"),
    "adaptive, random": lambda m, e, s: adaptive(m, e, s, sampler="random"),
    "uncharged": uncharged,
}


def suggested(kind: Callable[..., Any], **changes: Any) -> Way:
    """Return a search without a space."""
    return lambda model, epsilon, seed: kind(
        model, epsilon=epsilon, delta=DELTA, random_state=seed + 100, **changes
    )


class Uncharged:
    """Tries all suggested candidates, one parameter at a time, without being charged."""

    def __init__(self, model: Any, seed: int) -> None:
        self.model, self.seed = model.set_params(random_state=seed), seed

    def fit(self, X: np.ndarray, y: np.ndarray) -> Any:
        """Return a fitted search of scikit-learn."""
        space = self.model.suggested_space(*X.shape)
        grid = [{name: values} for name, values in space.items()]
        return GridSearchCV(self.model, grid, cv=3).fit(X, y)


DEFAULT: dict[str, Way] = {
    "untuned": lambda model, epsilon, seed: model.set_params(random_state=seed),
    "random": suggested(DPRandomSearchCV),
    "table": suggested(DPGridSearchCV),
    "table, max": suggested(DPGridSearchCV, strategy=FullTable(choose_by="max")),
    "adaptive": suggested(DPAdaptiveSearchCV),
    "adaptive, max": suggested(DPAdaptiveSearchCV, strategy=AdaptiveTrials(choose_by="max")),
    "uncharged": lambda model, epsilon, seed: Uncharged(model, seed),
}
MODELS: dict[str, tuple[Callable[[float, list[int]], Any], dict[str, Way]]] = {
    "sgd": (model_of, SGD),
    "default": (lambda e, labels: DPLogisticRegression(e, DELTA, classes=labels), DEFAULT),
}


class Results:
    """Accuracies by data set, model, way, epsilon and seed, kept in a file of JSON lines."""

    def __init__(self, file: Path | None) -> None:
        self.file, self.found = file, {}
        if file is not None and file.exists():
            for line in file.read_text().splitlines():
                *key, score, _ = json.loads(line)
                self.found[tuple(key)] = score

    def add(self, key: tuple[Any, ...], run: Callable[[], float]) -> None:
        """Run what is not there."""
        if key in self.found:
            return
        start = time.process_time()
        self.found[key] = round(run(), 3)
        if self.file is not None:
            seconds = round(time.process_time() - start, 2)
            with self.file.open("a") as lines:
                lines.write(json.dumps([*key, self.found[key], seconds]) + "\n")

    def of(self, *names: Any) -> dict[int, float]:
        """Return the accuracies of each seed."""
        return {key[-1]: score for key, score in self.found.items() if key[:-1] == names}


def run_all(results: Results, options: argparse.Namespace) -> None:
    """Run what is missing, one seed of all data sets after the other."""
    for seed in range(options.seeds):
        for epsilon in options.epsilons:
            for name in options.data:
                split = DATA[name]().split(seed)
                for model in options.models:
                    ways = options.ways or MODELS[model][1]
                    for way in ways:
                        run_one(results, split, (name, model, way, epsilon, seed))
            print(f"seed {seed}, epsilon {epsilon:g}: done", flush=True)


def run_one(results: Results, split: Split, key: tuple[Any, ...]) -> None:
    """Run one search, if its model has this way and it was not run before."""
    _, model, way, epsilon, seed = key
    make, ways = MODELS[model]
    X, X_test, y, y_test = split

    def accuracy() -> float:
        untuned = make(epsilon, np.unique(y).tolist())
        return 100.0 * ways[way](untuned, epsilon, seed).fit(X, y).score(X_test, y_test)

    if way in ways:
        results.add(key, accuracy)


def gain(results: Results, way: str, *names: Any) -> tuple[float, float, float]:
    """Return the mean, its gain over the untuned model, paired by seed, and its error."""
    name, model, epsilon = names
    untuned = results.of(name, model, "untuned", epsilon)
    found = results.of(name, model, way, epsilon)
    gains = [found[seed] - untuned[seed] for seed in found.keys() & untuned.keys()]
    if not gains:
        return np.nan, np.nan, np.nan
    error = np.std(gains, ddof=1) / np.sqrt(len(gains)) if len(gains) > 1 else np.nan
    return float(np.mean(list(found.values()))), float(np.mean(gains)), float(error)


def print_all(results: Results, options: argparse.Namespace) -> None:
    """Print a table for each model and epsilon, and what is below the aim."""
    for model in options.models:
        ways = [way for way in MODELS[model][1] if way in (options.ways or MODELS[model][1])]
        for epsilon in options.epsilons:
            print(f"\n{model}, epsilon {epsilon:g}: gains over untuned in points ± error\n")
            print("| data | " + " | ".join(ways) + " |")
            print("|---|" + "---:|" * len(ways))
            means: dict[str, list[float]] = {way: [] for way in ways}
            for name in options.data:
                cells = []
                for way in ways:
                    mean, gained, error = gain(results, way, name, model, epsilon)
                    means[way].append(gained)
                    cell = f"{gained:+.1f} ± {error:.1f}"
                    cells.append(f"{mean:.1f}" if way == "untuned" else cell)
                print(f"| {name} | " + " | ".join(cells) + " |")
            mean_cells = [f"{np.nanmean(means[way]):+.2f}" for way in ways[1:]]
            print("| mean | | " + " | ".join(mean_cells) + " |")
            for way in ways[1:]:
                far = [
                    f"{name} {each:.1f}"
                    for name, each in zip(options.data, means[way], strict=True)
                    if each < -AIM
                ]
                print(f"  {way}: below the aim on {len(far)}: {'; '.join(far)}")


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", default=TEN, choices=DATA, metavar="NAME")
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1.0])
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=MODELS)
    parser.add_argument("--ways", nargs="+", metavar="WAY")
    parser.add_argument("--save", type=Path, metavar="FILE.json")
    parser.add_argument("--show", action="store_true", help="run nothing; show what was saved")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    results = Results(options.save)
    if not options.show:
        run_all(results, options)
    print_all(results, options)


if __name__ == "__main__":
    main()
