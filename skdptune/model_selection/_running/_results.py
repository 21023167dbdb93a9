"""What a search publishes beside its winner, and the data-independent fallback model."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from skdptune.base import declared_labels
from skdptune.model_selection._running._data import Data
from skdptune.model_selection._running._engine import is_failure
from skdptune.model_selection._running._made_up import made_up_like
from skdptune.model_selection._running._quiet import Quiet
from skdptune.model_selection._running._record_by_record import fit_record_by_record

_PER_LABEL = 3


def results_of(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return rows of parameters and noisy scores in the form of scikit-learn's searches."""
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
        results["mean_test_score"] = scores
        order = np.argsort(-scores, kind="stable")
        ranks = np.empty(len(rows), dtype=np.int32)
        ranks[order] = np.arange(1, len(rows) + 1)
        results["rank_test_score"] = ranks
    return results


def data_independent_model(estimator: Any, data: Data) -> Any:
    """Return a data-independent model: fitted to nothing but the form of the data."""
    made = clone(estimator)
    labels = np.asarray(declared_labels(estimator) or [0.0, 1.0])
    blank = made_up_like(data.X, _PER_LABEL * labels.size)
    if blank is None:
        return made
    try:
        with Quiet(), np.errstate(all="ignore"):
            return fit_record_by_record(made, blank, np.tile(labels, _PER_LABEL))
    except BaseException as problem:
        if not is_failure(problem):
            raise
        # Unfitted: nothing could be fitted to any data of this form.
        return made
