"""Which data a search takes."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer
from sklearn.utils import get_tags

from skdptune.linear_model import DPLogisticRegression, NoisyStatisticsRidge
from skdptune.model_selection import DPRandomSearchCV
from skdptune.model_selection._running._domain import check_targets, is_search, public_labels
from tests.flat import changed, flat
from tests.model_selection.learners import Scripted, table
from tests.model_selection.ways import USUAL, WAYS

DELTA = 1e-5
VALUES = {"quality": [0.2, 0.8]}
TARGETS = np.array([0, 1])


def of(estimator: object, **settings: object) -> DPRandomSearchCV:
    return flat(DPRandomSearchCV, estimator, {}, delta=DELTA, **settings)


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


@pytest.mark.parametrize("name", USUAL)
@pytest.mark.parametrize("estimator", [Scripted(), make_pipeline(Normalizer(), Scripted())])
def test_targets_that_no_run_could_use(name: str, estimator: object) -> None:
    X, y = table(600)
    prefix = "" if isinstance(estimator, Scripted) else "scripted__"
    values = {f"{prefix}quality": [0.2, 0.8]}
    search = WAYS[name].make(estimator, values, delta=DELTA)
    with pytest.raises(ValueError, match="requires y to be passed"):
        search.fit(X)
    for two in (np.column_stack([y, y]), np.column_stack([y, y]).tolist()):
        with pytest.raises(ValueError, match="should be a 1d array"):
            search.fit(X, two)
    assert "privacy_" not in vars(search)
    with pytest.raises(TypeError, match="takes; got 'typo'"):
        search.fit(X, y, typo=3)


class Pairwise(Scripted):
    """Takes a matrix of all pairs of records."""

    def __sklearn_tags__(self) -> object:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = True
        return tags


@pytest.mark.parametrize("name", USUAL)
def test_matrices_of_all_pairs_are_refused(name: str) -> None:
    """Theorem R6: each of its rows is about every record."""
    X, y = table(40)
    values = {"quality": [0.2, 0.8]}
    for estimator in (Pairwise(), make_pipeline(Pairwise())):
        prefix = "" if isinstance(estimator, Pairwise) else "pairwise__"
        search = WAYS[name].make(
            estimator, {f"{prefix}{key}": each for key, each in values.items()}, delta=1e-5
        )
        with pytest.raises(ValueError, match="must take one row per record; got .*all pairs"):
            search.fit(X @ X.T, y)
        assert "privacy_" not in vars(search)
    assert get_tags(WAYS[name].make(Pairwise(), values)).input_tags.pairwise


class MayBePairwise(Scripted):
    """Takes a matrix of all pairs for a quality above one half, and would read it."""

    def fit(self, X: object, y: object, sample_weight: object = None) -> MayBePairwise:
        assert self.quality <= 0.5
        return super().fit(X, y)

    def __sklearn_tags__(self) -> object:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.quality > 0.5
        return tags


def test_a_candidate_that_takes_all_pairs_fails_unseen() -> None:
    """Theorem R6: whatever the matrix holds, it has the worst score."""
    X, y = table(600)
    search = WAYS["grid-table"].make(
        MayBePairwise(), {"quality": [0.4, 0.9]}, epsilon=50.0, delta=1e-5
    )
    changed(search, diagnostics=True).fit(X, y)
    assert search.best_params_ == {"quality": 0.4}
    assert "all pairs" in search.diagnostics_["errors"][1]


def test_several_targets_where_they_are_taken() -> None:
    class Several(Scripted):
        def __sklearn_tags__(self) -> object:
            tags = super().__sklearn_tags__()
            tags.target_tags.multi_output = True
            return tags

    check_targets(Several(), np.ones((3, 2)))
    check_targets(Scripted(), np.ones((3, 1)))
    check_targets(Normalizer(), None)
    with pytest.raises(ValueError, match="a row of targets per record"):
        check_targets(Several(), np.ones((3, 2, 2)))


def test_tables_and_targets_of_another_type_are_refused_before_anything_is_paid_for() -> None:
    """Theorem R5: types are public; the search would publish a model of constant rows."""
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame({"age": np.arange(60.0), "seen": pd.Timestamp("2020-01-01")})
    y = np.arange(60) % 2
    for estimator in (DPLogisticRegression(), make_pipeline(Normalizer(), DPLogisticRegression())):
        search = of(estimator, epsilon=1.0)
        if isinstance(estimator, DPLogisticRegression):
            with pytest.raises(TypeError, match="column 'seen' has type datetime64.* Schema"):
                search.fit(X, y)
        with pytest.raises(TypeError, match="y must hold the labels"):
            of(estimator, epsilon=1.0).set_params(
                estimator=DPLogisticRegression(classes=["ill", "well"])
            ).fit(X[["age"]], y)
    with pytest.raises(TypeError, match="y must hold numbers"):
        check_targets(NoisyStatisticsRidge(), np.array(["ill", "well"]))
