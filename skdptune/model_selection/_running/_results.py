"""The rows that a search publishes beside its winner."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import rankdata


def results_of(
    rows: list[dict[str, Any]], lower: float = -np.inf, upper: float = np.inf
) -> dict[str, Any]:
    """Return rows of parameters and noisy scores in the form of scikit-learn's searches.

    Parameters
    ----------
    rows : list of dict
        ``params`` and ``score``; ``splits``, the noisy scores of all folds, and ``deviation``, of
        the noise on a single score, where these are published.
    lower, upper : float
        Bounds of scores, to which they are clipped; ranks are those of the scores as they were.
    """
    results: dict[str, Any] = {"params": [row["params"] for row in rows]}
    for name in sorted({name for row in rows for name in row["params"]}):
        results[f"param_{name}"] = _column([row["params"] for row in rows], name)
    scores = np.array([row["score"] for row in rows], dtype=np.float64)
    if not np.isfinite(scores).any():
        return results
    if all("splits" in row for row in rows):
        splits = np.array([row["splits"] for row in rows], dtype=np.float64)
        for place, column in enumerate(splits.T):
            results[f"split{place}_test_score"] = np.clip(column, lower, upper)
        deviations = splits.std(axis=1)
        if splits.shape[1] == 1:
            deviations = np.array([row["deviation"] for row in rows], dtype=np.float64)
        results["std_test_score"] = deviations
    results["mean_test_score"] = np.clip(scores, lower, upper)
    results["rank_test_score"] = rankdata(-scores, method="min").astype(np.int32)
    return results


def _column(params: Sequence[dict[str, Any]], name: str) -> Any:
    """Return the values of a parameter, masked for candidates that have none."""
    known = {place: each[name] for place, each in enumerate(params) if name in each}
    try:
        found = np.array(list(known.values()))
        # As in scikit-learn: no strings of fixed length, and sequences as they are.
        kind = found.dtype if found.ndim == 1 and found.dtype.kind != "U" else np.dtype(object)
    except (ValueError, TypeError):
        kind = np.dtype(object)
    column: Any = np.ma.MaskedArray(np.empty(len(params), dtype=kind), mask=True)
    for place, value in known.items():
        column[place] = value
    return column
