"""Helpers for the gallery of examples, in addition to its configuration in conf.py."""

from __future__ import annotations

import re
import shutil
import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[1] / "examples"
GALLERY = Path(__file__).parent / "auto_examples"
NEEDS = re.compile(r"^Needs\s+(.*?)\.$", re.MULTILINE | re.DOTALL)
QUOTED = re.compile(r"``(\w+)``")
# A module that only this extra installs.
MODULES_OF_EXTRAS = {
    "dask": "distributed",
    "ebm": "interpret",
    "nn": "opacus",
    "pareto": "optuna",
    "plot": "matplotlib",
    "postgresql": "psycopg",
}


def needed_modules(source: str) -> list[str]:
    """Return the modules that an example needs, from the sentence "Needs ..." of its docstring."""
    sentence = NEEDS.search(source.split('"""')[1])
    names = QUOTED.findall(sentence[1]) if sentence else []
    return [MODULES_OF_EXTRAS.get(name, name) for name in names]


def missing_modules(path: Path) -> list[str]:
    """Return the modules that an example needs and that are not installed."""
    needed = needed_modules(path.read_text(encoding="utf-8"))
    return [name for name in needed if find_spec(name) is None]


def runnable() -> Iterator[str]:
    """Yield the names of the examples that can be run here."""
    for path in sorted(EXAMPLES.glob("*.py")):
        if not missing_modules(path):
            yield path.name


def remove_stale() -> None:
    """Remove the gallery if it has a page of an example that no longer exists."""
    pages = {path.stem for path in GALLERY.glob("*.py")}
    if pages - {path.stem for path in EXAMPLES.glob("*.py")}:
        shutil.rmtree(GALLERY)


def reset(gallery_conf: dict[str, Any], name: str) -> None:
    """Prepare each example: it must not use features that will soon be removed."""
    warnings.filterwarnings("error", category=FutureWarning)
