"""What is checked: places as users write them, parts, and what they cost."""

from __future__ import annotations

import math

import pytest
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

from skdptune.checks._subject import (
    Subject,
    errors_of,
    is_estimator,
    is_search,
    parts_of,
    place_of,
    refusals_of,
    total_of,
)
from skdptune.linear_model import DPLogisticRegression
from tests.checks.estimators import Private
from tests.checks.examples import model, named, random_search

SIZE = 1000, 3
COLUMNS = ColumnTransformer([("a", Normalizer(), [0])], remainder=StandardScaler())
NESTED = Pipeline(
    [("columns", COLUMNS), ("union", FeatureUnion([("n", Normalizer())])), ("fit", model())]
)


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ((), "X"),
        (("columns",), 'X.steps["columns"]'),
        (("columns", "a"), 'X.steps["columns"].transformers["a"]'),
        (("columns", "remainder"), 'X.steps["columns"].remainder'),
        (("union", "n"), 'X.steps["union"].transformer_list["n"]'),
    ],
)
def test_places_are_written_as_users_write_them(path: tuple[str, ...], place: str) -> None:
    assert place_of(NESTED, "X", path) == place


def test_every_part_is_found_at_its_place() -> None:
    places = {part.place for part in parts_of(NESTED, "X")}
    assert places == {
        "X",
        'X.steps["columns"]',
        'X.steps["columns"].transformers["a"]',
        'X.steps["columns"].remainder',
        'X.steps["union"]',
        'X.steps["union"].transformer_list["n"]',
        'X.steps["fit"]',
    }
    assert [part.place for part in Subject(GridSearchCV(model(), {})).parts] == [
        "GridSearchCV",
        "GridSearchCV.estimator",
    ]


def test_parts_of_what_accounts_for_them_are_inside() -> None:
    class Owner(Private):
        def __init__(self, estimator=None, epsilon: float = 1.0) -> None:
            super().__init__(epsilon)
            self.estimator = estimator

    parts = {part.place: part.is_inside for part in parts_of(Owner(model()), "X")}
    assert parts == {"X": False, "X.estimator": True}
    assert [part.place for part in Subject(Owner(model())).private_parts] == ["Owner"]


def test_searches_and_estimators_are_told_apart() -> None:
    assert is_search(random_search())
    assert not is_search(GridSearchCV(model(), {}))
    assert not is_search(DPLogisticRegression)
    assert is_estimator(model())
    assert not any(map(is_estimator, (DPLogisticRegression, None, "passthrough", 1)))


def test_estimators_and_steps_of_a_search_are_found() -> None:
    search = random_search(named(Normalizer()), [{"scale": [StandardScaler(), "drop"]}, {}])
    subject = Subject(search)
    assert [place for place, _ in subject.estimators] == ["DPRandomSearchCV.estimator"]
    assert [place for place, _ in subject.searched_steps] == [
        'DPRandomSearchCV.param_distributions["scale"]'
    ]
    assert subject.sets_budget
    assert not Subject(model()).sets_budget


def test_spaces_that_are_none_are_passed_over() -> None:
    for space in (None, [None], "C", 1, [{"C": [1.0]}, "C"]):
        assert len(list(Subject(random_search(space=space)).spaces)) <= 1


def test_a_search_sets_the_budget_before_steps_are_costed() -> None:
    # By itself this would be refused.
    assert Subject(model(epsilon=-1.0)).errors
    assert Subject(random_search(model(epsilon=1e-3))).errors == []
    assert Subject(random_search(model(epsilon=-1.0)), is_planned=True).errors == []


def test_refusals_and_errors_are_kept_apart() -> None:
    assert [one.got for one in refusals_of(named(StandardScaler(), tol=-1.0), SIZE)] == [
        "StandardScaler"
    ]
    assert list(errors_of(StandardScaler(), SIZE)) == []
    (error,) = errors_of(model(tol=-1.0), SIZE)
    assert "tol must be" in str(error)
    assert list(errors_of(model(), SIZE)) == []
    assert refusals_of(model(), SIZE) == []


def test_total_is_that_of_all_steps_at_their_deltas() -> None:
    epsilon, delta = total_of(model(epsilon=2.0, delta=1e-6), SIZE, None)
    assert delta == 1e-6
    assert epsilon is not None
    assert 1.9 < epsilon <= 2.0
    assert total_of(model(), SIZE, 1e-4)[1] == 1e-4
    assert total_of(model(epsilon=math.inf), SIZE, None)[0] == math.inf
    assert total_of(StandardScaler(), SIZE, None)[0] is None
