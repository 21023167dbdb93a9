"""The figures of Koskela, Redberg and Wang (2024), *Privacy Profiles for Private Selection*.

    python benchmarks/papers_selection.py figure-1    report noisy max
    python benchmarks/papers_selection.py figure-2    geometric number of Gaussian runs: delta
    python benchmarks/papers_selection.py figure-3    the same over the mean number of runs
    python benchmarks/papers_selection.py figure-4    binomial and Poisson numbers of runs
    python benchmarks/papers_selection.py figure-5    regressions tuned by propose-test-release
    python benchmarks/papers_selection.py figure-6    DP-SGD with small batches
    python benchmarks/papers_selection.py figure-7    DP-SGD with large batches
    python benchmarks/papers_selection.py figure-8    candidates that differ in noise and steps

Each prints a table and draws docs/images/papers/krw-figure-N.png (or --output); `--quick` is a
small setting for a test. docs/papers/koskela_redberg_wang.md says what the paper has, which of
its parameters the text at hand lacks, and what differs. Figure 5 reads SKDPTUNE_DATA.
"""

from __future__ import annotations

import argparse
import functools
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from dp_accounting import dp_event
from papers_plots import FOLDER, log_ticks, panels, save, series
from scipy import optimize

from skdptune.accounting import (
    Binomial,
    Geometric,
    Poisson,
    PrivacyProfile,
    RunCountDistribution,
    report_noisy_max,
    selection_lower_bound,
)
from skdptune.accounting._comparison import TwoThresholds, two_thresholds
from skdptune.accounting._shared import gaussian_delta

LABELS = {
    "rdp": "Rényi (Papernot and Steinke)",
    "profile": "the paper's (Koskela et al. 2024, Theorem 5.2)",
    "envelope": "ours, envelope (Theorem S1)",
    "lower bound": "no bound is below",
}
BOUNDS = ("rdp", "profile", "envelope")


def dp_sgd(noise: float, sampling: float, steps: int) -> PrivacyProfile:
    """Return the profile of DP-SGD with Poisson batches."""
    step = dp_event.PoissonSampledDpEvent(sampling, dp_event.GaussianDpEvent(noise))
    return PrivacyProfile.from_event(dp_event.SelfComposedDpEvent(step, steps))


def print_head(words: str, columns: Iterable[object]) -> None:
    """Print a line above a table."""
    print(f"{words:<42}" + "".join(f"{column:>11}" for column in columns))


def print_row(name: str, values: Iterable[float]) -> None:
    """Print one line of a table."""
    cells = (f"{v:11.2e}" if 0.0 < abs(v) < 1e-3 else f"{v:11.3f}" for v in values)
    print(f"  {name:<40}" + "".join(cells), flush=True)


# Figure 1: report noisy max ---------------------------------------------------------------------


def renyi_delta(divergence: Callable[[np.ndarray], np.ndarray], epsilon: float) -> float:
    """Return delta by Lemma D.1 from Rényi divergences."""
    orders = 1.0 + np.geomspace(1e-2, 1e3, 4000)
    logs = (orders - 1.0) * (divergence(orders) - epsilon) - np.log(orders)
    logs = logs + (orders - 1.0) * np.log1p(-1.0 / orders)
    return float(np.exp(np.min(logs)))


def epsilon_of(delta: Callable[[float], float], target: float) -> float:
    """Return the epsilon at which a curve comes down to a delta."""
    return float(optimize.brentq(lambda e: delta(e) - target, 1e-3, 20.0, xtol=1e-6))


def figure_1(options: argparse.Namespace) -> None:
    """Draw report noisy max of Gaussian scores: delta over epsilon, epsilon over candidates."""
    noise, target = 10.0, 1e-6

    def renyi(count: int) -> Callable[[float], float]:
        # Zhu and Wang (2022), Theorem 8: a release of sensitivity 2, and a term for the count.
        return lambda epsilon: renyi_delta(
            lambda a: a * 2.0 / noise**2 + math.log(count) / (a - 1.0), epsilon
        )

    def printed(count: int) -> Callable[[float], float]:
        return lambda epsilon: float(count * gaussian_delta(2.0 / noise, np.array([epsilon]))[0])

    def ours(count: int) -> Callable[[float], float]:
        profile = report_noisy_max(count, noise)
        return lambda epsilon: profile.delta(epsilon)

    ways = {"rdp": renyi, "profile": printed, "envelope": ours}
    names = {
        "profile": "the paper's (Koskela et al. 2024, Theorem 3.2)",
        "envelope": "ours (Theorem N1)",
    }
    figure, (left, right) = panels(2, "ε", "δ")
    right.set_xlabel("candidates", fontsize=9)
    right.set_ylabel("ε at δ = 1e-6", fontsize=9)
    counts = [2, 4, 10, 100, 1000, 10_000]
    epsilons = np.linspace(0.2, 1.2, 5 if options.quick else 21)
    print_head("Epsilon at delta 1e-6; candidates:", counts)
    for way, make in ways.items():
        label = names.get(way, "Rényi (Zhu and Wang)")
        left.semilogy(epsilons, [make(100)(e) for e in epsilons], label=label, **series(way))
        row = [epsilon_of(make(count), target) for count in counts]
        print_row(label, row)
        right.plot(counts, row, label=label, **series(way))
    left.set_ylim(1e-9, 1.0)
    log_ticks(right.xaxis, [2, 10, 100, 1000, 10_000])
    left.set_title("100 candidates, noise 10, sensitivity 1", fontsize=9)
    save(figure, [left, right], options.output / "krw-figure-1.png")


# Figures 2, 3, 6, 7: geometric numbers of runs --------------------------------------------------


def selections(run: PrivacyProfile, distribution: RunCountDistribution) -> dict[str, Any]:
    """Return the selection's profile by each bound."""
    return {bound: run.selected(distribution, bound) for bound in BOUNDS}


def figure_2(options: argparse.Namespace) -> None:
    """Draw delta over epsilon of a geometric number of Gaussian runs, for two means."""
    run = PrivacyProfile.gaussian(1.0 / 4.0)
    figure, grid = panels(2, "ε", "δ")
    for axes, gamma in zip(grid, (0.1, 0.01), strict=True):
        distribution = Geometric(gamma)
        profiles = selections(run, distribution)
        deltas = 10.0 ** np.arange(-8.0, -2.9, 2.5 if options.quick else 1.0)
        print_head(f"\nMean {distribution.mean:g}; epsilon at delta", [f"{d:.0e}" for d in deltas])
        for bound, profile in profiles.items():
            print_row(LABELS[bound], [profile.epsilon(delta) for delta in deltas])
        least = [selection_lower_bound(run, distribution, delta) for delta in deltas]
        print_row(LABELS["lower bound"], least)
        ends = least[-1], profiles["rdp"].epsilon(1e-8)
        epsilons = np.linspace(*ends, 25)
        for bound, profile in profiles.items():
            looks = series(bound) | {"markevery": 4}
            axes.semilogy(epsilons, profile.delta(epsilons), label=LABELS[bound], **looks)
        axes.semilogy(least, deltas, label=LABELS["lower bound"], **series("lower bound"))
        axes.set_ylim(1e-9, 1e-2)
        axes.set_title(f"noise 4, {distribution.mean:g} runs on average", fontsize=9)
    save(figure, grid, options.output / "krw-figure-2.png", columns=2)


def closed_form(noise: float, distribution: Geometric, delta: float) -> float:
    """Return epsilon by the closed form of Koskela et al. 2024, Corollary 5.5.

    That is Theorem 5.2 there with Chernoff's bound on the delta of a Gaussian.

    Twice the root of a logarithm: of the mean over delta, and of 1 over gamma.
    """

    def tail(chance: float) -> float:
        return 0.5 / noise**2 + math.sqrt(2.0 * math.log(chance)) / noise

    helper = tail(1.0 / distribution.gamma)
    shift = math.log(math.exp(helper) + 1.0 - distribution.gamma)
    return tail(distribution.mean / delta) + 2.0 * shift


def figure_3(options: argparse.Namespace) -> None:
    """Draw epsilon over the mean number of Gaussian runs."""
    noise, delta = 4.0, 1e-6
    run = PrivacyProfile.gaussian(1.0 / noise)
    means = [3.0, 30.0] if options.quick else [2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000]
    figure, grid = panels(1, "mean number of runs", "ε at δ = 1e-6")
    print_head("Noise 4, geometric; epsilon at delta 1e-6", [f"{mean:g}" for mean in means])
    print_row("one run", [run.epsilon(delta)] * len(means))
    rows = {
        bound: [run.selected(Geometric.from_mean(m), bound).epsilon(delta) for m in means]
        for bound in BOUNDS
    }
    rows["two thresholds"] = [closed_form(noise, Geometric.from_mean(m), delta) for m in means]
    rows["composition"] = [(math.ceil(mean) * run).epsilon(delta) for mean in means]
    labels = LABELS | {
        "two thresholds": "the paper's closed form (Corollary 5.5)",
        "composition": "all runs published",
    }
    for name, row in rows.items():
        print_row(labels[name], row)
        grid[0].plot(means, row, label=labels[name], **series(name))
    log_ticks(grid[0].xaxis, means)
    grid[0].set_ylim(0.8, 4.5)
    save(figure, grid, options.output / "krw-figure-3.png", columns=2)


def most_runs(
    run: PrivacyProfile, bound: str, epsilon: float, delta: float, top: float = 1e6
) -> float:
    """Return the largest mean of a geometric number of runs that costs no more than epsilon."""

    def excess(log_mean: float) -> float:
        distribution = Geometric.from_mean(math.exp(log_mean))
        return run.selected(distribution, bound).epsilon(delta) - epsilon

    ends = math.log(1.01), math.log(top)
    return math.exp(optimize.brentq(excess, *ends, xtol=1e-2))


def over_means(run: PrivacyProfile, title: str, file: Path, quick: bool) -> None:
    """Draw epsilon over the mean number of trainings, and how many more runs a bound allows."""
    delta = 1e-5
    means = [5.0, 50.0] if quick else [2, 5, 10, 20, 50, 100, 200, 500]
    figure, (left, right) = panels(2, "mean number of trainings", "ε at δ = 1e-5")
    right.set_ylabel("times as many trainings as Rényi", fontsize=9)
    print(f"{title}: one training {run.epsilon(delta):.3f} at delta 1e-5")
    print_head("Epsilon; trainings:", [f"{mean:g}" for mean in means])
    rows = {}
    for bound in BOUNDS:
        rows[bound] = [run.selected(Geometric.from_mean(m), bound).epsilon(delta) for m in means]
        print_row(LABELS[bound], rows[bound])
        left.plot(means, rows[bound], label=LABELS[bound], **series(bound))
    # How many the other bounds allow for what the Rényi bound says of this many.
    starts = [mean for mean in means if mean <= 50]
    print_head("Trainings for the same epsilon, over", [f"{mean:g}" for mean in starts])
    for bound in BOUNDS[1:]:
        budgets = rows["rdp"][: len(starts)]
        pairs = zip(budgets, starts, strict=True)
        ratios = [most_runs(run, bound, epsilon, delta) / mean for epsilon, mean in pairs]
        print_row(LABELS[bound], ratios)
        right.plot(starts, ratios, label=LABELS[bound], **series(bound))
    log_ticks(left.xaxis, [mean for mean in means if mean != 5])
    log_ticks(right.xaxis, starts)
    log_ticks(right.yaxis, [2, 3, 5, 10, 20, 50])
    right.axhline(3.0, color="0.5", linewidth=1, label='"approximately 3", as printed')
    right.set_title("at the same ε", fontsize=9)
    left.set_title(title, fontsize=9)
    save(figure, [left, right], file)


def figure_6(options: argparse.Namespace) -> None:
    """Draw DP-SGD with small batches: 60 epochs of 60,000 records, batches of 256, noise 1.1."""
    run = dp_sgd(1.1, 256 / 60_000, 60 * 60_000 // 256)
    file = options.output / "krw-figure-6.png"
    over_means(run, "DP-SGD, batches of 256 of 60,000", file, options.quick)


def figure_7(options: argparse.Namespace) -> None:
    """Draw DP-SGD with large batches: 2,000 steps with 16,384 of 50,000 records, noise 9.4."""
    run = dp_sgd(9.4, 16_384 / 50_000, 2000)
    file = options.output / "krw-figure-7.png"
    over_means(run, "DP-SGD, batches of 16,384 of 50,000", file, options.quick)


# Figure 4: binomial and Poisson numbers of runs -------------------------------------------------


def largest(cost: Callable[[int], float], budget: float) -> int:
    """Return the largest whole number whose cost is at most a budget."""
    low, high = 1, 2
    while cost(high) <= budget:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if cost(middle) <= budget else (low, middle)
    return low


def figure_4(options: argparse.Namespace) -> None:
    """Draw how seldom few runs are made, by numbers of runs that cost the same."""
    run, delta, mean = PrivacyProfile.gaussian(1.0 / 4.0), 1e-6, 10.0
    budget = run.selected(Poisson(mean), "rdp").epsilon(delta)
    found: dict[str, tuple[str, RunCountDistribution, str]] = {
        "rdp": ("Poisson, Rényi", Poisson(mean), "rdp")
    }
    shapes: dict[str, tuple[str, Callable[[int], RunCountDistribution], str]] = {
        "profile": ("Poisson, the paper's", lambda n: Poisson(float(n)), "profile"),
        "two thresholds": ("binomial p = 0.2, the paper's", lambda n: Binomial(n, 0.2), "profile"),
        "third": ("Poisson, envelope", lambda n: Poisson(float(n)), "envelope"),
        "envelope": ("binomial p = 0.2, envelope", lambda n: Binomial(n, 0.2), "envelope"),
    }
    for look, (label, make, bound) in shapes.items():
        count = largest(lambda n, m=make, b=bound: run.selected(m(n), b).epsilon(delta), budget)
        found[look] = label, make(count), bound
    figure, (left, right) = panels(2, "ε", "δ")
    right.set_xlabel("k", fontsize=9)
    right.set_ylabel("chance of at most k runs", fontsize=9)
    counts = np.arange(21)
    epsilons = np.linspace(0.5 * budget, 1.1 * budget, 5 if options.quick else 25)
    print(f"Noise 4; all cost epsilon {budget:.3f} at delta 1e-6 or a little less")
    print_head("Chance of at most k runs; mean and k:", ["mean", "epsilon", 0, 2, 5, 10])
    for look, (label, distribution, bound) in found.items():
        profile = run.selected(distribution, bound)
        chances = [distribution.probability_at_most(int(count)) for count in counts]
        cells = [distribution.mean, profile.epsilon(delta), *(chances[k] for k in (0, 2, 5, 10))]
        print_row(label, cells)
        looks = series(look) | {"markevery": 4}
        left.semilogy(epsilons, profile.delta(epsilons), label=label, **looks)
        right.semilogy(counts, np.maximum(chances, 1e-9), label=label, **looks)
    right.set_ylim(1e-7, 2.0)
    right.set_xticks(counts[::5])
    left.set_title(f"noise 4, the same ε = {budget:.2f} at δ = 1e-6", fontsize=9)
    save(figure, [left, right], options.output / "krw-figure-4.png")


# Figure 5: propose-test-release -----------------------------------------------------------------

REGRESSIONS = {
    "PTR tuned, envelope": "envelope",
    "PTR tuned, Thm 5.2": "profile",
    "PTR tuned, Liu-Talwar": "fourth",
    "PTR propose-test, L-T": "rdp",
    "OPS-balanced": "two thresholds",
    "output perturbation": "composition",
    "noisy sums, default": "third",
}


def figure_5(options: argparse.Namespace) -> None:
    """Draw the errors of tuned and untuned private regressions over epsilon."""
    import regression

    if not regression.file_of("bike").exists():
        print("uci_bike.npz: not found; set SKDPTUNE_DATA.")
        return
    epsilons = (0.3, 1.0) if options.quick else regression.EPSILONS
    names = ("bike",) if options.quick else ("bike", "elevators")
    seeds = 2 if options.quick else options.seeds
    figure, grid = panels(len(names), "ε", "mean squared error")
    for axes, name in zip(grid, names, strict=True):
        found = regression.errors_of(name, seeds, epsilons, list(REGRESSIONS))
        print_head(f"\n{name}: error, {seeds} seeds; epsilon", epsilons)
        for label, look in REGRESSIONS.items():
            values = [np.array(found[label][epsilon]) for epsilon in epsilons]
            means = [value.mean() for value in values]
            errors = [value.std(ddof=1) / math.sqrt(seeds) for value in values]
            print_row(label, means)
            print_row("    standard error", errors)
            axes.errorbar(epsilons, means, errors, label=label, capsize=3, **series(look))
        axes.set_xscale("log")
        axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
        axes.minorticks_off()
        axes.set_title(name, fontsize=9)
        # Predicting zero has an error of 1.
        axes.set_ylim(0.2, 1.0)
    save(figure, grid, options.output / "krw-figure-5.png", columns=4)


# Figure 8: candidates that differ ---------------------------------------------------------------


def figure_8(options: argparse.Namespace) -> None:
    """Draw one bound for candidates of three noises, and the separate bound of each."""
    delta, reference = 1e-6, gaussian_at(1.5, 1e-6)
    means = [10.0, 100.0] if options.quick else [2, 5, 10, 20, 50, 100, 200, 500, 1000]
    distributions = [Geometric.from_mean(mean) for mean in means]
    points = [two_thresholds(reference, one, delta) for one in distributions]
    runs = []
    print("Most steps at rate 0.01 with which candidates keep below all thresholds, and printed:")
    for noise, printed in {2.0: 4000, 3.0: 10_000, 4.0: 18_000}.items():
        steps = most_steps(noise, 0.01, [points_at(reference), *points], printed)
        runs.append(dp_sgd(noise, 0.01, steps))
        print(f"  noise {noise:g}: {steps:,} ({printed:,})")
    worst = functools.reduce(lambda one, two: one | two, runs)
    rows: dict[str, list[float]] = {}
    for one, thresholds in zip(distributions, points, strict=True):
        alone = [run.selected(one, "profile").epsilon(delta) for run in runs]
        for name, value in {
            "two thresholds": thresholds.selected(one)[0],
            "profile": max(alone),
            "third": min(alone),
            "rdp": worst.selected(one, "rdp").epsilon(delta),
            "envelope": worst.selected(one).epsilon(delta),
        }.items():
            rows.setdefault(name, []).append(value)
    labels = {
        "two thresholds": "two thresholds (Corollary 6.2)",
        "profile": "Koskela et al. 2024, Theorem 5.2, only the worst candidate",
        "third": "Koskela et al. 2024, Theorem 5.2, only the best candidate",
        "rdp": "Rényi, largest of all candidates",
        "envelope": "ours, envelope of all candidates",
    }
    print_head("Epsilon at delta 1e-6; mean number of runs", [f"{mean:g}" for mean in means])
    figure, grid = panels(1, "mean number of runs", "ε at δ = 1e-6")
    for name, row in rows.items():
        print_row(labels[name], row)
        grid[0].plot(means, row, label=labels[name], **series(name))
    log_ticks(grid[0].xaxis, means)
    save(figure, grid, options.output / "krw-figure-8.png", columns=2)


def points_at(reference: PrivacyProfile) -> TwoThresholds:
    """Return the thresholds that give the printed steps: (1.5, 1e-6), and that for 10 runs."""
    return two_thresholds(reference, Geometric.from_mean(10.0), 1e-5)


def most_steps(noise: float, sampling: float, points: list[TwoThresholds], guess: int) -> int:
    """Return the most steps, to a hundredth of a guess, with which a training is below all."""
    size = guess // 100
    steps = 2 * guess
    while not all(one.are_met_by(dp_sgd(noise, sampling, steps)) for one in points):
        steps -= size
    return steps


def gaussian_at(epsilon: float, delta: float) -> PrivacyProfile:
    """Return the Gaussian release that is just (epsilon, delta)-private."""
    found = optimize.brentq(
        lambda shift: PrivacyProfile.gaussian(shift).epsilon(delta) - epsilon, 1e-3, 5.0, xtol=1e-9
    )
    return PrivacyProfile.gaussian(found)


FIGURES: dict[str, Callable[[argparse.Namespace], None]] = {
    "figure-1": figure_1,
    "figure-2": figure_2,
    "figure-3": figure_3,
    "figure-4": figure_4,
    "figure-5": figure_5,
    "figure-6": figure_6,
    "figure-7": figure_7,
    "figure-8": figure_8,
}


def main() -> None:
    """Draw one figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("figure", choices=FIGURES)
    parser.add_argument("--quick", action="store_true", help="a small setting, for a test")
    parser.add_argument("--output", type=Path, default=FOLDER, help="folder of the pictures")
    parser.add_argument("--seeds", type=int, default=20, help="of figure 5")
    options = parser.parse_args()
    FIGURES[options.figure](options)


if __name__ == "__main__":
    main()
