"""The look that displays share; matplotlib is asked for late, and named where it is missing."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from skdptune.inspection._plotting import (
    COLOURS,
    DASHES,
    add_legend,
    add_title,
    axes_for,
    bar_look,
    ink_on,
    line_look,
    name_rows,
    next_place,
    quiet,
    room_for,
    tidy,
    wrapped,
    write_beside,
)
from tests.inspection.pictures import drawing


@pytest.fixture
def _style() -> Iterator[None]:
    with drawing():
        yield


@pytest.mark.usefixtures("_style")
def test_axes_are_new_or_the_users() -> None:
    display = SimpleNamespace()
    ax = axes_for(display)
    assert display.ax_ is ax and display.figure_ is ax.figure
    assert axes_for(display, ax) is ax
    with pytest.raises(TypeError, match=r"ax must be matplotlib Axes or None; got Figure\."):
        axes_for(display, ax.figure)


def luminance(colour: Any) -> float:
    """Return the relative luminance of the Web's rules for contrast."""
    from matplotlib.colors import to_rgb

    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: Any, two: Any) -> float:
    """Return the contrast, from 1 to 21, of the Web's rules."""
    high, low = sorted((luminance(one), luminance(two)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.usefixtures("_style")
def test_lines_and_words_show_on_light_and_on_dark() -> None:
    for colour in COLOURS:
        assert contrast(colour, ink_on(colour)) >= 4.0, colour
        assert min(contrast(colour, "white"), contrast(colour, "black")) >= 2.0, colour
    from matplotlib import style

    for name in ("default", "dark_background"):
        with style.context(name):
            ax = axes_for(SimpleNamespace())
            assert contrast(quiet(ax), ax.get_facecolor()[:3]) >= 3.0
            assert contrast(quiet(ax, 0.12), ax.get_facecolor()[:3]) <= 2.0
            ax.set_facecolor("none")
            assert contrast(quiet(ax), ax.figure.get_facecolor()[:3]) >= 3.0


@pytest.mark.usefixtures("_style")
def test_many_lines_differ_twice() -> None:
    looks = [line_look(place, markers=True) for place in range(len(COLOURS) * len(DASHES))]
    assert len({str(look) for look in looks}) == len(looks)
    # Side by side, any two of the first five differ in colour and dashes, and bars in hatching.
    assert len({str(look["linestyle"]) for look in looks[:5]}) == 5
    assert len({bar_look(place)["hatch"] for place in range(7)}) == 7


@pytest.mark.usefixtures("_style")
def test_dressing_axes() -> None:
    ax = axes_for(SimpleNamespace())
    assert add_legend(ax) is None
    tidy(ax)
    tidy(ax, grid=None)
    ax.plot([0, 1], [0, 1], label="one")
    assert next_place(ax) == 1
    assert [text.get_text() for text in add_legend(ax).get_texts()] == ["one"]
    title = add_title(ax, 40 * "word ")
    ax.figure.draw_without_rendering()
    # No line is wider than the axes.
    assert title.get_window_extent().x1 <= ax.figure.bbox.x1


def test_words_are_wrapped() -> None:
    assert wrapped("one two\nthree", 6.4) == "one two\nthree"
    assert max(map(len, wrapped(100 * "word ", 1.0).splitlines())) <= 20
    # A figure is not parted from its percent sign.
    assert wrapped("seventeen letters 5 % of all", 1.0) == "seventeen letters\n5 % of all"


@pytest.mark.usefixtures("_style")
def test_words_beside_bars_have_room() -> None:
    words, ax = ["ε = 1.000 alone, adds 0.500", "2"], axes_for(SimpleNamespace())
    ax.barh([0, 1], [1.0, 0.5])
    name_rows(ax, ["one", "two"], [0, 1], 1.0)
    ax.set_xlim(0.0, room_for(words, 5.0))
    beside = [
        write_beside(ax, each, end, row)
        for row, (each, end) in enumerate(zip(words, (1.0, 0.5), strict=True))
    ]
    left = write_beside(ax, "left", 0.5, 1, left=True)
    ax.figure.draw_without_rendering()
    assert beside[0].get_window_extent().x1 <= ax.get_window_extent().x1
    assert left.get_window_extent().x1 < beside[1].get_window_extent().x0
    assert room_for([], 5.0) < room_for(words, 5.0) <= 3.0
