"""Leaves out nets, and doctests of Pareto and adaptive searches, where their packages are not.

Keeps each process of the tests to one thread, too.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
from pathlib import Path

# pytest-xdist runs one process per core, and joblib starts more: threads would only contend. Read
# when NumPy is first imported, which is later than this.
os.environ.setdefault("OMP_NUM_THREADS", "1")

_NEEDED = ("torch", "skorch", "opacus")
_MISSING = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
_PARETO_NEEDED = ("optuna", "moocore")
_PARETO_MISSING = [name for name in _PARETO_NEEDED if importlib.util.find_spec(name) is None]


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Pass over the folders whose modules descend from classes of these packages."""
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
