"""A schema that names persons: its pipeline protects them, and other code refuses it."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import make_pipeline

from skdptune import DPRandomSearchCV
from skdptune.accounting import PrivacyProfile
from skdptune.base import PrivateEstimatorMixin, privacy_of, profile_of
from skdptune.calibration import PrivateThreshold
from skdptune.ensemble import DPExplainableBoostingClassifier
from skdptune.ledger import PrivacyLedger
from skdptune.linear_model import (
    DPLogisticRegression,
    DPRidge,
    OPSLinearRegression,
    PTRLinearRegression,
)
from skdptune.preprocessing import Schema, TableEncoder, make_private_pipeline

PERSON = "add or remove one person with all of their rows"
rng = np.random.default_rng(0)
SIZE = 400
VISITS = pd.DataFrame(
    {
        "patient": [f"p{one}" for one in rng.integers(0, 60, size=SIZE)],
        "age": np.where(rng.random(SIZE) < 0.1, np.nan, rng.integers(18, 90, size=SIZE)),
        "ward": rng.choice(["north", "south", None], size=SIZE),
        "urgent": rng.random(SIZE) < 0.5,
        "day": pd.to_datetime("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, SIZE), "D"),
    }
)
Y = np.where(VISITS.age > 50, "yes", "no")
COLUMNS = {
    "age": {"range": (18, 90), "missing": True},
    "ward": {"categories": ["north", "south"], "missing": True},
    "urgent": "boolean",
    "day": ("2024-01-01", "2024-12-31"),
}
SCHEMA = Schema(COLUMNS, target=["no", "yes"], person="patient")
MODEL = DPLogisticRegression(random_state=0)


def test_the_pipeline_takes_persons_from_the_table():
    # Theorem P14: a record may be a person with all rows, who counts by a mean of the rows.
    model = make_private_pipeline(MODEL, SCHEMA).fit(VISITS, Y)
    report = privacy_of(model)
    assert report.neighbouring == PERSON
    assert "the number of persons is public" in str(report)
    plain = make_private_pipeline(MODEL, Schema(COLUMNS, target=["no", "yes"]))
    rows = VISITS.drop(columns="patient")
    plain.fit(rows, Y, dplogisticregression__groups=VISITS["patient"])
    assert_array_equal(model[-1].coef_, plain[-1].coef_)
    # The column is not a feature, and new tables need not have it.
    assert_array_equal(model.predict(VISITS), model.predict(rows))
    assert not any("patient" in name for name in model[0].get_feature_names_out())
    assert b"p17" not in pickle.dumps(model)
    again = clone(model).fit(VISITS[[*VISITS.columns[::-1]]], Y)
    assert_array_equal(again[-1].coef_, model[-1].coef_)
    with sklearn.config_context(enable_metadata_routing=True):
        assert_array_equal(clone(model).fit(VISITS, Y)[-1].coef_, model[-1].coef_)


def test_a_ledger_records_persons():
    ledger = PrivacyLedger(":memory:", "visits", epsilon=5.0, delta=1e-4)
    with ledger:
        make_private_pipeline(MODEL, SCHEMA).fit(VISITS, Y)
    (record,) = ledger.history()
    assert (record.neighbouring, record.details["n_samples"]) == (
        PERSON,
        VISITS["patient"].nunique(),
    )


def test_persons_are_part_of_a_schema_in_all_its_forms():
    assert Schema.from_json(SCHEMA.to_json()) == SCHEMA
    assert SCHEMA != Schema(COLUMNS, target=["no", "yes"], drop=["patient"])
    assert eval(repr(SCHEMA), {"Schema": Schema}) == SCHEMA
    assert SCHEMA.to_dict()["person"] == SCHEMA.person == "patient"
    assert Schema({**COLUMNS, "patient": "drop"}, person="patient").names[-1] == "patient"
    assert "person" not in Schema(COLUMNS).to_dict()
    from_dict = make_private_pipeline(MODEL, SCHEMA.to_dict()).fit(VISITS, Y)
    assert privacy_of(from_dict).neighbouring == PERSON


@pytest.mark.parametrize("person", ["age", 3, ["patient"]])
def test_a_person_is_the_name_of_a_column_that_is_no_feature(person):
    with pytest.raises(ValueError, match="must not be a feature|must be the name of a column"):
        Schema(COLUMNS, person=person)


def test_wrong_calls_are_refused_before_anything_is_spent():
    model = make_private_pipeline(MODEL, SCHEMA)
    ledger = PrivacyLedger(":memory:", "visits", epsilon=5.0, delta=1e-4)
    with ledger:
        with pytest.raises(TypeError, match="names the column of persons, 'patient'; got both"):
            model.fit(VISITS, Y, dplogisticregression__groups=VISITS["patient"])
        with pytest.raises(ValueError, match="X must be a DataFrame with the column 'patient'"):
            model.fit(VISITS.drop(columns="patient"), Y)
        with pytest.raises(ValueError, match="got ndarray without it"):
            model.fit(VISITS.to_numpy(), Y)
        with pytest.raises(ValueError, match="at least one person"):
            model.fit(VISITS.assign(patient=None), Y)
    assert not list(ledger.history())


@pytest.mark.parametrize(
    "estimator",
    [
        DPLogisticRegression(solver="objective"),
        DPExplainableBoostingClassifier(max_rounds=3),
        DPExplainableBoostingClassifier(max_rounds=3, interactions=1),
    ],
    ids=lambda estimator: f"{type(estimator).__name__}-{estimator.get_params().get('solver')}",
)
def test_a_ledger_records_what_a_pipeline_states_for_persons(estimator):
    # Theorem M8 for "objective": its price for persons is not that for rows.
    model = make_private_pipeline(estimator, SCHEMA)
    ledger = PrivacyLedger(":memory:", "visits", epsilon=5.0, delta=1e-4)
    with ledger:
        model.fit(VISITS, Y)
    assert len(ledger.history()) == 1
    assert ledger.history()[0].neighbouring == PERSON == privacy_of(model).neighbouring
    size = VISITS["patient"].nunique()
    width = model[-1].n_features_in_
    assert profile_of(model, size, width) == model[-1].privacy_.profile


@pytest.mark.parametrize(
    "estimator",
    [
        PTRLinearRegression(target_bound=1.0),
        OPSLinearRegression(target_bound=1.0),
        make_pipeline(DPRidge(target_bound=1.0)),
        DPRandomSearchCV(MODEL, {"C": [1.0]}, epsilon=1.0),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_estimators_of_single_records_refuse_the_schema(estimator):
    with pytest.raises((TypeError, ValueError), match="groups must be None for"):
        make_private_pipeline(estimator, SCHEMA)


def test_the_refusal_of_a_schema_with_persons_lists_the_models() -> None:
    class Mean(PrivateEstimatorMixin, BaseEstimator):
        epsilon, delta, random_state = 1.0, 0.0, None

        def fit(self, X: Any, y: Any = None) -> Any:
            return self

        def predict(self, X: Any) -> Any:
            return np.zeros(len(X))

        def privacy_profile(self, n_samples: int, n_features: int | None = None) -> Any:
            return PrivacyProfile.pure(1.0)

    with pytest.raises(TypeError, match="protects single records") as caught:
        make_private_pipeline(Mean(), SCHEMA)
    for name in ("DPRidge", "DPExplainableBoostingClassifier", "DPNeuralNetClassifier"):
        assert name in str(caught.value)


def test_what_reads_a_schema_without_persons_never_ignores_them():
    for fit in (
        lambda: make_pipeline(TableEncoder(SCHEMA), MODEL).fit(VISITS, Y),
        lambda: DPExplainableBoostingClassifier(schema=SCHEMA).fit(VISITS, Y),
    ):
        with pytest.raises(TypeError, match="schema must not name a person for .*DPRidge"):
            fit()
    model = make_private_pipeline(MODEL, SCHEMA)
    search = DPRandomSearchCV(model, {"dplogisticregression__C": [1.0]}, epsilon=1.0)
    for around in (PrivateThreshold(search, epsilon=1.0), PrivateThreshold(model, epsilon=1.0)):
        with pytest.raises(TypeError, match="must protect persons, since the schema"):
            around.fit(VISITS, Y)
