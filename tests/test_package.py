"""The package as a whole: its public names, tests, lock files and README."""

from __future__ import annotations

import contextlib
import importlib
import importlib.resources
import inspect
import pickle
import pkgutil
import re
import subprocess
import tomllib
import traceback
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import skdptune
from skdptune.base import PrivateEstimatorMixin
from skdptune.linear_model import DPLogisticRegression
from tests.structure import PACKAGE
from tests.testing.public_estimators import PUBLIC

ROOT = Path(__file__).resolve().parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]


def public_names(folder: str = "") -> list[str]:
    names: list[str] = vars(importlib.import_module(f"skdptune.{folder}".rstrip(".")))["__all__"]
    return names


def public_modules() -> list[str]:
    """Return the folders and files from which users import, including the root."""
    found = pkgutil.walk_packages([str(PACKAGE)], prefix="skdptune.")
    return ["skdptune", *(module.name for module in found if "._" not in module.name)]


def public_object(module: str, name: str) -> Any:
    """Return the public names of a module; nets only if torch, skorch and Opacus are installed."""
    if module == "skdptune.neural_network":
        for needed in ("torch", "skorch", "opacus"):
            pytest.importorskip(needed)
    return getattr(importlib.import_module(module), name)


def test_types_are_shipped() -> None:
    assert importlib.resources.files("skdptune").joinpath("py.typed").is_file()


def test_root_offers_every_estimator_and_search() -> None:
    assert len(PUBLIC) > 15
    for name, folder in PUBLIC.items():
        assert getattr(skdptune, name) is public_object(f"skdptune.{folder}", name)
        assert name in dir(skdptune)


def test_root_lists_its_folders_and_names() -> None:
    folders = {name.split(".")[1] for name in public_modules() if name != "skdptune"}
    for name in folders:
        assert getattr(skdptune, name) is importlib.import_module(f"skdptune.{name}")
    nets = {name for name in public_names("neural_network") if name.startswith("DPNeuralNet")}
    # `from skdptune import *` must work without torch.
    assert not nets & set(public_names())
    assert dir(skdptune) == sorted({*folders, *public_names(), *nets, "__version__"})
    namespace: dict[str, Any] = {}
    exec("from skdptune import *", namespace)
    assert namespace.keys() - {"__builtins__"} == set(public_names())


def test_root_does_not_know_what_it_does_not_offer() -> None:
    with pytest.raises(AttributeError, match="module 'skdptune' has no attribute 'linear'"):
        skdptune.linear  # noqa: B018


@pytest.mark.parametrize("name", [name for name in public_modules() if name != "skdptune"])
def test_public_module_lists_its_names(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__doc__
    assert module.__all__
    assert module.__all__ == sorted(set(module.__all__))


@pytest.mark.parametrize("module", public_modules())
def test_public_names_are_documented(module: str) -> None:
    for name in getattr(importlib.import_module(module), "__all__", []):
        thing = public_object(module, name)
        documentation = thing.__dict__.get("__doc__") if inspect.isclass(thing) else thing.__doc__
        assert documentation, f"{name}: no docstring of its own"
        summary, *rest = documentation.splitlines()
        assert summary.strip().endswith("."), f"{name}: no one-line summary"
        assert not rest or not rest[0].strip(), f"{name}: no one-line summary"
        # A protocol describes what others must implement; it does nothing itself.
        is_protocol = getattr(thing, "_is_protocol", False)
        if inspect.isclass(thing) and not (
            issubclass(thing, Exception) or inspect.isabstract(thing) or is_protocol
        ):
            assert ">>> " in documentation, f"{name}: no doctest"


def public_classes() -> list[type]:
    """Return all public classes that users can construct."""
    found = {}
    for module in public_modules():
        for name in getattr(importlib.import_module(module), "__all__", []):
            if module != "skdptune.neural_network" or find_spec("opacus"):
                found[name] = getattr(importlib.import_module(module), name)
    return [
        thing
        for thing in found.values()
        if inspect.isclass(thing) and not getattr(thing, "_is_protocol", False)
    ]


@pytest.mark.parametrize("cls", public_classes(), ids=lambda cls: cls.__name__)
def test_message_of_a_wrong_argument_names_the_class(cls: type) -> None:
    with pytest.raises(TypeError) as caught:
        cls(argumentt=1)
    # For these, Python's message has the full name of the constructor.
    if not issubclass(cls, str | tuple):
        assert re.match(rf"{cls.__name__}\b", str(caught.value))
    assert "argument" in str(caught.value)
    if cls.__name__ not in {*public_names(), *dir(skdptune)}:
        return
    # The classes of a user's script also suggest the nearest argument.
    parameters = inspect.signature(cls).parameters.values()
    known = {each.name for each in parameters if each.kind is not each.VAR_KEYWORD}
    assert known
    for name in known:
        wrong = {f"{name}{name[-1]}": None}
        message = f"{cls.__name__}() got an unexpected keyword argument '{name}{name[-1]}'. "
        with pytest.raises(TypeError, match=re.escape(f"{message}Did you mean '")) as caught:
            cls(**wrong)
        assert len(traceback.extract_tb(caught.tb)) <= 4
    with pytest.raises(TypeError, match=r"'xyzzy'\. It has '"):
        cls(xyzzy=None)


def test_check_of_arguments_is_not_seen_in_signatures() -> None:
    for name in dir(skdptune):
        cls = None
        # Nets need torch.
        with contextlib.suppress(ModuleNotFoundError):
            cls = getattr(skdptune, name)
        if inspect.isclass(cls):
            constructor = inspect.signature(cls.__init__)
            own = [each for each in constructor.parameters.values() if each.name != "self"]
            expected = inspect.Signature(own, return_annotation=inspect.Signature.empty)
            seen = inspect.signature(cls).replace(return_annotation=inspect.Signature.empty)
            assert seen == expected


def test_class_of_a_user_keeps_its_arguments() -> None:
    class Plain(PrivateEstimatorMixin):
        pass

    class Own(DPLogisticRegression):
        def __init__(self, *, degree: int = 1, **others: Any) -> None:
            super().__init__(**others)
            self.degree = degree

    for wrong in ({"epsilon": 1.0}, {"degree": 2}):
        with pytest.raises(TypeError):
            Plain(**wrong)  # type: ignore[arg-type]
    assert Own(degree=3, epsilon=0.5).epsilon == 0.5
    assert pickle.loads(pickle.dumps(DPLogisticRegression(C=2.0))).C == 2.0


def test_no_test_reads_a_clock() -> None:
    # Machines are shared. So tests count operations, and benchmarks compare times with another
    # library.
    clock = re.compile(r"\btime\.(?:perf_counter|process_time|thread_time)(?:_ns)?\(")
    tests = (ROOT / "tests").rglob("test_*.py")
    assert [path.name for path in tests if clock.search(path.read_text("utf-8"))] == []


def test_all_extra_brings_every_other_but_diffprivlib_and_spark() -> None:
    # One needs an older scikit-learn, to which other users should not be limited, the other Java.
    (everything,) = (Requirement(line) for line in EXTRAS["all"])
    assert everything.name == "skdptune"
    assert everything.extras == set(EXTRAS) - {"all", "diffprivlib", "spark"}
    assert "scikit-learn<1.8" in EXTRAS["diffprivlib"]


def read_pins(name: str) -> dict[str, Version]:
    """Return the versions of a constraints file; every line must pin one."""
    lines = (ROOT / name).read_text("utf-8").splitlines()
    pins = [line.split("==") for line in lines if not line.startswith("#")]
    return {canonicalize_name(name): Version(version) for name, version in pins}


def unmet(requirements: list[str], pins: dict[str, Version]) -> list[str]:
    """Return the requirements for which no version, or an unsuitable one, is pinned."""
    parsed = [Requirement(line) for line in requirements]
    return [
        str(requirement)
        for requirement in parsed
        if canonicalize_name(requirement.name) not in pins
        or pins[canonicalize_name(requirement.name)] not in requirement.specifier
    ]


def declared(*, without: frozenset[str] = frozenset()) -> list[str]:
    """Return every dependency, required or part of an extra."""
    extras = (lines for extra, lines in EXTRAS.items() if extra not in without | {"all"})
    return [*PROJECT["dependencies"], *(line for lines in extras for line in lines)]


def test_constraints_meet_every_requirement() -> None:
    assert unmet(declared(), read_pins("constraints.txt")) == []


def test_newest_constraints_meet_all_but_diffprivlib() -> None:
    newest = read_pins("constraints-newest.txt")
    assert unmet(declared(without=frozenset({"diffprivlib"})), newest) == []
    assert "scikit-learn<1.8" in unmet(EXTRAS["diffprivlib"], newest)


def test_constraint_files_differ_by_scikit_learn_alone() -> None:
    pins, newest = read_pins("constraints.txt"), read_pins("constraints-newest.txt")
    differing = {name for name in pins | newest if pins.get(name) != newest.get(name)}
    # narwhals is a dependency of scikit-learn since 1.9.
    assert differing == {"scikit-learn", "diffprivlib", "narwhals"}
    assert pins["scikit-learn"] < newest["scikit-learn"]


def readme_command(readme: Path, name: str = "test") -> subprocess.CompletedProcess[str]:
    """Read a command from a README as CI does."""
    script = [str(ROOT / ".ci" / "readme-command"), name, str(readme)]
    return subprocess.run(script, capture_output=True, text=True)


def test_readme_test_command_runs_the_tests_of_the_first_leg() -> None:
    result = readme_command(ROOT / "README.md")
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip().split(" && ") == [
        "python3 -m venv .venv",
        '.venv/bin/python -m pip install -q -c constraints.txt -e ".[test,diffprivlib,dask]"',
        ".venv/bin/python -m pytest -n auto",
    ]
