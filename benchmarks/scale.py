"""Fits to parquet files that are larger than memory: time per pass, and memory.

    python benchmarks/scale.py [--rows 1000000] [--columns 50] [--folder FOLDER]
                               [--steps 10] [--batches | --dask | --search]

The script writes files of float32 columns, and then measures

* read: one pass over the files that only reads them, as a fit does;
* DPRidge, DPLogisticRegression: the time of a fit over its passes, each relative to "read"; the
  classifier takes ten steps, or --steps, with its default solver;
* DPLogisticRegression with "sgd", with --batches: the same for batches of 1,000 rows in 20 epochs,
  and then for the same rows in memory, which gives the same model;
* SGDRegressor, SGDClassifier: scikit-learn's `partial_fit` of one pass over the same chunks,
  without privacy;
* dask: with --dask, both fits on one worker process and on two, with the rows persisted in them;
* search: with --search, a search of three settings of the classifier, on a table in memory, on the
  files and on a dask DataFrame of them, in seconds of the processor.

"memory" is the largest resident size of the process so far, in MB.
"""

from __future__ import annotations

import argparse
import math
import resource
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.base import clone
from sklearn.linear_model import SGDClassifier, SGDRegressor

from skdptune import DPGridSearchCV, DPLogisticRegression, DPRidge, PrivateRows

_ROWS_PER_GROUP = 250_000
_RIDGE = DPRidge(1.0, 1e-9, target_bound=1.0, random_state=0)
_CLASSIFIER = DPLogisticRegression(1.0, 1e-9, classes=[0, 1], random_state=0)
_BATCHES = clone(_CLASSIFIER).set_params(solver="sgd", batch_size=1000, epochs=20)


def write(folder: Path, n_rows: int, n_columns: int) -> None:
    """Write files of one row group each."""
    per_group = min(_ROWS_PER_GROUP, math.ceil(n_rows / 3))
    for number, start in enumerate(range(0, n_rows, per_group)):
        rng = np.random.default_rng(number)
        size = min(per_group, n_rows - start)
        rows = rng.normal(size=(size, n_columns)).astype(np.float32)
        target = rows[:, 0] - rows[:, 1] + rng.normal(size=size) > 0
        columns = {f"x{place}": rows[:, place] for place in range(n_columns)}
        pq.write_table(
            pa.table({**columns, "y": target.astype(np.int8)}),
            folder / f"rows{number:05d}.parquet",
        )


def timed(task: Callable[[], Any]) -> float:
    """Return the seconds that a call takes."""
    start = time.perf_counter()
    task()
    return time.perf_counter() - start


def nothing(rows: Any, targets: Any) -> int:
    """Return the sum that needs no row."""
    return 0


def memory() -> str:
    """Return the largest resident size so far."""
    return f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB"


def in_one_process(folder: Path, models: dict[str, Any]) -> None:
    """Print the time of passes in this process."""
    rows = PrivateRows.from_parquet(folder, target="y")
    print(f"start: {memory()}")
    read = timed(lambda: rows.total(nothing))
    print(f"read: {read:.2f} s, {memory()}")
    total = rows._carrier.total
    for name, model in models.items():
        with mock.patch.object(rows._carrier, "total", side_effect=total) as passes:
            fit = timed(partial(clone(model).fit, rows))
        # Few rows are read once by the first pass, and kept.
        count = max(passes.call_count, 1)
        each = fit / count / read
        print(f"{name}: {fit:.2f} s, {count} passes, {each:.2f} of reading per pass, {memory()}")
    for peer, labels in (
        (SGDRegressor(random_state=0), {}),
        (SGDClassifier(), {"classes": [0, 1]}),
    ):
        other = timed(partial(one_pass, rows, peer, labels))
        name = type(peer).__name__
        print(f"{name}.partial_fit: {other:.2f} s, {other / read:.2f} of reading, {memory()}")


def in_memory(folder: Path) -> None:
    """Print the time of a fit on batches if all rows are in memory."""
    table = pq.read_table(folder)
    labels = table.column("y").to_numpy()
    rows = np.column_stack([column.to_numpy() for column in table.drop_columns("y").columns])
    fit = timed(partial(clone(_BATCHES).fit, rows, labels))
    print(f"DPLogisticRegression, sgd, in memory: {fit:.2f} s, {memory()}")


def one_pass(rows: PrivateRows, peer: Any, labels: dict[str, Any]) -> None:
    """Fit a model of scikit-learn to each chunk once."""
    for part in rows._carrier.parts:
        for chunk, targets in part():
            peer.partial_fit(chunk, targets, **labels)


def on_dask(folder: Path, models: dict[str, Any]) -> None:
    """Print the time of a fit on one and on two workers, with the rows in their memory."""
    import dask.dataframe as dd
    from distributed import Client, LocalCluster, wait

    seconds: dict[str, list[float]] = {}
    for n_workers in (1, 2):
        with (
            LocalCluster(
                n_workers=n_workers, threads_per_worker=1, dashboard_address=None
            ) as cluster,
            Client(cluster),
        ):
            frame = dd.read_parquet(folder).persist()
            wait(frame)
            rows = PrivateRows.from_dask(frame, "y")
            rows.counted()
            for name, model in models.items():
                found = seconds.setdefault(name, [])
                found.append(timed(partial(clone(model).fit, rows)))
                print(f"{name}, {n_workers} worker(s): {found[-1]:.2f} s")
    for name, (one, two) in seconds.items():
        print(f"{name}: two workers are {one / two:.2f} times as fast as one")


def of_search(folder: Path) -> None:
    """Print the time of a search on a table in memory, on files, and on a dask DataFrame."""
    import dask.dataframe as dd

    table = pq.read_table(folder).to_pandas()
    for name, given in (
        ("memory", (table.drop(columns="y"), table["y"])),
        ("files", (PrivateRows.from_parquet(folder, "y"),)),
        ("dask", (PrivateRows.from_dask(dd.read_parquet(folder), "y"),)),
    ):
        model = DPLogisticRegression(classes=[0, 1])
        grid = {"C": [0.1, 1.0, 10.0]}
        search = DPGridSearchCV(model, grid, epsilon=2.0, delta=1e-6, random_state=0)
        start = time.process_time()
        search.fit(*given)
        print(f"search, {name}: {time.process_time() - start:.2f} s of the processor")


def main() -> None:
    """Write files, and print the measurements."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--batches", action="store_true")
    parser.add_argument("--dask", action="store_true")
    parser.add_argument("--search", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        if not list(folder.glob("*.parquet")):
            write(folder, given.rows, given.columns)
        models = {
            "DPRidge": _RIDGE,
            "DPLogisticRegression": clone(_CLASSIFIER).set_params(epochs=given.steps),
        }
        if given.search:
            of_search(folder)
        elif given.batches:
            in_one_process(folder, {"DPLogisticRegression, sgd": _BATCHES})
            in_memory(folder)
        else:
            (on_dask if given.dask else in_one_process)(folder, models)


if __name__ == "__main__":
    main()
