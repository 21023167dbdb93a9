"""Progress without counts."""

from __future__ import annotations

import io
import sys

import pytest

from skdptune.model_selection._running import _progress
from skdptune.model_selection._running._progress import Progress


def test_phases_and_time_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setattr(_progress, "_INTERVAL", 0.01)
    with Progress("Search", True) as progress:
        progress.phase("trying")
    assert "Search: trying" in shown.getvalue()
    assert "Search: done [00:00]" in shown.getvalue()
    assert not set("%/|") & set(shown.getvalue())


def test_failure_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    monkeypatch.setattr(sys, "stderr", shown)
    with pytest.raises(ValueError, match="bad"), Progress("Search", True):
        raise ValueError("bad")
    assert "Search: stopped" in shown.getvalue()
    assert "bad" not in shown.getvalue()


def test_silent_unless_asked(capfd: pytest.CaptureFixture[str]) -> None:
    with Progress("Search", False) as progress:
        progress.phase("trying")
    assert capfd.readouterr() == ("", "")
