"""Which data a search takes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

from skdptune.linear_model import DPLogisticRegression
from skdptune.model_selection import DPRandomSearchCV
from skdptune.model_selection._running._domain import check_domain, is_search, public_labels
from tests.model_selection.learners import Scripted, table
from tests.model_selection.ways import USUAL, WAYS

DELTA = 1e-5
VALUES = {"quality": [0.2, 0.8]}
TARGETS = np.array([0, 1])


def of(estimator: object, **settings: object) -> DPRandomSearchCV:
    return DPRandomSearchCV(estimator, {}, delta=DELTA, **settings)


def labels_of(estimator: object, y: object, n_samples: int, is_random: bool = False) -> object:
    return public_labels(estimator, y, n_samples, is_random=is_random)


@pytest.mark.parametrize("name", USUAL)
def test_bad_tables(name: str) -> None:
    X, y = table(600)
    search = WAYS[name].make(Scripted(), VALUES, delta=DELTA)
    for bad, words in (
        (X[:, 0], "X must be two-dimensional"),
        (X[:, :0], "X must have columns"),
        (X + 1j, "X must be real"),
        (np.where(X > 0.9, np.nan, X), "NaN"),
    ):
        with pytest.raises(ValueError, match=words):
            search.fit(bad, y)
    with pytest.raises(ValueError, match="one class"):
        search.fit(X, np.zeros(600))
    with pytest.raises(ValueError, match="continuous"):
        search.fit(X, X[:, 1])


def test_searches_know_each_other() -> None:
    assert is_search(of(Scripted()))
    assert not is_search(Scripted())


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_numbers_are_looked_for_where_they_are_used(bad: float) -> None:
    frame = pd.DataFrame({"word": ["a", "b"], "idle": [bad, 1.0], "used": [1.0, 2.0]})
    encoder = ColumnTransformer(
        [("words", OneHotEncoder(), ["word"]), ("n", Scripted(), ["used"])]
    )
    check_domain(of(make_pipeline(encoder, Scripted())), frame, TARGETS, "the search")
    frame.loc[0, "used"] = bad
    with pytest.raises(ValueError, match="X contains"):
        check_domain(of(make_pipeline(encoder, Scripted())), frame, TARGETS, "the search")
    nested = of(of(make_pipeline(FunctionTransformer(), Scripted())))
    with pytest.raises(ValueError, match="X contains"):
        check_domain(nested, np.array([[bad], [1.0]]), TARGETS, "the search")


def test_words_sparse_tables_and_lists() -> None:
    check_domain(of(Scripted()), np.array([["a"], ["b"]], dtype=object), TARGETS, "the search")
    check_domain(of(Scripted()), sparse.csr_matrix(np.eye(2)), TARGETS, "the search")
    check_domain(of(Scripted()), [[1.0], [2.0]], TARGETS, "the search")
    with pytest.raises(ValueError, match="X contains"):
        check_domain(of(Scripted()), [[1.0], [float("nan")]], TARGETS, "the search")
    with pytest.raises(ValueError, match="y contains"):
        check_domain(of(Scripted()), np.eye(2), np.array([0.0, np.nan]), "the search")


def test_labels_are_those_declared_or_found() -> None:
    y = np.array([2, 0, 2])
    assert labels_of(DPLogisticRegression(), y, 3) == [0, 2]
    assert labels_of(DPLogisticRegression(classes=[0, 1, 2]), y, 3) == [0, 1, 2]
    assert labels_of(Scripted(), None, 3) is None
    with pytest.raises(ValueError, match="named in classes; got others"):
        labels_of(DPLogisticRegression(classes=[0, 1]), y, 3)
    with pytest.raises(ValueError, match="as long as X"):
        labels_of(DPLogisticRegression(), y, 4)
    with pytest.raises(ValueError, match="classes must be named"):
        labels_of(DPLogisticRegression(), y, 3, is_random=True)
