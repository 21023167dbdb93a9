"""The display of a report, as text and as HTML."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skdptune.accounting import PrivacyProfile, PrivacyReport

HALF = PrivacyProfile.pure(0.5)
QUARTER = PrivacyProfile.pure(0.25)
NOTHING = PrivacyProfile.approximate(0.0, 1.0)
EIGHTH = PrivacyReport(PrivacyProfile.pure(0.125), 0.0, name="fit", note="50 steps")


def report(profile: PrivacyProfile = HALF, **settings: Any) -> PrivacyReport:
    return PrivacyReport(profile, settings.pop("delta", 0.0), **settings)


def test_tree_is_drawn_with_figures_in_one_column() -> None:
    inner = report(QUARTER, name="one run", parts=[EIGHTH])
    chosen = report(
        name="selection",
        note="mean 20 runs",
        bound="envelope",
        parts=[inner, report(NOTHING, name="b")],
        assumptions=["the split is secret"],
    )
    whole = report(
        HALF + QUARTER,
        epsilon=1.0,
        name="Search",
        note="grid",
        parts=[chosen, report(QUARTER, name="refit", assumptions=["n is public"])],
        assumptions=["n is public"],
    )
    assert str(whole).splitlines() == [
        "Search (grid): ε = 1.000 at δ = 0, spent 0.750 (add or remove one record)",
        "├─ selection (mean 20 runs) [envelope]  ε = 0.500 alone, adds 0.500",
        "│  ├─ one run                           ε = 0.250",
        "│  │  └─ fit (50 steps)                 ε = 0.125",
        "│  └─ b                                 not private",
        "└─ refit                                ε = 0.250 alone",
        "Each part's ε is its own cost at δ = 0; what is added, plus the last ε, sums to "
        "the total.",
        "Assumptions:",
        "- n is public",
        "- the split is secret",
    ]
    assert whole.assumptions == ("n is public",)


def test_what_parts_add_sums_to_the_total_unless_they_use_different_records() -> None:
    gaussians = [report(PrivacyProfile.gaussian(shift), delta=1e-5) for shift in (0.3, 0.2, 0.4)]
    total = sum(part.profile for part in gaussians)
    lines = str(report(total, delta=1e-5, parts=gaussians)).splitlines()[1:4]
    adds = [float(line.split("adds ")[1]) for line in lines[:2]]
    own = float(lines[2].split("ε = ")[1].removesuffix(" alone"))
    assert sum(adds) + own == pytest.approx(total.epsilon(1e-5), abs=3e-3)
    assert "sums to the total" in str(report(total, delta=1e-5, parts=gaussians))
    worst = report(gaussians[0].profile | gaussians[2].profile, delta=1e-5, parts=gaussians)
    assert "adds" not in str(worst) and "need not add up" in str(worst)


def test_parts_show_their_cost_at_the_delta_of_the_report_shown() -> None:
    gaussian = PrivacyProfile.gaussian(0.3)
    part = report(gaussian, delta=1e-2, epsilon=9.0, parts=[report(gaussian, delta=1e-3)])
    lines = str(report(gaussian + HALF, delta=1e-8, parts=[part])).splitlines()
    outer, inner = (line.split("ε = ")[1] for line in lines[1:3])
    assert outer == inner
    assert gaussian.epsilon(1e-8) <= float(outer) <= gaussian.epsilon(1e-8) + 0.001


@pytest.mark.parametrize(
    ("cost", "budget"),
    [(0.5, None), (0.5, 0.5), (0.5 * (1 - 1e-12), 0.5), (0.5 * (1 + 5e-10), 0.5)],
)
def test_spending_within_rounding_of_the_budget_is_not_shown(
    cost: float, budget: float | None
) -> None:
    assert "ε = 0.500 at δ = 0 (" in str(report(PrivacyProfile.pure(cost), epsilon=budget))


def test_infinite_epsilon_reads_not_private() -> None:
    text = str(report(NOTHING, delta=1e-5, name="a", parts=[report(NOTHING, name="b")]))
    assert text.startswith("a: not private at δ = 1e-05 (add or remove one record)\n")
    assert text.splitlines()[1] == "└─ b  not private" and "inf" not in text
    text = str(report(epsilon=math.inf, name="a"))
    assert text == "a: not private at δ = 0, spent 0.500 (add or remove one record)"


def test_part_with_another_neighbouring_relation_says_so() -> None:
    parts = [report(name="a", note="n", neighbouring="replace one record"), report(name="b")]
    lines = str(report(parts=parts)).splitlines()
    assert "a (n; replace one record)" in lines[1]
    assert lines[2].split()[:3] == ["└─", "b", "ε"]


@given(st.text(st.characters(), max_size=30))
def test_any_text_is_shown_on_one_printable_line(text: str) -> None:
    heading, *others = str(report(name=f"x{text}", note=text)).split("\n")
    assert others == [] and heading.isprintable()
    assert heading.splitlines() == [heading]
    heading.encode("utf-8")


def nested(depth: int, **words: Any) -> PrivacyReport:
    found = report(name=f"level {depth}", **words)
    for level in range(depth - 1, -1, -1):
        found = report(name=f"level {level}", parts=[found], **words)
    return found


# HTML ------------------------------------------------------------------------------------

ATTACK = "<script>alert('1')</script>\"&amp;"
TAGS = {"div", "span", "details", "summary", "ul", "li"}


def parsed(shown: PrivacyReport) -> ElementTree.Element:
    return ElementTree.fromstring(shown._repr_html_())


def words(element: ElementTree.Element) -> str:
    return " ".join("".join(element.itertext()).split())


def full_of(text: str) -> PrivacyReport:
    """Return a report that shows ``text`` wherever a text of a user's can be shown."""
    said = {"name": text, "note": text, "bound": text, "neighbouring": text}
    leaf = report(**said)
    return report(**said, assumptions=[text, f"{text}2"], parts=[report(**said, parts=[leaf])])


def test_markup_in_texts_is_shown_not_run() -> None:
    attacked, plain = parsed(full_of(ATTACK)), parsed(full_of("wörd"))
    assert "<script" not in full_of(ATTACK)._repr_html_()
    assert words(attacked).count(ATTACK) == words(plain).count("wörd") >= 12
    assert [each.tag for each in attacked.iter()] == [each.tag for each in plain.iter()]


@given(st.text(st.characters(), max_size=20))
def test_any_text_gives_well_formed_html_that_loads_and_runs_nothing(text: str) -> None:
    for element in parsed(full_of(f"x{text}")).iter():
        assert element.tag in TAGS
        assert set(element.attrib) <= {"style", "open"} if element.tag == "details" else {"style"}
        assert "url(" not in element.attrib.get("style", "")


def test_rows_with_parts_fold_and_two_levels_are_open() -> None:
    opened = ["open" in element.attrib for element in parsed(nested(5)).iter("details")]
    assert opened == [True, True, False, False]
    (details,) = parsed(report(parts=[report(name="a", parts=[EIGHTH]), EIGHTH])).iter("details")
    assert [words(part) for part in details] == ["aε = 0.500 alone", "fit (50 steps)ε = 0.125"]


def test_heading_caption_and_assumptions() -> None:
    top = report(epsilon=1.0, name="Search", note="n", bound="b", delta=1e-5)
    first, second = parsed(top)
    assert words(first) == "Search (n)b"
    assert words(second).startswith("ε = 1.000 at δ = 1e-05, spent 0.500 (add or remove")
    assert "need not add up" not in words(parsed(top))
    assert "need not add up" in words(parsed(full_of("w")))
    assert [words(item) for item in parsed(full_of("w")).iter("li")] == ["w", "w2"]


@pytest.mark.parametrize(("profile", "is_marked"), [(NOTHING, True), (HALF, False)])
def test_missing_privacy_stands_out(profile: PrivacyProfile, is_marked: bool) -> None:
    assert ("color:#e03131" in report(profile)._repr_html_()) == is_marked
