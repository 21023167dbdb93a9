"""Differentially private hyperparameter tuning with scikit-learn's interface.

All estimators, all searches, `Schema`, `make_private_pipeline`, the ledger and `check` can be
imported from here or from their own packages. Each is loaded when it is first used. Docstrings
cite the statements and proofs in docs/theorems.md by name, such as "Theorem S1".
"""

import importlib
import re
from typing import Any

from skdptune._version import __version__ as __version__

# Names stand only in the stub, which type checkers and editors read.
_STUB = __spec__.loader.get_data(f"{__path__[0]}/__init__.pyi").decode()
_FOLDERS = re.findall(r"(?m)^from skdptune import (\w+)", _STUB)
_IMPORTED = re.findall(r"(?m)^from (skdptune\.[a-z]\w*) import\W+(\w+)", _STUB)
_HOMES = {name: home for home, name in _IMPORTED}
# The nets need torch, and ``from skdptune import *`` must work without it.
__all__ = sorted(name for name, home in _HOMES.items() if home != "skdptune.neural_network")


def __getattr__(name: str) -> Any:
    """Import a package or a name on first use: accounting does not need scikit-learn."""
    if name in _FOLDERS:
        return importlib.import_module(f"skdptune.{name}")
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the packages, the names that can be imported from here, and the version."""
    return sorted({"__version__", *_FOLDERS, *_HOMES})
