"""The axis of epsilons, which several displays share."""

from __future__ import annotations

from typing import Any

from skdptune._formatting import shown_delta

# Up to this factor between its ends, an axis has few powers of ten.
_FEW_POWERS = 30.0


def dress_epsilons(ax: Any, ends: tuple[float, float], delta: float | None = None) -> None:
    """Make the horizontal axis a logarithmic one of epsilons, with its name and plain numbers.

    Parameters
    ----------
    ax : matplotlib Axes
    ends : tuple of float
        Least and largest epsilon to be shown.
    delta : float, optional
        At which the epsilons are stated.
    """
    ax.set_xscale("log")
    ax.set_xlim(*ends)
    ax.set_xlabel(epsilon_label(delta))
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.xaxis.set_minor_formatter(_minor_label if ends[1] < _FEW_POWERS * ends[0] else "")


def epsilon_label(delta: float | None) -> str:
    """Return what epsilons are called, by the delta at which they are stated."""
    return "ε" if delta is None else f"ε at δ = {shown_delta(delta)}"


def _minor_label(value: float, _: Any) -> str:
    """Return a label at 2 and 5 times powers of ten."""
    text = f"{value:g}"
    return text if text.strip("0.") in ("2", "5") else ""
