"""What is shown of a report, and the text tree drawn from it."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skdptune.accounting._profile._profile import PrivacyProfile
from skdptune.accounting._report import PrivacyReport, ReportView, Row, one_line, to_text, view_of

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
    text = to_text(view_of(PrivacyReport(HALF, 0.0, name="DPRidge")))
    assert text == "DPRidge: ε = 0.500 at δ = 0 (add or remove one record)"


def test_very_long_label_leaves_the_column_to_the_others() -> None:
    rows = (Row("short", "", "", "A"), Row("x" * 200, "", "", "B"))
    lines = to_text(ReportView(Row("top", "", "", "C", rows), "0", "", "n")).splitlines()
    assert lines[1] == "├─ short  A"
    assert lines[2] == "└─ " + "x" * 200 + "  B"


def test_parts_show_their_cost_at_the_delta_of_the_report_shown() -> None:
    gaussian = PrivacyProfile.gaussian(0.3)
    part = PrivacyReport(gaussian, 1e-2, parts=[PrivacyReport(gaussian, 1e-3)])
    (row,) = view_of(PrivacyReport(gaussian + HALF, 1e-8, parts=[part])).top.rows
    assert row.figure == row.rows[0].figure
    shown = float(row.figure.removeprefix("ε = "))
    assert gaussian.epsilon(1e-8) <= shown <= gaussian.epsilon(1e-8) + 0.001
    assert shown > part.epsilon + 0.1


def test_part_shows_its_cost_not_its_budget() -> None:
    part = PrivacyReport(QUARTER, 0.0, epsilon=5.0)
    (row,) = view_of(PrivacyReport(HALF, 0.0, parts=[part])).top.rows
    assert row.figure == "ε = 0.250"


def test_top_shows_the_budget_and_what_was_spent_of_it() -> None:
    view = view_of(PrivacyReport(HALF, 0.0, epsilon=0.75))
    assert view.top.figure == "ε = 0.750"
    assert view.spent == "0.500"


@pytest.mark.parametrize(
    ("cost", "budget"),
    [(0.5, None), (0.5, 0.5), (0.5 * (1 - 1e-12), 0.5), (0.5 * (1 + 5e-10), 0.5)],
)
def test_spending_within_rounding_of_the_budget_is_not_shown(
    cost: float, budget: float | None
) -> None:
    report = PrivacyReport(PrivacyProfile.pure(cost), 0.0, epsilon=budget)
    assert view_of(report).spent == ""
    assert view_of(report).top.figure == "ε = 0.500"


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
    assert view_of(report).assumptions == ("first", "second", "third", "fourth")
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
