"""The statements that both data bases run, on one that has nothing but tables."""

from __future__ import annotations

import sqlite3

import pytest

from skdptune.ledger._storage import Account, SqlTransaction, StoredEvent, missing, newer


@pytest.fixture
def connection():
    found = sqlite3.connect(":memory:", isolation_level=None)
    found.execute("CREATE TABLE x_accounts (dataset PRIMARY KEY, terms, state, digest)")
    found.execute("CREATE TABLE x_profiles (key PRIMARY KEY, content)")
    found.execute("CREATE TABLE x_events (dataset, sequence, reservation, content, digest)")
    yield found
    found.close()


def test_tables_are_those_of_a_schema(connection):
    transaction = SqlTransaction(connection.execute, "x_")
    transaction.save("a'; --", Account("1", ":two", "%s"))
    transaction.append("a'; --", StoredEvent(1, "r", '{"x":1}', "d"))
    transaction.keep_profile("k", "first")
    transaction.keep_profile("k", "second")
    assert transaction.data_sets() == ["a'; --"]
    assert transaction.account("a'; --") == Account("1", ":two", "%s")
    assert list(transaction.events("a'; --")) == [transaction.last_event("a'; --")]
    assert transaction.profile("k") == "first"


def test_what_is_said_of_no_ledger_and_of_a_newer_one():
    assert "A missing ledger is not an empty one" in str(missing("p"))
    assert str(newer("p", 3, 2)).startswith("path_or_url must be that of a ledger of version 2")
