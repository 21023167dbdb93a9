"""A few cases of many: what tests are given where all combinations would be too many."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import cycle, islice
from typing import Any

import numpy as np


def few(count: int, *columns: Iterable[Any]) -> list[tuple[Any, ...]]:
    """Return as many combinations, the same ones each time, in which every value appears."""
    rng = np.random.default_rng(0)
    listed = [list(column) for column in columns]
    if max(map(len, listed)) > count:
        raise ValueError("count must be at least the number of values of each column.")
    drawn = [list(islice(cycle(column), count)) for column in listed]
    return list(zip(*([c[i] for i in rng.permutation(count)] for c in drawn), strict=True))
