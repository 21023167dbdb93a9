"""Wrong parameters, profiles and noise are caught, each by the check for it."""

from __future__ import annotations

import pytest

from skdptune.testing import check_private_estimator
from tests.testing import estimators as toys


@pytest.mark.parametrize(
    ("wrong", "check", "message"),
    [
        (toys.ChangesParameters, "parameters", "set_params must store values as they are"),
        (toys.FittedByItsConstructor, "constructor", "with ['coef_']"),
        (toys.AnnouncesAfterFitAlone, "profile", "must work before fit"),
        (toys.AnnouncesAtRandom, "profile", "same profile whenever it is asked"),
        (toys.AnnouncesANumber, "profile", "must be a PrivacyProfile; got float"),
        (
            toys.CostsMoreThanItsBudget,
            "profile_within_budget",
            "at most epsilon=1 at delta=0; it costs 2",
        ),
        (
            toys.CostsLessForMore,
            "profile_monotone_in_epsilon",
            "a larger epsilon must not cost less",
        ),
        (toys.HidesACostParameter, "cost_parameters", "must name 'clip'"),
        (toys.NamesNoParameters, "cost_parameters", "['noise'] are none"),
        (toys.HasNegativeNoise, "noise_level", "must be positive"),
        (toys.HasNoiseThatGrows, "noise_level", "must not grow with epsilon"),
        (toys.IgnoresItsNoiseParameter, "noise_parameter", "must decide alone"),
        (toys.CalibratesTooLittle, "calibration_to_curve", "those for a shift of 0.1 cost more"),
        (toys.SuggestsOthersFirst, "suggested_space", "must list the present value first"),
        (toys.SuggestsBudgets, "suggested_space", "must leave ['epsilon'] to the search"),
        (toys.ScalesItsBudget, "tuning_parameters", "must leave ['epsilon'] to the search"),
    ],
)
def test_wrong_estimator_is_caught_by_the_check_for_it(wrong, check, message) -> None:
    # Checks stop at the first that fails: those before it pass.
    with pytest.raises(AssertionError) as caught:
        check_private_estimator(wrong())
    assert str(caught.value).startswith(f"{wrong.__name__} fails check_{check}: ")
    assert message in str(caught.value)
