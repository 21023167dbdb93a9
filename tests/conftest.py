"""Tests are reproducible: hypothesis repeats its examples, and global generators are reseeded.

To search for new counter-examples, use the other profile:
``python -m pytest --hypothesis-profile explore``.
"""

from __future__ import annotations

import functools
import random
import weakref
from collections.abc import Callable
from typing import Any

import hypothesis
import numpy as np
import pytest
from sklearn.base import BaseEstimator

from skdptune.base import _costs, _recording

# A deadline would make a test's verdict depend on the machine's load, and a database of
# old examples on what ran before.
hypothesis.settings.register_profile("seeded", derandomize=True, deadline=None, database=None)
hypothesis.settings.register_profile("explore", deadline=None, max_examples=1000)
hypothesis.settings.load_profile("seeded")


def _read_once(read: Callable[[type], list[str]]) -> Callable[[type], list[str]]:
    """Return a function that reads the parameters of each class once."""
    known: weakref.WeakKeyDictionary[type, tuple[Any, list[str]]] = weakref.WeakKeyDictionary()

    def names(cls: type) -> list[str]:
        init, found = known.get(cls, (None, []))
        if init is not cls.__init__:
            found = read(cls)
            known[cls] = cls.__init__, found
        return list(found)

    return names


# Each `get_params` of scikit-learn inspects the signature of its class. This took a third of the
# time of a search of small models, of which the tests make thousands.
BaseEstimator._get_param_names = classmethod(_read_once(BaseEstimator._get_param_names.__func__))


@pytest.fixture(autouse=True)
def _seed_global_generators() -> None:
    """Reseed the global generators that libraries use by default."""
    random.seed(0)
    np.random.seed(0)


@pytest.fixture(autouse=True)
def _no_fits_before() -> None:
    """Forget the fits that were seen, since a second fit causes a warning."""
    _recording._seen.clear()


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the registrations of a test after it."""
    # Models of other libraries are registered once for the process.
    _costs.load_adapters()
    copy = functools.singledispatch(_costs._registry.dispatch(object))
    for kind, function in _costs._registry.registry.items():
        copy.register(kind)(function)
    monkeypatch.setattr(_costs, "_registry", copy)
