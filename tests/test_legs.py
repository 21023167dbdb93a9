"""The two legs of CI divide the tests between them, and no test is lost."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.structure import (
    PACKAGE,
    ROOT_NAME,
    Module,
    is_within,
    module_of,
    our_modules,
    read_package,
)
from tests.test_layers import LAYERS, OPTIONAL

ROOT = Path(__file__).resolve().parents[1]
LEFT = [
    line
    for line in (ROOT / ".ci" / "first-leg-only").read_text("utf-8").splitlines()
    if line and not line.startswith("#")
]
# Tests with this in their name run on both legs, also those of files that are left to the first.
VERSIONED = "scikit_learn"
# Suites that run on both legs test the use of these by our models, and the use of steps and
# splitters by models and searches.
FOUNDATIONS = ("sklearn.base", "sklearn.exceptions", "sklearn.frozen", "sklearn.utils.multiclass")
STEPS = ("sklearn.compose", "sklearn.impute", "sklearn.pipeline", "sklearn.preprocessing")
SPLITTERS = tuple(
    f"sklearn.model_selection.{name}"
    for name in (
        *("KFold", "ShuffleSplit", "StratifiedKFold", "TimeSeriesSplit"),
        "train_test_split",
    )
)
HARMLESS = (
    *(*FOUNDATIONS, "sklearn.utils.validation", *STEPS, *SPLITTERS),
    # Data, and references for our results.
    *("sklearn.datasets", "sklearn.linear_model", "sklearn.metrics", "sklearn.svm"),
    "sklearn.dummy",
)
ON_BOTH_LEGS = (
    *("tests/base/recording/test_hooks.py", "tests/base/test_scikit_learn.py"),
    *("tests/model_selection/test_contract.py", "tests/model_selection/test_every_estimator.py"),
    *("tests/model_selection/test_records.py", "tests/model_selection/test_release.py"),
    *(
        "tests/model_selection/test_scikit_learn_search.py",
        "tests/preprocessing/test_stateless.py",
    ),
    *("tests/test_door.py", "tests/test_groups.py", "tests/test_recording.py"),
    "tests/testing/test_check_private_estimator.py",
)


@cache
def modules_of_tests() -> dict[str, Module]:
    """Return the modules of tests by their dotted names; each process of tests imports this."""
    found = read_package(ROOT / "tests")
    return {name.replace(ROOT_NAME, "tests", 1): module for name, module in found.items()}


def with_helpers(name: str, seen: set[str]) -> set[str]:
    """Return a module of tests and the modules that it imports."""
    if name not in seen:
        seen.add(name)
        for imported in modules_of_tests()[name].imports:
            helper = module_of(imported.name, modules_of_tests())
            if helper:
                with_helpers(helper, seen)
    return seen


def is_left(name: str) -> bool:
    """Return whether a module of tests is left to the first leg."""
    file = Path("tests", modules_of_tests()[name].file)
    return any(path.as_posix() in LEFT for path in (file, *file.parents))


def may_change(name: str) -> bool:
    """Return whether another version of scikit-learn may change what an imported name does."""
    is_harmless = any(is_within(name, each) for each in HARMLESS)
    return (is_within(name, "sklearn") and not is_harmless) or VERSIONED in name


def what_may_change(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield the uses of such names by functions that do not say so in their names."""
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    names = set()
    for node in imports:
        start = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
        for alias in node.names:
            if may_change(f"{start}{alias.name}"):
                names.add(alias.asname or alias.name.partition(".")[0])
    defined = {getattr(node, "name", "") for node in tree.body}
    names |= set(filter(may_change, defined))

    def uses_below(node: ast.AST, place: str) -> Iterator[tuple[str, str]]:
        for child in ast.iter_child_nodes(node):
            inside = child.name if isinstance(child, ast.FunctionDef | ast.ClassDef) else place
            if isinstance(child, ast.Name) and child.id in names:
                yield inside, child.id
            if VERSIONED not in inside and inside != "__sklearn_tags__":
                yield from uses_below(child, inside)

    yield from uses_below(tree, "the module")


def test_what_only_the_first_leg_runs_cannot_depend_on_scikit_learn() -> None:
    assert all((ROOT / path).exists() for path in LEFT if path.startswith("tests/"))
    seen: set[str] = set()
    for name in filter(is_left, modules_of_tests()):
        with_helpers(name, seen)
    assert len(seen) > 50
    for name in seen:
        module = modules_of_tests()[name]
        assert list(what_may_change(module.tree)) == [], name


def test_what_may_change_is_found_unless_a_name_says_so() -> None:
    source = """
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator
def check_scikit_learn(): check_estimator
def test_scikit_learns_checks(): check_scikit_learn
def test_others(): clone, check_scikit_learn
class TestSearch:
    def test_it(self): check_estimator
"""
    found = [("test_others", "check_scikit_learn"), ("test_it", "check_estimator")]
    assert list(what_may_change(ast.parse(source))) == found


def test_folders_that_the_second_leg_does_not_collect_have_no_test_for_both() -> None:
    for name, module in modules_of_tests().items():
        parents = (path.as_posix() for path in Path("tests", module.file).parents)
        if any(path in LEFT for path in parents):
            assert not any(may_change(imported.name) for imported in module.imports), name


def test_suites_that_look_for_changes_in_scikit_learn_run_on_both_legs() -> None:
    names = {
        Path("tests", module.file).as_posix(): name for name, module in modules_of_tests().items()
    }
    assert not any(is_left(names[file]) for file in ON_BOTH_LEGS)


def test_doctests_that_only_the_first_leg_runs_see_no_scikit_learn() -> None:
    layers = [path.removeprefix("skdptune/") for path in LEFT if path.startswith("skdptune/")]
    assert layers
    assert all((PACKAGE / layer).is_dir() for layer in layers)
    visible = LAYERS[: max(map(LAYERS.index, layers)) + 1]
    others = OPTIONAL - {"pandas"} | {"sklearn"}
    for name, module in our_modules().items():
        if any(is_within(name, f"{ROOT_NAME}.{layer}") for layer in visible):
            roots = {imported.name.partition(".")[0] for imported in module.imports}
            assert roots.isdisjoint(others), name


def test_nightly_runs_slow_tests_of_diffprivlib_where_it_is() -> None:
    # Only the first leg has diffprivlib.
    nightly = (ROOT / ".ci" / "nightly").read_text("utf-8")
    listed = set(re.findall(r"^    (tests/\S+\.py)$", nightly, re.MULTILINE))
    assert listed
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        text = file.read_text("utf-8")
        name = file.relative_to(ROOT).as_posix()
        is_slow = "mark.slow" in text
        assert is_slow or name not in listed
        if is_slow and file.name != Path(__file__).name:
            assert "diffprivlib" not in text or name in listed, name


def test_folders_that_the_second_leg_does_not_collect_have_no_cases_of_their_own_there() -> None:
    for folder in (ROOT / path for path in LEFT if (ROOT / path).is_dir()):
        for file in folder.rglob("*.py"):
            # Parameters that an extra adds ran on no leg, and were not skipped.
            assert "HAS_" not in file.read_text("utf-8"), file


EXAMPLES = """
import pytest

def test_right(): pass
def test_wrong(): assert False
def test_passed_over(): pytest.skip("why")
@pytest.mark.xfail
def test_known_fault(): assert False
def test_scikit_learns_checks(): pass
"""


WHOLE = """
import os, pytest

if "SKDPTUNE_RAN" in os.environ:
    pytest.skip("imported", allow_module_level=True)

def test_right(): pass
"""


def run_pytest(folder: Path, **settings: str) -> set[str]:
    """Run the tests of a folder separately, and return its records."""
    outcomes = folder / "outcomes"
    outcomes.write_text("")
    # Without the settings of the surrounding pytest or .ci/run.
    own = {n: v for n, v in os.environ.items() if not n.startswith(("PYTEST", "SKDPTUNE"))}
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"],
        cwd=folder,
        capture_output=True,
        env=own | {"SKDPTUNE_OUTCOMES": str(outcomes)} | settings,
    )
    return set(outcomes.read_text().splitlines())


def test_only_what_ran_on_the_first_leg_is_left_to_it(tmp_path: Path) -> None:
    shutil.copy(ROOT / "conftest.py", tmp_path)
    for name in ("first", "both"):
        (tmp_path / "tests" / name).mkdir(parents=True)
        (tmp_path / "tests" / name / f"test_{name}.py").write_text(EXAMPLES)
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".ci" / "first-leg-only").write_text(
        "# Why.\ntests/first/test_first.py\ntests/whole\n"
    )
    (tmp_path / "tests" / "whole").mkdir()
    (tmp_path / "tests" / "whole" / "test_whole.py").write_text(WHOLE)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    first = run_pytest(tmp_path)
    file = "tests/{0}/test_{0}.py"
    assert first == {
        f"{word} {file.format(name)}::test_{test}"
        for name in ("first", "both")
        for word, test in (
            *(("ran", "right"), ("ran", "known_fault"), ("ran", "scikit_learns_checks")),
            ("skipped", "passed_over"),
        )
    } | {"ran tests/whole/test_whole.py::test_right"}
    (tmp_path / "first").write_text("\n".join(first))
    second = run_pytest(tmp_path, SKDPTUNE_RAN=str(tmp_path / "first"))
    assert first - second == {
        f"ran {file.format('first')}::test_{test}" for test in ("right", "known_fault")
    } | {"ran tests/whole/test_whole.py::test_right"}
    assert second < first, "tests/whole is not even imported"


def test_a_test_skipped_on_both_legs_is_named(tmp_path: Path) -> None:
    def check(*lines: str) -> tuple[int, str]:
        (tmp_path / "outcomes").write_text("\n".join(lines))
        script = [sys.executable, str(ROOT / ".ci" / "skipped.py"), str(tmp_path / "outcomes")]
        done = subprocess.run(script, capture_output=True, text=True)
        return done.returncode, done.stdout.strip()

    ran = ["skipped tests/a.py::one", "ran tests/a.py::one", "skipped tests/b.py"]
    assert check(*ran, "ran tests/b.py::two[x y]") == (0, "Every test ran on a leg.")
    assert check(*ran) == (1, "tests/b.py")
    assert check(*ran[:1], "ran tests/b.py::two") == (1, "tests/a.py::one")
