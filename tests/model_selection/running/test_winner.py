"""A search does what its winner can do, and says why where there is none."""

from __future__ import annotations

import pytest
import sklearn
from sklearn.exceptions import NotFittedError

from skdptune.model_selection import DPRandomSearchCV
from tests.flat import flat
from tests.model_selection.learners import Scripted, table

X, Y = table(600)


def search(**settings: object) -> DPRandomSearchCV:
    return flat(
        DPRandomSearchCV,
        Scripted(),
        {"quality": [0.2, 0.8]},
        delta=1e-5,
        random_state=0,
        **settings,
    )


def test_what_the_winner_can_do() -> None:
    found = search().fit(X, Y)
    assert found.predict(X).tolist() == found.best_estimator_.predict(X).tolist()
    assert found.classes_.tolist() == [0, 1]
    assert found.n_features_in_ == X.shape[1]
    assert found.score(X, Y) == found.scorer_(found.best_estimator_, X, Y)
    assert not hasattr(found, "inverse_transform")


def test_nothing_before_the_fit() -> None:
    with pytest.raises(NotFittedError):
        search().predict(X)
    with pytest.raises(AttributeError, match="no n_features_in_"):
        _ = search().n_features_in_


def test_nothing_without_a_model() -> None:
    found = search(refit=False).fit(X, Y)
    assert not hasattr(found, "predict")
    with pytest.raises(AttributeError, match="has no attribute 'predict'") as raised:
        _ = found.predict
    assert "refit=False; predict needs a model" in str(raised.value.__cause__)
    with pytest.raises(AttributeError, match="it has no model"):
        found.score(X, Y)


@pytest.mark.parametrize("routing", [False, True])
def test_scores_take_no_metadata(routing: bool) -> None:
    found = search().fit(X, Y)
    kind, words = (TypeError, "unexpected") if routing else (ValueError, "is only supported if")
    with sklearn.config_context(enable_metadata_routing=routing):
        with pytest.raises(kind, match=words):
            found.score(X, Y, metadata=1)
        assert found.score(X, Y) == found.scorer_(found.best_estimator_, X, Y)
