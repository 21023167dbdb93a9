"""The comparison of pictures detects a missing line, and accepts equal pictures."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from skdptune.inspection import TradeOffDisplay
from tests.inspection import pictures
from tests.inspection.pictures import BASELINE, DRAW, MATPLOTLIB

ROOT = Path(__file__).resolve().parents[2]


def lines(number: int, **look: Any) -> Any:
    """Return a figure with this number of lines."""
    from matplotlib import pyplot

    figure, ax = pyplot.subplots()
    x = np.linspace(0.0, 1.0, 20)
    for place in range(number):
        ax.plot(x, x ** (place + 1), **{"linestyle": ("-", "--", "-.", ":")[place]} | look)
    # That a missing line does not move the others.
    ax.set(xlim=(0.0, 1.0), ylim=(0.0, 1.0))
    return figure


@pytest.fixture
def _own_baseline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "BASELINE", tmp_path / "baseline")
    monkeypatch.delenv(DRAW, raising=False)


@pytest.mark.usefixtures("_own_baseline")
def test_a_missing_line_is_seen(
    check_picture: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(AssertionError, match="There is no picture .*SKDPTUNE_DRAW_BASELINE=1"):
        check_picture(lines(4), "three")
    with monkeypatch.context() as patch:
        patch.setenv(DRAW, "1")
        check_picture(lines(4), "three")
    # The same lines pass, ...
    check_picture(lines(4), "three")
    # ... without the last, which is dotted, or with a thinner one they do not, ...
    for other in (lines(3), lines(4, linewidth=1.0)):
        with pytest.raises(pytest.fail.Exception, match="looks different: .*DRAW_BASELINE=1"):
            check_picture(other, "three")
    assert (tmp_path / "three-difference.png").is_file()
    # ... and neither does one marker, a word, or another size.
    marked, named, larger = lines(4), lines(4), lines(4)
    marked.axes[0].plot(0.2, 0.8, marker="o")
    named.axes[0].set_title("word")
    larger.set_size_inches(7.0, 4.2)
    for other in (marked, named):
        with pytest.raises(pytest.fail.Exception, match="looks different"):
            check_picture(other, "three")
    with pytest.raises(AssertionError, match="size of three changed"):
        check_picture(larger, "three")


def test_lines_that_differ_in_colour_alone_are_seen() -> None:
    with pictures.drawing():
        figure = lines(4, label="line")
        pictures.check_grey(figure.axes[0])
        figure = lines(4, label="line", linestyle="-")
        with pytest.raises(AssertionError):
            pictures.check_grey(figure.axes[0])


def luminance(colour: Any) -> float:
    """Return the relative luminance of the Web's rules for contrast."""
    from matplotlib.colors import to_rgb

    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("name", ["default", "dark_background"])
def test_lines_and_words_show_on_light_and_on_dark(name: str) -> None:
    with pictures.drawing():
        from matplotlib import style

        with style.context(name):
            ax = None
            for _ in range(7):
                ax = TradeOffDisplay([0.0, 1.0], [0.1, 1.0], label="one").plot(ax=ax).ax_
            ground = luminance(ax.get_facecolor()[:3])
            words = ax.xaxis.label, ax.yaxis.label, *ax.get_legend().get_texts()
            for drawn, least in [(each, 4.5) for each in words] + [(e, 2.0) for e in ax.lines]:
                high, low = sorted((luminance(drawn.get_color()), ground), reverse=True)
                assert (high + 0.05) / (low + 0.05) >= least


def test_pictures_are_of_the_pinned_matplotlib() -> None:
    for name in ("constraints.txt", "constraints-newest.txt"):
        found = re.search(r"^matplotlib==(\d+\.\d+)\.", (ROOT / name).read_text(), re.MULTILINE)
        assert found is not None and found[1] == MATPLOTLIB


def test_every_picture_is_compared_and_small() -> None:
    tests = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    drawn = sorted(BASELINE.glob("*.png"))
    assert [path.name for path in drawn if f'"{path.stem}"' not in tests] == []
    assert [path.name for path in drawn if path.stat().st_size > 40_000] == []
