"""The site: what its pages say runs, and its reference has every public name."""

from __future__ import annotations

import importlib
import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import skdptune

DOCS = Path(__file__).parents[1] / "docs"
# Pages whose code is run, from the first block to the last.
RUN = ("start", "ledger", "audits", "migrating")
NEEDS = re.compile(r"# needs: (\w+)")
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
REFERENCE = DOCS / "api"
NAME = re.compile(r"^   (\w+)$", re.MULTILINE)
MODULE = re.compile(r"^\.\. currentmodule:: (\S+)$", re.MULTILINE)

pytestmark = pytest.mark.skipif(not DOCS.joinpath("conf.py").exists(), reason="no site here")


@pytest.mark.parametrize("page", RUN)
def test_code_of_a_page_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    X = np.random.default_rng(0).normal(size=(2000, 3))
    names: dict[str, object] = {"X": X, "y": X[:, 0] > 0.0}
    blocks = BLOCK.findall((DOCS / f"{page}.md").read_text(encoding="utf-8"))
    assert len(blocks) >= 3
    for block in blocks:
        needed = NEEDS.match(block)
        if needed is None or find_spec(needed[1]) is not None:
            exec(compile(block, f"{page}.md", "exec"), names)


@pytest.mark.parametrize("page", sorted(path.stem for path in REFERENCE.glob("*.rst")))
def test_reference_has_every_public_name_once(page: str) -> None:
    text = (REFERENCE / f"{page}.rst").read_text(encoding="utf-8")
    (module,) = MODULE.findall(text)
    try:
        public = importlib.import_module(module).__all__
    except ImportError as error:
        pytest.skip(f"{module} needs an extra: {error}")
    assert sorted(NAME.findall(text)) == sorted(public)


def test_reference_has_every_public_module() -> None:
    # The installed one, which need not be beside the site.
    package = Path(skdptune.__file__).parent
    folders = {f"skdptune.{path.parent.name}" for path in package.glob("[!_]*/__init__.py")}
    texts = [path.read_text(encoding="utf-8") for path in REFERENCE.glob("*.rst")]
    found = {module for text in texts for module in MODULE.findall(text)}
    assert folders | {"skdptune.base.protocol"} == found


def test_every_page_is_in_the_table_of_contents() -> None:
    pages = [path for path in DOCS.rglob("*.md") if "_build" not in path.parts]
    entries = set()
    for path in pages:
        for tree in re.findall(r"```\{toctree\}\n(.*?)```", path.read_text("utf-8"), re.DOTALL):
            entries |= {re.sub(r".*<(.*)>", r"\1", line).strip() for line in tree.splitlines()}
    listed = {path.relative_to(DOCS).with_suffix("").as_posix() for path in pages} - {"index"}
    assert listed <= entries
