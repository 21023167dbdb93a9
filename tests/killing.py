"""Fits and searches in processes that are killed, and their notes from before.

Processes are forked from one in which everything is loaded; it runs this file, which they cannot
import.
"""

from __future__ import annotations

import functools
import itertools
import multiprocessing
import os
import runpy
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import GridSearchCV

from skdptune._compat import cloudpickle
from skdptune.accounting import PrivacyProfile
from skdptune.base import PrivateEstimatorMixin
from skdptune.ledger import PrivacyLedger
from skdptune.model_selection import DPGridSearchCV

# Workers cannot import it either: as from a notebook, classes are sent to them whole.
if __name__ in sys.modules:
    cloudpickle.register_pickle_by_value(sys.modules[__name__])

ROWS = np.random.default_rng(0).normal(size=(60, 2))
LABELS = (ROWS[:, 0] > 0).astype(int)
COST = 0.001
PATIENCE_S = 600


class Noted(PrivateEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Predicts at random, and notes each of its fits after it has read the data."""

    def __init__(self, log=None, C=1.0, epsilon=COST, delta=0.0, random_state=None, n_public=None):
        self.log = log
        self.C = C
        self.epsilon = epsilon
        self.delta = delta
        self.random_state = random_state
        self.n_public = n_public

    def privacy_profile(self, n_samples, n_features=None):
        return PrivacyProfile.pure(self.epsilon)

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        # Searches also fit to made-up rows, to check the form; such fits do not read the data.
        if self.log is not None and np.isin(X, ROWS).any():
            number = os.open(self.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            os.write(number, b"read\n")
            os.close(number)
        time.sleep(0.002)
        self.privacy_ = self._make_report(self.privacy_profile(len(X)))
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


def search_in(kind: str, log: str | None, n_jobs: int) -> Any:
    """Return a search of ours, or one of scikit-learn, that fits few candidates."""
    model, grid = Noted(log), {"C": [1.0, 2.0, 3.0]}
    if kind == "ours":
        return DPGridSearchCV(model, grid, n_jobs=n_jobs, n_public=50, strategy="compose")
    return GridSearchCV(model, grid, cv=2, n_jobs=n_jobs)


def search_until_killed(ledger: PrivacyLedger, log: str, kind: str, n_jobs: int) -> None:
    """Search again and again."""
    os.setpgid(0, 0)
    while True:
        with ledger:
            search_in(kind, log, n_jobs).fit(ROWS, LABELS)


def search_a_few_times(ledger: PrivacyLedger, log: str, kind: str, n_jobs: int) -> None:
    """Search three times, even if workers are lost."""
    os.setpgid(0, 0)
    with ledger:
        for _ in range(3):
            try:
                search_in(kind, log, n_jobs).fit(ROWS, LABELS)
            except Exception as error:
                # As scikit-learn's searches do when a worker is lost.
                print(type(error).__name__)
    # Do not wait for workers, which stay for minutes in case more work arrives.
    os._exit(0)


@functools.cache
def _context() -> Any:
    found = multiprocessing.get_context("forkserver")
    found.set_forkserver_preload(["pytest", "sklearn.model_selection", "skdptune.model_selection"])
    return found


def started(function: Any, *arguments: Any) -> Any:
    """Return a process that runs a function of this file."""
    given = {"ARGUMENTS": arguments}
    child = _context().Process(target=runpy.run_path, args=(__file__, given, function.__name__))
    child.start()
    return child


def workers_of(process: int) -> list[int]:
    """Return the processes that a process and its children have started for their work."""
    found = []
    for child in _children(process):
        try:
            words = Path(f"/proc/{child}/cmdline").read_bytes()
        except OSError:
            continue
        if b"popen_loky_posix" in words:
            found.append(child)
        found += workers_of(child)
    return found


def _children(process: int) -> Iterator[int]:
    try:
        text = Path(f"/proc/{process}/task/{process}/children").read_text("ascii")
    except OSError:
        return
    yield from map(int, text.split())


def wait_for_notes(log: Path, count: int) -> None:
    """Wait until some fits have read the data."""
    for _ in range(PATIENCE_S * 100):
        if log.exists() and log.read_bytes().count(b"\n") >= count:
            return
        time.sleep(0.01)
    raise TimeoutError("nothing was fitted")


def kill_all(child: Any) -> None:
    """Kill a process and then its workers, and wait until they have ended."""
    if child.is_alive():
        child.kill()
    child.join(PATIENCE_S)
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    for _ in itertools.repeat(None, 1000):
        time.sleep(0.005)
        try:
            os.killpg(child.pid, 0)
        except ProcessLookupError:
            return


if "ARGUMENTS" in globals():
    globals()[__name__](*globals()["ARGUMENTS"])
