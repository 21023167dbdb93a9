"""Parameters of estimators and steps that searches read or set: seeds, budgets, sizes."""

from __future__ import annotations

import copy
import math
import pickle
from itertools import cycle, permutations
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_validate
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    StandardScaler,
)

from skdptune.accounting import PrivacyProfile
from skdptune.base import NoProfileError, privacy_of, profile_of
from skdptune.base._shared import (
    ADD_OR_REMOVE,
    REPLACE,
    ZERO_OUT,
    Budget,
    assumptions_in,
    assumptions_of,
    beside_refusals,
    budget_owners,
    check_fit_parameters,
    check_secret_size,
    cost_parameters,
    forget_seeds,
    neighbouring_of,
    no_profile,
    own_seeds,
    refusals_of,
    scale_to_tuning,
    set_budget,
    set_public_size,
    set_seeds,
    suggested_space,
    suggests_a_space,
    together,
    weakest,
    without_noise,
    worst_cost_of_budget,
)
from skdptune.ledger import PrivacyLedger
from skdptune.linear_model import (
    AdaSSPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    DPRidge,
)
from skdptune.model_selection import DPGridSearchCV
from skdptune.preprocessing import BoundedScaler, DPMinMaxScaler, DPStandardScaler, RowNormClipper
from tests.base.estimators import Private
from tests.model_selection.learners import Centroids, Replacing, Scripted
from tests.testing.public_estimators import ESTIMATORS, SEARCHES


def test_parameters_of_fit_are_known() -> None:
    check_fit_parameters(Scripted(), ["sample_weight"])
    pipeline = make_pipeline(Normalizer(), Scripted())
    check_fit_parameters(pipeline, ["scripted__sample_weight"])
    for name in ("sample_weight", "typo", "warm"):
        with pytest.raises(TypeError, match="DPLogisticRegression.fit does not support"):
            check_fit_parameters(DPLogisticRegression(), [name])
    for name in ("sample_weight", "scripted__weights", "other__sample_weight"):
        with pytest.raises(TypeError, match=f"Pipeline.fit does not support: '{name}'"):
            check_fit_parameters(pipeline, [name])


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
    # Theorem F9: no published object holds a seed or a generator of its noise.
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
    # Theorem F9: no published object holds a seed or a generator of its noise.
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
    # Theorem F9: no published object holds a seed or a generator of its noise.
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


DRAWING = [one for one in (*ESTIMATORS, *SEARCHES) if "random_state" in one.get_params(deep=False)]


@pytest.mark.parametrize("estimator", DRAWING, ids=lambda one: repr(one)[:60])
def test_generators_are_refused_before_anything_is_paid(estimator: Any) -> None:
    # Theorem F9. Copies of a generator draw the same noise: two folds would share it.
    ledger = PrivacyLedger(":memory:", "patients", epsilon=100.0, delta=1e-3)
    for copied, make in zip(COPIES.values(), cycle(SOURCES), strict=False):
        made = clone(estimator).set_params(random_state=make(0))
        with ledger, pytest.raises(TypeError, match="^random_state must be an integer") as told:
            copied(made).fit(X, Y)
        assert "Generators are refused: clones would copy them" in str(told.value)
    assert list(ledger.history()) == []


@pytest.mark.parametrize("n_jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_folds_share_no_generator(n_jobs: int) -> None:
    # Theorem F9: no published object holds a seed or a generator of its noise.
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
        DPRidge(target_bound=1.0),
        DPStandardScaler(bounds=(0.0, 1.0)),
        DPMinMaxScaler(bounds=(0.0, 1.0)),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_copies_of_what_is_not_seeded_draw_noise_of_their_own(estimator: Any) -> None:
    # Theorem F9: no published object holds a seed or a generator of its noise.
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


# Budgets -------------------------------------------------------------------------------------


def test_budget_is_shared_in_proportion() -> None:
    pair = make_pipeline(Normalizer(), Scripted(epsilon=1.0), Centroids(epsilon=3.0, delta=0.0))
    owners = {owner.prefix: (owner.share, owner.delta) for owner in budget_owners(pair)}
    assert owners == {"scripted__": (0.25, 1e-6), "centroids__": (0.75, 0.0)}
    set_budget(pair, Budget(2.0, 1e-4))
    assert (pair[1].epsilon, pair[1].delta) == (0.5, 1e-4)
    assert (pair[2].epsilon, pair[2].delta) == (1.5, 0.0)
    worst = worst_cost_of_budget(pair, Budget(2.0, 1e-4))
    assert worst.epsilon(1e-4) == pytest.approx(2.0)


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
    # Theorem F3: sizes of random parts are never used.
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


def test_an_estimator_speaks_for_itself() -> None:
    assert suggests_a_space(Suggesting())
    assert suggested_space(Suggesting(0.5), 100, 3) == {"rate": [0.5, 100, 3]}


def test_steps_are_named_and_know_their_columns() -> None:
    pipeline = make_pipeline(RowNormClipper(), PolynomialFeatures(2), Suggesting())
    assert suggests_a_space(pipeline)
    assert suggested_space(pipeline, 100, 3) == {"suggesting__rate": [None, 100, 10]}
    assert suggested_space(pipeline, 100, None) == {"suggesting__rate": [None, 100, None]}


# What guarantees rest on: assumptions before and after a fit, and relations of neighbours


ROW_BY_ROW = "the function of a FunctionTransformer treats each record separately"
CATEGORIES = "the categories that an encoder is given are public"


def encoder() -> OneHotEncoder:
    return OneHotEncoder(categories=[[0.0, 1.0]] * 3, handle_unknown="ignore")


ASSUMING = [
    *(DPLogisticRegression(solver=s) for s in ("output", "objective", "psgd", "sgd", "adam")),
    DPLogisticRegression(solver="sgd", epochs=1, data_norm=2.0, classes=[0, 1]),
    DPLinearSVC(solver="psgd"),
    DPRidge(target_bound=1.0),
    AdaSSPLinearRegression(target_bound=1.0, data_norm=1.0),
    scaler(),
    DPMinMaxScaler(bounds=(0.0, 1.0)),
    BoundedScaler(bounds=(0.0, 1.0)),
    make_pipeline(scaler(), DPLogisticRegression(solver="psgd")),
    make_pipeline(FunctionTransformer(), DPLogisticRegression(solver="sgd")),
    make_pipeline(encoder(), DPLogisticRegression(solver="output", data_norm=2.0)),
    make_pipeline(
        ColumnTransformer([("one", encoder(), [0, 1, 2]), ("two", FunctionTransformer(), [0])]),
        DPLogisticRegression(solver="sgd"),
    ),
    make_pipeline(
        FeatureUnion([("one", Normalizer()), ("two", FunctionTransformer())]),
        DPLogisticRegression(solver="output", data_norm=2.0),
    ),
]


@pytest.mark.parametrize("estimator", ASSUMING, ids=lambda one: type(one).__name__)
def test_what_a_report_assumes_is_known_before_the_fit(estimator: Any) -> None:
    # Theorem F11: so it follows from parameters and public sizes.
    before = assumptions_of(estimator, *X.shape)
    after = privacy_of(estimator.fit(X, Y))
    assert set(assumptions_in(after)) == set(before)
    assert len(set(before)) == len(before)
    assert after.neighbouring == neighbouring_of(estimator)


def test_sentences_are_those_of_the_steps() -> None:
    # Theorem F11: reports carry all assumptions of their parts.
    steps = make_pipeline(FunctionTransformer(), encoder(), DPLogisticRegression(solver="psgd"))
    found = assumptions_of(steps, 100, 3)
    assert found[:2] == (ROW_BY_ROW, CATEGORIES)
    assert any("at its place" in sentence for sentence in found)
    ordinal = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    assert assumptions_of(ordinal, 100) == (CATEGORIES,)


def test_what_is_not_known_yet_is_left_out() -> None:
    class Later(Scripted):
        def privacy_assumptions(self, n_samples: int, n_features: Any = None) -> tuple[str, ...]:
            if n_features is None:
                raise ValueError("n_features must be given; got None.")
            return ("one", "two", "one")

    assert assumptions_of(Later(), 100) == ()
    assert assumptions_of(Later(), 100, 3) == ("one", "two")
    assert assumptions_of(object(), 100, 3) == ()


def test_weakest_relation() -> None:
    # Theorem F11: reports carry all assumptions of their parts.
    assert weakest([]) == ADD_OR_REMOVE
    for relation in (ADD_OR_REMOVE, ZERO_OUT, REPLACE, "add or remove one user"):
        assert weakest([relation, relation]) == relation
    assert weakest([ADD_OR_REMOVE, ZERO_OUT]) == weakest([ZERO_OUT, ADD_OR_REMOVE]) == ZERO_OUT
    for others in permutations([ADD_OR_REMOVE, ZERO_OUT, REPLACE]):
        with pytest.raises(TypeError, match="private steps of one kind"):
            weakest(others)
    with pytest.raises(TypeError, match="private steps of one kind"):
        weakest([ADD_OR_REMOVE, "add or remove one user"])


def test_relations_of_estimators_are_those_of_their_steps() -> None:
    # Theorem F11: reports carry all assumptions of their parts.
    assert neighbouring_of(Scripted()) == ADD_OR_REMOVE
    assert (
        neighbouring_of(make_pipeline(scaler(), DPLogisticRegression(solver="psgd"))) == ZERO_OUT
    )
    assert neighbouring_of(make_pipeline(Normalizer(), Replacing())) == REPLACE
    fitted = make_pipeline(scaler(), DPLogisticRegression(solver="psgd")).fit(X, Y)
    assert [part.neighbouring for part in privacy_of(fitted).parts] == [ADD_OR_REMOVE, ZERO_OUT]
    assert privacy_of(fitted).neighbouring == ZERO_OUT
    odd = type("Odd", (Scripted,), {"neighbouring": "add or remove one user"})()
    with pytest.raises(TypeError, match="neighbouring must be one of.*one user"):
        neighbouring_of(odd)


def test_pipelines_of_unlike_relations_have_no_cost() -> None:
    # Theorem F11: reports carry all assumptions of their parts.
    with pytest.raises(TypeError, match="private steps of one kind"):
        profile_of(make_pipeline(scaler(), Replacing()), 100, 3)
    # An estimator without a cost belongs to both kinds.
    profile = profile_of(make_pipeline(BoundedScaler(bounds=(0.0, 1.0)), Replacing()), 100, 3)
    assert profile == Replacing().privacy_profile(100, 3)


def test_refusals_are_found_without_sizes_and_without_what_depends_on_them() -> None:
    composed = make_pipeline(StandardScaler(), Private(-1.0))
    (refusal,) = refusals_of(composed)
    assert (refusal.got, refusal.steps) == ("StandardScaler", ("standardscaler",))
    assert refusals_of(make_pipeline(Normalizer(), Private(0.5))) == ()
    assert refusals_of(Private(-1.0)) == ()


def test_other_complaints_are_said_beside_refusals() -> None:
    complaint = ValueError("scoring must be given; got None.")
    assert beside_refusals(complaint, [Normalizer(), Private()]) is complaint
    whole = make_pipeline(StandardScaler(), LogisticRegression())
    both = beside_refusals(complaint, [whole])
    assert isinstance(both, NoProfileError)
    assert str(both).splitlines()[0].endswith("; 3 problems:")
    assert str(both).splitlines()[-1] == "- a parameter: scoring must be given; got None."


def test_errors_are_joined() -> None:
    missing, bad = no_profile(PCA()), ValueError("C must be positive; got 0.")
    assert together([("a", bad)]) is bad
    assert str(together([("a", missing)])) == str(missing.within("a"))
    both = together([("a", missing), ("b", bad)])
    assert isinstance(both, NoProfileError)
    assert [each.path for each in both.refusals] == ["a", "b"]
    assert str(both).endswith("- b: a parameter: C must be positive; got 0.")
    twice = together([("a", bad), ("b", bad)])
    assert type(twice) is ValueError
    assert str(twice).count("C must be positive") == 2
    # What a caller may want to tell apart by its type is not joined.
    special = UnicodeError("of a kind of its own")
    assert together([("a", special), ("b", bad)]) is special
