"""Clusters of this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import joblib
import pytest


@contextmanager
def of_ray() -> Iterator[None]:
    """Give joblib the workers of a ray cluster."""
    ray = pytest.importorskip("ray")
    from ray.util.joblib import register_ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        register_ray()
        with joblib.parallel_config(backend="ray", n_jobs=2):
            yield
    finally:
        ray.shutdown()
