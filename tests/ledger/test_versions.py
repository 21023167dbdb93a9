"""Ledgers of older versions are read and spent from; those of newer ones are refused."""

from __future__ import annotations

import pytest

from skdptune.accounting import BudgetExceededError, PrivacyProfile
from skdptune.ledger import LedgerError, PrivacyLedger, _books

PURE = PrivacyProfile.pure(0.5)
# What older versions did not know: parts and copies; who recorded an entry.
NEWER_THAN_2 = {"copies", "copied", "tail", "parts", "parts_by", "totals_of"}
NEWER_THAN_1 = {*NEWER_THAN_2, "who", "note"}


def set_version(ledger, version):
    statement = "PRAGMA user_version = "
    if "://" in ledger.path:
        statement = "UPDATE skdptune.ledger SET version = "
    with ledger._storage.transaction(write=True) as transaction:
        transaction._execute(f"{statement}{version}", {})


def version_of(ledger):
    query = "PRAGMA user_version"
    if "://" in ledger.path:
        query = "SELECT version FROM skdptune.ledger"
    with ledger._storage.transaction(write=False) as transaction:
        return transaction._execute(query, {}).fetchone()[0]


@pytest.mark.parametrize(
    ("version", "message"),
    [(4, "of version 3 or less; got version 4"), (0, "damaged: version 0 does not exist")],
)
def test_unknown_version_is_refused(shared, place, version, message):
    set_version(shared, version)
    for use in (lambda: PrivacyLedger(place, "patients"), shared.history):
        with pytest.raises(LedgerError, match=message):
            use()


def as_older_version(content, newer):
    """Return what an older version wrote in place of a content."""
    old = {key: value for key, value in content.items() if key not in newer}
    for key in ("charges", "ways"):
        if old.get(key):
            old[key] = {name: value for name, value in old[key].items() if name not in newer}
    if content.get("event") == "reserved" and "who" in newer:
        old["host"] = "b52"
    return old | {"totals": old["totals"][:3]} if "totals" in old else old


@pytest.fixture(params=[1, 2])
def older(request, place, monkeypatch):
    """Return a ledger of an older version, with one release and one open reservation."""
    text, newer = _books._text, {1: NEWER_THAN_1, 2: NEWER_THAN_2}[request.param]
    with monkeypatch.context() as patch:
        patch.setattr(_books, "_text", lambda content: text(as_older_version(content, newer)))
        ledger = PrivacyLedger.create(place, "patients", epsilon=1.0, delta=1e-5)
        with ledger.reserve(PURE, name="an old fit"):
            pass
        ledger.reserve(PURE, name="left open")
    set_version(ledger, request.param)
    return request.param


def test_older_version_is_read_as_it_is_and_made_current_by_who_writes(older, place):
    ledger = PrivacyLedger(place, "patients", who="Ana")
    assert ledger.used() == pytest.approx(1.0, abs=1e-4)
    assert ledger.parts == () and [record.parts for record in ledger.history()] == [(), ()]
    assert version_of(ledger) == older
    with pytest.raises(BudgetExceededError):
        ledger.reserve(PURE, name="one more")
    ledger.reservation(ledger.history()[1].reservation).cancel("forgotten")
    with ledger.reserve(PURE, name="a new fit", note="the second study"):
        pass
    assert version_of(ledger) == 3
    assert ledger.plan(PURE).n_more == 0
    records = PrivacyLedger(place, "patients").history()
    assert [record.status for record in records] == ["confirmed", "cancelled", "confirmed"]
    assert (records[-1].who, records[-1].note) == ("Ana", "the second study")
    if older == 1:
        assert [(record.who, record.note) for record in records[:2]] == [("b52", "")] * 2
        assert ledger.usage()["who"][:3] == ["b52", "", ""]
    # Another data set of the same place may have parts.
    terms = {"parts": ("north", "south"), "parts_by": "the column 'site'"}
    sites = PrivacyLedger.create(place, "sites", epsilon=1.0, delta=1e-5, **terms)
    for part in terms["parts"]:
        for _ in range(2):
            sites.part(part).reserve(PURE, name="a fit")
