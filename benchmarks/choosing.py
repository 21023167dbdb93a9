"""Which candidate to choose from a table of noisy scores: what the rule gains and loses.

    python benchmarks/choosing.py tables --folder FOLDER [--data NAME ...] [--epsilons .5 1 2 4]
        [--run-noise 1] [--rate-power 0]
                                        makes the tables that FOLDER lacks; all take half an hour
    python benchmarks/choosing.py rules --folder FOLDER [--data ...] [--epsilons ...] [--each]
    python benchmarks/choosing.py quick           two small tables, made on the way

A table holds a run of every candidate with a multiple of the final fit's noise, so that all of
them together cost 2 % of it (4 % for 20 candidates), on four fifths of the records, and the
accuracy of each on the others; also test accuracies of final fits. Made once, it is read
many times with fresh noise on the scores. Printed are points of test accuracy that the chosen
candidate gains over the default, on average over splits and noise, and the choice in hindsight
(by the final fits of half of the seeds, judged by the others), for these ways to choose:

largest          the largest score
process          the largest posterior mean, with no thought of a default
clear            the largest score, where it is above the default's by one deviation of both
noise            `choose_from_table` that knows only the scores' noise
rule             `choose_from_table` that also knows the runs' deviation

A score is published with the same noise as its run ("r"), or less.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from choosing_tables import DELTA, PROBLEMS, VALIDATION_SHARE, Runs, make_table, store_tables

from skdptune.mechanisms import noise_for_budget
from skdptune.model_selection._choosing import TableOutlook, choose_from_table, encode

# How often noise is drawn for each seed of a table, where runs lose less than the last limit.
DRAWS, FEWER_DRAWS = 14, 4
LIMITS = (0.0, 1.5, 3.0, 4.5)
SCORE_NOISES = {"r": 1.0, "0.7 r": 1.0 / 0.7, "0.5 r": 2.0}


class Table(NamedTuple):
    """What is stored of a table, and its name."""

    name: str
    points: np.ndarray
    scores: np.ndarray
    gains: np.ndarray
    hindsight: float
    n_samples: int
    epsilon: float
    ratio: float

    def outlook(self, score_noise: float) -> TableOutlook:
        """Return what public numbers say of the table."""
        noise_ratio = self.ratio / (1.0 - VALIDATION_SHARE)
        n_score = round(VALIDATION_SHARE * self.n_samples)
        return TableOutlook(self.n_samples, self.epsilon, noise_ratio, n_score, score_noise)

    def score_noise(self, divisor: float) -> float:
        """Return the deviation of the noise on a score, if it is this part of that of a run."""
        multiplier = self.ratio / divisor * noise_for_budget(self.epsilon, DELTA)[0]
        return multiplier / (VALIDATION_SHARE * self.n_samples)


def as_table(name: str, stored: Any) -> Table:
    """Return a table from what `make_table` returned."""
    accuracies = 100.0 * stored["accuracies"]
    gains = accuracies - accuracies[:, :1]
    halves = [gains[::2].mean(axis=0), gains[1::2].mean(axis=0)]
    hindsight = 0.5 * (halves[1][halves[0].argmax()] + halves[0][halves[1].argmax()])
    return Table(
        name,
        encode(json.loads(str(stored["candidates"]))),
        stored["scores"],
        gains.mean(axis=0),
        float(hindsight),
        int(stored["n_samples"]),
        float(stored["epsilon"]),
        float(stored["ratio"]),
    )


def largest(table: Table, scores: np.ndarray, noise: float) -> int:
    """Return the largest score."""
    return int(np.argmax(scores))


def process(table: Table, scores: np.ndarray, noise: float) -> int:
    """Return the largest posterior mean."""
    return choose_from_table(table.points, scores, noise).index


def clear(table: Table, scores: np.ndarray, noise: float) -> int:
    """Return the largest score if it is one deviation of a difference above the default's."""
    best = int(np.argmax(scores))
    return best if scores[best] - scores[0] > math.sqrt(2.0) * noise else 0


def with_noise_alone(table: Table, scores: np.ndarray, noise: float) -> int:
    """Return the rule's choice, not told that runs deviate from final fits."""
    return choose_from_table(table.points, scores, noise, 0).index


def rule(table: Table, scores: np.ndarray, noise: float) -> int:
    """Return the rule's choice."""
    deviation = table.outlook(noise).run_deviation
    return choose_from_table(table.points, scores, noise, 0, run_deviation=deviation).index


RULES = {
    "largest": largest,
    "process": process,
    "clear": clear,
    "noise": with_noise_alone,
    "rule": rule,
}


def gain_of(table: Table, choose: Callable[..., int], divisor: float) -> float:
    """Return the points gained over the default, on average over runs and noise."""
    noise, rng = table.score_noise(divisor), np.random.default_rng(0)
    draws = DRAWS if table.outlook(0.0).loss < LIMITS[-1] else FEWER_DRAWS
    chosen = [
        choose(table, row + noise * rng.normal(size=row.size), noise)
        for row in table.scores
        for _ in range(draws)
    ]
    return float(table.gains[chosen].mean())


def summary(tables: list[Table], gains: list[float]) -> str:
    """Return the worst of gains, and how much of what can be gained was."""
    shares = [
        gain / table.hindsight
        for table, gain in zip(tables, gains, strict=True)
        if table.hindsight >= 2.0
    ]
    found = f", {100 * np.mean(shares):.0f} % of {len(shares)}" if shares else ""
    return f"{min(gains):+.2f}{found}"


def print_rules(tables: list[Table], each: bool) -> None:
    """Print the worst gain of each rule, and the mean share of gains of 2 points and more."""
    tables = sorted(tables, key=lambda table: table.outlook(0.0).loss)
    found = {
        (name, noise): [gain_of(table, choose, divisor) for table in tables]
        for name, choose in RULES.items()
        for noise, divisor in SCORE_NOISES.items()
    }
    losses = np.array([table.outlook(0.0).loss for table in tables])
    print("| runs lose | tables | noise of scores | " + " | ".join(RULES) + " |")
    for low, high in itertools.pairwise((*LIMITS, math.inf)):
        places = np.flatnonzero((losses >= low) & (losses < high))
        for noise in SCORE_NOISES if places.size else ():
            cells = [
                summary([tables[i] for i in places], [found[name, noise][i] for i in places])
                for name in RULES
            ]
            print(
                f"| {low:g} to {high:g} points | {places.size} | {noise} | "
                + " | ".join(cells)
                + " |"
            )
    if each:
        print_each(tables, found)


def print_each(tables: list[Table], found: dict[tuple[str, str], list[float]]) -> None:
    """Print a row for each table."""
    print("\n| table | runs lose | score noise | hindsight | largest | rule | rule, 0.7 r |")
    for i, table in enumerate(tables):
        cells = [found["largest", "r"][i], found["rule", "r"][i], found["rule", "0.7 r"][i]]
        print(
            f"| {table.name.replace('_', ', ')} | {table.outlook(0.0).loss:.1f} "
            f"| {100.0 * table.score_noise(1.0):.1f} | {table.hindsight:+.1f} | "
            + " | ".join(f"{cell:+.2f}" for cell in cells)
            + " |"
        )


def print_quick() -> None:
    """Make two small tables, and print the rules on them."""
    tables = []
    for name, grid in (("airfoil", "adam"), ("parkinsons", "poor sgd")):
        problem = PROBLEMS[name]()._replace(runs=2, fits=2)
        tables.append(as_table(f"{name}_{grid}_4", make_table(problem, grid, 4.0)))
    print_rules(tables, each=True)


def stored_tables(folder: Path, names: list[str], epsilons: list[float]) -> list[Table]:
    """Return the tables of a folder."""
    tables = []
    for path in sorted(folder.glob("*.npz")):
        name, _, epsilon = path.stem.rsplit("_", 2)
        if name in names and float(epsilon) in epsilons:
            with np.load(path) as stored:
                tables.append(as_table(path.stem, stored))
    return tables


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("tables", "rules", "quick"))
    parser.add_argument("--folder", type=Path, default=Path("tables"))
    parser.add_argument("--data", nargs="+", default=list(PROBLEMS), choices=PROBLEMS)
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.5, 1.0, 2.0, 4.0])
    parser.add_argument("--run-noise", type=float, default=1.0, help="times that of the rule")
    parser.add_argument("--rate-power", type=float, default=0.0, help="of noise, for sgd")
    parser.add_argument("--each", action="store_true", help="a row for each table as well")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.what == "quick":
        print_quick()
    elif options.what == "tables":
        runs = Runs(options.run_noise, options.rate_power)
        store_tables(options.folder, options.data, options.epsilons, runs)
    else:
        print_rules(
            stored_tables(options.folder, options.data, options.epsilons), each=options.each
        )


if __name__ == "__main__":
    main()
