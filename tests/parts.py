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


def in_order(
    rows: Any, targets: Any, cuts: Sequence[int] = (100,), passes: list[int] | None = None
) -> PrivateRows:
    """Return the rows in parts of two chunks each that end at the cuts, and count the passes."""
    ends = [0, *sorted(cuts), len(rows)]

    def part(number: int) -> Any:
        start, stop = ends[number : number + 2]

        def chunks() -> Any:
            if passes is not None and number == 0:
                passes.append(stop)
            middle = (start + stop) // 2
            for each in (slice(start, middle), slice(middle, stop)):
                yield rows[each], targets[each]

        return chunks

    return PrivateRows.from_chunks([part(number) for number in range(len(ends) - 1)])
