"""Rows in parts, of any sizes and in any order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from skdptune import PrivateRows
from skdptune._compat import safe_indexing


def in_parts(kind: Any) -> Any:
    """Return a class of estimators that read any table in parts of seven rows."""

    class InParts(kind):  # type: ignore[misc]
        def fit(self, X: Any, y: Any = None, *, groups: Any = None) -> Any:
            rows = PrivateRows.from_arrays(X, y, rows_per_part=7)
            return super().fit(rows, **{} if groups is None else {"groups": groups})

    return InParts


def in_chunks(X: Any, y: Any, cuts: Sequence[int], order: Any = None) -> PrivateRows:
    """Return rows, in another order if it is given, in parts that end at the cuts."""

    def chunk(part: Any) -> Any:
        return lambda: iter([(safe_indexing(X, part), y[part])])

    places = np.arange(len(X)) if order is None else order
    return PrivateRows.from_chunks([chunk(part) for part in np.split(places, sorted(cuts))])
