"""Searches without a space: their candidates, and single fits instead of a search."""

from __future__ import annotations

import ast
import re
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import skdptune
from skdptune.linear_model import DPLogisticRegression, DPRidge
from skdptune.metrics import neg_squared_error
from skdptune.model_selection import (
    DoublingThresholdSearchCV,
    DPGridSearchCV,
    DPRandomSearchCV,
    RandomRuns,
)
from skdptune.preprocessing import RowNormClipper, make_private_pipeline
from tests.flat import flat
from tests.model_selection.learners import Scripted, table

DELTA = 1e-5
KINDS = [DPGridSearchCV, DPRandomSearchCV, DoublingThresholdSearchCV]
NAMES = {DPRandomSearchCV: "param_distributions"}
GOT = {DoublingThresholdSearchCV: "param_distributions must be given .* got neither"}
FEW, MANY = 600, 40_000


class Suggesting(Scripted):
    def suggested_space(self, n_samples: int, n_features: int | None = None) -> dict[str, Any]:
        return {"quality": [self.quality, 0.9]}


def search(kind: Any = DPRandomSearchCV, **more: Any) -> Any:
    settings = {"epsilon": 1.0, "delta": DELTA, "random_state": 0, **more}
    return flat(kind, Suggesting(quality=0.2), **settings)


@pytest.mark.parametrize("kind", KINDS)
def test_an_estimator_that_suggests_nothing_is_refused_before_data(kind: type) -> None:
    words = GOT.get(kind, f"{NAMES.get(kind, 'param_grid')} must be given .* got None")
    with pytest.raises(ValueError, match=f"{words} for Scripted"):
        kind(Scripted(), epsilon=1.0, delta=DELTA).fit(np.full((9, 3), "x"), np.full(9, np.nan))
    model = DPRidge(target_bound=1.0)
    unknown = kind(model, epsilon=1.0, scoring=neg_squared_error(bound=1.0))
    with pytest.raises(ValueError, match=f"{words} for DPRidge.* some need n_features"):
        unknown.plan(1000)


@pytest.mark.parametrize(
    ("kind", "n_samples", "epsilon"),
    [
        *((kind, FEW, 1.0) for kind in KINDS),
        *(
            (DPGridSearchCV, FEW, None),
            (DPGridSearchCV, MANY, 1.0),
            (DPRandomSearchCV, MANY, None),
        ),
    ],
)
def test_the_total_is_what_was_announced(kind: Any, n_samples: int, epsilon: float | None) -> None:
    """Theorem F12."""
    X, y = table(n_samples)
    one = search(kind, epsilon=epsilon)
    announced = one.privacy_profile(n_samples, 3)
    fitted = one.fit(X, y)
    assert fitted.privacy_.profile == announced
    assert fitted.privacy_.epsilon_spent <= (epsilon or np.inf)
    assert clone(fitted).get_params()[NAMES.get(kind, "param_grid")] is None


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_made_does_not_depend_on_the_data(kind: Any) -> None:
    """Theorem F12: the same mechanism for all data of one size."""
    reports = []
    for seed in (0, 1):
        X, y = table(FEW, seed=seed)
        y = y if seed else np.arange(FEW) % 2
        reports.append(str(search(kind).fit(X, y).privacy_))
    assert reports[0] == reports[1]
    assert "the only fit (on all records)" in reports[0]


@pytest.mark.parametrize("kind", KINDS)
def test_one_fit_shows_the_fit_of_the_estimator_alone(kind: Any) -> None:
    """Theorem F12: on all records, with the whole budget, and nothing else."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(FEW, 2))
    y = X[:, 0] > 0.0
    found = kind(DPLogisticRegression(0.3), epsilon=2.0, random_state=0).fit(X, y)
    model = found.best_estimator_
    assert model.plan_.n_samples == FEW
    assert 0.98 * 2.0 < model.privacy_.epsilon_spent <= 2.0
    assert found.best_params_ == {"learning_rate": None, "max_grad_norm": None}
    assert np.isnan(found.best_score_)
    assert found.cv_results_["params"] == [found.best_params_]
    assert found.predict(X).shape == y.shape
    assert "validation data are public" not in str(found.privacy_)


def test_many_records_are_searched_and_plans_say_so() -> None:
    plan = search().plan(MANY, 3)
    assert plan.row.name == "DPRandomSearchCV"
    assert plan.advice == ""
    assert "quality: 0.2, 0.9. The unchanged estimator is a third of the draws" in str(plan)
    X, y = table(MANY)
    fitted = search(n_iter=20).fit(X, y)
    assert fitted.best_params_ == {"quality": 0.9}


def test_few_records_are_not_and_plans_say_why() -> None:
    plan = search().plan(FEW, 3, compare=True)
    assert plan.row.name == "one fit, untuned"
    assert [row.name for row in plan.alternatives] == ["DPRandomSearchCV, if it did search"]
    assert "cannot be expected to help here, since the noise of its costs" in str(plan)
    assert "the unchanged estimator is fitted once" in str(plan)


@pytest.mark.filterwarnings("ignore:delta=0.5 is at least")
def test_a_delta_at_which_fits_have_no_epsilon_is_planned() -> None:
    model = make_private_pipeline(DPLogisticRegression(), {"x": (0, 1)})
    plan = DPRandomSearchCV(model, epsilon=1.0, delta=0.5).plan(8000, 1)
    assert plan.row.name == "one fit, untuned"
    alone = RandomRuns(try_own_values=False)
    plan = DPRandomSearchCV(model, epsilon=1.0, delta=0.5, strategy=alone).plan(8000, 1)
    assert plan.row.name == "one fit, untuned"
    assert "may lose 100.0 points" in str(plan)


@pytest.mark.parametrize("kind", KINDS)
def test_plans_without_a_search_say_how_to_search(kind: Any) -> None:
    model = make_pipeline(RowNormClipper(1.0), DPLogisticRegression())
    one = kind(model, epsilon=1.0, delta=DELTA)
    advice = one.plan(FEW, 3, compare=False).advice
    how = r"To search anyway, give a space such as (\w+)=(\{.*\})( with strategy=(\w+)\(\))?, or"
    found = re.search(how, advice)
    name, space = found[1], ast.literal_eval(found[2])
    assert advice.endswith(
        "or more records in more parts (n_partitions)."
        if kind is DoublingThresholdSearchCV
        else "or more records."
    )
    ((key, values),) = space.items()
    assert 1 < len(values) <= 3
    assert key in model.get_params()
    made = clone(one).set_params(**{name: space})
    if found[4] is not None:
        # Without it, no candidate could win.
        assert made.plan(FEW, 3, compare=False).row.name == "one fit, untuned"
        made.set_params(strategy=getattr(skdptune, found[4])())
    assert made.plan(FEW, 3, compare=False).row.name == kind.__name__


def test_without_a_model_to_return_the_search_is_made() -> None:
    plan = search(refit=False).plan(FEW, 3, compare=False)
    assert plan.row.name == "DPRandomSearchCV"
    assert "cannot be expected to help" in plan.advice
    fitted = search(refit=False).fit(*table(FEW))
    assert not hasattr(fitted, "best_estimator_")
    assert fitted.best_params_["quality"] in (0.2, 0.9)


def test_a_secret_number_of_records_is_kept() -> None:
    X = np.random.default_rng(0).normal(size=(FEW, 2))
    model = DPLogisticRegression(classes=[False, True])
    found = DPRandomSearchCV(model, epsilon=1.0, n_public=500, random_state=0)
    found.fit(X, X[:, 0] > 0.0)
    assert found.best_estimator_.n_public == found.best_estimator_.plan_.n_samples == 500


@pytest.mark.parametrize("kind", KINDS)
def test_pure_budgets_stay_pure(kind: Any) -> None:
    X = np.random.default_rng(0).normal(size=(FEW, 2))
    model = DPLogisticRegression(delta=0.0, data_norm=2.0, classes=[False, True])
    found = kind(model, epsilon=1.0, random_state=0).fit(X, X[:, 0] > 0.0)
    assert found.privacy_.delta == 0.0
    assert found.privacy_.profile.epsilon(0.0) <= 1.0


@pytest.mark.parametrize(("n_features", "is_searched"), [(20, True), (400, False)])
def test_wide_classifications_are_searched_on_more_records(
    n_features: int | None, is_searched: bool
) -> None:
    model = DPLogisticRegression(classes=[0, 1])
    plan = DPRandomSearchCV(model, epsilon=2.0).plan(8000, n_features, compare=False)
    assert (plan.advice == "") == is_searched
