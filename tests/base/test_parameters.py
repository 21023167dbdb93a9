"""Estimators inside estimators: prefixes, seeds, arguments of fit."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_validate
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import Normalizer

from skdptune.base._shared import (
    change_parameters,
    check_fit_parameters,
    cost_parameters,
    forget_seeds,
    nested_estimators,
    own_seeds,
    set_seeds,
)
from skdptune.ledger import PrivacyLedger
from skdptune.linear_model import DPLogisticRegression, NoisyStatisticsRidge
from skdptune.preprocessing import DPMinMaxScaler, DPStandardScaler
from tests.model_selection.learners import Centroids, Scripted
from tests.testing.public_estimators import ESTIMATORS, SEARCHES


def test_nested_estimators_have_prefixes() -> None:
    assert [
        prefix for prefix, _ in nested_estimators(make_pipeline(Normalizer(), Scripted()))
    ] == [
        "",
        "normalizer__",
        "scripted__",
    ]


def test_parameters_of_fit_are_known() -> None:
    check_fit_parameters(Scripted(), ["sample_weight"])
    pipeline = make_pipeline(Normalizer(), Scripted())
    check_fit_parameters(pipeline, ["scripted__sample_weight"])
    for name in ("sample_weight", "typo", "warm"):
        with pytest.raises(TypeError, match="DPLogisticRegression.fit takes"):
            check_fit_parameters(DPLogisticRegression(), [name])
    for name in ("sample_weight", "scripted__weights", "other__sample_weight"):
        with pytest.raises(TypeError, match=f"Pipeline.fit takes; got '{name}'"):
            check_fit_parameters(pipeline, [name])


def test_an_estimator_is_not_asked_to_set_nothing() -> None:
    class Demanding(Scripted):
        def set_params(self, **params: float) -> Demanding:
            self.quality = params["quality"]
            return self

    estimator = Demanding()
    assert change_parameters(estimator, {}) is estimator
    assert change_parameters(estimator, {"quality": 0.3}).quality == 0.3


# Parameters on which the cost may depend -----------------------------------------------------


def test_parameters_that_set_the_cost() -> None:
    pipeline = make_pipeline(Normalizer(), Scripted())
    names = ["scripted__quality", "scripted__delta", "normalizer__norm"]
    # The cost of a step that declares nothing may depend on everything.
    assert cost_parameters(pipeline, names) == {"scripted__delta", "normalizer__norm"}


# Seeds that are lent for a fit, and taken back from what it made -----------------------------


RNG = np.random.default_rng(0)
X = RNG.uniform(size=(200, 3))
Y = (X[:, 0] > 0.5).astype(int)
SEEDS = np.random.SeedSequence(5)
GENERATORS = [np.random.default_rng, np.random.RandomState]


def scaler(seed: Any = None) -> DPStandardScaler:
    return DPStandardScaler(bounds=(0.0, 1.0), random_state=seed)


def fitted_with_seeds(estimator: Any) -> tuple[Any, set[int]]:
    """Return the estimator as searches fit it, and the seeds that were drawn for it."""
    own = own_seeds(estimator)
    set_seeds(estimator, np.random.SeedSequence(5))
    drawn = {seed for seed in own_seeds(estimator).values() if seed is not None}
    return forget_seeds(estimator.fit(X, Y), own), drawn


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


@pytest.mark.parametrize("seed", [None, 0, 7])
def test_parameters_are_as_they_were(seed: int | None) -> None:
    # Theorem F9.
    model = make_pipeline(scaler(seed), DPLogisticRegression(solver="output", random_state=3))
    model, drawn = fitted_with_seeds(model)
    assert len(drawn) == 2
    assert (model[0].random_state, model[1].random_state) == (seed, 3)


@pytest.mark.parametrize("seed", [None, 7])
def test_fitted_copies_of_compositions_hold_no_seed(seed: int | None) -> None:
    # Theorem F9. A ColumnTransformer keeps fitted copies, which are among no parameters.
    columns = ColumnTransformer([("scaled", scaler(seed), [0, 1, 2])])
    union = FeatureUnion([("scaled", scaler(seed)), ("clipped", Normalizer())])
    for step in (columns, union):
        model, drawn = fitted_with_seeds(
            make_pipeline(step, DPLogisticRegression(solver="output"))
        )
        found = pickle.dumps(model)
        assert len(drawn) == 2
        assert not any(int(word).to_bytes(4, "little") in found for word in drawn)
        parts = model[0].transformers_ if step is columns else model[0].transformer_list
        assert parts[0][1].random_state == seed


def test_seeds_that_were_derived_are_taken_out() -> None:
    # Theorem F9.
    model, _ = fitted_with_seeds(RandomForestClassifier(n_estimators=2, random_state=3))
    assert model.random_state == 3
    assert [tree.random_state for tree in model.estimators_] == [None, None]


class Drawing(BaseEstimator):
    """Keeps all that it draws from."""

    def __init__(self, random_state: Any = None) -> None:
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Drawing:
        sequence = np.random.SeedSequence(self.random_state)
        self.source_ = np.random.default_rng(sequence)
        self.old_ = np.random.RandomState(self.random_state)
        self.seeds_ = sequence
        self.bits_ = np.random.PCG64(sequence)
        return self


def test_generators_among_attributes_are_replaced() -> None:
    # Theorem F9.
    seed = Drawing()
    set_seeds(seed, np.random.SeedSequence(5))
    expected = clone(seed).fit(X, Y)
    model, _ = fitted_with_seeds(Drawing())
    assert model.source_.random() != expected.source_.random()
    assert model.old_.random_sample() != expected.old_.random_sample()
    assert model.seeds_.entropy != expected.seeds_.entropy
    assert model.bits_.random_raw() != expected.bits_.random_raw()


@pytest.mark.parametrize("make", GENERATORS)
def test_generators_are_never_given_back(make: Any) -> None:
    # Theorem F9. PCG64 and the Mersenne twister can be run backwards.
    model, _ = fitted_with_seeds(make_pipeline(scaler(make(1)), Scripted(random_state=make(2))))
    assert model[0].random_state is model[1].random_state is None


SOURCES = [*GENERATORS, np.random.SeedSequence, np.random.PCG64]
COPIES: dict[str, Any] = {
    "itself": lambda estimator: estimator,
    "clone": clone,
    "copy": copy.copy,
    "deep copy": copy.deepcopy,
    "pickle": lambda estimator: pickle.loads(pickle.dumps(estimator)),
}


@pytest.mark.parametrize("estimator", [*ESTIMATORS, *SEARCHES], ids=lambda one: repr(one)[:60])
def test_generators_are_refused_before_anything_is_paid(estimator: Any) -> None:
    # Theorem F9. Copies of a generator draw the same noise: two folds would share it.
    if "random_state" not in estimator.get_params(deep=False):
        pytest.skip("draws nothing")
    ledger = PrivacyLedger(":memory:", "patients", epsilon=100.0, delta=1e-3)
    for make in SOURCES:
        made = clone(estimator).set_params(random_state=make(0))
        for copied in COPIES.values():
            with (
                ledger,
                pytest.raises(TypeError, match="^random_state must be an integer") as told,
            ):
                copied(made).fit(X, Y)
            assert "Generators are refused: clones would copy them" in str(told.value)
    assert list(ledger.history()) == []


@pytest.mark.parametrize("n_jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_folds_share_no_generator(n_jobs: int) -> None:
    # Theorem F9.
    pair = make_pipeline(scaler(np.random.default_rng(0)), Scripted())
    alone = DPLogisticRegression(solver="output", random_state=np.random.default_rng(0))
    for model in (pair, alone):
        with pytest.raises(TypeError, match="^random_state must be an integer"):
            cross_validate(model, X, Y, cv=2, n_jobs=n_jobs, error_score="raise")


@pytest.mark.parametrize(
    "estimator",
    [
        DPLogisticRegression(solver="output"),
        DPLogisticRegression(solver="sgd", epochs=1),
        NoisyStatisticsRidge(target_bound=1.0),
        DPStandardScaler(bounds=(0.0, 1.0)),
        DPMinMaxScaler(bounds=(0.0, 1.0)),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_copies_of_what_is_not_seeded_draw_noise_of_their_own(estimator: Any) -> None:
    # Theorem F9.
    fits = [copied(estimator).fit(X, Y) for copied in COPIES.values() for _ in range(2)]
    learnt = [getattr(fit, "coef_", getattr(fit, "scale_", None)) for fit in fits]
    found = {tuple(values.ravel()) for values in learnt}
    # "itself" is one object, fitted twice.
    assert len(found) == len(fits) - 1


def test_seeds_of_users_are_kept() -> None:
    made = DPLogisticRegression(solver="output", random_state=0).fit(X, Y)
    again = pickle.loads(pickle.dumps(made))
    assert again.random_state == 0
    assert np.array_equal(clone(again).fit(X, Y).coef_, made.coef_)
