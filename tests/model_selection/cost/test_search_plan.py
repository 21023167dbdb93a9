"""The table of a plan."""

from __future__ import annotations

from skdptune.accounting import PrivacyProfile, PrivacyReport
from skdptune.checks import CheckReport, Finding
from skdptune.model_selection import PlanRow, SearchPlan


def test_rows_are_aligned_and_missing_figures_are_dashes() -> None:
    row = PlanRow("mine", 1.0, 0.5, None, float("nan"), 10.0, 45.0, 1.25, "score")
    other = PlanRow("another way", 1.0, None, 3.25, 123.4, 1.0, 1.0, 1.0, "model")
    report = PrivacyReport(PrivacyProfile.pure(1.0), 1e-5, name="Search")
    plan = SearchPlan(report, row, (other,), 0.05, "geometric law of mean 10", 0.125)
    head, titles, *rows, legend = str(plan).splitlines()
    assert "runs: geometric law of mean 10; tuning on 0.05 of the records" in head
    assert head.endswith("noise of a score: 0.12")
    assert rows[0].split() == ["mine", "1.000", "0.500", "-", "-", "10", "45", "1.25", "score"]
    assert rows[1].split()[2:] == ["1.000", "-", "3.250", "123", "1", "1", "1", "model"]
    assert len({len(line) for line in (titles, *rows)}) == 1
    assert legend == (
        "99 %: 99 of 100 searches make at most so many fits; work: in fits on all records."
    )
    assert plan.epsilon == report.epsilon_spent
    assert plan.delta == 1e-5


def test_columns_that_say_nothing_are_left_out() -> None:
    row = PlanRow("mine", 1.0, 0.5, None, float("nan"), 10.0, 45.0, 1.25, "score")
    other = PlanRow("another way", 1.0, None, None, None, 1.0, 1.0, 1.0)
    report = PrivacyReport(PrivacyProfile.pure(1.0), 1e-5, name="Search")
    plan = SearchPlan(report, row, (other,), None, "", 0.0)
    _, titles, *rows, _ = str(plan).splitlines()
    assert titles.split() == ["ε", "ε", "of", "a", "fit", "fits", "99", "%", "work", "shows"]
    assert rows[0].split() == ["mine", "1.000", "0.500", "10", "45", "1.25", "score"]
    assert rows[1].split()[2:] == ["1.000", "-", "1", "1", "1"]
    html = plan._repr_html_()
    assert "noise" not in html
    assert html.count("<th ") == 7
    assert "99 of 100 searches" in html


def test_head_says_no_more_than_there_is() -> None:
    row = PlanRow("mine", 1.0, None, None, None, 1.0, 1.0, 1.0)
    report = PrivacyReport(PrivacyProfile.pure(1.0), 1e-5, name="Search")
    head = str(SearchPlan(report, row, (), None, "", 0.0)).splitlines()[0]
    assert head.endswith("in all")


def test_findings_come_last_with_a_line_each() -> None:
    row = PlanRow("mine", 1.0, None, None, None, 1.0, 1.0, 1.0)
    report = PrivacyReport(PrivacyProfile.pure(1.0), 1e-5, name="Search")
    found = CheckReport([Finding("SKP005", "issue", "Search.random_state", "it is 0", "None")])
    plan = SearchPlan(report, row, (), None, "", 0.0, advice="Advice.", findings=found)
    assert str(plan).splitlines()[-2:] == ["Advice.", *found.brief]
    assert SearchPlan(report, row, (), None, "", 0.0).findings == CheckReport()


def test_plan_is_shown_as_its_table() -> None:
    row = PlanRow("mine", 1.0, 0.5, None, None, 10.0, 45.0, 1.25, "score")
    report = PrivacyReport(PrivacyProfile.pure(1.0), 1e-5, name="Search")
    found = CheckReport([Finding("SKP005", "issue", "Search.random_state", "it is 0", "None")])
    plan = SearchPlan(report, row, (row,), None, "", 0.0, advice="Advice.", findings=found)
    assert repr(plan) == str(plan)
    html = plan._repr_html_()
    assert html.count("<tr") == 3
    for words in (str(plan).splitlines()[0], "Advice.", "SKP005", "0.500", "ε of a fit"):
        assert words in html
