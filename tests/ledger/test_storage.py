"""What every storage keeps: the same for a file and for memory."""

from __future__ import annotations

import pytest

from skdptune.ledger import LedgerError
from skdptune.ledger._reference import storage_at
from skdptune.ledger._storage import Account, StoredEvent

EVENTS = [StoredEvent(i, f"r{i % 2}", f'{{"number":{i}}}', f"d{i}") for i in range(1, 6)]


@pytest.fixture(params=["file", "memory", "server"])
def storage(request):
    places = {
        "file": lambda: request.getfixturevalue("path"),
        "memory": lambda: ":memory:",
        "server": lambda: request.getfixturevalue("server").url(),
    }
    storage = storage_at(places[request.param]())
    storage.create(lambda transaction: None)
    return storage


def test_everything_is_read_as_it_was_kept(storage):
    with storage.transaction(write=True) as transaction:
        transaction.save("b", Account("terms", "state", "digest"))
        transaction.save("a", Account("1", "2", "3"))
        transaction.save("a", Account("4", "5", "6"))
        for event in EVENTS:
            transaction.append("a", event)
        transaction.append("b", EVENTS[0])
        transaction.keep_profile("key", "content")
        transaction.keep_profile("key", "content")
    with storage.transaction(write=False) as transaction:
        assert transaction.data_sets() == ["a", "b"]
        assert transaction.account("a") == Account("4", "5", "6")
        assert transaction.account("c") is None
        assert list(transaction.events("a")) == EVENTS
        assert list(transaction.events("a", "r1")) == EVENTS[::2]
        assert transaction.last_event("a") == EVENTS[-1]
        assert transaction.last_event("c") is None
        assert transaction.profile("key") == "content"
        assert transaction.profile("other") is None
    storage.verify()


def test_exception_undoes_everything(storage):
    with pytest.raises(ZeroDivisionError), storage.transaction(write=True) as transaction:
        transaction.save("a", Account("1", "2", "3"))
        raise ZeroDivisionError
    with storage.transaction(write=False) as transaction:
        assert transaction.data_sets() == []


def test_event_is_never_replaced(storage):
    with storage.transaction(write=True) as transaction:
        transaction.append("a", EVENTS[0])
    with pytest.raises(LedgerError), storage.transaction(write=True) as transaction:
        transaction.append("a", EVENTS[0])


# The statements that both data bases run, on one that has nothing but tables -----------------


# Which storage a place stands for, and which errors are alike wherever a ledger is kept ------
