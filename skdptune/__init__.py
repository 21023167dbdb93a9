"""Differentially private hyperparameter tuning in the manner of scikit-learn.

The searchers are here, too, loaded when they are first asked for.
"""

import importlib
from typing import Any

__version__ = "0.1.0.dev0"
__all__ = [
    "DPGridSearchCV",
    "DPRandomSearchCV",
    "DParetoSearchCV",
    "DoublingThresholdSearchCV",
    "pareto_search",
]

_SEARCHERS = tuple(__all__)


def __getattr__(name: str) -> Any:
    """Load a searcher: who wants the accounting alone needs no scikit-learn."""
    if name in _SEARCHERS:
        return getattr(importlib.import_module("skdptune.model_selection"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """List what can be asked for."""
    return sorted({*globals(), *__all__})
