"""The list of findings: its order, its table, its HTML."""

from __future__ import annotations

import re

import pytest

from skdptune.checks import CheckReport, Finding

PAGE = "https://skdptune.readthedocs.io/en/latest/checks.html"
BAD = Finding("SKP005", "issue", "Some.random_state", "random_state is 0", "random_state=None")
WORSE = Finding(
    "SKP001", "issue", 'Pipeline.steps["<b>"]', "it learns means & more", "TableEncoder(schema)"
)
SMALL = Finding(
    "SKP002", "tip", "Some.bounds", "wide bounds " + "and more words " * 20, "bounds=(0, 1)"
)


def test_finding_says_where_it_is_and_where_to_read_more() -> None:
    one = Finding("SKP015", "issue", "Pipeline.memory", "records are kept", "memory=None")
    assert one.page == f"{PAGE}#skp015"
    assert one.line == "SKP015 (issue) Pipeline.memory: records are kept"


def test_issues_come_first_then_codes_and_nothing_twice() -> None:
    report = CheckReport([SMALL, BAD, WORSE, BAD], "Some")
    assert list(report) == [WORSE, BAD, SMALL]
    assert (report.issues, report.tips) == ((WORSE, BAD), (SMALL,))
    assert report.codes == ("SKP001", "SKP002", "SKP005")
    assert (len(report), report[0], list(report[1:])) == (3, WORSE, [BAD, SMALL])
    assert BAD in report


def test_issues_raise_and_tips_do_not() -> None:
    report = CheckReport([SMALL, BAD], "Some")
    with pytest.raises(ValueError, match=r"^Some must have no issues; got 1:\n- SKP005") as raised:
        report.raise_on_issues()
    assert "-> random_state=None" in str(raised.value)
    assert "SKP002" not in str(raised.value)
    quiet = CheckReport([SMALL])
    assert quiet.raise_on_issues() is quiet


def test_table_names_everything_in_narrow_lines() -> None:
    text = str(CheckReport([SMALL, BAD], "Some"))
    lines = text.splitlines()
    assert lines[0] == "1 issue and 1 tip of Some"
    assert lines[1:5] == [
        "issue  SKP005  Some.random_state",
        "    random_state is 0",
        "    -> random_state=None",
        "    (critical; https://skdptune.readthedocs.io/en/latest/checks.html#skp005)",
    ]
    assert max(map(len, lines)) <= 99
    assert repr(CheckReport([SMALL])) == str(CheckReport([SMALL]))
    assert str(CheckReport((), "Some")) == "No issues of Some"
    assert str(CheckReport()) == "No issues"


@pytest.mark.parametrize("form", ["_repr_html_", "brief_html"])
def test_html_needs_no_script_and_takes_the_colours_of_the_page(form: str) -> None:
    html = getattr(CheckReport([WORSE, SMALL], "<i>Some"), form)()
    assert "<b>SKP001</b>" in html
    assert "Pipeline.steps[&quot;&lt;b&gt;&quot;]" in html
    assert "means &amp; more" in html
    assert "<i>" not in html
    # Nothing is loaded: the only address is that of a link to the site.
    inside = html.replace(f'<a href="{PAGE}#', "")
    for forbidden in ("<script", "javascript", "onclick", "http", "src=", "<style", "class="):
        assert forbidden not in inside
    # Red is visible on light and on dark; all other colours are those of the page, or grey.
    assert set(re.findall(r"#[0-9a-f]{6}\b", html)) <= {"#e03131"}
    assert set(re.findall(r"rgba\([^)]*\)", html)) <= {
        "rgba(128,128,128,.4)",
        "rgba(128,128,128,.5)",
    }
    assert "white" not in html.replace("white-space", "")
    for tag in ("a", "div", "span", "details", "summary", "code", "b"):
        assert len(re.findall(f"<{tag}[ >]", html)) == html.count(f"</{tag}>")
