"""The cost-of-tuning explorer: its figures are enough, close, and the same in the browser."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import math
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.site.browser import Browser, Tab, find_chromium, start_browser
from tests.site.conftest import serve

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "explorer.md"
STATIC = ROOT / "docs" / "_static"
GENERATOR = ROOT / "benchmarks" / "explorer.py"
SCRIPT = STATIC / "explorer.js"
FENCED = re.compile(r"^```\{raw\} html\n(.*?)^```$|^```python\n(.*?)^```$", re.M | re.S)
# A twentieth of the rows is for the search.
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
    """Shown noise is at least the exact one, and little above it; of Rényi bounds it is close."""
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
    # At a node it is the exact figure.
    node = {"rate": 0.1, "steps": 200, "runs": 20.0, "delta": 1e-5, "epsilon": 1.0}
    for way in keys:
        noise = explorer.interpolated(table, way, node)
        assert noise == pytest.approx(explorer.exact_noise(way, node, noise), rel=2e-3)


# The script ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def node() -> str:
    executable = shutil.which("node")
    if executable is None:
        pytest.skip("There is no Node.js.")
    return executable


def in_node(node: str, expression: str, data: object) -> Any:
    """Return what an expression in `explorer`, `table` and `data` is."""
    program = (
        f"const explorer = require({json.dumps(str(SCRIPT))});"
        f"require({json.dumps(str(STATIC / 'explorer-table.js'))});"
        "const table = globalThis.tuningTable;"
        f"const data = {json.dumps(data)};"
        f"console.log(JSON.stringify({expression}));"
    )
    done = subprocess.run([node, "-e", program], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_browser_and_python_read_the_same(
    explorer: ModuleType, table: dict[str, Any], node: str
) -> None:
    settings = list(explorer.settings(table, 40, seed=5))
    ways = list(explorer.KEYS)
    read = "data.settings.map((one) => data.ways.map((way) => explorer.shown(table, way, one)))"
    found = in_node(node, read, {"settings": settings, "ways": ways})
    for setting, noises in zip(settings, found, strict=True):
        own = [explorer.shown(table, way, setting) for way in ways]
        assert noises == pytest.approx(own, rel=1e-9)


def test_rows_are_divided_by_their_share(table: dict[str, Any], node: str) -> None:
    setting = {name: table["example"][name] for name in ("rate", "steps", "runs", "delta")}
    setting["epsilon"] = table["example"]["epsilon"]
    rows = in_node(node, "explorer.rows(table, 32561, data)", setting)
    noise = {row["key"]: row["noise"] for row in rows}
    for way, exact in table["example"]["noise"].items():
        assert exact / SHARES.get(way, 1.0) <= noise[way] < 1.08 * exact / SHARES.get(way, 1.0)
    gradients = {row["key"]: row["gradients"] / (32561 * 20) for row in rows}
    assert gradients["untuned"] == pytest.approx(1.0)
    assert gradients["composition"] == gradients["envelope"] == pytest.approx(20.0)
    assert gradients["part"] == pytest.approx(20 * 0.05 + 0.95)


def test_numbers_are_shown_rounded_up(node: str) -> None:
    values = [0.00123401, 0.4, 0.999, 0.99901, 3.001, 12.34, 99.91, 123.4, 4321.0]
    found = in_node(node, "data.map((value) => explorer.upwards(value))", values)
    for text, value in zip(found, values, strict=True):
        assert value <= float(text) <= value * 1.0101


def test_epochs_of_the_code_make_the_steps(node: str) -> None:
    pairs = [
        (rate, steps) for rate in (0.002, 0.0333, 0.05, 0.2, 0.0457) for steps in (7, 23, 499)
    ]
    found = in_node(node, "data.map(([rate, steps]) => explorer.epochsFor(rate, steps))", pairs)
    for (rate, steps), epochs in zip(pairs, found, strict=True):
        assert math.ceil(float(epochs) / rate) == steps


def test_whatever_a_link_says_becomes_a_setting_of_the_table(
    table: dict[str, Any], node: str
) -> None:
    links: list[dict[str, str]] = [
        {},
        {"eps": "1e9", "n": "-3", "rate": "x", "steps": "0", "runs": "NaN", "delta": "toString"},
        {"eps": "0.123456", "n": "5e6", "rate": "0.2", "steps": "99999", "delta": "n^-1.1"},
        {"rate": "0.002", "steps": "1", "delta": "0.5", "n": "1e99", "runs": "1e99"},
    ]
    read = "data.map((one) => explorer.settingOf(table, explorer.tidied(table, one)))"
    for found in in_node(node, read, links):
        places = found | {"epochs": found["rate"] * found["steps"]}
        for name, nodes in table["axes"].items():
            assert min(nodes) * (1 - 1e-9) <= places[name] <= max(nodes) * (1 + 1e-9)


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


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    executable = find_chromium()
    if executable is None:
        pytest.skip("There is no Chromium.")
    with start_browser(executable) as browser:
        yield browser


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve the page's own HTML, scripts and code, without the rest of the site."""
    folder = tmp_path_factory.mktemp("explorer")
    shutil.copytree(STATIC, folder / "_static")
    numbers = re.compile(r"(?<![\w.\"/])\d[\d_]*(?:\.\d+)?(?:e-\d+)?(?![\w\"/])")
    parts = [
        html or "<pre>" + numbers.sub(r'<span class="mi">\g<0></span>', code) + "</pre>"
        for html, code in blocks()
    ]
    head = '<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>Explorer</title>'
    head += '<link rel="icon" href="data:,">'
    (folder / "index.html").write_text(head + "\n".join(parts), encoding="utf-8")
    yield from serve(folder)


def shown_noise(tab: Tab) -> dict[str, str]:
    """Return the noise of each way, as the page's table shows it."""
    return tab.evaluate(
        "Object.fromEntries([...document.querySelectorAll('[data-way]')]"
        ".map((row) => [row.dataset.way, row.cells[1].textContent]))"
    )


def press(tab: Tab, field: str, key: str, code: int) -> None:
    """Focus a field and press a key."""
    tab.evaluate(f"document.getElementById('explorer-{field}').focus()")
    for kind in ("rawKeyDown", "keyUp"):
        tab.browser.call(
            "Input.dispatchKeyEvent", tab.session, type=kind, key=key, windowsVirtualKeyCode=code
        )


def test_page_shows_what_the_table_says_of_a_link(
    explorer: ModuleType, table: dict[str, Any], browser: Browser, origin: str
) -> None:
    tab = browser.open(
        f"{origin}#eps=2.5&rate=0.01&steps=1500&runs=30&n=90000&delta=3e-6", width=1280
    )
    setting = {"rate": 0.01, "steps": 1500, "runs": 30, "delta": 3e-6, "epsilon": 2.5}
    found = shown_noise(tab)
    assert set(found) == {*explorer.KEYS, "composition"}
    for way in explorer.KEYS:
        noise = explorer.shown(table, way, setting) / SHARES.get(way, 1.0)
        assert noise <= float(found[way]) <= 1.0101 * noise
    code = tab.evaluate("[...document.querySelectorAll('pre')].map((one) => one.textContent)")
    assert "batch_size=0.01, epochs=15)" in code[0]
    assert "n_iter=30" in code[0] and "plan(90_000," in code[0] and "fraction=0.05" in code[0]
    assert "= 0.01, 1_500, 30, 2.5, 3e-6" in code[1]
    assert tab.evaluate("document.getElementById('explorer-delta').value") == "3e-6"
    assert tab.evaluate("document.getElementById('explorer-static').hidden")
    assert tab.complaints(origin) == []
    tab.close()


def test_keys_change_figures_code_and_address(browser: Browser, origin: str) -> None:
    tab = browser.open(origin, width=400)
    before = shown_noise(tab)
    press(tab, "eps-slider", "ArrowRight", 39)
    assert tab.evaluate("document.getElementById('explorer-eps').value") == "1.01"
    after = shown_noise(tab)
    assert all(float(after[way]) <= float(before[way]) for way in before)
    assert after != before
    assert "eps=1.01" in tab.evaluate("location.hash")
    assert "epsilon=1.01" in tab.evaluate("document.querySelector('pre').textContent")
    press(tab, "delta", "ArrowDown", 40)
    assert "delta=1e-6" in tab.evaluate("document.querySelector('pre').textContent")
    tab.evaluate("document.querySelector('#explorer [type=reset]').click()")
    assert shown_noise(tab) == before
    assert tab.complaints(origin) == []
    tab.close()


def test_steps_follow_the_rate(browser: Browser, origin: str) -> None:
    tab = browser.open(f"{origin}#rate=0.2&steps=500", width=400)
    press(tab, "rate-slider", "Home", 36)
    values = "['rate', 'steps'].map((name) => document.getElementById('explorer-' + name).value)"
    assert tab.evaluate(values) == ["0.002", "500"]
    press(tab, "rate-slider", "End", 35)
    tab.evaluate("location.hash = '#rate=0.2&steps=90000'")
    assert tab.wait_until("document.getElementById('explorer-steps').value === '500'")
    assert tab.complaints(origin) == []
    tab.close()
