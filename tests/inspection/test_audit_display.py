"""Drawings of audits, read back from matplotlib's artists."""

from __future__ import annotations

import math
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from skdptune.inspection import AuditDisplay

matplotlib = pytest.importorskip("matplotlib")
pytest.importorskip("matplotlib.pyplot")
CAPITAL = ((0, 0.0), (20, 1.0), (40, 3.5))


@pytest.fixture(autouse=True)
def _closed_figures() -> Iterator[None]:
    matplotlib.use("Agg")
    yield
    matplotlib.pyplot.close("all")


def found(method: str = "auto", **more: Any) -> Any:
    """Return what looks like the result of an audit."""
    rng = np.random.default_rng(0)
    content = {
        "statistic_with": rng.normal(1.0, 1.0, 200),
        "statistic_without": rng.normal(0.0, 1.0, 200),
        "capital": CAPITAL,
        "goal": 3.0,
        "verdict": "The claim is refuted: " + 30 * "word ",
        "method": method,
    }
    return SimpleNamespace(**content | more)


def test_both_sides_are_drawn_on_one_scale() -> None:
    display = AuditDisplay.from_result(found())
    ax = display.ax_
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("statistic", "density")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "with the record",
        "without",
    ]
    assert len(display.lines_) == 2
    assert display.figure_ is ax.figure
    # The verdict is broken into lines.
    assert "\n" in ax.get_title(loc="left")


def test_bets_are_drawn_over_fits() -> None:
    display = AuditDisplay.from_result(found("sequential"))
    (line,) = display.lines_
    assert line.get_xdata().tolist() == [0.0, 40.0, 80.0]
    assert line.get_ydata() == pytest.approx(np.exp([0.0, 1.0, 3.5]))
    assert display.ax_.get_yscale() == "log"
    assert display.ax_.lines[1].get_ydata()[0] == pytest.approx(math.exp(3.0))


def test_failed_fits_and_given_axes_are_drawn() -> None:
    _, ax = matplotlib.pyplot.subplots()
    result = found(statistic_with=np.array([0.0, 1.0, -np.inf]))
    assert AuditDisplay.from_result(result, ax=ax, kind="statistic").ax_ is ax


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(TypeError, match="result must be an AuditResult; got int"):
        AuditDisplay.from_result(1)
    with pytest.raises(ValueError, match="kind must be one of 'auto'"):
        AuditDisplay.from_result(found(), kind="pie")
    with pytest.raises(ValueError, match='kind must be "statistic" where no bets were made'):
        AuditDisplay([1.0], [0.0]).plot(kind="capital")
