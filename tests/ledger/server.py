"""A server of PostgreSQL for the tests: a temporary cluster on loopback, with a password."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

USER = "ledger"
PATIENCE_S = 60.0
# Where Debian keeps what is not on the path.
_FOLDERS = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
# PostgreSQL refuses to run as root.
_UNPRIVILEGED = ("postgres", "nobody")


def program(name):
    """Return the path of one of PostgreSQL's programs, or None."""
    return shutil.which(name, path=os.pathsep.join([os.environ["PATH"], *map(str, _FOLDERS)]))


def why_none():
    """Return why no server can be started here, or nothing."""
    for package in ("sqlalchemy", "psycopg"):
        if find_spec(package) is None:
            return f"no {package}: pip install 'skdptune[postgresql]'"
    if program("initdb") is None or program("postgres") is None:
        return "no PostgreSQL: apt-get install postgresql"
    if sys.platform != "linux" or shutil.which("setpriv") is None:
        return "the server of the tests needs Linux and setpriv"
    return ""


class Server:
    """A cluster in a temporary folder that ends with the process that made it."""

    def __init__(self):
        self._process, self.port = None, _free_port()
        self.settings = {
            "listen_addresses": "127.0.0.1",
            "port": self.port,
            "unix_socket_directories": "",
            "fsync": "on",
            # After a crash: as safe as synchronising each of a thousand files, and faster.
            "recovery_init_sync_method": "syncfs",
        }
        self.folder = Path(tempfile.mkdtemp(prefix="skdptune-postgresql-"))
        self.user = next(filter(_exists, _UNPRIVILEGED)) if os.geteuid() == 0 else None
        self.password = secrets.token_hex(8)
        first = self.folder / "password"
        first.write_text(self.password)
        self.log = open(self.folder / "log", "ab")
        if self.user:
            for path in (self.folder, first):
                shutil.chown(path, self.user)
        checks = ["--data-checksums", "--no-locale", "--encoding=UTF8", "--no-sync"]
        access = [f"--username={USER}", f"--pwfile={first}", "--auth=password"]
        self.run("initdb", f"--pgdata={self.data}", *checks, *access)
        # Readable only by this user, as libpq requires.
        self.passfile = self.folder.with_name(f"{self.folder.name}.pgpass")
        self.passfile.touch(0o600)
        self.passfile.write_text(f"127.0.0.1:*:*:{USER}:{self.password}\n")
        self.start()

    @property
    def data(self):
        return self.folder / "data"

    def url(self, database="postgres", options=None):
        """Return a URL that leads to the password, for other processes as well."""
        options = f"?passfile={self.passfile}" if options is None else options
        return f"postgresql://{USER}@127.0.0.1:{self.port}/{database}{options}"

    def start(self):
        """Start the server, at the same port as before."""
        given = [f"--{name}={value}" for name, value in self.settings.items()]
        command = [program("postgres"), "-D", str(self.data), *given]
        # The kernel stops it if the tests are killed.
        command = [*self._as_user(), "--pdeathsig", "QUIT", *command]
        self._process = subprocess.Popen(
            command, stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL, cwd=self.folder
        )
        limit = time.monotonic() + PATIENCE_S
        while not self.is_ready():
            if self._process.poll() is not None or time.monotonic() > limit:
                raise RuntimeError((self.folder / "log").read_text()[-2000:])
            time.sleep(0.02)

    def is_ready(self):
        done = subprocess.run(
            [program("pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)], check=False
        )
        return done.returncode == 0

    def stop(self, how=signal.SIGINT):
        """Stop it: SIGINT breaks off what runs, SIGQUIT is as if the power failed."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(PATIENCE_S)
            self._process = None

    def remove(self):
        self.stop(signal.SIGQUIT)
        self.log.close()
        self.passfile.unlink()
        shutil.rmtree(self.folder)

    def execute(self, *statements, database="postgres"):
        """Run statements as the superuser, each separately; return the rows of the last one."""
        import psycopg

        rows = None
        values = {"host": "127.0.0.1", "port": self.port, "user": USER, "dbname": database}
        with closing(psycopg.connect(**values, password=self.password)) as connection:
            connection.autocommit = True
            for statement in statements:
                found = connection.execute(statement)
                rows = found.fetchall() if found.description else None
        return rows

    def run(self, name, *arguments, is_checked=True):
        """Run one of PostgreSQL's programs as the user of the server."""
        command = [*self._as_user(), program(name), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.folder)
        if is_checked and done.returncode:
            raise RuntimeError(f"{command}: {done.stdout}{done.stderr}")
        return done.stdout

    def _as_user(self):
        if not self.user:
            return [shutil.which("setpriv")]
        options = [f"--reuid={self.user}", "--clear-groups", f"--regid={_group(self.user)}"]
        return [shutil.which("setpriv"), *options]


def _exists(user):
    import pwd

    try:
        return bool(pwd.getpwnam(user))
    except KeyError:
        return False


def _group(user):
    import pwd

    return pwd.getpwnam(user).pw_gid


def _free_port():
    with closing(socket.socket()) as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]
