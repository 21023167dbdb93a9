"""The examples run as a newcomer would run them, and print something."""

from __future__ import annotations

import ast
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "examples"
# CI runs this one as the README's main command.
MAIN = "tune_logistic_regression"
NAMES = sorted(path.stem for path in FOLDER.glob("*.py"))

pytestmark = pytest.mark.skipif(not FOLDER.exists(), reason="no examples here")


def gallery():
    """Return the module of the site that knows the requirements of examples."""
    specification = importlib.util.spec_from_file_location("gallery", ROOT / "docs" / "gallery.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


# For every change the site's gallery runs them all.
@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NAMES if name != MAIN])
def test_example_runs(name: str, tmp_path: Path) -> None:
    path = FOLDER / f"{name}.py"
    missing = gallery().missing_modules(path)
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    done = subprocess.run(
        [sys.executable, "-W", "error::FutureWarning", path],
        cwd=tmp_path,
        env=os.environ | {"MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) >= 5


@pytest.mark.parametrize("name", NAMES)
def test_example_has_a_title_and_says_what_it_takes(name: str) -> None:
    source = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    first, second, *_ = source.splitlines()
    assert first.startswith('"""') and len(first) > 10
    assert set(second) == {"="} and len(second) >= len(first) - 3
    imported = {
        name.split(".")[0]
        for node in ast.parse(source).body
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    come_with_the_package = {"dp_accounting", "joblib", "numpy", "scipy", "skdptune", "sklearn"}
    unsaid = imported - set(sys.stdlib_module_names) - come_with_the_package
    unsaid -= set(gallery().needed_modules(source))
    # A package that another one of the same extra installs.
    assert unsaid <= {"torch", "moocore", "skorch"}, f"{name} does not say that it needs {unsaid}"


def test_needs_are_read_from_the_docstring() -> None:
    source = '"""Title\n=====\n\nNeeds ``pandas`` and the extras ``nn``\nand ``plot``.\n"""\n'
    assert gallery().needed_modules(source) == ["pandas", "opacus", "matplotlib"]
    assert gallery().needed_modules('"""Title\n=====\n"""\n') == []
