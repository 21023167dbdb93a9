"""Drawings of fronts, read back from matplotlib's artists."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skdptune.inspection import ParetoFrontDisplay

EPSILONS = np.array([0.1, 0.4, 0.2, 1.0, 2.0, np.nan, np.inf])
ERRORS = np.array([0.5, 0.3, 0.6, 0.35, 0.1, np.nan, 0.0])
FRONT = np.array([[0.1, 0.5], [0.4, 0.3], [2.0, 0.1]])


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


def test_release_states_its_cost() -> None:
    display = ParetoFrontDisplay.from_search(found(release=4.0))
    assert display.ax_.get_title(loc="left") == "released for ε = 4"
    several = ParetoFrontDisplay.from_search({"a": found(release=4.0), "b": found(release=4.0)})
    assert "released" not in several.ax_.get_title(loc="left")
    named = ParetoFrontDisplay.from_search(found(release=4.0), name="mine")
    assert named.ax_.get_legend().get_title().get_text() == "released for ε = 4"


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


def test_pictures(check_picture: Any) -> None:
    several = {"one": found(), "two": found(0.05), "three": found(0.12)}
    check_picture(ParetoFrontDisplay.from_search(several).figure_, "pareto_fronts")
    single = ParetoFrontDisplay.from_search(
        found(release=3.0), y="utility", reference=True, annotate=[0.5]
    )
    check_picture(single.figure_, "pareto_front")
