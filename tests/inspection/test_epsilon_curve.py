"""Curves of accuracy over epsilon: the drawing, and its cost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skdptune import config_context
from skdptune.accounting import PrivacyProfile, PrivacyReport
from skdptune.base import NoProfileError, profile_of
from skdptune.inspection import EpsilonCurveDisplay
from skdptune.ledger import LedgerError, PrivacyLedger
from skdptune.linear_model import DPLinearSVC, DPLogisticRegression
from skdptune.preprocessing import RowNormClipper

EPSILONS = [0.1, 0.3, 1.0, 3.0]
SCORES = [[0.55, 0.65, 0.6], [0.7, 0.72, 0.75], [0.8, 0.82, 0.81], [0.84, 0.85, 0.85]]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 3))
Y = (X[:, 0] > 0).astype(int)
DATA = {"X_test": X[100:], "y_test": Y[100:]}
MODEL = DPLogisticRegression(solver="output", classes=[0, 1], delta=0.0, random_state=0)


def curve(estimator: Any = MODEL, epsilons: Any = (2.0, 1.0), **more: Any) -> EpsilonCurveDisplay:
    arguments = {"epsilons": epsilons, "repetitions": 3, **DATA} | more
    return EpsilonCurveDisplay.from_estimator(estimator, X[:100], Y[:100], **arguments)


def test_means_and_a_band_are_drawn_by_rising_epsilon() -> None:
    order = [2, 0, 3, 1]
    found = EpsilonCurveDisplay(
        np.array(EPSILONS)[order], np.array(SCORES)[order], no_privacy=0.9, name="SVC", delta=1e-5
    ).plot()
    assert found.line_.get_xdata().tolist() == EPSILONS
    assert found.line_.get_ydata() == pytest.approx(np.mean(SCORES, axis=1))
    corners = found.band_.get_paths()[0].vertices
    at_first = corners[np.isclose(corners[:, 0], 0.1), 1]
    assert (at_first.min(), at_first.max()) == (0.55, 0.65)
    assert found.no_privacy_.get_ydata()[0] == 0.9
    texts = [text.get_text() for text in found.ax_.get_legend().get_texts()]
    assert texts == ["SVC", "lowest to highest of 3 fits", "without privacy"]
    assert found.ax_.get_xlabel() == "ε at δ = 1e-05"
    assert found.ax_.get_title(loc="left") == found.cost_in_words == ""


def test_the_total_is_the_composition_of_all_fits() -> None:
    """Theorem P4: pure costs add up; others compose by whole profiles."""
    found = curve()
    assert found.privacy_ is not None
    # Three fits of 1 and three of 2.
    assert found.privacy_.epsilon == pytest.approx(9.0, rel=1e-6)
    assert (found.privacy_.delta, len(found.privacy_.parts)) == (0.0, 2)
    assert found.epsilons.tolist() == [1.0, 2.0]
    assert found.scores.shape == (2, 3)
    gaussian = DPLinearSVC(solver="sgd", classes=[0, 1], epochs=1, delta=1e-5)
    found = curve(gaussian, [1.0], repetitions=2)
    one = profile_of(gaussian.set_params(epsilon=1.0), 100, 3)
    assert found.privacy_ is not None
    assert found.privacy_.epsilon == pytest.approx((2 * one).epsilon(1e-5), rel=1e-6)
    assert found.privacy_.epsilon > 1.0
    assert found.delta == 1e-5


def test_the_total_says_what_it_rests_on() -> None:
    found = curve(name="SVC")
    assert found.privacy_ is not None
    assert any("test records are public" in sentence for sentence in found.privacy_.assumptions)
    title = " ".join(found.ax_.get_title(loc="left").split())
    assert title == (
        "The 6 fits of SVC cost ε = 9.000 at δ = 0 together, if the test records are public."
    )
    # A second curve costs as well, and takes nothing away of what the first one says.
    other = curve(epsilons=[4.0], name="other", ax=found.ax_)
    both = " ".join(other.ax_.get_title(loc="left").split())
    assert both.startswith(title) and "The 3 fits of other cost ε = 12.000" in both


def test_fits_have_noise_of_their_own_whatever_the_seed_of_the_estimator() -> None:
    seen: list[Any] = []

    def score(fitted: Any, X: Any, y: Any) -> float:
        seen.append(fitted.coef_.ravel())
        return float(fitted.score(X, y))

    assert curve(scoring=score).score == "score"
    assert len({tuple(weights) for weights in seen}) == 6
    assert MODEL.random_state == 0 and not hasattr(MODEL, "coef_")
    # A seed repeats all of them.
    found = [curve(random_state=3).scores.tolist() for _ in range(2)]
    assert found[0] == found[1]
    seeded = curve(random_state=3).privacy_
    assert seeded is not None and any("seed" in each for each in seeded.assumptions)


def test_fits_are_recorded_by_the_ledger_in_use() -> None:
    ledger = PrivacyLedger(":memory:", "patients", epsilon=30.0, delta=1e-5)
    with ledger:
        curve()
    assert len(ledger.history()) == 6
    with ledger:
        found = curve(public=True)
    assert len(ledger.history()) == 6
    assert found.privacy_ is None
    # Who requires a ledger is not overruled by what a caller says of the data.
    with config_context(require_ledger=True), pytest.raises(LedgerError, match="Nothing was read"):
        curve(public=True)


def test_a_parameter_that_sets_no_cost_is_refused_before_more_is_fitted() -> None:
    ledger = PrivacyLedger(":memory:", "patients", epsilon=50.0, delta=0.01)
    with ledger, pytest.raises(ValueError, match="param must set what a fit costs; got 'C', of"):
        curve(param="C", repetitions=1, epsilons=[0.5, 1.0, 2.0, 4.0])
    assert len(ledger.history()) == 2


def test_a_model_without_privacy_is_fitted_to_public_data_alone() -> None:
    found = curve(public=True, no_privacy=LogisticRegression())
    expected = LogisticRegression().fit(X[:100], Y[:100]).score(X[100:], Y[100:])
    assert found.no_privacy == expected
    assert curve(no_privacy=0.75).no_privacy == 0.75
    with pytest.raises(ValueError, match="no_privacy must be a score, or None, for private data"):
        curve(no_privacy=LogisticRegression())


def test_pipelines_are_drawn_over_their_whole_cost() -> None:
    pipeline = make_pipeline(RowNormClipper(1.0), MODEL)
    found = curve(pipeline, param="dplogisticregression__epsilon", scoring="balanced_accuracy")
    assert found.epsilons.tolist() == [1.0, 2.0]
    assert found.ax_.get_ylabel() == "balanced accuracy"
    with pytest.raises(ValueError, match="param must be a parameter of Pipeline; got 'epsilon'"):
        curve(pipeline)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"estimator": 1}, TypeError, "estimator must be an estimator with fit; got 1"),
        ({"param": "gamma"}, ValueError, "param must be a parameter of DPLogisticRegression"),
        ({"epsilons": [1.0, np.inf]}, ValueError, "epsilons must be one or more different finite"),
        ({"epsilons": [1.0, 1.0]}, ValueError, "epsilons must be one or more different finite"),
        ({"repetitions": 0}, ValueError, "repetitions must be an integer of at least 1"),
        ({"public": 1}, TypeError, "public must be True or False"),
    ],
    ids=["number", "unknown", "infinite", "twice", "no fit", "flag"],
)
def test_wrong_arguments_are_refused_before_any_fit(
    arguments: Any, error: Any, words: str
) -> None:
    ledger = PrivacyLedger(":memory:", "patients", epsilon=30.0, delta=1e-5)
    with ledger, pytest.raises(error, match=words):
        curve(**arguments)
    assert not ledger.history()
    with pytest.raises(NoProfileError):
        curve(LogisticRegression(), param="C")


def test_picture(check_picture: Any) -> None:
    report = PrivacyReport(12 * PrivacyProfile.gaussian(0.5), 1e-5)
    found = EpsilonCurveDisplay(
        EPSILONS, SCORES, privacy=report, name="DPLinearSVC", score="accuracy", delta=1e-5
    ).plot()
    other = [0.62, 0.78, 0.86, 0.88]
    second = EpsilonCurveDisplay(EPSILONS, other, no_privacy=0.9, name="public start", delta=1e-5)
    second.plot(ax=found.ax_)
    check_picture(found.figure_, "epsilon_curve")
