"""What is refused has a code, the words of the refusal, and what to do."""

from __future__ import annotations

import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from skdptune import check
from skdptune.base import _refusals
from skdptune.base._shared import Refusal, no_profile
from skdptune.checks._findings import code_of_refusal
from tests.checks.examples import model, random_search


def refusal_named(name: str) -> Refusal:
    """Return what is said of an object of a class of some name."""
    return no_profile(type(name, (), {})()).refusals[0]


@pytest.mark.parametrize("name", sorted(_refusals._TRANSFORMERS))
def test_step_that_learns_is_no_model(name: str) -> None:
    assert code_of_refusal(refusal_named(name)) in ("SKP001", "SKP002", "SKP009")


@pytest.mark.parametrize("name", sorted({*_refusals._MODELS, *_refusals._LEAKING}))
def test_model_is_no_step(name: str) -> None:
    chooses = name.endswith("CV")
    assert code_of_refusal(refusal_named(name)) == ("SKP006" if chooses else "SKP007")


def test_stranger_learns_something() -> None:
    assert code_of_refusal(refusal_named("Stranger")) == "SKP001"


@pytest.mark.parametrize(("missing", "code"), [("bounds", "SKP002"), ("classes", "SKP008")])
def test_what_diffprivlib_would_read_off_the_data(missing: str, code: str) -> None:
    assert code_of_refusal(Refusal(f"GaussianNB without {missing}", "it would read it")) == code


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
