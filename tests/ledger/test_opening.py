"""Which storage a place stands for, and which errors are alike wherever a ledger is kept."""

from __future__ import annotations

import pytest

from skdptune.ledger._reference import storage_at
from skdptune.ledger._sqlite import SqliteFile, SqliteMemory


def test_places_of_sqlite(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert isinstance(storage_at(":memory:"), SqliteMemory)
    file = storage_at(tmp_path / "a.ledger")
    assert isinstance(file, SqliteFile)
    assert file.location == storage_at("a.ledger").location == str(tmp_path / "a.ledger")


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
def test_urls_of_postgresql(scheme):
    pytest.importorskip("sqlalchemy")
    pytest.importorskip("psycopg")
    storage = storage_at(f"{scheme}://user@host:5433/teams?sslmode=require")
    assert storage.location == "postgresql+psycopg://user@host:5433/teams?sslmode=require"
