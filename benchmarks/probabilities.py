"""How far probabilities can be relied on, as private models give them, on tables of people.

    python benchmarks/probabilities.py [--tables adult credit] [--epsilons 1] [--seeds 10]
        [--ways default sgd adam objective net "net without privacy" boosting] [--peers]
        [--ways "random search" "grid search" "random search, typed in" "grid search, typed in"]
        [--rows 600]

Log loss, Brier score, calibration error (of the largest chance, 15 bins of as many records),
slope (by what margins would have to be multiplied; two classes), area under the curve and
accuracy on held-out rows, compared with scikit-learn's logistic regression on the same encoded
columns without privacy, and with the base rate. `people.py` says where the tables come from, and
on which of them a rule was made. Searches are scored by accuracy, their default; a typed-in space
has rates and norms.

`--rows` trains on that many random rows only. `--peers` adds models of other packages, with their
defaults, the same budget and the same public ranges; packages that are not installed are named
and left out. Opacus has no default: it trains with the clipping norm of its quick start, Adam, and
ten epochs of ten batches. The learning rates are the best ones on credit and churn, of those that
`utility.py` tries.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from people import JUDGING, LARGE, SMALL, TABLES, People, people
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from torch.optim import SGD
from utility_methods import HIDDEN, network, outputs_of, train_with_opacus

from skdptune.ensemble import DPExplainableBoostingClassifier
from skdptune.linear_model import DPLogisticRegression
from skdptune.model_selection import DPGridSearchCV, DPRandomSearchCV
from skdptune.neural_network import MLP, DPNeuralNetBinaryClassifier, DPNeuralNetClassifier
from skdptune.preprocessing import Schema, TableEncoder, make_private_pipeline

DELTA = 1e-6
_BINS = 15
_LEAST_CHANCE = 1e-6
NAMES = ("log loss", "Brier", "calibration", "slope", "area", "accuracy")


def figures(chances: np.ndarray, labels: np.ndarray, classes: np.ndarray) -> list[float]:
    """Return the figures of `NAMES`."""
    chances = np.clip(chances, _LEAST_CHANCE, 1.0)
    chances = chances / chances.sum(axis=1, keepdims=True)
    codes = np.searchsorted(classes, labels)
    said, is_right = chances.max(axis=1), chances.argmax(axis=1) == codes
    bins = np.array_split(np.argsort(said), _BINS)
    gaps = [len(each) * abs(said[each].mean() - is_right[each].mean()) for each in bins]
    found = [
        log_loss(codes, chances, labels=range(len(classes))),
        float(np.mean(((chances - np.eye(len(classes))[codes]) ** 2).sum(axis=1))),
        sum(gaps) / len(labels),
        np.nan,
        np.nan,
        float(np.mean(is_right)),
    ]
    if len(classes) == 2:
        margins = np.log(chances[:, 1] / chances[:, 0])
        if np.ptp(margins) > 0.0:
            line = LogisticRegression(C=1e6).fit(margins[:, None], codes)
            found[3] = float(line.coef_[0, 0])
        found[4] = roc_auc_score(codes, margins)
    return found


# Ways to fit: from data, epsilon and seed to a model ------------------------------------------

Way = Callable[[People, float, int], Any]


def ours(model: Any) -> Way:
    """Return the way of one of our models, in a pipeline by the schema."""

    def make(data: People, epsilon: float, seed: int) -> Any:
        made = model(epsilon=epsilon, delta=DELTA, random_state=seed)
        return make_private_pipeline(made, data.schema)

    return make


def without_clipping(model: Any) -> Way:
    """Return the way of a net that neither clips nor adds noise."""

    def make(data: People, epsilon: float, seed: int) -> Any:
        settings = {"optimizer": SGD, "lr": 0.5, "max_grad_norm": 1e6, "module": MLP}
        made = model(epsilon=np.inf, delta=DELTA, random_state=seed, **settings)
        return make_private_pipeline(made, data.schema)

    return make


def search(kind: Any, **space: list[Any]) -> Way:
    """Return the way of a search that is scored by accuracy, of the suggested space if none."""

    def make(data: People, epsilon: float, seed: int) -> Any:
        model = make_private_pipeline(DPLogisticRegression(), data.schema)
        given = {f"dplogisticregression__{name}": values for name, values in space.items()}
        return kind(model, given or None, epsilon=epsilon, delta=DELTA, random_state=seed)

    return make


def boosting(data: People, epsilon: float, seed: int) -> Any:
    """Return boosted trees, which read the schema themselves."""
    return DPExplainableBoostingClassifier(
        epsilon, delta=DELTA, schema=data.schema, random_state=seed
    )


def interpret(data: People, epsilon: float, seed: int) -> Any:
    """Return the private boosting of interpret-core on the columns as they are."""
    from interpret.privacy import DPExplainableBoostingClassifier as Peer

    used = data.schema.used
    ranges = {place: (c.low, c.high) for place, c in enumerate(used) if hasattr(c, "low")}
    types = ["continuous" if place in ranges else "nominal" for place in range(len(used))]
    peer = Peer(
        feature_types=types,
        privacy_bounds=ranges,
        epsilon=epsilon,
        delta=DELTA,
        n_jobs=1,
        random_state=seed,
    )
    return make_pipeline(FunctionTransformer(filled, kw_args={"schema": data.schema}), peer)


def filled(rows: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """Return the columns of a schema, with public values in place of missing ones."""
    return pd.DataFrame(
        {
            c.name: rows[c.name].fillna((c.low + c.high) / 2.0)
            if hasattr(c, "low")
            else rows[c.name].astype(object).fillna("missing").astype(str)
            for c in schema.used
        }
    )


def diffprivlib(data: People, epsilon: float, seed: int) -> Any:
    """Return diffprivlib's logistic regression on the encoded columns, of pure privacy."""
    from diffprivlib.models import LogisticRegression as Peer

    encoder = encoder_of(data.schema)
    return make_pipeline(
        encoder, Peer(epsilon=epsilon, data_norm=encoder.data_norm, random_state=seed)
    )


class TrainedByOpacus(ClassifierMixin, BaseEstimator):
    """A linear layer (`hidden` is 0) or a small net, trained by Opacus."""

    def __init__(self, hidden: int, lr: float, epsilon: float, seed: int) -> None:
        self.hidden, self.lr, self.epsilon, self.seed = hidden, lr, epsilon, seed

    def fit(self, X: Any, y: Any) -> Any:
        """Train."""
        X = np.asarray(X)
        self.classes_, codes = np.unique(y, return_inverse=True)
        self.module_ = network(X.shape[1], self.hidden, len(self.classes_))
        train_with_opacus(self.module_, X, codes, self.lr, self.epsilon, DELTA, self.seed)
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probabilities of the classes."""
        return np.asarray(softmax(outputs_of(self.module_, np.asarray(X)), axis=1))


def opacus(hidden: int, lr: float) -> Way:
    """Return the way of a module that Opacus trains on the encoded columns."""

    def make(data: People, epsilon: float, seed: int) -> Any:
        return make_pipeline(encoder_of(data.schema), TrainedByOpacus(hidden, lr, epsilon, seed))

    return make


def encoder_of(schema: Schema) -> TableEncoder:
    """Return the encoder that pipelines use."""
    found: TableEncoder = make_private_pipeline(DPLogisticRegression(), schema)[0]
    return found


TYPED: dict[str, list[Any]] = {
    "learning_rate": [None, 3.0, 10.0],
    "max_grad_norm": [None, 0.05, 0.2],
}
WAYS: dict[str, Way] = {
    "default": ours(DPLogisticRegression),
    "sgd": ours(lambda **own: DPLogisticRegression(solver="sgd", **own)),
    "adam": ours(lambda **own: DPLogisticRegression(solver="adam", **own)),
    "objective": ours(lambda **own: DPLogisticRegression(solver="objective", **own)),
    "net": ours(DPNeuralNetClassifier),
    "net by SGD": ours(functools.partial(DPNeuralNetClassifier, MLP, optimizer=SGD)),
    "net without privacy": without_clipping(DPNeuralNetClassifier),
    "binary net": ours(DPNeuralNetBinaryClassifier),
    "binary net without privacy": without_clipping(DPNeuralNetBinaryClassifier),
    "boosting": boosting,
    "random search": search(DPRandomSearchCV),
    "grid search": search(DPGridSearchCV),
    "random search, typed in": search(DPRandomSearchCV, **TYPED),
    "grid search, typed in": search(DPGridSearchCV, **TYPED),
}
# The first word is the package.
PEERS: dict[str, Way] = {
    "diffprivlib": diffprivlib,
    "interpret": interpret,
    "opacus linear": opacus(0, lr=0.03),
    "opacus net": opacus(HIDDEN, lr=0.01),
}


def measured(
    way: Way, name: str, epsilon: float, seeds: int, n_rows: int | None = None
) -> np.ndarray:
    """Return the figures of a way, for each seed; with a number of rows, of that many only."""
    found = []
    for seed in range(seeds):
        data = people(name)
        X, X_test, y, y_test = data.split(seed)
        if n_rows is not None:
            some = np.random.default_rng(seed).permutation(len(y))[:n_rows]
            X, y = X.iloc[some], y[some]
        model = way(data, epsilon, seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, y)
            found.append(figures(model.predict_proba(X_test), y_test, np.unique(data.labels)))
    return np.array(found)


def without_privacy(data: People, epsilon: float, seed: int) -> Any:
    """Return scikit-learn's logistic regression on the encoded columns."""
    return make_pipeline(encoder_of(data.schema), LogisticRegression(max_iter=2000))


def base_rate(name: str) -> float:
    """Return the log loss of the labels' shares."""
    shares = np.unique(people(name).labels, return_counts=True)[1] / len(people(name).labels)
    return float(-(shares * np.log(shares)).sum())


def row(first: str, found: np.ndarray) -> str:
    """Return a row of means."""
    means = [np.nanmean(column) if not np.isnan(column).all() else np.nan for column in found.T]
    cells = " | ".join("" if np.isnan(mean) else f"{mean:.3f}" for mean in means)
    return f"| {first} | {cells} |"


def main() -> None:
    """Print the figures of each table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--tables", nargs="+", default=list(TABLES), choices=TABLES | LARGE | SMALL
    )
    parser.add_argument("--ways", nargs="+", default=["default"], choices=WAYS | PEERS)
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.5, 1.0, 2.0, 4.0])
    parser.add_argument("--rows", type=int)
    parser.add_argument("--seeds", type=int, default=10)
    given = parser.parse_args()
    ways = {}
    for name in [*given.ways, *(PEERS if given.peers else ())]:
        package = name.split()[0]
        if name in PEERS and importlib.util.find_spec(package) is None:
            print(f"{name} is left out: {package} is not installed.")
        else:
            ways[name] = (WAYS | PEERS)[name]
    differences: dict[tuple[str, float], dict[str, np.ndarray]] = {}
    for table in given.tables:
        try:
            data = people(table)
        except (FileNotFoundError, ModuleNotFoundError) as problem:
            print(f"\n{table}: {problem}")
            continue
        sort = "judges" if table in JUDGING else "made the rules"
        print(f"\n{table}: {len(data.labels)} rows ({sort}); base rate {base_rate(table):.3f}")
        print(f"| way, epsilon | {' | '.join(NAMES)} |")
        free = measured(without_privacy, table, np.inf, given.seeds, given.rows)
        print(row("without privacy", free), flush=True)
        for way, make in ways.items():
            for epsilon in given.epsilons:
                found = measured(make, table, epsilon, given.seeds, given.rows)
                print(row(f"{way}, {epsilon:g}", found), flush=True)
                differences.setdefault((way, epsilon), {})[table] = found - free
    for (way, epsilon), by_table in differences.items():
        print_differences(way, epsilon, by_table)


def print_differences(way: str, epsilon: float, by_table: dict[str, np.ndarray]) -> None:
    """Print mean and worst differences from no privacy, and what misses the aims."""
    for judges in (False, True):
        tables = [table for table in by_table if (table in JUDGING) == judges]
        if not tables:
            continue
        found = np.array([by_table[table].mean(axis=0) for table in tables])
        said = ", ".join(
            f"{NAMES[place]} {found[:, place].mean():+.4f} "
            f"({found[:, place].min():+.4f} to {found[:, place].max():+.4f})"
            for place in (0, 2, 5)
        )
        sort = "judge" if judges else "made the rules"
        print(f"\n{way}, {epsilon:g}, {len(tables)} tables that {sort}: {said}")
    for table, found in by_table.items():
        most_log_loss = 0.02 if epsilon >= 1.0 else 0.04
        for place, most in ((0, most_log_loss), (2, 0.01)):
            error = found[:, place].std(ddof=1) / len(found) ** 0.5 if len(found) > 1 else np.nan
            mean = found[:, place].mean()
            if mean > most:
                print(f"missed: {table}, {NAMES[place]} {mean:+.4f} ± {error:.4f}, aim {most:g}")


if __name__ == "__main__":
    main()
