"""The examples run as a newcomer would run them, and say something."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "examples"
# CI runs this one as the README's main command.
MAIN = "tune_logistic_regression"
SLOW = ("pareto_front", "subsampled_tuning_of_nets")
# What an example takes beside the package itself.
NEEDS = {
    "doubling_threshold": "matplotlib",
    "own_table": "pandas",
    "pareto_front": "moocore",
    "subsampled_tuning_of_nets": "opacus",
    "tune_a_table": "pandas",
}
NAMES = sorted(path.stem for path in FOLDER.glob("*.py"))


def marked(name: str) -> object:
    slow = [pytest.mark.slow] if name in SLOW else []
    return pytest.param(name, marks=slow)


@pytest.mark.parametrize("name", [marked(name) for name in NAMES if name != MAIN])
def test_example_runs(name: str, tmp_path: Path) -> None:
    needed = NEEDS.get(name, "numpy")
    if find_spec(needed) is None:
        pytest.skip(f"{needed} is not installed")
    done = subprocess.run(
        [sys.executable, "-W", "error::FutureWarning", FOLDER / f"{name}.py"],
        cwd=tmp_path,
        env=os.environ | {"MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) >= 5


def test_every_example_says_what_it_is_about() -> None:
    assert len(NAMES) >= 7
    for name in NAMES:
        first = (FOLDER / f"{name}.py").read_text(encoding="utf-8").splitlines()[0]
        assert first.startswith('"""') and first.rstrip('"').endswith((".", "?")), name
