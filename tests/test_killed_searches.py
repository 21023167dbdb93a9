"""Every read is in the ledger, whichever process is killed at any time (Theorem H4)."""

from __future__ import annotations

import os
import signal
import sys
import time

import numpy as np
import pytest

from skdptune.ledger import PrivacyLedger
from tests import killing

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


def fits_paid_for(ledger: PrivacyLedger, kind: str) -> int:
    """Return the number of fits that the records of a ledger pay for."""
    spent = [record for record in ledger.history() if record.status in ("read", "confirmed")]
    # Each private search has one record, and fits its candidates once.
    fits = 3 if kind == "ours" else 1
    return fits * len(spent)


def killed_at(instant: float, kind: str, n_jobs: int, whom: str, folder) -> tuple[int, int]:
    """Kill a search, or one of its workers, and return the fits that were read and paid for."""
    ledger = PrivacyLedger.create(folder / "ledger", "patients", epsilon=100.0, delta=1e-5)
    log = folder / "log"
    run = killing.search_until_killed if whom == "parent" else killing.search_a_few_times
    child = killing.started(run, ledger, os.fspath(log), kind, n_jobs)
    try:
        killing.wait_for_notes(log, 1)
        time.sleep(instant)
        if whom == "worker":
            for worker in killing.workers_of(child.pid)[:1]:
                os.kill(worker, signal.SIGKILL)
            child.join(killing.PATIENCE_S)
    finally:
        killing.kill_all(child)
    return log.read_bytes().count(b"\n"), fits_paid_for(ledger, kind)


def check_kills(count: int, kind: str, n_jobs: int, whom: str, folder) -> None:
    rng = np.random.default_rng([count, n_jobs])
    figures = []
    for place in range(count):
        own = folder / str(place)
        own.mkdir()
        figures.append(killed_at(float(rng.uniform(0.0, 0.2)), kind, n_jobs, whom, own))
    print(
        f"{kind}, {n_jobs} workers, {whom} killed {count} times: fits read and paid", figures[:5]
    )
    # In a private search, the fits of a lost worker are repeated with the same seeds and results,
    # and are paid for once.
    again = 3 if whom == "worker" and kind == "ours" else 0
    assert all(0 < read <= paid + again for read, paid in figures)


@pytest.mark.parametrize("kind", ["ours", "scikit-learn"])
def test_a_killed_search_has_paid_for_all_that_it_read(kind, tmp_path):
    # Theorem H4: every fit of a private estimator or search reserves its cost.
    check_kills(3, kind, 1, "parent", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ours", "scikit-learn"])
@pytest.mark.parametrize(
    ("count", "n_jobs", "whom"), [(50, 1, "parent"), (25, 2, "parent"), (25, 2, "worker")]
)
def test_killed_at_two_hundred_instants(count, n_jobs, whom, kind, tmp_path):
    check_kills(count, kind, n_jobs, whom, tmp_path)
