"""Ledgers in a PostgreSQL database, through SQLAlchemy, for teams and for several machines."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from skdptune._formatting import shown
from skdptune._validation import installed
from skdptune.ledger._storage import (
    VERSION,
    Execute,
    LedgerError,
    Storage,
    Transaction,
    check_version,
    damaged,
    missing,
)

T = TypeVar("T")

_DRIVER = "postgresql+psycopg"
_SCHEMES = ("postgres", "postgresql", _DRIVER)
# URL options that contain a secret, which would be stored with the URL.
_SECRETS = ("password", "sslpassword")
# How long a process waits for other writers, and how long the server waits for a writer that
# stopped or was lost before it rolls back its transaction.
_PATIENCE_S, _IDLE_S = 60.0, 30.0
# Detects an unreachable server, before and during the transaction.
_CONNECTION = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    # Prepared statements are stored on a server, and poolers switch between servers.
    "prepare_threshold": None,
}
_SCHEMA = "skdptune."
_TABLES = (
    # A single row, which the writer locks.
    "CREATE TABLE skdptune.ledger (one BOOLEAN PRIMARY KEY CHECK (one), version INTEGER NOT NULL)",
    """CREATE TABLE skdptune.accounts (
    dataset TEXT COLLATE "C" PRIMARY KEY, terms TEXT NOT NULL, state TEXT NOT NULL,
    digest TEXT NOT NULL
)""",
    """CREATE TABLE skdptune.events (
    dataset TEXT COLLATE "C" NOT NULL, sequence BIGINT NOT NULL,
    reservation TEXT COLLATE "C" NOT NULL, content TEXT NOT NULL, digest TEXT NOT NULL,
    PRIMARY KEY (dataset, sequence)
)""",
    "CREATE INDEX events_of_reservation ON skdptune.events (dataset, reservation, sequence)",
    'CREATE TABLE skdptune.profiles (key TEXT COLLATE "C" PRIMARY KEY, content TEXT NOT NULL)',
)
_N_TABLES = 4
_READ = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
_WRITE = {"isolation_level": "READ COMMITTED", "postgresql_readonly": False}
_VERSION = "SELECT version FROM skdptune.ledger"
# Takes the lock for writing. The settings are limited to this transaction: the waiting time, and
# that a commit returns only when it is on disk, whatever the user's default.
_LOCK = """
SELECT version, current_setting('fsync'), set_config('lock_timeout', :patience, true),
    set_config('idle_in_transaction_session_timeout', :idle, true),
    set_config('synchronous_commit', CASE WHEN current_setting('synchronous_commit')
        IN ('off', 'local') THEN 'on' ELSE current_setting('synchronous_commit') END, true)
FROM skdptune.ledger FOR UPDATE
"""
# Counts existing tables with write-ahead logging, and those of them that have their key.
_FOUND = """
SELECT count(*), count(keys.indexrelid) FROM pg_class AS tables
LEFT JOIN pg_index AS keys ON keys.indrelid = tables.oid AND keys.indisprimary AND keys.indisvalid
WHERE tables.relnamespace = to_regnamespace('skdptune') AND tables.relkind = 'r'
    AND tables.relpersistence = 'p'
    AND tables.relname IN ('accounts', 'events', 'ledger', 'profiles')
"""
# Processes that create a ledger in one database take turns.
_MAKING = 0x736B6470
_UNKNOWN = "The entry may count or not: see history() before you continue."
_LOST = "The connection was lost: try again when the server is back."
_UNREACHABLE = (
    "The server must be reachable and must accept this user. Passwords are read from PGPASSFILE, "
    "PGPASSWORD or the option passfile; a pickle never contains one."
)
_BUSY = "Another process holds the ledger; try again."
# Advice, by the prefix of the error code.
_ADVICE = (
    (("55P03", "57014", "40"), _BUSY),
    (("25P03",), "The step took too long while others waited; try again."),
    (("23505",), "Another process recorded an entry out of turn; try again."),
    (("53",), "Make room on the server and try again."),
    # The second code is raised by a standby server.
    (("25006", "0A000"), "The database must be writable to record spending."),
    (("42501",), "The user must be allowed to use the schema skdptune and its tables."),
)
_NO_TABLE = ("42P01", "3F000")
# A missing table or column that existed before; damaged pages, files or catalogues.
_DAMAGE = (*_NO_TABLE, "42703", "XX", "58")
# Passwords in this process, by location; never in a pickle, a message or a record.
_PASSWORDS: dict[str, str] = {}


def check_url(url: str) -> str:
    """Return a PostgreSQL URL, or raise without showing it, since it may contain a password."""
    if url.partition("://")[0] not in _SCHEMES:
        raise ValueError(
            "path_or_url must be a path, ':memory:' or a URL that begins as "
            "postgresql://user@host; got another."
        )
    parsed = _parsed(url)
    secrets = [name for name in _SECRETS if name in parsed.query]
    if secrets or not parsed.database:
        fault = f"the option {shown(secrets[0])}" if secrets else "no database"
        raise ValueError(
            "path_or_url must name a database and no secret in its options, as in "
            f"postgresql://user@host/database?passfile=...; got {fault}."
        )
    return url


class PostgresqlServer(Storage):
    """A PostgreSQL database with a ledger in its schema "skdptune".

    A writer holds the lock of one row during its whole transaction. Two writers without the lock
    would add events with the same number, which the key of the table forbids. So even then,
    overspending is impossible. A process keeps one connection open; a forked process opens its
    own.

    Parameters
    ----------
    url : str
        URL as allowed by `check_url`. A password in it stays in this process.

    Notes
    -----
    Theorem H3.
    """

    def __init__(self, url: str) -> None:
        parsed = _parsed(url)
        parts = ("username", "host", "port", "database", "query")
        shown = type(parsed).create(_DRIVER, **{part: getattr(parsed, part) for part in parts})
        super().__init__(shown.render_as_string())
        self._password: str | None = parsed.password or _PASSWORDS.get(self.location)

    def __reduce__(self) -> tuple[Callable[[str], PostgresqlServer], tuple[str]]:
        """Pickle the location, without the password."""
        return type(self), (self.location,)

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[Transaction]:
        """Return a transaction as a context: committed, or rolled back after an exception."""
        with self._began(write, self._lock if write else self._check) as (execute, _):
            yield Transaction(execute, _SCHEMA)

    def create(self, first: Callable[[Transaction], None]) -> None:
        """Create missing tables, and run `first` in a transaction."""
        with self._began(True, _take_turns) as (execute, n_tables):
            if n_tables == 0:
                _make(execute)
                first(Transaction(execute, _SCHEMA))
        if n_tables:
            self.verify()
            super().create(first)

    def verify(self) -> None:
        """Raise unless every table exists, survives a crash of the server, and has its key."""
        with self._began(False, _found) as (_, found):
            if found != (_N_TABLES, _N_TABLES):
                raise damaged(self.location, "a table or its key is missing")

    @contextmanager
    def _began(self, write: bool, start: Callable[[Execute], T]) -> Iterator[tuple[Execute, T]]:
        """Run a transaction that starts with the statements of `start`; yield its result.

        A reading transaction sees a single snapshot. A writing transaction sees committed data:
        after waiting for the lock, it sees everything written in the meantime.
        """
        package = _sqlalchemy()
        is_committing = False
        try:
            with self._connected(write, start) as (connection, execute, found):
                yield execute, found
                is_committing = write
                connection.commit()
        except package.exc.SQLAlchemyError as error:
            raise _explained(self.location, error, is_committing) from error
        except UnicodeDecodeError as error:
            raise damaged(self.location, "a text cannot be read") from error

    @contextmanager
    def _connected(
        self, write: bool, start: Callable[[Execute], T]
    ) -> Iterator[tuple[Any, Execute, T]]:
        """Start on the open connection, or on a new one if the open connection was lost."""
        package = _sqlalchemy()
        options = _WRITE if write else _READ
        for is_last in (False, True):
            with _engine(self.location, self._password, os.getpid()).connect() as connection:
                if self._password:
                    _PASSWORDS[self.location] = self._password
                connection.execution_options(**options)

                def execute(statement: str, values: dict[str, Any], to: Any = connection) -> Any:
                    return to.execute(package.text(statement), values)

                try:
                    found = start(execute)
                except package.exc.DBAPIError as error:
                    # Nothing has been written yet.
                    if is_last or not error.connection_invalidated:
                        raise
                    continue
                yield connection, execute, found
                return

    def _lock(self, execute: Execute) -> None:
        """Take the lock for writing."""
        times = {"patience": _PATIENCE_S, "idle": _IDLE_S}
        values = {name: str(int(1000 * time)) for name, time in times.items()}
        row = self._row(execute, _LOCK, values)
        if row[1] != "on":
            raise LedgerError(
                f"ledger {self.location!r}: fsync of the server must be on; got off. "
                "Without it, entries could be lost if the machine stopped."
            )

    def _check(self, execute: Execute) -> None:
        """Raise unless the ledger exists and has this version."""
        self._row(execute, _VERSION, {})

    def _row(self, execute: Execute, statement: str, values: dict[str, Any]) -> Any:
        """Return the single row about the ledger, which must exist and have this version."""
        try:
            row = execute(statement, values).fetchone()
        except _sqlalchemy().exc.ProgrammingError as error:
            if getattr(error.orig, "sqlstate", "") in _NO_TABLE:
                raise missing(self.location) from None
            raise
        if row is None:
            raise damaged(self.location, "its version is missing")
        check_version(self.location, row[0])
        return row


def _found(execute: Execute) -> tuple[int, int]:
    """Return the number of existing tables, and how many of these have their key."""
    tables, keys = execute(_FOUND, {}).fetchone()
    return tables, keys


def _take_turns(execute: Execute) -> int:
    """Wait for others that create a ledger in this database; return the number of tables."""
    execute("SELECT pg_advisory_xact_lock(:making)", {"making": _MAKING})
    return _found(execute)[0]


def _make(execute: Execute) -> None:
    """Create the tables of a new ledger, and their schema unless it already exists."""
    if execute("SELECT to_regnamespace('skdptune')", {}).scalar() is None:
        execute("CREATE SCHEMA skdptune", {})
    for statement in _TABLES:
        execute(statement, {})
    execute(f"INSERT INTO skdptune.ledger VALUES (true, {VERSION})", {})


def _sqlalchemy() -> Any:
    """Return SQLAlchemy, or raise an error that names the extra for it and the driver."""
    with installed("Ledgers on PostgreSQL need", "postgresql"):
        import psycopg  # noqa: F401
        import sqlalchemy
    return sqlalchemy


def _parsed(url: str) -> Any:
    """Return the parts of a URL, or raise without showing it."""
    package = _sqlalchemy()
    try:
        return package.make_url(url)
    except (package.exc.ArgumentError, ValueError):
        raise ValueError(
            "path_or_url must be as postgresql://user@host:port/database; got a URL that cannot "
            "be read."
        ) from None


@functools.cache
def _engine(location: str, password: str | None, process: int) -> Any:
    """Return the engine with one open connection per process; a fork has another `process`."""
    package = _sqlalchemy()
    url = package.make_url(location).set(password=password)
    return package.create_engine(
        url,
        connect_args={key: value for key, value in _CONNECTION.items() if key not in url.query},
        pool_size=1,
        max_overflow=-1,
        hide_parameters=True,
    )


def _explained(location: str, error: Any, is_committing: bool) -> LedgerError:
    """Convert an error of the database into one of the ledger."""
    cause = getattr(error, "orig", None) or error
    words = str(cause).strip().split("\n")[0].rstrip(".")
    if is_committing:
        return LedgerError(f"ledger {location!r}: {words}. {_UNKNOWN}")
    state = getattr(cause, "sqlstate", None) or ""
    if state.startswith(_DAMAGE):
        return damaged(location, words)
    advice = next((text for states, text in _ADVICE if state.startswith(states)), "")
    if not state:
        is_lost = getattr(error, "connection_invalidated", False)
        advice = _LOST if is_lost else _UNREACHABLE
    return LedgerError(f"ledger {location!r}: {words}. Nothing was recorded. {advice}".rstrip())
