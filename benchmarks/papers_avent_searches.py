"""The searches behind figures 5 to 8 and Table 2 of Avent et al. (2020), for `papers_avent.py`.

Each search is kept as one line of JSON: its points in the order of their evaluation, so that
hypervolumes are measured on either axis, and fronts drawn, without a further fit.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from pareto_problems import PROBLEMS, Problem, a1a
from scipy import stats
from sklearn.base import clone

from skdptune.model_selection import DParetoSearchCV, ParetoFront
from skdptune.model_selection._pareto._surrogates import front, hypervolume_history

DELTA, INITIAL = 1e-5, 16
REFERENCE = (10.0, 1.0)
AXES = ("linear", "log")
LINEAR = ("logreg-sgd", "logreg-adam", "svm-sgd")
NETWORKS = ("mlp1", "mlp2")
NAMES = {
    "logreg-sgd": "LogReg + SGD",
    "logreg-adam": "LogReg + Adam",
    "svm-sgd": "SVM + SGD",
    "mlp1": "1,000 units",
    "mlp2": "128 and 64 units",
}


@dataclass(frozen=True)
class Found:
    """The evaluations of one search.

    Attributes
    ----------
    problem, sampler, axis : str
        Of `PROBLEMS`, of `DParetoSearchCV`, and the scale of epsilon in its hypervolume.
    seed : int
    points : list of (epsilon, error)
    seconds : float
        Of the whole search.
    spreads : list of (epsilon, best, mean and worst error)
        Of the front, refitted; empty where it was not.
    """

    problem: str
    sampler: str
    axis: str
    seed: int
    points: list[list[float]]
    seconds: float
    spreads: list[list[float]] = field(default_factory=list)

    def history(self, axis: str) -> np.ndarray:
        """Return the hypervolume after each evaluation."""
        return hypervolume_history(np.array(self.points), REFERENCE, axis)

    def front(self) -> np.ndarray:
        """Return the front's points up to the reference's epsilon, by rising epsilon."""
        points = np.array(self.points)
        points = points[np.isfinite(points).all(axis=1)]
        return front(points[points[:, 0] <= REFERENCE[0]])


def problem_of(name: str, train: int | None, epochs: int | None) -> Problem:
    """Return a problem; linear models on records as many as the authors had."""
    if name in LINEAR:
        problem = PROBLEMS[name](1).with_split(a1a(train))
    else:
        problem = PROBLEMS[name](train or 60_000)
    return problem.with_epochs(epochs)


def search_of(
    name: str, problem: Problem, sampler: str, axis: str, seed: int, evaluations: int, refits: int
) -> Found:
    """Run one search; with refits, fit the front's parameters this many additional times."""
    number = int(sampler[-1]) ** 5 if sampler.startswith("grid") else evaluations
    search = DParetoSearchCV(
        problem.estimator,
        problem.space(sampler),
        delta=DELTA,
        n_iter=max(number - INITIAL, 0),
        strategy=ParetoFront(
            n_initial=min(INITIAL, number), sampler=sampler.rstrip("234"), epsilon_scale=axis
        ),
        random_state=seed,
    )
    X, X_test, y, y_test = problem.split
    start = time.process_time()
    search.fit(X, y, X_val=X_test, y_val=y_test)
    seconds = time.process_time() - start
    table = search.evaluations_
    points = np.column_stack([table["epsilon"], table["error"]]).tolist()
    spreads = spreads_of(search, problem, seed, refits) if refits else []
    return Found(name, sampler, axis, seed, points, round(seconds, 1), spreads)


def spreads_of(search: Any, problem: Problem, seed: int, refits: int) -> list[list[float]]:
    """Return epsilon with the best, mean and worst error of refits, for the whole front."""
    X, X_test, y, y_test = problem.split
    rows = []
    table = search.pareto_front_
    for epsilon, params in zip(table["epsilon"], table["params"], strict=True):
        if epsilon > REFERENCE[0]:
            continue
        errors = []
        for repeat in range(refits):
            model = clone(problem.estimator).set_params(**params)
            model.set_params(epsilon=None, delta=DELTA, random_state=1000 * seed + repeat)
            errors.append(1.0 - float(model.fit(X, y).score(X_test, y_test)))
        rows.append([float(epsilon), min(errors), float(np.mean(errors)), max(errors)])
    return rows


def save_search(path: Path, found: Found) -> None:
    """Append a search to a file."""
    with path.open("a") as file:
        file.write(json.dumps(asdict(found)) + "\n")


def load(path: Path) -> list[Found]:
    """Return all searches of a file, none if there is no such file."""
    if not path.exists():
        return []
    return [Found(**json.loads(line)) for line in path.read_text().splitlines()]


def selected(found: Iterable[Found], problem: str, sampler: str, axis: str | None) -> list[Found]:
    """Return the searches of a kind; random ones and grids serve both axes."""
    return [
        one
        for one in found
        if one.problem == problem and one.sampler == sampler and axis in (None, one.axis)
    ]


def half_width(values: np.ndarray) -> float:
    """Return half of the 95 % interval of a mean, by Student's distribution."""
    if len(values) < 2:
        return float("nan")
    return float(stats.t.ppf(0.975, len(values) - 1) * stats.sem(values))
