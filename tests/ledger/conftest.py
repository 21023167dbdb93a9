"""Ledgers of the tests: in memory, and in a file that is not synchronised."""

from __future__ import annotations

import pytest

from skdptune.ledger import PrivacyLedger, _sqlite


@pytest.fixture(autouse=True)
def _without_sync(monkeypatch):
    # Waiting for the disk takes nearly all of the time, and tests do not stop the machine.
    monkeypatch.setattr(_sqlite, "_SYNCHRONOUS", "OFF")


@pytest.fixture
def ledger():
    return PrivacyLedger(":memory:", "patients", epsilon=3.0, delta=1e-5)


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "budget #1.ledger")


@pytest.fixture
def on_disk(path):
    return PrivacyLedger.create(path, "patients", epsilon=3.0, delta=1e-5)
