"""Audits whose canary is a person with 50 rows: true claims hold, counting rows is detected."""

from __future__ import annotations

import numpy as np
import pytest

from skdptune.accounting import Binomial
from skdptune.audit import audit_epsilon, worst_canary
from skdptune.base._shared import Persons
from skdptune.calibration import PrivateConformalRegressor
from skdptune.ensemble import DPExplainableBoostingClassifier, DPExplainableBoostingRegressor
from skdptune.linear_model import (
    AdaSSPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    DPRidge,
    OutputPerturbationLinearRegression,
)
from skdptune.model_selection import DPRandomSearchCV
from skdptune.model_selection._running import _engine
from skdptune.preprocessing import DPStandardScaler
from tests.audited import MIDDLE
from tests.flat import flat
from tests.model_selection.learners import PersonCut

ROWS = np.zeros((30, 2))
CLASSES = {"epsilon": 1.0, "delta": 1e-5, "classes": [0, 1]}
TARGETS = {"epsilon": 1.0, "target_bound": 1.0}
ESTIMATORS = {
    "preconditioned": DPLogisticRegression(solver="preconditioned", **CLASSES),
    "sgd": DPLogisticRegression(solver="sgd", batch_size=10, epochs=2, **CLASSES),
    "adam": DPLinearSVC(solver="adam", batch_size=10, epochs=2, **CLASSES),
    "output": DPLinearSVC(solver="output", data_norm=1.0, C=0.01, **CLASSES),
    # One epoch: with ten, a person whose rows are weighed moves the last weights by only 1.9 times
    # the sensitivity, not by 23 times. Epochs add up in the sensitivity, but the rows are fitted.
    "psgd": DPLogisticRegression(
        solver="psgd", data_norm=1.0, batch_size=10, epochs=1, fit_intercept=False, **CLASSES
    ),
    "ridge": DPRidge(delta=1e-5, alpha=1.0, **TARGETS),
    "adassp": AdaSSPLinearRegression(delta=1e-5, **TARGETS),
    "output of a regression": OutputPerturbationLinearRegression(**TARGETS),
    "scaler": DPStandardScaler(bounds=(-1.0, 1.0), epsilon=1.0),
    "boosting": DPExplainableBoostingClassifier(bounds=(-1, 1), max_rounds=20, **CLASSES),
    "boosting of a regression": DPExplainableBoostingRegressor(
        bounds=(-1, 1), max_rounds=20, delta=1e-5, **TARGETS
    ),
}


def audited(name, n_trials):
    """Audit an estimator by a person whose 50 rows are its worst record."""
    return audit_epsilon(
        ESTIMATORS[name], ROWS, groups=np.arange(30), n_trials=n_trials, random_state=0
    )


@pytest.fixture
def weighs_rows(monkeypatch):
    """Give each row the weight of a person, as a build does that protects rows."""

    def sums(self, units):
        return np.asarray(np.clip(units, -1.0, 1.0))

    monkeypatch.setattr(Persons, "weights", property(lambda self: np.full(self.codes.size, 2**30)))
    monkeypatch.setattr(Persons, "shares", property(lambda self: np.ones(self.codes.size)))
    monkeypatch.setattr(Persons, "means", sums)


def test_a_person_of_50_rows_is_no_more_visible_than_claimed():
    # Theorem P14: a record may be a person with all rows, who counts by a mean of the rows.
    result = audited("ridge", 120)
    assert not result.is_refuted
    assert "one person" in result.neighbouring
    assert "50 times" in result.canary


def test_a_build_that_weighs_rows_is_refuted(weighs_rows):
    # Theorem P14: a record may be a person with all rows, who counts by a mean of the rows.
    assert audited("ridge", 120).is_refuted


@pytest.mark.slow
@pytest.mark.parametrize("weighs", ["persons", "rows"])
def test_intervals_that_count_rows_are_refuted(weighs, request):
    # Theorem P14, Theorem I2. The residuals of 50 rows of a person move the quantile.
    if weighs == "rows":
        request.getfixturevalue("weighs_rows")
    ridge = OutputPerturbationLinearRegression(fit_intercept=False, target_bound=1.0)
    intervals = PrivateConformalRegressor(
        ridge, epsilon=1.0, coverage=0.5, calibration_fraction=0.9, n_public=60
    )
    result = audit_epsilon(
        intervals,
        np.zeros((60, 2)),
        np.zeros(60),
        groups=np.arange(60),
        canary=(np.zeros((50, 2)), np.ones(50)),
        statistic=lambda fitted: fitted.quantile_,
        n_trials=2000,
        random_state=0,
    )
    assert result.is_refuted == (weighs == "rows")


@pytest.mark.slow
@pytest.mark.parametrize("name", ESTIMATORS)
def test_no_claim_about_persons_is_refuted(name):
    # Theorem P14: a record may be a person with all rows, who counts by a mean of the rows.
    assert not audited(name, 2000).is_refuted


@pytest.mark.slow
@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_build_that_weighs_rows_is_refuted(name, weighs_rows):
    # Theorem P14: a record may be a person with all rows, who counts by a mean of the rows.
    assert audited(name, 2000).is_refuted


def test_a_given_person_is_audited():
    rng = np.random.default_rng(0)
    rows, labels = rng.uniform(-0.1, 0.1, size=(40, 2)), np.arange(40) % 2
    person = np.full((50, 2), 1.0), np.zeros(50, dtype=int)
    result = audit_epsilon(
        ESTIMATORS["output"],
        rows,
        labels,
        groups=np.arange(40) // 2,
        canary=person,
        n_trials=60,
        random_state=0,
    )
    assert not result.is_refuted
    assert result.neighbouring == "add or remove one person with all of their rows"
    with pytest.raises(ValueError, match="a table of a person's rows"):
        audit_epsilon(
            ESTIMATORS["output"], rows, labels, groups=np.arange(40), canary=(rows[0], 0)
        )


def test_a_canary_of_persons_keeps_the_other_records():
    canary = worst_canary(ESTIMATORS["output"], ROWS).of_persons(50)
    assert len(canary.X_with) == len(canary.X_without) + 50
    assert len(set(canary.groups_with)) == len(canary.X_without) + 1
    np.testing.assert_array_equal(canary.X_with[-50:], np.tile(canary.X_with[-1], (50, 1)))
    fitted = canary.fit(ESTIMATORS["output"], present=True, random_state=0)
    assert "one person" in fitted.privacy_.neighbouring


@pytest.mark.parametrize("weighs", ["persons", "rows"])
def test_scores_that_weigh_rows_are_refuted(weighs, monkeypatch):
    # Theorem P14: a record may be a person with all rows, who counts by a mean of the rows.
    if weighs == "rows":
        monkeypatch.setattr(_engine, "values_of", _engine._values_of_rows)
    search = flat(
        DPRandomSearchCV,
        PersonCut(noise=50.0),
        {"cut": [0.5]},
        scoring=MIDDLE,
        cv=2,
        refit=True,
        n_iter_distribution=Binomial(1, 1.0),
        tuning_fraction=None,
        score_epsilon=4.0,
        try_own_values=False,
        n_public=64,
        delta=1e-5,
    )
    result = audit_epsilon(
        search,
        np.zeros((64, 1)),
        np.arange(64) % 2,
        groups=np.arange(64),
        canary=(np.ones((50, 1)), np.zeros(50, dtype=int)),
        statistic=lambda fitted: fitted.best_score_,
        n_trials=120 if weighs == "persons" else 40,
        random_state=0,
    )
    assert result.is_refuted == (weighs == "rows")
    # The person's score is the largest that a person may have. That of rows shows everything.
    assert result.is_refuted or result.gaussian.epsilon_lower > 1.0
