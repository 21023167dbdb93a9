"""matplotlib, which is loaded when something is drawn."""

from __future__ import annotations

from typing import Any


def load_pyplot(name: str) -> Any:
    """Return matplotlib's pyplot, or raise naming what needs it and the extra that brings it."""
    try:
        from matplotlib import pyplot
    except ModuleNotFoundError as problem:
        raise ModuleNotFoundError(
            f"{name} needs matplotlib, which is not installed. "
            "The extra 'plot' brings it: pip install 'skdptune[plot]'.",
            name="matplotlib",
        ) from problem
    return pyplot
