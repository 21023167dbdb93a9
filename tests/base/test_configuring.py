"""Budgets, public sizes, seeds and scaled parameters of estimators."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from skdptune.accounting import PrivacyProfile
from skdptune.base._configuring import (
    Budget,
    budget_owners,
    check_fit_parameters,
    check_secret_size,
    cost_parameters,
    nested,
    scale_to_tuning,
    set_budget,
    set_public_size,
    set_seeds,
    without_noise,
    worst_of_budget,
)
from skdptune.model_selection import DPGridSearchCV
from tests.model_selection.learners import Centroids, Scripted


class Scaled(Scripted):
    def tuning_parameters(self, n_tune: int, n_final: int) -> dict[str, Any]:
        return {"quality": self.quality * n_tune / n_final}


def test_budget_is_shared_in_proportion() -> None:
    pair = make_pipeline(Normalizer(), Scripted(epsilon=1.0), Centroids(epsilon=3.0, delta=0.0))
    owners = {owner.prefix: (owner.share, owner.delta) for owner in budget_owners(pair)}
    assert owners == {"scripted__": (0.25, 1e-6), "centroids__": (0.75, 0.0)}
    set_budget(pair, Budget(2.0, 1e-4))
    assert (pair[1].epsilon, pair[1].delta) == (0.5, 1e-4)
    assert (pair[2].epsilon, pair[2].delta) == (1.5, 0.0)
    worst = worst_of_budget(pair, Budget(2.0, 1e-4))
    assert worst.epsilon(1e-4) == pytest.approx(2.0)


def test_infinite_and_missing_budgets() -> None:
    assert budget_owners(Scripted(epsilon=None)) == []
    assert budget_owners(Scripted(epsilon=math.inf))[0].share == 1.0


def test_search_without_delta_is_given_one() -> None:
    inner = DPGridSearchCV(Scripted(delta=1e-7), {"quality": [0.1]}, epsilon=1.0)
    (owner,) = budget_owners(inner)
    assert (owner.prefix, owner.delta) == ("", 1e-7)
    worst = worst_of_budget(inner, Budget(1.0, 1e-6))
    assert worst.delta(1.0) == pytest.approx(1e-6)
    set_budget(inner, Budget(2.0, 1e-6))
    assert (inner.epsilon, inner.delta, inner.estimator.epsilon) == (2.0, 1e-6, 1.0)


def test_noise_is_taken_away_from_a_copy() -> None:
    pipeline = make_pipeline(Scripted())
    assert without_noise(pipeline, 500, 3)[0].epsilon == math.inf
    assert pipeline[0].epsilon == 1.0


def test_public_size_is_told_or_must_not_matter() -> None:
    pipeline = make_pipeline(Scripted(), Centroids())
    set_public_size(pipeline, 77)
    check_secret_size(pipeline, 77, 3)
    assert pipeline[0].n_public == pipeline[1].n_public == 77

    class Sized(Scripted):
        def privacy_profile(self, n_samples: int, n_features: int | None = None) -> Any:
            return PrivacyProfile.pure(1.0 / n_samples)

    with pytest.raises(TypeError, match="must have a parameter n_public.*got Sized"):
        check_secret_size(Sized(), 77, 3)


def test_seeds_are_fresh_and_independent() -> None:
    pair = make_pipeline(Scripted(random_state=1), Centroids(random_state=1))
    set_seeds(pair, np.random.SeedSequence(5))
    found = (pair[0].random_state, pair[1].random_state)
    assert len({1, *found}) == 3
    again = clone(pair)
    set_seeds(again, np.random.SeedSequence(5))
    assert (again[0].random_state, again[1].random_state) == found
    set_seeds(pair, None)
    assert pair[0].random_state is pair[1].random_state is None


class Stepping(Scripted):
    def __init__(self, lr: float = 8.0, learning_rate: float = 4.0, epsilon: float = 1.0) -> None:
        super().__init__(epsilon=epsilon)
        self.lr = lr
        self.learning_rate = learning_rate

    def tuning_parameters(self, n_tune: int, n_final: int) -> dict[str, Any]:
        share = n_tune / n_final
        return {"lr": self.lr * share, "learning_rate": self.learning_rate * share}


@pytest.mark.parametrize(("rule", "factor"), [("auto", 0.5), ("linear", 0.25)])
def test_learning_rates_go_half_the_way_unless_told(rule: str, factor: float) -> None:
    # Estimators and nets name it differently.
    stepping = Stepping()
    scale_to_tuning(stepping, 100, 400, rule)
    assert (stepping.lr, stepping.learning_rate) == (8.0 * factor, 4.0 * factor)


def test_own_rule_scales_and_the_users_rule_has_the_last_word() -> None:
    def own(rule: Any) -> float:
        pipeline = make_pipeline(Scaled(quality=0.8))
        scale_to_tuning(pipeline, 100, 400, rule)
        return pipeline[0].quality

    assert own("auto") == 0.2
    assert own(None) == 0.8
    assert own(lambda params, n_tune, n_final: {"scaled__quality": n_tune / 1000}) == 0.1
    with pytest.raises(ValueError, match="extrapolate must not change parameters that set the"):
        own(lambda params, n_tune, n_final: {"scaled__epsilon": 9.0})


def test_parameters_that_set_the_price() -> None:
    pipeline = make_pipeline(Normalizer(), Scripted())
    names = ["scripted__quality", "scripted__delta", "normalizer__norm"]
    # A step that says nothing may depend on everything.
    assert cost_parameters(pipeline, names) == {"scripted__delta", "normalizer__norm"}


def test_nested_estimators_have_prefixes() -> None:
    assert [prefix for prefix, _ in nested(make_pipeline(Normalizer(), Scripted()))] == [
        "",
        "normalizer__",
        "scripted__",
    ]


def test_parameters_of_fit_are_known() -> None:
    check_fit_parameters(Scripted(), ["sample_weight"])
    pipeline = make_pipeline(Normalizer(), Scripted())
    check_fit_parameters(pipeline, ["scripted__sample_weight"])
    for name in ("sample_weight", "scripted__weights", "other__sample_weight"):
        with pytest.raises(TypeError, match=f"Pipeline.fit takes; got '{name}'"):
            check_fit_parameters(pipeline, [name])
