"""Subjects of checks: places as users write them, parts, and costs."""

from __future__ import annotations

import math
from typing import Any

from sklearn.compose import ColumnTransformer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

from skdptune import check
from tests.checks.estimators import Private
from tests.checks.examples import model, named, random_search


def found_in(thing: Any, **sizes: Any) -> list[tuple[str, str]]:
    return [(one.code, one.place) for one in check(thing, **sizes)]


def test_places_are_written_as_users_write_them() -> None:
    columns = ColumnTransformer([("a", StandardScaler(), [0])], remainder=StandardScaler())
    union = FeatureUnion([("n", StandardScaler())])
    nested = Pipeline([("columns", columns), ("union", union), ("fit", model(random_state=0))])
    places = {
        'Pipeline.steps["columns"].transformers["a"]',
        'Pipeline.steps["columns"].remainder',
        'Pipeline.steps["union"].transformer_list["n"]',
    }
    assert {place for code, place in found_in(nested) if code == "SKP001"} == places
    assert ("SKP005", 'Pipeline.steps["fit"].random_state') in found_in(nested)
    assert ("SKP006", "GridSearchCV") in found_in(GridSearchCV(model(), {}))


def test_parts_of_what_accounts_for_them_are_its_own_affair() -> None:
    class Owner(Private):
        def __init__(self, estimator: Any = None, epsilon: float = 1.0) -> None:
            super().__init__(epsilon)
            self.estimator = estimator

    assert found_in(model(random_state=0)) != []
    assert found_in(Owner(model(random_state=0))) == found_in(Owner(StandardScaler())) == []


def test_steps_that_a_search_tries_are_found() -> None:
    search = random_search(named(Normalizer()), [{"scale": [StandardScaler(), "drop"]}, {}])
    assert found_in(search) == [("SKP001", 'DPRandomSearchCV.param_distributions["scale"]')]


def test_a_search_sets_the_budget_before_steps_are_costed() -> None:
    # By itself this is refused.
    assert found_in(model(epsilon=-1.0)) == [("SKP019", "DPLogisticRegression.epsilon")]
    assert check(random_search(model(epsilon=-1.0))).issues == ()


def test_total_is_that_of_all_steps_at_their_deltas() -> None:
    both = named(model(epsilon=6.0, delta=9e-4), epsilon=6.0, delta=9e-4)
    assert {"SKP016"} <= {code for code, _ in found_in(both)}
    assert "SKP016" not in check(model(epsilon=6.0, delta=9e-4)).codes
    assert "SKP007" in check(model(epsilon=math.inf)).codes
