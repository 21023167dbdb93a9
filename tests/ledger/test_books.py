"""The books: a change from outside is seen, wherever it is."""

from __future__ import annotations

import re
import shutil

import pytest

from skdptune.accounting import PrivacyProfile
from skdptune.ledger import LedgerError, PrivacyLedger
from skdptune.ledger._books import STATUS_AFTER
from skdptune.ledger._storage import SqlTransaction

PURE, TINY = PrivacyProfile.pure(0.5), PrivacyProfile.pure(0.01)


TABLES = "accounts", "events", "profiles"
# What a ledger of three spends counts, and another count.
COUNTS = {"nine": '"n_events":9', "eight": '"n_events":8'}


def change(ledger, *statements):
    """Change rows as whoever may write to them can, the ledger's digests aside."""
    with ledger._storage.transaction(write=True) as transaction:
        for statement in statements:
            transaction._execute(in_full(transaction, statement), COUNTS)


def in_full(transaction, statement):
    """Return a statement with the full names of tables."""
    return re.sub(
        rf"\b({'|'.join(TABLES)})\b", lambda found: vars(transaction)[f"_{found[0]}"], statement
    )


def copied(ledger):
    """Return a copy of all that is kept at the place of a ledger."""
    with ledger._storage.transaction(write=False) as transaction:
        statements = [in_full(transaction, f"SELECT * FROM {table}") for table in TABLES]
        return [list(map(tuple, transaction._execute(each, {}))) for each in statements]


def put_back(ledger, copy):
    """Replace all that is kept by a copy."""
    change(ledger, *(f"DELETE FROM {table}" for table in TABLES))
    with ledger._storage.transaction(write=True) as transaction:
        for table, rows in zip(TABLES, copy, strict=True):
            for row in rows:
                values = {f"v{i}": value for i, value in enumerate(row)}
                places = ", ".join(f":{name}" for name in values)
                statement = in_full(transaction, f"INSERT INTO {table} VALUES ({places})")
                transaction._execute(statement, values)


@pytest.fixture
def spent(shared):
    for _ in range(3):
        with shared.reserve(PURE, name="a fit"):
            pass
    return shared


class TestChanges:
    """Theorem H3."""

    @pytest.mark.parametrize(
        "statement",
        [
            "UPDATE events SET content = replace(content, 'a fit', 'a fix') WHERE sequence = 4",
            "UPDATE events SET content = replace(content, '0.1', '0.0') WHERE sequence = 1",
            "UPDATE events SET reservation = 'another' WHERE sequence = 2",
            "DELETE FROM events WHERE sequence = 2",
            "DELETE FROM events WHERE sequence > 6",
            "DELETE FROM events",
            "UPDATE accounts SET state = replace(state, :nine, :eight)",
            "UPDATE accounts SET terms = replace(terms, '3.0', '9.0')",
            "UPDATE accounts SET terms = 'x', digest = 'y'",
            "DELETE FROM accounts",
            "INSERT INTO events SELECT dataset, 10, 'new', content, digest FROM events LIMIT 1",
        ],
    )
    def test_change_of_a_row_is_seen_when_opened(self, spent, place, statement):
        change(spent, statement)
        with pytest.raises(LedgerError, match="damaged|registered"):
            PrivacyLedger(place, "patients")

    @pytest.mark.parametrize(
        "statement",
        [
            "DELETE FROM events WHERE sequence > 6",
            "UPDATE accounts SET state = replace(state, :nine, :eight)",
            "DELETE FROM accounts",
        ],
    )
    def test_change_of_the_totals_is_seen_by_the_next_spend(self, spent, place, statement):
        change(spent, statement)
        with pytest.raises(LedgerError, match="damaged|registered"):
            spent.reserve(PURE, name="a fit")

    def test_lost_profile_is_seen_when_it_is_read(self, spent):
        change(spent, "UPDATE profiles SET content = '{}'")
        with pytest.raises(LedgerError, match="a profile was changed or is lost"):
            spent.spent()

    def test_older_copy_is_seen_by_who_knew_a_newer_one(self, spent):
        older = copied(spent)
        with spent.reserve(PURE, name="a fit"):
            pass
        put_back(spent, older)
        with pytest.raises(LedgerError, match="got another or an older copy"):
            spent.reserve(PURE, name="a fit")

    @pytest.mark.parametrize("more", [2, 3, 9])
    def test_older_copy_that_went_on_is_seen_by_who_knew_a_newer_one(self, spent, more):
        """Theorem H3: it has as many events, or more, but other ones."""
        older = copied(spent)
        with spent.reserve(PURE, name="a fit"):
            pass
        put_back(spent, older)
        others = PrivacyLedger(spent.path, spent.dataset)
        for _ in range(more):
            others.reserve(PrivacyProfile.pure(1e-3), name="another").cancel("a test")
        for use in (spent.history, spent.remaining, lambda: spent.reserve(PURE, name="a fit")):
            with pytest.raises(LedgerError, match="got another or an older copy"):
                use()
        # Who has opened it since knows no better.
        assert len(others.history()) >= more

    def test_another_ledger_in_its_place_is_seen(self, spent, tmp_path):
        other = PrivacyLedger.create(tmp_path / "other", "patients", epsilon=3.0, delta=1e-5)
        put_back(spent, copied(other))
        with pytest.raises(LedgerError, match="must be the one that was opened"):
            spent.remaining()

    def test_file_that_was_put_back_is_seen(self, on_disk, path, tmp_path):
        shutil.copy(path, tmp_path / "copy")
        with on_disk.reserve(PURE, name="a fit"):
            pass
        shutil.copy(tmp_path / "copy", path)
        with pytest.raises(LedgerError, match="got another or an older copy"):
            on_disk.reserve(PURE, name="a fit")


class TestReplay:
    """Theorem H3: events that were checked are not read again, and later ones are."""

    def test_history_is_the_same_whoever_reads_how_often(self, shared, place):
        other = PrivacyLedger(place, "patients")
        for number in range(4):
            with shared.reserve(PURE if number else TINY, name=f"fit {number}"):
                left = other.reserve(TINY, name="left")
                assert other.history() == PrivacyLedger(place, "patients").history()
            left.cancel("not needed")
            assert shared.history() == PrivacyLedger(place, "patients").history()
        assert other.history() == shared.history()
        assert [record.status for record in other.history()] == ["confirmed", "cancelled"] * 4

    def test_only_later_events_are_read(self, spent, monkeypatch):
        spent.history()
        with spent.reserve(PURE, name="a fit"):
            pass
        read, events = [], SqlTransaction.events

        def noted(transaction, *arguments, **options):
            for event in events(transaction, *arguments, **options):
                read.append(event.sequence)
                yield event

        monkeypatch.setattr(SqlTransaction, "events", noted)
        assert len(spent.history()) == 4
        assert read == [10, 11, 12]
        spent.history()
        assert read == [10, 11, 12]

    def test_damage_of_a_later_event_is_seen_again_and_again(self, spent):
        spent.history()
        with spent.reserve(PURE, name="a fit"):
            pass
        change(spent, "UPDATE events SET content = replace(content, 'a', 'b') WHERE sequence = 11")
        for _ in range(2):
            with pytest.raises(LedgerError, match="event 11 was changed or is lost"):
                spent.history()

    def test_transaction_that_began_before_is_read_by_itself(self, place, spent):
        if "://" not in place:
            pytest.skip("who writes to a file waits for those who read it")
        with spent._books(write=False) as (_, books):
            with spent.reserve(PURE, name="a fit"):
                pass
            assert len(spent.history()) == 4
            assert len(spent._records(books)) == 3
        assert len(spent.history()) == 4


def test_nothing_follows_a_cancellation_and_only_the_unread_is_cancelled():
    """Theorem H3."""
    assert not any(before in ("cancelled", "confirmed") for before, _ in STATUS_AFTER)
    assert [before for before, event in STATUS_AFTER if event == "cancelled"] == ["reserved"]
