"""Spaces and studies: storage, seeds, owners, and unfinished trials."""

from __future__ import annotations

import copy
import os
import pickle
import stat
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import Any
from unittest import mock

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from skdptune.base import PrivacyWarning
from skdptune.linear_model import DPLogisticRegression
from skdptune.model_selection import (
    AdaptiveTrials,
    DPAdaptiveSearchCV,
    DParetoSearchCV,
    ParetoFront,
    _study,
)
from skdptune.model_selection._adaptive import (
    described,
)
from skdptune.model_selection._study import (
    Begun,
    Heartbeat,
    Journal,
    check_same,
    hide_secrets,
    open_storage,
    open_study,
    quiet_optuna,
    salted,
    study_seeds,
)
from tests.flat import changed, flat
from tests.model_selection.learners import Scripted

optuna = pytest.importorskip("optuna")


def study_at(storage: Any = None, name: str | None = None, space: str = "x: (0, 1)") -> Any:
    with quiet_optuna():
        study = open_study(storage, name, "pareto_search", ["minimize"] * 2)
        check_same(study, {"objectives": ["epsilon", "error"], "space": space})
        return study


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
    with pytest.raises(ValueError, match="study_name must be new.* of the same space; got"):
        study_at(tmp_path / "a.db", space="y: (0, 1)")


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
    # Theorem F10: records and seeds in files.
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
def test_a_new_file_may_be_read_by_its_user_alone(tmp_path: Path) -> None:
    # Theorem F10: records and seeds in files.
    for path, storage in (
        (tmp_path / "a.db", tmp_path / "a.db"),
        (tmp_path / "b.db", f"sqlite:///{tmp_path}/b.db"),
    ):
        study_at(storage)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_fingerprints_are_salted(tmp_path: Path) -> None:
    # Theorem F10: records and seeds in files.
    def kept(name: str, fingerprint: str = "of the data") -> str:
        with quiet_optuna():
            study = open_study(tmp_path / name, None, "pareto_search", ["minimize"])
            check_same(study, {"space": "x"}, fingerprint)
        return str(study.user_attrs["fingerprint"])

    first = kept("a.db")
    assert kept("a.db") == first != kept("b.db")
    assert salted("of the data", bytes.fromhex(first.partition("$")[0])) == first
    assert b"of the data" not in (tmp_path / "a.db").read_bytes()
    with pytest.raises(ValueError, match="of the same data, estimators and settings"):
        kept("a.db", "of other data")


@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
class TestModes:
    """Theorem F10: nothing is written to a file that others may read or write."""

    @pytest.mark.parametrize(("mode", "mask"), [(0o666, 0o000), (0o640, 0o077)])
    def test_a_file_is_taken_from_others(self, tmp_path: Path, mode: int, mask: int) -> None:
        # Theorem F10: records and seeds in files.
        files = [tmp_path / f"a.db{end}" for end in ("", "-journal", "-wal", "-shm")]
        for file in files:
            file.touch()
            file.chmod(mode)
        before = os.umask(mask)
        try:
            with pytest.warns(PrivacyWarning, match="must be a file that others can neither read"):
                _study.create_private(files[0])
            assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
            # Once: it is said no second time.
            study_at(files[0]).set_user_attr("mark", 1)
        finally:
            os.umask(before)
        found = {stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
        assert found == {0o600}

    def test_an_adaptive_search_says_so_as_well(self, tmp_path: Path) -> None:
        file = tmp_path / "a.db"
        file.touch()
        file.chmod(0o666)
        X = np.random.default_rng(0).normal(size=(300, 2))
        search = DPAdaptiveSearchCV(
            DPLogisticRegression(),
            SPACE,
            epsilon=1.0,
            n_trials=2,
            strategy=AdaptiveTrials(sampler="random", storage=file),
        )
        with pytest.warns(PrivacyWarning, match="mode 0600"):
            search.start(X, X[:, 0] > 0)
        assert stat.S_IMODE(file.stat().st_mode) == 0o600

    def test_a_url_and_a_link_lead_to_the_same_file(self, tmp_path: Path) -> None:
        file = tmp_path / "a.db"
        file.touch()
        file.chmod(0o666)
        (tmp_path / "link").symlink_to(file)
        with pytest.warns(PrivacyWarning, match="mode 0600"):
            study_at(f"sqlite:///{tmp_path / 'link'}")
        assert stat.S_IMODE(file.stat().st_mode) == 0o600

    def test_a_file_of_somebody_else_is_refused(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(*_: Any) -> None:
            raise PermissionError(1, "Operation not permitted")

        file = tmp_path / "a.db"
        file.touch()
        file.chmod(0o666)
        monkeypatch.setattr(os, "chmod", refuse)
        with pytest.raises(ValueError, match="must be a file that you can create.*not permitted"):
            study_at(file)
        assert file.stat().st_size == 0


def test_what_is_no_file_is_said_in_words(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for place in (tmp_path / "no" / "a.db", tmp_path / "file" / "a.db", tmp_path / ("x" * 3000)):
        with pytest.raises(
            ValueError, match="storage must be a file that you can create"
        ) as error:
            study_at(place)
        assert len(str(error.value)) < 500
    with pytest.raises(ValueError, match="storage must be a file; got a folder"):
        study_at(tmp_path)
    with pytest.raises(TypeError, match="storage must be None, a path, a URL.*got int"):
        study_at(3)


SENTINEL = "Tr0ub4dor&3"
URL = f"postgresql+psycopg://ana:{SENTINEL}@127.0.0.1:1/studies"
SPACE = {"C": (0.1, 1.0)}


def storage_of(search: Any) -> Any:
    return search.storage if hasattr(search, "storage") else search.strategy.storage


def searches(storage: Any) -> list[Any]:
    adaptive = DPAdaptiveSearchCV(
        DPLogisticRegression(), SPACE, epsilon=1.0, strategy=AdaptiveTrials(storage=storage)
    )
    other = DPAdaptiveSearchCV(DPLogisticRegression(), SPACE, epsilon=1.0)
    pareto = DParetoSearchCV(
        DPLogisticRegression(), {"epsilon": (0.1, 1.0)}, strategy=ParetoFront(storage=storage)
    )
    return [adaptive, changed(other, storage=storage), pareto, clone(adaptive)]


class TestPasswords:
    """Theorem F10: a password in a URL is shown nowhere."""

    @pytest.mark.parametrize(
        ("url", "shown"),
        [
            (URL, "postgresql+psycopg://ana:***@127.0.0.1:1/studies"),
            ("mysql://u:a@b:c/d@host/db", "mysql://u:***@host/db"),
            ("postgresql://host/db?password=x&a=b", "postgresql://host/db?password=***&a=b"),
            ("postgresql://:x@host/db", "postgresql://:***@host/db"),
        ],
    )
    def test_what_is_shown_of_a_url(self, url: str, shown: str) -> None:
        hidden = hide_secrets(url)
        assert hidden == shown and isinstance(hidden, str)
        assert hidden.secret_url == url
        assert hide_secrets(hidden) is hidden is copy.deepcopy(hidden)
        assert pickle.loads(pickle.dumps(hidden)).secret_url == url

    @pytest.mark.parametrize(
        "storage", [None, "a.db", "sqlite:///a.db", "postgresql://ana@host/db", Path("a"), 3]
    )
    def test_what_holds_none_stays(self, storage: Any) -> None:
        assert hide_secrets(storage) is storage

    @pytest.mark.parametrize("place", [1, 2])
    def test_search_shows_none(self, place: int) -> None:
        search = searches(URL)[place]
        shown = [
            repr(search),
            str(search),
            search._repr_html_(),
            str(search.get_params()),
            f"{storage_of(search)} %s" % storage_of(search),
            repr(vars(search)),
            pickle.dumps(search).decode("latin1"),
            pickle.dumps(search, protocol=0).decode("latin1"),
            repr(copy.deepcopy(search)),
            repr(pickle.loads(pickle.dumps(search))),
        ]
        assert [each for each in shown if SENTINEL in each] == []
        assert "ana" in repr(storage_of(search))
        # It is known where it is needed.
        for twin in (clone(search), copy.deepcopy(search), pickle.loads(pickle.dumps(search))):
            assert storage_of(twin).secret_url == URL
        assert joblib.hash(storage_of(search)) == joblib.hash(storage_of(clone(search)))

    def test_errors_show_none(self) -> None:
        pytest.importorskip("psycopg")
        X = np.random.default_rng(0).normal(size=(300, 2))
        for url, place in (
            (URL, 2),
            (URL.replace("127.0.0.1:1", "127.0.0.1:port"), 0),
            (URL.replace("psycopg", "x"), 2),
        ):
            with pytest.raises(Exception, match=".") as error:  # noqa: PT011
                searches(url)[place].fit(X, X[:, 0] > 0)
            assert SENTINEL not in "".join(traceback.format_exception(error.value))

    def test_another_process_is_without_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        pickled = pickle.dumps(hide_secrets(URL))
        # What a process knows of the URLs that were given to it.
        monkeypatch.setattr(_study, "_URLS", {})
        storage = pickle.loads(pickled)
        assert storage == "postgresql+psycopg://ana:***@127.0.0.1:1/studies"
        assert storage.secret_url == "postgresql+psycopg://ana@127.0.0.1:1/studies"


@pytest.fixture
def study() -> optuna.Study:
    return optuna.create_study()


@pytest.mark.skipif(os.name != "posix", reason="elsewhere only the grace period shows it")
def test_process_of_this_machine_that_was_killed_is_known_at_once(study: optuna.Study) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    with Heartbeat(study) as heartbeat:
        host = heartbeat.process.rsplit(":", 2)[0]
        study.set_user_attr(f"process {host}:{gone.pid}:dead", time.time())
        study.set_user_attr(f"process {host}:{os.getppid()}:alive", time.time())
        assert heartbeat.alive() == {heartbeat.process, f"{host}:{os.getppid()}:alive"}


PLAN = {"n_trials": "2", "epsilon": "1.0"}


class Study:
    """A study's attributes; `before_look` is called once, before they are next read."""

    study_name = "search"

    def __init__(self) -> None:
        self.kept: dict[str, Any] = {}
        self.before_look: Any = None

    @property
    def user_attrs(self) -> dict[str, Any]:
        before, self.before_look = self.before_look, None
        if before is not None:
            before()
        return dict(self.kept)

    def set_user_attr(self, name: str, value: Any) -> None:
        self.kept[name] = value


def opened(study: Study) -> Journal:
    journal = Journal(study)
    journal.open(PLAN)
    return journal


def trial(run: str) -> Begun:
    return Begun(run, 0, {"C": 0.1})


def outcome(act: Any) -> str:
    try:
        act()
    except RuntimeError:
        return "refused"
    return "made"


def test_no_two_processes_make_more_than_one_may() -> None:
    # Theorem G6: the notes are sufficient to keep the sum, even if it is unknown who has taken
    # over.
    for interleaved in (False, True):
        study = Study()
        first, second = opened(study), opened(study)
        study.kept["process"] = mock.ANY
        found = []
        second_begins = lambda s=second, f=found: f.append(outcome(lambda: s.begin(trial("b"), 1)))  # noqa: E731
        if interleaved:
            study.before_look = second_begins
        found.append(outcome(lambda j=first: j.begin(trial("a"), 1)))
        if not interleaved:
            second_begins()
        assert found.count("made") <= 1
        finals = []
        second_ends = lambda s=second, f=finals: f.append(outcome(s.begin_final))  # noqa: E731
        if interleaved:
            study.before_look = second_ends
        finals.append(outcome(first.begin_final))
        if not interleaved:
            second_ends()
        assert finals.count("made") <= 1


def test_who_was_taken_over_from_makes_nothing_more() -> None:
    study = Study()
    first = opened(study)
    second = opened(study)
    for act in (lambda: first.begin(trial("a"), 2), first.begin_final):
        with pytest.raises(RuntimeError, match="storage must be used by one process at a time"):
            act()
    # What the first has noted counts, although it was refused.
    assert [one.run for one in second.begun()] == ["a"]


def test_long_parameters_are_described_to_their_end() -> None:
    # Theorem G6: what is resumed was paid for as it is.
    def model(last: str) -> Pipeline:
        names = [f"column_{number}" for number in range(200)]
        step = FunctionTransformer(kw_args={"names": [*names, last]})
        return Pipeline([("step", step), ("clf", Scripted())])

    assert described(model("a")) == described(model("a"))
    assert described(model("a")) != described(model("b"))


def test_how_the_budget_is_divided_is_part_of_the_plan() -> None:
    # Theorem G6: candidates chosen by noisy scores, and a search that is resumed.
    settings = {"epsilon": 1.0, "delta": 1e-5, "n_trials": 4}
    plans = []
    for more in ({}, {"refit": False}, {"noise_limit": 1.5}):
        search = flat(DPAdaptiveSearchCV, Scripted(), {"quality": [0.1, 0.9]}, **settings, **more)
        plan = search._strategy().public_plan(search, search._make_plan(500, 3))
        plans.append((plan["final fit"], plan["cost of a fit"], plan["noise of a score"]))
    assert len(set(plans)) == 3
