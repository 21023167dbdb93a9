"""The explorer of tuning costs: its figures are close upper bounds, also in the browser."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import math
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "explorer.md"
STATIC = ROOT / "docs" / "_static"
GENERATOR = ROOT / "benchmarks" / "explorer.py"
SCRIPT = STATIC / "explorer.js"
FENCED = re.compile(r"^```\{raw\} html\n(.*?)^```$|^```python\n(.*?)^```$", re.M | re.S)
# The search uses a twentieth of the rows.
SHARES = {"part": 0.95, "part_rdp": 0.95}

pytestmark = pytest.mark.skipif(
    not (PAGE.exists() and GENERATOR.exists()), reason="no site or no benchmarks here"
)


@pytest.fixture(scope="module")
def explorer() -> Iterator[ModuleType]:
    """Return the generator of the table, which imports another benchmark."""
    specification = importlib.util.spec_from_file_location("explorer", GENERATOR)
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(GENERATOR.parent))
        specification.loader.exec_module(module)
        yield module
    sys.modules.pop("accounting", None)


@pytest.fixture(scope="module")
def table(explorer: ModuleType) -> dict[str, Any]:
    return explorer.read_table()


# Figures ---------------------------------------------------------------------------------------


def check_figures(explorer: ModuleType, table: dict[str, Any], count: int, seed: int) -> None:
    """Shown noise is slightly above the exact one, and for Rényi bounds close to it."""
    errors = explorer.log_errors(table, count, seed, explorer.shown)
    assert set(errors) == {*explorer.KEYS, "composition"}
    for way, found in errors.items():
        assert len(found) == count or way in explorer.KINKED
        for noise, error, setting in found:
            stated = table["errors"][way][explorer.band_of(noise)][1]
            least, most = (-0.05, 0.15) if way in explorer.KINKED else (0.0, max(2 * stated, 0.02))
            assert least <= math.expm1(error) <= most, (way, setting)


def test_shown_noise_is_enough_and_close(explorer: ModuleType, table: dict[str, Any]) -> None:
    check_figures(explorer, table, count=2, seed=11)


@pytest.mark.slow
def test_shown_noise_is_enough_and_close_at_many_settings(
    explorer: ModuleType, table: dict[str, Any]
) -> None:
    check_figures(explorer, table, count=60, seed=12)


def test_many_runs_together_are_one_long_run(explorer: ModuleType, table: dict[str, Any]) -> None:
    setting = {"rate": 0.05, "steps": 300, "runs": 7, "delta": 1e-6, "epsilon": 2.0}
    noise = explorer.interpolated(table, "untuned", setting | {"steps": 7 * 300})
    count = explorer.Geometric.from_mean(7)
    cost, _ = explorer.WAYS["publish all 20 runs"]
    exact = explorer.calibrate(
        lambda noise: cost(explorer.run_of(noise, 0.05, 300), count), 2.0, 1e-6, guess=noise
    ).value
    long = explorer.exact_noise("untuned", setting | {"steps": 7 * 300}, noise)
    assert exact == pytest.approx(long, rel=1e-3)


def test_table_is_small_and_reads_as_one_script(table: dict[str, Any]) -> None:
    text = (STATIC / "explorer-table.js").read_text(encoding="utf-8")
    assert len(text) < 300_000
    assert text.count("\n") == 1
    assert set(table) == {"axes", "bands", "errors", "example", "margins", "points", "ways"}


def test_quick_table_is_made(explorer: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {"untuned": explorer.KEYS["untuned"], "envelope": explorer.KEYS["envelope"]}
    monkeypatch.setattr(explorer, "KEYS", keys)
    grid = explorer.Grid((0.2, 0.1), (5, 20), (5.0, 20.0), (1e-6, 1e-5), (0.5, 1.0, 2.0))
    table = explorer.make_table(grid, (5, 20))
    # At a node, the exact figure is shown.
    node = {"rate": 0.1, "steps": 200, "runs": 20.0, "delta": 1e-5, "epsilon": 1.0}
    for way in keys:
        noise = explorer.interpolated(table, way, node)
        assert noise == pytest.approx(explorer.exact_noise(way, node, noise), rel=2e-3)


# The page --------------------------------------------------------------------------------------


def test_static_table_has_the_exact_figures_of_the_first_setting(table: dict[str, Any]) -> None:
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if "| 20" in line]
    order = ("composition", "rdp", "profile", "envelope", "part_rdp", "part")
    exact = table["example"]["noise"]
    assert len(lines) == len(order)
    for line, way in zip(lines, order, strict=True):
        noise, ratio = re.findall(r"\d+\.\d\d", line)
        needed = exact[way] / SHARES.get(way, 1.0)
        assert float(noise) == math.ceil(100 * needed) / 100
        assert float(ratio) == pytest.approx(needed / exact["untuned"], abs=0.006)


def test_page_states_the_measured_errors(table: dict[str, Any]) -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert f"at {table['points']} random settings" in text
    figure = r"(-?[\d.]+)"
    row = rf"^\| .* \| {figure} \| {figure} \| {figure} to {figure} \| {figure} to {figure} \|$"
    lines = re.findall(row, text, re.MULTILINE)
    assert len(lines) == len(table["errors"])
    for line, (way, errors) in zip(lines, table["errors"].items(), strict=True):
        margins = table["margins"].get(way, table["margins"]["others"])
        wanted = [*reversed(margins), *errors[1], *errors[0]]
        assert [float(each) for each in line] == pytest.approx(
            [100 * each for each in wanted], abs=0.0051
        )


def blocks() -> list[tuple[str, str]]:
    """Return raw HTML and Python of the page, in order."""
    return FENCED.findall(PAGE.read_text(encoding="utf-8"))


def test_code_of_the_page_gives_its_figures(table: dict[str, Any]) -> None:
    plan, exact = [code for _, code in blocks() if code]
    exact_noise = table["example"]["noise"]
    names: dict[str, Any] = {}
    exec(compile(plan.rpartition("print")[0], "plan", "exec"), names)
    row = names["search"].plan(32_561, public_validation=True, compare=False).row
    needed = exact_noise["part"] / 0.95
    assert needed <= row.effective_noise * (1 + 1e-3) <= 1.006 * needed
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(exact, "exact", "exec"), {})
    found = [float(line.split()[-1]) for line in printed.getvalue().splitlines()]
    order = ("untuned", "composition", "rdp", "profile", "envelope", "part_rdp", "part")
    wanted = [exact_noise[way] / SHARES.get(way, 1.0) for way in order]
    assert found == pytest.approx(wanted, rel=1e-3)
