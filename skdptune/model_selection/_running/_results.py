"""The rows that a search publishes beside its winner."""

from __future__ import annotations

from typing import Any

import numpy as np


def results_of(
    rows: list[dict[str, Any]], lower: float = -np.inf, upper: float = np.inf
) -> dict[str, Any]:
    """Return rows of parameters and noisy scores in the form of scikit-learn's searches.

    Scores are clipped to their bounds; ranks are those of the scores as they were.
    """
    results: dict[str, Any] = {"params": [row["params"] for row in rows]}
    names = sorted({name for row in rows for name in row["params"]})
    for name in names:
        column: Any = np.ma.array([None] * len(rows), mask=True, dtype=object)
        for place, row in enumerate(rows):
            if name in row["params"]:
                column[place] = row["params"][name]
        results[f"param_{name}"] = column
    scores = np.array([row["score"] for row in rows], dtype=np.float64)
    if np.isfinite(scores).any():
        results["mean_test_score"] = np.clip(scores, lower, upper)
        order = np.argsort(-scores, kind="stable")
        ranks = np.empty(len(rows), dtype=np.int32)
        ranks[order] = np.arange(1, len(rows) + 1)
        results["rank_test_score"] = ranks
    return results
