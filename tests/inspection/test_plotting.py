"""matplotlib is asked for late, and named where it is missing."""

from __future__ import annotations

import sys

import pytest

from skdptune.inspection._plotting import load_pyplot


def test_what_needs_matplotlib_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(
        ModuleNotFoundError, match=r"^AuditDisplay needs matplotlib.*skdptune\[plot\]"
    ):
        load_pyplot("AuditDisplay")


def test_pyplot_is_matplotlibs_own() -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    assert load_pyplot("AuditDisplay") is pyplot
