"""How far curves and thresholds of a private histogram of scores are from the truth.

    python benchmarks/curves.py [tables] [--tables adult smokers] [--epsilons 1] [--seeds 20]
    python benchmarks/curves.py criteria [--tables adult smokers] [--epsilons 1] [--seeds 20]
    python benchmarks/curves.py rare [--epsilons 1] [--seeds 10]

"tables", on tables of people: the area under the ROC curve that `PrivateScoreCurves` tells of its
training rows, and that of the same model on held-out rows, with the deviation that it
tells and how often 1.96 of them hold the truth; the recall on rows held out where
`PrivateThreshold` was asked for .8; and what the histogram costs the model: its area less that of
the classifier with the whole budget. The last columns are the share of all points of a curve that
1.96 deviations hold, if the held-out rows are the truth and their sampling is added: of the false
positive rate, of precision and of reliability. "criteria": precision on held-out rows where
`PrivateThreshold` was asked for one in the middle between the share of the label and 1, and the
mean cost of a record, with a missed label at five times a false alarm, and the least cost that
any threshold has on the held-out rows. "rare", on made-up rows of which 1 in 200 is ill: area, and
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
from scipy import special
from sklearn.metrics import precision_score, recall_score, roc_auc_score

from skdptune.calibration import PrivateScoreCurves, PrivateThreshold
from skdptune.linear_model import DPLogisticRegression
from skdptune.preprocessing import make_private_pipeline

DELTA = 1e-6
WANTED = 0.8
# Cost of a missed label; that of a false alarm is 1.
MISSED = 5.0
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
    } | covered(found, model.predict_proba(X_test)[:, 1], is_positive)


def covered(found: Any, chances: np.ndarray, is_positive: np.ndarray) -> dict[str, float]:
    """Return the shares of points of curves that are within 1.96 deviations of held-out rows."""

    def share(said: Any, deviation: Any, rows: list[np.ndarray], is_hit: np.ndarray) -> float:
        hits = np.array([is_hit[each].sum() for each in rows], dtype=float)
        sizes = np.array([max(each.sum(), 1) for each in rows])
        true = (hits + 1.0) / (sizes + 2.0)
        spread = np.hypot(deviation, np.sqrt(true * (1.0 - true) / sizes))
        return float(np.mean(np.abs(said - hits / sizes) <= 1.96 * spread))

    roc, other, told = found.roc_curve_, found.precision_recall_curve_, found.reliability_
    inner = slice(1, -1)
    false = [chances[~is_positive] >= limit for limit in roc.thresholds[inner]]
    rates = np.array([each.mean() for each in false])
    size = (~is_positive).sum()
    spread = np.hypot(roc.fpr_std[inner], np.sqrt((rates + 1.0 / size) * (1.0 - rates) / size))
    edges = special.expit(found.histogram_.edges)
    bins = np.clip(np.digitize(chances, edges) - 1, 0, edges.size - 2)
    places = np.searchsorted(edges, told.prob_pred) - 1
    return {
        "fpr": float(np.mean(np.abs(roc.fpr[inner] - rates) <= 1.96 * spread)),
        "precision": share(
            other.precision,
            other.precision_std,
            [chances >= limit for limit in other.thresholds],
            is_positive,
        ),
        "reliability": share(
            told.prob_true, told.prob_true_std, [bins == place for place in places], is_positive
        ),
    }


def of_tables(given: Any) -> Iterator[str]:
    """Yield rows of means over the seeds."""
    yield (
        "| table, rows, ε | area | error (RMS) | told | within 1.96 | recall | cost | "
        "points: false positive rate | precision | reliability |"
    )
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
                f"{recall.std():.3f} | {mean['cost']:+.4f} | {mean['fpr']:.2f} | "
                f"{mean['precision']:.2f} | {mean['reliability']:.2f} |"
            )


def of_criteria(given: Any) -> Iterator[str]:
    """Yield rows of precision and of costs on held-out rows, over the seeds."""
    yield "| table, ε | wanted precision | precision | cost | least cost | cost at a half |"
    for name in given.tables:
        data = people(name)
        positive = np.unique(data.labels)[1]
        wanted = 0.5 + 0.5 * float(np.mean(data.labels == positive))
        for epsilon in given.epsilons:
            found = []
            for seed in range(given.seeds):
                X, X_test, y, y_test = data.split(seed)
                budget = {"epsilon": epsilon, "delta": DELTA, "random_state": seed}
                model = DPLogisticRegression()
                by = {"precision": {"at_least": wanted}, "cost": {"costs": (1.0, MISSED)}}
                precise, cheap = (
                    make_private_pipeline(
                        PrivateThreshold(model, metric=name, insist=True, **more, **budget),
                        data.schema,
                    ).fit(X, y)
                    for name, more in by.items()
                )
                is_ill, chances = y_test == positive, cheap.predict_proba(X_test)[:, 1]
                costs = [cost(chances >= limit, is_ill) for limit in np.linspace(0.0, 1.0, 201)]
                said = precise.predict(X_test) == positive
                found.append(
                    [
                        precision_score(is_ill, said, zero_division=np.nan),
                        cost(cheap.predict(X_test) == positive, is_ill),
                        min(costs),
                        cost(chances >= 0.5, is_ill),
                    ]
                )
            of, paid, least, plain = np.nanmean(found, axis=0)
            error = np.nanstd([row[0] for row in found])
            yield (
                f"| {name}, {epsilon:g} | {wanted:.3f} | {of:.3f} ± {error:.3f} | {paid:.4f} | "
                f"{least:.4f} | {plain:.4f} |"
            )


def cost(said: np.ndarray, truth: np.ndarray) -> float:
    """Return the mean cost of a record."""
    return float(np.mean(said & ~truth) + MISSED * np.mean(~said & truth))


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


KINDS = {"tables": of_tables, "criteria": of_criteria, "rare": of_rare}


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="?", default="tables", choices=list(KINDS))
    tables = ["adult", "health insurance", "smokers"]
    parser.add_argument("--tables", nargs="+", default=tables, choices=TABLES)
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.5, 1.0, 2.0])
    parser.add_argument("--seeds", type=int, default=20)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    for line in KINDS[given.what](given):
        print(line, flush=True)


if __name__ == "__main__":
    main()
