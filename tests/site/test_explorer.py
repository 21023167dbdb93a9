"""The explorer's script reads its table as Python does, and its page shows the results."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

from tests.site.browser import Browser, Tab
from tests.site.conftest import run_script, serve_page
from tests.test_explorer import SHARES, blocks, explorer, pytestmark, table

__all__ = ["explorer", "pytestmark", "table"]

# The script ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve the page's own HTML, scripts and code."""
    numbers = re.compile(r"(?<![\w.\"/])\d[\d_]*(?:\.\d+)?(?:e-\d+)?(?![\w\"/])")
    parts = [
        html or "<pre>" + numbers.sub(r'<span class="mi">\g<0></span>', code) + "</pre>"
        for html, code in blocks()
    ]
    yield from serve_page(tmp_path_factory.mktemp("explorer"), parts)


@pytest.fixture
def in_script(browser: Browser, page: str) -> Iterator[Callable[[str, object], Any]]:
    """Return a function: what an expression in `explorer`, `table` and `data` is."""
    given = "const explorer = module.exports, table = globalThis.tuningTable"
    yield from run_script(browser, page, "explorer.js", given)


def test_browser_and_python_read_the_same(
    explorer: ModuleType, table: dict[str, Any], in_script: Any
) -> None:
    settings = list(explorer.settings(table, 40, seed=5))
    ways = list(explorer.KEYS)
    read = "data.settings.map((one) => data.ways.map((way) => explorer.shown(table, way, one)))"
    found = in_script(read, {"settings": settings, "ways": ways})
    for setting, noises in zip(settings, found, strict=True):
        own = [explorer.shown(table, way, setting) for way in ways]
        assert noises == pytest.approx(own, rel=1e-9)


def test_rows_are_divided_by_their_share(table: dict[str, Any], in_script: Any) -> None:
    setting = {name: table["example"][name] for name in ("rate", "steps", "runs", "delta")}
    setting["epsilon"] = table["example"]["epsilon"]
    rows = in_script("explorer.rows(table, 32561, data)", setting)
    noise = {row["key"]: row["noise"] for row in rows}
    for way, exact in table["example"]["noise"].items():
        assert exact / SHARES.get(way, 1.0) <= noise[way] < 1.08 * exact / SHARES.get(way, 1.0)
    gradients = {row["key"]: row["gradients"] / (32561 * 20) for row in rows}
    assert gradients["untuned"] == pytest.approx(1.0)
    assert gradients["composition"] == gradients["envelope"] == pytest.approx(20.0)
    assert gradients["part"] == pytest.approx(20 * 0.05 + 0.95)


def test_numbers_are_shown_rounded_up(in_script: Any) -> None:
    values = [0.00123401, 0.4, 0.999, 0.99901, 3.001, 12.34, 99.91, 123.4, 4321.0]
    found = in_script("data.map((value) => explorer.upwards(value))", values)
    for text, value in zip(found, values, strict=True):
        assert value <= float(text) <= value * 1.0101


def test_epochs_of_the_code_make_the_steps(in_script: Any) -> None:
    pairs = [
        (rate, steps) for rate in (0.002, 0.0333, 0.05, 0.2, 0.0457) for steps in (7, 23, 499)
    ]
    found = in_script("data.map(([rate, steps]) => explorer.epochsFor(rate, steps))", pairs)
    for (rate, steps), epochs in zip(pairs, found, strict=True):
        assert math.ceil(float(epochs) / rate) == steps


def test_whatever_a_link_says_becomes_a_setting_of_the_table(
    table: dict[str, Any], in_script: Any
) -> None:
    links: list[dict[str, str]] = [
        {},
        {"eps": "1e9", "n": "-3", "rate": "x", "steps": "0", "runs": "NaN", "delta": "toString"},
        {"eps": "0.123456", "n": "5e6", "rate": "0.2", "steps": "99999", "delta": "n^-1.1"},
        {"rate": "0.002", "steps": "1", "delta": "0.5", "n": "1e99", "runs": "1e99"},
    ]
    read = "data.map((one) => explorer.settingOf(table, explorer.tidied(table, one)))"
    for found in in_script(read, links):
        places = found | {"epochs": found["rate"] * found["steps"]}
        for name, nodes in table["axes"].items():
            assert min(nodes) * (1 - 1e-9) <= places[name] <= max(nodes) * (1 + 1e-9)


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
    explorer: ModuleType, table: dict[str, Any], browser: Browser, page: str
) -> None:
    tab = browser.open(
        f"{page}#eps=2.5&rate=0.01&steps=1500&runs=30&n=90000&delta=3e-6", width=1280
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
    assert tab.complaints(page) == []
    tab.close()


def test_keys_change_figures_code_and_address(browser: Browser, page: str) -> None:
    tab = browser.open(page, width=400)
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
    assert tab.complaints(page) == []
    tab.close()


def test_steps_follow_the_rate(browser: Browser, page: str) -> None:
    tab = browser.open(f"{page}#rate=0.2&steps=500", width=400)
    press(tab, "rate-slider", "Home", 36)
    values = "['rate', 'steps'].map((name) => document.getElementById('explorer-' + name).value)"
    assert tab.evaluate(values) == ["0.002", "500"]
    press(tab, "rate-slider", "End", 35)
    tab.evaluate("location.hash = '#rate=0.2&steps=90000'")
    assert tab.wait_until("document.getElementById('explorer-steps').value === '500'")
    assert tab.complaints(page) == []
    tab.close()
