"""The books: a change from outside is seen, wherever it is."""

from __future__ import annotations

import shutil
import sqlite3

import pytest

from skdptune.accounting import PrivacyProfile
from skdptune.ledger import LedgerError, PrivacyLedger
from skdptune.ledger._books import STATUS_AFTER

PURE = PrivacyProfile.pure(0.5)


def change(path, *statements):
    with sqlite3.connect(path) as connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


@pytest.fixture
def spent(on_disk):
    for _ in range(3):
        with on_disk.reserve(PURE, name="a fit"):
            pass
    return on_disk


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
            "UPDATE accounts SET state = replace(state, '\"n_events\":9', '\"n_events\":8')",
            "UPDATE accounts SET terms = replace(terms, '3.0', '9.0')",
            "UPDATE accounts SET terms = 'x', digest = 'y'",
            "DELETE FROM accounts",
            "INSERT INTO events SELECT dataset, 10, 'new', content, digest FROM events LIMIT 1",
        ],
    )
    def test_change_of_a_row_is_seen_when_opened(self, spent, path, statement):
        change(path, statement)
        with pytest.raises(LedgerError, match="damaged|registered"):
            PrivacyLedger(path, "patients")

    @pytest.mark.parametrize(
        "statement",
        [
            "DELETE FROM events WHERE sequence > 6",
            "UPDATE accounts SET state = replace(state, '\"n_events\":9', '\"n_events\":8')",
            "DELETE FROM accounts",
        ],
    )
    def test_change_of_the_totals_is_seen_by_the_next_spend(self, spent, path, statement):
        change(path, statement)
        with pytest.raises(LedgerError, match="damaged|registered"):
            spent.reserve(PURE, name="a fit")

    def test_lost_profile_is_seen_when_it_is_read(self, spent, path):
        change(path, "UPDATE profiles SET content = '{}'")
        with pytest.raises(LedgerError, match="a profile was changed or is lost"):
            spent.spent()

    def test_older_copy_is_seen_by_who_knew_a_newer_one(self, spent, path, tmp_path):
        shutil.copy(path, tmp_path / "copy")
        with spent.reserve(PURE, name="a fit"):
            pass
        shutil.copy(tmp_path / "copy", path)
        with pytest.raises(LedgerError, match="got another or an older copy"):
            spent.reserve(PURE, name="a fit")

    def test_another_ledger_in_its_place_is_seen(self, spent, path, tmp_path):
        other = tmp_path / "other"
        PrivacyLedger.create(other, "patients", epsilon=3.0, delta=1e-5)
        shutil.copy(other, path)
        with pytest.raises(LedgerError, match="must be the one that was opened"):
            spent.remaining()


def test_nothing_follows_a_cancellation_and_only_the_unread_is_cancelled():
    """Theorem H3."""
    assert not any(before in ("cancelled", "confirmed") for before, _ in STATUS_AFTER)
    assert [before for before, event in STATUS_AFTER if event == "cancelled"] == ["reserved"]
