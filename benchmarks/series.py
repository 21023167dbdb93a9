"""Headline figures over time: measure them, append them to series.csv, and draw them.

    python benchmarks/series.py [--no-append]

`.ci/nightly` appends a line for each figure to the file of the checkout and draws the picture of
docs/benchmarks.md anew; committing both is left to a person. Times are ratios of processor time to
a peer that is measured in the same run. The numbers that were drawn are in the picture's
description, which a test compares with the file.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.metrics import log_loss

from skdptune import (
    DPGridSearchCV,
    DPLogisticRegression,
    DPRandomSearchCV,
    PrivateRows,
    Schema,
    config_context,
    make_private_pipeline,
)

FILE = Path(__file__).with_name("series.csv")
PICTURE = Path(__file__).parents[1] / "docs" / "images" / "benchmarks" / "series.png"
DELTA, EPSILON = 1e-6, 1.0
N_SAMPLES, N_FEATURES = 30_000, 20
_REPETITIONS = 5
_EPOCHS = 5

# Figures ------------------------------------------------------------------------------------


def noise_of_random_search() -> float:
    """Noise of the final fit of a default random search, over that of one fit without tuning."""
    return _noise_ratio(DPRandomSearchCV(DPLogisticRegression(), {"C": [0.1, 1.0]}))


def noise_of_table() -> float:
    """Noise of the final fit of a default table of ten, over that of one fit without tuning."""
    return _noise_ratio(DPGridSearchCV(DPLogisticRegression(), {"C": np.logspace(-3, 3, 10)}))


def _noise_ratio(search: Any) -> float:
    search.set_params(epsilon=EPSILON, delta=DELTA)
    row = search.plan(N_SAMPLES, N_FEATURES).row
    alone = DPLogisticRegression(epsilon=EPSILON, delta=DELTA)
    level = alone.noise_level(N_SAMPLES, N_FEATURES)
    return float(row.effective_noise / level)


def time_of_fit() -> float:
    """Time of a private fit of 30,000 rows, over that of scikit-learn's logistic regression."""
    X, y = _table(0)
    ours = DPLogisticRegression(epsilon=EPSILON, delta=DELTA, random_state=0)
    return _least_time(lambda: ours.fit(X, y)) / _least_time(lambda: _peer().fit(X, y))


def time_of_import() -> float:
    """Processor time to import skdptune and a first estimator, over that of scikit-learn's own."""
    ours = "from skdptune import DPLogisticRegression"
    peers = "from sklearn.linear_model import LogisticRegression"
    times = (_least_time(partial(_fresh, code), _time_of_children) for code in (ours, peers))
    return next(times) / next(times)


def time_of_search() -> float:
    """Time of a random search, plan included, over that of one fit."""
    X, y = _table(0)
    search = DPRandomSearchCV(
        DPLogisticRegression(), {"C": [0.1, 1.0]}, epsilon=EPSILON, delta=DELTA, random_state=0
    )
    alone = DPLogisticRegression(epsilon=EPSILON, delta=DELTA, random_state=0)
    return _least_time(lambda: search.fit(X, y)) / _least_time(lambda: alone.fit(X, y))


def time_of_epoch() -> float:
    """Time of an epoch of batches of 256 rows, over that of scikit-learn's SGDClassifier."""
    X, y = _table(0)
    ours = DPLogisticRegression(
        None, noise_multiplier=1.0, solver="sgd", batch_size=256, epochs=_EPOCHS, random_state=0
    )
    peer = SGDClassifier(max_iter=_EPOCHS, tol=None, random_state=0)
    return _least_time(lambda: ours.fit(X, y)) / _least_time(lambda: peer.fit(X, y))


def time_of_pass() -> float:
    """Time of a pass of a fit over 500,000 rows in files, over that of reading the files."""
    from scale import nothing, write

    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), 500_000, N_FEATURES)
        rows = PrivateRows.from_parquet(folder, target="y")
        read = _least_time(lambda: rows.total(nothing))
        model = DPLogisticRegression(
            epsilon=EPSILON, delta=DELTA, classes=[0, 1], epochs=_EPOCHS, random_state=0
        )
        total = rows._carrier.total
        with mock.patch.object(rows._carrier, "total", side_effect=total) as passes:
            start = time.process_time()
            model.fit(rows)
            seconds = time.process_time() - start
    return seconds / passes.call_count / read


def size_of_pickle() -> float:
    """Size of a pickled random search over a pipeline, in kB."""
    pipeline = make_private_pipeline(
        DPLogisticRegression(), Schema({f"x{place}": (-4, 4) for place in range(N_FEATURES)})
    )
    space = {"dplogisticregression__C": [0.1, 1.0]}
    search = DPRandomSearchCV(pipeline, space, epsilon=EPSILON, delta=DELTA, random_state=0)
    X, y = _table(0)
    names = pipeline[0].schema.columns
    search.fit(pd.DataFrame(X, columns=list(names)), y)
    return len(pickle.dumps(search)) / 1e3


def log_loss_beside_no_privacy() -> float:
    """Log loss of the default at epsilon 1 on 3,000 new rows, less that without privacy."""
    differences = []
    for seed in range(20):
        X, y = _table(seed, 6000)
        train, test = slice(0, 3000), slice(3000, None)
        model = DPLogisticRegression(epsilon=EPSILON, delta=DELTA, random_state=seed)
        private, public = (each.fit(X[train], y[train]) for each in (model, _peer()))
        losses = [log_loss(y[test], each.predict_proba(X[test])) for each in (private, public)]
        differences.append(losses[0] - losses[1])
    return float(np.mean(differences))


FIGURES: dict[str, Callable[[], float]] = {
    "noise: random search / no tuning": noise_of_random_search,
    "noise: table of ten / no tuning": noise_of_table,
    "log loss at ε = 1, less that without privacy": log_loss_beside_no_privacy,
    "time: fit / scikit-learn's": time_of_fit,
    "time: random search / fit": time_of_search,
    "time: import / scikit-learn's": time_of_import,
    "time: epoch of batches / scikit-learn's": time_of_epoch,
    "time: pass in parts / reading": time_of_pass,
    "size: pickle of a search, kB": size_of_pickle,
}


def _peer() -> LogisticRegression:
    return LogisticRegression(max_iter=1000)


def _table(seed: int, n_samples: int = N_SAMPLES) -> tuple[np.ndarray, np.ndarray]:
    """Return rows with labels that follow them and chance."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, N_FEATURES))
    chances = 1.0 / (1.0 + np.exp(-X[:, :5].sum(axis=1)))
    return X, rng.uniform(size=n_samples) < chances


def _least_time(
    function: Callable[[], object], clock: Callable[[], float] = time.process_time
) -> float:
    """Return the least of several times, after a first call that is not counted."""
    function()
    times = []
    for _ in range(_REPETITIONS):
        start = clock()
        function()
        times.append(clock() - start)
    return min(times)


def _time_of_children() -> float:
    """Return the processor time of ended processes."""
    found = os.times()
    return found.children_user + found.children_system


def _fresh(code: str) -> None:
    # An installed package has its bytecode.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


# The file and its picture ---------------------------------------------------------------------


def commit() -> str:
    """Return the short name of the commit that is measured, or nothing outside a repository."""
    command = ["git", "rev-parse", "--short=10", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=FILE.parent)
    return done.stdout.strip()


def read(file: Path = FILE) -> list[dict[str, str]]:
    """Return the lines of the file."""
    with file.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def series(rows: list[dict[str, str]]) -> dict[str, list[tuple[str, float]]]:
    """Return the day and the value of each figure, oldest first."""
    return {
        name: [(row["day"], float(row["value"])) for row in rows if row["figure"] == name]
        for name in FIGURES
    }


def append(file: Path, values: dict[str, float], day: str, name: str) -> None:
    """Append a line for each figure."""
    with file.open("a", encoding="utf-8", newline="") as lines:
        writer = csv.writer(lines, lineterminator="\n")
        if not lines.tell():
            writer.writerow(["day", "commit", "figure", "value"])
        writer.writerows([day, name, figure, f"{value:.4g}"] for figure, value in values.items())


def numbers_of(found: dict[str, list[tuple[str, float]]]) -> str:
    """Return what the picture draws, as text."""
    return json.dumps(found, ensure_ascii=True)


def draw(found: dict[str, list[tuple[str, float]]], picture: Path) -> None:
    """Draw each figure in its own panel."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    # Two columns, so that the text is legible on a telephone.
    n_rows = math.ceil(len(found) / 2)
    figure, axes = plt.subplots(n_rows, 2, figsize=(5.6, 2.0 * n_rows), layout="constrained")
    for ax in axes.flat[len(found) :]:
        ax.remove()
    for ax, (name, points) in zip(axes.flat, found.items(), strict=False):
        values = [value for _, value in points]
        ax.plot(range(len(values)), values, color="#0072B2", marker="o", markersize=4)
        shown = sorted({0, len(points) - 1})
        ax.set_xticks(shown, [points[place][0] for place in shown], fontsize=8)
        ax.set_ylim(min(0.0, *values), 1.25 * max(values))
        ax.set_title(name, fontsize="small", loc="left")
        ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(picture, dpi=140, metadata={"Description": numbers_of(found)})


def main() -> None:
    """Measure, append and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--file", type=Path, default=FILE)
    parser.add_argument("--picture", type=Path, default=PICTURE)
    parser.add_argument("--commit", default=None, help="the commit that is measured")
    parser.add_argument("--day", default=datetime.now(UTC).date().isoformat())
    parser.add_argument("--append", action=argparse.BooleanOptionalAction, default=True)
    options = parser.parse_args()
    values = {}
    for name, measure in FIGURES.items():
        # The rows are made up.
        with config_context(ledger=False):
            values[name] = measure()
        print(f"{values[name]:10.4g}  {name}", flush=True)
    if options.append:
        name = commit() if options.commit is None else options.commit
        append(options.file, values, options.day, name)
        draw(series(read(options.file)), options.picture)


if __name__ == "__main__":
    main()
