"""What is shown of a report: as text, and as HTML."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skdptune.accounting import PrivacyProfile, PrivacyReport
from skdptune.accounting._shared import ReportView, Row, one_line, to_html, to_text

HALF = PrivacyProfile.pure(0.5)
QUARTER = PrivacyProfile.pure(0.25)


def test_tree_is_drawn_with_figures_in_one_column() -> None:
    inner = Row("one run", "", "", "ε = 0.250", (Row("fit", "50 steps", "", "ε = 0.125"),))
    view = ReportView(
        top=Row(
            "Search",
            "grid",
            "",
            "ε = 1.000",
            (
                Row(
                    "selection",
                    "mean 20 runs",
                    "envelope",
                    "ε = 0.750",
                    (inner, Row("b", "", "", "not private")),
                ),
                Row("refit", "", "", "ε = 0.250"),
            ),
        ),
        delta="1e-05",
        spent="0.934",
        neighbouring="add or remove one record",
        assumptions=("n is public", "the split is secret"),
    )
    assert to_text(view).splitlines() == [
        "Search (grid): ε = 1.000 at δ = 1e-05, spent 0.934 (add or remove one record)",
        "├─ selection (mean 20 runs) [envelope]  ε = 0.750",
        "│  ├─ one run                           ε = 0.250",
        "│  │  └─ fit (50 steps)                 ε = 0.125",
        "│  └─ b                                 not private",
        "└─ refit                                ε = 0.250",
        "Each part's ε is its own cost at δ = 1e-05; the parts need not add up to the total.",
        "Assumptions:",
        "- n is public",
        "- the split is secret",
    ]


def test_report_without_parts_and_assumptions_is_one_line() -> None:
    text = str(PrivacyReport(HALF, 0.0, name="DPRidge"))
    assert text == "DPRidge: ε = 0.500 at δ = 0 (add or remove one record)"


def test_very_long_label_leaves_the_column_to_the_others() -> None:
    rows = (Row("short", "", "", "A"), Row("x" * 200, "", "", "B"))
    lines = to_text(ReportView(Row("top", "", "", "C", rows), "0", "", "n")).splitlines()
    assert lines[1] == "├─ short  A"
    assert lines[2] == "└─ " + "x" * 200 + "  B"


def test_parts_show_their_cost_at_the_delta_of_the_report_shown() -> None:
    gaussian = PrivacyProfile.gaussian(0.3)
    part = PrivacyReport(gaussian, 1e-2, parts=[PrivacyReport(gaussian, 1e-3)])
    lines = str(PrivacyReport(gaussian + HALF, 1e-8, parts=[part])).splitlines()
    outer, inner = (line.split("ε = ")[1] for line in lines[1:3])
    assert outer == inner
    shown = float(outer)
    assert gaussian.epsilon(1e-8) <= shown <= gaussian.epsilon(1e-8) + 0.001
    assert shown > part.epsilon + 0.1


def test_part_shows_its_cost_not_its_budget() -> None:
    part = PrivacyReport(QUARTER, 0.0, epsilon=5.0)
    line = str(PrivacyReport(HALF, 0.0, parts=[part])).splitlines()[1]
    assert line.endswith("ε = 0.250")


def test_top_shows_the_budget_and_what_was_spent_of_it() -> None:
    heading = str(PrivacyReport(HALF, 0.0, epsilon=0.75))
    assert "ε = 0.750 at δ = 0, spent 0.500 (" in heading


@pytest.mark.parametrize(
    ("cost", "budget"),
    [(0.5, None), (0.5, 0.5), (0.5 * (1 - 1e-12), 0.5), (0.5 * (1 + 5e-10), 0.5)],
)
def test_spending_within_rounding_of_the_budget_is_not_shown(
    cost: float, budget: float | None
) -> None:
    report = PrivacyReport(PrivacyProfile.pure(cost), 0.0, epsilon=budget)
    assert "ε = 0.500 at δ = 0 (" in str(report)


def test_infinite_epsilon_reads_not_private() -> None:
    nothing = PrivacyProfile.approximate(0.0, 1.0)
    report = PrivacyReport(nothing, 1e-5, name="a", parts=[PrivacyReport(nothing, 1e-5, name="b")])
    lines = str(report).splitlines()
    assert lines[0] == "a: not private at δ = 1e-05 (add or remove one record)"
    assert lines[1] == "└─ b  not private"
    assert "inf" not in str(report)


def test_infinite_budget_shows_what_was_spent_all_the_same() -> None:
    text = str(PrivacyReport(HALF, 0.0, epsilon=math.inf, name="a"))
    assert text == "a: not private at δ = 0, spent 0.500 (add or remove one record)"


def test_assumptions_of_parts_are_gathered_once_in_order() -> None:
    inner = PrivacyReport(QUARTER, 0.0, assumptions=["third", "first"])
    parts = [
        PrivacyReport(QUARTER, 0.0, assumptions=["second"], parts=[inner]),
        PrivacyReport(QUARTER, 0.0, assumptions=["second", "fourth"]),
    ]
    report = PrivacyReport(HALF, 0.0, assumptions=["first"], parts=parts)
    assert str(report).endswith("\n- first\n- second\n- third\n- fourth")
    assert report.assumptions == ("first",)


def test_part_with_another_neighbouring_relation_says_so() -> None:
    parts = [
        PrivacyReport(HALF, 0.0, name="a", note="n", neighbouring="replace one record"),
        PrivacyReport(HALF, 0.0, name="b"),
    ]
    lines = str(PrivacyReport(HALF, 0.0, parts=parts)).splitlines()
    assert "a (n; replace one record)" in lines[1]
    assert lines[2].split()[:3] == ["└─", "b", "ε"]


@given(st.text(st.characters(), max_size=30))
def test_any_text_is_shown_on_one_printable_line(text: str) -> None:
    line = one_line(text)
    assert line.isprintable()
    assert line.splitlines() in ([line], [])
    assert line == line.strip()
    line.encode("utf-8")


def test_one_line_keeps_words_and_drops_controls() -> None:
    assert one_line("column 'Größe\n(m)'") == "column 'Größe (m)'"
    assert one_line("\x1b[31mred\u202etxt") == "[31mred txt"


def test_line_breaks_in_names_do_not_break_the_tree() -> None:
    part = PrivacyReport(HALF, 0.0, name="a\n└─ b", note="c\r\nd", bound="e\x0bf")
    report = PrivacyReport(
        HALF, 0.0, name="x\ny", parts=[part], neighbouring="u\nv", assumptions=["s\nt"]
    )
    assert str(report).splitlines() == [
        "x y: ε = 0.500 at δ = 0 (u v)",
        "└─ a └─ b (c d; add or remove one record) [e f]  ε = 0.500",
        "Each part's ε is its own cost at δ = 0; the parts need not add up to the total.",
        "Assumptions:",
        "- s t",
    ]


def test_deep_tree_is_drawn_to_its_last_leaf() -> None:
    report = PrivacyReport(HALF, 0.0, name="level 60")
    for level in range(59, -1, -1):
        report = PrivacyReport(HALF, 0.0, name=f"level {level}", parts=[report])
    lines = str(report).splitlines()
    assert lines[60].split("ε")[0].strip() == "└─ level 60"
    assert lines[60].startswith("   " * 59 + "└─")


# HTML ------------------------------------------------------------------------------------

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


def test_heading_shows_budget_spending_and_relation() -> None:
    view = ReportView(Row("Search", "n", "b", "ε = 1.000"), "1e-05", "0.934", "one record", ())
    first, second = parse(to_html(view))
    assert words(first) == "Search (n)b"
    assert words(second) == "ε = 1.000 at δ = 1e-05, spent 0.934 (one record)"
    unspent = ReportView(view.top, "1e-05", "", "one record", ())
    assert words(parse(to_html(unspent))[1]) == "ε = 1.000 at δ = 1e-05 (one record)"


@pytest.mark.parametrize(("figure", "is_marked"), [("not private", True), ("ε = 9.000", False)])
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
