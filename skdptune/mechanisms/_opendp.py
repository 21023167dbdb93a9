"""Noise that is safe in floating point, and comparisons that are, from OpenDP's samplers.

Noise drawn as a float reveals low bits of the value that it is added to (Mironov 2012).
OpenDP adds discrete noise on the grid of all doubles by exact arithmetic, and rounds only then,
which is post-processing (Canonne, Kamath and Steinke 2020).

Assumption F6.
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


def add_gaussian(values: np.ndarray, scale: float) -> np.ndarray:
    """Return the values, a vector, plus independent Gaussian noise."""
    return np.asarray(_sampler("gaussian", scale)(values.tolist()), dtype=np.float64)


def add_laplace(values: np.ndarray, scale: float) -> np.ndarray:
    """Return the values, a vector, plus independent Laplace noise."""
    return np.asarray(_sampler("laplace", scale)(values.tolist()), dtype=np.float64)


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


@functools.lru_cache(maxsize=64)
def _sampler(noise: str, scale: float) -> Callable[[list[float]], Any]:
    domain = domains.vector_domain(domains.atom_domain(T=float, nan=False))
    with _feature_enabled():
        if noise == "gaussian":
            return measurements.make_gaussian(domain, metrics.l2_distance(T=float), scale)
        return measurements.make_laplace(domain, metrics.l1_distance(T=float), scale)


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
