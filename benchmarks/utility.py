"""Accuracy and R2 as the budget grows: the untuned default, the default search, and peers.

    python benchmarks/utility.py [--data NAME ...] [--methods NAME ...] [--seeds 10]
        [--epsilons .5 1 2 4] [--jobs 1]
    python benchmarks/utility.py --quick
    python benchmarks/utility.py --save FILE.json --show [--plot DIR]

Every fit is written to FILE.json, a line each, and what is there is not run again. "own settings",
"other solvers" and the peers are the best of a list in hindsight, on the test rows: all settings
are run on the first three seeds, the best three of them on all. The number of seeds becomes
smaller where fits are long, and is printed. "--show" runs nothing. Each seed is another split and
other noise; data sets that come with test rows keep them.

Columns and targets are standardised by their training rows, which is not a private step, but
those of images, of a9a and of Adult: all methods get the same rows. Ranges of columns for boosting
machines are read off these rows, but on Adult. Predictions of regressions are clipped to 3
standard deviations, for all methods. Data are read from SKDPTUNE_DATA, or ../shared/data; what is
not there, and peers that are not installed, are left out.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from utility_methods import METHODS, Method, Settings, Task
from utility_problems import PROBLEMS

EPSILONS = (0.5, 1.0, 2.0, 4.0)
SCREENING_SEEDS, FINALISTS = 3, 3
QUICK = ("breast cancer", "made 1000", "diabetes", "airfoil")
NAMES = [method.name for method in METHODS]
PEERS = ("diffprivlib", "interpret", "Opacus")
Key = tuple[str, str, str, float | None, int]


@dataclass
class Results:
    """Scores by data set, method, settings, epsilon and seed, kept in a file of JSON lines."""

    file: Path | None = None
    scores: dict[Key, float] = field(default_factory=dict)
    sizes: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Read what is there."""
        if self.file is not None and self.file.exists():
            for line in self.file.read_text().splitlines():
                self._add(json.loads(line))

    def _add(self, record: dict[str, Any]) -> None:
        names = ("data", "method", "settings", "epsilon", "seed")
        self.scores[tuple(record[name] for name in names)] = record["score"]
        self.sizes[record["data"]] = record["size"]

    def score(self, key: Key, size: str, run: Callable[[], float]) -> float:
        """Return a score, run and written down if it is new."""
        if key not in self.scores:
            start = time.process_time()
            record = dict(
                zip(("data", "method", "settings", "epsilon", "seed"), key, strict=True),
                score=round(run(), 4),
                seconds=round(time.process_time() - start, 3),
                size=size,
            )
            self._add(record)
            if self.file is not None:
                with self.file.open("a") as lines:
                    lines.write(json.dumps(record) + "\n")
        return self.scores[key]

    def best(
        self, data: str, method: str, epsilon: float | None, words: str = ""
    ) -> tuple[str, dict[int, float]]:
        """Return the settings that are best on average over all seeds, and their scores.

        With `words`, only of those settings that have them.
        """
        found: dict[str, dict[int, float]] = defaultdict(dict)
        for (name, column, settings, budget, seed), score in self.scores.items():
            if (name, column, budget) == (data, method, epsilon) and words in settings:
                found[settings][seed] = score
        most = max(map(len, found.values()), default=0)
        whole = [item for item in found.items() if len(item[1]) == most]
        return max(whole, key=lambda item: np.mean(list(item[1].values())), default=("{}", {}))

    def column(self, data: str, method: str, epsilon: float) -> dict[int, float]:
        """Return what `best` does, where a method may have no budget."""
        private = METHODS[NAMES.index(method)].private
        return self.best(data, method, epsilon if private else None)[1]


def run_method(
    results: Results, name: str, method: Method, epsilon: float | None, seeds: int
) -> None:
    """Run all settings of a method on the first seeds, and the best of them on all."""
    problem, load = PROBLEMS[name], folds(name)

    def task(seed: int) -> Task:
        return Task(load(seed), problem.regression, epsilon, problem.delta, seed)

    first = task(0)
    count = method.seeds(first, min(seeds, problem.most_seeds or seeds))
    classes = "" if problem.regression else f", {len(first.labels)} classes"
    size = "{:,} x {}".format(*first.fold.X.shape) + classes

    def mean(settings: Settings, seeds: int) -> float:
        found = []
        for seed in range(seeds):
            key = (name, method.name, json.dumps(settings), epsilon, seed)
            found.append(
                results.score(key, size, lambda s=seed: method.score(task(s), **settings))
            )
        return float(np.mean(found))

    several = method.settings(first) if count else []
    if len(several) > 1:
        screened = min(SCREENING_SEEDS, count)
        several.sort(key=lambda settings: -mean(settings, screened))
    for settings in several[:FINALISTS]:
        mean(settings, count)


@functools.lru_cache(1)
def folds(name: str) -> Callable[[int], Any]:
    """Return the folds of a data set, the latest of which are kept."""
    return functools.lru_cache(10)(PROBLEMS[name].load())


def run_problem(
    name: str, file: Path | None, epsilons: list[float], seeds: int, methods: list[str]
) -> Results:
    """Run methods on a data set."""
    warnings.simplefilter("ignore")
    results, start = Results(file), time.process_time()
    try:
        folds(name)
    except FileNotFoundError:
        print(f"{name}: left out, its file is missing.")
        return results
    for method in METHODS:
        if method.name not in methods:
            continue
        for epsilon in epsilons if method.private else [None]:
            run_method(results, name, method, epsilon, seeds)
    print(f"{name}: {time.process_time() - start:.0f} s", flush=True)
    return results


def run_all(
    names: list[str],
    file: Path | None,
    epsilons: list[float],
    seeds: int,
    methods: list[str],
    jobs: int,
) -> Results:
    """Run all data sets, several at once if asked for."""
    if jobs == 1:
        several = [run_problem(name, file, epsilons, seeds, methods) for name in names]
    else:
        from joblib import Parallel, delayed

        several = Parallel(jobs)(
            delayed(run_problem)(name, file, epsilons, seeds, methods) for name in names
        )
    results = Results()
    for found in several:
        results.scores.update(found.scores)
        results.sizes.update(found.sizes)
    return results


def mean_and_error(values: Any) -> tuple[float, float]:
    """Return a mean and its standard error; NaN of one value."""
    found = np.asarray(list(values), dtype=float)
    error = found.std(ddof=1) / np.sqrt(len(found)) if len(found) > 1 else np.nan
    return float(found.mean()), float(error)


def cell(columns: list[dict[int, float]]) -> str:
    """Return the means at each epsilon, their largest standard error, and the number of seeds."""
    if not all(columns):
        return ""
    pairs = [mean_and_error(column.values()) for column in columns]
    means = " ".join(f"{mean:.1f}" if mean > -99.5 else "<−99" for mean, _ in pairs)
    # Of one seed there is none.
    error = max(error for _, error in pairs)
    shown = "" if np.isnan(error) else f" ±{error:.1f}"
    return f"{means}{shown} ({len(columns[0])})".replace("-", "−")


def print_table(results: Results, names: list[str], epsilons: list[float]) -> None:
    """Print a row for each data set, with a figure for each epsilon in every cell."""
    budgets = ", ".join(f"{epsilon:g}" for epsilon in epsilons)
    print(f"\nTest accuracy, or R2, in % at epsilon = {budgets}; largest standard error (seeds)\n")
    print("| data | training rows x columns |", *(f"{name} |" for name in NAMES))
    print("|---|---|" + "---|" * len(NAMES))
    for name in names:
        problem = PROBLEMS[name]
        label = ("*judges:* " if problem.judges else "") + name
        label += ", R²" if problem.regression else ""
        cells = []
        for method in METHODS:
            shown = epsilons if method.private else epsilons[:1]
            cells.append(cell([results.column(name, method.name, epsilon) for epsilon in shown]))
        print(f"| {label} | {results.sizes[name]} |", *(f"{each} |" for each in cells))


def gap(results: Results, name: str, epsilon: float, ours: str, other: str) -> tuple[float, float]:
    """Return how far a method is ahead of one of ours, paired by seed, with its error."""
    own, theirs = (results.column(name, method, epsilon) for method in (ours, other))
    both = sorted(own.keys() & theirs.keys())
    return mean_and_error([theirs[s] - own[s] for s in both]) if both else (np.nan, np.nan)


def name_of(results: Results, data: str, method: str, epsilon: float) -> str:
    """Return a method's name, with the kind of model where it has several."""
    settings = json.loads(results.best(data, method, epsilon)[0])
    kind = settings.get("solver") or settings.get("kind")
    if method == "Opacus":
        kind = "net" if settings.get("hidden") else "linear"
    return method + (f" ({kind})" if kind else "")


def print_gaps(results: Results, names: list[str], epsilons: list[float]) -> None:
    """Print where anything is ahead of the default, and by how much."""
    print("\nAhead of the untuned default, in points, paired by seed (± standard error):")
    private = [method.name for method in METHODS[1:] if method.private]
    columns = [(name,) for name in private if name not in PEERS]
    for methods in [*columns, PEERS]:
        label = "peers" if len(methods) > 1 else methods[0]
        for name in names:
            found = []
            for epsilon in epsilons:
                gaps = [(*gap(results, name, epsilon, "default", m), m) for m in methods]
                ahead = [each for each in gaps if each[0] > 0.0]
                if ahead:
                    mean, error, method = max(ahead)
                    by = name_of(results, name, method, epsilon).removeprefix(label).strip()
                    found.append(f"{epsilon:g}: {mean:.1f} ± {error:.1f} {by}".strip())
            if found:
                print(f"  {label}: {name}  ", "; ".join(found))


def print_linear_peer(results: Results, names: list[str], epsilons: list[float]) -> None:
    """Print how far Opacus is ahead where it trains what the default is, a linear model."""
    print("\nOpacus with a linear head less the untuned default, in points, first seeds:")
    for name in names:
        found = []
        for epsilon in epsilons:
            own = results.column(name, "default", epsilon)
            theirs = results.best(name, "Opacus", epsilon, '"hidden": 0')[1]
            if theirs:
                mean, error = mean_and_error([theirs[s] - own[s] for s in theirs])
                found.append(f"{epsilon:g}: {mean:+.1f} ± {error:.1f}")
        print(f"  {name:26}", "  ".join(found))


def behind(results: Results, name: str, epsilon: float, others: list[str]) -> float:
    """Return how far the default is behind the best of others; NaN if none was run."""
    gaps = [gap(results, name, epsilon, "default", other)[0] for other in others]
    return max((each for each in gaps if not np.isnan(each)), default=np.nan)


def print_verdict(results: Results, names: list[str], epsilons: list[float]) -> None:
    """Print on how many data sets the default is within a point of the best in hindsight."""
    for label, others, limit in (
        ("Within 1 point of the best of its other settings and solvers", NAMES[2:4], 1.0),
        ("The same, and of DP-EBM", NAMES[2:5], 1.0),
        ("Behind no peer", list(PEERS), 0.0),
    ):
        print(f"\n{label}; where not, by how many points:")
        for judges, regression in itertools.product((True, False), (False, True)):
            kind = (judges, regression)
            chosen = [n for n in names if (PROBLEMS[n].judges, PROBLEMS[n].regression) == kind]
            label = "regressions" if regression else "classifications"
            label += f" that {'judge' if judges else 'made the rules'}"
            for epsilon in epsilons if chosen else ():
                far = {name: behind(results, name, epsilon, others) for name in chosen}
                far = {name: points for name, points in far.items() if not np.isnan(points)}
                misses = [f"{n} {points:.1f}" for n, points in far.items() if points > limit]
                count = f"{len(far) - len(misses)} of {len(far)}"
                print(f"  {label}, epsilon {epsilon:g}: {count} ", "; ".join(misses))


def print_searches(results: Results, names: list[str], epsilons: list[float]) -> None:
    """Print what the default search gains and loses, paired by seed."""
    print("\nDefault search less untuned default, in points, and what free tuning gains:")
    for name in names:
        found = []
        for epsilon in epsilons:
            mean, error = gap(results, name, epsilon, "default", "search")
            free, _ = gap(results, name, epsilon, "default", "own settings")
            found.append(f"{epsilon:g}: {mean:+.2f} ± {error:.2f} ({free:+.1f})")
        print(f"  {name:26}", "  ".join(found))


def options() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", choices=PROBLEMS, metavar="NAME")
    parser.add_argument("--methods", nargs="+", choices=NAMES, metavar="NAME", default=NAMES)
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--epsilons", type=float, nargs="+")
    parser.add_argument("--quick", action="store_true", help="small sets, one seed, epsilon 1")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--save", type=Path, metavar="FILE.json")
    parser.add_argument("--show", action="store_true", help="run nothing; show what was saved")
    parser.add_argument("--plot", type=Path, metavar="DIR")
    return parser.parse_args()


def main() -> None:
    """Run, and print what was found."""
    asked = options()
    names = asked.data or list(QUICK if asked.quick else PROBLEMS)
    epsilons = asked.epsilons or ([1.0] if asked.quick else list(EPSILONS))
    seeds = asked.seeds or (1 if asked.quick else 10)
    results = (
        Results(asked.save)
        if asked.show
        else run_all(names, asked.save, epsilons, seeds, asked.methods, asked.jobs)
    )
    names = [name for name in names if name in results.sizes]
    print_table(results, names, epsilons)
    print_verdict(results, names, epsilons)
    print_gaps(results, names, epsilons)
    print_linear_peer(results, names, epsilons)
    print_searches(results, names, epsilons)
    if asked.plot is not None:
        from utility_plots import plot_all

        plot_all(results, names, epsilons, asked.plot)


if __name__ == "__main__":
    main()
