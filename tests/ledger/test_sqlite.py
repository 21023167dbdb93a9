"""The file of a ledger: who may read it, what damages it, and what is said of each fault."""

from __future__ import annotations

import contextlib
import os
import random
import sqlite3
import stat
import tempfile
from pathlib import Path

import pytest

from skdptune.accounting import PrivacyProfile
from skdptune.ledger import LedgerError, PrivacyLedger, _sqlite
from skdptune.ledger._sqlite import SqliteFile, create_file
from skdptune.ledger._storage import Account
from tests.ledger.children import (
    check_notes,
    context,
    create_as_nobody,
    finish,
    in_threads,
    spend_as_nobody,
    spend_at,
    spend_with_files_up_to,
    started,
)

PURE = PrivacyProfile.pure(0.001)


@pytest.fixture
def spent(on_disk):
    """Return a ledger of several pages."""
    for number in range(30):
        with on_disk.reserve(PURE, name="a fit", details={"words": f"{number}" * 200}):
            pass
    return on_disk


class TestFile:
    @pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
    @pytest.mark.parametrize("mask", [0o000, 0o022])
    def test_only_the_owner_may_read_it(self, path, tmp_path, mask):
        before = os.umask(mask)
        try:
            ledger = PrivacyLedger.create(path, "patients", epsilon=1.0, delta=0.0)
            with ledger._storage.transaction(write=True) as transaction:
                transaction.save("another", Account("terms", "state", "digest"))
                files = {file.name: file.stat().st_mode for file in tmp_path.iterdir()}
        finally:
            os.umask(before)
        # The file, and its journal.
        assert len(files) == 2
        assert {stat.S_IMODE(mode) for mode in files.values()} == {0o600}

    def test_commits_wait_for_the_disk_by_default(self, monkeypatch, on_disk):
        monkeypatch.undo()
        with SqliteFile(on_disk.path).transaction(write=True) as transaction:
            # EXTRA: the folder, too, lest a journal come back and undo what was committed.
            assert transaction._execute("PRAGMA synchronous").fetchone() == (3,)

    def test_new_file_appears_whole_or_not_at_all(self, path, tmp_path):
        def fail(transaction):
            assert not os.path.exists(path)
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            create_file(path, fail)
        assert list(tmp_path.iterdir()) == []

    def test_file_that_another_process_just_made_is_kept(self, path, tmp_path):
        def overtaken(transaction):
            with open(path, "w") as file:
                file.write("theirs")

        with pytest.raises(LedgerError, match="path_or_url must be the path of a new file"):
            create_file(path, overtaken)
        with open(path) as file:
            assert file.read() == "theirs"
        assert len(list(tmp_path.iterdir())) == 1


class TestFaults:
    """Theorem H3: whatever fails, nothing that was spent is forgotten."""

    def test_empty_file_is_damaged(self, spent, path):
        os.truncate(path, 0)
        for use in (
            lambda: PrivacyLedger(path, "patients"),
            lambda: spent.reserve(PURE, name="x"),
        ):
            with pytest.raises(LedgerError, match="is damaged: it is not a ledger"):
                use()
        with pytest.raises(LedgerError, match="is damaged"):
            PrivacyLedger.create(path, "another", epsilon=1.0, delta=0.0)

    @pytest.mark.parametrize("share", [0.3, 0.6, 0.95])
    def test_truncated_file_is_damaged(self, spent, path, share):
        os.truncate(path, int(share * os.path.getsize(path)))
        with pytest.raises(LedgerError, match="damaged"):
            PrivacyLedger(path, "patients")

    def test_thirty_random_places(self, spent, path):
        check_damage(spent, path, count=30, seed=0)

    @pytest.mark.slow
    def test_two_thousand_random_places(self, spent, path):
        check_damage(spent, path, count=2000, seed=1)

    def test_read_only_file_is_read_but_not_spent_from(self, spent, path, monkeypatch):
        # As root, modes of files forbid nothing.
        monkeypatch.setattr(_sqlite, "_MODE", "ro")
        ledger = PrivacyLedger(path, "patients")
        assert len(ledger.history()) == 30
        with pytest.raises(LedgerError, match="readonly database. Nothing was recorded"):
            ledger.reserve(PURE, name="a fit")

    def test_file_that_may_grow_no_further(self, spent, path, tmp_path):
        """Theorem H3: the disk fails in the middle of a step."""
        log = tmp_path / "log"
        log.touch()
        check_load_until_full(spent, path, log, os.path.getsize(path) + 9_000)

    @pytest.mark.slow
    def test_files_that_may_grow_no_further(self, spent, path, tmp_path):
        """Theorem H3."""
        rng = random.Random(0)
        for number in range(20):
            log = tmp_path / f"log {number}"
            log.touch()
            size = os.path.getsize(path) + rng.randrange(4096, 30_000)
            check_load_until_full(spent, path, log, size)

    @pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
    @pytest.mark.parametrize("mode", [0o777, 0o555], ids=["file", "folder"])
    def test_file_that_may_not_be_written_is_not_spent_from(self, tmp_path, mode):
        with tempfile.TemporaryDirectory() as folder:
            place, log = os.path.join(folder, "budget.ledger"), tmp_path / "log"
            ledger = PrivacyLedger.create(place, "patients", epsilon=3.0, delta=1e-5)
            log.touch()
            os.chmod(place, 0o444)
            os.chmod(folder, mode)
            finish(started(spend_as_nobody, ledger, str(log)))
            os.chmod(folder, 0o700)
            os.chmod(place, 0o600)
            assert "must be" in log.read_text()
            assert PrivacyLedger(place, "patients").history() == []

    def test_full_disk_refuses_and_keeps_what_was_spent(self, spent, monkeypatch):
        before = spent.to_dict()
        connect = _sqlite._connected

        def full(path):
            connection = connect(path)
            connection.execute("PRAGMA max_page_count = 1")
            return connection

        monkeypatch.setattr(_sqlite, "_connected", full)
        with pytest.raises(LedgerError, match="full. Nothing was recorded. Make room"):
            for _ in range(50):
                spent.reserve(PURE, name="a fit", details={"words": "x" * 4000})
        monkeypatch.undo()
        after = spent.to_dict()
        assert after["records"][: len(before["records"])] == before["records"]
        PrivacyLedger(spent.path, "patients")

    def test_held_ledger_is_busy(self, on_disk, monkeypatch):
        monkeypatch.setattr(_sqlite, "_PATIENCE_S", 0.05)
        with on_disk._storage.transaction(write=True):
            assert on_disk.history() == []
            with pytest.raises(LedgerError, match="locked. Nothing was recorded. Another process"):
                on_disk.reserve(PURE, name="a fit")

    @pytest.mark.parametrize(
        ("words", "advice"),
        [
            ("disk I/O error", "may count or not: see history"),
            ("unable to open database file", "must be readable and writable"),
            ("locking protocol", "try again"),
            ("anything else", "is damaged: anything else. A damaged ledger is not an empty one"),
        ],
    )
    def test_errors_of_sqlite_say_what_to_do(self, on_disk, words, advice):
        with pytest.raises(LedgerError, match=advice):
            with on_disk._storage.transaction(write=True):
                raise sqlite3.OperationalError(words)


def check_load_until_full(ledger, path, log, size):
    before = len(ledger.history())
    finish(started(spend_with_files_up_to, size, ledger, str(log)))
    count, last = check_notes(PrivacyLedger(path, "patients"), log)
    assert count >= before and last in ("lost", "unknown")


def check_damage(ledger, path, count, seed):
    """Damage bytes of a file, and look whether all that is read is an error or as before."""

    def everything(ledger):
        return ledger.to_dict(), ledger.spent()

    before, rng, n_refused = everything(ledger), random.Random(seed), 0
    with open(path, "rb") as file:
        sound = file.read()
    for _ in range(count):
        size = rng.choice([1, 16, 512, 4096])
        place = rng.randrange(len(sound) - size)
        with open(path, "r+b") as file:
            file.seek(place)
            file.write(rng.choice([bytes(size), rng.randbytes(size)]))
        try:
            assert everything(PrivacyLedger(path, "patients")) == before
        except LedgerError:
            n_refused += 1
        with open(path, "wb") as file:
            file.write(sound)
    assert everything(PrivacyLedger(path, "patients")) == before
    print(f"{count} damaged places: {n_refused} refused, others read as before")


def test_file_with_a_write_ahead_log_is_refused_until_it_is_converted(path):
    """Theorem H3: each name of a file would have its own log."""
    ledger = PrivacyLedger.create(path, "patients", epsilon=3.0, delta=1e-5)
    for journal in ("WAL", "DELETE"):
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute(f"PRAGMA journal_mode = {journal}")
        if journal == "WAL":
            with pytest.raises(LedgerError, match="must have a rollback journal; got 'wal'"):
                ledger.reserve(PURE, name="a fit")
    with ledger.reserve(PURE, name="a fit"):
        pass
    assert len(PrivacyLedger(path, "patients").history()) == 1


@pytest.mark.skipif(os.name != "posix", reason="links of POSIX")
class TestNames:
    """Theorem H3: whatever a file is called, one budget is spent."""

    def test_file_of_two_names_is_refused(self, on_disk, path, tmp_path):
        twin = str(tmp_path / "twin")
        os.link(path, twin)
        for use in (
            lambda: PrivacyLedger(path, "patients"),
            lambda: PrivacyLedger(twin, "patients"),
            lambda: PrivacyLedger.create(twin, "others", epsilon=1.0, delta=0.0),
            lambda: on_disk.reserve(PURE, name="a fit"),
            on_disk.history,
        ):
            with pytest.raises(LedgerError, match="must have one name; got a file with 2 names"):
                use()
        os.unlink(path)
        assert PrivacyLedger(twin, "patients").history() == []

    def test_two_names_never_overspend(self, path, tmp_path):
        """A second wall, for a name that is linked once the first was looked at."""
        PrivacyLedger.create(path, "patients", epsilon=0.03, delta=0.0)
        twin = str(tmp_path / "twin")
        os.link(path, twin)
        done = spend_in_processes_by_name([path, twin], 20)
        os.unlink(twin)
        ledger = PrivacyLedger(path, "patients")
        assert sum(done) == len(ledger.history()) == 30

    def test_symbolic_links_lead_to_the_file(self, on_disk, path, tmp_path):
        (tmp_path / "folder").mkdir()
        link = tmp_path / "folder" / "link"
        link.symlink_to(path)
        through = PrivacyLedger(link, "patients")
        with through._storage.transaction(write=True) as transaction:
            transaction.save("another", Account("terms", "state", "digest"))
            # What undoes a broken step lies where every name finds it.
            assert os.path.exists(f"{path}-journal")
            assert list(link.parent.iterdir()) == [link]
        done = spend_in_processes_by_name([path, str(link)], 5)
        assert len(on_disk.history()) == len(through.history()) == sum(done) == 10

    def test_name_of_a_draft_that_is_left_is_no_second_name(self, path, tmp_path, monkeypatch):
        link, unlink = os.link, Path.unlink

        def killed(draft, place):
            link(draft, place)
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(os, "link", killed)
            patch.setattr(Path, "unlink", lambda *_, **__: None)
            with pytest.raises(KeyboardInterrupt):
                PrivacyLedger.create(path, "patients", epsilon=1.0, delta=0.0)
        assert os.stat(path).st_nlink == 2
        assert PrivacyLedger(path, "patients").history() == []
        assert [file.name for file in tmp_path.iterdir()] == [os.path.basename(path)]
        assert Path.unlink is unlink


def spend_in_processes_by_name(paths, count):
    """Return how often processes spend that race, each under another name of one file."""
    start, results = context().Barrier(len(paths)), context().SimpleQueue()
    finish(*[started(spend_at, path, count, start, results) for path in paths])
    return [results.get() for _ in paths]


class TestPlaces:
    """The message describes what cannot be a file."""

    def test_folder_and_file_in_the_way(self, tmp_path):
        with pytest.raises(LedgerError, match="must be the path of a file; got a folder"):
            PrivacyLedger.create(tmp_path, "patients", epsilon=1.0, delta=0.0)
        file = tmp_path / "file"
        file.touch()
        with pytest.raises(LedgerError, match="must be in a folder that exists"):
            PrivacyLedger.create(file / "ledger", "patients", epsilon=1.0, delta=0.0)
        with pytest.raises(LedgerError, match="there is none"):
            PrivacyLedger(file / "ledger", "patients")

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes of POSIX")
    def test_pipe_is_not_waited_for(self, tmp_path):
        os.mkfifo(tmp_path / "pipe")
        for place in (tmp_path / "pipe", "/dev/null"):
            with pytest.raises(LedgerError, match="got a device or pipe"):
                PrivacyLedger(place, "patients")

    @pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
    @pytest.mark.parametrize("mode", [0o555, 0o000])
    def test_folder_that_may_not_be_written(self, tmp_path, mode):
        with tempfile.TemporaryDirectory() as folder:
            log = tmp_path / "log"
            log.touch()
            os.chmod(folder, mode)
            finish(started(create_as_nobody, os.path.join(folder, "ledger"), str(log)))
            os.chmod(folder, 0o700)
            assert "can be created and linked" in log.read_text()
            assert os.listdir(folder) == []


class TestMemory:
    def test_threads_share_it(self, ledger):
        def spend():
            for _ in range(20):
                with ledger.reserve(PURE, name="a fit"):
                    pass

        in_threads(*[spend] * 4)
        assert len(ledger.history()) == 80

    def test_forked_process_has_none(self, ledger, monkeypatch):
        monkeypatch.setattr(os, "getpid", lambda: 0)
        with pytest.raises(LedgerError, match="this one was forked"):
            ledger.reserve(PURE, name="a fit")
