"""How far curves and thresholds of a private histogram of scores are from the truth.

    python benchmarks/curves.py [tables] [--tables adult smokers] [--epsilons 1] [--seeds 20]
    python benchmarks/curves.py rare [--epsilons 1] [--seeds 10]

"tables", on tables of people: the area under the ROC curve that `PrivateScoreCurves` tells of its
training rows, and that of the same model on held-out rows, with the deviation that it
tells and how often 1.96 of them hold the truth; the recall on rows held out where
`PrivateThreshold` was asked for .8; and what the histogram costs the model: its area less that of
the classifier with the whole budget. "rare", on made-up rows of which 1 in 200 is ill: area, and
recall and precision at the threshold for a recall of .8, of the classifier as it comes and with
weights of classes, which take the default threshold.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from people import TABLES, people
from sklearn.metrics import precision_score, recall_score, roc_auc_score

from skdptune.calibration import PrivateScoreCurves, PrivateThreshold
from skdptune.linear_model import DPLogisticRegression
from skdptune.preprocessing import make_private_pipeline

DELTA = 1e-6
WANTED = 0.8
ROWS, COLUMNS, RATE = 50_000, 10, 0.005


def on_table(name: str, epsilon: float, seed: int) -> dict[str, float]:
    """Return the figures of one split and one fit of each kind."""
    data = people(name)
    X, X_test, y, y_test = data.split(seed)
    classes = np.unique(data.labels)
    budget = {"epsilon": epsilon, "delta": DELTA, "random_state": seed}
    plain = make_private_pipeline(DPLogisticRegression(**budget), data.schema).fit(X, y)
    told = PrivateThreshold(DPLogisticRegression(), at_least=WANTED, insist=True, **budget)
    model = make_private_pipeline(told, data.schema).fit(X, y)
    found = model[-1]
    is_positive = y_test == classes[1]
    truth = roc_auc_score(is_positive, model.predict_proba(X_test)[:, 1])
    return {
        "error": found.roc_auc_ - truth,
        "told": found.roc_auc_std_,
        "held": float(abs(found.roc_auc_ - truth) <= 1.96 * found.roc_auc_std_),
        "recall": recall_score(is_positive, model.predict(X_test) == classes[1]),
        "cost": truth - roc_auc_score(is_positive, plain.predict_proba(X_test)[:, 1]),
        "area": truth,
    }


def of_tables(given: Any) -> Iterator[str]:
    """Yield rows of means over the seeds."""
    yield "| table, rows, ε | area | error (RMS) | told | within 1.96 | recall | cost |"
    for name in given.tables:
        for epsilon in given.epsilons:
            runs = [on_table(name, epsilon, seed) for seed in range(given.seeds)]
            mean = {key: float(np.mean([run[key] for run in runs])) for key in runs[0]}
            error = float(np.sqrt(np.mean([run["error"] ** 2 for run in runs])))
            recall = np.array([run["recall"] for run in runs])
            size = len(people(name).split(0)[2])
            # As `fit` refuses it without insist=True.
            mark = "" if _is_enough(size, epsilon) else ", refused"
            yield (
                f"| {name}, {size}, {epsilon:g}{mark} | {mean['area']:.3f} | {error:.3f} | "
                f"{mean['told']:.3f} | {mean['held']:.2f} | {recall.mean():.3f} ± "
                f"{recall.std():.3f} | {mean['cost']:+.4f} |"
            )


def _is_enough(size: int, epsilon: float) -> bool:
    try:
        model = PrivateScoreCurves(DPLogisticRegression(), epsilon=epsilon, delta=DELTA)
        model.privacy_profile(size)
    except ValueError:
        return False
    return True


def on_rare(epsilon: float, seed: int, weight: float | None) -> list[float]:
    """Return area, recall and precision on fresh rows, for a weight of the rare class or none."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2 * ROWS, COLUMNS))
    signal = 1.2 * X[:, 0] + X[:, 1] + rng.logistic(size=2 * ROWS)
    y = (signal > np.quantile(signal, 1.0 - RATE)).astype(int)
    budget = {"epsilon": epsilon, "delta": DELTA, "random_state": seed}
    model: Any = PrivateThreshold(DPLogisticRegression(), at_least=WANTED, insist=True, **budget)
    if weight is not None:
        model = DPLogisticRegression(class_weight={0: 1.0, 1: weight}, **budget)
    model.fit(X[:ROWS], y[:ROWS])
    said, fresh = model.predict(X[ROWS:]), y[ROWS:]
    return [
        roc_auc_score(fresh, model.decision_function(X[ROWS:])),
        recall_score(fresh, said),
        precision_score(fresh, said, zero_division=0),
    ]


def of_rare(given: Any) -> Iterator[str]:
    """Yield rows of means over the seeds."""
    yield "| way, ε | area | recall | precision |"
    for epsilon in given.epsilons:
        for weight in (None, 1.0, 20.0, 200.0):
            found = np.mean([on_rare(epsilon, s, weight) for s in range(given.seeds)], axis=0)
            way = "PrivateThreshold" if weight is None else f"weight {weight:g}"
            area, recall, precision = found
            yield f"| {way}, {epsilon:g} | {area:.3f} | {recall:.3f} | {precision:.3f} |"


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="?", default="tables", choices=["tables", "rare"])
    tables = ["adult", "health insurance", "smokers"]
    parser.add_argument("--tables", nargs="+", default=tables, choices=TABLES)
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.5, 1.0, 2.0])
    parser.add_argument("--seeds", type=int, default=20)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    for line in of_tables(given) if given.what == "tables" else of_rare(given):
        print(line, flush=True)


if __name__ == "__main__":
    main()
