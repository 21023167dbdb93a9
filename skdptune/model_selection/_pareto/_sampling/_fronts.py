"""Pareto fronts of points, and their hypervolume; all coordinates are minimised."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
Reference = Sequence[float] | FloatArray

# Of the reference's first coordinate: smaller ones count as that on a logarithmic scale.
LEAST_SHARE = 1e-6


def non_dominated(points: ArrayLike) -> NDArray[np.bool_]:
    """Return which points are dominated by no other; of equal points only the first.

    A point dominates another if none of its coordinates is larger and at least one is smaller.
    """
    array = _points(points)
    if len(array) == 0:
        return np.zeros(0, dtype=bool)
    return np.asarray(_moocore().is_nondominated(array, keep_weakly=False), dtype=bool)


def front(points: ArrayLike) -> FloatArray:
    """Return the non-dominated points, sorted by the first coordinate."""
    array = _points(points)
    kept = array[non_dominated(array)]
    return kept[np.lexsort(kept.T[::-1])]


def hypervolume(points: ArrayLike, reference: Reference) -> float:
    """Return the volume between points and a reference point.

    Points with a coordinate at or beyond the reference's add nothing.
    """
    array = _points(points)
    inside = array[(array < np.asarray(reference)).all(axis=1)] if len(array) else array
    if len(inside) == 0:
        return 0.0
    return float(_moocore().hypervolume(inside, ref=np.asarray(reference, dtype=float)))


def on_log_scale(points: ArrayLike, reference: Reference) -> FloatArray:
    """Return the points with the logarithm of their first coordinates.

    First coordinates below `LEAST_SHARE` of the reference's count as that, so that no volume is
    infinite.
    """
    array = np.array(_points(points))
    array[:, 0] = np.log(np.maximum(array[:, 0], LEAST_SHARE * reference[0]))
    return array


def hypervolume_history(
    points: ArrayLike, reference: Reference, epsilon_scale: str = "linear"
) -> FloatArray:
    """Return the hypervolume of the points up to each one; rows of NaN change nothing."""
    array = _points(points)
    if epsilon_scale == "log":
        array = on_log_scale(array, reference)
        reference = on_log_scale(np.asarray([reference]), reference)[0]
    history, known, volume = np.zeros(len(array)), np.empty((0, array.shape[1])), 0.0
    for number, point in enumerate(array):
        inside = not np.isnan(point).any() and bool((point < np.asarray(reference)).all())
        if inside and not (known <= point).all(axis=1).any():
            known = front(np.vstack([known, point]))
            volume = hypervolume(known, reference)
        history[number] = volume
    return history


def _points(points: ArrayLike) -> FloatArray:
    array = np.asarray(points, dtype=float)
    if array.ndim != 2:
        raise ValueError(f"points must be rows of coordinates; got {array.ndim} dimensions.")
    return array


def _moocore() -> Any:
    try:
        import moocore
    except ModuleNotFoundError as problem:
        raise ModuleNotFoundError(
            "Pareto fronts need moocore, which is not installed. "
            "The extra 'pareto' brings it: pip install 'skdptune[pareto]'.",
            name="moocore",
        ) from problem
    return moocore
