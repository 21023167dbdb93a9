"""Ledgers in SQLite: in a file shared by processes, or in the memory of one process."""

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

from skdptune._formatting import shown, shown_path
from skdptune.ledger._storage import (
    MEMORY,
    VERSION,
    LedgerError,
    Storage,
    Transaction,
    check_version,
    damaged,
    missing,
)

# "skdp": distinguishes a ledger from other databases, and from an empty file.
_APPLICATION = 0x736B6470
# How long a process waits for other writers.
_PATIENCE_S = 60.0
# How long it sleeps before it tries to get the lock again. The time is random, so that all waiting
# processes have the same chance.
_STEPS_S = (0.0005, 0.003)
# Not Python's global generator, which belongs to the user. It is different after a fork.
_RANDOM = secrets.SystemRandom()
# Open for reading and writing, but do not create a missing file.
_MODE = "rw"
# Commits survive a stop of the machine, not only of the process. After a commit, the folder is
# synchronised as well, so that the journal cannot reappear and undo it.
_SYNCHRONOUS = "EXTRA"
# Not a write-ahead log: each name of one file would have its own log, and processes that use
# different names would spend the same budget. A rollback journal uses the locks of the file.
_JOURNAL = "delete"
# The name of a new file until it is complete.
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


class SqliteFile(Storage):
    """An SQLite file with a rollback journal, which only its user may read.

    A file with several names (hard links) is refused: an interrupted transaction under one name
    could not be rolled back under another. Symbolic links are followed.

    Each transaction has its own connection. So threads share nothing, and processes that are
    forked, started with a pickle, or killed leave nothing half open.

    Parameters
    ----------
    location : str
        Path of an existing ledger; `create_file` creates one.
    """

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[Transaction]:
        """Return a transaction as a context: committed, or rolled back after an exception."""
        file = _only_name(self.location)
        with (
            _advice(self.location),
            closing(_connected(file)) as connection,
            _began(connection, write),
        ):
            _check_file(connection, self.location)
            yield Transaction(connection.execute)

    def create(self, first: Callable[[Transaction], None]) -> None:
        """Run `first` in a transaction; create the file if it does not exist."""
        if not os.path.lexists(self.location):
            create_file(self.location, first)
            return
        self.verify()
        super().create(first)

    def verify(self) -> None:
        """Raise if SQLite finds a damaged page, row or index."""
        with self.transaction(write=False) as transaction:
            (found,) = transaction._execute("PRAGMA integrity_check(1)", {}).fetchone()
        if found != "ok":
            raise damaged(self.location, str(found))


class SqliteMemory(Storage):
    """A database in the memory of this process, for notebooks; it disappears with the process."""

    def __init__(self) -> None:
        super().__init__(MEMORY)
        self._connection = sqlite3.connect(MEMORY, isolation_level=None, check_same_thread=False)
        weakref.finalize(self, self._connection.close)
        self._process = os.getpid()
        self._lock = threading.RLock()
        _set_up(self._connection)

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[Transaction]:
        """Return a transaction as a context: committed, or rolled back after an exception."""
        if os.getpid() != self._process:
            # A forked process has a copy, in which nobody else would see its spending.
            raise LedgerError(
                "a ledger in memory must be used in the process that created it; this one was "
                "forked. Keep it in a file for workers: PrivacyLedger.create(path, ...)."
            )
        with self._lock, _advice(MEMORY), _began(self._connection, write):
            yield Transaction(self._connection.execute)


def create_file(path: str, first: Callable[[Transaction], None]) -> None:
    """Create a ledger with the content that `first` writes, or raise if the file exists.

    The file is written under another name and linked to its place when complete. So no process
    ever sees an unfinished ledger, and a truncated ledger is never mistaken for a new one.
    """
    place = Path(path)
    if not os.path.isdir(place.parent):
        raise LedgerError(f"path_or_url must be in a folder that exists; got {shown_path(path)}.")
    draft = place.with_name(f"{_DRAFT}{secrets.token_hex(8)}{_DRAFT_END}")
    try:
        # The longest name that is needed; this fails here if it is too long.
        with suppress(FileNotFoundError):
            os.lstat(f"{path}-journal")
        # Before SQLite opens it, and whatever the umask is: nobody else may ever read it.
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with _advice(path), closing(_connected(str(draft))) as connection:
            _set_up(connection)
            with _began(connection, write=True):
                first(Transaction(connection.execute))
        os.link(draft, place)
        _last(place.parent)
    except FileExistsError:
        raise LedgerError(
            f"path_or_url must be the path of a new file; there already is {shown_path(path)}. "
            "Open it with PrivacyLedger(path, dataset)."
        ) from None
    except (OSError, UnicodeEncodeError) as error:
        raise LedgerError(
            "path_or_url must be a place where files can be created and linked; got "
            f"{shown_path(path)} ({_reason(error)})."
        ) from error
    finally:
        for left in (draft, Path(f"{draft}-journal")):
            # If the folder is not writable, there is nothing to remove.
            with suppress(OSError):
                left.unlink(missing_ok=True)


def _only_name(path: str) -> str:
    """Return the real path of a ledger's file, or raise unless the file has only this name."""
    try:
        real = os.path.realpath(path)
        state = os.stat(real)
    except (FileNotFoundError, NotADirectoryError):
        raise missing(path) from None
    except (OSError, ValueError) as error:
        raise LedgerError(
            "path_or_url must be the path of an accessible file; got "
            f"{shown_path(path)} ({_reason(error)})."
        ) from None
    if not stat.S_ISREG(state.st_mode):
        kind = "folder" if stat.S_ISDIR(state.st_mode) else "device or pipe"
        raise LedgerError(
            f"path_or_url must be the path of a file; got a {kind}, {shown_path(path)}."
        )
    if state.st_nlink > 1:
        _remove_drafts(Path(real), state)
        if os.stat(real).st_nlink > 1:
            raise LedgerError(
                f"ledger {path!r} must have one name; got a file with {state.st_nlink} names "
                "(hard links). A transaction that is interrupted under one name cannot be rolled "
                "back under another. Nothing was recorded. "
                f"`find / -xdev -samefile {real}` lists them: remove all but one."
            )
    return real


def _remove_drafts(file: Path, state: os.stat_result) -> None:
    """Remove the temporary name of a file, if its creator did not or can no longer do so.

    A creator links the complete file to its place before it removes this name.
    """
    for other in file.parent.iterdir():
        if other.name.startswith(_DRAFT) and other.name.endswith(_DRAFT_END):
            with suppress(FileNotFoundError):
                if os.path.samestat(other.lstat(), state):
                    other.unlink()


def _reason(error: Exception) -> str:
    """Return why a path cannot be used, without showing the path."""
    return (
        error.strerror if isinstance(error, OSError) else None
    ) or "it is not a path on this system"


def _last(folder: Path) -> None:
    """Make the name of a new file survive a stop of the machine, where folders can be opened."""
    if os.name == "posix":
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def _connected(path: str) -> sqlite3.Connection:
    """Return a connection to an existing file; a missing file is not created."""
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


def _check_file(connection: sqlite3.Connection, path: str) -> None:
    """Raise unless a file is a ledger of this version, with a rollback journal."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if application != _APPLICATION:
        raise damaged(path, "it is not a ledger, or its first page is lost")
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    check_version(path, version)
    (journal,) = connection.execute("PRAGMA journal_mode").fetchone()
    if journal != _JOURNAL:
        raise LedgerError(
            f"ledger {path!r} must have a rollback journal; got {shown(journal)}. Nothing was "
            f"recorded. `PRAGMA journal_mode = {_JOURNAL}` in SQLite converts the file."
        )


def _run(connection: sqlite3.Connection, statement: str) -> None:
    """Run a statement when its lock becomes free; raise if others hold the lock too long.

    SQLite itself would wait in steps of up to 100 ms, and usually find the lock taken again.
    """
    limit = time.monotonic() + _PATIENCE_S
    while True:
        try:
            connection.execute(statement).fetchall()
            return
        except sqlite3.OperationalError as error:
            is_busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
            if not is_busy or time.monotonic() > limit:
                raise
            time.sleep(_RANDOM.uniform(*_STEPS_S))


@contextmanager
def _began(connection: sqlite3.Connection, write: bool) -> Iterator[None]:
    """Run a transaction that holds its lock from the start; a writer is the only one."""
    try:
        _run(connection, "BEGIN IMMEDIATE" if write else "BEGIN")
        # A reader gets its lock only with its first read.
        _run(connection, "PRAGMA schema_version")
        yield
        # If others are still reading, this waits for them.
        _run(connection, "COMMIT")
    except BaseException:
        # SQLite may have rolled back already, for example if the disk is full.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextmanager
def _advice(path: str) -> Iterator[None]:
    """Convert SQLite's errors into errors that say what to do."""
    try:
        yield
    except sqlite3.Error as error:
        raise _explained(path, error) from error
    except UnicodeDecodeError as error:
        raise damaged(path, "a text cannot be read") from error


def _explained(path: str, error: sqlite3.Error) -> LedgerError:
    """Convert an error of SQLite into one of the ledger."""
    words = str(error)
    for part, advice in (
        ("lock", "Nothing was recorded. Another process holds the ledger; try again."),
        ("full", "Nothing was recorded. Make room on the disk and try again."),
        ("readonly", "Nothing was recorded. The file must be writable to record spending."),
        ("unable to open", "The file and its folder must be readable and writable."),
        ("disk I/O", "The entry may count or not: see history() before you continue."),
    ):
        if part in words:
            return LedgerError(f"ledger {path!r}: {words}. {advice}")
    return damaged(path, words)
