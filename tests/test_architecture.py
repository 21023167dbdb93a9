"""The figures of docs/architecture.md are those of the code."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from skdptune import model_selection
from skdptune.linear_model import DPLogisticRegression
from skdptune.linear_model._solvers._noisy_gradient import ClippedGradients
from skdptune.mechanisms import _noisy_gradient_plan
from tests.structure import PACKAGE

PAGE = Path(__file__).parent.parent / "docs" / "architecture.md"
X = np.random.default_rng(0).normal(size=(3000, 3))
Y = X[:, 0] > 0


def path_to(
    monkeypatch: pytest.MonkeyPatch,
    place: Any,
    name: str,
    go: Callable[[], Any],
    through: str | None = None,
) -> str:
    """Return the number of functions of the package on the way to one, and of their files."""
    path: list[tuple[str, str]] = []
    original = getattr(place, name)

    def noted(*arguments: Any, **settings: Any) -> Any:
        frames = list(_frames(sys._getframe(1)))
        if not path and (through is None or through in {function for _, function in frames}):
            path.extend(frames)
        return original(*arguments, **settings)

    monkeypatch.setattr(place, name, noted)
    go()
    return f"{len(path)} in {len({file for file, _ in path})} files"


def _frames(frame: Any) -> Iterator[tuple[str, str]]:
    while frame is not None:
        code = frame.f_code
        if PACKAGE in Path(code.co_filename).parents:
            yield code.co_filename, code.co_name
        frame = frame.f_back


def search() -> Any:
    return model_selection.DPRandomSearchCV(
        DPLogisticRegression(solver="sgd", epochs=1),
        {"C": [0.1, 1.0]},
        epsilon=1.0,
        delta=1e-5,
        random_state=0,
        strategy=model_selection.RandomRuns(),
    )


def code_lines(files: list[Path]) -> int:
    """Return the lines without blanks, comments and docstrings."""
    count = 0
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    for file in files:
        text = file.read_text(encoding="utf-8")
        lines = [line.strip() for line in text.splitlines()]
        count += sum(bool(line) and not line.startswith("#") for line in lines)
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, kinds) and ast.get_docstring(node, clean=False) is not None:
                count -= (node.body[0].end_lineno or 0) - node.body[0].lineno + 1
    return count


def test_figures_are_those_of_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    if not PAGE.exists():
        pytest.skip("The page is not in this copy.")
    files = sorted(PACKAGE.rglob("*.py"))
    searches = sorted((PACKAGE / "model_selection").rglob("*.py"))
    kinds = [thing for thing in vars(model_selection).values() if inspect.isclass(thing)]
    # Not from a list of names, so that a new search is measured as well.
    of_search = [kind for kind in kinds if hasattr(kind, "fit") and hasattr(kind, "plan")]
    assert len(of_search) >= 5
    measured = {
        "files of the package": str(len(files)),
        "code lines of the package, in thousands": f"{code_lines(files) / 1000:.1f}",
        "files of the searches": str(len(searches)),
        "most parameters of a search": str(
            max(len(inspect.signature(kind).parameters) for kind in of_search)
        ),
        "functions from ε to the noise of DP-SGD, in a random search": path_to(
            monkeypatch,
            _noisy_gradient_plan,
            "_profile",
            lambda: search().privacy_profile(3000, 3),
        ),
        "functions from X to a clipped gradient, in a random search": path_to(
            monkeypatch,
            ClippedGradients,
            "__call__",
            lambda: search().fit(X, Y),
            # Of a candidate, and not of the trial on made-up data.
            through="fit_and_score",
        ),
    }
    rows = re.findall(r"(?m)^\| ([^|]+) \|.*\| ([^|]+) \|$", PAGE.read_text(encoding="utf-8"))
    stated = {name.strip(): value.strip() for name, value in rows}
    assert {name: stated.get(name) for name in measured} == measured
