"""What tests of costs and reports share."""

from __future__ import annotations

import functools

import pytest

from skdptune.base import _costs as module


@pytest.fixture
def registry(monkeypatch):
    """Let registrations of a test end with it."""
    copy = functools.singledispatch(module._registry.dispatch(object))
    for kind, function in module._registry.registry.items():
        copy.register(kind)(function)
    monkeypatch.setattr(module, "_registry", copy)
