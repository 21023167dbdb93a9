"""The table of a plan in notebooks."""

from __future__ import annotations

import re

from skdptune.model_selection._cost._search_plan import to_html

HTML = to_html(
    "ε < 1", ("", "noise", "shows"), [("<mine>", "1", "a"), ("b", "2", "c")], ["x & y"], "<i>"
)


def test_text_is_escaped_and_findings_come_last() -> None:
    for words in ("ε &lt; 1", "&lt;mine&gt;", "x &amp; y"):
        assert words in HTML
    assert HTML.endswith("<i></div>")


def test_there_is_a_row_for_each_and_the_search_itself_stands_out() -> None:
    assert (HTML.count("<tr"), HTML.count("<th "), HTML.count("<td ")) == (3, 3, 6)
    weights = re.findall(r"<td [^>]*font-weight:(\d+)", HTML)
    assert weights == ["600"] * 3 + ["400"] * 3


def test_colours_are_those_of_the_page() -> None:
    for forbidden in ("<script", "<style", "class=", "http", "#"):
        assert forbidden not in HTML
    assert set(re.findall(r"rgba\([^)]*\)", HTML)) == {"rgba(128,128,128,.4)"}
