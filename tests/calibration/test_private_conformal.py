"""Common properties of intervals and sets: cost, split, budgets, input, refusals, reports."""

from __future__ import annotations

import math
import pickle
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from skdptune.accounting import exponential_mechanism, mixture
from skdptune.base import NoProfileError, privacy_of, profile_of
from skdptune.calibration import PrivateConformalClassifier, PrivateConformalRegressor
from skdptune.calibration import _private_conformal as module
from skdptune.linear_model import (
    AdaSSPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    DPRidge,
)
from skdptune.metrics import neg_squared_error
from skdptune.model_selection import DPGridSearchCV, DPRandomSearchCV, RandomRuns
from skdptune.preprocessing import DPStandardScaler, Schema, make_private_pipeline
from tests.calibration.models import Told
from tests.tables import COLUMNS, people

RNG = np.random.default_rng(0)
ROWS = RNG.uniform(-1.0, 1.0, size=(3000, 3))
TARGETS = 0.5 * ROWS[:, 0] + RNG.normal(scale=0.1, size=3000)
LABELS = (ROWS[:, 0] + RNG.normal(scale=0.3, size=3000) > 0).astype(int)
RIDGE = DPRidge(target_bound=1.0, data_norm=2.0)
LOGISTIC = DPLogisticRegression(solver="output", data_norm=2.0)


def scored(monkeypatch: pytest.MonkeyPatch) -> list[np.ndarray]:
    """Return a list to which the scores of each fit are added."""
    seen: list[np.ndarray] = []

    def quantile(values: Any, *others: Any, **more: Any) -> float:
        seen.append(np.sort(values))
        return 0.5

    monkeypatch.setattr(module, "private_quantile", quantile)
    return seen


# The cost ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "delta", "fraction"), [(1.0, 1e-5, 0.2), (0.3, 1e-7, 0.5)])
def test_fit_and_quantile_cost_a_mixture(epsilon, delta, fraction) -> None:
    # Theorem I1: intervals: a record is fitted to or held out, so the two parts cost a mixture.
    model = PrivateConformalRegressor(
        RIDGE, epsilon=epsilon, delta=delta, calibration_fraction=fraction
    )
    inner = clone(RIDGE).set_params(
        epsilon=epsilon, delta=delta / (1.0 - fraction), n_public=round(3000 * (1.0 - fraction))
    )
    parts = [exponential_mechanism(0.999 * epsilon), profile_of(inner, 3000, 3)]
    found, wanted = profile_of(model, 3000, 3), mixture(parts, [fraction, 1.0 - fraction])
    for at in (1e-9, delta, 1e-3):
        assert found.epsilon(at) == pytest.approx(wanted.epsilon(at), rel=1e-9)
    assert 0.999 * epsilon < found.epsilon(delta) <= epsilon
    # The fit has a larger delta than it could have without the quantile.
    assert parts[1].epsilon(delta) > epsilon


def test_the_quantile_is_drawn_with_the_epsilon_that_is_charged(monkeypatch) -> None:
    # Theorem I1: intervals: a record is fitted to or held out, so the two parts cost a mixture.
    given: list[float] = []

    def quantile(scores: Any, level: float, low: float, high: float, *others: Any, **more: Any):
        given.append(others[0])
        return 0.5

    monkeypatch.setattr(module, "private_quantile", quantile)
    model = PrivateConformalRegressor(RIDGE, coverage=0.5, random_state=0).fit(ROWS, TARGETS)
    assert model.privacy_.parts[1].profile == exponential_mechanism(given[0])


def test_a_pure_budget_stays_pure() -> None:
    model = PrivateConformalClassifier(LOGISTIC, epsilon=0.7, delta=0.0)
    assert 0.699 < profile_of(model, 3000, 3).epsilon(0.0) <= 0.7


def test_steps_of_a_pipeline_share_the_budget() -> None:
    steps = make_pipeline(DPStandardScaler(bounds=(-1, 1)), clone(LOGISTIC))
    model = PrivateConformalClassifier(steps, random_state=0).fit(ROWS, LABELS)
    assert 0.998 < model.privacy_.epsilon_spent <= 1.0
    assert [part.name for part in model.privacy_.parts[0].parts] == [
        "DPStandardScaler",
        "DPLogisticRegression",
    ]


def test_an_estimator_with_noise_of_its_own_must_fit_the_budget() -> None:
    noisy = DPLogisticRegression(solver="sgd", epsilon=None, noise_multiplier=20.0, epochs=1)
    spent = profile_of(PrivateConformalClassifier(noisy), 3000, 3).epsilon(1e-5)
    assert spent <= 1.0
    loud = clone(noisy).set_params(noise_multiplier=0.5)
    with pytest.raises(ValueError, match="epsilon must be at least what the estimator costs"):
        profile_of(PrivateConformalClassifier(loud), 3000, 3)


def test_one_record_more_changes_one_score_or_the_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    # Theorem I1: intervals: a record is fitted to or held out, so the two parts cost a mixture.
    seen, held = scored(monkeypatch), 0
    few, targets = ROWS[:400], TARGETS[:400]
    for seed in range(12):
        model = PrivateConformalRegressor(
            Told(), target_bound=1.0, coverage=0.5, n_public=400, random_state=seed
        )
        before = clone(model).fit(few[:-1], targets[:-1]).estimator_.rows_
        after = clone(model).fit(few, targets).estimator_.rows_
        less, more = seen[-2:]
        if more.size > less.size:
            held += 1
            np.testing.assert_array_equal(before, after)
            place = np.searchsorted(less, np.setdiff1d(more, less)[0])
            np.testing.assert_array_equal(np.delete(more, place), less)
        else:
            np.testing.assert_array_equal(more, less)
            np.testing.assert_array_equal(before, after[:-1])
    assert 0 < held < 12


def test_coins_have_the_chance_that_is_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = scored(monkeypatch)
    model = PrivateConformalRegressor(Told(), target_bound=1.0, calibration_fraction=0.3)
    # Without a seed: a chance of 1e-9 to be so far off.
    model.fit(ROWS, TARGETS)
    assert abs(seen[0].size - 900) < 6.0 * math.sqrt(3000 * 0.3 * 0.7)


# Records and sizes ---------------------------------------------------------------------------


def test_an_improper_record_has_the_worst_score(monkeypatch: pytest.MonkeyPatch) -> None:
    # Theorem R5: in the worst case a record becomes a constant row.
    seen = scored(monkeypatch)
    rows, targets = ROWS[:500].astype(object), TARGETS[:500].astype(object)
    rows[0, 1], rows[1, 0], rows[2] = "word", np.nan, np.inf
    targets[3], targets[4] = "word", np.inf
    counts = []
    for seed in range(3):
        model = PrivateConformalRegressor(
            Told(), target_bound=1.0, coverage=0.5, random_state=seed
        )
        clone(model).fit(ROWS[:500], np.clip(TARGETS[:500], -0.5, 0.5))
        # Targets and predictions are at most 1 apart, of a range of 2.
        assert seen[-1].max() < 1.0
        model.fit(rows.tolist(), targets.tolist())
        n_worst = np.count_nonzero(seen[-1] == 1.0)
        kept = np.isfinite(model.estimator_.rows_).all()
        assert kept
        # Either record is held out or not, as it was without the odd ones.
        assert seen[-1].size == seen[-2].size
        counts.append(n_worst)
    assert all(count <= 5 for count in counts)
    assert sum(counts) > 0


def test_a_record_that_the_model_cannot_predict_has_the_worst_score(monkeypatch) -> None:
    seen = scored(monkeypatch)

    def predict(self: Told, X: Any) -> Any:
        first = np.asarray(X)[:, 0].astype(float)
        if (first > 0.9).any():
            raise ValueError("so large a number")
        return first

    monkeypatch.setattr(Told, "predict", predict)
    model = PrivateConformalRegressor(Told(), target_bound=1.0, random_state=0).fit(ROWS, TARGETS)
    n_fitted = np.count_nonzero(model.estimator_.rows_[:, 0] > 0.9)
    n_large = np.count_nonzero(ROWS[:, 0] > 0.9) - n_fitted
    assert np.count_nonzero(seen[0] == 1.0) == n_large > 0


@pytest.mark.parametrize("n_samples", [0, 1, 2, 5])
def test_parts_of_a_secret_size_may_be_empty(n_samples: int) -> None:
    # Theorem F3: sizes of random parts are never used.
    model = PrivateConformalRegressor(RIDGE, n_public=400, coverage=0.5, random_state=0)
    model.fit(ROWS[:n_samples], TARGETS[:n_samples])
    assert model.coverage_ == 0.5
    assert np.isfinite(model.predict_interval(ROWS)).all()


def test_with_too_few_records_every_answer_is_the_whole_range() -> None:
    few = {"X": ROWS[:60], "y": TARGETS[:60]}
    with pytest.warns(
        UserWarning, match=r"coverage=0.9 cannot be guaranteed for 60 records"
    ) as told:
        model = PrivateConformalRegressor(RIDGE, random_state=0).fit(**few)
    assert "about 1" in str(told[0].message)
    assert model.coverage_ == 1.0
    np.testing.assert_array_equal(model.predict_interval(ROWS[:2]), [[-1.0, 1.0]] * 2)
    with pytest.warns(UserWarning, match="whole range"):
        sets = PrivateConformalClassifier(LOGISTIC).fit(ROWS[:60], LABELS[:60])
    assert sets.predict_set(ROWS).all()


# Compositions ------------------------------------------------------------------------------


def test_a_table_with_words_and_gaps() -> None:
    table, _, targets = people(2000)
    ridge = DPRidge()
    schema = Schema(COLUMNS, target=(-50.0, 100.0))
    around = PrivateConformalRegressor(make_private_pipeline(ridge, schema), random_state=0)
    low, high = around.fit(table, targets).predict_interval(table).T
    assert 0.85 < np.mean((low <= targets) & (targets <= high)) < 0.96
    assert list(around.feature_names_in_) == list(COLUMNS)
    within = make_private_pipeline(PrivateConformalRegressor(ridge), schema)
    assert within[-1].target_bound == (-50.0, 100.0)
    # What the schema knows reaches the model inside.
    assert within[-1].estimator.data_norm == around.estimator[-1].data_norm
    assert 0.999 < privacy_of(within.fit(table, targets)).epsilon <= 1.0


def test_labels_of_a_schema_and_of_a_table() -> None:
    table, labels, _ = people(2000)
    schema = Schema(COLUMNS, target=["no", "yes"])
    pipeline = make_private_pipeline(DPLogisticRegression(), schema)
    model = PrivateConformalClassifier(pipeline, random_state=0).fit(table, labels)
    sets = model.predict_set(table)
    assert sets.shape == (2000, 2)
    assert list(model.classes_) == ["no", "yes"]
    assert 0.85 < sets[np.arange(2000), (labels == "yes").astype(int)].mean() < 0.97
    assert model.score(table, labels) > 0.7


def test_it_is_searched_over() -> None:
    model = PrivateConformalRegressor(RIDGE, coverage=0.8)
    settings = {"epsilon": 3.0, "delta": 1e-5, "scoring": neg_squared_error(1.0)}
    grid = {"estimator__alpha": [1.0, 100.0], "coverage": [0.7, 0.8]}
    search = DPGridSearchCV(model, grid, random_state=0, **settings).fit(ROWS, TARGETS)
    assert 2.9 < search.privacy_.epsilon_spent <= 3.0
    assert search.best_estimator_.predict_interval(ROWS).shape == (3000, 2)
    # The search passes on what its model can do.
    assert search.predict(ROWS).shape == (3000,)
    suggested = DPRandomSearchCV(model, n_iter=2, random_state=0, **settings)
    assert "estimator__alpha" in str(suggested.fit(ROWS, TARGETS).best_params_)


def test_a_search_is_inside() -> None:
    search = DPRandomSearchCV(LOGISTIC, {"C": [0.1, 1.0]}, epsilon=1.0, delta=1e-5, n_iter=2)
    search.set_params(strategy=RandomRuns())
    model = PrivateConformalClassifier(search, epsilon=2.0, random_state=0).fit(ROWS, LABELS)
    assert 1.99 < model.privacy_.epsilon_spent <= 2.0
    assert model.privacy_.parts[0].name == "DPRandomSearchCV"
    assert model.estimator_.best_params_["C"] in (None, 0.1, 1.0)


# The contract --------------------------------------------------------------------------------

CASES = {
    "intervals": PrivateConformalRegressor(RIDGE, coverage=0.8),
    "sets": PrivateConformalClassifier(LOGISTIC, delta=0.0),
}


def test_seeds_repeat_and_are_not_kept() -> None:
    # Theorem F9: no published object holds a seed or a generator of its noise.
    model = PrivateConformalClassifier(LOGISTIC, random_state=3)
    one, other = (clone(model).fit(ROWS, LABELS) for _ in range(2))
    np.testing.assert_array_equal(one.predict_proba(ROWS), other.predict_proba(ROWS))
    assert one.quantile_ == other.quantile_
    assert one.estimator_.random_state is None
    third = clone(model).set_params(random_state=4).fit(ROWS, LABELS)
    assert not np.array_equal(one.predict_proba(ROWS), third.predict_proba(ROWS))
    copied = pickle.loads(pickle.dumps(one))
    np.testing.assert_array_equal(copied.predict_set(ROWS), one.predict_set(ROWS))


def test_the_report_names_both_parts() -> None:
    text = str(CASES["intervals"].fit(ROWS, TARGETS).privacy_)
    assert "DPRidge" in text
    assert "quantile of residuals held out (coverage 0.8, 0.5 of the records)" in text
    assert "intervals cover targets clipped to [-1, 1]" in text


# What is refused -----------------------------------------------------------------------------


def test_bad_parameters_are_refused_before_data_are_read() -> None:
    intervals, sets = PrivateConformalRegressor, PrivateConformalClassifier
    two = DPRidge(target_bound=[(0.0, 1.0), 2.0])
    for model, message in (
        (intervals(Ridge()), "not private"),
        (intervals(LOGISTIC), "a private regressor"),
        (sets(RIDGE), "a private classifier"),
        (sets(DPLinearSVC()), "with predict_proba"),
        (intervals("ridge"), "it has no fit"),
        (intervals(AdaSSPLinearRegression()), "target_bound must be"),
        (intervals(two), "ranges of 2 targets"),
        (intervals(RIDGE, coverage=1.0), "coverage must be"),
        (intervals(RIDGE, coverage="0.9"), "coverage must be"),
        (intervals(RIDGE, epsilon=None), "epsilon must be"),
        (intervals(RIDGE, delta=-1.0), "delta must be"),
        (intervals(RIDGE, calibration_fraction=0.0), "calibration_fraction must be"),
        (sets(LOGISTIC, classes=[1]), "classes must be"),
        (intervals(make_pipeline(PolynomialFeatures(), RIDGE)), "steps that accept any record"),
    ):
        with pytest.raises((TypeError, ValueError, NoProfileError), match=message):
            model.fit(None, TARGETS)
        with pytest.raises((TypeError, ValueError, NoProfileError), match=message):
            model.privacy_profile(3000, 3)


def test_bad_data_are_refused_by_their_form() -> None:
    model = CASES["intervals"]
    with pytest.raises(ValueError, match="y"):
        model.fit(ROWS)
    with pytest.raises(ValueError, match="inconsistent"):
        model.fit(ROWS, TARGETS[:-1])
    with pytest.raises(ValueError, match="one target per record"):
        model.fit(ROWS, ROWS)
    with pytest.raises(TypeError, match="y must hold numbers"):
        model.fit(ROWS, np.array(["a", "b", "c"] * 1000))
    with pytest.raises(ValueError, match="two-dimensional"):
        model.fit(ROWS[0], TARGETS[:3])
    with pytest.raises(ValueError, match="at least two classes"):
        CASES["sets"].fit(ROWS, np.zeros(3000))


def test_a_step_that_may_fail_stands_before() -> None:
    model = make_pipeline(PolynomialFeatures(), PrivateConformalRegressor(RIDGE))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model.fit(ROWS, TARGETS).predict(ROWS).shape == (3000,)
