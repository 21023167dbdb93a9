"""Searches state all assumptions of the guarantees of their parts, once each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

from skdptune.base import privacy_of
from skdptune.linear_model import DPLogisticRegression, DPRidge
from skdptune.metrics import neg_squared_error
from skdptune.model_selection import DParetoSearchCV, DPGridSearchCV, FullTable
from skdptune.preprocessing import DPStandardScaler
from tests.flat import flat
from tests.model_selection.learners import Replacing, Scripted
from tests.model_selection.ways import WAYS

ADD_OR_REMOVE = "add or remove one record"
ZERO_OUT = (
    "add or remove one record's contribution at its place, the public number of records unchanged"
)
REPLACE = "replace one of a public number of records"
RNG = np.random.default_rng(0)
X = RNG.uniform(size=(300, 3))
Y = (X[:, 0] > 0.5).astype(int)
FINAL = DPLogisticRegression(solver="output", data_norm=2.0)
ENCODER = OneHotEncoder(categories=[[0.0, 1.0]] * 3, handle_unknown="ignore")
C = "dplogisticregression__C"
CASES: dict[str, tuple[Any, str, list[Any]]] = {
    "psgd": (DPLogisticRegression(solver="psgd"), "C", [0.1, 1.0]),
    "sgd": (DPLogisticRegression(solver="sgd", epochs=1, data_norm=2.0), "C", [0.1, 1.0]),
    "regression": (DPRidge(target_bound=1.0), "alpha", [0.1, 1.0]),
    "scaler": (make_pipeline(DPStandardScaler(bounds=(0.0, 1.0)), FINAL), C, [0.1, 1.0]),
    "function": (make_pipeline(FunctionTransformer(), FINAL), C, [0.1, 1.0]),
    "encoder": (make_pipeline(ENCODER, FINAL), C, [0.1, 1.0]),
}
SEARCHES = ("random", "random-refit", "grid", "grid-compose", "doubling")


def assumptions_in(report: Any) -> set[str]:
    """Return the assumptions of a report and of all its parts."""
    return set(report.assumptions).union(*map(assumptions_in, report.parts))


@pytest.mark.parametrize(
    ("name", "case"),
    [
        *(("random", "psgd"), ("random-refit", "regression"), ("grid", "sgd")),
        *(("grid-compose", "scaler"), ("doubling", "function"), ("random", "encoder")),
        *(("grid", "psgd"), ("doubling", "scaler")),
    ],
)
def test_reports_of_searches_carry_all_assumptions(name: str, case: str) -> None:
    # Theorem F11: reports carry all assumptions of their parts.
    estimator, parameter, values = CASES[case]
    more = {"scoring": neg_squared_error(bound=1.0)} if case == "regression" else {}
    search = WAYS[name].make(
        estimator, {parameter: values}, epsilon=4.0, delta=1e-4, random_state=None, **more
    )
    # Which validation records train is random, for which permutations have no bound.
    search.fit(X, Y, X_val=X[:50], y_val=Y[:50])
    stated = search.privacy_.assumptions
    assert len(set(stated)) == len(stated)
    inside = privacy_of(search.best_estimator_, n_samples=len(X))
    assert assumptions_in(inside) <= set(stated)
    assert search.privacy_.neighbouring == inside.neighbouring
    assert (inside.neighbouring == ZERO_OUT) == (case == "psgd")
    # All of it was known before the fit.
    before = search.plan(*X.shape, public_validation=True, compare=False).report
    assert set(before.assumptions) == set(stated)
    assert before.neighbouring == search.privacy_.neighbouring


def test_losers_are_counted() -> None:
    # Theorem F11: reports carry all assumptions of their parts.
    solvers = {"solver": ["output", "psgd"], "C": [0.1]}
    search = WAYS["grid"].make(DPLogisticRegression(data_norm=2.0), solvers, epsilon=4.0)
    report = search.plan(300, 3, public_validation=True, compare=False).report
    assert report.neighbouring == ZERO_OUT
    assert any("at its place" in sentence for sentence in report.assumptions)
    search.set_params(param_grid={"solver": ["output"], "C": [0.1]})
    report = search.plan(300, 3, public_validation=True, compare=False).report
    assert report.neighbouring == ADD_OR_REMOVE
    assert not any("at its place" in sentence for sentence in report.assumptions)


class Late(Scripted):
    """States its assumptions only in its report, like models of other libraries."""

    privacy_assumptions = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Late:
        super().fit(X, y)
        self.privacy_ = self._make_report(self.privacy_.profile, ("said late",))
        return self


@pytest.mark.parametrize("name", SEARCHES)
def test_what_only_the_model_says_is_carried(name: str) -> None:
    # Theorem F11: reports carry all assumptions of their parts.
    search = WAYS[name].make(Late(), {"quality": [0.5, 0.9]}, epsilon=4.0).fit(X, Y)
    assert search.privacy_.assumptions.count("said late") == 1
    assert "said late" not in search.plan(*X.shape, compare=False).report.assumptions


def test_a_search_without_a_model_says_what_was_known() -> None:
    estimator, parameter, values = CASES["function"]
    search = WAYS["grid"].make(estimator, {parameter: values}, epsilon=4.0, refit=False)
    assert any("FunctionTransformer" in words for words in search.fit(X, Y).privacy_.assumptions)


@pytest.mark.parametrize("name", ["random-refit", "grid"])
def test_relations_are_stated_or_refused(name: str) -> None:
    # Theorem F8, Theorem F11.
    search = WAYS[name].make(Replacing(), {"quality": [0.5, 0.9]}, epsilon=4.0)
    assert search.plan(300, 3, compare=False).report.neighbouring == REPLACE
    mixed = make_pipeline(DPStandardScaler(bounds=(0.0, 1.0)), Replacing())
    search = WAYS[name].make(mixed, {"replacing__quality": [0.5]}, epsilon=4.0)
    with pytest.raises(TypeError, match="private steps of one kind"):
        search.plan(300, 3, compare=False)


@pytest.mark.parametrize("solver", ["output", "psgd"])
def test_pareto_searches_carry_them_too(solver: str) -> None:
    # Theorem F11: reports carry all assumptions of their parts.
    pytest.importorskip("optuna")
    search = flat(
        DParetoSearchCV,
        DPLogisticRegression(data_norm=2.0),
        {"epsilon": (0.5, 4.0), "solver": ["objective", solver]},
        n_initial=3,
        n_iter=0,
        refit=True,
        random_state=0,
    ).fit(X, Y, X_val=X[:50], y_val=Y[:50])
    report = search.privacy_
    assert "rows are clipped to Euclidean norm 2" in report.assumptions
    assert len(set(report.assumptions)) == len(report.assumptions)
    assert report.neighbouring == (ZERO_OUT if solver == "psgd" else ADD_OR_REMOVE)
    assert any("at its place" in words for words in report.assumptions) == (solver == "psgd")


@pytest.mark.parametrize("wrap", [lambda inner: inner, make_pipeline], ids=["alone", "inside"])
def test_a_plan_says_that_an_inner_search_keeps_secrets(wrap: Any) -> None:
    # Theorem F11: reports carry all assumptions of their parts.
    inner = flat(
        DPGridSearchCV,
        Scripted(),
        {"quality": [0.5, 0.9]},
        epsilon=0.5,
        delta=1e-7,
        random_state=3,
    )
    whole = wrap(inner)
    name = "estimator__mark" if whole is inner else "dpgridsearchcv__estimator__mark"

    def stated() -> Any:
        outer = WAYS["grid-compose"].make(whole, {name: ["a", "b"]}, scoring="accuracy")
        return outer.plan(3000, 3, compare=False).report.assumptions

    assert not any("NOT PRIVATE" in sentence for sentence in stated())
    inner.set_params(strategy=FullTable(diagnostics=True))
    assert any("NOT PRIVATE: diagnostics" in sentence for sentence in stated())
    # The outer search sets the seeds of what it fits.
    inner.set_params(random_state=None)
    without = stated()
    inner.set_params(random_state=3)
    assert stated() == without
