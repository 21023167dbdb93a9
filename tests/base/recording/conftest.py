"""Ledgers of the tests, in memory and in a file that is not synchronised."""

from __future__ import annotations

import pytest

from skdptune.ledger import PrivacyLedger, _sqlite


@pytest.fixture(autouse=True)
def _without_sync(monkeypatch):
    monkeypatch.setattr(_sqlite, "_SYNCHRONOUS", "OFF")


@pytest.fixture
def ledger():
    return PrivacyLedger(":memory:", "patients", epsilon=100.0, delta=1e-5)


@pytest.fixture
def on_disk(tmp_path):
    path = str(tmp_path / "budget.ledger")
    return PrivacyLedger.create(path, "patients", epsilon=500.0, delta=1e-5)


@pytest.fixture
def counts(tmp_path):
    return tmp_path / "counts"
