"""Time a ledger: spends of several processes at once, and reading a long history.

    python benchmarks/ledger.py [SPENDS] [PROCESSES] [PLACE]

Each spend is reserved, marked as read and confirmed: three transactions that wait for the disk. So
the figures are the disk's as much as the ledger's. PLACE chooses it: a folder, in which a file of
SQLite is made; the URL of a database of PostgreSQL that holds no ledger, in which one is left; or
"server", for a temporary server on this machine, as the tests start one. Printed are spends per
second, the median and the 99th percentile of one spend's time, and how long it takes to open the
ledger and to read its history, its report and what is left.
"""

from __future__ import annotations

import importlib.util
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from skdptune.accounting import PrivacyProfile
from skdptune.ledger import PrivacyLedger


@contextmanager
def where(place: str | None) -> Iterator[str]:
    """Give the path or URL of a ledger to be made."""
    if place == "server":
        file = Path(__file__).parents[1] / "tests" / "ledger" / "server.py"
        found = importlib.util.spec_from_file_location("server", file)
        module = importlib.util.module_from_spec(found)
        found.loader.exec_module(module)
        server = module.Server()
        try:
            yield server.url()
        finally:
            server.remove()
    elif place and "://" in place:
        yield place
    else:
        with tempfile.TemporaryDirectory(dir=place) as folder:
            yield str(Path(folder) / "budget.ledger")


def spend(ledger: PrivacyLedger, count: int) -> list[float]:
    """Spend a number of times, and return how long each took."""
    profile, times = PrivacyProfile.gaussian(0.01), []
    for _ in range(count):
        start = time.perf_counter()
        with ledger.reserve(profile, name="a fit"):
            pass
        times.append(time.perf_counter() - start)
    return times


def timed(words: str, function: Callable[[], object]) -> None:
    """Print how long something takes."""
    start = time.perf_counter()
    function()
    print(f"{words:<28} {time.perf_counter() - start:8.3f} s")


def main(n_spends: int = 1000, n_processes: int = 4, place: str | None = None) -> None:
    """Print all figures."""
    with where(place) as path_or_url:
        ledger = PrivacyLedger.create(path_or_url, "patients", epsilon=100.0, delta=1e-5)
        each = [n_spends // n_processes] * n_processes
        context = multiprocessing.get_context("forkserver")
        with ProcessPoolExecutor(n_processes, mp_context=context) as pool:
            # Started and loaded before the clock.
            list(pool.map(spend, [ledger] * n_processes, [1] * n_processes))
            start = time.perf_counter()
            times = np.concatenate(list(pool.map(spend, [ledger] * n_processes, each)))
            wall = time.perf_counter() - start
        median, high = 1e3 * np.quantile(times, [0.5, 0.99])
        print(
            f"{len(times)} spends of {n_processes} processes: {len(times) / wall:.1f} per second,"
        )
        print(f"median {median:.1f} ms, 99th percentile {high:.1f} ms")
        # Of a process that has read nothing yet.
        timed("open", lambda: PrivacyLedger(path_or_url, "patients"))
        ledger = PrivacyLedger(path_or_url, "patients")
        with ledger.reserve(PrivacyProfile.gaussian(0.01), name="a fit"):
            pass
        for words in ("remaining", "used", "spent", "history", "report", "to_json"):
            timed(words, getattr(ledger, words))
        missing = len(times) + n_processes + 1 - len(ledger.history())
        print(f"{missing} spends were lost")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]), *sys.argv[3:])
