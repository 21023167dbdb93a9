"""Fits to rows in parts, also larger than memory: time per pass, memory, and more workers.

    python benchmarks/scale.py [--rows 1000000] [--columns 50] [--folder FOLDER]
                               [--steps 10] [--batches | --boosting | --search]
                               [--engine dask | ray | spark] [--workers 64]

The script writes files of float32 columns, and then measures

* read: one pass over the files that only reads them, as a fit does; also in seconds of the
  processor, as for the fits below, since pyarrow decodes in threads of its own;
* DPRidge, DPLogisticRegression: the time of a fit over its passes, each relative to "read"; the
  classifier takes ten steps, or --steps, with its default solver;
* DPLogisticRegression with "sgd", with --batches: the same for batches of 1,000 rows in 20 epochs,
  and then for the same rows in memory, which gives the same model;
* DPExplainableBoostingRegressor, with --boosting: ten rounds, and the same rows in memory;
* SGDRegressor, SGDClassifier: scikit-learn's `partial_fit` of one pass over the same chunks,
  without privacy;
* engines, with --engine: both fits on one worker process and on two, with the rows kept in them;
* search: with --search, a search of three settings of the classifier, on a table in memory, on the
  files and on a dask DataFrame of them, in seconds of the processor;
* workers: with --workers, how much of a linear gain many workers of dask would keep. A pass is
  simulated from its measured pieces, in seconds of the processor: the task of each part, the
  merges of the tree, the step between two passes, and what client, scheduler and worker add to
  each task.

"memory" is the largest resident size of the process so far, in MB. The last lines compare figures
with the aims of this package, missed ones first.
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import math
import os
import pickle
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.linear_model import SGDClassifier, SGDRegressor

from skdptune import (
    DPExplainableBoostingRegressor,
    DPGridSearchCV,
    DPLogisticRegression,
    DPRidge,
    PrivateRows,
    config_context,
)
from skdptune.base._rows_in_parts import _BRANCHES, Task, merged

_ROWS_PER_GROUP = 250_000
_RIDGE = DPRidge(1.0, 1e-9, target_bound=1.0, random_state=0)
_CLASSIFIER = DPLogisticRegression(1.0, 1e-9, classes=[0, 1], random_state=0)
_BATCHES = clone(_CLASSIFIER).set_params(solver="sgd", batch_size=1000, epochs=20)
_BOOSTING = DPExplainableBoostingRegressor(
    1.0, 1e-9, bounds=(-4, 4), target_bound=1.0, max_rounds=10, random_state=0
)
# Figures with their aims, and whether these are reached.
_AIMED: list[tuple[bool, str]] = []


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


def thread_and_process() -> NDArray[np.float64]:
    """Return the seconds of the processor of this thread, and those of all threads."""
    return np.array([time.thread_time(), time.process_time()])


def nothing(rows: Any, targets: Any) -> int:
    """Return the sum that needs no row."""
    return 0


def compare(name: str, figure: float, *, least: float = 0.0, most: float = math.inf) -> None:
    """Keep a figure and its aim for the last lines."""
    aim = f"at least {least:g}" if least else f"at most {most:g}"
    _AIMED.append((least <= figure <= most, f"{name}: {figure:.2f} (aim: {aim})"))


def megabytes() -> float:
    """Return the largest resident size so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def memory() -> str:
    """Return it as text."""
    return f"{megabytes():.0f} MB"


def in_one_process(folder: Path, models: dict[str, Any]) -> None:
    """Print the time of passes in this process."""
    rows = PrivateRows.from_parquet(folder, target="y")
    print(f"start: {memory()}")
    used = thread_and_process()
    read = timed(lambda: rows.total(nothing))
    print(f"read: {read:.2f} s, {memory()}; {_processor(used, 1)}")
    total = rows._carrier.total
    for name, model in models.items():
        with mock.patch.object(rows._carrier, "total", side_effect=total) as passes:
            used = thread_and_process()
            fit = timed(partial(clone(model).fit, rows))
        # Few rows are read once by the first pass, and kept.
        count = max(passes.call_count, 1)
        each = fit / count / read
        # Boosting reads once, and takes many passes over the bins that it keeps.
        words = f"{each:.2f} of reading per pass" if model is not _BOOSTING else "bins kept"
        print(f"{name}: {fit:.2f} s, {count} passes, {words}, {memory()}")
        print(f"    {_processor(used, count)}")
        if name == "DPLogisticRegression" and count > 1:
            compare(f"{name}, a pass relative to reading", each, most=3.0)
    for peer, labels in (
        (SGDRegressor(random_state=0), {}),
        (SGDClassifier(), {"classes": [0, 1]}),
    ):
        other = timed(partial(one_pass, rows, peer, labels))
        name = type(peer).__name__
        print(f"{name}.partial_fit: {other:.2f} s, {other / read:.2f} of reading, {memory()}")
    compare("memory in GB", megabytes() / 1024, most=2.0)


def _processor(before: NDArray[np.float64], n_passes: int) -> str:
    own, all_ = (thread_and_process() - before) / n_passes
    return f"of the processor per pass: {own:.2f} s in the main thread, {all_:.2f} s in all"


def in_memory(folder: Path, name: str, model: Any) -> None:
    """Print the time of a fit if all rows are in memory."""
    table = pq.read_table(folder)
    labels = table.column("y").to_numpy()
    rows = np.column_stack([column.to_numpy() for column in table.drop_columns("y").columns])
    fit = timed(partial(clone(model).fit, rows, labels))
    print(f"{name}, in memory: {fit:.2f} s, {memory()}")


def one_pass(rows: PrivateRows, peer: Any, labels: dict[str, Any]) -> None:
    """Fit a model of scikit-learn to each chunk once."""
    for part in rows._carrier.parts:
        for chunk, targets in part():
            peer.partial_fit(chunk, targets, **labels)


@contextmanager
def of_dask(folder: Path, n_workers: int) -> Iterator[PrivateRows]:
    """Give the rows of files, kept by workers of dask."""
    import dask.dataframe as dd
    from distributed import Client, LocalCluster, wait

    with (
        LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster),
    ):
        frame = dd.read_parquet(folder).persist()
        wait(frame)
        yield PrivateRows.from_dask(frame, "y")


@contextmanager
def of_ray(folder: Path, n_workers: int) -> Iterator[PrivateRows]:
    """Give the rows of files, in the object store of ray."""
    import ray

    ray.init(num_cpus=n_workers, include_dashboard=False, log_to_driver=False)
    try:
        yield PrivateRows.from_ray(ray.data.read_parquet(str(folder)), "y")
    finally:
        ray.shutdown()


@contextmanager
def of_spark(folder: Path, n_workers: int) -> Iterator[PrivateRows]:
    """Give the rows of files, in the cache of Spark."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(f"local[{n_workers}]").config("spark.ui.enabled", False)
    session = builder.config("spark.driver.memory", "4g").getOrCreate()
    try:
        yield PrivateRows.from_spark(session.read.parquet(str(folder)).cache(), "y")
    finally:
        session.stop()


ENGINES = {"dask": of_dask, "ray": of_ray, "spark": of_spark}


def on_engine(name: str, folder: Path, models: dict[str, Any]) -> None:
    """Print the time of a fit on one and on two workers, with the rows in their memory."""
    seconds: dict[str, list[float]] = {}
    for n_workers in (1, 2):
        with ENGINES[name](folder, n_workers) as rows:
            rows.counted()
            for model_name, model in models.items():
                found = seconds.setdefault(model_name, [])
                found.append(timed(partial(clone(model).fit, rows)))
                print(f"{name}: {model_name}, {n_workers} worker(s): {found[-1]:.2f} s")
    for model_name, (one, two) in seconds.items():
        if name == "dask":
            compare(f"{model_name}, two workers of dask", one / two, least=1.7)
        else:
            print(f"{name}: {model_name}: two workers are {one / two:.2f} times as fast as one")


# Many workers --------------------------------------------------------------------------------


class Pieces:
    """Seconds of the processor that the pieces of a pass take.

    Parameters
    ----------
    model : estimator
    folder : Path
        Files, of whose row groups each is a part.
    n_parts : int
        Number of parts for which the costs of the cluster are measured.
    """

    def __init__(self, model: Any, folder: Path, n_parts: int) -> None:
        tasks: list[float] = []
        tallies: list[Any] = []
        run = Task.__call__

        def timed_run(task: Task, number: int, part: Any) -> Any:
            start = time.thread_time()
            tally = run(task, number, part)
            tasks.append(time.thread_time() - start)
            tallies.append(tally)
            return tally

        table = pq.read_table(folder).to_pandas()
        size = min(_ROWS_PER_GROUP, len(table))
        rows = table.drop(columns="y").to_numpy(np.float32)
        rows = PrivateRows.from_arrays(rows, table["y"].to_numpy(), rows_per_part=size)
        per_pass = len(rows._carrier.parts)
        # Rows of few cells are read in each pass here, as many are.
        small = mock.patch.object(PrivateRows, "is_small", False)
        with small, mock.patch.object(Task, "__call__", timed_run):
            start = time.thread_time()
            clone(model).fit(rows)
            whole = time.thread_time() - start
        starts = range(0, len(tasks), per_pass)
        self.passes = [tasks[start : start + per_pass] for start in starts]
        self.step = max(0.0, whole - sum(tasks)) / len(self.passes)
        merges = [_merge(tallies[start : start + per_pass]) for start in starts]
        self.merge = float(np.mean(merges))
        self.sent = max(len(pickle.dumps(tally)) for tally in tallies)
        self._measure_cluster(model, n_parts, small)

    def _measure_cluster(self, model: Any, n_parts: int, small: Any) -> None:
        """Measure what dask adds to each task, by a fit to parts of a few rows."""
        import dask.array as da
        from distributed import Client, LocalCluster

        with (
            LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster,
            Client(cluster) as client,
        ):
            draw = np.random.default_rng(0)
            table = draw.normal(size=(4 * n_parts, 50)).astype(np.float32)
            rows = PrivateRows.from_dask(
                da.from_array(table, chunks=(4, 50)).persist(), (table[:, 0] > 0).astype(np.int8)
            )
            rows.total(nothing)
            passes = mock.Mock(side_effect=rows._carrier.total)
            with small, mock.patch.object(rows._carrier, "total", passes):
                (worker,) = client.run(time.process_time).values()
                client_time, both = time.thread_time(), time.process_time()
                clone(model).fit(rows)
                client_time, both = time.thread_time() - client_time, time.process_time() - both
                (after,) = client.run(time.process_time).values()
        # With those of the tree.
        n_tasks = passes.call_count * n_parts * _BRANCHES / (_BRANCHES - 1)
        self.on_client = max(0.0, client_time / n_tasks - self.step / n_parts)
        self.on_scheduler = (both - client_time) / n_tasks
        self.on_worker = (after - worker) / n_tasks


def _merge(tallies: Iterable[Any]) -> float:
    """Return the seconds for each of the sums that are merged."""
    several = itertools.islice(itertools.cycle(tallies), _BRANCHES)
    made = [tally._replace(sizes={k: 1}, orders={}) for k, tally in enumerate(several)]
    start = time.thread_time()
    for _ in range(100):
        merged(*made)
    return (time.thread_time() - start) / 100 / len(made)


def simulated(pieces: Pieces, n_parts: int, n_workers: int) -> float:
    """Return the mean seconds of a pass."""
    found = [_scheduled(pieces, tasks, n_parts, n_workers) for tasks in pieces.passes]
    return float(np.mean(found))


def _scheduled(pieces: Pieces, tasks: list[float], n_parts: int, n_workers: int) -> float:
    """Return the seconds of a pass: a list schedule of the parts, and the tree of merges."""
    # The client makes all tasks; then the scheduler starts one after the other.
    clock = pieces.on_client * n_parts
    free = [clock] * n_workers
    durations = itertools.cycle(tasks)
    level = [[(clock, next(durations))] for _ in range(n_parts)]
    while True:
        ends = []
        for children in level:
            clock += pieces.on_scheduler
            start = max(clock, heapq.heappop(free), *(ready for ready, _ in children))
            ends.append(start + pieces.on_worker + sum(seconds for _, seconds in children))
            heapq.heappush(free, ends[-1])
        if len(ends) == 1:
            return ends[0] + pieces.step
        level = [
            [(end, pieces.merge) for end in ends[start : start + _BRANCHES]]
            for start in range(0, len(ends), _BRANCHES)
        ]


def of_workers(folder: Path, models: dict[str, Any], n_workers: int) -> None:
    """Print how much of a linear gain many workers would keep."""
    for name, model in models.items():
        pieces = Pieces(model, folder, 100)
        print(
            f"{name}: a part {1e3 * float(np.mean(pieces.passes)):.1f} ms, a merge "
            f"{1e3 * pieces.merge:.2f}, a step {1e3 * pieces.step:.1f}; for each task the client "
            f"takes {1e3 * pieces.on_client:.2f}, the scheduler {1e3 * pieces.on_scheduler:.2f}, "
            f"the worker {1e3 * pieces.on_worker:.2f} ms; a sum has {pieces.sent:,} bytes"
        )
        for n_parts in (64, 100, 200, 400, 800, 1600, 3200):
            one, many = (simulated(pieces, n_parts, each) for each in (1, n_workers))
            # Amdahl's share: what no further worker makes faster.
            serial = (pieces.step + (pieces.on_client + pieces.on_scheduler) * n_parts) / one
            kept = one / many / n_workers
            print(
                f"{name}: {n_parts} parts: {one:.2f} s on one worker, {many:.2f} s on {n_workers}:"
                f" {kept:.2f} of linear; {serial:.1%} is work of the client and the scheduler"
            )
            if n_parts == 400:
                compare(f"{name}, {n_workers} workers, 400 parts, of linear", kept, least=0.8)


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
    parser.add_argument("--boosting", action="store_true")
    parser.add_argument("--search", action="store_true")
    parser.add_argument("--engine", choices=ENGINES)
    parser.add_argument("--workers", type=int)
    given = parser.parse_args()
    # Many fits to public rows.
    with tempfile.TemporaryDirectory() as temporary, config_context(ledger=False):
        folder = given.folder or Path(temporary)
        if not list(folder.glob("*.parquet")):
            write(folder, given.rows, given.columns)
        models = {
            "DPRidge": _RIDGE,
            "DPLogisticRegression": clone(_CLASSIFIER).set_params(epochs=given.steps),
        }
        if given.batches:
            models = {"DPLogisticRegression, sgd": _BATCHES}
        if given.boosting:
            models = {"DPExplainableBoostingRegressor": _BOOSTING}
        if given.search:
            of_search(folder)
        elif given.workers:
            of_workers(folder, models, given.workers)
        elif given.engine:
            on_engine(given.engine, folder, models)
        else:
            in_one_process(folder, models)
        if given.batches or given.boosting:
            for name, model in models.items():
                in_memory(folder, name, model)
    for is_reached, words in sorted(_AIMED):
        print("reached" if is_reached else "missed", words, sep=": ")


if __name__ == "__main__":
    main()
