"""Tune a private neural network on a tenth of the records, and compare with tuning on all.

    python benchmarks/subsampled_tuning.py [--output subsampled_tuning.png]

Learning rate, batch size and number of epochs of a small network are searched for together. Batch
size and epochs change what a training run costs, so the noise of each candidate is adjusted to one
epsilon; the search as a whole, its final fit included, keeps within the epsilon on the axis.

Three ways, as in Koskela and Kulkarni, *Practical Differentially Private Hyperparameter Tuning
with Subsampling* (2023), in miniature, on the handwritten digits of scikit-learn:

* variant 1 tunes on a random tenth of the records and trains the winner on the others,
* variant 2 tunes on a random tenth and trains the winner on all,
* the baseline tunes on all records and returns the best of its models.

Privacy costs them noise, and candidates cost them work: a gradient evaluation is the gradient of
one record. Takes about three minutes; most of it goes into finding how much noise is
needed. Needs the extras "nn" and "plot".
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import torch
from matplotlib import pyplot as plt
from matplotlib import ticker
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from skdptune import DPRandomSearchCV
from skdptune.model_selection import RandomRuns
from skdptune.neural_network import MLP, DPNeuralNetClassifier

matplotlib.use("Agg")

DELTA = 1e-5
RECORDS = 1200
SPACE = {
    "lr": np.geomspace(0.1, 3.0, 6).tolist(),
    "batch_size": [0.05, 0.1],  # as shares of the records, so that they fit the tenth as well
    "max_epochs": [10, 20],
}
WAYS = {
    "variant 1": {"tuning_fraction": 0.1, "variant": 1},
    "variant 2": {"tuning_fraction": 0.1, "variant": 2},
    "baseline": {"tuning_fraction": None},
}
LABELS = {
    "variant 1": "variant 1: a tenth, then the others",
    "variant 2": "variant 2: a tenth, then all",
    "baseline": "baseline: all throughout",
}
LOOKS = {
    "variant 1": {"color": "#2f6690", "marker": "o"},
    "variant 2": {"color": "#3a9a6d", "marker": "s"},
    "baseline": {"color": "#d1603d", "marker": "D"},
}


def split() -> list[np.ndarray]:
    """Return records to learn from, public ones that candidates are scored on, and test records.

    The range of a pixel, 0 to 16, is public, so that scaling needs no look at the data.
    """
    X, y = load_digits(return_X_y=True)
    X, X_rest, y, y_rest = train_test_split(
        X / 16.0, y, train_size=RECORDS, random_state=0, stratify=y
    )
    X_val, X_test, y_val, y_test = train_test_split(
        X_rest, y_rest, train_size=0.5, random_state=0, stratify=y_rest
    )
    return [X, X_val, X_test, y, y_val, y_test]


def search_of(way: str, epsilon: float, candidates: float, seed: int) -> DPRandomSearchCV:
    """Return one of the three searches."""
    return DPRandomSearchCV(
        DPNeuralNetClassifier(MLP(hidden=(64,)), optimizer=torch.optim.SGD, classes=range(10)),
        SPACE,
        n_iter=candidates,
        epsilon=epsilon,
        delta=DELTA,
        random_state=seed,
        strategy=RandomRuns(n_iter_distribution="poisson", diagnostics=True, **WAYS[way]),
    )


def epochs_of(search: DPRandomSearchCV, params: dict[str, Any]) -> float:
    """Return the number of epochs of a candidate; the unchanged estimator follows a rule."""
    given = params["max_epochs"]
    by_rule = search.estimator.fixed_epochs(RECORDS) if isinstance(given, str) else {}
    return by_rule.get("max_epochs", given)


def work_of(search: DPRandomSearchCV) -> float:
    """Return the gradient evaluations of a search: epochs times expected records, of all fits."""
    share = search.strategy.tuning_fraction
    runs = sum(epochs_of(search, params) for params in search.diagnostics_["params"])
    if share is None:
        return runs * RECORDS
    final = 1.0 - share if search.strategy.variant == 1 else 1.0
    return (runs * share + epochs_of(search, search.best_params_) * final) * RECORDS


def results_of(
    way: str, epsilon: float, candidates: float, seeds: int, data: list[np.ndarray]
) -> np.ndarray:
    """Return the gradient evaluations and the test accuracy of each seed's search."""
    X, X_val, X_test, y, y_val, y_test = data
    rows = []
    for seed in range(seeds):
        search = search_of(way, epsilon, candidates, seed)
        search.fit(X, y, X_val=X_val, y_val=y_val)
        rows.append((work_of(search), search.score(X_test, y_test)))
    return np.array(rows)


def interval(values: np.ndarray) -> float:
    """Return half the width of a 95 % interval for the mean."""
    return 1.96 * values.std(ddof=1) / np.sqrt(len(values))


def draw_accuracy(axes, found: dict[tuple[str, float], np.ndarray], epsilons: list[float]) -> None:
    """Draw the mean accuracy of each way against epsilon."""
    for number, way in enumerate(WAYS):
        scores = [100 * found[way, epsilon][:, 1] for epsilon in epsilons]
        axes.errorbar(
            # A little apart, or the intervals would hide behind each other.
            np.array(epsilons) * 1.03 ** (number - 1),
            [score.mean() for score in scores],
            [interval(score) for score in scores],
            label=LABELS[way],
            capsize=3,
            **LOOKS[way],
        )
    axes.set_xscale("log")
    axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
    axes.minorticks_off()
    axes.set(xlabel="ε of tuning and training together", ylabel="test accuracy (%)")
    axes.set_title("Accuracy for a budget", loc="left")
    axes.legend(loc="lower right", frameon=False)


def draw_work(axes, found: dict[tuple[str, float], np.ndarray], epsilon: float) -> None:
    """Draw the accuracy of each search against its gradient evaluations, at one epsilon."""
    for way, look in LOOKS.items():
        work, scores = found[way, epsilon].T * [[1e-3], [100]]
        axes.plot(work, scores, **look, linestyle="none", alpha=0.35, markeredgewidth=0)
        axes.errorbar(
            work.mean(),
            scores.mean(),
            interval(scores),
            interval(work),
            markersize=9,
            capsize=3,
            **look,
        )
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 3, 5)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.minorticks_off()
    axes.set(xlabel="gradient evaluations of a search (thousands)")
    axes.set_title(f"Accuracy for work, at ε = {epsilon:g}", loc="left")


def draw(found: dict[tuple[str, float], np.ndarray], epsilons: list[float], output: Path) -> None:
    """Save both pictures."""
    plt.rcParams.update({"axes.spines.top": False, "axes.spines.right": False})
    plt.rcParams.update({"axes.titleweight": "bold", "axes.grid.axis": "y", "axes.grid": True})
    plt.rcParams.update({"grid.color": "#e6e6e6", "axes.axisbelow": True})
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(9.5, 4.2), layout="constrained", sharey=True
    )
    draw_accuracy(left, found, epsilons)
    draw_work(right, found, epsilons[len(epsilons) // 2])
    left.yaxis.set_major_locator(ticker.MaxNLocator(6, integer=True))
    figure.savefig(output, dpi=150)


def main() -> None:
    """Run the searches, print what they gave, and save the picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("subsampled_tuning.png"))
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 2.0, 4.0])
    parser.add_argument("--candidates", type=float, default=12, help="on average")
    parser.add_argument("--seeds", type=int, default=6, help="searches of each kind, 2 or more")
    options = parser.parse_args()
    torch.set_num_threads(1)  # such small networks are trained fastest by one
    data, found = split(), {}
    print("epsilon  way         test accuracy (%)  gradient evaluations  noise")
    for epsilon in options.epsilons:
        for way in WAYS:
            plan = search_of(way, epsilon, options.candidates, 0).plan(
                *data[0].shape, public_validation=True, compare=False
            )
            rows = results_of(way, epsilon, options.candidates, options.seeds, data)
            scores = 100 * rows[:, 1]
            print(
                f"{epsilon:7g}  {way:10s}  {scores.mean():9.2f} ± {interval(scores):4.2f}"
                f"  {rows[:, 0].mean():20,.0f}  {plan.row.effective_noise:5.2f}",
                flush=True,
            )
            found[way, epsilon] = rows
    draw(found, options.epsilons, options.output)
    print(f"\nSaved {options.output}. Bars are 95 % intervals of the mean.")


if __name__ == "__main__":
    main()
