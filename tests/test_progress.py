"""Progress without secret counts, and without output if nobody watches."""

from __future__ import annotations

import functools
import io
import sys
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from joblib.pool import PicklingPool

from skdptune import DPGridSearchCV, DPRandomSearchCV, RandomRuns, _progress
from skdptune._compat import Parallel, delayed
from skdptune._progress import Progress, _is_outermost
from skdptune.linear_model import DPLogisticRegression
from skdptune.model_selection._running import Quiet


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Return a terminal on which progress is shown at once."""
    shown = Terminal()
    # pytest replaces sys.stderr before each test.
    seen = SimpleNamespace(stderr=shown, modules=sys.modules)
    monkeypatch.setattr(_progress, "sys", seen)
    monkeypatch.setattr(_progress, "_INTERVAL", 0.005)
    monkeypatch.setattr(_progress, "_PATIENCE", 0.0)
    return shown


def wait_for(words: str, shown: io.StringIO) -> None:
    for _ in range(2000):
        if words in shown.getvalue():
            return
        time.sleep(0.005)
    pytest.fail(f"{words!r} is not shown: {shown.getvalue()!r}")


@pytest.mark.parametrize("verbose", [1, True, np.int64(2)])
def test_phases_and_time_are_shown(verbose: int, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    monkeypatch.setattr(sys, "stderr", shown)
    with Progress("Search", verbose) as progress:
        progress.phase("trying")
        progress.line("a line")
    assert "Search: trying" in shown.getvalue()
    assert "a line" in shown.getvalue()
    assert "Search: done [00:0" in shown.getvalue()
    assert not set("%|") & set(shown.getvalue())


@pytest.mark.parametrize("verbose", [None, 0, False])
def test_silent_where_nobody_watches(
    verbose: Any, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_progress, "_PATIENCE", 0.0)
    with Progress("Search", verbose) as progress:
        progress.phase("trying")
        time.sleep(0.02)
    assert capfd.readouterr() == ("", "")


def test_counts_estimate_what_is_left(terminal: Terminal) -> None:
    with Progress("Search") as progress:
        progress.count(0, 4)
        wait_for("Search: 0 of 4 candidates [", terminal)
        progress.count(1, 4)
        wait_for("Search: 1 of 4 candidates, about", terminal)
        progress.count(4, 4)
        wait_for("Search: 4 of 4 candidates [", terminal)
        progress.phase("fitting the winner")
        wait_for("Search: fitting the winner [", terminal)


@pytest.mark.parametrize("backend", ["loky", "multiprocessing", "threading"])
def test_workers_of_joblib_are_inside_something(backend: str) -> None:
    if backend == "multiprocessing" and PicklingPool.__base__.__module__.startswith("ray"):
        # Its workers have no terminal, nor notebook.
        pytest.skip("ray, once it is used, takes the place of multiprocessing")
    found = Parallel(n_jobs=2, backend=backend)(delayed(_is_outermost)() for _ in range(2))
    assert found == [False, False]


def problem() -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(0).normal(size=(600, 3))
    return X, X[:, 0] > 0.0


@pytest.fixture
def said(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the text of all lines, including those that were removed."""
    words: list[str] = []

    def noting(method: Any) -> Any:
        @functools.wraps(method)
        def noted(self: Progress, *arguments: Any) -> None:
            method(self, *arguments)
            if self._thread is not None:
                words.append(f"{self._name}: {self._in_words()}")

        return noted

    for name in ("phase", "count"):
        monkeypatch.setattr(Progress, name, noting(getattr(Progress, name)))
    return words


def test_planning_is_shown_before_anything_is_read(said: list[str]) -> None:
    search = DPGridSearchCV(
        DPLogisticRegression(classes=[False, True]), {"C": [0.5, 1.0]}, epsilon=1.75, delta=1e-4
    ).set_params(strategy="table")
    search.plan(600, 3)
    planning = "DPGridSearchCV: planning, before any data are read"
    assert planning in said
    said.clear()
    search.fit(*problem())
    assert planning not in said, "the plan is cached"
    assert "DPGridSearchCV: 0 of 3 candidates" in said
    assert "DPGridSearchCV: 3 of 3 candidates" in said, "and the estimator as it is"
    assert "DPGridSearchCV: fitting the winner" in said


def test_number_of_runs_is_shown_by_nothing(said: list[str]) -> None:
    """A random search counts neither candidates nor the steps of their fits."""
    estimator = DPLogisticRegression(solver="sgd", classes=[False, True])
    space = {"C": [0.5, 1.0, 2.0]}
    runs = RandomRuns()
    DPRandomSearchCV(estimator, space, epsilon=1.5, delta=1e-4, strategy=runs).fit(*problem())
    assert "DPRandomSearchCV: trying candidates" in said
    assert not any(" of " in words for words in said)


def test_fit_by_itself_counts_its_steps(said: list[str]) -> None:
    DPLogisticRegression(solver="sgd", classes=[False, True]).fit(*problem())
    counts = [words for words in said if words.endswith((" steps", " left"))]
    n_steps = len(counts)
    assert counts[0] == f"noisy gradient descent: 0 of {n_steps} steps"
    assert counts[-1].startswith(f"noisy gradient descent: {n_steps - 1} of {n_steps} steps, ")


@pytest.mark.parametrize("verbose", [None, 1])
def test_candidates_show_nothing_where_errors_do_not_go(
    terminal: Terminal, verbose: int | None
) -> None:
    """Theorem F4: output for a notebook is not written to the stream for errors."""
    with Quiet(), Progress("candidate", verbose) as progress:
        progress.count(1, 1)
        time.sleep(0.02)
    assert terminal.getvalue() == ""
    with Progress("after", 1):
        pass
    assert "after: done" in terminal.getvalue()


class Gone(io.StringIO):
    """A closed terminal."""

    def write(self, words: str) -> int:
        raise BrokenPipeError(32, "Broken pipe")


@pytest.mark.parametrize("is_gone_at_once", [True, False])
def test_a_terminal_that_is_gone_ends_no_fit(
    is_gone_at_once: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = Gone() if is_gone_at_once else io.StringIO()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setattr(_progress, "_INTERVAL", 0.005)
    with Progress("Search", 2) as progress:
        monkeypatch.setattr(shown, "write", Gone().write)
        progress.count(1, 1)
        progress.line("a line")
        time.sleep(0.02)
    assert progress._thread is not None and not progress._thread.is_alive()
