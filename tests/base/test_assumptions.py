"""What guarantees rest on: assumptions before and after a fit, and relations of neighbours."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, OneHotEncoder, OrdinalEncoder

from skdptune.accounting import PrivacyProfile, PrivacyReport
from skdptune.base import (
    ADD_OR_REMOVE,
    REPLACE,
    ZERO_OUT,
    assumptions_in,
    assumptions_of,
    neighbouring_of,
    privacy_of,
    profile_of,
    weakest,
)
from skdptune.linear_model import (
    AdaSSPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    NoisyStatisticsRidge,
)
from skdptune.preprocessing import BoundedScaler, DPMinMaxScaler, DPStandardScaler
from tests.model_selection.learners import Scripted

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
