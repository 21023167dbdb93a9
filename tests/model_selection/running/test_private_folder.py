"""What workers share lies in a folder of their own, which no crash leaves behind."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from skdptune.model_selection._running import _parallel
from skdptune.model_selection._running._parallel import private_folder, remove_stale

pytestmark = pytest.mark.skipif(os.name != "posix", reason="locks and modes of files")

# A process that shares secret records in its folder, says where, and waits.
SCRIPT = """
import sys, time
from skdptune.model_selection._running._parallel import private_folder
folder = private_folder()
open(folder + "/records", "w").write("secret")
print(folder, flush=True)
if sys.argv[1] == "wait":
    time.sleep(600)
"""


@pytest.fixture
def parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the place of folders, those of other processes included."""
    monkeypatch.setenv("JOBLIB_TEMP_FOLDER", str(tmp_path))
    _parallel._folder_of.cache_clear()
    yield tmp_path
    _parallel._folder_of.cache_clear()


def start(what: str) -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, what], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    with process.stdout as lines:
        return process, Path(lines.readline().strip())


def test_only_the_user_may_read_it(parent: Path) -> None:
    # Theorem F10.
    folder = Path(private_folder())
    assert folder.parent == parent
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert private_folder() == str(folder)


def test_it_is_made_again_where_somebody_removed_it(parent: Path) -> None:
    folder = Path(private_folder())
    (folder / "lock").unlink()
    folder.rmdir()
    assert Path(private_folder()).exists()


def test_it_is_removed_at_the_end(parent: Path) -> None:
    # Theorem F10.
    process, folder = start("end")
    assert process.wait(60) == 0
    assert folder.parent == parent
    assert not folder.exists()


def test_what_a_killed_process_left_is_removed_by_the_next(parent: Path) -> None:
    # Theorem F10.
    process, folder = start("wait")
    remove_stale(parent)
    assert (folder / "records").read_text() == "secret"
    process.send_signal(signal.SIGKILL)
    process.wait(60)
    assert (folder / "records").exists()
    private_folder()
    assert not folder.exists()


def test_folders_of_others_stay(parent: Path) -> None:
    elsewhere = parent / "elsewhere"
    elsewhere.mkdir()
    (parent / "skdptune-link").symlink_to(elsewhere)
    (parent / "other").mkdir()
    (parent / "skdptune-file").touch()
    remove_stale(parent)
    assert sorted(path.name for path in parent.iterdir()) == [
        "elsewhere",
        "other",
        "skdptune-file",
        "skdptune-link",
    ]


@pytest.mark.parametrize("prefix", ["skdptune-", ".skdptune-"])
@pytest.mark.parametrize("lock", [None, b"", b"mine", _parallel._MARK + b"and more"])
def test_a_folder_of_the_users_own_stays(parent: Path, prefix: str, lock: bytes | None) -> None:
    # Theorem F10.
    own = parent / f"{prefix}results"
    own.mkdir()
    (own / "thesis").write_text("of two years")
    if lock is not None:
        (own / "lock").write_bytes(lock)
    os.utime(own, (time.time() - 7200.0,) * 2)
    remove_stale(parent)
    assert (own / "thesis").read_text() == "of two years"


def test_the_mark_is_not_read_through_a_link_or_a_pipe(parent: Path) -> None:
    (parent / "mark").write_bytes(_parallel._MARK)
    for name in ("skdptune-link", "skdptune-pipe"):
        (parent / name).mkdir()
    (parent / "skdptune-link" / "lock").symlink_to(parent / "mark")
    os.mkfifo(parent / "skdptune-pipe" / "lock")
    remove_stale(parent)
    assert len(list(parent.iterdir())) == 3


def test_a_folder_that_was_never_finished_is_removed(parent: Path) -> None:
    # Theorem F10: its process was killed when it had marked the folder and not yet renamed it.
    unfinished = parent / ".skdptune-unfinished"
    unfinished.mkdir()
    (unfinished / "lock").write_bytes(_parallel._MARK)
    remove_stale(parent)
    assert not unfinished.exists()


def test_a_forked_process_has_a_folder_of_its_own(parent: Path) -> None:
    own = private_folder()
    assert _parallel._folder_of(-1) != own


def test_small_shared_memory_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JOBLIB_TEMP_FOLDER", raising=False)
    monkeypatch.setattr(_parallel, "_LEAST_SHARED_MEMORY", 1 << 80)
    monkeypatch.setattr(_parallel.tempfile, "gettempdir", lambda: str(tmp_path))
    assert _parallel._parent() == tmp_path
