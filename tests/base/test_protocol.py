"""The contract of estimators is complete, and the estimators of the package meet it."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from skdptune.base import protocol
from skdptune.linear_model import DPLogisticRegression, DPRidge
from skdptune.preprocessing import DPStandardScaler, RowNormClipper
from tests.testing.estimators import Right

PACKAGE = Path(protocol.__file__).parents[1]
# How a member or a parameter of an estimator is asked for by its name.
ASKED = re.compile(
    r'(?:getattr|hasattr|own_member)\([^,"]+, "(\w+)"'
    r'|own_parameters\([^)]+\)(?:\.get\(|\[)"(\w+)"'
    r'|"(\w+)" in own_parameters\('
    r'|parameters\.get\("(\w+)"'
)
# Asked of tables, distributions, joblib's backends, diffprivlib's models, and searches themselves.
NOT_OF_ESTIMATORS = {
    *("__len__", "columns", "column_names", "iloc", "dtype", "dtypes", "kind", "reindex"),
    *("schema", "tz", "estimator", "itemsize"),
    *("select_dtypes", "to_arrow_refs"),
    *("categories", "na_value", "name"),
    "shape",
    *("__array__", "__array_interface__", "__dataframe__"),
    *("choices", "dist", "pmf", "ppf", "rvs"),
    *("client", "uses_threads", "secret_url", "check_format", "steps"),
    *("_is_private_search", "best_estimator_"),
    # Of any object, and of the operating system.
    *("__dict__", "__setstate__", "getuid"),
    # Of methods, which classes make in many ways.
    *("__code__", "__doc__", "__get__", "__module__"),
    *("bounds", "centered", "data_norm", "fit_intercept"),
    # Of steps of scikit-learn that may learn nothing.
    *("check_inverse", "use_idf"),
    # Of steps of pipelines, as scikit-learn asks.
    *("transform", "set_output", "get_feature_names_out", "__sklearn_tags__"),
    # Of rows in parts: dask's collections, tables and files.
    *("__dask_graph__", "to_delayed", "chunks", "ndim", "split_by_row_group"),
    # Of an object itself, and of nets, which take no data but that of their module.
    *("_replacement", "module"),
    # Of this package's own, and of scikit-learn's.
    *("_person_column", "_input_refusal", "_by_persons"),
    *("score_epsilon", "storage"),
    *("_check_parameters", "_check_fit", "_takes_persons_in_parts", "__sklearn_clone__", "fn"),
    # Of samplers of optuna, and of rows in parts.
    *("sample_relative", "counted"),
}


def members(kind: type) -> set[str]:
    """Return what a protocol and those that it extends ask for."""
    found = set()
    for base in kind.__mro__:
        if base.__module__ == protocol.__name__:
            found |= {*vars(base), *inspect.get_annotations(base)}
    return {name for name in found if not name.startswith("_")}


def kinds() -> list[type]:
    return [getattr(protocol, name) for name in protocol.__all__]


def test_everything_that_is_asked_for_is_stated() -> None:
    asked: set[str] = set()
    for folder in ("base", "model_selection"):
        for path in (PACKAGE / folder).rglob("*.py"):
            asked |= {name for found in ASKED.findall(path.read_text("utf-8")) for name in found}
    stated = set(re.findall(r"``(\w+)\W?.*?``", protocol.__doc__))
    assert {"privacy_profile", "noise_level", "n_public", "classes", "rvs"} <= asked
    assert sorted(asked - {""} - stated - NOT_OF_ESTIMATORS) == []


def test_every_protocol_is_in_the_tables() -> None:
    for kind in kinds():
        assert members(kind)
        for name in members(kind):
            assert f"``{name}" in protocol.__doc__, name


@pytest.mark.parametrize(
    ("estimator", "missing"),
    [
        (DPLogisticRegression(), {"FitsMany"}),
        (
            DPRidge(),
            {
                *("HasClasses", "HasNoiseMultiplier", "NamesNoiseParameter"),
                "SpendsBudgetOnSteps",
            },
        ),
        (
            DPStandardScaler(),
            {
                *("FitsMany", "HasClasses", "HasNoiseMultiplier", "NamesNoiseParameter"),
                *("ReportsNoiseLevel", "ScalesToFewerRecords"),
                *("SpendsBudgetOnSteps", "SuggestsSpace"),
            },
        ),
        (
            RowNormClipper(),
            {
                *("FitsMany", "HasBudget", "HasClasses", "HasNoiseMultiplier", "HasPublicSize"),
                *("HasRandomState", "NamesNoiseParameter", "ReportsNoiseLevel"),
                *(
                    *("ScalesToFewerRecords", "SpendsBudgetOnSteps"),
                    "NamesNeighbours",
                    "StatesAssumptions",
                    "SuggestsSpace",
                ),
            },
        ),
    ],
    ids=lambda one: type(one).__name__,
)
def test_our_estimators_offer_what_they_say(estimator: Any, missing: set[str]) -> None:
    # Attributes that a fit adds do not exist before it.
    after_fit = {"FittedPrivateEstimator", "StartsFromWeights"}
    # Trying values does for all of ours.
    never = {"CalibratesToCurve"}
    lacking = {
        kind.__name__
        for kind in kinds()
        if not all(hasattr(estimator, name) for name in members(kind))
    }
    assert lacking - after_fit - never == missing


def test_a_fit_adds_the_rest() -> None:
    X = [[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]]
    fitted = DPLogisticRegression(data_norm=2.0, delta=1e-9).fit(X, [0, 1, 0])
    for kind in (protocol.FittedPrivateEstimator, protocol.StartsFromWeights):
        assert all(hasattr(fitted, name) for name in members(kind))
    assert set(inspect.signature(protocol.StartsFromWeights.fit).parameters) <= set(
        inspect.signature(fitted.fit).parameters
    ) | {"self"}


def test_protocols_need_no_inheritance() -> None:
    assert not any(kind in type(Right()).__mro__ for kind in kinds())
