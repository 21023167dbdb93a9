"""Which storage a path or URL stands for."""

from __future__ import annotations

from typing import Any

from skdptune.ledger._checks import check_path
from skdptune.ledger._postgresql import PostgresqlServer, is_url
from skdptune.ledger._sqlite import SqliteFile, SqliteMemory
from skdptune.ledger._storage import MEMORY, Storage


def storage_at(path_or_url: Any) -> Storage:
    """Return the storage at a place, which need not be there yet, or raise for what is none."""
    place = check_path(path_or_url)
    if place == MEMORY:
        return SqliteMemory()
    return PostgresqlServer(place) if is_url(place) else SqliteFile(place)
