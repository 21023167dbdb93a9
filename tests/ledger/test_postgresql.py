"""A ledger on a server: its lock, what lasts, secrets, forks, and what is said of each fault."""

from __future__ import annotations

import functools
import gc
import json
import os
import pickle
import random
import shutil
import signal
import sys
import threading
import time
import traceback

import pytest

pytest.importorskip("sqlalchemy")
pytest.importorskip("psycopg")

from skdptune.accounting import BudgetExceededError, PrivacyProfile
from skdptune.ledger import LedgerError, PrivacyLedger, _postgresql
from skdptune.ledger._books import Ways
from skdptune.ledger._reference import storage_at
from skdptune.ledger._storage import Account, StoredEvent
from tests.ledger.children import (
    PATIENCE_S,
    check_notes,
    finish,
    in_threads,
    spend_until_lost,
    started,
)
from tests.ledger.server import USER

PURE = PrivacyProfile.pure(0.001)
OTHERS = "FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"


@pytest.fixture
def spent(server):
    ledger = PrivacyLedger.create(server.url(), "patients", epsilon=3.0, delta=1e-5)
    with ledger.reserve(PURE, name="a fit"):
        pass
    return ledger


@pytest.fixture
def stopping(server):
    """Return a server that may be stopped and set otherwise: it is put right afterwards."""
    yield server
    server.stop()
    server.settings["fsync"] = "on"
    (server.data / "standby.signal").unlink(missing_ok=True)
    server.run("pg_checksums", "--enable", "-D", str(server.data), is_checked=False)
    server.start()


class TestUrls:
    @pytest.mark.parametrize(
        ("url", "message"),
        [
            ("mysql://user:SECRET@host/db", "URL that begins as postgresql://user@host; got anot"),
            ("postgresql+psycopg2://user:SECRET@host/db", "got another"),
            ("postgresql://user:SECRET@host", "must name a database .* got no database"),
            ("postgresql://host/db?password=SECRET", "no secret .* got the option 'password'"),
            ("postgresql://user:SECRET@host:port/db", "got a URL that cannot be read"),
        ],
    )
    def test_others_are_refused_without_being_shown(self, url, message):
        with pytest.raises(ValueError, match=message) as error:
            PrivacyLedger(url, "patients")
        assert "SECRET" not in "".join(traceback.format_exception(error.value))

    def test_extra_is_named_where_it_is_missing(self, monkeypatch):
        for package in ("psycopg", "sqlalchemy"):
            with monkeypatch.context() as patch:
                patch.setitem(sys.modules, package, None)
                with pytest.raises(ModuleNotFoundError, match=r"skdptune\[postgresql\]") as error:
                    PrivacyLedger("postgresql://host/db", "patients")
            assert error.value.name == package


class TestSecrets:
    """A password in a URL stays in its process."""

    @pytest.fixture
    def url(self, server):
        return server.url(options="").replace(f"{USER}@", f"{USER}:{server.password}@")

    def test_password_is_in_nothing_that_leaves_the_process(self, server, url):
        ledger = PrivacyLedger.create(url, "patients", epsilon=3.0, delta=1e-5)
        reservation = ledger.reserve(PURE, name="a fit")
        kept = server.execute("SELECT terms, state FROM skdptune.accounts")
        kept += server.execute("SELECT content FROM skdptune.events")
        shown = [
            *(
                repr(ledger),
                ledger.path,
                repr(reservation),
                ledger.to_json(),
                str(ledger.report()),
            ),
            *(ledger._repr_html_(), repr(ledger._storage), json.dumps(kept)),
            *(pickle.dumps(each).decode("latin1") for each in (ledger, ledger._storage)),
        ]
        assert [each for each in shown if server.password in each] == []

    def test_password_is_in_no_message(self, server, url):
        wrong = url.replace(server.password, "WRONG" + server.password)
        for place in (wrong, url.replace("/postgres", "/nothing")):
            with pytest.raises(LedgerError) as error:
                PrivacyLedger(place, "patients")
            assert server.password not in "".join(traceback.format_exception(error.value))

    def test_wrong_password_does_not_replace_the_right_one(self, server, url):
        ledger = PrivacyLedger.create(url, "patients", epsilon=3.0, delta=1e-5)
        with pytest.raises(LedgerError, match="password authentication failed"):
            PrivacyLedger(url.replace(server.password, "x"), "patients")
        again = pickle.loads(pickle.dumps(ledger))
        assert again.history() == ledger.history() == []

    def test_other_process_needs_a_password_of_its_own(self, server, url, monkeypatch):
        ledger = PrivacyLedger.create(url, "patients", epsilon=3.0, delta=1e-5)
        # As it is in another process.
        monkeypatch.setattr(_postgresql, "_PASSWORDS", {})
        there = pickle.loads(pickle.dumps(ledger))
        with pytest.raises(LedgerError, match="no password supplied.* from PGPASSFILE"):
            there.reserve(PURE, name="a fit")
        monkeypatch.setenv("PGPASSFILE", str(server.passfile))
        there.reserve(PURE, name="a fit")
        assert len(ledger.history()) == 1


class TestLock:
    """Theorem H3: one writes at a time, and whoever waited sees what was written meanwhile."""

    def test_held_ledger_is_busy_for_writers_alone(self, spent, monkeypatch):
        monkeypatch.setattr(_postgresql, "_PATIENCE_S", 0.05)
        with spent._storage.transaction(write=True):
            assert len(spent.history()) == 1
            with pytest.raises(LedgerError, match="Nothing was recorded. Another process holds"):
                spent.reserve(PURE, name="a fit")
        spent.reserve(PURE, name="a fit")

    def test_who_waited_sees_what_was_written(self, spent):
        names, is_waiting = [], threading.Event()

        def wait():
            is_waiting.set()
            with spent._storage.transaction(write=True) as transaction:
                names.extend(transaction.data_sets())

        with spent._storage.transaction(write=True) as transaction:
            waiting = threading.Thread(target=wait)
            waiting.start()
            is_waiting.wait(PATIENCE_S)
            while not spent_waits(transaction):
                time.sleep(0.01)
            transaction.save("new", Account("terms", "state", "digest"))
        waiting.join(PATIENCE_S)
        assert names == ["new", "patients"]

    def test_reader_sees_one_instant(self, spent):
        with spent._storage.transaction(write=False) as transaction:
            before = transaction.account("patients")
            with spent.reserve(PURE, name="a fit"):
                pass
            assert transaction.account("patients") == before
            assert transaction.last_event("patients").sequence == 3
        assert len(spent.history()) == 2

    def test_nobody_overspends_without_the_lock(self, server, monkeypatch):
        """The key of the events forbids two that saw the same ones."""
        ledger = PrivacyLedger.create(server.url(), "patients", epsilon=1.0, delta=0.0)
        monkeypatch.setattr(_postgresql, "_LOCK", _postgresql._LOCK.replace("FOR UPDATE", ""))
        both = threading.Barrier(2, timeout=PATIENCE_S)
        admit, outcomes = Ways.admits, []

        def meet(ways, totals):
            both.wait()
            return admit(ways, totals)

        def spend():
            try:
                ledger.reserve(PrivacyProfile.pure(0.9), name="a fit")
                outcomes.append("spent")
            except (LedgerError, BudgetExceededError) as error:
                outcomes.append(str(error))

        monkeypatch.setattr(Ways, "admits", meet)
        in_threads(spend, spend)
        monkeypatch.undo()
        refused, spent = sorted(outcomes)
        assert spent == "spent"
        assert "Nothing was recorded. Another process recorded an entry out of turn" in refused
        assert len(ledger.history()) == 1

    def test_lock_of_a_process_that_stopped_is_taken_back(self, spent, monkeypatch):
        monkeypatch.setattr(_postgresql, "_IDLE_S", 0.05)
        with pytest.raises(LedgerError, match="Nothing was recorded"):
            with spent._storage.transaction(write=True) as transaction:
                transaction.save("new", Account("terms", "state", "digest"))
                time.sleep(0.3)
                transaction.data_sets()
        with spent._storage.transaction(write=True) as transaction:
            assert transaction.data_sets() == ["patients"]

    def test_makers_take_turns(self, server):
        errors, names = [], [f"data set {i}" for i in range(4)]

        def make(name):
            try:
                PrivacyLedger.create(server.url(), name, epsilon=1.0, delta=0.0)
            except LedgerError as error:
                errors.append(error)

        in_threads(*[functools.partial(make, name) for name in names])
        assert errors == []
        with storage_at(server.url()).transaction(write=False) as transaction:
            assert transaction.data_sets() == names


def spent_waits(transaction):
    """Return whether another transaction waits for the lock."""
    query = "SELECT count(*) FROM pg_locks WHERE NOT granted"
    return transaction._execute(query, {}).scalar() > 0


class TestLasting:
    """Theorem H3: what was committed lasts."""

    @pytest.mark.parametrize("default", ["off", "remote_apply"])
    def test_commits_wait_for_the_disk_whatever_the_default(self, server, default):
        server.execute(f"ALTER ROLE {USER} SET synchronous_commit = '{default}'")
        try:
            disconnect(server)
            storage = storage_at(server.url())
            storage.create(lambda transaction: None)
            with storage.transaction(write=True) as transaction:
                found = transaction._execute("SHOW synchronous_commit", {}).scalar()
        finally:
            server.execute(f"ALTER ROLE {USER} RESET synchronous_commit")
            disconnect(server)
        assert found == (default if default == "remote_apply" else "on")

    def test_server_that_does_not_wait_for_the_disk_is_refused(self, stopping):
        ledger = PrivacyLedger.create(stopping.url(), "patients", epsilon=3.0, delta=1e-5)
        stopping.stop()
        stopping.settings["fsync"] = "off"
        stopping.start()
        assert ledger.history() == []
        with pytest.raises(LedgerError, match="fsync of the server must be on; got off"):
            ledger.reserve(PURE, name="a fit")

    @pytest.mark.parametrize(
        "statement",
        [
            "ALTER TABLE skdptune.events SET UNLOGGED",
            "ALTER TABLE skdptune.events DROP CONSTRAINT events_pkey",
            "DROP TABLE skdptune.profiles",
        ],
    )
    def test_table_that_does_not_last_or_lost_its_key_is_damage(self, server, spent, statement):
        server.execute(statement)
        for use in (PrivacyLedger, PrivacyLedger.create):
            with pytest.raises(LedgerError, match="damaged: a table or its key is missing"):
                use(server.url(), "patients", epsilon=3.0, delta=1e-5)

    def test_server_killed_while_processes_spend(self, stopping, tmp_path):
        check_crashes(stopping, tmp_path, n_crashes=2, n_processes=2, seed=0)

    @pytest.mark.slow
    def test_server_killed_thirty_times_while_processes_spend(self, stopping, tmp_path):
        check_crashes(stopping, tmp_path, n_crashes=30, n_processes=4, seed=1)


def check_crashes(server, folder, n_crashes, n_processes, seed):
    """Stop a server at once while processes spend, and look whether what began is there."""
    rng = random.Random(seed)
    ledger = PrivacyLedger.create(server.url(), "patients", epsilon=600.0, delta=0.0)
    n_unknown = before = 0
    for crash in range(n_crashes):
        logs = [folder / f"{crash} {process}" for process in range(n_processes)]
        for log in logs:
            log.touch()
        children = [started(spend_until_lost, ledger, str(log)) for log in logs]
        while not all(log.stat().st_size for log in logs):
            time.sleep(0.01)
        time.sleep(0.2 * rng.random())
        server.stop(signal.SIGQUIT)
        finish(*children)
        server.start()
        again = PrivacyLedger(server.url(), "patients")
        found, last = zip(*(check_notes(again, log) for log in logs), strict=True)
        n_unknown += last.count("unknown")
        assert found[0] >= before + len(logs), "what was spent before is gone"
        before = found[0]
    total = ledger.to_dict()["totals"]["share"]
    assert total == pytest.approx(before * 0.001 / 600.0, rel=1e-9)
    print(f"{n_crashes} crashes: {before} spent, {n_unknown} commits of unknown outcome")


class TestFaults:
    """Theorem H3: whatever fails, nothing that was spent is forgotten."""

    def test_connection_that_was_lost_between_spends_is_made_again(self, server, spent):
        disconnect(server)
        spent.reserve(PURE, name="a fit")
        disconnect(server)
        assert len(spent.history()) == 2

    def test_connection_lost_before_the_commit_records_nothing(self, server, spent):
        before = spent.to_dict()
        with pytest.raises(LedgerError, match="Nothing was recorded"):
            with spent._storage.transaction(write=True) as transaction:
                transaction.save("new", Account("terms", "state", "digest"))
                disconnect(server)
                transaction.append("new", StoredEvent(1, "r", "{}", "d"))
        assert spent.to_dict() == before

    def test_connection_lost_at_the_commit_leaves_it_open(self, server, spent):
        with pytest.raises(LedgerError, match="may count or not: see history"):
            with spent._storage.transaction(write=True) as transaction:
                transaction.save("new", Account("terms", "state", "digest"))
                disconnect(server)
        # Of a reader nothing can have been recorded.
        with pytest.raises(LedgerError, match="Nothing was recorded"):
            with spent._storage.transaction(write=False):
                disconnect(server)

    @pytest.mark.parametrize(
        ("database", "message"),
        [("nothing", 'database "nothing" does not exist'), ("template1", "there is none at")],
    )
    def test_missing_data_base_is_no_empty_one(self, server, database, message):
        for _ in range(2):
            with pytest.raises(LedgerError, match=message):
                PrivacyLedger(server.url(database), "patients", epsilon=3.0, delta=1e-5)
        assert server.execute("SELECT to_regnamespace('skdptune')", database="template1") == [
            (None,)
        ]

    def test_server_that_is_not_there_is_named(self):
        with pytest.raises(LedgerError, match="port 1 failed.* The server must be reachable"):
            PrivacyLedger("postgresql://user@127.0.0.1:1/db", "patients")

    def test_full_disk_refuses_and_keeps_what_was_spent(self, server, spent, small_disk):
        shutil.chown(small_disk, server.user)
        try:
            server.execute(
                f"CREATE TABLESPACE small LOCATION '{small_disk}'",
                "ALTER TABLE skdptune.events SET TABLESPACE small",
            )
            before = spent.to_dict()["records"]
            with pytest.raises(LedgerError, match="No space left.* Nothing was recorded. Make r"):
                while True:
                    before = spent.to_dict()["records"]
                    spent.reserve(PURE, name="a fit", details={"words": os.urandom(9999).hex()})
            assert spent.to_dict()["records"] == before
        finally:
            server.execute("DROP SCHEMA skdptune CASCADE", "DROP TABLESPACE IF EXISTS small")

    @pytest.mark.parametrize("table", ["accounts", "events", "ledger"])
    def test_lost_table_is_an_error(self, server, spent, table):
        server.execute(f"DROP TABLE skdptune.{table}")
        with pytest.raises(LedgerError, match="is damaged|there is none at"):
            spent.reserve(PURE, name="a fit")
        with pytest.raises(LedgerError):
            PrivacyLedger.create(server.url(), "another", epsilon=3.0, delta=1e-5)

    def test_lost_version_is_damage(self, server, spent):
        server.execute("DELETE FROM skdptune.ledger")
        with pytest.raises(LedgerError, match="damaged: its version is missing"):
            spent.reserve(PURE, name="a fit")

    def test_what_a_user_must_be_allowed(self, server, spent):
        """Reading and adding are enough: no event is ever changed."""
        server.execute(
            "DROP ROLE IF EXISTS member",
            f"CREATE ROLE member LOGIN PASSWORD '{server.password}'",
        )
        url = server.url(options="").replace(f"{USER}@", f"member:{server.password}@")
        try:
            with pytest.raises(LedgerError, match="permission denied.* must be allowed"):
                PrivacyLedger(url, "patients")
            server.execute(
                "GRANT USAGE ON SCHEMA skdptune TO member",
                "GRANT SELECT, UPDATE ON skdptune.ledger TO member",
                "GRANT SELECT, INSERT, UPDATE ON skdptune.accounts TO member",
                "GRANT SELECT, INSERT ON skdptune.events, skdptune.profiles TO member",
            )
            with PrivacyLedger(url, "patients").reserve(PURE, name="a fit"):
                pass
        finally:
            server.execute("DROP OWNED BY member", "DROP ROLE member")
        assert len(spent.history()) == 2

    def test_standby_is_read_but_not_spent_from(self, stopping):
        ledger = PrivacyLedger.create(stopping.url(), "patients", epsilon=3.0, delta=1e-5)
        with ledger.reserve(PURE, name="a fit"):
            pass
        stopping.stop()
        (stopping.data / "standby.signal").touch()
        stopping.start()
        assert len(PrivacyLedger(stopping.url(), "patients").history()) == 1
        with pytest.raises(LedgerError, match="Nothing was recorded. .* must be writable"):
            ledger.reserve(PURE, name="a fit")

    @pytest.mark.parametrize(
        ("state", "is_committing", "message"),
        [
            ("53100", False, "Nothing was recorded. Make room on the server"),
            ("57014", False, "Nothing was recorded. Another process holds the ledger"),
            ("25006", False, "Nothing was recorded. The database must be writable"),
            ("XX001", False, "damaged: it failed"),
            ("22003", False, "Nothing was recorded.$"),
            (None, False, "Nothing was recorded. The server must be reachable"),
            ("53100", True, "may count or not"),
            (None, True, "may count or not"),
        ],
    )
    def test_errors_of_the_server_say_what_to_do(self, state, is_committing, message):
        cause = Exception("it failed.\nLINE 1: SELECT")
        cause.sqlstate = state
        error = Exception("words of SQLAlchemy")
        error.orig = cause
        found = str(_postgresql._explained("place", error, is_committing))
        assert "LINE" not in found
        with pytest.raises(LedgerError, match=message):
            raise LedgerError(found)


class TestDamage:
    """Theorem H3: what a disk damages is refused, and never read as less."""

    def test_two_random_places(self, stopping, spent):
        check_damage(stopping, spent, count=2, seed=0)

    @pytest.mark.slow
    @pytest.mark.parametrize("checksums", ["enable", "disable"])
    def test_forty_random_places(self, stopping, spent, checksums):
        stopping.stop()
        stopping.run("pg_checksums", f"--{checksums}", "-D", str(stopping.data), is_checked=False)
        stopping.start()
        check_damage(stopping, spent, count=40, seed=1)


def check_damage(server, ledger, count, seed):
    """Damage bytes of tables, and look whether all that is read is an error or as before."""
    for number in range(20):
        ledger.reserve(PURE, name="a fit", details={"words": f"{number}" * 300})
    before, rng, n_refused = everything(ledger), random.Random(seed), 0
    tables = [f"pg_relation_filepath('skdptune.{each}')" for each in ("accounts", "events")]
    (names,) = server.execute("CHECKPOINT", f"SELECT {', '.join(tables)}")
    for _ in range(count):
        file = server.data / rng.choice(names)
        server.stop()
        sound = file.read_bytes()
        place = rng.randrange(len(sound) - 16)
        with open(file, "r+b") as opened:
            opened.seek(place)
            opened.write(rng.randbytes(rng.choice([1, 16])))
        server.start()
        try:
            assert everything(PrivacyLedger(server.url(), "patients")) == before
        except LedgerError as error:
            n_refused += 1
            assert "Nothing was recorded. Another" not in str(error)
        server.stop()
        file.write_bytes(sound)
        server.start()
    assert everything(ledger) == before
    print(f"{count} damaged places: {n_refused} refused, others read as before")


def everything(ledger):
    return ledger.to_dict(), ledger.spent()


def disconnect(server):
    """End all other connections, as a network that fails does."""
    server.execute(f"SELECT pg_terminate_backend(pid, 5000) {OTHERS}")


class TestProcesses:
    """Theorem H3."""

    def test_forked_process_makes_its_own_connection(self, spent):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                for _ in range(3):
                    spent.reserve(PURE, name="in the child")
                gc.collect()
                status = 0
            finally:
                os._exit(status)
        for _ in range(3):
            spent.reserve(PURE, name="in the parent")
        assert os.waitpid(child, 0)[1] == 0
        names = [record.name for record in spent.history()]
        assert sorted(names[1:]) == ["in the child"] * 3 + ["in the parent"] * 3

    def test_threads_spend_side_by_side(self, spent):
        def spend():
            for _ in range(5):
                with spent.reserve(PURE, name="a fit"):
                    pass

        in_threads(*[spend] * 4)
        assert len(spent.history()) == 21
