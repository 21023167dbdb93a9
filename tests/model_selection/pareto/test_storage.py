"""The study in its storage, and who works on it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

optuna = pytest.importorskip("optuna")

from skdptune.model_selection._pareto import _storage as _pareto_storage  # noqa: E402
from skdptune.model_selection._pareto._storage import (  # noqa: E402
    Membership,
    open_storage,
    open_study,
    quiet,
    study_entropy,
)


def study_at(storage: Any = None, name: str | None = None, space: str = "x: (0, 1)") -> Any:
    with quiet():
        return open_study(storage, name, ["epsilon", "error"], space)


def test_path_url_and_storage_are_the_same_study(tmp_path: Path) -> None:
    path = tmp_path / "a study.db"
    first = study_at(path)
    first.set_user_attr("mark", 1)
    assert study_at(str(path)).user_attrs["mark"] == 1
    assert study_at(f"sqlite:///{path}").user_attrs["mark"] == 1
    assert study_at(open_storage(path)).user_attrs["mark"] == 1
    assert "mark" not in study_at(path, "another").user_attrs
    assert "mark" not in study_at().user_attrs


def test_study_of_another_space_is_refused(tmp_path: Path) -> None:
    study_at(tmp_path / "a.db")
    with pytest.raises(ValueError, match="study_name must be a new study's.*which has x"):
        study_at(tmp_path / "a.db", space="y: (0, 1)")


def test_storage_must_be_one() -> None:
    with pytest.raises(TypeError, match="storage must be None, a path, a URL.*got int"):
        open_storage(3)


def test_seed_is_drawn_once_and_kept(tmp_path: Path) -> None:
    study = study_at(tmp_path / "a.db")
    entropy = study_entropy(study, None)
    assert study_entropy(study_at(tmp_path / "a.db"), 5) == entropy
    assert study_entropy(study_at(), 5) == study_entropy(study_at(), 5)
    assert study_entropy(study_at(), 5) != study_entropy(study_at(), 6)
    for generator in (np.random.default_rng, np.random.RandomState):
        assert study_entropy(study_at(), generator(1)) == study_entropy(study_at(), generator(1))
    assert study_entropy(study_at(), None) != study_entropy(study_at(), None)


def test_optunas_verbosity_is_restored() -> None:
    before = optuna.logging.get_verbosity()
    with pytest.raises(RuntimeError), quiet():
        assert optuna.logging.get_verbosity() == optuna.logging.ERROR
        raise RuntimeError
    assert optuna.logging.get_verbosity() == before


def test_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(ModuleNotFoundError, match=r"optuna.*pip install 'skdptune\[pareto\]'"):
        study_at()


def test_members_know_each_other_until_they_leave() -> None:
    study = study_at()
    with Membership(study) as first:
        with Membership(study) as second:
            assert first.living() == second.living() == {first.owner, second.owner}
        assert first.living() == {first.owner}


@pytest.mark.skipif(os.name != "posix", reason="elsewhere silence alone tells")
def test_process_that_is_gone_is_known_at_once() -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    with Membership(study_at()) as member:
        host = member.owner.rsplit(":", 2)[0]
        member.study.set_user_attr(f"process {host}:{gone.pid}:dead", time.time())
        member.study.set_user_attr(f"process {host}:{os.getppid()}:alive", time.time())
        assert member.living() == {member.owner, f"{host}:{os.getppid()}:alive"}


def test_machine_that_fell_silent_is_gone() -> None:
    with Membership(study_at()) as member:
        member.study.set_user_attr("process elsewhere:1:fresh", time.time() - 60)
        member.study.set_user_attr("process elsewhere:1:stale", time.time() - 600)
        assert member.living() == {member.owner, "elsewhere:1:fresh"}


def test_members_say_now_and_then_that_they_live(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_pareto_storage, "_BEAT", 0.01)
    with Membership(study_at()) as member:
        key = f"process {member.owner}"
        first, deadline = member.study.user_attrs[key], time.monotonic() + 10
        while member.study.user_attrs[key] == first and time.monotonic() < deadline:
            time.sleep(0.01)
        assert member.study.user_attrs[key] > first
