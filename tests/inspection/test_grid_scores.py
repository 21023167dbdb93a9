"""Drawings of tables of scores, read back from matplotlib's artists."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from skdptune.inspection import GridScoresDisplay
from skdptune.linear_model import DPLogisticRegression
from skdptune.model_selection import DPGridSearchCV, DPRandomSearchCV

OWN = {"C": None, "epochs": 10}
GRID = [{"C": c, "epochs": e} for c in (1e-5, 1e-3, 0.1, 10.0) for e in (5, 10, 20)]
LEVELS = {1e-5: 0.6, 1e-3: 0.75, 0.1: 0.8, 10.0: 0.74}
SCORES = [0.77, *(LEVELS[one["C"]] + 0.002 * one["epochs"] for one in GRID)]
CUBE = [
    {"C": c, "epochs": e, "solver": s}
    for c, e, s in itertools.product((0.1, 1.0), (5, 10), ("sgd", "output"))
]
ONE = [{"C": c} for c in (10.0, 0.1, 1.0)]
RANDOM = [{"C": None}, *({"C": float(c)} for c in np.geomspace(1e-4, 10.0, 14))]


def display(**more: Any) -> GridScoresDisplay:
    """Return the display of a grid, and of the estimator's own values outside of it."""
    content: dict[str, Any] = {"noise": np.full(13, 0.012), "chosen": 8, "score": "accuracy"}
    return GridScoresDisplay([OWN, *GRID], SCORES, **content | more)


def curved() -> GridScoresDisplay:
    """Return the display of candidates on a line, with two sizes of noise."""
    scores = [0.78, *(0.8 - 0.02 * np.log10(one["C"]) ** 2 for one in RANDOM[1:])]
    noise = np.where(np.arange(15) % 3 == 1, 0.02, 0.01)
    return GridScoresDisplay(RANDOM, scores, noise=noise, chosen=9)


def test_two_parameters_are_a_heat_map_of_all_scores() -> None:
    found = display().plot()
    cells = np.asarray(found.image_.get_array())
    assert cells.shape == (3, 4)
    for score, one in zip(SCORES[1:], GRID, strict=True):
        row, column = (5, 10, 20).index(one["epochs"]), list(LEVELS).index(one["C"])
        assert cells[row, column] == score
    assert (found.ax_.get_xlabel(), found.ax_.get_ylabel()) == ("C", "epochs")
    # As many digits as the noise leaves.
    assert {text.get_text() for text in found.ax_.texts} == {
        f"{score:.3f}" for score in SCORES[1:]
    }
    # White on dark cells, black on light ones.
    assert {text.get_color() for text in found.ax_.texts} == {"white", "black"}
    # The eighth is that of C = 0.1 and 10 epochs.
    assert found.chosen_.get_bbox().bounds == (1.5, 0.5, 1.0, 1.0)
    title = " ".join(found.ax_.get_title(loc="left").split())
    assert title == (
        "Scores carry noise of ±0.012 (standard deviation), in addition to that of the fits. "
        "Framed: the chosen candidate. Off the grid: C = None, epochs = 10 (0.770)."
    )


def test_slices_hold_the_chosen_values() -> None:
    scores = np.arange(8.0)
    found = GridScoresDisplay(CUBE, scores, chosen=3).plot(kind="slices", params="C")
    (line,) = (drawn.lines[0] for drawn in found.lines_)
    # Ten epochs of "output": the fourth candidate, and that with the larger C.
    assert line.get_ydata().tolist() == [3.0, 7.0]
    assert "At epochs = 10, solver = output." in found.ax_.get_title(loc="left")
    # Without a choice, those of the largest score.
    found = GridScoresDisplay(CUBE, -scores).plot(kind="heatmap", params=("C", "epochs"))
    assert found.ax_.get_title(loc="left") == "At solver = sgd."


def test_other_lists_are_drawn_one_below_the_other() -> None:
    star = [{"lr": None, "norm": None}, {"lr": 2.0, "norm": None}, {"lr": None, "norm": 1.0}]
    found = GridScoresDisplay(star, [0.8, 0.7, 0.9], chosen=0).plot()
    labels = [text.get_text() for text in found.ax_.get_yticklabels()]
    assert labels == ["lr = 2, norm = None", "lr = None, norm = None", "lr = None, norm = 1"]
    assert found.chosen_.get_ydata()[0] == 1.0
    assert GridScoresDisplay([{"C": 1.0}], [0.5]).plot().ax_.get_xlabel() == "score"


def test_noise_is_stated_for_what_it_is() -> None:
    assert display(noise=None).noise_in_words == ""
    assert display(noise=np.zeros(13)).noise_in_words == (
        "Scores carry no noise in addition to that of the fits."
    )
    assert display(n_folds=3).noise_in_words == (
        "Standard error over 3 folds, noise included: ±0.012."
    )


def data() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 3))
    return X, X[:, 0] > 0


SEARCH = DPGridSearchCV(
    DPLogisticRegression(solver="output"),
    {"C": [1e-3, 0.1, 10.0]},
    epsilon=4.0,
    delta=1e-5,
    random_state=0,
    strategy="table",
)


@pytest.mark.parametrize("cv", [0.2, 3])
def test_searches_are_drawn_as_they_publish(cv: Any) -> None:
    search = clone(SEARCH).set_params(cv=cv).fit(*data())
    found = GridScoresDisplay.from_search(search)
    results = search.cv_results_
    assert found.scores.tolist() == results["mean_test_score"].tolist()
    assert found.chosen == search.best_index_
    assert found.ax_.get_ylabel() == "accuracy"
    assert found.noise is not None
    if cv == 0.2:
        assert found.noise.tolist() == results["std_test_score"].tolist()
    else:
        folds = np.array([results[f"split{place}_test_score"] for place in range(3)])
        assert found.noise == pytest.approx(folds.std(axis=0, ddof=1) / np.sqrt(3.0))


@pytest.mark.parametrize("cv", [0.2, 3])
def test_one_of_several_metrics_is_drawn(cv: Any) -> None:
    scoring = {"a": "accuracy", "a_test_b": "neg_brier_score"}
    search = clone(SEARCH).set_params(cv=cv, scoring=scoring, refit="a_test_b").fit(*data())
    for metric, name in ((None, "a_test_b"), ("a", "a")):
        found = GridScoresDisplay.from_search(search, metric=metric)
        assert found.scores.tolist() == search.cv_results_[f"mean_test_{name}"].tolist()
        assert found.n_folds == (3 if cv == 3 else 1)
        assert found.ax_.get_ylabel() == name
        assert found.chosen == search.best_index_
    with pytest.raises(ValueError, match="metric must be one of 'a.*; got 'recall'"):
        GridScoresDisplay.from_search(search, metric="recall")
    without = clone(search).set_params(refit=False).fit(*data())
    assert GridScoresDisplay.from_search(without, metric="a").chosen is None
    with pytest.raises(ValueError, match="metric must be one of .*; got None"):
        GridScoresDisplay.from_search(without)
    with pytest.raises(ValueError, match="metric must be None for a search with one metric"):
        GridScoresDisplay.from_search(clone(SEARCH).fit(*data()), metric="accuracy")


def test_searches_without_a_table_are_refused() -> None:
    words = "search must be a fitted DPGridSearchCV with strategy='table' or 'compose'"
    with pytest.raises(TypeError, match=f"{words}.*; got int"):
        GridScoresDisplay.from_search(1)
    single = DPRandomSearchCV(
        DPLogisticRegression(solver="output"),
        {"C": [0.1]},
        epsilon=4.0,
        delta=1e-5,
        random_state=0,
    ).fit(*data())
    with pytest.raises(TypeError, match="got DPRandomSearchCV, which publishes no table of"):
        GridScoresDisplay.from_search(single)
    with pytest.raises(ValueError, match="got a DPGridSearchCV that is not fitted"):
        GridScoresDisplay.from_search(SEARCH)
    chosen = clone(SEARCH).set_params(strategy="noisy_max").fit(*data())
    with pytest.raises(ValueError, match="a DPGridSearchCV that has only published its choice"):
        GridScoresDisplay.from_search(chosen)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"candidates": []}, ValueError, "candidates must hold at least one"),
        ({"scores": [1.0, 2.0, np.inf]}, ValueError, "scores must hold a finite number"),
        ({"noise": [0.1, 0.1, -0.1]}, ValueError, "noise must"),
        ({"chosen": 3}, ValueError, "chosen must be an integer of at least 0 and at most 2"),
    ],
    ids=[*("none", "infinite", "negative", "beyond")],
)
def test_wrong_tables_are_refused(arguments: Any, error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        GridScoresDisplay(**{"candidates": ONE, "scores": [1.0, 2.0, 3.0]} | arguments)


def test_pictures(check_picture: Any) -> None:
    check_picture(display().plot().figure_, "scores_heatmap")
    check_picture(display().plot(kind="slices").figure_, "scores_slices")
    check_picture(curved().plot().figure_, "scores_points")
