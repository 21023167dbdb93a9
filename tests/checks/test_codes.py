"""Each code is found in its example, and nowhere else, and its section has the same text."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

from skdptune import check
from skdptune.checks import Finding
from skdptune.linear_model import DPLogisticRegression
from tests.checks.examples import EXAMPLES, HAS_DIFFPRIVLIB, Example

SOURCE = Path(__file__).resolve().parents[2] / "docs" / "checks.md"
TEXT = SOURCE.read_text("utf-8")
SECTIONS = dict(re.findall(r"^## (SKP\d+): (.*?)(?=^<a |^## |\Z)", TEXT, re.MULTILINE | re.DOTALL))


@pytest.mark.parametrize("example", EXAMPLES, ids=[one.name for one in EXAMPLES])
def test_code_is_found_where_it_is_and_nowhere_else(example: Example) -> None:
    before = repr(example.wrong)
    found = check(example.wrong, **example.sizes)
    assert repr(example.wrong) == before
    mine = [(one.kind, one.place) for one in found if one.code == example.code]
    assert mine.count((example.kind, example.place)) == 1
    assert example.code not in check(example.right, **example.sizes).codes


def test_every_code_has_an_example() -> None:
    # That of a distrusted model needs the library that it is of.
    missing = {"SKP020"} - {example.code for example in EXAMPLES}
    assert not (missing and HAS_DIFFPRIVLIB)
    assert {example.code for example in EXAMPLES} | missing == set(SECTIONS)


def about(code: str) -> Finding:
    return Finding(code, "issue", "Some.place", "something", "nothing")


def test_every_code_has_a_section_and_every_section_a_code() -> None:
    assert list(SECTIONS) == [f"SKP{place:03}" for place in range(1, 21)]
    with pytest.raises(KeyError):
        assert about("SKP021").title


@pytest.mark.parametrize("code", SECTIONS)
def test_section_says_what_the_code_says(code: str) -> None:
    title, _, severity = SECTIONS[code].splitlines()[:3]
    assert (title, severity) == (about(code).title, f"Severity: {about(code).severity}.")
    assert f'<a id="{code.lower()}"></a>\n\n## {code}:' in TEXT
    assert about(code).page.endswith(f"#{code.lower()}")
    for part in ("*Found*", "*Why.*", "*What to do.*", "```pycon"):
        assert part in SECTIONS[code]
    assert about(code).severity in ("critical", "theoretical", "negligible")


def test_examples_of_the_page_are_true() -> None:
    blocks = [f"{block}\n" for block in re.findall(r"```pycon\n(.*?)```", TEXT, re.DOTALL)]
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, "checks", "checks", 0)
    assert doctest.DocTestRunner().run(test).failed == 0


def test_example_of_each_section_shows_its_code() -> None:
    assert [code for code in SECTIONS if f"'{code}'" not in SECTIONS[code]] == []


def test_codes_to_leave_out_are_checked() -> None:
    tuned = DPLogisticRegression(classes=[0, 1], C=0.5, random_state=0)
    assert check(tuned).codes == ("SKP005", "SKP010")
    assert check(tuned, mute="SKP010").codes == check(tuned, mute=["SKP010"]).codes == ("SKP005",)
    with pytest.raises(ValueError, match="mute must hold codes from SKP001 to SKP020; got 'SKP9'"):
        check(tuned, mute=["SKP9"])
    with pytest.raises(TypeError, match="mute must be a list of codes; got int"):
        check(tuned, mute=1)  # type: ignore[arg-type]
