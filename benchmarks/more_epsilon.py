"""R2 of the private regressions and of one call over epsilon, and where more explains less.

    python benchmarks/more_epsilon.py [--seeds 10] [--data airfoil ...] [--models NAME ...]
        [--picture FILE]

Columns and targets are standardised, targets clipped to 3 deviations. Data sets of the UCI are
read from SKDPTUNE_DATA, or ../shared/data. A dip is a mean that is lower than that of the next
smaller epsilon by more than two standard errors of the difference, and by more than .2 points.
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from utility_methods import Task
from utility_problems import PROBLEMS, TARGET_BOUND

from skdptune import set_config
from skdptune.ensemble import DPExplainableBoostingRegressor
from skdptune.linear_model import (
    AdaOPSLinearRegression,
    AdaSSPLinearRegression,
    DPRidge,
    OPSLinearRegression,
    OutputPerturbationLinearRegression,
    PTRLinearRegression,
)
from skdptune.neural_network import DPNeuralNetRegressor
from skdptune.preprocessing import make_private_pipeline

DELTA = 1e-5
EPSILONS = tuple(0.25 * 2.0 ** (step / 2.0) for step in range(13))
DATA = [name for name, problem in PROBLEMS.items() if problem.regression]
LINEAR = (
    DPRidge,
    AdaSSPLinearRegression,
    AdaOPSLinearRegression,
    OPSLinearRegression,
    PTRLinearRegression,
    OutputPerturbationLinearRegression,
)
_LEAST_DIP = 0.2


def boosting(task: Task) -> Any:
    """Return boosted trees that know the ranges of columns."""
    return DPExplainableBoostingRegressor(
        task.epsilon,
        bounds=task.fold.ranges,
        delta=task.delta,
        target_bound=TARGET_BOUND,
        random_state=task.seed,
    )


def net(task: Task) -> Any:
    """Return a net that knows the range of targets."""
    return DPNeuralNetRegressor(
        epsilon=task.epsilon,
        delta=task.delta,
        target_bound=TARGET_BOUND,
        random_state=task.seed,
    )


def one_call(task: Task) -> Any:
    """Return the model of `make_private_pipeline` that chooses its own family."""
    return make_private_pipeline(
        "regressor",
        task.fold.schema(task.regression),
        epsilon=task.epsilon,
        delta=task.delta,
        random_state=task.seed,
    )


def linear(kind: Any) -> Callable[[Task], Any]:
    """Return the way to make a linear regression for a task."""

    def make(task: Task) -> Any:
        return kind(task.epsilon, task.delta, target_bound=TARGET_BOUND, random_state=task.seed)

    return make


MODELS = {kind.__name__: linear(kind) for kind in LINEAR}
MODELS["DPExplainableBoostingRegressor"] = boosting
MODELS["DPNeuralNetRegressor"] = net
MODELS["one call"] = one_call


def dips(found: np.ndarray) -> list[tuple[float, float]]:
    """Return where means fall: the larger epsilon, and by how much. One row for each epsilon."""
    means, errors = found.mean(axis=1), found.std(axis=1, ddof=1) / math.sqrt(found.shape[1])
    rows = itertools.pairwise(zip(EPSILONS, means, errors, strict=True))
    falls = [(more[0], less[1] - more[1], math.hypot(less[2], more[2])) for less, more in rows]
    return [(e, by) for e, by, error in falls if by > max(2.0 * error, _LEAST_DIP)]


def main() -> None:
    """Print a row for each model and data set, and draw them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--data", nargs="+", default=DATA, choices=DATA)
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=MODELS)
    parser.add_argument("--picture")
    given = parser.parse_args()
    # Fits of one table after the other, by one process.
    set_config(ledger=False)
    curves: dict[str, dict[str, np.ndarray]] = {}
    print("epsilon " + " ".join(f"{epsilon:.3g}" for epsilon in EPSILONS))
    for name in given.data:
        try:
            split = PROBLEMS[name].load()
        except FileNotFoundError as problem:
            print(f"{name}: {problem}")
            continue
        folds = [split(seed) for seed in range(given.seeds)]
        curves[name] = {}
        for kind in given.models:
            make = MODELS[kind]
            found = np.empty((len(EPSILONS), given.seeds))
            for place, epsilon in enumerate(EPSILONS):
                for seed, fold in enumerate(folds):
                    task = Task(fold, True, epsilon, DELTA, seed)
                    found[place, seed] = task.score(make(task))
            curves[name][kind] = found
            means = " ".join(f"{mean:.1f}" for mean in found.mean(axis=1))
            said = ", ".join(f"{by:.1f} at {epsilon:.3g}" for epsilon, by in dips(found))
            print(f"{name}, {kind}: {means}; dips: {said or 'none'}", flush=True)
    if given.picture and curves:
        draw(curves, given.picture)


def draw(curves: dict[str, dict[str, np.ndarray]], path: str) -> None:
    """Draw R2 over epsilon, a panel for each data set, with standard errors."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    columns = min(len(curves), 4)
    rows = math.ceil(len(curves) / columns)
    figure, axes = plt.subplots(
        rows, columns, figsize=(3.2 * columns, 2.6 * rows), squeeze=False, layout="constrained"
    )
    for axis in axes.flat[len(curves) :]:
        axis.set_visible(False)
    for axis, (name, models) in zip(axes.flat, curves.items(), strict=False):
        for (kind, found), marker in zip(models.items(), "os^vD<>pX", strict=False):
            means = found.mean(axis=1)
            error = found.std(axis=1, ddof=1) / math.sqrt(found.shape[1])
            axis.errorbar(EPSILONS, means, error, marker=marker, ms=3, lw=1, label=kind)
        best = max(float(found.mean(axis=1).max()) for found in models.values())
        axis.set(xscale="log", title=name, ylim=(-20.0, 1.1 * best))
    axes[-1, 0].set(xlabel="epsilon", ylabel="R2 in %")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
