"""The figures of Ding, Wu, Xu and Pan, and of the revision by Ding and Wu, run here.

    python benchmarks/papers_ding.py figure-1    step and utility of many searches, round by round
    python benchmarks/papers_ding.py figure-3    fidelity of what is chosen, round by round
    python benchmarks/papers_ding.py figure-4    rounds over the distance in levels

*Constant-overhead Differentially Private Hyperparameter Tuning*, and *Revisiting Hyperparameter
Tuning with Differential Privacy*: 100 candidates with utilities uniform on (0, 1), levels of 0.01,
Laplace noise of scale 2 / (k epsilon) on the threshold and 4 / (k epsilon) on the candidates.
Each command prints a table and draws docs/images/papers/ding-figure-N.png (or --output); `--quick`
is a small setting for a test. docs/papers/ding.md says what the papers have and what differs.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

import numpy as np
from papers_plots import BLACK, BLUE, FOLDER, GREEN, ORANGE, SKY, VERMILION, panels, save

from skdptune.accounting import doubling_threshold
from skdptune.mechanisms import DoublingThreshold, ThresholdRound

N_CANDIDATES = 100
# Above every noise; 1 is where our search ends.
PAPERS_CEILING, OUR_CEILING = 1000.0, 1.0
STRENGTHS = (0.5, 5.0, 10.0)
# Where the papers' noise is small compared with the differences between good candidates.
STRONG = 100.0
# Enough rounds for any search; each would cost the same.
MANY_ROUNDS = 60
GRANULARITY = 0.01
PARTITIONS, DELTA = 100, 1e-5
# The revision's k = 10 and 0.1 per round; ten times that, and almost no noise.
FIGURE_1_STRENGTHS = (1.0, 10.0, 100.0)
LOOKS = dict(
    zip(
        (0.5, 5.0, 10.0, 100.0, math.inf),
        (
            (VERMILION, "v", (0, (3, 1, 1, 1))),
            (ORANGE, "s", (0, (5, 1.5))),
            (BLUE, "P", (0, (2, 2))),
            (GREEN, "^", (0, (6, 2, 1, 2))),
            (BLACK, "o", "-"),
        ),
        strict=True,
    )
)


def named(strength: float) -> str:
    """Return what a strength of noise is called."""
    return f"kε = {strength:g}" if math.isfinite(strength) else "no noise"


def cost_of(strength: float, rounds: int) -> float:
    """Return the true epsilon of this number of rounds, bounded beforehand."""
    return doubling_threshold(strength / PARTITIONS, max_rounds=rounds).epsilon(DELTA)


# Searches --------------------------------------------------------------------------------------


def run_search(
    utilities: np.ndarray,
    strength: float,
    seed: int,
    granularity: float = 0.01,
    ceiling: float = PAPERS_CEILING,
) -> tuple[tuple[ThresholdRound, ...], list[int | None]]:
    """Return a search with noise for ``k * epsilon = strength``, and what each round found.

    Ours ends where it has reached a utility of 1. The papers' continues, only on noise; so all
    lengths are divided by a ceiling that is out of reach. The mechanism takes the whole budget,
    from which a round's cost follows.
    """
    is_noisy = math.isfinite(strength)
    halves = 2 + math.ceil(3 * (MANY_ROUNDS - 1) / 2)
    made = DoublingThreshold(
        # Only its ratio to the cost of a round, here of 1, matters.
        sensitivity=1.0 / (strength * ceiling) if is_noisy else 1.0,
        granularity=granularity / ceiling,
        noise="per-round" if is_noisy else None,
        epsilon=halves / 2.0 if is_noisy else None,
        max_rounds=MANY_ROUNDS if is_noisy else None,
        random_state=seed,
    )
    found = []
    while not made.finished:
        found.append(made.propose(utilities / ceiling))
    trace = tuple(one._replace(utility=one.utility * ceiling) for one in made.trace)
    return trace, found


def rounds_by_distance(repeats: int = 10) -> dict[float, list[tuple[float, float, float]]]:
    """Return, by strength, (distance in levels, mean and deviation of rounds)."""
    rng = np.random.default_rng(1)
    found: dict[float, list[tuple[float, float, float]]] = {}
    for strength in (*STRENGTHS, STRONG, math.inf):
        rows = []
        for distance in np.unique(np.geomspace(4, 900, 18).astype(int)):
            counts = []
            for seed in range(repeats):
                utilities = rng.random(N_CANDIDATES)
                granularity = float(utilities.max()) / distance
                counts.append(len(run_search(utilities, strength, seed, granularity)[0]))
            rows.append((float(distance), float(np.mean(counts)), float(np.std(counts))))
        found[strength] = rows
    return found


def fidelities(seeds: int = 8, ceiling: float = PAPERS_CEILING) -> dict[float, list[np.ndarray]]:
    """Return, by strength, the chosen candidate's utility over the best one's, by round."""
    utilities = np.random.default_rng(2).random(N_CANDIDATES)
    best = utilities.max()
    result: dict[float, list[np.ndarray]] = {}
    for strength in (*STRENGTHS, STRONG):
        result[strength] = []
        for seed in range(seeds):
            _, found = run_search(utilities, strength, seed, ceiling=ceiling)
            path, chosen = [], 0.0
            for index in found:
                chosen = chosen if index is None else float(utilities[index])
                path.append(chosen / best)
            result[strength].append(np.array(path))
    return result


# Figure 1 ---------------------------------------------------------------------------------------


def figure_1(options: argparse.Namespace) -> None:
    """Print how many searches end soon, and where, and draw their paths."""
    seeds = 20 if options.quick else 1000
    utilities = np.random.default_rng(0).random(N_CANDIDATES)
    best = float(utilities.max())
    levels = best / GRANULARITY
    print(f"{seeds:,} searches, best utility {best:.3f}, a blind draw's fidelity ", end="")
    print(f"{utilities.mean() / best:.2f}; shares in %")
    print("   kε  search           rounds  in 5 log₂ n  step > 2(n+1)  u ≥ 1  fidelity  cost")
    figure, grid = panels(len(FIGURE_1_STRENGTHS), "step (levels)", "utility u", width=2.8)
    for axes, strength in zip(grid, FIGURE_1_STRENGTHS, strict=True):
        for name, ceiling in (("first paper", PAPERS_CEILING), ("revision, ours", OUR_CEILING)):
            found = [
                run_search(utilities, strength, seed, ceiling=ceiling) for seed in range(seeds)
            ]
            paths = [path_of(trace) for trace, _ in found]
            # A path has one state more than rounds.
            rounds = np.array([len(path) - 1 for path in paths])
            steep = [path[:, 0].max() > 2 * (levels + 1) for path in paths]
            risen = [path[-1, 1] >= 1.0 for path in paths]
            chosen = [
                next((i for i in reversed(made) if i is not None), None) for _, made in found
            ]
            fidelity = np.mean([0.0 if i is None else utilities[i] / best for i in chosen])
            print(
                f"{strength:5g}  {name:14s} {rounds.mean():8.1f}"
                f" {100 * np.mean(rounds <= 5 * math.log2(levels)):12.1f}"
                f" {100 * np.mean(steep):14.1f} {100 * np.mean(risen):6.1f} {fidelity:9.2f}"
                f" {cost_of(strength, int(rounds.max())):5.2f}"
            )
        draw_paths(axes, strength, paths[:200], best)
    save(figure, grid, options.output or FOLDER / "ding-figure-1.png", columns=4)


def path_of(trace: tuple[ThresholdRound, ...]) -> np.ndarray:
    """Return step and utility before each round and after the last one."""
    last = trace[-1]
    if last.hit:
        end = (2 * last.step, last.utility + last.step * GRANULARITY)
    else:
        end = (last.step // 2, last.utility)
    return np.array([*((one.step, one.utility) for one in trace), end])


def draw_paths(axes: Any, strength: float, paths: list[np.ndarray], best: float) -> None:
    """Draw searches in the plane of step and utility, the first one marked."""
    rng = np.random.default_rng(0)
    for path in paths:
        # Moved a little, or the searches would hide behind each other; a step of 0 is not a point.
        path = path[path[:, 0] > 0]
        steps = path[:, 0] * np.exp(0.08 * rng.normal(size=len(path)))
        heights = path[:, 1] + 0.01 * rng.normal(size=len(path))
        axes.plot(steps, heights, color=SKY, alpha=0.3, linewidth=0.5)
    axes.plot([], [], color=SKY, label=f"{len(paths)} searches")
    first = paths[0][paths[0][:, 0] > 0]
    axes.plot(*first.T, color=VERMILION, marker="o", markersize=4, label="one of them")
    axes.axhline(best, color=BLACK, linestyle="--", linewidth=1, label="best utility")
    axes.set_xscale("log", base=2)
    axes.set_ylim(-0.05, 1.75)
    axes.set_title(named(strength), fontsize=9)


# Figure 3 ---------------------------------------------------------------------------------------


def figure_3(options: argparse.Namespace) -> None:
    """Print final fidelities, and draw those of eight searches round by round."""
    seeds = 5 if options.quick else 200
    theirs, ours = fidelities(seeds, PAPERS_CEILING), fidelities(seeds, OUR_CEILING)
    print(f"Final fidelity, mean ± deviation of {seeds} searches; of the paper's, shares in %")
    print("   kε  the paper's       ours  above .9  below .5   cost of all rounds")
    figure, grid = panels(len(theirs), "round", "fidelity: chosen / best utility", rows=2)
    for axes, (strength, paths) in zip(grid, theirs.items(), strict=True):
        ends, own = (np.array([p[-1] for p in made]) for made in (paths, ours[strength]))
        print(
            f"{strength:5g}  {ends.mean():.2f} ± {ends.std():.2f}  {own.mean():.2f} ± "
            f"{own.std():.2f} {100 * (ends > 0.9).mean():9.0f} {100 * (ends < 0.5).mean():9.0f}"
            f" {cost_of(strength, max(map(len, paths))):20.2f}"
        )
        for number, path in enumerate(paths[:8]):
            label = "a search" if number == 0 else None
            axes.step(
                np.arange(1, path.size + 1), path, where="post", color=BLUE, alpha=0.7,
                linewidth=1.0, label=label,
            )  # fmt: skip
            label = "what it chose" if number == 0 else None
            axes.plot(
                path.size, path[-1], color=ORANGE, marker="o", markersize=6, linestyle="",
                label=label,
            )  # fmt: skip
        axes.set_title(named(strength), fontsize=9)
        axes.set_ylim(-0.03, 1.05)
    save(figure, grid, options.output or FOLDER / "ding-figure-3.png")


# Figure 4 ---------------------------------------------------------------------------------------


def figure_4(options: argparse.Namespace) -> None:
    """Print multiples of log n, and draw the rounds over the distance in levels."""
    found = rounds_by_distance(2 if options.quick else 10)
    print("Rounds over log₂ n, mean of 10 searches, n from 16 to 900 levels")
    print("   kε   least  mean  most   deviation of rounds")
    figure, grid = panels(1, "n = (u* - u₀) / g, levels", "rounds T")
    axes = grid[0]
    distances = np.array([row[0] for row in found[math.inf]])
    for multiple, dashes in ((1, (0, (1, 1))), (3, (0, (4, 2))), (5, (0, (8, 3)))):
        line = multiple * np.log2(distances)
        axes.plot(distances, line, color="0.55", linestyle=dashes, linewidth=1)
        axes.annotate(
            f"{multiple} log₂ n", (distances[-1], line[-1]), (4, -3), textcoords="offset points",
            color="0.35", fontsize=8,
        )  # fmt: skip
    for strength, rows in found.items():
        table = np.array([row for row in rows if row[0] >= 16])
        multiples = table[:, 1] / np.log2(table[:, 0])
        print(
            f"{strength:5g} {multiples.min():7.2f} {multiples.mean():5.2f} {multiples.max():5.2f}"
            f" {table[:, 2].mean():12.1f}"
        )
        colour, marker, dashes = LOOKS[strength]
        _, mean, deviation = np.array(rows).T
        axes.errorbar(
            distances, mean, deviation, color=colour, marker=marker, linestyle=dashes,
            markersize=4, linewidth=1.2, elinewidth=0.6, label=named(strength),
        )  # fmt: skip
    axes.set_xscale("log")
    axes.set_xlim(distances[0] * 0.9, 2.6 * distances[-1])
    save(figure, grid, options.output or FOLDER / "ding-figure-4.png")


FIGURES = {"figure-1": figure_1, "figure-3": figure_3, "figure-4": figure_4}


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=FIGURES)
    parser.add_argument("--quick", action="store_true", help="a small setting, for a test")
    parser.add_argument("--output", type=Path, help="the picture")
    options = parser.parse_args()
    FIGURES[options.what](options)


if __name__ == "__main__":
    main()
