"""What a search sets in an estimator: budgets, public sizes, parameters on fewer records."""

from __future__ import annotations

import math
from typing import Any

import pytest
from sklearn.base import BaseEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, PolynomialFeatures

from skdptune.accounting import PrivacyProfile
from skdptune.base._shared import (
    Budget,
    budget_owners,
    check_secret_size,
    scale_to_tuning,
    set_budget,
    set_public_size,
    suggested_space,
    suggests_a_space,
    without_noise,
    worst_cost_of_budget,
)
from skdptune.model_selection import DPGridSearchCV
from skdptune.preprocessing import RowNormClipper
from tests.model_selection.learners import Centroids, Scripted


def test_budget_is_shared_in_proportion() -> None:
    pair = make_pipeline(Normalizer(), Scripted(epsilon=1.0), Centroids(epsilon=3.0, delta=0.0))
    owners = {owner.prefix: (owner.share, owner.delta) for owner in budget_owners(pair)}
    assert owners == {"scripted__": (0.25, 1e-6), "centroids__": (0.75, 0.0)}
    set_budget(pair, Budget(2.0, 1e-4))
    assert (pair[1].epsilon, pair[1].delta) == (0.5, 1e-4)
    assert (pair[2].epsilon, pair[2].delta) == (1.5, 0.0)
    worst = worst_cost_of_budget(pair, Budget(2.0, 1e-4))
    assert worst.epsilon(1e-4) == pytest.approx(2.0)


def test_a_budget_of_which_nothing_is_left_has_shares() -> None:
    owners = budget_owners(make_pipeline(Normalizer(), Scripted(epsilon=0.0)))
    assert [owner.share for owner in owners] == [0.0]


def test_infinite_and_missing_budgets() -> None:
    assert budget_owners(Scripted(epsilon=None)) == []
    assert budget_owners(Scripted(epsilon=math.inf))[0].share == 1.0


def test_search_without_delta_is_given_one() -> None:
    inner = DPGridSearchCV(Scripted(delta=1e-7), {"quality": [0.1]}, epsilon=1.0)
    (owner,) = budget_owners(inner)
    assert (owner.prefix, owner.delta) == ("", 1e-7)
    worst = worst_cost_of_budget(inner, Budget(1.0, 1e-6))
    assert worst.delta(1.0) == pytest.approx(1e-6)
    set_budget(inner, Budget(2.0, 1e-6))
    assert (inner.epsilon, inner.delta, inner.estimator.epsilon) == (2.0, 1e-6, 1.0)


def test_noise_is_taken_away_from_a_copy() -> None:
    pipeline = make_pipeline(Scripted())
    assert without_noise(pipeline, 500, 3)[0].epsilon == math.inf
    assert pipeline[0].epsilon == 1.0


def test_steps_without_noise_are_not_composed_with_steps_that_have_some(monkeypatch) -> None:
    def refuse(*_: object) -> object:
        raise AssertionError("a composition")

    monkeypatch.setattr(PrivacyProfile, "__add__", refuse)
    free = without_noise(make_pipeline(Scripted(), Scripted()), 500, 3)
    assert [step.epsilon for _, step in free.steps] == [math.inf, math.inf]


# Candidates scaled to fewer records ----------------------------------------------------------


class Scaled(Scripted):
    def tuning_parameters(self, n_tune: int, n_final: int) -> dict[str, Any]:
        return {"quality": self.quality * n_tune / n_final}


class Stepping(Scripted):
    def __init__(self, lr: float = 8.0, learning_rate: float = 4.0, epsilon: float = 1.0) -> None:
        super().__init__(epsilon=epsilon)
        self.lr = lr
        self.learning_rate = learning_rate

    def tuning_parameters(self, n_tune: int, n_final: int) -> dict[str, Any]:
        share = n_tune / n_final
        return {"lr": self.lr * share, "learning_rate": self.learning_rate * share}


@pytest.mark.parametrize(("rule", "factor"), [("auto", 0.5), ("linear", 0.25)])
def test_learning_rates_are_scaled_half_the_way_by_default(rule: str, factor: float) -> None:
    # Estimators and nets name it differently.
    stepping = Stepping()
    scale_to_tuning(stepping, 100, 400, rule)
    assert (stepping.lr, stepping.learning_rate) == (8.0 * factor, 4.0 * factor)


def test_own_rule_is_applied_and_then_the_users_rule() -> None:
    def own(rule: Any) -> float:
        pipeline = make_pipeline(Scaled(quality=0.8))
        scale_to_tuning(pipeline, 100, 400, rule)
        return pipeline[0].quality

    assert own("auto") == 0.2
    assert own(None) == 0.8
    assert own(lambda params, n_tune, n_final: {"scaled__quality": n_tune / 1000}) == 0.1
    with pytest.raises(ValueError, match="must not change parameters that set the cost"):
        own(lambda params, n_tune, n_final: {"scaled__epsilon": 9.0})


# A public constant in place of a secret number of records ------------------------------------


def test_public_size_is_set_or_must_not_matter() -> None:
    # Theorem F3.
    pipeline = make_pipeline(Scripted(), Centroids())
    set_public_size(pipeline, 77)
    check_secret_size(pipeline, 77, 3)
    assert pipeline[0].n_public == pipeline[1].n_public == 77

    class Sized(Scripted):
        def privacy_profile(self, n_samples: int, n_features: int | None = None) -> Any:
            return PrivacyProfile.pure(1.0 / n_samples)

    with pytest.raises(TypeError, match="must have a parameter n_public.*got Sized"):
        check_secret_size(Sized(), 77, 3)


# What is suggested to search over: by an estimator, and by those inside it -------------------


class Suggesting(BaseEstimator):
    def __init__(self, rate: float | None = None) -> None:
        self.rate = rate

    def suggested_space(self, n_samples: int, n_features: int | None = None) -> dict[str, Any]:
        return {"rate": (self.rate, n_samples, n_features)}


class Around(BaseEstimator):
    def __init__(self, inner: Any = None) -> None:
        self.inner = inner


def test_an_estimator_speaks_for_itself() -> None:
    assert suggests_a_space(Suggesting())
    assert suggested_space(Suggesting(0.5), 100, 3) == {"rate": [0.5, 100, 3]}


def test_steps_are_named_and_know_their_columns() -> None:
    pipeline = make_pipeline(RowNormClipper(), PolynomialFeatures(2), Suggesting())
    assert suggests_a_space(pipeline)
    assert suggested_space(pipeline, 100, 3) == {"suggesting__rate": [None, 100, 10]}
    assert suggested_space(pipeline, 100, None) == {"suggesting__rate": [None, 100, None]}


def test_names_of_estimators_inside_add_up() -> None:
    outer = make_pipeline(Around(Suggesting(2.0)))
    assert suggested_space(outer, 9, 1) == {"around__inner__rate": [2.0, 9, None]}
    assert list(outer.get_params()) and "around__inner__rate" in outer.get_params()


def test_most_suggest_nothing() -> None:
    for estimator in (RowNormClipper(), make_pipeline(RowNormClipper(), "passthrough"), Around()):
        assert not suggests_a_space(estimator)
        assert suggested_space(estimator, 100, 3) == {}
