"""Leaves out nets, and doctests of Pareto and adaptive searches, where their packages are not.

Keeps each process of the tests to one thread, too. For `.ci/run` it writes down which tests ran,
and leaves to the first leg what the second need not repeat (`.ci/first-leg-only`).
"""

from __future__ import annotations

import functools
import importlib.util
import itertools
import os
from pathlib import Path

import pytest

# pytest-xdist runs one process per core, and joblib starts more: threads would only contend. Read
# when NumPy is first imported, which is later than this.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# A failing test shows where an error about an argument was raised.
os.environ.setdefault("SKDPTUNE_TRACEBACKS", "full")

_NEEDED = ("torch", "skorch", "opacus")
_MISSING = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
_PARETO_NEEDED = ("optuna", "moocore")
_PARETO_MISSING = [name for name in _PARETO_NEEDED if importlib.util.find_spec(name) is None]


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Pass over the folders whose modules descend from classes of these packages.

    The second leg passes over folders of .ci/first-leg-only all of which ran before, too.
    """
    if collection_path.is_dir() and _all_ran(_identity(collection_path.as_posix())):
        return True
    parts = collection_path.parts
    folders = (("skdptune", "neural_network"), ("tests", "neural_network"))
    is_net = any(pair in folders for pair in itertools.pairwise(parts))
    # The tests of Pareto searches pass over themselves; doctests cannot.
    in_search = "skdptune" in parts and "model_selection" in parts
    words = ("pareto", "adaptive")
    is_pareto = in_search and any(word in part for part in parts[-3:] for word in words)
    left_out = (_MISSING and is_net) or (_PARETO_MISSING and is_pareto)
    return True if left_out else None


def pytest_report_header() -> str | None:
    """Say so at the head of the report."""
    folders = (("neural_network", _MISSING), ("Pareto searches", _PARETO_MISSING))
    lines = [
        f"{what}: left out, without {', '.join(missing)}" for what, missing in folders if missing
    ]
    return "\n".join(lines) or None


@functools.cache
def _first_leg_only() -> tuple[str, ...]:
    """Return the paths of the tests that the second leg leaves to the first."""
    lines = (Path(__file__).parent / ".ci" / "first-leg-only").read_text("utf-8").splitlines()
    return tuple(line for line in lines if line and not line.startswith("#"))


def _identity(name: str) -> str:
    """Return what a test or a folder is called on both legs; one tests an installed wheel."""
    within = name.removeprefix(f"{Path(__file__).parent.as_posix()}/")
    return within.rpartition("site-packages/")[2]


@functools.cache
def _outcomes_before() -> frozenset[str]:
    """Return the lines of the file that SKDPTUNE_RAN names; none without one."""
    path = os.environ.get("SKDPTUNE_RAN")
    return frozenset(Path(path).read_text("utf-8").splitlines() if path else [])


@functools.cache
def _all_ran(folder: str) -> bool:
    """Return whether a folder is left to the first leg, and nothing was skipped there."""
    within = {
        line.partition(" ")[0]
        for line in _outcomes_before()
        if line.partition(" ")[2].startswith(f"{folder}/")
    }
    return folder in _first_leg_only() and within == {"ran"}


def _write_outcome(word: str, nodeid: str) -> None:
    """Append to the file that SKDPTUNE_OUTCOMES names, in the process that hears of all tests."""
    path = os.environ.get("SKDPTUNE_OUTCOMES")
    if path and "PYTEST_XDIST_WORKER" not in os.environ:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(f"{word} {_identity(nodeid)}\n")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Write down what ran, an expected failure too, and what was skipped."""
    if report.skipped and not hasattr(report, "wasxfail"):
        _write_outcome("skipped", report.nodeid)
    elif report.when == "call" and not report.failed:
        _write_outcome("ran", report.nodeid)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Write down which files were skipped as a whole."""
    if report.skipped:
        _write_outcome("skipped", report.nodeid)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests of .ci/first-leg-only that ran before, by SKDPTUNE_RAN.

    Tests that say in their names what scikit-learn's versions may change run on both legs.
    """
    only = tuple(f"{path}{end}" for path in _first_leg_only() for end in ("/", "::"))
    kept, left = [], []
    for item in items:
        name = _identity(item.nodeid)
        is_left = name.startswith(only) and f"ran {name}" in _outcomes_before()
        is_left &= "scikit_learn" not in name.partition("::")[2]
        (left if is_left else kept).append(item)
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = kept
