"""The one engine that fits and scores: no data can make it fail (Theorem F4)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from skdptune.metrics import accuracy
from skdptune.model_selection._running._data import Data
from skdptune.model_selection._running._engine import (
    Outcome,
    can_be_together,
    fit_and_score,
    is_failure,
    values_of,
)
from tests.model_selection.learners import Loud, Scripted, Together, table

X, Y = table(400)
DATA = Data(X, Y)


def outcomes(models: list[Any], **more: Any) -> list[Outcome]:
    return fit_and_score(models, [None] * len(models), DATA, DATA, accuracy(), **more)


def test_each_model_has_its_values() -> None:
    found = outcomes([Scripted(0.2), Scripted(0.9)])
    for outcome, quality in zip(found, (0.2, 0.9), strict=True):
        assert outcome.error is None
        np.testing.assert_array_equal(outcome.values, (X[:, 1] < quality).astype(float))


def test_a_failing_fit_has_no_values_and_leaves_the_others_alone() -> None:
    failed, good = outcomes([Loud(0.1), Scripted(0.5)])
    assert failed.values is None and isinstance(failed.error, ValueError)
    assert good.error is None
    with pytest.raises(ValueError, match="exception of"):
        outcomes([Loud(0.1)], raises=True)


class Touchy(Scripted):
    """Cannot predict a table with a given record in it."""

    def predict(self, X: Any) -> Any:
        if (np.asarray(X)[:, 2] == self.poison).any():
            raise ValueError("a record that I do not like")
        return super().predict(X)


@pytest.mark.parametrize("place", [0, 7, 399])
def test_a_record_that_cannot_be_scored_changes_its_own_value_alone(place: int) -> None:
    model = Touchy(0.7)
    model.poison = X[place, 2]
    (outcome,) = outcomes([model])
    wanted = (X[:, 1] < 0.7).astype(float)
    wanted[place] = 0.0
    np.testing.assert_array_equal(outcome.values, wanted)


def test_a_model_that_never_scores_is_found_by_its_first_record() -> None:
    class Mute(Scripted):
        calls = 0

        def predict(self, X: Any) -> Any:
            Mute.calls += 1
            raise ValueError("never")

    (outcome,) = outcomes([Mute(0.5)], tries_one=True)
    assert outcome.values is None and Mute.calls == 1


def test_only_the_wish_to_stop_is_no_failure() -> None:
    assert is_failure(SystemExit("a record's text")) and is_failure(MemoryError())
    assert not is_failure(KeyboardInterrupt())


def test_values_of_nothing() -> None:
    model = Scripted(0.5).fit(X, Y)
    assert values_of(accuracy(), model, DATA.take(np.arange(0))).size == 0


def test_which_can_be_fitted_together() -> None:
    assert can_be_together([Together(0.1), Together(0.2)], DATA)
    assert not can_be_together([Together(0.1), Scripted(0.1)], DATA)
    assert not can_be_together([], DATA)
    assert not can_be_together([Together(0.1)], Data(X, Y, {"weight": Y}))


def test_a_fit_that_was_overridden_is_not_passed_over() -> None:
    class Family(Scripted):
        @classmethod
        def fit_many(cls, estimators: object, X: object, y: object) -> None: ...

    class Other(Family):
        def fit(self, X: object, y: object, sample_weight: object = None) -> object:
            return super().fit(X, y)

    data = Data(X, Y)
    assert can_be_together([Family()], data)
    assert not can_be_together([Other()], data)
