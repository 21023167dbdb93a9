"""Which processes work on a study."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

optuna = pytest.importorskip("optuna")

from skdptune.model_selection import _study as _loop  # noqa: E402
from skdptune.model_selection._study import Heartbeat  # noqa: E402


@pytest.fixture
def study() -> optuna.Study:
    return optuna.create_study()


def test_processes_see_each_other_until_they_stop(study: optuna.Study) -> None:
    with Heartbeat(study) as first:
        with Heartbeat(study) as second:
            assert first.alive() == second.alive() == {first.process, second.process}
        assert first.alive() == {first.process}


@pytest.mark.skipif(os.name != "posix", reason="elsewhere only the grace period shows it")
def test_process_of_this_machine_that_was_killed_is_known_at_once(study: optuna.Study) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    with Heartbeat(study) as heartbeat:
        host = heartbeat.process.rsplit(":", 2)[0]
        study.set_user_attr(f"process {host}:{gone.pid}:dead", time.time())
        study.set_user_attr(f"process {host}:{os.getppid()}:alive", time.time())
        assert heartbeat.alive() == {heartbeat.process, f"{host}:{os.getppid()}:alive"}


def test_process_of_another_machine_that_fell_silent_is_gone(study: optuna.Study) -> None:
    with Heartbeat(study) as heartbeat:
        study.set_user_attr("process elsewhere:1:fresh", time.time() - 60)
        study.set_user_attr("process elsewhere:1:stale", time.time() - 600)
        assert heartbeat.alive() == {heartbeat.process, "elsewhere:1:fresh"}


def test_heart_beats_at_intervals(study: optuna.Study, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_loop, "_INTERVAL", 0.01)
    with Heartbeat(study) as heartbeat:
        key = f"process {heartbeat.process}"
        first, deadline = study.user_attrs[key], time.monotonic() + 10
        while study.user_attrs[key] == first and time.monotonic() < deadline:
            time.sleep(0.01)
        assert study.user_attrs[key] > first
