"""Ledgers in SQLite: a file that processes share, or the memory of one process."""

from __future__ import annotations

import os
import secrets
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from skdptune.ledger._sql import SqlTransaction, missing, newer
from skdptune.ledger._storage import MEMORY, LedgerError, Transaction, damaged

VERSION = 1
# "skdp": tells a ledger from any other data base, and from an empty file.
_APPLICATION = 0x736B6470
# How long a process waits for others that write.
_PATIENCE_S = 60.0
# How long it sleeps before it looks again whether the lock is free: at random, so that all who
# wait have the same chance.
_STEPS_S = (0.0005, 0.003)
# Not Python's own generator, whose numbers are its user's; and another one after a fork.
_RANDOM = secrets.SystemRandom()
# Read and write, but do not make a file that is missing.
_MODE = "rw"
# What was recorded lasts if the machine stops, and not only if the process does.
_SYNCHRONOUS = "FULL"
_SCHEMA = """
CREATE TABLE accounts (
    dataset TEXT PRIMARY KEY, terms TEXT NOT NULL, state TEXT NOT NULL, digest TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE events (
    dataset TEXT NOT NULL, sequence INTEGER NOT NULL, reservation TEXT NOT NULL,
    content TEXT NOT NULL, digest TEXT NOT NULL, PRIMARY KEY (dataset, sequence)
) WITHOUT ROWID;
CREATE INDEX events_of_reservation ON events (dataset, reservation, sequence);
CREATE TABLE profiles (key TEXT PRIMARY KEY, content TEXT NOT NULL) WITHOUT ROWID;
"""
# From a version to the next: statements that bring an older ledger up to date.
_MIGRATIONS: dict[int, str] = {}


class SqliteTransaction(SqlTransaction):
    """A transaction of one connection to SQLite."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__(connection.execute)

    def damage(self) -> str:
        """Return the first damage that SQLite finds in its pages, rows and indices, or nothing."""
        (found,) = self._execute("PRAGMA integrity_check(1)", {}).fetchone()
        return "" if found == "ok" else str(found)


class SqliteFile:
    """A file of SQLite in write-ahead mode, which its user alone may read.

    Each transaction has a connection of its own: nothing is shared between threads, and a process
    that is forked, pickled for, or killed leaves nothing half open.

    Parameters
    ----------
    path : str
        An existing ledger; `create_file` makes one.
    """

    def __init__(self, path: str) -> None:
        self._path = path

    @property
    def location(self) -> str:
        """Path of the file."""
        return self._path

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[SqliteTransaction]:
        """Return a transaction that ends with its context: kept, or undone on an exception."""
        if not Path(self._path).is_file():
            raise missing(self._path)
        with _Advice(self._path), closing(_connected(self._path)) as connection:
            _check_version(connection, self._path)
            with _began(connection, write):
                yield SqliteTransaction(connection)

    def create(self, first: Callable[[Transaction], None]) -> None:
        """Run `first` in a transaction, of a new file if there is none."""
        if not os.path.lexists(self._path):
            create_file(self._path, first)
            return
        self.verify()
        with self.transaction(write=True) as transaction:
            first(transaction)

    def verify(self) -> None:
        """Raise if SQLite finds a damaged page, row or index."""
        with self.transaction(write=False) as transaction:
            found = transaction.damage()
        if found:
            raise damaged(self._path, found)


class SqliteMemory:
    """A data base in the memory of this process, for notebooks: it is gone when they are."""

    def __init__(self) -> None:
        self._connection = sqlite3.connect(MEMORY, isolation_level=None, check_same_thread=False)
        weakref.finalize(self, self._connection.close)
        self._process = os.getpid()
        self._lock = threading.RLock()
        _set_up(self._connection)

    @property
    def location(self) -> str:
        """What stands for a path."""
        return MEMORY

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[SqliteTransaction]:
        """Return a transaction that ends with its context: kept, or undone on an exception."""
        if os.getpid() != self._process:
            # A forked process has a copy, whose spends nobody else would see.
            raise LedgerError(
                "a ledger in memory must be used in the process that made it; got it in one that "
                "was forked. Keep it in a file for workers: PrivacyLedger.create(path, ...)."
            )
        with self._lock, _Advice(MEMORY), _began(self._connection, write):
            yield SqliteTransaction(self._connection)

    def create(self, first: Callable[[Transaction], None]) -> None:
        """Run `first` in a transaction: what is in memory was made with the object."""
        with self.transaction(write=True) as transaction:
            first(transaction)

    def verify(self) -> None:
        """Do nothing: what is in memory has no file to be damaged."""


def create_file(path: str, first: Callable[[Transaction], None]) -> None:
    """Make a ledger with what `first` writes, at once and whole, or raise if there is a file.

    It is written beside its place and linked there when it is complete, so that no process ever
    sees an unfinished one and a truncated ledger is never taken for a new one.
    """
    place = Path(path)
    if not place.parent.is_dir():
        raise LedgerError(f"path_or_url must be in a folder that exists; got {path!r}.")
    draft = place.with_name(f".{place.name}.{secrets.token_hex(8)}.new")
    try:
        # Before SQLite opens it, and whatever the umask: nobody else may ever read it.
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with _Advice(path), closing(_connected(str(draft))) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            _set_up(connection)
            with _began(connection, write=True):
                first(SqliteTransaction(connection))
        os.link(draft, place)
        _last(place.parent)
    except FileExistsError:
        raise LedgerError(
            f"path_or_url must be that of no file yet; there is one at {path!r}. "
            "Open it with PrivacyLedger(path, dataset)."
        ) from None
    except OSError as error:
        raise LedgerError(
            f"path_or_url must be one where a file can be made and linked; got {path!r} ({error})."
        ) from error
    finally:
        for left in (draft, *(Path(f"{draft}{end}") for end in ("-wal", "-shm", "-journal"))):
            left.unlink(missing_ok=True)


def _last(folder: Path) -> None:
    """Make the name of a new file last if the machine stops, where folders can be opened."""
    if os.name == "posix":
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def _connected(path: str) -> sqlite3.Connection:
    """Return a connection to an existing file; a missing one is not made."""
    uri = Path(path).absolute().as_uri()
    connection = sqlite3.connect(
        f"{uri}?mode={_MODE}", uri=True, timeout=_PATIENCE_S, isolation_level=None
    )
    connection.execute(f"PRAGMA synchronous = {_SYNCHRONOUS}")
    connection.execute("PRAGMA fullfsync = ON")
    return connection


def _set_up(connection: sqlite3.Connection) -> None:
    connection.executescript(_SCHEMA)
    connection.execute(f"PRAGMA application_id = {_APPLICATION}")
    connection.execute(f"PRAGMA user_version = {VERSION}")


def _check_version(connection: sqlite3.Connection, path: str) -> None:
    """Raise unless a file is a ledger of this version, or of one that can be brought up to it."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if application != _APPLICATION:
        raise damaged(path, "it is not a ledger, or its first page is lost")
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > VERSION:
        raise newer(path, version, VERSION)
    while version < VERSION:
        version = _migrated(connection, version, path)


def _migrated(connection: sqlite3.Connection, version: int, path: str) -> int:
    """Bring a ledger to the next version, unless another process just did; return its version."""
    with _began(connection, write=True):
        (found,) = connection.execute("PRAGMA user_version").fetchone()
        if found == version:
            if version not in _MIGRATIONS:
                raise damaged(path, f"there is no version {version}")
            for statement in filter(str.strip, _MIGRATIONS[version].split(";")):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {version + 1}")
            found = version + 1
    return int(found)


def _take_lock(connection: sqlite3.Connection) -> None:
    """Begin a transaction that holds the lock for writing, or raise if others keep it for long.

    SQLite itself would wait in steps of up to 100 ms, at most of which the lock is free.
    """
    limit = time.monotonic() + _PATIENCE_S
    connection.execute("PRAGMA busy_timeout = 0")
    while True:
        try:
            connection.execute("BEGIN IMMEDIATE")
            break
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > limit:
                raise
            time.sleep(_RANDOM.uniform(*_STEPS_S))
    connection.execute(f"PRAGMA busy_timeout = {int(1000 * _PATIENCE_S)}")


@contextmanager
def _began(connection: sqlite3.Connection, write: bool) -> Iterator[None]:
    """Run a transaction, which holds the only lock for writing from its start."""
    if write:
        _take_lock(connection)
    else:
        connection.execute("BEGIN")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # SQLite may have undone it already, as when the disk is full.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


class _Advice:
    """Turns SQLite's errors into errors that say what to do."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if isinstance(error, sqlite3.Error):
            raise _explained(self._path, error) from error
        if isinstance(error, UnicodeDecodeError):
            # As where SQLite names a table whose name is damaged.
            raise damaged(self._path, "a text cannot be read") from error


def _explained(path: str, error: sqlite3.Error) -> LedgerError:
    """Return the error of a ledger for one of SQLite's."""
    words = str(error)
    for part, advice in (
        ("lock", "Nothing was recorded. Another process holds the ledger; try again."),
        ("full", "Nothing was recorded. Make room on the disk and try again."),
        ("readonly", "Nothing was recorded. The file must be writable to be spent from."),
        ("unable to open", "The file and its folder must be readable and writable."),
        ("disk I/O", "What was being recorded may count or not: see history() before you go on."),
    ):
        if part in words:
            return LedgerError(f"ledger {path!r}: {words}. {advice}")
    return damaged(path, words)
