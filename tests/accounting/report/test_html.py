"""The HTML of reports: well formed, escaped, self-contained, and saying what the text says."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skdptune._formatting import NOT_PRIVATE
from skdptune.accounting._report import ReportView, Row, one_line, to_html

ATTACK = "<script>alert('1')</script>\"&amp;"


def make_view(text: str = "word", rows: tuple[Row, ...] = ()) -> ReportView:
    """Return a view that shows ``text`` wherever a text can be shown."""
    leaf = Row(text, text, text, text)
    parent = Row(text, text, text, text, (leaf, leaf))
    top = Row(text, text, text, text, rows or (parent, leaf))
    return ReportView(top, text, text, text, (text, text))


def parse(html: str) -> ElementTree.Element:
    return ElementTree.fromstring(html)


def words(element: ElementTree.Element) -> str:
    return " ".join("".join(element.itertext()).split())


def chain(depth: int) -> tuple[Row, ...]:
    rows: tuple[Row, ...] = ()
    for level in range(depth, 0, -1):
        rows = (Row(f"level {level}", "", "", "ε = 1.000", rows),)
    return rows


def test_markup_in_texts_is_shown_not_run() -> None:
    html = to_html(make_view(ATTACK))
    assert "<script" not in html
    plain = parse(to_html(make_view("word")))
    # Every occurrence comes through as text, and the elements are those of harmless words.
    assert words(parse(html)).count(ATTACK) == words(plain).count("word") == 26
    tags = [element.tag for element in plain.iter()]
    assert [element.tag for element in parse(html).iter()] == tags


@given(st.text(st.characters(), max_size=20))
def test_any_text_gives_well_formed_html_without_new_elements(text: str) -> None:
    root = parse(to_html(make_view(one_line(text) or "x")))
    assert {element.tag for element in root.iter()} == {
        "div",
        "span",
        "details",
        "summary",
        "ul",
        "li",
    }


def test_nothing_is_loaded_run_or_styled_outside() -> None:
    for element in parse(to_html(make_view())).iter():
        assert element.tag in {"div", "span", "details", "summary", "ul", "li"}
        assert set(element.attrib) <= {"style", "open"} if element.tag == "details" else {"style"}
        assert "url(" not in element.attrib.get("style", "")


def test_background_and_text_colours_are_left_to_the_page() -> None:
    html = to_html(make_view())
    assert "background" not in html
    assert ";color:" not in html


def test_rows_with_parts_fold_and_others_do_not() -> None:
    rows = (Row("a", "", "", "1", (Row("b", "", "", "2"),)), Row("c", "", "", "3"))
    (details,) = parse(to_html(make_view("t", rows))).iter("details")
    summary, below = details
    assert words(summary) == "a1"
    assert words(below) == "b2"


def test_two_levels_are_open_and_deeper_ones_folded() -> None:
    html = to_html(make_view("t", chain(5)))
    opened = ["open" in element.attrib for element in parse(html).iter("details")]
    assert opened == [True, True, False, False]


def test_deep_tree_nests_as_deep() -> None:
    html = to_html(make_view("t", chain(60)))
    assert len(list(parse(html).iter("details"))) == 59
    assert "level 60" in html


def test_heading_shows_budget_spending_and_relation() -> None:
    view = ReportView(Row("Search", "n", "b", "ε = 1.000"), "1e-05", "0.934", "one record", ())
    first, second = parse(to_html(view))
    assert words(first) == "Search (n)b"
    assert words(second) == "ε = 1.000 at δ = 1e-05, spent 0.934 (one record)"
    unspent = ReportView(view.top, "1e-05", "", "one record", ())
    assert words(parse(to_html(unspent))[1]) == "ε = 1.000 at δ = 1e-05 (one record)"


@pytest.mark.parametrize(("figure", "is_marked"), [(NOT_PRIVATE, True), ("ε = 9.000", False)])
def test_missing_privacy_stands_out(figure: str, is_marked: bool) -> None:
    html = to_html(ReportView(Row("a", "", "", figure), "0", "", "n", ()))
    assert ("color:#e03131" in html) == is_marked


def test_caption_comes_with_parts_and_assumptions_with_a_list() -> None:
    bare = ReportView(Row("a", "", "", "1"), "1e-05", "", "n", ())
    assert "need not add up" not in to_html(bare)
    assert "Assumes" not in to_html(bare)
    full = parse(to_html(make_view()))
    assert make_view().caption in words(full)
    assert [words(item) for item in full.iter("li")] == ["word", "word"]
