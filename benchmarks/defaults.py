"""How near the classifiers' defaults come to the best private setting in hindsight.

    python benchmarks/defaults.py regret [--data NAME ...] [--seeds 5] [--epsilons .5 1 2 4]
    python benchmarks/defaults.py rules  [--data NAME ...]
    python benchmarks/defaults.py time

"regret" compares the untuned default with every other solver at its best on the test rows, of a
list of settings that nobody could choose from without paying. "rules" changes one number of the
default's rules at a time. "time" compares fits with scikit-learn's logistic regression.

The rules were made on MAKING and are judged on JUDGING. Those of the UCI, MNIST and Adult are read
from SKDPTUNE_DATA, or ../shared/data, and left out where they are missing. Regressions ask whether
a target is above the median. "raw" rows are as they are, in public units; others are standardised
(not a private step: all settings get the same rows).
"""

from __future__ import annotations

import argparse
import csv
import gzip
import itertools
import os
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import numpy as np
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_wine,
    make_classification,
    make_hastie_10_2,
)
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from skdptune.linear_model import DPLogisticRegression, _preconditioned

FOLDER = Path(os.environ.get("SKDPTUNE_DATA", Path(__file__).parents[2] / "shared" / "data"))
TEST_ROWS = 4000
Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
Settings = dict[str, object]


@dataclass(frozen=True)
class Data:
    """Rows and labels 0, 1, ..., of which each seed trains on another part.

    `rows` is the largest number of rows to train on; `raw` rows are not standardised.
    """

    X: np.ndarray
    y: np.ndarray
    rows: int | None = None
    raw: bool = False

    def split(self, seed: int) -> Split:
        """Return training and test rows and their labels."""
        share = min(0.25, TEST_ROWS / len(self.y))
        train, test, y_train, y_test = train_test_split(
            self.X, self.y, random_state=seed, stratify=self.y, test_size=share
        )
        train, y_train = train[: self.rows], y_train[: self.rows]
        if not self.raw:
            mean, spread = train.mean(axis=0), np.maximum(train.std(axis=0), 1e-9)
            train, test = (train - mean) / spread, (test - mean) / spread
        return train.astype(np.float32), test.astype(np.float32), y_train, y_test


def data(X: np.ndarray, y: np.ndarray, rows: int | None = None, raw: bool = False) -> Data:
    """Return data whose labels may be any."""
    return Data(X, np.unique(y, return_inverse=True)[1], rows, raw)


def stored(name: str) -> dict[str, np.ndarray]:
    """Return the arrays of a file."""
    with np.load(FOLDER / name) as file:
        return dict(file)


def above_median(X: np.ndarray, y: np.ndarray, rows: int | None = None) -> Data:
    """Return a regression as a question of more or less."""
    return data(X, y > np.median(y), rows)


def regression(name: str) -> Data:
    """Return a stored regression as a question of more or less."""
    arrays = stored(f"uci_{name}.npz")
    return above_median(arrays["X"], arrays["y"], 10_000)


def a9a(rows: int | None) -> Data:
    """Return the 123 binary columns of Adult."""
    arrays = stored("a9a.npz")
    bits = np.unpackbits(np.concatenate([arrays["X_train"], arrays["X_test"]]), axis=1)
    y = np.concatenate([arrays["y_train"], arrays["y_test"]])
    return data(bits[:, : int(arrays["n_features"])], y, rows, raw=True)


RANGES = {"age": 100, "fnlwgt": 1.5e6, "education_num": 16, "capital_gain": 1e5}
RANGES |= {"capital_loss": 5e3, "hours_per_week": 100}


def adult(rows: int | None) -> Data:
    """Return Adult from its raw columns: numbers over public ranges, a column for each word."""
    with gzip.open(FOLDER / "adult.csv.gz", "rt") as file:
        records = list(csv.DictReader(file))
    columns = []
    for name in records[0]:
        values = np.array([record[name] for record in records])
        if name in RANGES:
            columns.append(np.minimum(values.astype(float) / RANGES[name], 1.0))
        elif name not in ("income", "split"):
            columns += [(values == word).astype(float) for word in np.unique(values)]
    y = [record["income"] == ">50K" for record in records]
    return data(np.stack(columns, axis=1), np.array(y), rows, raw=True)


def images(name: str, rows: int) -> Data:
    """Return images, in [0, 1]."""
    arrays = stored(name)
    X = arrays["X_train"][: rows + TEST_ROWS].reshape(-1, 784) / 255.0
    return data(X, arrays["y_train"][: rows + TEST_ROWS], rows, raw=True)


def made(
    rows: int, columns: int, classes: int, informative: int, seed: int, **options: object
) -> Data:
    """Return made-up data; `decades` is how far units of columns lie apart to each side."""
    decades = float(options.pop("decades", 0.0))
    options = {"n_redundant": 2, "n_clusters_per_class": 1, "flip_y": 0.02} | options
    X, y = make_classification(
        rows + TEST_ROWS,
        columns,
        n_informative=informative,
        n_classes=classes,
        random_state=seed,
        **options,
    )
    X = X * 10.0 ** np.random.default_rng(seed).uniform(-decades, decades, columns)
    return data(X, y, rows, raw=decades > 0.0)


MAKING: dict[str, Callable[[], Data]] = {
    "cancer": lambda: data(*load_breast_cancer(return_X_y=True)),
    "digits": lambda: data(*load_digits(return_X_y=True)),
    "digits raw": lambda: data(load_digits().data / 16.0, load_digits().target, raw=True),
    "a9a 10k": lambda: a9a(10_000),
    "airfoil": lambda: regression("airfoil"),
    "bike": lambda: regression("bike"),
    "elevators": lambda: regression("elevators"),
    "parkinsons": lambda: regression("parkinsons"),
    "protein": lambda: regression("protein"),
    "made 500": lambda: made(500, 10, 2, 4, 8),
    "made 2000": lambda: made(2000, 20, 2, 5, 1),
    "made useless": lambda: made(2000, 200, 2, 5, 2),
    "made rare": lambda: made(5000, 20, 2, 6, 3, weights=[0.95]),
    "made unscaled": lambda: made(5000, 20, 2, 6, 5, decades=1.0),
    "made 5 classes": lambda: made(5000, 30, 5, 10, 4),
}
JUDGING: dict[str, Callable[[], Data]] = {
    "wine": lambda: data(*load_wine(return_X_y=True)),
    "diabetes": lambda: above_median(*load_diabetes(return_X_y=True)),
    "adult raw 10k": lambda: adult(10_000),
    "mnist 10k": lambda: images("mnist.npz", 10_000),
    "fashion 10k": lambda: images("fashion_mnist.npz", 10_000),
    "hastie": lambda: data(*make_hastie_10_2(8000, random_state=0)),
    "made 1000": lambda: made(1000, 15, 3, 6, 21, class_sep=1.5),
    "made two clusters": lambda: made(4000, 25, 2, 8, 22, n_clusters_per_class=2),
    "made useless, 4 classes": lambda: made(8000, 300, 4, 8, 23),
    "made rare, 4 classes": lambda: made(10_000, 40, 4, 8, 24, weights=[0.7, 0.2, 0.07]),
    "made redundant": lambda: made(6000, 60, 2, 6, 25, n_redundant=40),
    "made unscaled, 3 classes": lambda: made(10_000, 50, 3, 8, 26, decades=0.5),
    "made 20k": lambda: made(20_000, 100, 3, 20, 27, class_sep=0.7),
}


def hindsight(weights: int) -> Iterator[Settings]:
    """Iterate over the settings among which the best in hindsight is sought.

    Of models of thousands of weights, the minima take minutes and are far behind.
    """
    share = {"batch_size": 0.1, "epochs": 20}
    for rate, norm in itertools.product((0.2, 1.0, 5.0), (0.3, 1.0, 3.0)):
        yield {"solver": "sgd", "learning_rate": rate, "max_grad_norm": norm, **share}
    for rate, norm in itertools.product((0.003, 0.01, 0.03, 0.1), (0.3, 1.0)):
        yield {"solver": "adam", "learning_rate": rate, "max_grad_norm": norm, **share}
    exact = ("objective", "output") if weights <= 2000 else ()
    for solver, C in itertools.product(exact, (0.001, 0.01, 0.1, 1.0)):
        yield {"solver": solver, "C": C}


RULES: dict[str, Settings] = {
    "as they are": {},
    "moments 2 %": {"_MOMENT_SHARE": 0.02},
    "moments 20 %": {"_MOMENT_SHARE": 0.2},
    "no moments": {"_LARGEST_NOISE": 0.0},
    "always moments": {"_LARGEST_NOISE": np.inf},
    "floor 0.5": {"_FLOOR": 0.5},
    "floor 2": {"_FLOOR": 2.0},
    "noise distance 2": {"_NOISE_DISTANCE": 2.0, "_UNSCALED_NOISE_DISTANCE": 1.0},
    "noise distance 8": {"_NOISE_DISTANCE": 8.0, "_UNSCALED_NOISE_DISTANCE": 4.0},
    "clipping norm 0.05": {"_LARGEST_CLIPPING": 0.05},
    "clipping norm 0.3": {"_LEAST_CLIPPING": 0.3, "_LARGEST_CLIPPING": 0.3},
    "longest step 2": {"_LONGEST_STEP": 2.0},
    "longest step 10": {"_LONGEST_STEP": 10.0},
    "50 steps": {"epochs": 50},
    "200 steps": {"epochs": 200},
}


def scores(splits: list[Split], epsilon: float, settings: Settings) -> np.ndarray:
    """Return the test accuracies, in %, on several splits, each with its own noise."""
    found = []
    for seed, (train, test, y, y_test) in enumerate(splits):
        model = DPLogisticRegression(epsilon, classes=np.unique(y), random_state=seed, **settings)
        found.append(100.0 * model.fit(train, y).score(test, y_test))
    return np.array(found)


def with_rules(splits: list[Split], epsilon: float, rules: Settings) -> np.ndarray:
    """Return the accuracies of the default with other numbers in its rules."""
    with ExitStack() as stack:
        for name in rules.keys() - {"epochs"}:
            stack.enter_context(mock.patch.object(_preconditioned, name, rules[name]))
        kept = {name: rules[name] for name in rules.keys() & {"epochs"}}
        return scores(splits, epsilon, kept)


def _pairs(splits: list[Split]) -> Iterator[tuple[np.ndarray, np.ndarray, tuple[np.ndarray, ...]]]:
    for train, test, y, y_test in splits:
        yield train, y, (test, y_test)


def print_regret(name: str, splits: list[Split], epsilons: list[float]) -> None:
    """Print a row for each epsilon: the default, and the best of each solver in hindsight."""
    ceiling = 100.0 * np.mean(
        [LogisticRegression(max_iter=300).fit(X, y).score(*test) for X, y, test in _pairs(splits)]
    )
    train, _, y, _ = splits[0]
    print(f"\n{name}: {train.shape[0]:,} x {train.shape[1]}, {len(np.unique(y))} classes;", end="")
    print(f" scikit-learn without privacy {ceiling:.1f}")
    for epsilon in epsilons:
        own = scores(splits, epsilon, {})
        best: dict[str, float] = {}
        for settings in hindsight(train.shape[1] * len(np.unique(y))):
            solver = str(settings["solver"])
            found = scores(splits, epsilon, settings).mean()
            best[solver] = max(best.get(solver, 0.0), found)
        error = own.std(ddof=1) / np.sqrt(len(splits))
        others = "  ".join(f"{solver} {value:5.1f}" for solver, value in best.items())
        gap = max(best.values()) - own.mean()
        print(
            f"  epsilon {epsilon:<4g} default {own.mean():5.1f} +- {error:.1f}  best of {others}"
            f"  gap {gap:+5.1f}",
            flush=True,
        )


def print_rules(sets: dict[str, list[Split]], epsilons: list[float]) -> None:
    """Print what each change of a rule gains on average, and where it is worst."""
    cells = list(itertools.product(sets, epsilons))
    base = {(n, e): with_rules(sets[n], e, {}).mean() for n, e in cells}
    for label, rules in RULES.items():
        gains = {
            cell: with_rules(sets[cell[0]], cell[1], rules).mean() - base[cell] for cell in cells
        }
        worst, top = min(cells, key=gains.__getitem__), max(cells, key=gains.__getitem__)
        mean = float(np.mean(list(gains.values())))
        print(
            f"{label:20} {mean:+6.2f} on average, from {gains[worst]:+.1f}"
            f" ({worst[0]}, {worst[1]:g}) to {gains[top]:+.1f} ({top[0]}, {top[1]:g})",
            flush=True,
        )


def print_times(sets: dict[str, list[Split]], repetitions: int) -> None:
    """Print the time of a fit beside scikit-learn's, the least of several each."""
    for name, splits in sets.items():
        train, _, y, _ = splits[0]
        rows = train.astype(np.float64)
        times = []
        for model in (LogisticRegression(), DPLogisticRegression(random_state=0)):
            spent = []
            for _ in range(repetitions):
                start = time.perf_counter()
                model.fit(rows, y)
                spent.append(time.perf_counter() - start)
            times.append(min(spent))
        print(f"{name:12} scikit-learn {times[0]:.4f} s, default {times[1]:.4f} s,", end="")
        print(f" ratio {times[1] / times[0]:.1f}", flush=True)


def main() -> None:
    """Print what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["regret", "rules", "time"])
    known = MAKING | JUDGING | {"a9a": lambda: a9a(None)}
    parser.add_argument("--data", nargs="+", choices=known, metavar="NAME")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.5, 1.0, 2.0, 4.0])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    usual = {"regret": JUDGING, "rules": MAKING, "time": ["digits", "a9a"]}[options.what]
    sets = {}
    for name in options.data or usual:
        try:
            found = known[name]()
            sets[name] = [found.split(seed) for seed in range(options.seeds)]
        except FileNotFoundError:
            print(f"{name}: left out, its file is missing.")
    if options.what == "time":
        print_times(sets, 2 * options.seeds)
    elif options.what == "rules":
        print_rules(sets, options.epsilons)
    else:
        for name, splits in sets.items():
            print_regret(name, splits, options.epsilons)


if __name__ == "__main__":
    main()
