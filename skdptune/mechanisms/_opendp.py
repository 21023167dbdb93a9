"""A comparison that is safe in floating point: OpenDP's noisy maximum.

OpenDP compares noisy scores by exact arithmetic, as far as it takes to tell them apart.

Theorem N2.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from opendp import domains, measurements, measures, metrics, mod

_FEATURE = "contrib"
_lock = threading.Lock()


def noisy_max(values: np.ndarray, scale: float) -> int:
    """Return the index of the largest value after exponential noise of mean `scale` on each."""
    return int(_selector(scale)(values.tolist()))


@functools.lru_cache(maxsize=64)
def _selector(scale: float) -> Callable[[list[float]], Any]:
    domain = domains.vector_domain(domains.atom_domain(T=float, nan=False))
    with _feature_enabled():
        return measurements.make_noisy_max(
            domain, metrics.linf_distance(T=float), measures.max_divergence(), scale
        )


@contextmanager
def _feature_enabled() -> Iterator[None]:
    """Enable OpenDP's contributed code inside the block alone: the user's setting stays."""
    with _lock:
        missing = _FEATURE not in mod.GLOBAL_FEATURES
        mod.GLOBAL_FEATURES.add(_FEATURE)
        try:
            yield
        finally:
            if missing:
                mod.GLOBAL_FEATURES.discard(_FEATURE)
