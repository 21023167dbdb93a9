"""Refused objects have a finding with a code, the message of the refusal, and advice."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from sklearn.base import BaseEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils import all_estimators

from skdptune import check
from tests.checks.examples import model, random_search


def codes_of(estimators: Any) -> dict[str, set[str]]:
    """Return what is found in each class that can be made without arguments."""
    found = {}
    for name, kind in estimators:
        with contextlib.suppress(TypeError):
            found[name] = {one.code for one in check(kind()).issues}
    assert len(found) > 20
    return found


def test_step_that_learns_is_no_model() -> None:
    steps = {"SKP001", "SKP002", "SKP009", "SKP018"}
    found = codes_of(all_estimators("transformer"))
    models = dict(all_estimators(["classifier", "regressor", "cluster"]))
    wrong = {name for name, codes in found.items() if not codes <= steps}
    assert wrong <= {*models, "HashingVectorizer"}, wrong


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_model_is_no_step() -> None:
    for name, codes in codes_of(all_estimators(["classifier", "regressor"])).items():
        # One of them lacks the estimator that it is around.
        expected = "SKP006" if name.endswith("CV") else "SKP007"
        assert codes == {expected} or name == "SelfTrainingClassifier", name


def test_stranger_learns_something() -> None:
    class Stranger(BaseEstimator):
        def fit(self, X: Any, y: Any = None) -> Stranger:
            return self

    assert check(Stranger()).codes == ("SKP001",)


def test_search_around_a_private_estimator_is_said_to_pay_for_nothing() -> None:
    (finding,) = check(GridSearchCV(random_search(), {"n_iter": [1, 2]}))
    assert finding.found.startswith("GridSearchCV: this model is not private, and neither are")
    assert "DPGridSearchCV" in finding.fix


def test_what_diffprivlib_lacks_is_found_once() -> None:
    models = pytest.importorskip("diffprivlib.models")
    found = check(models.StandardScaler())
    assert [one.code for one in found.issues] == ["SKP002"]
    assert [one.code for one in found.tips] == ["SKP012", "SKP017"]
    assert check(models.StandardScaler(bounds=(0, 1))).issues == ()
    assert [one.code for one in check(models.PCA()).issues] == ["SKP002", "SKP020"]
    mixed = make_pipeline(models.StandardScaler(bounds=(0, 1)), model())
    assert [one.code for one in check(mixed).issues] == ["SKP012"]


@pytest.mark.parametrize(
    ("parameters", "place", "fix"),
    [
        ({"epsilon": 0}, "DPLogisticRegression.epsilon", "A smaller epsilon is more private"),
        ({"tol": -1.0}, "DPLogisticRegression.tol", "tol must be a number in [0, 0.01]"),
    ],
    ids=["with a hint", "without"],
)
def test_error_of_a_parameter_names_it_and_what_to_do(
    parameters: dict[str, float], place: str, fix: str
) -> None:
    (finding,) = check(model(**parameters)).issues
    assert (finding.code, finding.place) == ("SKP019", place)
    assert finding.fix.startswith(fix)
    assert not finding.found.endswith(".")


@pytest.mark.parametrize(
    ("parameters", "code"),
    [
        ({"error_score": "raise"}, "SKP011"),
        ({"n_public": 0}, "SKP003"),
        ({"cv": "all"}, "SKP019"),
        ({"epsilon": -1.0}, "SKP019"),
        ({"scoring": "r2"}, "SKP019"),
        ({"n_jobs": 0}, "SKP019"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_parameter_of_a_search_that_is_refused_is_found(
    parameters: dict[str, object], code: str
) -> None:
    report = check(random_search(**parameters), n_samples=500, n_features=3)
    assert [one.code for one in report.issues] == [code]


def test_budget_that_cannot_be_met_is_found_where_sizes_are_given() -> None:
    search = random_search(epsilon=1e-9)
    assert check(search).issues == ()
    issues = check(search, n_samples=50, n_features=3).issues
    assert [one.code for one in issues] in (["SKP019"], [])
