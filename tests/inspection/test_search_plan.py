"""Drawings of plans: the use of the records, and bars for the search and the other ways."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from skdptune.inspection import SearchPlanDisplay
from skdptune.linear_model import DPLogisticRegression
from skdptune.model_selection import DPGridSearchCV, DPRandomSearchCV, PlanRow, RandomRuns

ROW = PlanRow("DPRandomSearchCV", 0.996, 1.0, 3.876, 4.08, 10.0, 30.0, 1.45, "the winner")
OTHERS = [
    PlanRow("one fit, untuned", 0.998, 0.998, 3.883, 3.883, 1.0, 1.0, 1.0),
    PlanRow("random number of runs, in many words", 0.999, 0.9, 7.5, 7.5, 11.0, 11.0, 9.8, "all"),
]
USES = {"fits of candidates": (0.0, 0.05), "scores": (0.05, 0.25), "final fit": (0.05, 1.0)}


def made(**more: Any) -> SearchPlanDisplay:
    given = {"rows": [ROW, *OTHERS], "uses": USES, "epsilon": 1.0, "delta": 1e-5}
    return SearchPlanDisplay(**{**given, **more})


def test_ways_and_uses_are_drawn(check_picture: Any) -> None:
    display = made().plot()
    assert [bar.get_width() for bar in display.bars_] == [4.08, 3.883, 7.5]
    assert [(span.get_x(), span.get_width()) for span in display.spans_] == [
        (start, pytest.approx(end - start)) for start, end in USES.values()
    ]
    words = [text.get_text() for text in display.ax_.texts]
    # The number of runs itself is secret, and only its mean is drawn.
    assert words[0] == "4.08, ≈ 10 fits, work 1.4"
    assert words[1] == "3.88, 1 fit, work 1"
    assert display.uses_ax_.get_title(loc="left") == display.statement
    assert display.statement == "DPRandomSearchCV: ε = 1.000 at δ = 1e-05 for everything."
    check_picture(display.figure_, "search_plan")


def test_labels_name_persons_where_they_are_the_unit() -> None:
    display = made(neighbouring="add or remove one person with all of their rows").plot()
    assert display.uses_ax_.get_xlabel() == "persons, divided at random"
    assert "share of the persons" in display.ax_.get_xlabel()


def test_what_has_no_noise_is_drawn_by_its_cost() -> None:
    row = replace(ROW, noise=None, effective_noise=None)
    display = made(rows=[row, replace(row, name="other", fit_epsilon=None)], uses={}).plot()
    assert display.ax_.get_xlabel() == "largest cost of each fit (ε)"
    assert display.ax_.texts[1].get_text().startswith("unknown")
    assert display.uses_ax_ is None
    bare = replace(row, fit_epsilon=None)
    assert "work" in made(rows=[bare]).plot().ax_.get_xlabel()


def test_costs_of_fits_are_never_said_below_the_truth() -> None:
    display = made(rows=[replace(ROW, fit_epsilon=0.12341)], uses={}).plot(by="fit_epsilon")
    assert display.ax_.texts[0].get_text().startswith("0.124, ")


def test_plans_of_searches_are_drawn_without_data() -> None:
    model = DPLogisticRegression(solver="output", classes=[0, 1])
    grid = DPGridSearchCV(model, {"C": [0.1, 1.0]}, epsilon=1.0, delta=1e-5, strategy="table")
    plan = grid.plan(2000, 3, compare=True)
    display = SearchPlanDisplay.from_plan(plan)
    assert display.rows == [plan.row, *plan.alternatives]
    assert display.uses == {
        "fits of candidates": (0.0, 0.8),
        "scores": (0.8, 1.0),
        "final fit": (0.0, 1.0),
    }
    search = DPRandomSearchCV(
        model,
        {"C": [0.1, 1.0]},
        epsilon=1.0,
        delta=1e-5,
        strategy=RandomRuns(n_iter_distribution="geometric"),
    )
    part = SearchPlanDisplay.from_search(search, 2000, 3, compare=False, public_validation=True)
    assert len(part.rows) == 1 and "scores" not in part.uses


def test_what_is_no_plan_is_refused() -> None:
    with pytest.raises(TypeError, match="plan must be a SearchPlan; got PlanRow"):
        SearchPlanDisplay.from_plan(ROW)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="search must be a search of skdptune; got int"):
        SearchPlanDisplay.from_search(1, 10)
    with pytest.raises(ValueError, match="rows must hold at least the search's own"):
        made(rows=[])
    with pytest.raises(ValueError, match=r"uses\['fit'\] must be a number in \[0.5, 1\]"):
        made(uses={"fit": (0.5, 0.2)})
    with pytest.raises(ValueError, match="by must be one of 'auto', 'noise', 'work'"):
        made().plot(by="cost")
