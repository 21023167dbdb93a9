"""The points of fronts, read from fitted searches and from tables."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdptune._formatting import shown

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Front:
    """One front, and the evaluations it was chosen from.

    Attributes
    ----------
    points : ndarray of shape (n_points, 2)
        Epsilon and error of the points that no other is better than, by rising epsilon.
    evaluated : ndarray of shape (n_evaluations, 2)
        All evaluations that have both.
    band : tuple of ndarray or None
        The fronts of the best and of the worst of several repeats.
    """

    points: FloatArray
    evaluated: FloatArray
    band: tuple[FloatArray, FloatArray] | None = None


def front_of(search: Any, label: str) -> Front:
    """Return the front of a fitted search, or raise for anything else."""
    missing = [n for n in ("pareto_front_", "evaluations_", "fronts_") if not hasattr(search, n)]
    if missing:
        raise TypeError(
            f"search must be a fitted DParetoSearchCV or a ParetoResult; got "
            f"{type(search).__name__} for {shown(label)}, without {missing[0]}."
        )
    points = pairs_of(search.pareto_front_)
    evaluated = pairs_of(search.evaluations_)
    band = None
    if {"best", "worst"} <= set(search.fronts_):
        # With a third objective a front is a surface; what is drawn is its lower edge.
        best, worst = (best_of(search.fronts_[side][:, :2]) for side in ("best", "worst"))
        band = None if best.shape == worst.shape and np.array_equal(best, worst) else (best, worst)
    return Front(best_of(points), evaluated, band)


def pairs_of(table: Any) -> FloatArray:
    """Return epsilon and error of the rows of a table that have both."""
    pairs = np.column_stack(
        [np.asarray(table[name], dtype=np.float64) for name in ("epsilon", "error")]
    )
    return pairs[np.isfinite(pairs).all(axis=1)]


def best_of(pairs: FloatArray) -> FloatArray:
    """Return the points that no other is better than, by rising epsilon and falling error."""
    kept: list[tuple[float, float]] = []
    for epsilon, error in sorted(map(tuple, np.asarray(pairs, dtype=np.float64).tolist())):
        if math.isfinite(epsilon) and (not kept or error < kept[-1][1]):
            kept.append((epsilon, error))
    return np.array(kept, dtype=np.float64).reshape(-1, 2)


def reference_of(search: Any) -> tuple[float, float] | None:
    """Return the first two coordinates of a search's reference point."""
    found = getattr(search, "reference_point", None)
    return None if found is None else (float(found[0]), float(found[1]))


def study_epsilon_of(searches: Any) -> float | None:
    """Return what the release of a single search cost."""
    released = [getattr(search, "release", None) for search in searches]
    return released[0] if len(released) == 1 else None


def utility_of(searches: Any) -> str:
    """Return what the scores of searches are called, where they are on the scale of utilities."""
    scorers = [getattr(search, "scorer_", None) for search in searches]
    names = {getattr(scorer, "name", None) for scorer in scorers}
    is_plain = all((s.lower, s.upper) == (0.0, 1.0) for s in scorers if s is not None)
    only = names.pop() if len(names) == 1 and is_plain else None
    return str(only or "utility")
