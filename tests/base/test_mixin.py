"""Budgets, warnings and reports of private estimators."""

from __future__ import annotations

import math
import re
import warnings
from fractions import Fraction

import numpy as np
import pytest

from skdptune.accounting import PrivacyProfile
from skdptune.base import PrivacyWarning, PrivateEstimatorMixin
from skdptune.preprocessing import DPStandardScaler


class Estimator(PrivateEstimatorMixin):
    def __init__(self, epsilon=1.0, delta=0.0, random_state=None):
        self.epsilon = epsilon
        self.delta = delta
        self.random_state = random_state


def test_subclass_must_state_its_cost() -> None:
    with pytest.raises(NotImplementedError):
        Estimator().privacy_profile(10)


def scaler(delta, n_public):
    return DPStandardScaler(1.0, delta, bounds=(0, 1), n_public=n_public)


@pytest.mark.parametrize(("delta", "warned"), [(0.01, True), (0.5, True), (0.0099, False)])
def test_large_delta_is_warned_of(delta, warned) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        scaler(delta, 100).fit(np.eye(3))
    assert [entry.category for entry in caught] == [PrivacyWarning] * warned
    if warned:
        assert "is at least 1/n_samples=0.01" in str(caught[0].message)


@pytest.mark.parametrize("n", [9, 10, 11, 1000, 1001, 16_000, 32_561, 10**9, 10**9 + 1])
def test_advised_delta_is_a_tenth_of_what_is_large_in_one_digit(n) -> None:
    with pytest.warns(PrivacyWarning, match="Choose delta=") as caught:
        scaler(0.5, n).fit(np.eye(3))
    (said,) = re.findall(r"Choose delta=(\S+) or less", str(caught[0].message))
    # Within one step of the last digit.
    assert Fraction(1, 20 * n) < Fraction(said) <= Fraction(1, 10 * n)
    digits = f"{float(said):e}".partition("e")[0]
    assert float(digits) == int(float(digits))


@pytest.mark.parametrize("epsilon", [None, math.inf, 0.2])
def test_without_a_budget_that_holds_the_report_states_the_cost(epsilon) -> None:
    report = Estimator(epsilon)._make_report(PrivacyProfile.pure(0.3))
    assert report.epsilon == report.epsilon_spent == 0.3
