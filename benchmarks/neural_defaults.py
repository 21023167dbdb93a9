"""Private nets as they come: what numbers of epochs give, and what "auto" makes of them.

    python benchmarks/neural_defaults.py                          10, 20, 30 and 40 epochs
    python benchmarks/neural_defaults.py --batch-size 1024        with larger batches
    python benchmarks/neural_defaults.py --last 0.25              the mean of the last weights
    python benchmarks/neural_defaults.py --rule --seeds 2         classifiers by SGD and by default

Test accuracy, or R², in %: of 10 epochs, and gains over it, the mean over seeds (each another
split and other noise), 64 hidden units. A star marks what "auto" is. The rule was made on the
first data sets and judged on the others. With --rule, accuracy and log loss of classifiers trained
by SGD on batches, and what the default gains. Data of the UCI, Fashion-MNIST and Adult are read
from SKDPTUNE_DATA, or ../shared/data.
"""

from __future__ import annotations

import argparse
import itertools
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from data_sets import JUDGING, MAKING, a9a
from sklearn.datasets import make_friedman1
from sklearn.metrics import log_loss
from skorch.callbacks import Callback
from utility_problems import PROBLEMS, Fold, of_classes, of_numbers

import skdptune
from skdptune.neural_network import (
    MLP,
    DPNeuralNetBinaryClassifier,
    DPNeuralNetClassifier,
    DPNeuralNetRegressor,
    PopulationTrainer,
)

DELTA = 1e-5
# The number of epochs that others are compared with.
BASE = 10
# The former default.
BY_SGD = {"module": MLP, "optimizer": torch.optim.SGD}
# The least rows of data on which fits take long, or are less alike, and the seeds there.
LEAST_ROWS = {20: 0, 3: 1500, 2: 8000}
Folds = Callable[[int], Fold]


def curved(rows: int, columns: int, seed: int) -> Callable[[], Folds]:
    """Return a way to make a curved regression, of which three quarters are trained on."""
    made = {"noise": 1.0, "random_state": seed}
    return lambda: of_numbers(*make_friedman1(rows * 4 // 3, columns, **made))


MADE_ON: dict[str, Callable[[], Folds]] = {
    "cancer": of_classes(MAKING["cancer"]),
    "made 500": of_classes(MAKING["made 500"]),
    "made 2000": of_classes(MAKING["made 2000"]),
    "parkinsons, above median": of_classes(MAKING["parkinsons"]),
    "made rare": of_classes(MAKING["made rare"]),
    "a9a 10k": of_classes(MAKING["a9a 10k"]),
    "a9a 30k": of_classes(lambda: a9a(30_000)),
    "digits": of_classes(MAKING["digits"]),
    "made 5 classes": of_classes(MAKING["made 5 classes"]),
    "fashion 10k": of_classes(JUDGING["fashion 10k"]),
    "made curved 1000": curved(1000, 10, 41),
    "made curved 4000": curved(4000, 10, 42),
    "made curved 10k": curved(10_002, 20, 43),
    "made curved 17k": curved(16_002, 20, 43),
    "bike": PROBLEMS["bike"].load,
}
JUDGED_ON: dict[str, Callable[[], Folds]] = {
    "diabetes, above median": of_classes(JUDGING["diabetes"]),
    "made two clusters": of_classes(JUDGING["made two clusters"]),
    "made redundant": of_classes(JUDGING["made redundant"]),
    "hastie": of_classes(JUDGING["hastie"]),
    "adult raw": PROBLEMS["adult raw"].load,
    "wine": of_classes(JUDGING["wine"]),
    "made 1000": of_classes(JUDGING["made 1000"]),
    "made rare, 4 classes": of_classes(JUDGING["made rare, 4 classes"]),
    "diabetes": PROBLEMS["diabetes"].load,
    "airfoil": PROBLEMS["airfoil"].load,
    "parkinsons": PROBLEMS["parkinsons"].load,
    "elevators": PROBLEMS["elevators"].load,
    "protein": PROBLEMS["protein"].load,
}


class MeanOfLast(Callback):
    """Puts the mean of the weights of the last steps in place of the last weights."""

    data_independent = True

    def __init__(self, steps: int, share: float) -> None:
        self.first = steps - math.ceil(share * steps)
        self.taken, self.total = 0, 0.0

    def on_batch_end(self, net: Any, **_: Any) -> None:
        """Add the weights after a step."""
        self.taken += 1
        if self.taken > self.first:
            weights = torch.nn.utils.parameters_to_vector(net.module_.parameters())
            self.total = self.total + weights.detach().double()

    def on_train_end(self, net: Any, **_: Any) -> None:
        """Set the mean."""
        mean = (self.total / (self.taken - self.first)).float()
        torch.nn.utils.vector_to_parameters(mean, net.module_.parameters())


def net_of(fold: Fold, **settings: Any) -> Any:
    """Return a net that suits the targets."""
    if fold.y.dtype.kind == "f":
        return DPNeuralNetRegressor(**settings)
    if len(np.unique(fold.y)) == 2:
        return DPNeuralNetBinaryClassifier(**settings)
    return DPNeuralNetClassifier(**settings)


def scores(
    fold: Fold, seed: int, cells: list[tuple[float, int]], arguments: argparse.Namespace
) -> list[float]:
    """Return the test scores in %, by epsilon and epochs, of nets that are trained together."""
    nets = []
    for epsilon, epochs in cells:
        net = net_of(
            fold,
            module=MLP(hidden=(arguments.hidden,)),
            epsilon=epsilon,
            delta=DELTA,
            max_epochs=epochs,
            batch_size=arguments.batch_size,
            lr=0.5,
            optimizer=torch.optim.SGD,
            random_state=seed,
        )
        if arguments.last:
            steps = net._settings_before_data(len(fold.y)).plan.steps
            net.set_params(callbacks=[MeanOfLast(steps, arguments.last)])
        nets.append(net)
    y = fold.y.astype(np.float32) if fold.y.dtype.kind == "f" else fold.y
    PopulationTrainer().fit(nets, fold.X.astype(np.float32), y)
    test = fold.X_test.astype(np.float32)
    return [100.0 * float(net.score(test, fold.y_test)) for net in nets]


def print_data(name: str, folds: list[Fold], arguments: argparse.Namespace) -> dict[float, float]:
    """Print a data set's scores, and return what "auto" gains at each epsilon."""
    rows = len(folds[0].y)
    (automatic,) = net_of(folds[0], optimizer=torch.optim.SGD).fixed_epochs(rows).values()
    tried = sorted({*arguments.epochs, int(automatic), BASE})
    cells = list(itertools.product(arguments.epsilons, tried))
    table = np.array([scores(fold, seed, cells, arguments) for seed, fold in enumerate(folds)])
    table = table.reshape(len(folds), len(arguments.epsilons), len(tried))
    gained = {}
    for epsilon, found in zip(arguments.epsilons, table.transpose(1, 2, 0), strict=True):
        base = found[tried.index(BASE)]
        words = [f"{BASE}{'*' if automatic == BASE else ''}: {base.mean():6.1f}"]
        for epochs, values in zip(tried, found, strict=True):
            gain = values - base
            error = np.std(gain, ddof=1) / math.sqrt(len(gain)) if len(gain) > 1 else math.nan
            star = "*" if epochs == automatic else ""
            if epochs != BASE:
                words.append(f"{epochs}{star}: {gain.mean():+.1f} ± {error:.1f}")
            if star:
                gained[epsilon] = float(gain.mean())
        print(f"{name:25s} {rows:6d}  epsilon {epsilon:<4g} " + "   ".join(words), flush=True)
    return gained


def print_rule(name: str, folds: list[Fold], arguments: argparse.Namespace) -> dict[float, float]:
    """Print figures of a classifier by SGD and as it comes, and return what the default gains."""
    gained = {}
    for epsilon in arguments.epsilons:
        found = np.array([by_rule(fold, seed, epsilon) for seed, fold in enumerate(folds)])
        before, gain = found[:, 0].mean(axis=0), found[:, 1] - found[:, 0]
        error = (
            gain.std(axis=0, ddof=1) / math.sqrt(len(gain)) if len(gain) > 1 else gain[0] * np.nan
        )
        gained[epsilon] = float(gain[:, 0].mean())
        words = [
            f"{what} {value:.{digits}f}, {change:+.{digits}f} ± {deviation:.{digits}f}"
            for what, digits, value, change, deviation in zip(
                ("accuracy", "log loss"), (1, 3), before, gain.mean(axis=0), error, strict=True
            )
        ]
        print(f"{name:25s} {len(folds[0].y):6d}  epsilon {epsilon:<4g}", *words, flush=True)
    return gained


def by_rule(fold: Fold, seed: int, epsilon: float) -> list[list[float]]:
    """Return accuracy in % and log loss of a classifier by SGD, and as it comes."""
    X, test = fold.X.astype(np.float32), fold.X_test.astype(np.float32)
    found = []
    for settings in (BY_SGD, {}):
        with skdptune.config_context(ledger=False):
            net = net_of(fold, epsilon=epsilon, delta=DELTA, random_state=seed, **settings)
            net.fit(X, fold.y)
        chances = np.clip(net.predict_proba(test), 1e-6, 1.0)
        accuracy = 100.0 * float(net.score(test, fold.y_test))
        found.append([accuracy, log_loss(fold.y_test, chances / chances.sum(axis=1)[:, None])])
    return found


def parsed() -> argparse.Namespace:
    """Return the options."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", nargs="+", choices=[*MADE_ON, *JUDGED_ON])
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.5, 1.0, 2.0, 4.0])
    parser.add_argument("--epochs", nargs="+", type=int, default=[10, 20, 30, 40])
    parser.add_argument("--seeds", type=int, help="20, 3 or 2 by the rows")
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument(
        "--rule", action="store_true", help="the default of classifiers, compared with SGD"
    )
    parser.add_argument("--last", type=float, default=0.0, help="share of the steps to average")
    return parser.parse_args()


def main() -> None:
    """Print the data sets that the rule was made on and those that judge it, and the means."""
    arguments = parsed()
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    for title, sets in (("Made on", MADE_ON), ("Judged on", JUDGED_ON)):
        gained = []
        for name in [name for name in sets if arguments.data is None or name in arguments.data]:
            folds_of = sets[name]()
            size = len(folds_of(0).y)
            if arguments.rule and folds_of(0).y.dtype.kind == "f":
                continue
            seeds = arguments.seeds or min(k for k, rows in LEAST_ROWS.items() if size >= rows)
            show = print_rule if arguments.rule else print_data
            gained.append(show(name, [folds_of(s) for s in range(seeds)], arguments))
        for epsilon in arguments.epsilons if gained else []:
            values = [one[epsilon] for one in gained]
            what = "the default" if arguments.rule else '"auto"'
            print(
                f"{title} {len(values)}: {what} gains {np.mean(values):+.2f} at epsilon "
                f"{epsilon:g}, {min(values):+.1f} to {max(values):+.1f}"
            )


if __name__ == "__main__":
    main()
