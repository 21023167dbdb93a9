"""Findings about numbers, steps and searches."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import uniform
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skdptune import DPGridSearchCV, check
from skdptune.ledger import PrivacyLedger, config_context
from skdptune.linear_model import DPLogisticRegression
from skdptune.preprocessing import DPStandardScaler, Schema, TableEncoder, make_private_pipeline
from tests.checks.estimators import Private
from tests.checks.examples import centred, model, named, random_search, squared
from tests.flat import changed


@pytest.mark.parametrize("n_samples", [10, 1000, 32_561, 10**6])
def test_delta_is_large_from_one_over_the_number_of_records_on(n_samples: int) -> None:
    for delta, is_large in (
        (1.0 / n_samples, True),
        (math.nextafter(1.0 / n_samples, 0.0), False),
    ):
        report = check(Private(), n_samples=n_samples, delta=delta)
        assert ("SKP004" in report.codes) == is_large


def test_total_that_is_asked_for_counts_and_not_its_rounding() -> None:
    assert check(Private(epsilon=10.0)).codes == ()
    assert check(Private(epsilon=10.001)).codes == ("SKP016",)
    assert check(model(epsilon=math.inf)).codes == ("SKP007",)


@pytest.mark.parametrize(
    ("n_public", "is_far"), [(50, False), (49, True), (200, False), (201, True), (100, False)]
)
def test_constant_is_far_from_twice_on(n_public: int, is_far: bool) -> None:
    report = check(model(n_public=n_public), n_samples=100, delta=1e-6)
    assert ("SKP003" in report.codes) == is_far


def test_few_records_are_told_by_epsilon_times_their_number() -> None:
    for epsilon, n_samples, is_few in ((1.0, 2000, True), (1.0, 2001, False), (4.0, 500, True)):
        assert ("SKP013" in check(Private(epsilon), n_samples=n_samples).codes) == is_few
    # A scaler has no accuracy to lose.
    assert check(DPStandardScaler(bounds=(0, 1)), n_samples=10).codes == ()


def test_budget_of_a_step_counts_for_nothing_where_the_search_sets_it() -> None:
    large = model(epsilon=50.0, delta=0.1)
    assert check(random_search(large, {"C": [None, 1.0]})).codes == ()
    own = random_search(Private(epsilon=20.0), {"warm_start": [False]}, epsilon=None, delta=1e-6)
    assert "SKP016" in check(own, n_samples=10_000).codes


def scaled(X: Any) -> Any:
    return X / np.abs(X).max()


def ranked(X: Any) -> Any:
    return X.argsort(axis=0).argsort(axis=0)


def summed(X: Any) -> Any:
    return X.cumsum(axis=0)


def shifted(X: Any) -> Any:
    return np.roll(X, 1, axis=0)


def dropped(X: Any) -> Any:
    return X[1:]


def constant(X: Any) -> Any:
    return np.full((len(X), 1), len(X))


MIXING = [centred, scaled, ranked, summed, shifted, dropped, constant]


def normed(X: Any) -> Any:
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def first(X: Any) -> Any:
    return X[:, :1]


def clipped(X: Any) -> Any:
    return np.clip(X, -1.0, 1.0)


def of_a_table(X: Any) -> Any:
    return X[["age"]]


def failing(X: Any) -> Any:
    raise RuntimeError("no")


ONE_BY_ONE = [squared, normed, first, clipped, of_a_table, failing]


def kinds(function: Any) -> list[str]:
    report = check(named(FunctionTransformer(function)), n_features=3)
    return [one.kind for one in report if one.code == "SKP018"]


@pytest.mark.parametrize("function", MIXING, ids=[one.__name__ for one in MIXING])
def test_function_that_mixes_records_is_an_issue(function: Any) -> None:
    assert kinds(function) == ["issue"]


@pytest.mark.parametrize("function", ONE_BY_ONE, ids=[one.__name__ for one in ONE_BY_ONE])
def test_function_that_may_treat_records_one_by_one_is_a_tip(function: Any) -> None:
    assert kinds(function) == ["tip"]


@pytest.mark.parametrize("function", [None, np.log1p, np.abs], ids=["none", "log1p", "abs"])
def test_functions_of_numpy_are_known(function: Any) -> None:
    assert kinds(function) == []


def test_labels_of_a_schema_are_advised() -> None:
    schema = Schema({"age": (0, 120)}, target=["no", "yes"])
    (finding,) = (one for one in check(DPLogisticRegression(), schema) if one.code == "SKP008")
    assert finding.fix == "classes=['no', 'yes']"


def test_another_schema_than_that_of_a_step_is_told() -> None:
    schema, other = Schema({"age": (0, 120)}), Schema({"age": (0, 100)})
    pipeline = make_private_pipeline(model(), schema)
    assert check(pipeline, schema).codes == ()
    assert [one.place for one in check(pipeline, other)] == [
        'Pipeline.steps["tableencoder"].schema'
    ]
    assert check(make_pipeline(TableEncoder({"age": (0, 120)}), model()), schema).codes == ()
    persons = Schema({"age": (0, 120)}, person="patient")
    assert check(make_private_pipeline(model(), persons), persons).codes == ()


def test_fits_that_go_on_are_found_in_private_steps_alone() -> None:
    class Running(Private):
        def partial_fit(self, X: Any, y: Any = None) -> Running:
            return self

    assert [(one.code, one.kind) for one in check(Running())] == [("SKP017", "tip")]
    assert [(one.code, one.kind) for one in check(Running(warm_start=True))] == [
        ("SKP017", "issue")
    ]


def places(search: Any) -> list[str]:
    found = [one.place for one in check(search) if one.code == "SKP014"]
    return [place.partition(".")[2] for place in found]


@pytest.mark.parametrize(
    ("space", "expected"),
    [
        ({"C": [None, 1.0]}, []),
        ({"C": uniform(0.1, 1.0)}, []),
        ({"C": [1.0]}, ["param_distributions"]),
        ([{"C": [1.0]}, {"C": [None, 1.0]}], ["param_distributions"]),
        ({"C": [0.1, 1.0]}, []),
        ({"C": np.array([1.0])}, ["param_distributions"]),
        ({"C": [1.0], "tol": uniform(0.0, 1e-3)}, ['param_distributions["C"]']),
        ({"none": [1.0, 2.0]}, []),
        (None, []),
    ],
    ids=["own", "drawn", "single", "several", "listed", "array", "beside", "unknown", "none"],
)
def test_spaces_are_read_in_every_form(space: Any, expected: list[str]) -> None:
    assert places(random_search(space=space)) == expected


@pytest.mark.parametrize("selection", ["auto", "table", "noisy_max", "compose"])
def test_table_tries_own_values_by_itself(selection: str) -> None:
    search = DPGridSearchCV(model(), {"C": [0.1, 1.0]}, epsilon=1.0, strategy=selection)
    tries = selection in ("auto", "table")
    assert places(search) == ([] if tries else ['param_grid["C"]'])
    if tries:
        changed(search, try_own_values=False)
        assert places(search) == ['param_grid["C"]']


@pytest.mark.parametrize("values", [[0.1, 1.0], np.array([0.1, 1.0])], ids=["listed", "array"])
def test_random_search_tries_own_values_unless_it_is_told_not_to(values: Any) -> None:
    search = random_search(space={"C": values})
    assert places(search) == []
    changed(search, try_own_values=False)
    assert places(search) == ['param_distributions["C"]']


def test_ledger_that_is_in_use_adds_up_what_is_tuned_by_hand() -> None:
    ledger = PrivacyLedger(":memory:", "patients", epsilon=10.0, delta=1e-5)
    with config_context(ledger=ledger):
        assert check(model(C=0.5)).codes == ()
    assert check(model(C=0.5, ledger=ledger)).codes == ()
    assert check(model(C=0.5)).codes == ("SKP010",)


def test_values_that_are_public_knowledge_are_not_tuned() -> None:
    known = model(data_norm=2.0, class_weight={0: 1.0, 1: 2.0}, epsilon=0.5, delta=1e-6)
    assert check(known).codes == ()
    (finding,) = check(model(C=0.5, solver="sgd", epochs=3))
    assert (finding.code, finding.kind) == ("SKP010", "tip")
    assert finding.found == "C and epochs and solver are not at the default"


OF_PERSONS = ["patient_id", "PatientId", "user", "customer no", "household", "id_client", "ssn"]
NOT_OF_PERSONS = [
    "age",
    "user_age",
    "id",
    "patients_seen",
    "customer_segment",
    "insured",
    "member",
]


@pytest.mark.parametrize("name", OF_PERSONS)
def test_a_column_that_looks_like_persons_asks_for_them(name):
    schema = Schema({name: "drop", "age": (0, 100)}, target=["no", "yes"])
    settings = {"n_samples": 10_000, "mute": ["SKP010"]}
    pipeline = make_private_pipeline(DPLogisticRegression(), schema)
    found = check(pipeline, **settings)
    (one,) = [each for each in found.tips if each.code == "SKP012"]
    assert name in one.found and "person=" in one.fix
    assert "SKP012" in check(DPLogisticRegression(), schema, **settings).codes
    # The column is a feature, or the person is named: once as a feature, once not at all.
    used = Schema({name: ["a", "b"], "age": (0, 100)}, target=["no", "yes"])
    assert "SKP012" in check(make_private_pipeline(DPLogisticRegression(), used), **settings).codes
    named = Schema({"age": (0, 100)}, target=["no", "yes"], person=name)
    persons = make_private_pipeline(DPLogisticRegression(), named)
    assert "SKP012" not in check(persons, **settings).codes
    assert "SKP012" not in check(DPLogisticRegression(), named, **settings).codes


def test_other_columns_ask_for_nothing():
    schema = Schema(dict.fromkeys(NOT_OF_PERSONS, (0, 100)), target=["no", "yes"])
    assert "SKP012" not in check(make_private_pipeline(DPLogisticRegression(), schema)).codes
