"""Functions that mix records are told from those that do not; labels and schemas are compared."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skdptune import check
from skdptune.linear_model import DPLogisticRegression
from skdptune.preprocessing import Schema, TableEncoder, make_private_pipeline
from tests.checks.estimators import Private
from tests.checks.examples import model, named


def centred(X: Any) -> Any:
    return X - X.mean(axis=0)


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


def squared(X: Any) -> Any:
    return X**2


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


def test_fits_that_go_on_are_found_in_private_steps_alone() -> None:
    class Running(Private):
        def partial_fit(self, X: Any, y: Any = None) -> Running:
            return self

    assert [(one.code, one.kind) for one in check(Running())] == [("SKP017", "tip")]
    assert [(one.code, one.kind) for one in check(Running(warm_start=True))] == [
        ("SKP017", "issue")
    ]


def test_relation_that_nobody_knows_is_refused_elsewhere() -> None:
    class Odd(Private):
        neighbouring = "something else"

    assert "SKP012" not in check(Odd()).codes
