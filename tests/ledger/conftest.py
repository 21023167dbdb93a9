"""Ledgers of the tests: in memory, in a file that is not synchronised, and on a server."""

from __future__ import annotations

import os
import subprocess
import tempfile

import pytest

from skdptune.ledger import PrivacyLedger, _sqlite
from tests.ledger.server import Server, why_none


@pytest.fixture(autouse=True)
def _without_sync(monkeypatch):
    # Waiting for the disk takes nearly all of the time, and tests do not stop the machine.
    monkeypatch.setattr(_sqlite, "_SYNCHRONOUS", "OFF")


@pytest.fixture
def ledger():
    return PrivacyLedger(":memory:", "patients", epsilon=3.0, delta=1e-5)


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "budget #1.ledger")


@pytest.fixture
def on_disk(path):
    return PrivacyLedger.create(path, "patients", epsilon=3.0, delta=1e-5)


@pytest.fixture
def small_disk():
    """Return a folder on a separate disk of one megabyte."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount a small disk")
    # Not in a folder of root's: the user of a server must reach it.
    folder = tempfile.mkdtemp(prefix="skdptune-disk-")
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m,mode=0700", "tmpfs", folder]
    done = subprocess.run(mount, capture_output=True, text=True)
    if done.returncode:
        os.rmdir(folder)
        pytest.skip(f"a small disk cannot be mounted: {done.stderr.strip()}")
    os.chmod(folder, 0o700)
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)
    os.rmdir(folder)


@pytest.fixture(scope="session")
def _server():
    if why := why_none():
        # As .ci/run asks on the leg that must have a server.
        is_required = os.environ.get("SKDPTUNE_TEST_SERVER") == "required"
        (pytest.fail if is_required else pytest.skip)(why)
    server = Server()
    yield server
    server.remove()


@pytest.fixture
def server(_server):
    """Return a server that has no ledger yet."""
    _server.execute("DROP SCHEMA IF EXISTS skdptune CASCADE")
    return _server


@pytest.fixture(params=["file", "server"])
def place(request):
    """Return where a ledger can be made that several processes share."""
    if request.param == "file":
        return request.getfixturevalue("path")
    return request.getfixturevalue("server").url()


@pytest.fixture
def shared(place):
    return PrivacyLedger.create(place, "patients", epsilon=3.0, delta=1e-5)
