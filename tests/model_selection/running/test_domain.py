"""Which data a search takes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

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


def test_types_that_no_estimator_takes() -> None:
    check_domain(np.array([["a"], [np.nan]], dtype=object), TARGETS)
    check_domain(sparse.csr_matrix(np.eye(2)), None)
    check_domain([[1.0], [float("nan")]], [0.0, float("nan")])
    for X, y, name in ((np.eye(2) + 1j, TARGETS, "X"), (np.eye(2), TARGETS + 1j, "y")):
        with pytest.raises(ValueError, match=f"{name} must be real"):
            check_domain(X, y)


def test_labels_are_those_declared_or_found() -> None:
    y = np.array([2, 0, 2])
    assert labels_of(DPLogisticRegression(), y, 3) == [0, 2]
    assert labels_of(DPLogisticRegression(classes=[0, 1, 2]), y, 3) == [0, 1, 2]
    assert labels_of(Scripted(), None, 3) is None
    assert labels_of(DPLogisticRegression(classes=[0, 1]), y, 3) == [0, 1]
    assert labels_of(DPLogisticRegression(), np.array([2.0, np.nan, 0.0]), 3) == [0.0, 2.0]
    with pytest.raises(ValueError, match="as long as X"):
        labels_of(DPLogisticRegression(), y, 4)
    with pytest.raises(ValueError, match="classes must be named"):
        labels_of(DPLogisticRegression(), y, 3, is_random=True)
