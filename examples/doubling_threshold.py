"""Rounds of the doubling threshold search
==========================================

Draw the rounds of the doubling threshold search, as in the papers that propose it.

    python examples/doubling_threshold.py [--folder FOLDER] [--seeds 1000]

Three pictures, after figures 1, 4 and 3 of Ding, Wu, Xu and Pan, *Constant-overhead Differentially
Private Hyperparameter Tuning*. Utilities of 100 candidates are uniform on (0, 1); the noise is
the paper's, drawn afresh in each round: of scale 2 / (k epsilon) on the threshold and
4 / (k epsilon) on the candidates, for k partitions of the data and a cost of epsilon per round.
A table of the same figures is printed, with the true privacy
cost of such a search, and with the fidelity of our search, which ends at a utility of 1.

Needs the extra ``plot``.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import numpy as np

from skdptune.accounting import doubling_threshold
from skdptune.mechanisms import DoublingThreshold, ThresholdRound

N_CANDIDATES = 100
# Above every noise; 1 is where our search ends.
PAPERS_CEILING, OUR_CEILING = 1000.0, 1.0
STRENGTHS = (0.5, 5.0, 10.0)
# Where the papers' noise is small beside the differences between good candidates.
STRONG = 100.0
COLOURS = ("#4477aa", "#ee7733", "#228833", "#aa3377", "#222222")
# Enough rounds for any search; each would cost the same.
MANY_ROUNDS = 60


def run_search(
    utilities: np.ndarray,
    strength: float,
    seed: int,
    granularity: float = 0.01,
    ceiling: float = PAPERS_CEILING,
) -> tuple[tuple[ThresholdRound, ...], list[int | None]]:
    """Return a search with noise for ``k * epsilon = strength``, and what each round found.

    Ours ends where it has reached a utility of 1. The papers' continues, on noise alone; so all
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


def steps_and_utilities(strength: float, seeds: int) -> tuple[list[np.ndarray], float]:
    """Return the paths of (step, utility) of many searches over the same utilities."""
    utilities = np.random.default_rng(0).random(N_CANDIDATES)
    traces = [run_search(utilities, strength, seed)[0] for seed in range(seeds)]
    paths = [np.array([(one.step, one.utility) for one in trace]) for trace in traces]
    return paths, float(utilities.max())


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


def draw_searches(axes, strength: float, paths: list[np.ndarray], best: float) -> None:
    """Draw all searches in the plane of step and utility, the first one in colour."""
    rng = np.random.default_rng(0)
    for path in paths:
        # Moved a little, or a thousand searches would hide behind each other.
        steps = path[:, 0] * np.exp(0.1 * rng.normal(size=len(path)))
        heights = path[:, 1] + 0.01 * rng.normal(size=len(path))
        axes.plot(steps, heights, color="#4477aa", alpha=0.04, linewidth=0.7)
    axes.plot(*paths[0].T, color="#ee7733", marker="o", markersize=4, label="one search")
    axes.axhline(best, color="#222222", linestyle="--", linewidth=1, label="best utility")
    axes.set_xscale("log", base=2)
    axes.set(xlabel="step (levels)", title=f"{len(paths):,} searches, kε = {strength:g}")


def draw_rounds(axes, found: dict[float, list[tuple[float, float, float]]]) -> None:
    """Draw the rounds against the distance, with the multiples of its binary logarithm."""
    distances = np.array([row[0] for row in found[math.inf]])
    for multiple, style in ((1, ":"), (3, "--"), (5, "-.")):
        line = multiple * np.log2(distances)
        axes.plot(distances, line, color="#999999", linestyle=style, linewidth=1)
        axes.annotate(
            f"{multiple} log₂ n", (distances[-1], line[-1]), (4, -3), textcoords="offset points",
            color="#666666", fontsize=9,
        )  # fmt: skip
    for colour, (strength, rows) in zip(COLOURS, found.items(), strict=True):
        _, mean, deviation = np.array(rows).T
        name = f"kε = {strength:g}" if math.isfinite(strength) else "no noise"
        axes.plot(distances, mean, color=colour, marker="o", markersize=3, label=name)
        axes.fill_between(distances, mean - deviation, mean + deviation, color=colour, alpha=0.07)
    axes.set_xscale("log")
    axes.set_xlim(distances[0], 2.2 * distances[-1])
    axes.set(xlabel="n = (u* - u₀) / g", ylabel="rounds T", title="Rounds of a search")
    axes.legend(loc="upper left", frameon=False)


def draw_fidelity(all_axes, found: dict[float, list[np.ndarray]]) -> None:
    """Draw the fidelity by round, one panel per strength."""
    for axes, (strength, paths) in zip(all_axes, found.items(), strict=True):
        for path in paths:
            axes.plot(np.arange(1, path.size + 1), path, color="#4477aa", alpha=0.6, linewidth=1.2)
            axes.plot(path.size, path[-1], color="#ee7733", marker="o", markersize=5)
        axes.set(title=f"kε = {strength:g}", xlabel="round", ylim=(-0.03, 1.05))
    all_axes[0].set_ylabel("fidelity: chosen / best utility")


def print_table(rounds: dict[float, list[tuple[float, float, float]]], seeds: int = 200) -> None:
    """Print multiples of log n, final fidelities, and what such a search really costs."""
    print("              rounds / log₂ n  final fidelity                 cost of all rounds")
    print("kε per round                   the paper's   ours            k = 100, δ = 1e-5")
    theirs, ours = fidelities(seeds), fidelities(seeds, OUR_CEILING)
    for strength in (*STRENGTHS, STRONG):
        multiples = [mean / math.log2(n) for n, mean, _ in rounds[strength] if n >= 16]
        ends = [np.array([path[-1] for path in paths[strength]]) for paths in (theirs, ours)]
        cost = doubling_threshold(strength / 100, max_rounds=max(map(len, theirs[strength])))
        figures = "   ".join(f"{last.mean():.2f} ± {last.std():.2f}" for last in ends)
        print(
            f"{strength:12g}   {min(multiples):4.2f} to {max(multiples):4.2f}     {figures}"
            f"     {cost.epsilon(1e-5):.3f}"
        )


def main() -> None:
    """Print the table and save the pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path())
    parser.add_argument("--seeds", type=int, default=1000)
    options = parser.parse_args()
    rounds = rounds_by_distance()
    print_table(rounds)
    try:
        import matplotlib
    except ImportError as error:
        raise SystemExit("The pictures need matplotlib: pip install skdptune[plot]") from error
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    plt.rcParams.update({"axes.spines.top": False, "axes.spines.right": False})
    figure, pair = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
    for axes, strength in zip(pair, (STRENGTHS[-1], STRONG), strict=True):
        draw_searches(axes, strength, *steps_and_utilities(strength, options.seeds))
    pair[0].set_ylabel("utility u")
    pair[1].legend(loc="center left", frameon=False)
    figure.savefig(options.folder / "doubling_searches.png", dpi=130)
    figure, axes = plt.subplots(figsize=(6, 4.2), layout="constrained")
    draw_rounds(axes, rounds)
    figure.savefig(options.folder / "doubling_rounds.png", dpi=130)
    figure, all_axes = plt.subplots(1, 4, figsize=(12, 3.3), layout="constrained", sharey=True)
    draw_fidelity(all_axes, fidelities())
    figure.savefig(options.folder / "doubling_fidelity.png", dpi=130)


if __name__ == "__main__":
    main()
