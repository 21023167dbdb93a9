"""Leaves out nets, their doctests and tests, where what they are made of is not installed."""

from __future__ import annotations

import importlib.util
import itertools
from pathlib import Path

_NEEDED = ("torch", "skorch", "opacus")
_MISSING = [name for name in _NEEDED if importlib.util.find_spec(name) is None]


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Pass over the folders whose modules descend from classes of these packages."""
    parts = collection_path.parts
    folders = (("skdptune", "neural_network"), ("tests", "neural_network"))
    is_net = any(pair in folders for pair in itertools.pairwise(parts))
    return True if _MISSING and is_net else None


def pytest_report_header() -> str | None:
    """Say so at the head of the report."""
    return f"neural_network: left out, without {', '.join(_MISSING)}" if _MISSING else None
