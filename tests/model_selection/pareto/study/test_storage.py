"""The study in its storage: new, resumed, or refused."""

from __future__ import annotations

import os
import stat
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
    salted,
    study_seeds,
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


def test_a_folder_is_no_storage(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="storage must be a file or a data base that can be"):
        study_at(tmp_path)


def test_a_users_seed_is_kept(tmp_path: Path) -> None:
    seeds = study_seeds(study_at(tmp_path / "a.db"), 5)
    assert seeds.is_seeded
    assert seeds.proposals == seeds.evaluations
    for later in (None, 5, 6):
        assert study_seeds(study_at(tmp_path / "a.db"), later) == seeds
    assert study_seeds(study_at(), 5) == seeds
    assert study_seeds(study_at(), 6) != seeds
    for generator in (np.random.default_rng, np.random.RandomState):
        assert study_seeds(study_at(), generator(1)) == study_seeds(study_at(), generator(1))


def test_without_a_seed_the_file_tells_of_proposals_alone(tmp_path: Path) -> None:
    # Theorem F10.
    found = [study_seeds(study_at(tmp_path / "a.db"), None) for _ in range(3)]
    assert not any(seeds.is_seeded for seeds in found)
    assert len({seeds.proposals for seeds in found}) == 1
    assert len({seeds.evaluations for seeds in found} | {found[0].proposals}) == 4
    assert study_seeds(study_at(tmp_path / "a.db"), 5).evaluations != found[0].evaluations
    assert study_seeds(study_at(), None).proposals != found[0].proposals
    content = (tmp_path / "a.db").read_bytes()
    assert str(found[0].proposals).encode() in content
    for seeds in found:
        assert str(seeds.evaluations).encode() not in content


@pytest.mark.skipif(os.name != "posix", reason="modes of files")
@pytest.mark.parametrize("as_url", [False, True])
def test_a_new_file_may_be_read_by_its_user_alone(tmp_path: Path, as_url: bool) -> None:
    # Theorem F10.
    path = tmp_path / "a.db"
    study_at(f"sqlite:///{path}" if as_url else path).set_user_attr("mark", 1)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    # Who may read a file that was there before is up to its owner.
    path.chmod(0o640)
    assert study_at(path).user_attrs["mark"] == 1
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_data_bases_in_memory_are_no_files(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    for url in ("sqlite://", "sqlite:///:memory:"):
        study_at(url)
    assert list(tmp_path.iterdir()) == []


def test_fingerprints_are_salted(tmp_path: Path) -> None:
    # Theorem F10.
    def kept(name: str, fingerprint: str = "of the data") -> str:
        with quiet_optuna():
            study = open_study(tmp_path / name, None, ["epsilon"], "x", fingerprint)
        return str(study.user_attrs["fingerprint"])

    first = kept("a.db")
    assert kept("a.db") == first != kept("b.db")
    assert salted("of the data", bytes.fromhex(first.partition("$")[0])) == first
    assert b"of the data" not in (tmp_path / "a.db").read_bytes()
    with pytest.raises(ValueError, match="of the same data, estimators and settings"):
        kept("a.db", "of other data")


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
