"""What the regressions suggest to search over."""

from __future__ import annotations

import math
from typing import Any

import pytest
from sklearn.base import clone

from skdptune import linear_model
from skdptune.linear_model import NoisyStatisticsRidge, OPSLinearRegression

KINDS = [
    getattr(linear_model, name)
    for name in linear_model.__all__
    if name.endswith(("LinearRegression", "Ridge"))
]


@pytest.mark.parametrize("alpha", [None, 2.0])
@pytest.mark.parametrize("kind", KINDS)
def test_the_present_value_comes_first_and_all_are_valid(kind: Any, alpha: float | None) -> None:
    model = kind(1.0, alpha=alpha, data_norm=2.0, target_bound=1.0)
    values = model.suggested_space(1000, 3)["alpha"]
    assert values[0] is alpha
    assert len(values) == 5
    for value in values:
        clone(model).set_params(alpha=value).privacy_profile(1000, 3)


def test_values_are_around_what_the_rule_takes() -> None:
    model = NoisyStatisticsRidge(1.0, data_norm=3.0, target_bound=1.0, fit_intercept=False)
    noise = model.noise_level(1000, 4)
    # The rule in units of the rows: the root of the width, times the noise on X'X.
    rule = math.sqrt(4) * noise * 9.0
    factors = [value / rule for value in model.suggested_space(1000, 4)["alpha"][1:]]
    assert factors == pytest.approx([0.1, 0.3, 3.0, 10.0])
    ops = OPSLinearRegression(1.0, data_norm=3.0, target_bound=1.0)
    ridge = ops._plan_before_data(1000, 4).ridge * 9.0
    assert ops.suggested_space(1000, 4)["alpha"][3] == pytest.approx(3.0 * ridge)


def test_a_rule_needs_the_number_of_columns() -> None:
    assert NoisyStatisticsRidge(target_bound=1.0).suggested_space(1000) == {}


def test_without_noise_there_is_nothing_to_multiply() -> None:
    model = NoisyStatisticsRidge(math.inf, data_norm=1.0, target_bound=1.0)
    assert model.suggested_space(1000, 3) == {"alpha": [None]}
