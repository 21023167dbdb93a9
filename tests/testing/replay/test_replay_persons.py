"""Replays and checks whose neighbours are whole persons, and their findings."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator

from skdptune.accounting import PrivacyProfile
from skdptune.base import PrivateEstimatorMixin
from skdptune.linear_model import (
    AdaSSPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    DPRidge,
    OutputPerturbationLinearRegression,
    PTRLinearRegression,
)
from skdptune.preprocessing import DPStandardScaler
from skdptune.testing import check_private_estimator, replay_neighbours

GROUPS = np.repeat(np.arange(60), 3)[:160]
ROWS = np.random.default_rng(0).uniform(-1.0, 1.0, size=(160, 3))
LABELS = (ROWS[:, 0] + ROWS[:, 1] > 0.0).astype(int)
BUDGET = {"epsilon": 1.0, "delta": 1e-6}
CLASSIFIERS = {
    "preconditioned": DPLogisticRegression(solver="preconditioned", **BUDGET),
    "sgd": DPLogisticRegression(solver="sgd", batch_size=20, epochs=2, **BUDGET),
    "adam-fixed": DPLinearSVC(solver="adam", batch_size=20, epochs=2, sampling="fixed", **BUDGET),
    "output": DPLogisticRegression(solver="output", data_norm=1.0, **BUDGET),
    "psgd": DPLogisticRegression(solver="psgd", data_norm=1.0, batch_size=20, **BUDGET),
}
REGRESSORS = {
    "ridge": DPRidge(target_bound=1.0, **BUDGET),
    "adassp": AdaSSPLinearRegression(target_bound=1.0, **BUDGET),
    "output": OutputPerturbationLinearRegression(target_bound=1.0, epsilon=1.0),
}


def replay_of_person(estimator, y, target, count, n_repeats=8):
    """Replay a fit with and without a person with this number of copies of one distant row."""
    rows = np.tile([[5.0, -5.0, 5.0]], (count, 1))
    person = rows if y is None else (rows, np.full(count, target))
    return replay_neighbours(
        estimator, ROWS, y, person, groups=GROUPS, n_repeats=n_repeats, random_state=1
    )


@pytest.mark.parametrize("count", [2, 5000])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_estimators_protect_whole_persons(name, count):
    # Theorem P14: a record may be a person with all rows, who counts by a mean of the rows.
    replay = replay_of_person(CLASSIFIERS[name], LABELS, 0, count)
    assert replay.findings == []
    assert "one person" in str(replay)


@pytest.mark.parametrize("count", [2, 5000])
@pytest.mark.parametrize("name", REGRESSORS)
def test_regressions_protect_whole_persons(name, count):
    # Theorem P14: a record may be a person with all rows, who counts by a mean of the rows.
    assert replay_of_person(REGRESSORS[name], ROWS[:, 0], -4.0, count).findings == []


@pytest.mark.parametrize("count", [1, 50])
def test_the_scaler_protects_whole_persons(count):
    # Theorem P14: a record may be a person with all rows, who counts by a mean of the rows.
    scaler = DPStandardScaler(bounds=(-1.0, 1.0), epsilon=1.0)
    assert replay_of_person(scaler, None, None, count).findings == []


class PersonSum(PrivateEstimatorMixin, BaseEstimator):
    """A noisy sum that claims to protect persons, with faults that can be switched on."""

    def __init__(
        self, weighs_rows=False, shows_rows=False, epsilon=1.0, delta=0.0, random_state=None
    ):
        self.weighs_rows = weighs_rows
        self.shows_rows = shows_rows
        self.epsilon = epsilon
        self.delta = delta
        self.random_state = random_state

    def privacy_profile(self, n_samples, n_features=None):
        return PrivacyProfile.pure(self.epsilon)

    def _input_refusal(self, form):
        return None

    def fit(self, X, y=None, *, groups=None):
        rng = np.random.default_rng(self.random_state)
        clipped = np.clip(np.asarray(X)[:, 0], -1.0, 1.0)
        codes = np.asarray(groups.codes)
        shares = np.ones(len(codes)) if self.weighs_rows else 1.0 / groups.counts[codes]
        self.sum_ = float(np.sum(clipped * shares)) + rng.laplace(scale=1.0 / self.epsilon)
        if self.shows_rows:
            self.rows_ = len(codes)
        self.privacy_ = self._make_report(self.privacy_profile(groups.size), (), groups)
        return self


@pytest.mark.parametrize("fault", ["weighs_rows", "shows_rows"])
def test_weighing_rows_instead_of_persons_is_found(fault):
    # Theorem P14: with the fault, 50 rows of a person move a value by far too much.
    assert replay_of_person(PersonSum(), None, None, 50, 20).findings == []
    found = replay_of_person(PersonSum(**{fault: True}), None, None, 50, 20).findings
    assert {"weighs_rows": "sum_", "shows_rows": "rows_"}[fault] in {
        finding.attribute for finding in found
    }


def test_tables_with_ids_of_text_are_replayed():
    names = [f"patient {number}" for number in GROUPS]
    table = pd.DataFrame(ROWS, columns=["a", "b", "c"])
    person = pd.DataFrame(np.full((7, 3), 9.0), columns=["a", "b", "c"]), [1] * 7
    replay = replay_neighbours(
        CLASSIFIERS["output"], table, pd.Series(LABELS), person, groups=names, n_repeats=6
    )
    assert replay.findings == []
    assert replay.neighbouring == "add or remove one person with all of their rows"


@pytest.mark.parametrize(
    ("person", "groups", "message"),
    [
        ((ROWS[0], 1), GROUPS, "a table of a person's rows"),
        (ROWS[:2], GROUPS, "a list of their targets"),
        ((ROWS[:2], [1]), GROUPS, "as many targets as rows"),
        ((ROWS[:2], [1, 0]), GROUPS[:-1], "groups must be as long as X"),
        ((ROWS[:2], [1, 0]), np.where(GROUPS > 3, GROUPS, np.nan), "a proper id for each row"),
    ],
)
def test_wrong_persons_are_refused(person, groups, message):
    with pytest.raises(ValueError, match=message):
        replay_neighbours(CLASSIFIERS["output"], ROWS, LABELS, person, groups=groups)


def test_an_estimator_without_a_guarantee_for_persons_is_refused():
    with pytest.raises(ValueError, match="TypeError"):
        replay_of_person(PTRLinearRegression(target_bound=1.0, **BUDGET), ROWS[:, 0], 1.0, 2)


def test_the_contract_is_checked_by_persons():
    results = check_private_estimator(CLASSIFIERS["output"], ROWS, LABELS, groups=GROUPS)
    assert {result.name for result in results if result.passed} >= {
        "check_report",
        "check_n_public",
        "check_neighbours",
        "check_pipeline",
    }
    faulty = PersonSum(shows_rows=True)
    results = check_private_estimator(faulty, ROWS, groups=GROUPS, on_fail=None)
    (failed,) = [result for result in results if result.name == "check_neighbours"]
    assert failed.passed is False
    assert "a person with" in failed.message


def test_groups_need_their_rows():
    with pytest.raises(ValueError, match="X must be given with groups"):
        check_private_estimator(CLASSIFIERS["output"], groups=GROUPS)
