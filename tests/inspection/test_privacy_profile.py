"""Drawings of privacy profiles, read back from matplotlib's artists, and pictures of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skdptune.accounting import Geometric, PrivacyProfile
from skdptune.base import NoProfileError
from skdptune.inspection import PrivacyProfileDisplay, TradeOffDisplay
from skdptune.linear_model import DPLogisticRegression
from skdptune.model_selection import DPGridSearchCV
from skdptune.preprocessing import DPStandardScaler, RowNormClipper
from tests.inspection.pictures import check_grey

RUN = PrivacyProfile.gaussian(0.25)


def test_a_profile_and_its_point() -> None:
    display = PrivacyProfileDisplay.from_profile(RUN, delta=1e-5)
    x, y = display.line_.get_data()
    assert np.all(np.diff(x) > 0.0)
    assert y == pytest.approx(RUN.delta(x))
    assert display.ax_.get_yscale() == "log"
    assert y[-1] < display.ax_.get_ylim()[0] < 1e-9
    epsilon = RUN.epsilon(1e-5)
    assert np.ravel(display.point_.get_data()) == pytest.approx([epsilon, 1e-5])
    (words,) = (text.get_text() for text in display.ax_.texts)
    # Rounded up.
    assert words == "ε = 0.927 at δ = 1e-05" and epsilon <= 0.927


def test_several_are_compared_on_one_pair_of_axes(check_picture: Any) -> None:
    ax = PrivacyProfileDisplay.from_profile(RUN, delta=1e-5, label="one run").ax_
    more = {
        "best of 10": RUN.selected(Geometric.from_mean(10)),
        "all 10": 10 * RUN,
        "pure": PrivacyProfile.pure(1.0),
    }
    for label, profile in more.items():
        delta = 0.0 if label == "pure" else 1e-5
        display = PrivacyProfileDisplay.from_profile(profile, delta=delta, label=label, ax=ax)
        assert display.ax_ is ax
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names[0] == "one run: ε = 0.927 at δ = 1e-05"
    assert names[-1] == "pure: ε = 1.000 at δ = 0"
    # All curves are completely visible, and no text covers them.
    assert ax.get_xlim()[1] >= (10 * RUN).epsilon(1e-10)
    assert not ax.texts
    check_grey(ax)
    check_picture(ax.figure, "privacy_profile_several")


@pytest.mark.parametrize(
    ("epsilon", "delta", "asked"),
    [(0.0, 0.0, None), (1.0, 0.0, 0.0), (0.0, 1e-4, 1e-6), (2.0, 1e-4, 1.0), (2.0, 1e-4, 0.0)],
)
def test_guarantees_with_an_end_are_drawn(
    epsilon: float, delta: float, asked: float | None
) -> None:
    profile = PrivacyProfile.approximate(epsilon, delta)
    display = PrivacyProfileDisplay.from_profile(profile, delta=asked)
    x, y = display.line_.get_data()
    assert x[-1] >= max(epsilon, 0.5)
    # The end is seen: no more than delta is left of it.
    assert y[-1] <= max(1.02 * delta, 1e-200)
    display.figure_.draw_without_rendering()


def test_nothing_private_is_drawn_as_such() -> None:
    display = PrivacyProfileDisplay.from_profile(
        PrivacyProfile.approximate(0.0, 1.0), delta=1e-5, label="open"
    )
    assert np.all(display.line_.get_ydata() == 1.0)
    assert display.point_ is None
    assert display.line_.get_label() == "open: not private at δ = 1e-05"


MODEL = DPLogisticRegression(solver="output", classes=[0, 1], random_state=0)
PSGD = DPLogisticRegression(epsilon=1.0, solver="psgd", classes=[0, 1], random_state=0)
SCALER = DPStandardScaler(0.5, delta=1e-6, bounds=(-1.0, 1.0), random_state=0)
SEARCH = DPGridSearchCV(MODEL, {"C": [0.1, 1.0]}, epsilon=1.0, delta=1e-5, random_state=0)


@pytest.mark.filterwarnings("ignore:random_state")
@pytest.mark.parametrize(
    ("estimator", "compares"),
    [
        *((MODEL, True), (make_pipeline(SCALER, MODEL), False)),
        *((make_pipeline(RowNormClipper(1.0), PSGD), True), (SEARCH, False)),
        (make_pipeline(RowNormClipper(1.0)), False),
    ],
    ids=["model", "pipeline", "zero-out pipeline", "search", "stateless"],
)
def test_a_fit_to_come_is_drawn_as_after_it(estimator: Any, compares: bool) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1.0, 1.0, size=(400, 2)), np.arange(400) % 2
    estimator = clone(estimator)
    before = PrivacyProfileDisplay.from_estimator(estimator, 400, 2)
    words = TradeOffDisplay.from_estimator(estimator, 400, 2).statement if compares else ""
    after = PrivacyProfileDisplay.from_estimator(estimator.fit(X, y), label="fitted")
    assert after.deltas == pytest.approx(before.deltas)
    assert after.asked == before.asked
    # About the same neighbours, and with the same figures.
    assert not compares or TradeOffDisplay.from_estimator(estimator).statement == words


def test_what_has_no_report_is_refused() -> None:
    with pytest.raises(ValueError, match="estimator must be fitted if n_samples is not given"):
        PrivacyProfileDisplay.from_estimator(make_pipeline(SCALER, MODEL))
    with pytest.raises(NoProfileError):
        PrivacyProfileDisplay.from_estimator(LogisticRegression(), 100, 2)
    with pytest.raises(TypeError, match="got the class DPGridSearchCV"):
        PrivacyProfileDisplay.from_search(DPGridSearchCV, 100, 2)


def test_searches_are_drawn_before_their_fit() -> None:
    display = PrivacyProfileDisplay.from_search(SEARCH, 1000, 3)
    assert display.asked == (1.0, 1e-5)
    assert display.label == "DPGridSearchCV"
    # The total lies left of what was asked for.
    assert np.interp(1.0, display.epsilons, display.deltas) <= 1e-5
    with pytest.raises(ValueError, match="search must be fitted if n_samples is not given"):
        PrivacyProfileDisplay.from_search(SEARCH)
    with pytest.raises(TypeError, match="search must be a search of skdptune; got DPLogistic"):
        PrivacyProfileDisplay.from_search(MODEL, 1000, 3)


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(TypeError, match="profile must be a PrivacyProfile; got int"):
        PrivacyProfileDisplay.from_profile(1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="delta must be given with an epsilon"):
        PrivacyProfileDisplay.from_profile(RUN, epsilon=1.0)
    with pytest.raises(ValueError, match="epsilon must be at least .* the cost of the profile"):
        PrivacyProfileDisplay.from_profile(RUN, delta=1e-5, epsilon=0.1)
    with pytest.raises(TypeError, match="report must be a PrivacyReport; got PrivacyProfile"):
        PrivacyProfileDisplay.from_report(RUN)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="estimator must be an estimator with fit"):
        PrivacyProfileDisplay.from_estimator(DPLogisticRegression, 10)
    with pytest.raises(ValueError, match="asked"):
        PrivacyProfileDisplay([0.0], [0.1], asked=(1.0, math.nan))
    with pytest.raises(ValueError, match="epsilons must be increasing"):
        PrivacyProfileDisplay([1.0, 0.0], [0.1, 0.2])
