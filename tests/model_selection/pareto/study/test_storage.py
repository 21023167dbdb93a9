"""The study in its storage: new, resumed, or refused."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

optuna = pytest.importorskip("optuna")

from skdptune.model_selection._pareto._study._storage import (  # noqa: E402
    open_storage,
    open_study,
    quiet_optuna,
    study_entropy,
)


def study_at(storage: Any = None, name: str | None = None, space: str = "x: (0, 1)") -> Any:
    with quiet_optuna():
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
    with pytest.raises(
        ValueError, match="study_name must be new.* of the same space, y.*which has x"
    ):
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
    with pytest.raises(RuntimeError), quiet_optuna():
        assert optuna.logging.get_verbosity() == optuna.logging.ERROR
        raise RuntimeError
    assert optuna.logging.get_verbosity() == before


def test_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(ModuleNotFoundError, match=r"optuna.*pip install 'skdptune\[pareto\]'"):
        study_at()
