"""The figures of Koskela and Kulkarni (2023), *Practical DP Tuning with Subsampling*, run here.

    python benchmarks/papers_subsampling.py figure-1    epsilon over the share used for tuning
    python benchmarks/papers_subsampling.py figure-2    learning rate of SGD: accuracy over epsilon
    python benchmarks/papers_subsampling.py figure-3    the same with Adam
    python benchmarks/papers_subsampling.py figure-4    rate of batches, epochs and learning rate

Each prints a table and draws docs/images/papers/kk-figure-N.png (or --output); `--quick` is a
small setting for a test. docs/papers/koskela_kulkarni.md says what the paper has and what differs.

Training is scaled down to two cores: the first 12,000 images in place of 60,000, a twentieth of
the epochs. Images are read from SKDPTUNE_DATA, or ../shared/data. With `--results FILE` each
finished search is kept there, and not run again.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
from papers_plots import FOLDER, log_ticks, panels, save, series
from papers_selection import dp_sgd

from skdptune.accounting import Poisson, PrivacyProfile, tune_then_fit

DELTA = 1e-5
WAYS = {
    "baseline, Rényi": ("all", "rdp"),
    "variant 2, Rényi": (2, "rdp"),
    "variant 1, Rényi": (1, "rdp"),
    "baseline, envelope": ("all", "envelope"),
    "variant 2, envelope": (2, "envelope"),
    "variant 1, envelope": (1, "envelope"),
}


# Figure 1: accounting ---------------------------------------------------------------------------


def tuned_epsilon(run: PrivacyProfile, way: object, bound: str, mean: float, part: float) -> float:
    """Return the epsilon of a whole tuning."""
    search = run.selected(Poisson(mean), bound)
    if way == "all":
        return search.epsilon(DELTA)
    tuning_bound = "rdp" if bound == "rdp" else "profile"
    return tune_then_fit(search, run, part, variant=way, bound=tuning_bound).epsilon(DELTA)


def figure_1(options: argparse.Namespace) -> None:
    """Print and draw what tuning on a part costs, by the paper's bounds and by ours."""
    parts = np.array([0.05, 0.2] if options.quick else np.geomspace(0.01, 0.5, 18))
    means = (15.0,) if options.quick else (15.0, 45.0)
    # 50 epochs at a rate of 1 %: 5,000 steps.
    run = dp_sgd(2.0, 0.01, 5000)
    figure, grid = panels(len(means), "share q of the records used for tuning", "ε at δ = 1e-5")
    shown = [part for part in (0.05, 0.1, 0.2, 0.5) if parts[0] <= part <= parts[-1]]
    print(f"One training alone: {run.epsilon(DELTA):.3f}")
    print(f"  mean  {'':<22}" + "".join(f"   q={part:<5g}" for part in shown))
    for axes, mean in zip(grid, means, strict=True):
        for label, (way, bound) in WAYS.items():
            epsilons = [tuned_epsilon(run, way, bound, mean, part) for part in shown]
            cells = "".join(f"{epsilon:10.3f}" for epsilon in epsilons)
            print(f"  {mean:4g}  {label:<22}{cells}", flush=True)
            drawn = [tuned_epsilon(run, way, bound, mean, part) for part in parts]
            axes.plot(parts, drawn, label=label, markevery=3, **series(label))
        axes.axhline(run.epsilon(DELTA), color="0.5", linewidth=1, label="one training, untuned")
        log_ticks(axes.xaxis, [0.01, 0.02, 0.05, 0.1, 0.2, 0.5])
        axes.set_title(f"{mean:g} candidates on average", fontsize=9)
    save(figure, grid, options.output / "kk-figure-1.png")


# Figures 2 to 4: accuracy -----------------------------------------------------------------------


def learned(
    options: argparse.Namespace, optimizer: str, ways: list[str], tuned: str, mean: float
) -> None:
    """Run, print and draw searches on images."""
    # Here, as torch takes seconds to import.
    from papers_subsampling_runs import Experiment, has_data, summary

    described = {way: WAYS[way] for way in ways}
    experiments = [Experiment(data, optimizer, described, tuned, mean) for data in options.data]
    missing = sorted({one.data for one in experiments if not has_data(one.data)})
    if missing:
        print(f"{', '.join(missing)}: not found; set SKDPTUNE_DATA.")
        return
    figure, grid = panels(len(experiments), "ε of the tuning and the final model", "accuracy (%)")
    for axes, experiment in zip(grid, experiments, strict=True):
        found = experiment.run(options)
        print(f"\n{experiment.title} ({options.seeds} seeds; standard errors)")
        print(f"  {'':<22}{'epsilon':>8} {'accuracy, %':>16} {'noise':>7} {'seconds':>8}")
        for number, label in enumerate(experiment.ways):
            columns = summary(found[label])
            for epsilon, mean, error, noise, seconds in columns.T:
                print(
                    f"  {label:<22}{epsilon:8g} {mean:9.2f} ± {error:4.2f}"
                    f" {noise:7.2f} {seconds:8.1f}"
                )
            # A little apart, or the errors would hide behind one another.
            columns[0] *= 1.03 ** (number - 0.5 * len(experiment.ways))
            axes.errorbar(*columns[:3], label=label, capsize=3, **series(label))
        if "baseline, Rényi" in found:
            alone = summary(found["baseline, Rényi"], alone=True)
            axes.plot(*alone[:2], label="baseline's model alone", **series("alone"))
            costs = ", ".join(f"{epsilon:.3f}" for epsilon in alone[0])
            print(f"  baseline's best model, without its search: epsilon {costs}")
        log_ticks(axes.xaxis, [0.2, 0.5, *options.epsilons])
        axes.set_title(experiment.title, fontsize=9)
    save(figure, grid, options.output / f"kk-{options.figure}.png")


RENYI_AND_OURS = ["baseline, Rényi", "variant 2, Rényi", "variant 1, Rényi", "variant 1, envelope"]


def figure_2(options: argparse.Namespace) -> None:
    """Tune the learning rate of SGD."""
    ways = [*RENYI_AND_OURS, "baseline, envelope"]
    learned(options, "sgd", ways, "learning rate", 15.0)


def figure_3(options: argparse.Namespace) -> None:
    """Tune the learning rate of Adam, which is not changed with the number of records."""
    learned(options, "adam", RENYI_AND_OURS, "learning rate", 15.0)


def figure_4(options: argparse.Namespace) -> None:
    """Tune learning rate, rate of batches and epochs, of which two change what a run costs."""
    learned(options, "sgd", RENYI_AND_OURS, "all", 30.0)


FIGURES: dict[str, Callable[[argparse.Namespace], None]] = {
    "figure-1": figure_1,
    "figure-2": figure_2,
    "figure-3": figure_3,
    "figure-4": figure_4,
}


def main() -> None:
    """Draw one figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("figure", choices=FIGURES)
    parser.add_argument("--quick", action="store_true", help="a small setting, for a test")
    parser.add_argument("--output", type=Path, default=FOLDER, help="folder of the pictures")
    parser.add_argument("--data", nargs="+", choices=("fashion", "mnist"), default=["fashion"])
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 4.0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=12_000)
    parser.add_argument("--epochs", type=float, default=2.0, help="a twentieth of the paper's")
    parser.add_argument("--results", type=Path, help="file that keeps finished searches")
    options = parser.parse_args()
    if options.quick:
        options.epsilons, options.seeds, options.rows, options.epochs = [2.0], 2, 2000, 0.1
    FIGURES[options.figure](options)


if __name__ == "__main__":
    main()
