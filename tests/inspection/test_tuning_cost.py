"""Drawings of the cost of tuning: the figures of the accounting, as bars or as lines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from skdptune.accounting import Geometric, PrivacyProfile, tune_then_fit
from skdptune.inspection import TuningCostDisplay
from skdptune.linear_model import DPLogisticRegression
from skdptune.model_selection import DPGridSearchCV, DPRandomSearchCV
from tests.flat import flat
from tests.inspection.pictures import check_grey

RUN, COUNT, DELTA = PrivacyProfile.gaussian(0.25), Geometric.from_mean(20), 1e-5
MODEL = DPLogisticRegression(solver="output", classes=[0, 1])


def test_bars_are_the_figures_of_the_bounds(check_picture: Any) -> None:
    display = TuningCostDisplay.from_profile(RUN, COUNT, delta=DELTA, tuning_fraction=0.05)
    ways = {
        "no tuning: one fit": RUN,
        "all runs published": 20 * RUN,
        "best run, Rényi bound": RUN.selected(COUNT, "rdp"),
        "best run, profile bound": RUN.selected(COUNT, "profile"),
        "best run, envelope": RUN.selected(COUNT),
        "best run on 5 % of records, then one fit: envelope": tune_then_fit(
            RUN.selected(COUNT), RUN, 0.05
        ),
    }
    expected = {name: profile.epsilon(DELTA) for name, profile in ways.items()}
    for name, epsilon in expected.items():
        assert display.epsilons[name][0] == epsilon
        assert display.artists_[name].get_width() == epsilon
    # Theorem T7: no valid bound of the selection lies left of this line.
    least = display.epsilons["no valid bound is smaller"][0]
    assert expected["no tuning: one fit"] <= least <= expected["best run, envelope"]
    (line,) = display.artists_["no valid bound is smaller"].get_segments()
    assert line[:, 0].tolist() == [least, least]
    check_picture(display.figure_, "tuning_cost")


def test_lines_over_numbers_of_runs(check_picture: Any) -> None:
    counts = [Geometric.from_mean(mean) for mean in (10, 2)]
    display = TuningCostDisplay.from_profile(RUN, counts)
    assert display.means.tolist() == pytest.approx([2.0, 10.0])
    for name, line in display.artists_.items():
        assert line.get_ydata().tolist() == display.epsilons[name].tolist()
    envelope = display.epsilons["best run, envelope"]
    assert np.all(np.diff(envelope) > 0.0)
    assert np.ptp(display.epsilons["no tuning: one fit"]) == 0.0
    check_grey(display.ax_)
    check_picture(display.figure_, "tuning_cost_lines")


def test_a_search_is_drawn_as_its_plan_has_it() -> None:
    more = {"n_iter": 5, "n_iter_distribution": "geometric", "tuning_fraction": 0.1}
    search = flat(DPRandomSearchCV, MODEL, {"C": [0.1, 1.0]}, epsilon=1.0, delta=DELTA, **more)
    display = TuningCostDisplay.from_search(search, 2000, 3)
    plan = search.plan(2000, 3, compare=False)
    own = "DPRandomSearchCV, as planned: on 10 % of records, then one fit"
    assert display.highlighted == own
    assert display.epsilons[own].tolist() == [plan.epsilon]
    assert display.means.tolist() == pytest.approx([5.0])
    fit = plan.report.parts[1].profile
    assert display.epsilons["no tuning: one fit"][0] == fit.epsilon(DELTA)


def test_what_cannot_be_drawn_is_refused() -> None:
    grid = DPGridSearchCV(MODEL, {"C": [0.1, 1.0]}, epsilon=1.0, delta=DELTA)
    with pytest.raises(ValueError, match="search must make a random number of runs; got a DPGrid"):
        TuningCostDisplay.from_search(grid, 2000, 3)
    with pytest.raises(TypeError, match="search must be a search of skdptune; got DPLogistic"):
        TuningCostDisplay.from_search(MODEL, 2000, 3)
    with pytest.raises(TypeError, match="profile must be a PrivacyProfile; got float"):
        TuningCostDisplay.from_profile(1.0, COUNT)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="distribution must be a RunCountDistribution or"):
        TuningCostDisplay.from_profile(RUN, 10)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"tuning_fraction must be a number in \(0, 1\)"):
        TuningCostDisplay.from_profile(RUN, COUNT, tuning_fraction=1.0)
    with pytest.raises(ValueError, match="highlighted must be one of epsilons; got 'two'"):
        TuningCostDisplay({"one": [1.0]}, [2.0], delta=DELTA, highlighted="two")
