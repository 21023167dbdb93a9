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
import itertools
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack
from unittest import mock

import numpy as np
from data_sets import JUDGING, MAKING, Split, a9a
from sklearn.linear_model import LogisticRegression

from skdptune.linear_model import DPLogisticRegression, _preconditioned

Settings = dict[str, object]


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
    "clipping norm 0.05": {"_LEAST_CLIPPING": 0.05, "_LARGEST_CLIPPING": 0.05},
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
    """Print the time of a fit and of scikit-learn's, the least of several each."""
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
