"""The figures of docs/architecture.md are those of the code."""

from __future__ import annotations

import ast
import inspect
import itertools
import re
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator
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


Step = tuple[str, str]


def path_to(
    monkeypatch: pytest.MonkeyPatch,
    place: Any,
    name: str,
    go: Callable[[], Any],
    through: str | None = None,
) -> list[Step]:
    """Return the functions of the package on the way to one, outermost first."""
    path: list[Step] = []
    original = getattr(place, name)

    def noted(*arguments: Any, **settings: Any) -> Any:
        frames = list(_frames(sys._getframe(1)))
        if not path and (through is None or through in {function for _, function in frames}):
            path.extend(reversed(frames))
        return original(*arguments, **settings)

    with monkeypatch.context() as patched:
        patched.setattr(place, name, noted)
        go()
    return path


def counted(steps: Collection[Step]) -> str:
    return f"{len(steps)} in {len({file for file, _ in steps})} files"


def walk(path: list[Step]) -> str:
    """Return one line for each stay in a file, as the page shows them."""
    stays = itertools.groupby(path, key=lambda step: step[0])
    return "\n".join(
        f"{Path(file).relative_to(PACKAGE).as_posix():<54}{' → '.join(name for _, name in stay)}"
        for file, stay in stays
    )


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
        # So that it searches, however few the records.
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


def functions(files: list[Path]) -> int:
    kinds = ast.FunctionDef | ast.AsyncFunctionDef
    trees = (ast.parse(file.read_text(encoding="utf-8")) for file in files)
    return sum(isinstance(node, kinds) for tree in trees for node in ast.walk(tree))


def of_ours(kind: type) -> list[type]:
    # Without those that fill gaps of an older scikit-learn.
    return [one for one in kind.__mro__ if one.__module__.startswith("skdptune.model_selection")]


def test_figures_are_those_of_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    if not PAGE.exists():
        pytest.skip("The page is not in this copy.")
    page = PAGE.read_text(encoding="utf-8")
    files = sorted(PACKAGE.rglob("*.py"))
    searches = sorted((PACKAGE / "model_selection").rglob("*.py"))
    kinds = [thing for thing in vars(model_selection).values() if inspect.isclass(thing)]
    # Not from a list of names, so that a new search is measured as well.
    of_search = [kind for kind in kinds if hasattr(kind, "fit") and hasattr(kind, "plan")]
    assert len(of_search) >= 5
    defined = Counter(
        name
        for one in {one for kind in of_search for one in of_ours(kind)}
        for name, thing in vars(one).items()
        if inspect.isroutine(thing) and name[0] == "_" and not name.startswith("__")
    )
    to_noise = path_to(
        monkeypatch,
        _noisy_gradient_plan,
        "_profile",
        lambda: search().privacy_profile(3000, 3),
    )
    to_gradient = path_to(
        monkeypatch,
        ClippedGradients,
        "__call__",
        lambda: search().fit(X, Y),
        # Of a candidate, and not of the trial on made-up data.
        through="fit_and_score",
    )
    measured = {
        "files of the package": str(len(files)),
        "code lines of the package, in thousands": f"{code_lines(files) / 1000:.1f}",
        "files of the searches": str(len(searches)),
        "code lines of the searches, in thousands": f"{code_lines(searches) / 1000:.1f}",
        "functions of the searches, in hundreds": f"{functions(searches) / 100:.1f}",
        "private methods that more than one class of a search defines": str(
            sum(count > 1 for count in defined.values())
        ),
        "classes of the searches from which one derives, itself included": str(
            max(len(of_ours(kind)) for kind in of_search)
        ),
        "most parameters of a search": str(
            max(len(inspect.signature(kind).parameters) for kind in of_search)
        ),
        "functions from ε to the noise of DP-SGD, in a random search": counted(to_noise),
        "functions from X to a clipped gradient, in a random search": counted(to_gradient),
    }
    rows = re.findall(r"(?m)^\| ([^|]+) \|.*\| ([^|]+) \|$", page)
    stated = {name.strip(): value.strip() for name, value in rows}
    assert {name: stated.get(name) for name in measured} == measured
    for path in (to_noise, to_gradient):
        assert f"```\n{walk(path)}\n```" in page, walk(path)
