"""Ledgers in SQLite: a file that processes share, or the memory of one process."""

from __future__ import annotations

import os
import secrets
import sqlite3
import stat
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from skdptune._formatting import shown_path
from skdptune.ledger._storage import MEMORY, LedgerError, Transaction, damaged, missing, newer

# Since version 2 entries say who recorded them, and files have no write-ahead log.
VERSION = 2
# "skdp": tells a ledger from any other data base, and from an empty file.
_APPLICATION = 0x736B6470
# How long a process waits for others that write.
_PATIENCE_S = 60.0
# How long it sleeps before it looks again whether the lock is free: at random, so that all who
# wait have the same chance.
_STEPS_S = (0.0005, 0.003)
# The same for a file that is to be converted, which nobody else may have open.
_LONG_STEPS_S = (0.0, 0.1)
# Not Python's own generator, whose numbers are its user's; and another one after a fork.
_RANDOM = secrets.SystemRandom()
# Read and write, but do not make a file that is missing.
_MODE = "rw"
# What was recorded lasts if the machine stops, and not only if the process does: after a commit
# the folder is synchronised, too, lest the journal come back and undo it.
_SYNCHRONOUS = "EXTRA"
# Not a write-ahead log: names of one file would each have a log of their own, and processes that
# use different names would spend the same budget. Locks of a journal are those of the file.
_JOURNAL = "delete"
# What a new file is called until it is complete.
_DRAFT, _DRAFT_END = ".skdptune-", ".new"
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
_MIGRATIONS: dict[int, str] = {1: ""}


class SqliteTransaction(Transaction):
    """A transaction of one connection to SQLite."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__(connection.execute)

    def damage(self) -> str:
        """Return the first damage that SQLite finds in its pages, rows and indices, or nothing."""
        (found,) = self._execute("PRAGMA integrity_check(1)", {}).fetchone()
        return "" if found == "ok" else str(found)


class SqliteFile:
    """A file of SQLite with a rollback journal, which its user alone may read.

    A file of an older version, with a write-ahead log, is converted by its first transaction. One
    that has several names (hard links) is refused: a transaction that was broken off under one
    name could not be undone under another. Symbolic links are followed.

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
        file = _only_name(self._path)
        limit = time.monotonic() + _PATIENCE_S
        with _Advice(self._path):
            while True:
                # Another one each time: one that is open keeps others from converting a file.
                with closing(_connected(file)) as connection:
                    with _began(connection, write):
                        if _is_current(connection, self._path):
                            yield SqliteTransaction(connection)
                            return
                    _bring_up_to_date(connection, self._path, limit)
                time.sleep(_RANDOM.uniform(*_LONG_STEPS_S))

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
    if not os.path.isdir(place.parent):
        raise LedgerError(f"path_or_url must be in a folder that exists; got {shown_path(path)}.")
    draft = place.with_name(f"{_DRAFT}{secrets.token_hex(8)}{_DRAFT_END}")
    try:
        # The longest name that is needed; where it is too long, that is found here.
        with suppress(FileNotFoundError):
            os.lstat(f"{path}-journal")
        # Before SQLite opens it, and whatever the umask: nobody else may ever read it.
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with _Advice(path), closing(_connected(str(draft))) as connection:
            _set_up(connection)
            with _began(connection, write=True):
                first(SqliteTransaction(connection))
        os.link(draft, place)
        _last(place.parent)
    except FileExistsError:
        raise LedgerError(
            f"path_or_url must be that of no file yet; there is one at {shown_path(path)}. "
            "Open it with PrivacyLedger(path, dataset)."
        ) from None
    except (OSError, UnicodeEncodeError) as error:
        raise LedgerError(
            "path_or_url must be one where a file can be made and linked; got "
            f"{shown_path(path)} ({_reason(error)})."
        ) from error
    finally:
        for left in (draft, Path(f"{draft}-journal")):
            # Where the folder may not be written there is nothing to remove.
            with suppress(OSError):
                left.unlink(missing_ok=True)


def _only_name(path: str) -> str:
    """Return the real path of a ledger's file, or raise unless it is a file of that one name."""
    try:
        real = os.path.realpath(path)
        state = os.stat(real)
    except (FileNotFoundError, NotADirectoryError):
        raise missing(path) from None
    except (OSError, ValueError) as error:
        raise LedgerError(
            "path_or_url must be that of a file that can be reached; got "
            f"{shown_path(path)} ({_reason(error)})."
        ) from None
    if not stat.S_ISREG(state.st_mode):
        kind = "folder" if stat.S_ISDIR(state.st_mode) else "device or pipe"
        raise LedgerError(f"path_or_url must be that of a file; got a {kind}, {shown_path(path)}.")
    if state.st_nlink > 1:
        _remove_drafts(Path(real), state)
        if os.stat(real).st_nlink > 1:
            raise LedgerError(
                f"ledger {path!r} must have one name; got a file of {state.st_nlink} names (hard "
                "links). A step that is broken off under one name cannot be undone under another. "
                f"Nothing was recorded. `find / -xdev -samefile {real}` lists them: remove all "
                "but one."
            )
    return real


def _remove_drafts(file: Path, state: os.stat_result) -> None:
    """Remove the name under which a file was written, where its maker has not yet, or never can.

    A maker links the complete file to its place before it removes this name.
    """
    for other in file.parent.iterdir():
        if other.name.startswith(_DRAFT) and other.name.endswith(_DRAFT_END):
            with suppress(FileNotFoundError):
                if os.path.samestat(other.lstat(), state):
                    other.unlink()


def _reason(error: Exception) -> str:
    """Return why a path cannot be used, without the path."""
    return (error.strerror if isinstance(error, OSError) else None) or "it is no path here"


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
        f"{uri}?mode={_MODE}", uri=True, timeout=0.0, isolation_level=None
    )
    _run(connection, f"PRAGMA synchronous = {_SYNCHRONOUS}")
    _run(connection, "PRAGMA fullfsync = ON")
    return connection


def _set_up(connection: sqlite3.Connection) -> None:
    connection.executescript(_SCHEMA)
    connection.execute(f"PRAGMA application_id = {_APPLICATION}")
    connection.execute(f"PRAGMA user_version = {VERSION}")


def _is_current(connection: sqlite3.Connection, path: str) -> bool:
    """Return whether a file is a ledger as this version makes it; raise if it can never be."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if application != _APPLICATION:
        raise damaged(path, "it is not a ledger, or its first page is lost")
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > VERSION:
        raise newer(path, version, VERSION)
    return bool(version == VERSION and _journal_of(connection) == _JOURNAL)


def _journal_of(connection: sqlite3.Connection) -> str:
    (found,) = connection.execute("PRAGMA journal_mode").fetchone()
    return str(found)


def _bring_up_to_date(connection: sqlite3.Connection, path: str, limit: float) -> None:
    """Give a ledger of an older version the journal of this one, and take it one version up.

    Nothing is done where others use it, unless that has taken until the limit, which raises.
    """
    if _journal_of(connection) != _JOURNAL:
        try:
            connection.execute(f"PRAGMA journal_mode = {_JOURNAL}").fetchall()
        except sqlite3.OperationalError as error:
            if not _is_busy(error) or time.monotonic() > limit:
                raise
        return
    with _began(connection, write=True):
        # Another process may just have done it.
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version < VERSION:
            if version not in _MIGRATIONS:
                raise damaged(path, f"there is no version {version}")
            for statement in filter(str.strip, _MIGRATIONS[version].split(";")):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {version + 1}")


def _run(connection: sqlite3.Connection, statement: str) -> None:
    """Run a statement, once others have freed the lock that it needs; raise if they keep it long.

    SQLite itself would wait in steps of up to 100 ms, at most of which the lock is free.
    """
    limit = time.monotonic() + _PATIENCE_S
    while True:
        try:
            connection.execute(statement).fetchall()
            return
        except sqlite3.OperationalError as error:
            if not _is_busy(error) or time.monotonic() > limit:
                raise
            time.sleep(_RANDOM.uniform(*_STEPS_S))


def _is_busy(error: sqlite3.OperationalError) -> bool:
    return error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY


@contextmanager
def _began(connection: sqlite3.Connection, write: bool) -> Iterator[None]:
    """Run a transaction, which holds its lock from its start: to write, the only one."""
    try:
        _run(connection, "BEGIN IMMEDIATE" if write else "BEGIN")
        # A reader has its lock from its first look on.
        _run(connection, "PRAGMA schema_version")
        yield
        # Where others still read, once they have ended.
        _run(connection, "COMMIT")
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
