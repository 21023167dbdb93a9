"""Costs of anything: private estimators, registered classes, refusals."""

from __future__ import annotations

import copy
import subprocess
import sys
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
)

from skdptune.accounting import PrivacyProfile, PrivacyReport
from skdptune.base import NoProfileError, privacy_of, profile_of, register_profile
from skdptune.base import _costs as module
from skdptune.base._shared import (
    ADD_OR_REMOVE,
    REPLACE,
    ZERO_OUT,
    assumptions_in,
    assumptions_of,
    beside_refusals,
    neighbouring_of,
    refusals_of,
    weakest,
)
from skdptune.ledger import PrivacyLedger
from skdptune.linear_model import (
    AdaSSPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    NoisyStatisticsRidge,
)
from skdptune.preprocessing import BoundedScaler, DPMinMaxScaler, DPStandardScaler
from tests.base.estimators import ROWS, Foreign, Private
from tests.model_selection.learners import Scripted


def in_a_new_process(code: str) -> str:
    """Return what code prints where nothing was imported before."""
    result = subprocess.run(
        [sys.executable, "-c", code],
        cwd=module.__file__.rpartition("/skdptune/")[0],
        check=True,
        capture_output=True,
        text=True,
    )
    return result.stdout.strip()


# Costs --------------------------------------------------------------------------------------


def test_private_estimators_are_asked_with_the_public_sizes() -> None:
    assert profile_of(Private(0.5), 10) == PrivacyProfile.pure(0.5 + 1 / 10)
    assert profile_of(Private(0.5), 20, 3) == PrivacyProfile.pure(0.5 + 1 / 20 + 3)


def test_estimator_is_left_alone() -> None:
    estimator = make_pipeline(Normalizer(), Private())
    profile_of(estimator, 10)
    assert not hasattr(estimator[-1], "privacy_")


def test_search_like_objects_speak_for_themselves() -> None:
    class Search(Private):
        def __init__(self, estimator=None):
            self.estimator = estimator

        def privacy_profile(self, n_samples, n_features=None):
            return 3 * profile_of(self.estimator, n_samples, n_features)

    search = Search(make_pipeline(Normalizer(), Private(0.25)))
    assert profile_of(search, 4).epsilon(0) == pytest.approx(1.5)


@pytest.mark.parametrize(("n_samples", "n_features"), [(0, None), (10, 0), (-3, 2)])
def test_sizes_are_checked(n_samples, n_features) -> None:
    with pytest.raises(ValueError, match="must be an integer of at least 1"):
        profile_of(Private(), n_samples, n_features)


@pytest.mark.parametrize("size", [1.5, None, "10", True])
def test_sizes_must_be_integers(size) -> None:
    with pytest.raises(TypeError, match="n_samples must be an integer"):
        profile_of(Private(), size)


def test_cost_of_another_type_is_refused() -> None:
    class Wrong(Private):
        def privacy_profile(self, n_samples, n_features=None):
            return 1.0

    with pytest.raises(TypeError, match="the cost of Wrong must be a PrivacyProfile; got float"):
        profile_of(Wrong(), 10)


# Refusals -------------------------------------------------------------------------------------


def test_refusal_names_the_estimator_and_what_to_use() -> None:
    with pytest.raises(NoProfileError, match=r"got StandardScaler: it learns .*DPStandardScaler"):
        profile_of(StandardScaler(), 10)
    with pytest.raises(NoProfileError, match="got KMeans: .* pass it to register_profile"):
        profile_of(KMeans(), 10)
    with pytest.raises(NoProfileError, match="got LogisticRegression: .*DPLogisticRegression"):
        profile_of(LogisticRegression(), 10)


def test_refusal_is_a_type_error() -> None:
    assert issubclass(NoProfileError, TypeError)


@pytest.mark.parametrize("kind", [Private, Normalizer, Pipeline, StandardScaler])
def test_classes_instead_of_instances_are_refused(kind) -> None:
    with pytest.raises(
        NoProfileError, match=f"must be an instance; got the class {kind.__name__}"
    ):
        profile_of(kind, 10)


def test_refusals_are_found_without_sizes_and_without_what_depends_on_them() -> None:
    composed = make_pipeline(StandardScaler(), Private(-1.0))
    (refusal,) = refusals_of(composed)
    assert (refusal.got, refusal.steps) == ("StandardScaler", ("standardscaler",))
    assert refusals_of(make_pipeline(Normalizer(), Private(0.5)), 3) == ()
    assert refusals_of(Private(-1.0)) == ()


def test_other_complaints_are_said_beside_refusals() -> None:
    complaint = ValueError("scoring must be given; got None.")
    assert beside_refusals(complaint, [Normalizer(), Private()]) is complaint
    whole = make_pipeline(StandardScaler(), LogisticRegression())
    both = beside_refusals(complaint, [whole])
    assert isinstance(both, NoProfileError)
    assert str(both).splitlines()[0].endswith("; 3 things wrong:")
    assert str(both).splitlines()[-1] == "- a parameter: scoring must be given; got None."


# Registering -------------------------------------------------------------------------------------


def test_registered_class_and_its_subclasses_have_a_cost(registry) -> None:
    @register_profile(Foreign)
    def cost_of(estimator, n_samples, n_features):
        return PrivacyProfile.pure(n_samples / 100 + (n_features or 0))

    class Subclass(Foreign):
        pass

    assert callable(cost_of)
    assert profile_of(Foreign(), 50).epsilon(0) == 0.5
    assert profile_of(Subclass(), 50, 2).epsilon(0) == 2.5
    assert profile_of(make_pipeline(Normalizer(), Foreign()), 50).epsilon(0) == 0.5


def test_a_cost_may_be_the_function_of_no_module(registry) -> None:
    names = {"PrivacyProfile": PrivacyProfile}
    exec("def cost_of(*of_fit): return PrivacyProfile.pure(0.5)", names)
    assert names["cost_of"].__module__ is None
    register_profile(Foreign)(names["cost_of"])
    ledger = PrivacyLedger(":memory:", "patients", epsilon=1.0, delta=0.0)
    with ledger:
        copied = copy.deepcopy(clone(Foreign()))
        copied.fit(np.zeros((10, 2)))
    assert [record.epsilon for record in ledger.history()] == [0.5]


@pytest.mark.parametrize("bad", [Foreign(), "Foreign", None])
def test_only_classes_are_registered(bad) -> None:
    with pytest.raises(TypeError, match="kind must be a class"):
        register_profile(bad)


def test_registration_does_not_outlive_its_test() -> None:
    with pytest.raises(NoProfileError):
        profile_of(Foreign(), 50)


def test_registrations_and_pipelines_of_others_have_a_cost_whatever_was_loaded_before() -> None:
    code = (
        "from sklearn.pipeline import Pipeline\n"
        "from sklearn.preprocessing import FunctionTransformer, Normalizer\n"
        "class Other(Pipeline): pass\n"
        "from skdptune.accounting import PrivacyProfile\n"
        "from skdptune.base import profile_of, register_profile\n"
        "register_profile(FunctionTransformer)(lambda e, n, d: PrivacyProfile.pure(2.0))\n"
        "print(profile_of(FunctionTransformer(), 10).epsilon(0))\n"
        "print(profile_of(Other([('n', Normalizer())]), 10).epsilon(0))"
    )
    assert in_a_new_process(code).split() == ["2.0", "0.0"]


@pytest.mark.parametrize("base", [Normalizer, Pipeline])
def test_own_profile_counts_more_than_that_of_a_registered_base(base) -> None:
    class Own(base):
        def privacy_profile(self, n_samples, n_features=None):
            return PrivacyProfile.pure(3.0)

    estimator = Own([("n", Normalizer())]) if base is Pipeline else Own()
    assert profile_of(estimator, 10).epsilon(0) == 3.0


def test_subclass_of_what_learns_nothing_may_learn() -> None:
    # Theorem R3.
    class Learning(Normalizer):
        def fit(self, X, y=None):
            self.peak_ = np.max(X)
            return super().fit(X)

    with pytest.raises(NoProfileError):
        profile_of(Learning(), 10)


# What guarantees rest on: assumptions before and after a fit, and relations of neighbours


RNG = np.random.default_rng(0)
X = RNG.uniform(size=(300, 3))
Y = (X[:, 0] > 0.5).astype(int)
ROW_BY_ROW = "the function of a FunctionTransformer treats each record by itself"
CATEGORIES = "the categories that an encoder is given are public"


def scaler() -> DPStandardScaler:
    return DPStandardScaler(bounds=(0.0, 1.0))


def encoder() -> OneHotEncoder:
    return OneHotEncoder(categories=[[0.0, 1.0]] * 3, handle_unknown="ignore")


ESTIMATORS = [
    *(DPLogisticRegression(solver=s) for s in ("output", "objective", "psgd", "sgd", "adam")),
    DPLogisticRegression(solver="sgd", epochs=1, data_norm=2.0, classes=[0, 1]),
    DPLinearSVC(solver="psgd"),
    NoisyStatisticsRidge(target_bound=1.0),
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


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda one: type(one).__name__)
def test_what_a_report_assumes_is_known_before_the_fit(estimator: Any) -> None:
    # Theorem F11: so it follows from parameters and public sizes.
    before = assumptions_of(estimator, *X.shape)
    after = privacy_of(estimator.fit(X, Y))
    assert set(assumptions_in(after)) == set(before)
    assert len(set(before)) == len(before)
    assert after.neighbouring == neighbouring_of(estimator)


def test_sentences_are_those_of_the_steps() -> None:
    # Theorem F11.
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


def test_assumptions_of_all_parts_are_gathered_once() -> None:
    def report(*sentences: str, parts: Any = ()) -> PrivacyReport:
        return PrivacyReport(PrivacyProfile.pure(0.1), 0.0, assumptions=sentences, parts=parts)

    tree = report("a", "b", parts=[report("b", parts=[report("c", "a")]), report("d")])
    assert assumptions_in(tree) == ("a", "b", "c", "d")


def test_weakest_relation() -> None:
    # Theorem F11.
    assert weakest([]) == ADD_OR_REMOVE
    for relation in (ADD_OR_REMOVE, ZERO_OUT, REPLACE, "add or remove one user"):
        assert weakest([relation, relation]) == relation
    assert weakest([ADD_OR_REMOVE, ZERO_OUT]) == weakest([ZERO_OUT, ADD_OR_REMOVE]) == ZERO_OUT
    for others in permutations([ADD_OR_REMOVE, ZERO_OUT, REPLACE]):
        with pytest.raises(TypeError, match="private steps of one kind"):
            weakest(others)
    with pytest.raises(TypeError, match="private steps of one kind"):
        weakest([ADD_OR_REMOVE, "add or remove one user"])


class Replacing(Scripted):
    neighbouring = REPLACE


def test_relations_of_estimators_are_those_of_their_steps() -> None:
    # Theorem F11.
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
    # Theorem F11.
    with pytest.raises(TypeError, match="private steps of one kind"):
        profile_of(make_pipeline(scaler(), Replacing()), 100, 3)
    # What costs nothing is of either kind.
    profile = profile_of(make_pipeline(BoundedScaler(bounds=(0.0, 1.0)), Replacing()), 100, 3)
    assert profile == Replacing().privacy_profile(100, 3)


# Reports of what was fitted, at its own delta and at others ----------------------------------


def test_report_of_a_fitted_estimator_is_its_own() -> None:
    fitted = Private(0.5, 1e-6).fit(ROWS)
    assert privacy_of(fitted) is fitted.privacy_


def test_report_at_another_delta_keeps_everything_else() -> None:
    fitted = Private(0.5, 1e-6).fit(ROWS)
    report = privacy_of(fitted, delta=0.01)
    assert report.delta == 0.01
    assert report.epsilon == report.profile.epsilon(0.01) < fitted.privacy_.epsilon
    assert report.profile == fitted.privacy_.profile
    assert (report.name, report.assumptions) == ("Private", ("one",))
    assert privacy_of(fitted, delta=1e-6) is fitted.privacy_


@pytest.mark.parametrize("delta", [-1e-9, 1.5])
def test_delta_is_checked(delta) -> None:
    with pytest.raises(ValueError, match="delta must be"):
        privacy_of(Private().fit(ROWS), delta=delta)


def test_unfitted_estimator_has_no_report() -> None:
    with pytest.raises(ValueError, match="fitted must be fitted; got a Private without privacy_"):
        privacy_of(Private())
    with pytest.raises(ValueError, match="got a Private without privacy_"):
        privacy_of(make_pipeline(Normalizer(), Private()))


def test_what_learns_nothing_has_a_report_of_nothing() -> None:
    for fitted in (Normalizer(), Normalizer().fit(ROWS)):
        report = privacy_of(fitted)
        assert (report.epsilon, report.delta, report.name) == (0.0, 0.0, "Normalizer")


def test_report_of_what_learns_at_no_stated_cost_is_refused() -> None:
    with pytest.raises(NoProfileError, match="got StandardScaler"):
        privacy_of(StandardScaler().fit(ROWS))
    with pytest.raises(NoProfileError, match="got StandardScaler"):
        privacy_of(make_pipeline(StandardScaler()).fit(ROWS))


def test_report_of_a_registered_class_asks_for_the_size_it_depends_on(registry) -> None:
    register_profile(Foreign)(lambda e, n, d: PrivacyProfile.gaussian(n / 1000))
    pipeline = make_pipeline(Normalizer(), Foreign()).fit(ROWS)
    with pytest.raises(ValueError, match="n_samples must be given: the cost of Foreign"):
        privacy_of(pipeline)
    wanted = profile_of(pipeline, len(ROWS))
    assert privacy_of(pipeline, n_samples=len(ROWS)).profile == wanted
