"""Numbers of columns that follow from public parameters are those of fitted steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, make_pipeline, make_union
from sklearn.preprocessing import (
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    PolynomialFeatures,
)

from skdptune.accounting import PrivacyProfile
from skdptune.base import profile_of
from skdptune.base._scikit_learn import width_after
from skdptune.linear_model import DPLogisticRegression
from skdptune.preprocessing import DPStandardScaler, RowNormClipper, TableEncoder

FRAME = pd.DataFrame(
    {"a": [1.0, 2.0], "b": [0.5, np.nan], "c": [3.0, 4.0], "w": ["x", "y"], "v": ["p", "q"]}
)
NUMBERS = FRAME[["a", "c"]]
WORDS = FRAME[["w", "v"]]
LISTS = [["x", "y", "z"], ["p", "q"]]
ONE_HOT = OneHotEncoder(categories=LISTS, handle_unknown="ignore")
IMPUTER = SimpleImputer(strategy="constant", keep_empty_features=True)
DROPPING = OneHotEncoder(categories=LISTS, handle_unknown="ignore", drop="first")
TABLE = TableEncoder({"a": (0, 9), "c": (0, 9)}, n_knots=4)


def columns(*transformers: Any, **settings: Any) -> ColumnTransformer:
    named = [(str(place), *each) for place, each in enumerate(transformers)]
    return ColumnTransformer(named, **settings)


KNOWN = [
    (Normalizer(), NUMBERS),
    (RowNormClipper(), NUMBERS),
    (IMPUTER, NUMBERS),
    (ONE_HOT, WORDS),
    (DROPPING, WORDS),
    (TABLE, NUMBERS),
    (HashingVectorizer(n_features=16), FRAME["w"]),
    *((PolynomialFeatures(degree), NUMBERS) for degree in (0, 1, 2, 5, (2, 3), (0, 2))),
    (
        PolynomialFeatures(3, interaction_only=True),
        FRAME[["a", "c", "a"]].set_axis([*"abc"], axis=1),
    ),
    (PolynomialFeatures((2, 3), include_bias=False), NUMBERS),
    (make_pipeline(Normalizer(), PolynomialFeatures(2), PolynomialFeatures(2)), NUMBERS),
    (make_pipeline("passthrough", Normalizer()), NUMBERS),
    (make_union(Normalizer(), PolynomialFeatures(2)), NUMBERS),
    (FeatureUnion([("n", Normalizer()), ("d", "drop"), ("p", "passthrough")]), NUMBERS),
    (columns((ONE_HOT, ["w", "v"]), (Normalizer(), ["a", "c"])), FRAME),
    (columns((ONE_HOT, [3, 4]), ("passthrough", [0]), ("drop", [1])), FRAME),
    (columns((ONE_HOT, ("w", "v")), (Normalizer(), []), remainder=IMPUTER), FRAME),
    (columns((ONE_HOT, np.array([3, 4])), remainder="passthrough"), FRAME),
    (columns((HashingVectorizer(n_features=8), "w"), ("passthrough", ["a"])), FRAME),
    (columns((Normalizer(), ["a", "c"]), (TABLE, ["a", "c"])), FRAME),
    (columns((Normalizer(), ["a", "c"]), remainder=Normalizer()), NUMBERS),
]


@pytest.mark.parametrize(("step", "X"), KNOWN, ids=range(len(KNOWN)))
def test_width_is_that_of_the_fitted_step(step, X) -> None:
    # Theorem R3.
    width = width_after(step, X.shape[1] if X.ndim == 2 else None)
    assert width == step.fit(X).transform(X).shape[1]


class OtherPolynomials(PolynomialFeatures):
    """May return anything."""


UNKNOWN = [
    FunctionTransformer(np.hstack),
    OneHotEncoder(),
    OneHotEncoder(categories=LISTS, drop="if_binary"),
    SimpleImputer(keep_empty_features=False),
    SimpleImputer(keep_empty_features=True, add_indicator=True),
    OtherPolynomials(2),
    TableEncoder({"a": (9, 0)}),
    make_pipeline(FunctionTransformer(), Normalizer()),
    make_union(Normalizer(), FunctionTransformer()),
    columns((ONE_HOT, make_column_selector()), (Normalizer(), ["a"])),
    columns((Normalizer(), slice(0, 2))),
    columns((Normalizer(), [True, False])),
    columns((Normalizer(), [-1]), remainder="passthrough"),
    columns((Normalizer(), ["a"]), (Normalizer(), [0]), remainder="passthrough"),
    columns((FunctionTransformer(), ["a"])),
    # Refused by their fits.
    PolynomialFeatures("two"),
    PolynomialFeatures((1, 2, 3)),
    HashingVectorizer(n_features="many"),
]


@pytest.mark.parametrize("step", UNKNOWN, ids=range(len(UNKNOWN)))
def test_width_that_may_depend_on_more_is_not_known(step) -> None:
    # Theorem R3.
    assert width_after(step, 2) is None


def test_width_that_nobody_knows_stays_so() -> None:
    for step in (Normalizer(), PolynomialFeatures(2), "passthrough", None, IMPUTER):
        assert width_after(step, None) is None
    assert width_after(columns((Normalizer(), ["a"]), remainder="passthrough"), None) is None
    assert width_after(columns((Normalizer(), ["a", "b"])), None) == 2
    assert width_after("drop", 3) == 0
    assert width_after("word", 3) is None


def test_model_after_columns_has_a_cost() -> None:
    # Its default bound on rows follows from their number of columns.
    scaled = DPStandardScaler(epsilon=0.5, bounds=(0, 9))
    both = columns((scaled, ["a", "c"]), (ONE_HOT, ["w", "v"]))
    model = DPLogisticRegression(epsilon=1.0, solver="objective")
    total = profile_of(make_pipeline(both, model), 1000, 5)
    assert isinstance(total, PrivacyProfile)
    assert total.epsilon(2e-5) <= 1.5
