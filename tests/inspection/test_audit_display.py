"""Drawings of audits, read back from matplotlib's artists."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from skdptune.inspection import AuditDisplay

CAPITAL = ((0, 0.0), (20, 1.0), (40, 3.5))


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


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(
        TypeError, match="result must be an AuditResult or a OneRunResult; got int"
    ):
        AuditDisplay.from_result(1)
    with pytest.raises(ValueError, match="kind must be one of 'auto'"):
        AuditDisplay.from_result(found(), kind="pie")
    with pytest.raises(ValueError, match='kind must be "statistic" if no bets were made'):
        AuditDisplay([1.0], [0.0]).plot(kind="capital")
    with pytest.raises(ValueError, match="statistic_with must hold numbers where no bets"):
        AuditDisplay([], []).plot()
    with pytest.raises(TypeError, match="ax must be matplotlib Axes or None; got int"):
        AuditDisplay([1.0], [0.0]).plot(ax=1)


def one_run() -> Any:
    """Return what looks like the result of an audit by one fit."""
    rng = np.random.default_rng(1)
    return SimpleNamespace(
        statistic_with=rng.normal(1.0, 1.0, 500),
        statistic_without=rng.normal(-1.0, 1.0, 500),
        n_canaries=1000,
        verdict=(
            "Consistent with the claim: at δ = 1e-05, ε is at least 3.112 where 8.000 is claimed, "
            "for noise of the claimed kind."
        ),
    )


def test_audits_by_one_fit_show_the_scores_of_canaries() -> None:
    display = AuditDisplay.from_result(one_run())
    assert display.ax_.get_xlabel() == "score"
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert texts == ["canaries that were in", "canaries that were not"]
    with pytest.raises(ValueError, match='kind must be "statistic" if no bets were made'):
        AuditDisplay.from_result(one_run(), kind="capital")


@pytest.mark.parametrize(
    ("kind", "name"), [("statistic", "audit_statistic"), ("capital", "audit_capital")]
)
def test_picture(check_picture: Any, kind: str, name: str) -> None:
    verdict = (
        "The claim is refuted: fits like these have a probability below 0.031 if it holds; if "
        "the statistic is normal, which the fits do not contradict, ε is at least 0.410 where "
        "0.200 is claimed."
    )
    check_picture(AuditDisplay.from_result(found(verdict=verdict), kind=kind).figure_, name)
