"""The table of a plan: how it is shown, and the rows of other searches."""

from __future__ import annotations

from typing import Any

import pytest
from scipy.stats import uniform

from skdptune.accounting import PrivacyProfile, PrivacyReport
from skdptune.model_selection import (
    AdaptiveTrials,
    DoublingThresholdSearchCV,
    DPAdaptiveSearchCV,
    DPGridSearchCV,
    DPRandomSearchCV,
    FullTable,
    NoisyMaximum,
    PlanRow,
    RandomRuns,
    SearchPlan,
)
from tests.model_selection.learners import Scripted, table


def test_a_plan_is_shown_as_its_table_without_code_of_its_own() -> None:
    row = PlanRow("<mine>", 1.0, 0.5, None, float("nan"), 10.0, 45.0, 1.25, "score")
    report = PrivacyReport(PrivacyProfile.pure(1.0), 1e-5, name="Search")
    other = PlanRow("other", 1.0, None, 3.25, 123.4, 1.0, 1.0, 1.0, "model")
    plan = SearchPlan(report, row, (other,), 0.05, "x & y", 0.125, advice="Advice.")
    assert repr(plan) == str(plan)
    _, titles, *rows = str(plan).splitlines()[:4]
    assert len({len(line) for line in (titles, *rows)}) == 1
    assert rows[0].split() == ["<mine>", "1.000", "0.500", "-", "-", "10", "45", "1.25", "score"]
    html = plan._repr_html_()
    assert html.count("<tr") == 3 and "Advice." in html and "ε of a fit" in html
    assert "&lt;mine&gt;" in html and "x &amp; y" in html and "<mine>" not in html


# Other searches of the same candidates, for the same total ---------------------------------------


DELTA = 1e-5
GRID = {"quality": [0.1, 0.5, 0.9]}
OTHERS = {
    "adaptive (DPAdaptiveSearchCV)",
    "full table (DPGridSearchCV)",
    "noisy maximum (DPGridSearchCV)",
    "random number of runs (DPRandomSearchCV)",
}


def names_of(search: Any) -> list[str]:
    return [row.name for row in search.plan(20_000, 3, compare=True).alternatives]


@pytest.mark.parametrize(
    ("make", "own"),
    [
        (DPGridSearchCV, "full table (DPGridSearchCV)"),
        (DPRandomSearchCV, "random number of runs (DPRandomSearchCV)"),
        (DPAdaptiveSearchCV, "adaptive (DPAdaptiveSearchCV)"),
        (DoublingThresholdSearchCV, ""),
    ],
)
def test_each_search_lists_the_others(make: Any, own: str) -> None:
    names = names_of(make(Scripted(), GRID, epsilon=1.0, delta=DELTA))
    assert OTHERS - {own} <= set(names)
    assert own not in names


def test_other_ways_cost_no_more_and_say_what_they_show() -> None:
    search = DPGridSearchCV(Scripted(), GRID, epsilon=1.0, delta=DELTA)
    plan = search.plan(20_000, 3, compare=True)
    assert all(row.epsilon <= 1.0 for row in plan.alternatives)
    shown = {row.name: row.shows for row in (plan.row, *plan.alternatives)}
    assert shown["DPGridSearchCV"] == "all scores"
    assert shown["adaptive (DPAdaptiveSearchCV)"] == "all scores"
    assert shown["noisy maximum (DPGridSearchCV)"] == "the winner"
    assert shown["random number of runs (DPRandomSearchCV)"] == "the winner and its score"
    assert shown["one fit, untuned"] == ""
    assert "all scores" in str(plan)


def test_other_searches_are_planned_only_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    planned: list[str] = []
    for kind in (AdaptiveTrials, FullTable, NoisyMaximum, RandomRuns):

        def noted(self: Any, request: Any, plan_of: Any = kind.plan) -> Any:
            planned.append(self.name)
            return plan_of(self, request)

        monkeypatch.setattr(kind, "plan", noted)
    search = DPGridSearchCV(Scripted(), GRID, epsilon=1.0, delta=DELTA, random_state=0)
    # Not the number of rows of another test: plans are cached.
    X, y = table(21_000)
    brief = search.fit(X, y).plan(*X.shape)
    assert set(planned) == {"full table (DPGridSearchCV)"}
    assert not brief.alternatives and "compare=True" in str(brief)
    whole = search.plan(*X.shape, compare=True)
    assert set(planned) == OTHERS
    assert len(whole.alternatives) > 3 and "compare=True" not in str(whole)
    assert whole.report.profile == brief.report.profile == search.privacy_.profile


def test_an_adaptive_search_takes_the_place_of_one_space() -> None:
    (row,) = [
        row
        for row in DPRandomSearchCV(
            Scripted(), {"quality": uniform()}, n_iter=7, epsilon=1.0, delta=DELTA
        )
        .plan(20_000, 3, compare=True)
        .alternatives
        if row.name == "adaptive (DPAdaptiveSearchCV)"
    ]
    alone = DPAdaptiveSearchCV(
        Scripted(), {"quality": uniform()}, n_trials=7, epsilon=1.0, delta=DELTA
    ).plan(20_000, 3)
    assert (row.expected_fits, row.worst_fits, row.shows) == (7.0, 7.0, "all scores")
    assert row.effective_noise == alone.row.effective_noise
    assert row.work == alone.row.work
    # Of several spaces no sampler makes one.
    several = [GRID, {"mark": ["a", "b"]}]
    names = names_of(DPGridSearchCV(Scripted(), several, epsilon=1.0, delta=DELTA))
    assert "adaptive (DPAdaptiveSearchCV)" not in names
    # What is added are the estimator's own values.
    both = [{"quality": [Scripted().get_params()["quality"]]}, GRID]
    names = names_of(DPGridSearchCV(Scripted(), both, epsilon=1.0, delta=DELTA))
    assert "adaptive (DPAdaptiveSearchCV)" in names


def test_without_a_total_there_is_nothing_to_compare() -> None:
    search = DPGridSearchCV(Scripted(epsilon=1.0, delta=DELTA), GRID, strategy="table")
    assert not OTHERS & set(names_of(search))
