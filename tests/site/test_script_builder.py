"""The script builder writes scripts that run as they are, and its figures are the library's."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from skdptune.accounting import PrivacyProfile
from skdptune.model_selection._table_model import RULES, families_for
from skdptune.preprocessing import Schema
from tests.site.browser import Browser, Tab
from tests.site.conftest import STATIC, run_script, serve_page

PAGE = STATIC.parent / "script_builder.md"
OPENING = "globalThis.builderTable = "

pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="no site here")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve the page's own HTML and scripts."""
    text = PAGE.read_text(encoding="utf-8")
    parts = re.findall(r"^```\{raw\} html\n(.*?)^```$", text, re.M | re.S)
    yield from serve_page(tmp_path_factory.mktemp("builder"), parts)


@pytest.fixture
def tab(browser: Browser, page: str) -> Iterator[Tab]:
    """Return the open page; it may neither complain nor ask another server."""
    tab = browser.open(page, width=1280)
    yield tab
    assert tab.complaints(page) == []
    tab.close()


@pytest.fixture
def in_script(browser: Browser, page: str) -> Iterator[Callable[[str, object], Any]]:
    """Return a function: what an expression in `builder`, `table` and `data` is."""
    given = "const builder = module.exports, table = globalThis.builderTable"
    yield from run_script(browser, page, "builder.js", given)


@pytest.fixture(scope="module")
def builder_table() -> dict[str, Any]:
    """Return the table that the page reads."""
    return json.loads(
        (STATIC / "builder-table.js").read_text().removeprefix(OPENING).rstrip(";\n")
    )


def fill(tab: Tab, field: str, value: str) -> None:
    """Type into a field, given by a CSS selector."""
    tab.evaluate(
        f"(() => {{ const field = document.querySelector({json.dumps(field)});"
        f" field.value = {json.dumps(value)};"
        " field.dispatchEvent(new Event('input', {bubbles: true})); })()"
    )


def click(tab: Tab, name: str) -> None:
    tab.evaluate(f"document.querySelector('#builder [data-do={name}]').click()")


def shown(tab: Tab, name: str) -> str:
    return tab.evaluate(f"document.querySelector('#builder [data-show={name}]').textContent")


def describe(tab: Tab, columns: list[tuple[str, str, str, bool]], **fields: str) -> None:
    """Fill in columns (name, kind, values, missing) and fields."""
    for place, (name, kind, values, missing) in enumerate(columns):
        if place:
            click(tab, "add")
        row = f"#builder tbody tr:nth-child({place + 1})"
        fill(tab, f"{row} [data-part=kind]", kind)
        fill(tab, f"{row} [data-part=name]", name)
        if kind not in ("drop", "boolean"):
            fill(tab, f"{row} [data-part=values]", values)
        if missing:
            tab.evaluate(f"document.querySelector('{row} [data-part=missing]').click()")
    for name, value in fields.items():
        fill(tab, f"#builder-{name}", value)


def visits(n: int) -> pd.DataFrame:
    """Return a made-up table with all that the page can describe."""
    rng = np.random.default_rng(0)
    pressure = rng.normal(125, 20, n).round()
    return pd.DataFrame(
        {
            'the "age"': np.where(rng.random(n) < 0.1, np.nan, rng.integers(0, 100, n)),
            "pressure": pressure,
            "ward": rng.choice(["surgery", "medicine, old", ""], n),
            "insured": rng.random(n) < 0.5,
            "admitted": rng.choice(["2021-05-01", "2024-01-31"], n),
            "cost": rng.lognormal(6, 1, n).round(2),
            "näme": "somebody",
            "stay": np.where(pressure > 125, "long", "short"),
            "days": (pressure / 20).round(1),
        }
    )


COLUMNS = [
    ('the "age"', "number", "0, 100", True),
    ("pressure", "number", "60, 220", False),
    ("ward", "category", 'surgery, "medicine, old"', True),
    ("insured", "boolean", "", False),
    ("admitted", "date", "2020-01-01, 2030-01-01", False),
    ("cost", "amount", "1, 100000", False),
    ("näme", "drop", "", False),
]


@pytest.mark.parametrize("task", RULES)
def test_script_runs_as_it_is(tab: Tab, tmp_path: Path, task: str) -> None:
    target, labels = ("stay", "short, long") if task == "classifier" else ("days", "0, 15")
    other = "days" if task == "classifier" else "stay"
    describe(
        tab,
        [*COLUMNS, (other, "drop", "", False)],
        target=target,
        task=task,
        labels=labels,
        file="visits.csv",
        n="3000",
        epsilon="2",
    )
    assert shown(tab, "problems") == ""
    code = "document.querySelector('#builder [data-show=script]')"
    assert tab.evaluate(f"getComputedStyle({code}).whiteSpace") == "pre"
    visits(3000).to_csv(tmp_path / "visits.csv", index=False)
    script = tmp_path / "script.py"
    script.write_text(shown(tab, "script"), encoding="utf-8")
    # The checkout is imported where the package is not installed.
    run = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    *_, score = run.stdout.split()
    assert float(score) > (0.8 if task == "classifier" else 0.5)
    # The page and the plan say the same about the cost and the models.
    (first,) = re.findall(r"ε = ([\d.]+) at δ = (\S+?),? in all", shown(tab, "answer"))
    (plan,) = re.findall(r"ε = ([\d.]+) at δ = (\S+) in all", run.stdout)
    assert float(first[0]) == pytest.approx(float(plan[0]))
    assert float(first[1]) == pytest.approx(float(plan[1]))
    family = shown(tab, "facts").split(":")[1].split(",")[0].strip()
    assert family in run.stdout


def test_downloads_are_the_schema_and_the_script(tab: Tab) -> None:
    tab.evaluate(
        "globalThis.files = []; URL.createObjectURL = (blob) => { files.push(blob); return '#' };"
        "URL.revokeObjectURL = () => {}; HTMLAnchorElement.prototype.click = function () {}; 0"
    )
    click(tab, "example")
    click(tab, "schema")
    click(tab, "notebook")
    schema, notebook = tab.evaluate("Promise.all(files.map((one) => one.text()))")
    script = shown(tab, "script")
    names: dict[str, Any] = {}
    exec(script[script.index("from skdptune") : script.index("table =")], names)
    assert Schema.from_json(schema).to_json() == names["schema"].to_json()
    cells = json.loads(notebook)["cells"]
    assert "\n\n".join(cell["source"] for cell in cells) + "\n" == script
    assert len({cell["id"] for cell in cells}) == len(cells)
    # What nbformat 4.5 requires.
    for cell in cells:
        assert {"cell_type", "id", "metadata", "source", "outputs", "execution_count"} <= set(cell)


def test_names_come_from_the_first_line_of_a_file(tab: Tab) -> None:
    content = '\ufeffage,"a, b","say ""x"""\r\n1,secret,3'
    tab.evaluate(
        "(() => { const files = new DataTransfer();"
        f"files.items.add(new File([{json.dumps(content)}], 'a.csv'));"
        "const field = document.getElementById('builder-header'); field.files = files.files;"
        "field.dispatchEvent(new Event('change', {bubbles: true})); })()"
    )
    rows = "[...document.querySelectorAll('#builder [data-part=name]')].map((one) => one.value)"
    assert tab.wait_until(f"{rows}.length === 3")
    assert tab.evaluate(rows) == ["age", "a, b", 'say "x"']
    assert tab.evaluate("document.getElementById('builder-file').value") == "a.csv"
    assert "secret" not in tab.evaluate("document.body.innerText + document.body.innerHTML")


def test_problems_are_listed_and_no_script_is_shown(tab: Tab) -> None:
    hidden = "document.querySelector('#builder [data-show=made]').hidden"
    assert tab.evaluate(hidden)
    describe(
        tab,
        [
            ("a", "number", "5, 1", False),
            ("a", "number", "0, 1", False),
            ("b", "category", "", False),
            ("c", "date", "2020-13-01, 2021-01-01", False),
            ("d", "amount", "0, 9", False),
            ("", "boolean", "", False),
        ],
        target="b",
        labels="yes",
        n="2.5",
        epsilon="-1",
    )
    found = shown(tab, "problems")
    for part in (
        "a: write the smallest",
        "two columns have this name",
        "b: write its categories",
        "c: write the smallest",
        "must be above 0",
        "has no name",
        "cannot be a feature",
        "at least two labels",
        "number of rows",
        "ε must be",
    ):
        assert part in found
    assert tab.evaluate(hidden)
    click(tab, "example")
    assert not tab.evaluate(hidden)


def test_noise_is_that_of_the_gaussian_mechanism(in_script: Any) -> None:
    budgets = [(0.1, 1e-8), (0.25, 1e-3), (1.0, 1e-6), (3.0, 1e-5), (20.0, 1e-7), (100.0, 1e-4)]
    found = in_script("data.map(([epsilon, delta]) => builder.noiseOf(epsilon, delta))", budgets)
    for (epsilon, delta), noise in zip(budgets, found, strict=True):
        assert PrivacyProfile.gaussian(1 / noise).epsilon(delta) == pytest.approx(
            epsilon, rel=1e-3
        )


def test_families_are_those_of_the_library(builder_table: Any, in_script: Any) -> None:
    assert builder_table["rules"] == json.loads(
        json.dumps({task: rule._asdict() for task, rule in RULES.items()})
    )
    asked = [
        (task, n, noise, n_columns, 2 if task == "regressor" else n_classes)
        for task in RULES
        for n in (100, 249, 250, 5000, 10**6)
        for noise in (0.5, 4.0, 40.0)
        for n_columns, n_classes in ((3, 2), (100, 5))
    ]
    found = in_script("data.map((one) => builder.familyOf(table, ...one))", asked)
    for (task, n, noise, *sizes), families in zip(asked, found, strict=True):
        assert tuple(families) == families_for(task, n, 1 / noise, *sizes, has_nets=True)[0]


def test_expected_losses_are_read_at_settings_that_are_not_easier(
    builder_table: Any, in_script: Any
) -> None:
    table = builder_table
    for task, lost in table["lost"].items():
        asked = [
            (task, table["samples"][1], table["columns"][0], table["epsilons"][2]),
            (task, table["samples"][2] - 1, table["columns"][0] - 1, table["epsilons"][3] - 1e-3),
            (task, 10**8, 10**4, 99.0),
            (task, table["samples"][0] - 1, 1, 1.0),
            (task, 1000, 1, table["epsilons"][0] / 2),
        ]
        found = in_script("data.map((one) => builder.lostPoints(table, ...one))", asked)
        assert found == [lost[1][0][2], lost[1][0][2], lost[-1][-1][-1], None, None]
    assert in_script('builder.lostPoints(table, "other", 1000, 4, 1)', None) is None


def test_any_name_is_written_as_python(in_script: Any) -> None:
    names = ['"', "\\", "a\nb", "'''", "名前", "</script>", "{x}", "#", "True"]
    columns = [{"name": name, "kind": "boolean", "values": "", "missing": True} for name in names]
    state = {
        **{"columns": columns, "target": "y", "task": "classifier", "labels": '"1", "2"'},
        **{"file": 'my "file".csv', "n": "500", "epsilon": "1"},
    }
    script = in_script("builder.scriptOf(data, builder.read(data), '1e-4')", state)
    scope: dict[str, Any] = {}
    exec(script[script.index("from skdptune") : script.index("table =")], scope)
    assert [column.name for column in scope["schema"].columns] == names
    assert scope["schema"].target.categories == ("1", "2")
    compile(script, "script", "exec")
