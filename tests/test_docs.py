"""The code on the site's pages runs, and the reference contains every public name."""

from __future__ import annotations

import importlib
import math
import os
import re
import subprocess
import sys
import warnings
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tests.site.links import slug
from tests.structure import PACKAGE

DOCS = Path(__file__).parents[1] / "docs"
# Pages whose code is run, from the first block to the last.
RUN = (
    "accounting",
    "assistants",
    "audits",
    "clusters",
    "faq",
    "ledger",
    "migrating",
    "nets",
    "persons",
    "preprocessing",
    "public",
    "searches",
    "start",
    "threat_model",
)
NEEDS = re.compile(r"# needs: (\w+)")
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SCRIPT = re.compile(r"^```py\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# What SLURM's commands do, with processes of this machine as jobs.
COMMANDS = {
    "sbatch": """job=$(cat "$1")
setsid bash -c "$job" >/dev/null 2>&1 &
echo "Submitted batch job $!\"""",
    "scancel": 'for job in "$@"; do kill -- "-$job"; done',
}
REFERENCE = DOCS / "api"
NAME = re.compile(r"^   (\w+)$", re.MULTILINE)
MODULE = re.compile(r"^\.\. currentmodule:: (\S+)$", re.MULTILINE)

pytestmark = pytest.mark.skipif(not DOCS.joinpath("conf.py").exists(), reason="no site here")


@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize("page", RUN)
def test_code_of_a_page_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    X = np.random.default_rng(0).normal(size=(2000, 3))
    names: dict[str, object] = {"X": X, "y": X[:, 0] > 0.0}
    blocks = BLOCK.findall((DOCS / f"{page}.md").read_text(encoding="utf-8"))
    assert blocks
    for written in blocks:
        # The same code on fewer rows.
        block = written.replace("20_000", "5_000")
        needed = NEEDS.match(block)
        if needed is None or find_spec(needed[1]) is not None:
            with warnings.catch_warnings():
                if needed is not None:
                    # Warnings of an optional library are ignored.
                    warnings.simplefilter("ignore")
                exec(compile(block, f"{page}.md", "exec"), names)


def test_numbers_of_several_records_are_those_of_the_sum() -> None:
    # Theorem P13: the guarantee for a person with several records.
    text = " ".join((DOCS / "threat_model.md").read_text(encoding="utf-8").split())
    three, asked = (sum(math.exp(place * epsilon) for place in range(3)) for epsilon in (1, 1 / 3))
    # The cost is rounded up, and the requested budget is rounded down.
    assert f"ε = 3 and δ = {math.ceil(three * 10) / 100:.2f} · 10⁻⁵" in text
    assert f"ε = 1/3 *and* δ = {math.floor(100 / asked) / 10} · 10⁻⁷" in text


@pytest.mark.parametrize(
    "page", [DOCS.parent / "README.md", DOCS / "index.md"], ids=["README", "front page"]
)
def test_first_lines_run(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pd = pytest.importorskip("pandas")
    (block,) = BLOCK.findall(page.read_text(encoding="utf-8"))
    assert len(block.splitlines()) <= 16
    rng = np.random.default_rng(0)
    columns = {
        "age": rng.integers(18, 100, 1500),
        "income": rng.choice([2e4, 5e4, None], 1500),
        "sector": rng.choice(["farm", "factory", "office", None], 1500),
        "member": rng.choice([False, True], 1500),
        "joined": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, 1500), "D"),
        "name": "somebody",
    }
    df, y = pd.DataFrame(columns), rng.choice(["no", "yes"], 1500)
    df = df[[name for name in df if f'"{name}": ' in block]]
    exec(compile(block, page.name, "exec"), {"df": df, "y": y, "df_new": df[:5]})
    assert "ε = 1.000 at δ = 1e-06" in capsys.readouterr().out


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
    # The installed package, which may be elsewhere.
    folders = {f"skdptune.{path.parent.name}" for path in PACKAGE.glob("[!_]*/__init__.py")}
    texts = [path.read_text(encoding="utf-8") for path in REFERENCE.glob("*.rst")]
    found = {module for text in texts for module in MODULE.findall(text)}
    assert folders | {"skdptune.base.protocol"} == found


def _properties() -> ModuleType:
    spec = spec_from_file_location("properties", DOCS / "properties.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_table_of_properties_is_what_the_code_says() -> None:
    properties = _properties()
    lines = properties.table().splitlines()
    begun = (DOCS / "choosing.md").read_text(encoding="utf-8").partition(properties.BEGIN)[2]
    written = begun.partition(properties.END)[0].strip().splitlines()
    # Nets need an extra.
    has_nets = find_spec("torch") is not None and find_spec("opacus") is not None
    expected = [line for line in written if has_nets or "neural_network" not in line]
    assert lines == expected, "python docs/properties.py"
    assert len(written) == 2 + len(properties.THEOREMS)


FIGURES = re.compile(r"(?<![\d.])\d*\.\d+(?![\d.])")


def _section(page: str, anchor: str) -> str:
    """Return the text below a heading of a page, up to the next heading of the same level."""
    for part in re.split(r"^## ", (DOCS / page).read_text(encoding="utf-8"), flags=re.MULTILINE):
        if slug(part.partition("\n")[0]) == anchor:
            return part
    raise LookupError(anchor)


def test_figures_of_the_decision_charts_are_those_of_the_benchmarks() -> None:
    text = (DOCS / "choosing.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| .* \| (.*) \| \[.*\]\((benchmarks\.md)#(.*)\) \|$", text, re.M)
    assert len(rows) >= 8
    for figures, page, anchor in rows:
        found = FIGURES.findall(figures)
        section = _section(page, anchor)
        assert found
        assert [each for each in found if each not in section] == []
    # Those in the charts themselves are about searches.
    in_charts = FIGURES.findall(text.partition("## The figures behind")[0])
    section = _section("benchmarks.md", "searches")
    assert in_charts
    assert [each for each in in_charts if each not in section] == []


# Another test below checks that the commands of all papers run at night.
@pytest.mark.slow
@pytest.mark.parametrize("script", ["papers_selection", "papers_subsampling"])
def test_figure_of_a_paper_is_drawn_in_a_small_setting(script: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    command = [DOCS.parent / "benchmarks" / f"{script}.py", "figure-1", "--quick"]
    done = subprocess.run(
        [sys.executable, *command, "--output", tmp_path],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) >= 4
    (picture,) = tmp_path.glob("*-figure-1.png")
    assert 1000 < picture.stat().st_size <= 40_000


@pytest.mark.parametrize("page", ["avent", "ding", "koskela_kulkarni", "koskela_redberg_wang"])
def test_figures_of_a_paper_are_small_pictures_of_commands_that_run_at_night(page: str) -> None:
    text = (DOCS / "papers" / f"{page}.md").read_text(encoding="utf-8")
    nightly = (DOCS.parent / ".ci" / "nightly").read_text(encoding="utf-8").splitlines()
    commands = re.findall(r"`python benchmarks/(papers_\w+\.py (?:figure|table)-\d)", text)
    assert commands
    assert [each for each in commands if f"{each} --quick" not in nightly] == []
    pictures = re.findall(r"\]\(\.\./images/papers/([\w-]+\.png)\)", text)
    assert pictures
    sizes = [(DOCS / "images" / "papers" / name).stat().st_size for name in pictures]
    assert max(sizes) <= 40_000


def test_every_finding_that_costs_privacy_is_a_pitfall_of_its_kind() -> None:
    checks = (DOCS / "checks.md").read_text(encoding="utf-8")
    kinds = dict(re.findall(r"^## (SKP\d+): .*\n\nSeverity: (\w+)\.$", checks, re.MULTILINE))
    assert len(kinds) == checks.count("\n## SKP")
    pitfalls = (DOCS / "pitfalls.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \*\*.*? \| (\w+) \| (.*) \|$", pitfalls, re.MULTILINE)
    assert len(rows) == pitfalls.count("\n| **")
    assert {kind for kind, _ in rows} == {"critical", "theoretical", "negligible"}
    found = {code: kind for kind, text in rows for code in re.findall(r"\[(SKP\d+)\]", text)}
    assert found == {code: kind for code, kind in kinds.items() if kind != "negligible"}


@pytest.mark.slow
def test_the_script_for_slurm_runs_with_stand_ins_for_its_commands(tmp_path: Path) -> None:
    pytest.importorskip("dask_jobqueue")
    pd = pytest.importorskip("pandas")
    (script,) = SCRIPT.findall((DOCS / "clusters.md").read_text(encoding="utf-8"))
    (tmp_path / "script.py").write_text(script, encoding="utf-8")
    rng = np.random.default_rng(0)
    patients = pd.DataFrame(rng.uniform(-1.0, 1.0, size=(2000, 3)), columns=["a", "b", "c"])
    patients.assign(ill=patients.a > 0.0).to_parquet(tmp_path / "patients.parquet")
    commands = tmp_path / "commands"
    commands.mkdir()
    for name, does in COMMANDS.items():
        (commands / name).write_text(f"#!/usr/bin/env bash\n{does}\n", encoding="utf-8")
        (commands / name).chmod(0o700)
    (tmp_path / "keys").mkdir(mode=0o700)
    paths = os.pathsep.join((str(commands), os.environ["PATH"]))
    done = subprocess.run(
        [sys.executable, "script.py"],
        cwd=tmp_path,
        env={**os.environ, "PATH": paths, "PYTHONPATH": str(PACKAGE.parent)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("DPGridSearchCV: ε = 1.000 at δ = 1e-06")
