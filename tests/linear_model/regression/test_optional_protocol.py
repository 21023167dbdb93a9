"""What a search may ask of the linear regressions."""

import pytest
from sklearn.base import clone

from skdptune.linear_model import (
    NoisyStatisticsRidge,
    OPSLinearRegression,
    OutputPerturbationLinearRegression,
)
from tests.linear_model.regression_examples import DELTA, every_kind


@every_kind
def test_cost_depends_on_no_other_parameter(kind):
    changes = {
        "alpha": 3.0,
        "data_norm": 1.7,
        "target_bound": 0.5,
        "fit_intercept": False,
        "random_state": 3,
        "n_public": 77,
        "max_leverage": 1e-3,
        "failure_probability": 1e-9,
        "mode": "propose-test-release",
        "calibration": "closed-form",
    }
    base = kind(1.0, DELTA, target_bound=1.0)
    cost = base.privacy_profile(500, 3)
    for name, value in changes.items():
        if name in base.get_params() and name not in base.cost_parameters:
            changed = clone(base).set_params(**{name: value})
            assert changed.privacy_profile(500, 3) == cost, name
            if kind is not OPSLinearRegression:
                # Its ridge, and with it the shape of its curve, balances bounds that grow with n.
                assert changed.privacy_profile(100_000, 3) == cost, name
    assert {"epsilon", "delta"} <= base.cost_parameters <= set(base.get_params())


@every_kind
def test_extrapolation_keeps_the_ridge_per_record(kind):
    model = kind(alpha=100.0, target_bound=1.0)
    assert model.tuning_parameters(200, 1000) == {"alpha": pytest.approx(20.0)}
    assert model.noise_level(1000, 3) > 0.0


def test_default_ridges_need_no_extrapolation():
    for kind in (OPSLinearRegression, OutputPerturbationLinearRegression, NoisyStatisticsRidge):
        assert kind(target_bound=1.0).tuning_parameters(200, 1000) == {}


@every_kind
def test_less_budget_is_more_noise(kind):
    levels = [kind(e, DELTA, target_bound=1.0).noise_level(1000, 3) for e in (0.1, 1.0, 10.0)]
    assert levels[0] > levels[1] > levels[2] > 0.0
    with pytest.raises(ValueError, match="n_tune must be"):
        kind(target_bound=1.0).tuning_parameters(0, 10)
