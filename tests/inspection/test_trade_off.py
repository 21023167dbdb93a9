"""Drawings of trade-off curves, whose sentences stay true when figures are rounded."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from skdptune.accounting import Geometric, PrivacyProfile, PrivacyReport
from skdptune.inspection import TradeOffDisplay
from tests.inspection.pictures import check_grey

RUN = PrivacyProfile.gaussian(0.5)
REPLACE = "replace one of a public number of records"
OTHER: dict[str, Any] = {"neighbouring": REPLACE}
RATES = st.floats(0.0, 1.0)


def figures(statement: str) -> list[float]:
    """Return the percentages of a sentence, as rates."""
    found = re.findall(r"([\d.]+) %", statement)
    return [float(Decimal(each) / 100) for each in found]


def test_the_sentence_is_true_of_gaussian_noise(check_picture: Any) -> None:
    # Theorem P2: the trade-off curve of Gaussian noise is known.
    display = TradeOffDisplay.from_profile(RUN)
    assert display.statement == (
        "An attacker who accuses 1 % of the absent finds at most 3.4 % of the present."
    )
    absent, present = figures(display.statement)
    exact = norm.cdf(norm.ppf(absent) + 0.5)
    assert exact <= present <= 1.01 * exact
    inner = display.false_positive_rates[1:-1]
    exact_curve = norm.cdf(norm.ppf(inner) + 0.5)
    curve = display.true_positive_rates[1:-1]
    assert np.all(curve >= exact_curve - 1e-12)
    assert curve == pytest.approx(exact_curve, rel=1e-2, abs=1e-6)
    assert display.ax_.get_title(loc="left").replace("\n", " ") == display.statement
    check_picture(display.figure_, "trade_off")


@given(absent=RATES, present=RATES)
def test_figures_in_words_are_rounded_the_safe_way(absent: float, present: float) -> None:
    display = TradeOffDisplay([0.0], [0.0], marked=[(absent, present)])
    said_absent, said_present = figures(display.statement)
    # An attacker with at most the stated rate of accusations finds at most the stated rate.
    assert said_absent <= absent
    assert present <= said_present <= max(1.0, present)
    assert said_present - present <= 0.1 * present + 1e-300
    assert absent - said_absent <= 0.1 * absent + 1e-300


@pytest.mark.parametrize(
    "epsilon, said", [(0.0, "1 %"), (1.0, "2.8 %"), (10.0, "100 %")], ids=["none", "one", "ten"]
)
def test_pure_guarantees_in_words(epsilon: float, said: str) -> None:
    # At most exp(epsilon) times the false-positive rate, and less above one half.
    display = TradeOffDisplay.from_profile(PrivacyProfile.pure(epsilon))
    assert display.statement.endswith(f"finds at most {said} of the present.")


def test_no_curve_lies_below_guessing() -> None:
    for profile in (PrivacyProfile.pure(0.0), PrivacyProfile.approximate(0.0, 1e-3), RUN):
        display = TradeOffDisplay.from_profile(profile)
        assert np.all(display.true_positive_rates >= display.false_positive_rates)
        assert np.all(np.diff(display.true_positive_rates) >= 0.0)
    nothing = TradeOffDisplay.from_profile(PrivacyProfile.pure(0.0))
    assert nothing.true_positive_rates == pytest.approx(nothing.false_positive_rates, abs=1e-12)


def test_several_on_logarithmic_axes(check_picture: Any) -> None:
    display = TradeOffDisplay.from_profile(RUN, log=True, label="one run")
    ax = display.ax_
    best = TradeOffDisplay.from_profile(
        RUN.selected(Geometric.from_mean(10)), label="best of 10", ax=ax
    )
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names[:2] == ["guessing", "one run: at most 3.4 % at 1 %"]
    assert best.guessing_ is display.guessing_
    # A sentence about only one of them is not used as title.
    assert ax.get_title(loc="left") == ""
    check_grey(ax)
    check_picture(ax.figure, "trade_off_log")


def test_missed_records_are_drawn_from_the_other_side() -> None:
    display = TradeOffDisplay.from_profile(RUN, kind="missed", false_positive_rates=[0.01, 0.1])
    x, y = display.line_.get_data()
    assert y == pytest.approx(RUN.tradeoff(x), abs=1e-12)
    assert display.guessing_.get_ydata() == pytest.approx(1.0 - display.guessing_.get_xdata())
    assert len(display.points_.get_xdata()) == 2
    assert display.statement == (
        "An attacker who accuses 1 % or 10 % of the absent finds at most 3.4 % or 21.8 % of the "
        "present."
    )
    assert 0.217 < norm.cdf(norm.ppf(0.1) + 0.5) <= 0.218
    assert TradeOffDisplay([0.0], [0.0]).statement == ""


def test_words_are_about_the_neighbours_of_the_report() -> None:
    report = PrivacyReport(RUN, 1e-5, name="fit", neighbouring=REPLACE)
    display = TradeOffDisplay.from_report(report)
    assert "of those who were replaced" in display.statement
    assert "replaced" in display.ax_.get_xlabel()
    other = TradeOffDisplay([0.0], [0.0], marked=[(0.1, 0.2)], neighbouring="one edge of a graph")
    assert "of the one kind of neighbours" in other.statement


def test_curves_about_several_kinds_of_neighbours_name_neither() -> None:
    plain, other = (TradeOffDisplay([0.0, 1.0], [0.1, 1.0], **more) for more in ({}, OTHER))
    ax = plain.plot().ax_
    plain.plot(ax=ax)
    assert ax.get_xlabel().startswith("accused of the absent")
    other.plot(ax=ax)
    plain.plot(ax=ax)
    assert ax.get_xlabel() == "accused of the one kind of neighbours (false-positive rate)"
    assert ax.get_ylabel() == "found of the other (true-positive rate)"


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(ValueError, match="false_positive_rates must be increasing, and as many"):
        TradeOffDisplay([0.0, 1.0], [0.0])
    with pytest.raises(ValueError, match="marked must be pairs of rates"):
        TradeOffDisplay([0.0], [0.0], marked=[(0.1, 0.2, 0.3)])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="marked must be pairs of rates"):
        TradeOffDisplay([0.0], [0.0], marked=[0.1])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="kind must be one of 'found', 'missed'; got 'roc'"):
        TradeOffDisplay.from_profile(RUN, kind="roc")
    with pytest.raises(TypeError, match="profile must be a PrivacyProfile"):
        TradeOffDisplay.from_profile("gaussian")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"false_positive_rates must be a number in \[0, 1\]"):
        TradeOffDisplay.from_profile(RUN, false_positive_rates=1.5)
