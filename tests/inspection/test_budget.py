"""Drawings of reports: bars of the single parts, and segments that add up to the total."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from skdptune.accounting import Geometric, PrivacyProfile, PrivacyReport
from skdptune.inspection import BudgetDisplay
from skdptune.linear_model import DPLogisticRegression
from skdptune.model_selection import DPGridSearchCV, DPRandomSearchCV, RandomRuns

DELTA = 1e-5
SMALL, LARGE, FIT = (
    PrivacyProfile.pure(0.125),
    PrivacyProfile.pure(0.25),
    PrivacyProfile.gaussian(0.2),
)
MODEL = DPLogisticRegression(solver="output", classes=[0, 1])


def part(profile: PrivacyProfile, name: str, **more: Any) -> PrivacyReport:
    return PrivacyReport(profile, DELTA, name=name, **more)


def pipeline(**more: Any) -> PrivacyReport:
    run = part(FIT, "one run", parts=[part(FIT, "fit")])
    selection = part(FIT.selected(Geometric(0.2)), "selection", note="mean 5 runs", parts=[run])
    total = SMALL + LARGE + selection.profile
    parts = [part(SMALL, "bounds"), part(LARGE, "scaling"), selection]
    return part(total, "DPPipeline", parts=parts, **more)


def test_segments_add_up_to_the_total(check_picture: Any) -> None:
    report = pipeline(epsilon=2.0)
    display = BudgetDisplay.from_report(report)
    assert display.names == ["DPPipeline", "bounds", "scaling", "selection", "one run", "fit"]
    assert display.levels == [0, 1, 1, 1, 2, 3]
    assert display.alone[0] == report.epsilon_spent
    assert display.alone[3] == report.parts[2].profile.epsilon(DELTA)
    widths = [segment.get_width() for segment in display.segments_]
    assert sum(widths) == pytest.approx(report.epsilon_spent, rel=1e-3)
    # A part adds the amount that is missing without it.
    later = report.parts[2].profile
    assert widths[0] == pytest.approx(later.epsilon(DELTA))
    assert widths[1] == pytest.approx((LARGE + later).epsilon(DELTA) - later.epsilon(DELTA))
    assert [bar.get_width() for bar in display.bars_] == pytest.approx(display.alone[1:])
    assert display.asked_.get_xdata() == [2.0, 2.0]
    assert "need not add up" in display.ax_.get_xlabel()
    check_picture(display.figure_, "budget")


def test_parts_on_different_records_cost_what_a_random_record_pays() -> None:
    search = DPRandomSearchCV(
        MODEL,
        {"C": [0.1, 1.0]},
        epsilon=1.0,
        delta=DELTA,
        n_iter=5,
        strategy=RandomRuns(tuning_fraction=0.1, n_iter_distribution="geometric", variant=1),
    )
    display = BudgetDisplay.from_search(search, 2000, 3)
    # The final fit considered separately may cost more than 1, but reads only nine tenths of the
    # records.
    assert np.nansum(display.added) == pytest.approx(display.alone[0], rel=0.02)
    assert (display.alone <= display.alone[0]).all() and display.alone[0] <= 1.0
    assert display.ax_.texts[-1].get_text().endswith(" alone")


def test_a_selection_on_a_part_and_a_fit_on_all_records_add_up() -> None:
    strategy = RandomRuns(tuning_fraction=0.1, n_iter_distribution="geometric")
    model = DPLogisticRegression(classes=[0, 1])
    search = DPRandomSearchCV(
        model, {"C": [0.1, 1.0]}, epsilon=1.0, delta=DELTA, n_iter=5, strategy=strategy
    )
    display = BudgetDisplay.from_search(search, 2000, 3)
    assert np.nansum(display.added) == pytest.approx(display.alone[0], rel=1e-3)
    assert 0.0 < display.added[1] < display.alone[1]


def test_a_grid_adds_its_selection_to_the_final_fit() -> None:
    search = DPGridSearchCV(MODEL, {"C": [0.1, 1.0]}, epsilon=1.0, delta=DELTA, strategy="table")
    display = BudgetDisplay.from_estimator(search, 2000, 3, depth=1)
    assert len(display.bars_) == 2
    assert display.added[1:].tolist()[-1] == pytest.approx(display.alone[-1])
    assert np.nansum(display.added) == pytest.approx(display.alone[0], rel=1e-3)
    assert "final fit takes" in display.statement and "selection adds 0." in display.statement


@pytest.mark.parametrize(
    "strategy",
    [RandomRuns(), RandomRuns(tuning_fraction=0.1, n_iter_distribution="geometric", variant=1)],
    ids=["default", "on different records"],
)
def test_no_part_costs_more_than_what_contains_it(strategy: Any) -> None:
    """The score of a candidate counts for the few records that are held out."""
    search = DPRandomSearchCV(
        MODEL, {"C": [0.1, 1.0]}, epsilon=1.0, delta=DELTA, n_iter=5, strategy=strategy
    )
    display = BudgetDisplay.from_search(search, 2000, 3)
    assert "score" in display.names and "fit" in display.names
    around: list[float] = []
    for level, cost in zip(display.levels, display.alone, strict=True):
        around[level:] = [cost]
        assert level == 0 or cost <= around[level - 1] * (1.0 + 1e-9)


def test_printed_tree_has_the_figures_of_the_plot() -> None:
    report = pipeline()
    display = BudgetDisplay.from_report(report)
    texts = [text.get_text() for text in display.ax_.texts[1:4]]
    for line, text in zip(str(report).splitlines()[1:4], texts, strict=True):
        assert line.endswith(text)


def test_parts_of_one_record_each_cost_the_worst_of_them() -> None:
    parts = [part(LARGE, "left"), part(LARGE, "right")]
    display = BudgetDisplay.from_report(part(LARGE | LARGE, "both", parts=parts))
    assert not math.isfinite(np.nansum(display.added)) or np.isnan(display.added).all()
    assert display.statement == (
        "Together the parts cost ε = 0.250; on the same records they would cost at most 0.500."
    )


@pytest.mark.parametrize("name", ["open", "a name of many words " * 5], ids=["short", "long"])
def test_releases_without_parts_or_privacy_are_drawn(name: str) -> None:
    nothing = BudgetDisplay.from_report(part(PrivacyProfile.pure(0.0), name))
    assert nothing.ax_.texts[0].get_text() == "ε = 0.000"
    bare = PrivacyProfile.approximate(0.0, 1.0)
    inside = [part(bare, "scaler"), part(FIT, "model")]
    for report in (part(bare, name), part(bare, name, parts=inside)):
        display = BudgetDisplay.from_report(report)
        assert display.ax_.texts[0].get_text() == "not private"
        assert display.asked_ is None
        display.figure_.draw_without_rendering()


def test_what_is_no_tree_is_refused() -> None:
    with pytest.raises(TypeError, match="report must be a PrivacyReport; got int"):
        BudgetDisplay.from_report(1)  # type: ignore[arg-type]
    with pytest.raises(
        ValueError, match="levels must have one entry for each name, 0 for the first"
    ):
        BudgetDisplay(["a", "b"], [0, 0], [1.0, 1.0], [1.0, 1.0], delta=0.0)
    with pytest.raises(
        ValueError, match="alone, added and notes must have one entry for each name"
    ):
        BudgetDisplay(["a"], [0], [1.0, 1.0], [1.0], delta=0.0)
    with pytest.raises(TypeError, match="names must be a sequence of str"):
        BudgetDisplay("ab", [0, 1], [1.0, 1.0], [1.0, 1.0], delta=0.0)
    with pytest.raises(ValueError, match="depth must be an integer of at least 0"):
        BudgetDisplay.from_report(part(FIT, "fit"), depth=-1)
