"""Cost first: invalid parameters and budgets are refused before a record is read."""

from __future__ import annotations

from typing import Any

import pytest
import sklearn
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

from skdptune.accounting import UnreachableBudgetError
from skdptune.base import NoProfileError
from tests.flat import changed
from tests.model_selection.learners import Scripted, table
from tests.model_selection.ways import USUAL, WAYS

DELTA = 1e-5
VALUES = {"quality": [0.2, 0.8]}


class Poisoned:
    """Has a shape, and raises if anything else is asked of it."""

    def __init__(self, *shape: int) -> None:
        self.shape = shape

    def __len__(self) -> int:
        return self.shape[0]

    def _read(self, *arguments: Any, **more: Any) -> Any:
        raise RuntimeError("the data were read")

    __getitem__ = __iter__ = __array__ = __eq__ = __lt__ = _read
    __hash__ = None  # type: ignore[assignment]


BAD: dict[str, list[Any]] = {
    "epsilon": [0.0, -1.0, "much", float("nan")],
    "delta": [1.0, -1e-9],
    "score_epsilon": [0.0],
    "cv": [1.0],
    "refit": ["best"],
    "diagnostics": [1],
    "error_score": [0.0],
    "random_state": [-1, "seed"],
    "n_public": [0],
    "scoring": ["roc_auc", "f1", "neg_brier_score"],
    "estimator": [Scripted, 3],
}


@pytest.mark.parametrize("name", USUAL)
def test_bad_parameters_before_data(name: str) -> None:
    # Theorem F0: a search's cost follows from public numbers.
    cases = [(key, value, f"{key} must ") for key in BAD for value in BAD[key]]
    cases += [("estimator", LogisticRegression(), ".")]
    # Both at once.
    cases += [("estimator", DecisionTreeRegressor(), "not private(.|\n)*scoring must be")]
    refused = 0
    for key, value, words in cases:
        search = WAYS[name].make(Scripted(), VALUES, delta=DELTA)
        try:
            changed(search, **{key: value})
        except TypeError as error:
            # This search has no such parameter.
            assert "unexpected keyword" in str(error)
            continue
        with pytest.raises((TypeError, ValueError), match=words):
            search.fit(Poisoned(600, 3), Poisoned(600))
        assert not hasattr(search, "privacy_")
        refused += 1
    assert refused >= len(cases) - 1


@pytest.mark.parametrize("name", USUAL)
def test_all_that_is_not_private_is_named_at_once(name: str) -> None:
    # Theorem F0: a search's cost follows from public numbers.
    epsilon, scoring = (None, "accuracy") if name == "grid" else (1.0, "roc_auc")
    ported = make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression())
    search = (
        WAYS[name]
        .make(ported, {"logisticregression__C": [0.1, 1.0]}, epsilon=epsilon, delta=DELTA)
        .set_params(scoring=scoring)
    )
    for ask in (lambda: search.fit(*table(100)), lambda: search.plan(600, 3)):
        with pytest.raises(NoProfileError) as refusal:
            ask()
        found = [each.path for each in refusal.value.refusals]
        assert found[:3] == ["simpleimputer", "standardscaler", "logisticregression"]
        assert len(found) == 3 + (scoring == "roc_auc")


@pytest.mark.parametrize("name", USUAL)
def test_bad_values_before_data(name: str) -> None:
    for values, kind, words in (
        ({"qualty": [1]}, ValueError, "qualty"),
        ({"quality": []}, ValueError, "must not be empty"),
        ([], TypeError, "must be a dict from parameter names to values"),
        ({"quality": object()}, TypeError, "must be a list"),
        ({"random_state": [1, 2]}, ValueError, "must leave 'random_state' to the search"),
        ({"n_public": [1, 2]}, ValueError, "must leave 'n_public' to the search"),
        ({"epsilon": [1, 2]}, ValueError, "must leave 'epsilon' to the search"),
    ):
        search = WAYS[name].make(Scripted(), values, epsilon=1.0, delta=DELTA)
        with pytest.raises(kind, match=words):
            search.fit(Poisoned(600, 3), Poisoned(600))


@pytest.mark.parametrize("name", USUAL)
def test_too_few_records_before_data(name: str) -> None:
    search = WAYS[name].make(Scripted(), VALUES, delta=DELTA)
    with pytest.raises(ValueError, match="n_samples must be at least"):
        search.fit(Poisoned(7, 3), Poisoned(7))


@pytest.mark.parametrize("name", ["random", "grid"])
def test_budget_out_of_reach_before_data(name: str) -> None:
    # Theorem F0: a search's cost follows from public numbers.
    option = "selection_epsilon" if name == "grid" else "score_epsilon"
    search = WAYS[name].make(Scripted(), VALUES, epsilon=0.1, delta=DELTA, **{option: 40.0})
    with pytest.raises(UnreachableBudgetError, match="epsilon must be at least"):
        search.fit(Poisoned(600, 3), Poisoned(600))


@pytest.mark.parametrize("name", USUAL)
def test_good_parameters_read_the_data(name: str) -> None:
    with pytest.raises(RuntimeError, match="the data were read"):
        WAYS[name].make(Scripted(), VALUES, delta=DELTA).fit(Poisoned(600, 3), Poisoned(600))


@pytest.mark.parametrize("name", USUAL)
def test_public_validation_data_come_in_pairs(name: str) -> None:
    X, y = table(600)
    search = WAYS[name].make(Scripted(), VALUES, delta=DELTA)
    with pytest.raises(ValueError, match="X_val and y_val must be given together"):
        search.fit(X, y, X_val=X)
    search.fit(X, y, X_val=X[:50], y_val=y[:50])
    assert "the validation data are public" in search.privacy_.assumptions


@pytest.mark.parametrize("name", USUAL)
def test_weights_that_scores_leave_out_are_warned_of(name: str) -> None:
    X, y = table(600)
    weights = [1.0] * 600
    with pytest.warns(UserWarning, match="scoring does not support sample_weight"):
        WAYS[name].make(Scripted(), VALUES).fit(X, y, sample_weight=weights)
    with sklearn.config_context(enable_metadata_routing=True):
        estimator = Scripted().set_fit_request(sample_weight=True)
        # By routing, weights are asked for where they are used.
        WAYS[name].make(estimator, VALUES).fit(X, y, sample_weight=weights)
