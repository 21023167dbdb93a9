"""The figures and Table 2 of Avent et al. (2020), *Privacy-Utility Pareto Fronts*, run here.

    python benchmarks/papers_avent.py figure-1    logistic regression: oracles and true front
    python benchmarks/papers_avent.py figure-2    the same of the sparse vector technique
    python benchmarks/papers_avent.py figure-3    logistic regression: surrogates of 250 points
    python benchmarks/papers_avent.py figure-4    the same of the sparse vector technique
    python benchmarks/papers_avent.py table-2 --results FILE    gains over random sampling
    python benchmarks/papers_avent.py figure-5 --results FILE   hypervolumes, points and fronts
    python benchmarks/papers_avent.py figure-6 --results FILE   grids
    python benchmarks/papers_avent.py figure-7 --results FILE   spread of refits of a front
    python benchmarks/papers_avent.py figure-8 --results FILE   fronts of models and networks

Each prints a table and draws docs/images/papers/avent-figure-N.png (or --output); `--quick` is a
small setting for a test. docs/papers/avent.md says what the paper has and what differs. Searches
are kept in the results' file, one line each, and not run again; without a file they are forgotten.
`table-2` and figures 5 to 8 need SKDPTUNE_DATA, or ../shared/data, and figures 5 and 8 torch too.

Searches are of the paper's domains (Tables 1, 3 and 4), with batches of a fixed size, z a
multiplier of the noise in [0.1, 16], delta 1e-5 and the tight epsilon. They are scaled down:
10,000 records of Adult (the authors had 30,956: `--train 30956`), with as many as theirs, 1,605,
for the utility; 64 evaluations in place of 256, against random searches of 256; networks with 32
on 500 images, at most 10 epochs. Hypervolumes are below (10, 1), over epsilon or its natural
logarithm, either of which the authors' program can measure.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from papers_avent_examples import regression, vector
from papers_avent_maps import draw_front, oracles, surrogates
from papers_avent_searches import (
    AXES,
    LINEAR,
    NAMES,
    NETWORKS,
    Found,
    half_width,
    load,
    problem_of,
    save_search,
    search_of,
    selected,
)
from papers_plots import (
    BLACK,
    BLUE,
    FOLDER,
    GREEN,
    ORANGE,
    PURPLE,
    VERMILION,
    panels,
    save,
)
from scipy import stats

# Table 2 of the paper: gain of the hypervolume over random sampling at 256 points, and 95 %.
PAPER_GAINS = {
    "logreg-sgd": "+0.158 (0.053, 0.264)",
    "logreg-adam": "+0.439 (0.272, 0.607)",
    "svm-sgd": "+0.282 (0.161, 0.402)",
}
# A random search is cut into searches of the length of the others, as in the paper.
PARTS = 4
LOOKS: dict[str, tuple[str, str, Any]] = {
    "logreg-sgd": (BLACK, "o", "-"),
    "logreg-adam": (BLUE, "s", (0, (5, 1.5))),
    "svm-sgd": (VERMILION, "v", (0, (3, 1, 1, 1))),
    "mlp1": (GREEN, "^", (0, (5, 1.5))),
    "mlp2": (PURPLE, "D", "-"),
}


# The searches -----------------------------------------------------------------------------------


class Searches:
    """Searches by what they are of, run where a file does not hold them yet."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.found = [] if options.results is None else load(options.results)

    def of(self, problem: str, sampler: str, axis: str = "linear") -> list[Found]:
        """Return the searches of a kind, one per seed."""
        options = self.options
        repetitions = options.random if sampler == "random" else options.repetitions
        repetitions = 1 if problem in NETWORKS or sampler.startswith("grid") else repetitions
        for seed in range(0 if options.kept else repetitions):
            kind = selected(self.found, problem, sampler, axis)
            if seed not in [one.seed for one in kind]:
                self._run(problem, sampler, axis, seed)
        return selected(self.found, problem, sampler, axis)

    def _run(self, problem: str, sampler: str, axis: str, seed: int) -> None:
        options = self.options
        is_network = problem in NETWORKS
        number = options.network_evaluations if is_network else options.evaluations
        size = options.images if is_network else options.train
        epochs = options.network_epochs if is_network else options.epochs
        given = problem_of(problem, size, epochs)
        refits = options.refits if (sampler, axis, seed) == ("auto", "log", 0) else 0
        if is_network:
            refits = 0
        number *= PARTS if sampler == "random" and not is_network else 1
        found = search_of(problem, given, sampler, axis, seed, number, refits)
        self.found.append(found)
        if options.results is not None:
            save_search(options.results, found)

    def random_parts(self, problem: str, axis: str, parts: int = PARTS) -> np.ndarray:
        """Return hypervolume histories of random sampling, one row per part of a search."""
        length = self.options.network_evaluations
        if problem in LINEAR:
            length = self.options.evaluations * PARTS // parts
        rows = []
        for one in self.of(problem, "random"):
            for start in range(0, len(one.points) - length + 1, length):
                part = Found(problem, "random", axis, 0, one.points[start : start + length], 0.0)
                rows.append(part.history(axis))
        return np.array(rows)


def mean_of(values: np.ndarray) -> str:
    """Return a mean with its interval, and of how many."""
    width = "" if len(values) < 2 else f" ± {half_width(values):.3f}"
    return f"{values.mean():.3f}{width} ({len(values)})"


def gain_of(best: np.ndarray, random: np.ndarray) -> str:
    """Return the mean gain and its interval: of the mean of random sampling, or Welch's."""
    gain = best.mean() - random.mean()
    if len(random) < 2:
        return f"{gain:+.3f}"
    if len(best) < 2:
        # As the paper: a search counts as deterministic.
        width = half_width(random)
        return f"{gain:+.3f} ({gain - width:.3f}, {gain + width:.3f})"
    low, high = stats.ttest_ind(best, random, equal_var=False).confidence_interval()
    return f"{gain:+.3f} ({low:.3f}, {high:.3f})"


def table_2(options: argparse.Namespace) -> None:
    """Print gains over random sampling on both axes, and the paper's."""
    searches, few = Searches(options), options.evaluations
    many = few * PARTS
    print("Hypervolume, mean ± half of the 95 % interval (of how many); gain of auto over random")
    for name in LINEAR:
        print(f"\n{NAMES[name]}: in the paper {PAPER_GAINS[name]}, 256 evaluations each")
        print(
            f"  over   auto aims at   random, {few:<3d}             random, {many:<3d}            "
            f"auto, {few:<3d}               gain over {few:<3d}              gain over {many}"
        )
        # A search that aims at one axis is measured on the other as well.
        for axis, aim in itertools.product(AXES, AXES):
            short = searches.random_parts(name, axis)[:, -1]
            long = searches.random_parts(name, axis, 1)[:, -1]
            best = np.array([one.history(axis)[-1] for one in searches.of(name, "auto", aim)])
            if len(best) == 0:
                continue
            cells = "  ".join(f"{mean_of(values):22s}" for values in (short, long, best))
            gains = f"{gain_of(best, short):24s}  {gain_of(best, long)}"
            print(f"  {axis:7s} {aim:12s}  {cells}  {gains}", flush=True)


# Figures 5 to 8 ---------------------------------------------------------------------------------


def draw_history(
    axes: Any, rows: np.ndarray, label: str | None, looks: Any, is_auto: bool
) -> None:
    """Draw the mean hypervolume from the end of the initial design on."""
    colour, marker, dashes = looks
    evaluations = np.arange(1, rows.shape[1] + 1)
    shown = evaluations >= min(8, rows.shape[1] // 2)
    axes.plot(
        evaluations[shown], rows.mean(axis=0)[shown], color=colour, marker=marker, markersize=4,
        markevery=8, label=label, linestyle="-" if is_auto else (0, (1, 1.5)),
        markerfacecolor=colour if is_auto else "w",
    )  # fmt: skip


def figure_5(options: argparse.Namespace) -> None:
    """Print hypervolumes against evaluations; draw them, fronts of a network, and points."""
    searches = Searches(options)
    figure, grid = panels(4, "evaluations", "hypervolume over log ε", rows=2)
    print("Hypervolume over log ε: random sampling, auto")
    for name in (*LINEAR, *NETWORKS):
        axes = grid[0] if name in LINEAR else grid[1]
        random = searches.random_parts(name, "log")
        best = np.array([one.history("log") for one in searches.of(name, "auto", "log")])
        if len(random) == 0 or len(best) == 0:
            continue
        draw_history(axes, random, f"{NAMES[name]}, random", LOOKS[name], False)
        draw_history(axes, best, f"{NAMES[name]}, auto", LOOKS[name], True)
        length = best.shape[1]
        marks = [m for m in (16, 32, 64) if m < length] + [length]
        cells = "".join(
            f"   {m}: {random[:, m - 1].mean():6.3f} {best[:, m - 1].mean():6.3f}" for m in marks
        )
        print(f"  {NAMES[name]:18s}{cells}", flush=True)
    grid[0].set_title("Adult", fontsize=9)
    grid[1].set_title("MNIST", fontsize=9)
    draw_clouds(grid[2], searches, "mlp2", "MNIST, two layers", options)
    draw_clouds(grid[3], searches, "logreg-sgd", "Adult, LogReg + SGD", options)
    save(figure, grid, options.output or FOLDER / "avent-figure-5.png", columns=4)


def draw_clouds(
    axes: Any, searches: Searches, name: str, title: str, options: argparse.Namespace
) -> None:
    """Draw the points and fronts of both samplers."""
    auto = searches.of(name, "auto", "log")[0]
    random = np.vstack([one.points for one in searches.of(name, "random")])
    for points, label, colour, marker, dashes in (
        (random, "points and front, random", ORANGE, "x", (0, (5, 1.5))),
        (np.array(auto.points), "points and front, auto", BLUE, ".", "-"),
    ):
        axes.plot(*points.T, marker, color=colour, markersize=4, alpha=0.5)
        draw_front(axes, points, label, {"color": colour, "linestyle": dashes, "linewidth": 2})
    axes.set(xscale="log", xlim=(3e-3, 2e2))
    axes.set_xlabel("ε", fontsize=9)
    axes.set_ylabel("error", fontsize=9)
    numbers = f"{len(random)} random, {len(auto.points)} by auto"
    axes.set_title(f"{title}: {numbers}", fontsize=9)


def figure_6(options: argparse.Namespace) -> None:
    """Print and draw the hypervolume of a grid and of the others."""
    searches, sampler = Searches(options), f"grid{options.grid}"
    figure, grid = panels(2, "evaluations", "hypervolume")
    name = "logreg-sgd"
    lattice = searches.of(name, sampler)[0]
    print(
        f"{NAMES[name]}: hypervolume; grid of {options.grid} levels, {len(lattice.points)} points"
    )
    for axes, axis in zip(grid, AXES, strict=True):
        random = searches.random_parts(name, axis)
        best = np.array([one.history(axis) for one in searches.of(name, "auto", axis)])
        whole = lattice.history(axis)[-1]
        draw_history(axes, random, "random", (ORANGE, "s", None), False)
        draw_history(axes, best, "auto", (BLUE, "o", None), True)
        label = f"grid, after {len(lattice.points)}"
        axes.axhline(whole, color=BLACK, linestyle=(0, (5, 1.5)), label=label)
        axes.set_title("over ε" if axis == "linear" else "over log ε", fontsize=9)
        print(
            f"  {axis:7s} random {random[:, -1].mean():.3f}   auto {best[:, -1].mean():.3f}"
            f" (each {best.shape[1]})   grid {whole:.3f}",
            flush=True,
        )
    save(figure, grid, options.output or FOLDER / "avent-figure-6.png")


def figure_7(options: argparse.Namespace) -> None:
    """Print and draw the best and the worst of refits of each front."""
    searches = Searches(options)
    figure, grid = panels(3, "ε", "error", width=2.8)
    print(f"Worst less best error of {options.refits} refits of each point of the front, mean")
    print("                   ε below 0.1        0.1 to 1         1 to 10")
    for axes, name in zip(grid, LINEAR, strict=True):
        rows = np.array(searches.of(name, "auto", "log")[0].spreads)
        epsilon, best, mean, worst = rows.T
        axes.fill_between(epsilon, best, worst, step="post", color="0.85", label="best to worst")
        axes.step(epsilon, mean, where="post", color=LOOKS[name][0], label="mean")
        axes.set(xscale="log", xlim=(3e-3, 10.0))
        axes.set_title(NAMES[name], fontsize=9)
        cells = []
        for low, high in ((0.0, 0.1), (0.1, 1.0), (1.0, 10.0)):
            inside = (epsilon >= low) & (epsilon < high)
            width = (worst - best)[inside].mean() if inside.any() else np.nan
            cells.append(f"{width:8.3f} ({inside.sum():2d} points)")
        print(f"  {NAMES[name]:14s}" + "".join(cells))
    ends = np.array([axes.get_ylim() for axes in grid])
    for axes in grid:
        axes.set_ylim(ends[:, 0].min(), ends[:, 1].max())
    save(figure, grid, options.output or FOLDER / "avent-figure-7.png")


def figure_8(options: argparse.Namespace) -> None:
    """Print and draw the fronts of models on Adult and of networks on MNIST."""
    searches = Searches(options)
    figure, grid = panels(2, "ε", "error")
    print("Least error at ε of at most          0.1       1      10")
    for name in (*LINEAR, *NETWORKS):
        axes = grid[0] if name in LINEAR else grid[1]
        found = searches.of(name, "auto", "log")
        if not found:
            continue
        points = np.array(found[0].points)
        colour, _, dashes = LOOKS[name]
        draw_front(axes, points, NAMES[name], {"color": colour, "linestyle": dashes})
        cells = []
        for bound in (0.1, 1.0, 10.0):
            inside = points[points[:, 0] <= bound, 1]
            cells.append(f"{inside.min():8.3f}" if len(inside) else "        ")
        print(f"  {NAMES[name]:30s}" + "".join(cells), flush=True)
    for axes, title in zip(grid, ("Adult", "MNIST"), strict=True):
        axes.set(xscale="log", xlim=(3e-3, 10.0))
        axes.set_title(title, fontsize=9)
    save(figure, grid, options.output or FOLDER / "avent-figure-8.png")


FIGURES: dict[str, Callable[[argparse.Namespace], None]] = {
    "figure-1": lambda options: oracles(options, regression, 1),
    "figure-2": lambda options: oracles(options, vector, 2),
    "figure-3": lambda options: surrogates(options, regression, 3),
    "figure-4": lambda options: surrogates(options, vector, 4),
    "figure-5": figure_5,
    "figure-6": figure_6,
    "figure-7": figure_7,
    "figure-8": figure_8,
    "table-2": table_2,
}
QUICK = {
    "evaluations": 6,
    "random": 1,
    "train": 500,
    "epochs": 2,
    "refits": 2,
    "grid": 2,
    "images": 200,
    "network_epochs": 2,
    "network_evaluations": 4,
}


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=FIGURES)
    parser.add_argument("--results", type=Path, help="where searches are kept")
    parser.add_argument("--kept", action="store_true", help="show kept searches, run no other")
    parser.add_argument("--repetitions", type=int, default=1, help="searches by auto")
    parser.add_argument("--random", type=int, default=3, help="random searches, 4 times as long")
    parser.add_argument("--evaluations", type=int, default=64)
    parser.add_argument("--train", type=int, default=10_000, help="records to fit on")
    parser.add_argument("--epochs", type=int, help="most epochs, by default the paper's")
    parser.add_argument("--refits", type=int, default=5)
    parser.add_argument("--grid", type=int, default=3, choices=(2, 3, 4), help="levels")
    parser.add_argument("--images", type=int, default=500)
    parser.add_argument("--network-epochs", type=int, default=10)
    parser.add_argument("--network-evaluations", type=int, default=32)
    parser.add_argument("--quick", action="store_true", help="a small setting, for a test")
    parser.add_argument("--output", type=Path, help="the picture")
    options = parser.parse_args()
    if options.quick:
        vars(options).update(QUICK)
    FIGURES[options.what](options)


if __name__ == "__main__":
    main()
