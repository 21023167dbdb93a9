"""Made-up data that suit an estimator, and what checks ask of it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from skdptune.accounting import PrivacyProfile
from skdptune.linear_model import DPLogisticRegression
from skdptune.testing._subject import (
    CheckDoesNotApply,
    Subject,
    made_up_data,
    other_values,
    same_profile,
)
from tests.testing.estimators import Right, RightTransformer


def test_data_suit_the_estimator() -> None:
    X, y = made_up_data(Right())
    assert np.abs(X).max() <= 1.0 and set(y) == {0, 1}
    _, y = made_up_data(DPLogisticRegression(classes=["a", "b", "c"]))
    assert set(y) == {"a", "b", "c"}
    assert made_up_data(LinearRegression())[1].dtype == np.float64
    assert made_up_data(RightTransformer())[1] is None


def test_other_values_have_the_same_form() -> None:
    subject = Subject(Right(), *made_up_data(Right()))
    X, y = other_values(subject)
    assert X.shape == subject.X.shape and X.dtype == subject.X.dtype
    assert np.abs(X).max() > 5.0
    assert sorted(y) == sorted(subject.y)
    assert not np.array_equal(y, subject.y)


def test_budget_is_that_of_the_estimator_itself() -> None:
    data = made_up_data(Right())
    assert Subject(Right(epsilon=0.5), *data).budget.prefix == ""
    for without in (Right(epsilon=None), Right(epsilon=math.inf), RightTransformer()):
        assert Subject(without, *data).budget is None


def test_what_is_not_there_is_named() -> None:
    subject = Subject(RightTransformer(), *made_up_data(RightTransformer()))
    with pytest.raises(CheckDoesNotApply, match="has no parameter n_public"):
        subject.needs("factor", "n_public")
    with pytest.raises(CheckDoesNotApply, match="has no noise_level"):
        subject.needs_member("noise_level")


def test_profiles_agree_up_to_rounding() -> None:
    one = PrivacyProfile.pure(1.0)
    assert same_profile(one, PrivacyProfile.pure(1.0 + 1e-9))
    assert not same_profile(one, PrivacyProfile.pure(1.001))
    assert not same_profile(one, PrivacyProfile.approximate(1.0, 1e-6))
