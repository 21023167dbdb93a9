"""Drawings of threshold searches, read back from matplotlib's artists."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from skdptune.inspection import DoublingRoundsDisplay
from skdptune.linear_model import DPLogisticRegression
from skdptune.mechanisms import ThresholdRound
from skdptune.model_selection import DoublingThresholdSearchCV

ROUNDS = [
    *(ThresholdRound(0.0, 1, True), ThresholdRound(0.05, 2, True), ThresholdRound(0.15, 4, True)),
    *(ThresholdRound(0.35, 8, True), ThresholdRound(0.75, 16, False)),
    *(ThresholdRound(0.75, 8, False), ThresholdRound(0.75, 4, True)),
    *(ThresholdRound(0.95, 8, False), ThresholdRound(0.95, 4, False)),
]
SEARCH = DoublingThresholdSearchCV(
    DPLogisticRegression(solver="output"),
    {"C": [0.1, 1.0]},
    epsilon=4.0,
    delta=1e-5,
    random_state=0,
)


def test_rounds_are_drawn_where_the_search_asked() -> None:
    found = DoublingRoundsDisplay(ROUNDS, granularity=0.05).plot()
    assert found.passed_.get_xdata().tolist() == [1, 2, 3, 4, 7]
    assert found.passed_.get_ydata() == pytest.approx([0.05, 0.15, 0.35, 0.75, 0.95])
    assert found.missed_.get_xdata().tolist() == [5, 6, 8, 9]
    assert found.missed_.get_ydata() == pytest.approx([1.55, 1.15, 1.35, 1.15])
    assert found.line_.get_ydata() == pytest.approx([*(r.utility for r in ROUNDS), 0.95])
    title = " ".join(found.ax_.get_title(loc="left").split())
    assert title.startswith("A candidate passed in 5 of 9 rounds. Thresholds and comparisons")


def test_where_nothing_passed_that_is_said() -> None:
    found = DoublingRoundsDisplay([(0.5, 1, False)]).plot()
    assert found.passed_ is None
    title = " ".join(found.ax_.get_title(loc="left").split())
    assert title == (
        "A candidate passed in 0 of 1 round. The first candidate was taken, which depends on no "
        "data."
    )


def test_searches_are_drawn_by_their_trace_alone() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 2))
    search = clone(SEARCH).fit(X, X[:, 0] > 0)
    found = DoublingRoundsDisplay.from_search(search)
    assert found.rounds == search.trace_
    assert found.ax_.get_ylabel() == "accuracy"
    # The level is not the score: noise lifts it.
    assert found.reached[-1] >= search.best_score_
    assert found.granularity == search.granularity_
    # Nothing else is kept: no utilities, no candidates.
    kept = {name for name in vars(found) if not name.endswith("_")}
    assert kept == {"rounds", "granularity", "utility"}
    search.scorer_ = replace(search.scorer_, lower=-1.0)
    assert DoublingRoundsDisplay.from_search(search).utility == "accuracy, scaled to 0 to 1"
    del search.trace_
    with pytest.raises(ValueError, match="fitted the unchanged estimator, since a search"):
        DoublingRoundsDisplay.from_search(search)


@pytest.mark.parametrize(
    ("search", "error", "words"),
    [
        (1, TypeError, "must be a fitted DoublingThresholdSearchCV; got int"),
        (SEARCH, ValueError, "must be a fitted DoublingThresholdSearchCV; got one that is not"),
    ],
    ids=["number", "unfitted"],
)
def test_other_searches_are_refused(search: Any, error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        DoublingRoundsDisplay.from_search(search)


def test_picture(check_picture: Any) -> None:
    found = DoublingRoundsDisplay(ROUNDS, granularity=0.05, utility="accuracy").plot()
    check_picture(found.figure_, "doubling_rounds")
