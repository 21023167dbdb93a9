"""Drawings of fronts: what is in them, read back from matplotlib's artists."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skdptune.inspection import ParetoFrontDisplay

matplotlib = pytest.importorskip("matplotlib")
pytest.importorskip("matplotlib.pyplot")
EPSILONS = np.array([0.1, 0.4, 0.2, 1.0, 2.0, np.nan, np.inf])
ERRORS = np.array([0.5, 0.3, 0.6, 0.35, 0.1, np.nan, 0.0])
FRONT = np.array([[0.1, 0.5], [0.4, 0.3], [2.0, 0.1]])


@pytest.fixture(autouse=True)
def _closed_figures() -> Iterator[None]:
    matplotlib.use("Agg")
    yield
    matplotlib.pyplot.close("all")


def found(shift: float = 0.0, **more: Any) -> Any:
    """Return what looks like a fitted search."""
    errors = np.clip(ERRORS + shift, 0.0, 1.0)
    table = {"epsilon": EPSILONS, "error": errors}
    sides = {
        name: np.column_stack([EPSILONS, errors + more])
        for name, more in (("mean", 0.0), ("best", -0.05), ("worst", 0.08))
    }
    report = SimpleNamespace(delta=1e-6)
    return SimpleNamespace(
        pareto_front_={"epsilon": FRONT[:, 0], "error": FRONT[:, 1] + shift},
        evaluations_=table,
        fronts_=sides,
        privacy_=report,
        reference_point=(10.0, 0.9),
        **more,
    )


def heights(line: Any, x: list[float]) -> list[float]:
    """Return what a step line reads at some places."""
    known, level = line.get_xdata(), line.get_ydata()
    assert line.get_drawstyle() == "steps-post"
    return [float(level[np.searchsorted(known, place, side="right") - 1]) for place in x]


whole = st.integers(0, 6)


@given(st.lists(st.tuples(whole, whole), max_size=12))
def test_a_front_holds_the_points_that_none_is_better_than(points: list[tuple[int, int]]) -> None:
    pairs = np.array([*points, (np.inf, 0.0), (1.0, np.nan)], dtype=float)
    found = ParetoFrontDisplay.from_points({"one": (pairs[:, 0], pairs[:, 1])}).fronts["one"]
    exact = {
        (x, y)
        for x, y in points
        if not any(a <= x and b <= y and (a, b) != (x, y) for a, b in points)
    }
    assert [tuple(point) for point in found.points.tolist()] == sorted(exact)


def test_line_steps_down_from_point_to_point() -> None:
    display = ParetoFrontDisplay.from_search(found())
    (line,) = display.lines_
    assert heights(line, [0.1, 0.39, 0.4, 1.99, 2.0]) == [0.5, 0.5, 0.3, 0.3, 0.1]
    # It goes on to the right end of the axes, at what the last point buys.
    assert line.get_xdata()[-1] >= display.ax_.get_xlim()[1]
    assert line.get_ydata()[-1] == 0.1
    assert display.figure_ is display.ax_.figure


def test_axes_are_named_and_logarithmic() -> None:
    ax = ParetoFrontDisplay.from_search(found()).ax_
    assert ax.get_xscale() == "log"
    assert ax.get_xlabel() == "ε at δ = 1e-06"
    assert ax.get_ylabel() == "error (1 − utility)"
    low, high = ax.get_xlim()
    assert low < 0.1 and 2.0 < high < 3.0
    assert ax.get_ylim()[0] >= 0.0
    assert ParetoFrontDisplay.from_points({"one": ([1.0], [0.5])}).plot().ax_.get_xlabel() == "ε"


def test_evaluations_almost_without_noise_do_not_squeeze_the_front() -> None:
    search = found()
    search.evaluations_ = {"epsilon": np.append(EPSILONS, 1e9), "error": np.append(ERRORS, 0.4)}
    assert ParetoFrontDisplay.from_search(search).ax_.get_xlim()[1] < 3.0
    # Unless there is nothing else.
    alone = ParetoFrontDisplay.from_points({"one": ([1e9], [0.1])}, reference_point=(10.0, 1.0))
    assert alone.plot().ax_.get_xlim()[1] > 1e9


@pytest.mark.parametrize(("right", "labels"), [(1.0, {"0.2", "0.5"}), (100.0, set())])
def test_small_ranges_have_labels_between_powers_of_ten(right: float, labels: set[str]) -> None:
    display = ParetoFrontDisplay.from_points({"one": ([0.15, right], [0.5, 0.1])}).plot()
    low, high = display.ax_.get_xlim()
    ticks = display.ax_.get_xticklabels(minor=True)
    shown = {tick.get_text() for tick in ticks if low <= tick.get_position()[0] <= high}
    assert shown - {""} == labels


def test_utility_is_the_mirrored_error() -> None:
    display = ParetoFrontDisplay.from_search(found(), y="utility")
    assert heights(display.lines_[0], [0.1, 0.4, 2.0]) == pytest.approx([0.5, 0.7, 0.9])
    assert display.ax_.get_ylabel() == "utility"


def test_the_score_names_the_axis_where_it_is_the_utility() -> None:
    accurate, precise, wide = (
        found(scorer_=SimpleNamespace(name=name, lower=low, upper=1.0))
        for name, low in (("accuracy", 0.0), ("precision", 0.0), ("r2", -1.0))
    )
    for searches, y, label in (
        (accurate, "utility", "accuracy"),
        (accurate, "error", "error (1 − accuracy)"),
        ({"one": accurate, "other": accurate}, "utility", "accuracy"),
        ({"one": accurate, "other": precise}, "utility", "utility"),
        ({"one": accurate, "other": found()}, "utility", "utility"),
        (wide, "utility", "utility"),
    ):
        display = ParetoFrontDisplay.from_search(searches, y=y)
        assert display.ax_.get_ylabel() == label


def test_evaluations_are_shown_if_wanted() -> None:
    shown = ParetoFrontDisplay.from_search(found(), spread=False).ax_.collections
    # Those with both numbers; what failed and what has no privacy is nowhere on the axes.
    offsets = np.asarray(shown[0].get_offsets())
    np.testing.assert_allclose(np.sort(offsets[:, 0]), [0.1, 0.2, 0.4, 1.0, 2.0])
    hidden = ParetoFrontDisplay.from_search(found(), spread=False, evaluations=False)
    assert len(hidden.ax_.collections) == 0


def test_band_lies_between_the_best_and_the_worst_repeats() -> None:
    display = ParetoFrontDisplay.from_search(found(), evaluations=False)
    (band,) = display.ax_.collections
    vertices = band.get_paths()[0].vertices
    at_half = vertices[np.isclose(vertices[:, 0], 0.4)]
    assert np.isclose(at_half[:, 1], 0.25).any() and np.isclose(at_half[:, 1], 0.38).any()
    search = found()
    # One repeat: the best and the worst are the same.
    search.fronts_ = dict.fromkeys(search.fronts_, search.fronts_["mean"])
    assert not ParetoFrontDisplay.from_search(search, evaluations=False).ax_.collections
    search.fronts_ = {"mean": search.fronts_["mean"]}
    assert not ParetoFrontDisplay.from_search(search, evaluations=False).ax_.collections


def test_band_of_three_objectives_is_their_lower_edge() -> None:
    best = np.array([[1.0, 0.4, 9.0], [1.5, 0.6, 0.1], [2.0, 0.1, 1.0]])
    worst = np.array([[1.0, 0.6, 9.0], [2.0, 0.3, 1.0]])
    search = found()
    search.fronts_ |= {"best": best, "worst": worst}
    (front,) = ParetoFrontDisplay.from_search(search).fronts.values()
    assert front.band is not None
    assert front.band[0].tolist() == [[1.0, 0.4], [2.0, 0.1]]
    assert front.band[1].tolist() == [[1.0, 0.6], [2.0, 0.3]]


def test_several_searches_on_one_pair_of_axes() -> None:
    display = ParetoFrontDisplay.from_search({"one": found(), "two": found(0.05)})
    assert [line.get_label() for line in display.lines_] == ["one", "two"]
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert texts == ["one", "two"]
    colours = {line.get_color() for line in display.lines_}
    styles = {str(line.get_linestyle()) for line in display.lines_}
    assert len(colours) == len(styles) == 2


def test_single_front_needs_no_legend_but_takes_a_name() -> None:
    assert ParetoFrontDisplay.from_search(found()).ax_.get_legend() is None
    named = ParetoFrontDisplay.from_search(found(), name="forest")
    assert named.ax_.get_legend().get_texts()[0].get_text() == "forest"


def test_given_axes_and_colours_are_used() -> None:
    _, ax = matplotlib.pyplot.subplots()
    first = ParetoFrontDisplay.from_search(found(), ax=ax, colors=["black"])
    ax.set_ylabel("kept")
    second = ParetoFrontDisplay.from_search(found(0.1), ax=ax, name="more", colors=["red"])
    assert first.ax_ is second.ax_ is ax
    # What is drawn on already keeps its dress.
    assert ax.get_ylabel() == "kept"
    assert first.lines_[0].get_color() == "black"
    assert second.lines_[0].get_color() == "red"


def test_reference_point_and_hypervolume() -> None:
    display = ParetoFrontDisplay.from_search(
        found(), reference=True, spread=False, evaluations=False
    )
    marks = [line for line in display.ax_.lines if line.get_label() == "reference point"]
    assert [(line.get_xdata()[0], line.get_ydata()[0]) for line in marks] == [(10.0, 0.9)]
    (volume,) = display.ax_.collections
    box = volume.get_paths()[0].get_extents()
    assert (box.x0, box.x1, box.y1) == (0.1, 10.0, 0.9)
    # Both are on the axes.
    low, high = display.ax_.get_xlim()
    assert low < 0.1 and 10.0 < high
    several = ParetoFrontDisplay.from_search(
        {"one": found(), "two": found()}, reference=True, spread=False, evaluations=False
    )
    assert not several.ax_.collections


def test_annotations_say_what_a_budget_buys() -> None:
    display = ParetoFrontDisplay.from_search(found(), annotate=[0.05, 0.5])
    assert [text.get_text() for text in display.ax_.texts] == ["ε = 0.5: 0.3"]


def test_release_states_its_cost() -> None:
    display = ParetoFrontDisplay.from_search(found(release=4.0))
    assert display.ax_.get_title(loc="left") == "released for ε = 4"
    several = ParetoFrontDisplay.from_search({"a": found(release=4.0), "b": found(release=4.0)})
    assert "released" not in several.ax_.get_title(loc="left")
    named = ParetoFrontDisplay.from_search(found(release=4.0), name="mine")
    assert named.ax_.get_legend().get_title().get_text() == "released for ε = 4"


def test_points_are_reduced_to_their_front() -> None:
    display = ParetoFrontDisplay.from_points({"all": (EPSILONS, ERRORS)})
    np.testing.assert_array_equal(display.fronts["all"].points, FRONT)
    assert not hasattr(display, "ax_")
    assert display.plot() is display
    assert display.lines_


def test_front_without_points_is_drawn_all_the_same() -> None:
    display = ParetoFrontDisplay.from_points({"none": ([], [])}).plot()
    assert display.ax_.get_xscale() == "log"


@pytest.mark.parametrize("extension", ["png", "svg"])
def test_figure_can_be_saved(tmp_path: Any, extension: str) -> None:
    display = ParetoFrontDisplay.from_search({"a": found(), "b": found(0.1)}, annotate=[1.0])
    file = tmp_path / f"front.{extension}"
    display.figure_.savefig(file)
    assert file.stat().st_size > 5000


def test_refusals() -> None:
    with pytest.raises(TypeError, match="search must be a fitted DParetoSearchCV .* got object"):
        ParetoFrontDisplay.from_search(object())
    with pytest.raises(TypeError, match=r"got SimpleNamespace for .*, without evaluations_"):
        ParetoFrontDisplay.from_search(SimpleNamespace(pareto_front_=1))
    with pytest.raises(ValueError, match="y must be one of 'error', 'utility'; got 'both'"):
        ParetoFrontDisplay.from_search(found(), y="both")
    with pytest.raises(ValueError, match="fronts must hold at least one front"):
        ParetoFrontDisplay.from_search({})
    with pytest.raises(TypeError, match="points must be a dict of names to points"):
        ParetoFrontDisplay.from_points([1.0])


def test_missing_matplotlib_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    display = ParetoFrontDisplay.from_points({"one": ([1.0], [0.5])})
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(
        ModuleNotFoundError, match=r"^ParetoFrontDisplay needs matplotlib.*skdptune\[plot\]"
    ):
        display.plot()


def test_axes_must_be_axes() -> None:
    with pytest.raises(TypeError, match="ax must be matplotlib Axes or None; got str"):
        ParetoFrontDisplay.from_search(found(), ax="here")


def test_pictures(check_picture: Any) -> None:
    several = {"one": found(), "two": found(0.05), "three": found(0.12)}
    check_picture(ParetoFrontDisplay.from_search(several).figure_, "pareto_fronts")
    single = ParetoFrontDisplay.from_search(
        found(release=3.0), y="utility", reference=True, annotate=[0.5]
    )
    check_picture(single.figure_, "pareto_front")
