"""Every test repeats: hypothesis draws the same examples, and global generators are reseeded.

To look for new counter-examples, ask for the other profile:
``python -m pytest --hypothesis-profile explore``.
"""

from __future__ import annotations

import functools
import random

import hypothesis
import numpy as np
import pytest

from skdptune.base import _costs, _recording

# A deadline would make a test's verdict depend on the machine's load, and a data base of
# old examples on what ran before.
hypothesis.settings.register_profile("seeded", derandomize=True, deadline=None, database=None)
hypothesis.settings.register_profile("explore", deadline=None, max_examples=1000)
hypothesis.settings.load_profile("seeded")


@pytest.fixture(autouse=True)
def _seed_global_generators() -> None:
    """Reseed what libraries fall back on when they are handed no generator."""
    random.seed(0)
    np.random.seed(0)


@pytest.fixture(autouse=True)
def _no_fits_before() -> None:
    """Forget which fits were seen, of which a second one warns."""
    _recording._seen.clear()


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let registrations of a test end with it."""
    # Models of other libraries are registered once for the process.
    _costs.load_adapters()
    copy = functools.singledispatch(_costs._registry.dispatch(object))
    for kind, function in _costs._registry.registry.items():
        copy.register(kind)(function)
    monkeypatch.setattr(_costs, "_registry", copy)
